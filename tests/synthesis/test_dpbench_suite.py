"""The accuracy suite runs, goes on where it was ended, and writes the same whatever else is run."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.dpbench import running, suite
from benchmarks.dpbench.datasets import named
from benchmarks.dpbench.judging import means
from benchmarks.dpbench.mechanisms import OURS, mechanisms_named
from benchmarks.dpbench.page import page
from benchmarks.dpbench.running import combinations, run
from benchmarks.dpbench.storage import read_results
from benchmarks.dpbench.suite import main
from benchmarks.dpbench.trials import SCHEMA, in_turns
from dpfast.errors import ParameterError

ROOT = Path(__file__).parents[2]
SIDES = {1: (64,), 2: (8,)}
KEYS = SCHEMA.names()[:9]
#: Of a run, what does not depend on the clock.
FIXED = [name for name in SCHEMA.names() if name != "seconds"]


def some(workloads=("identity", "prefix", "rectangles"), most=None):
    datasets = named(["zipf", "one cluster", "ADULT"], held_out=False)
    return combinations(datasets, SIDES, [1000], [0.1, 1.0], workloads, most=most)


def test_every_mechanism_gives_an_estimate_of_every_workload(tmp_path):
    wanted = some(["identity", "prefix", "all ranges", "random ranges", "rectangles", "marginals"])
    rows = run(wanted, list(OURS.values()), 1, None)
    assert rows.schema == SCHEMA
    assert rows["refused"].null_count() == rows.height, rows.drop_nulls("refused")
    assert set(rows["mechanism"]) == set(OURS)
    planes = rows.filter(axes=2)
    assert set(OURS) - set(planes["mechanism"]) == {"dawa", "wavelet"}
    assert rows.select(pl.col("l2", "l1").min()).row(0) > (0, 0)
    text = page(rows, command="test")
    assert all(name in text for name in OURS)


def test_a_trial_is_the_same_whatever_else_is_run(tmp_path):
    all_of_them = run(some(), mechanisms_named(["identity", "ahp"]), 3, None)
    path = tmp_path / "run.parquet"
    run(some(most=3)[::-1], mechanisms_named(["ahp"]), 2, path)
    assert read_results(path).height == 6
    resumed = run(some(), mechanisms_named(["identity", "ahp"]), 3, path, resume=True)
    for frame in (resumed, read_results(path)):
        assert frame.select(FIXED).sort(KEYS).equals(all_of_them.select(FIXED).sort(KEYS))
    # What was there has not been run again: its seconds are the same.
    assert resumed.join(read_results(path), on=["seconds", *KEYS]).height == resumed.height
    other = run(some(), mechanisms_named(["identity"]), 3, None, seed=7)
    assert not set(other["l2"]) & set(all_of_them["l2"])


def test_two_processes_give_the_same(tmp_path):
    before = dict(os.environ)
    one = run(some(), mechanisms_named(["identity"]), 2, None)
    two = run(some(), mechanisms_named(["identity"]), 2, tmp_path / "run.parquet", processes=2)
    assert two.select(FIXED).sort(KEYS).equals(one.select(FIXED).sort(KEYS))
    assert os.environ == before, "threads of this process are its own affair"


def test_rows_of_other_code_or_data_are_measured_again(tmp_path, monkeypatch):
    path = tmp_path / "run.parquet"
    mechanisms = mechanisms_named(["identity"])
    before = run(some(), mechanisms, 1, path)
    before.with_columns(code=pl.lit("other")).write_parquet(path)
    after = run(some(), mechanisms, 1, path, resume=True)
    assert after.height == before.height
    assert "other" not in after["code"]
    after.with_columns(data=pl.when(pl.col("dataset") == "zipf").then(pl.lit("x")).otherwise("data")).write_parquet(
        path
    )
    again = run(some(), mechanisms, 1, path, resume=True)
    assert again.height == before.height
    assert "x" not in again["data"]


MINE = """
import numpy as np

def naive(counts, workload, epsilon, generator):
    return counts + generator.laplace(0.0, 1.0 / epsilon, counts.shape)

def wrong(counts, workload, epsilon, generator):
    if counts.ndim == 2:
        raise RuntimeError("one dimension only")
    return counts[:3]
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine_of_test.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return "mine_of_test"


def test_ones_own_mechanism_runs_beside_ours(mine):
    rows = run(some(), mechanisms_named(["identity", f"{mine}:naive"]), 30, None)
    errors = means(rows.filter(workload="identity")).pivot("mechanism", index=["dataset", "epsilon"], values="mean")
    ratios = errors[f"{mine}:naive"] / errors["identity"]
    # The same noise but for the seed: 30 trials of 64 cells, so both errors have deviations of some 3%.
    assert ratios.is_between(0.7, 1.4).all()


def test_a_mechanism_that_fails_is_a_row_and_not_the_end(mine):
    rows = run(some(), mechanisms_named(["identity", f"{mine}:wrong"]), 1, None)
    failed = rows.drop_nulls("refused")
    assert set(failed["mechanism"]) == {f"{mine}:wrong"}
    assert set(failed.filter(axes=2)["refused"]) == {"RuntimeError: one dimension only"}
    assert failed.filter(axes=1)["refused"].str.contains("3").all()
    assert failed["l2"].null_count() == failed.height
    assert "one dimension only" in page(rows, command="test")


def test_trials_in_turns_are_those_of_a_run():
    one = some(["prefix"])[0]
    rows = run([one], mechanisms_named(["ahp"]), 3, None)
    errors = in_turns(one, ["ahp"])
    assert [errors["ahp"]() for _ in range(3)] == rows.sort("trial")["l2"].to_list()


def test_the_command_writes_results_page_and_charts(tmp_path, capsys):
    out, shown = tmp_path / "run.parquet", tmp_path / "page.md"
    few = ["--most", "4", "--trials", "2", "--sides", "64", "--plane-sides", "8", "--scales", "1e3", "--epsilons", "1"]
    assert main(["--quick", *few, "--out", str(out), "--page", str(shown)]) == 0
    assert read_results(out).select("dataset", "workload").n_unique() == 4
    text = shown.read_text()
    assert text.startswith("# Accuracy of histograms")
    assert "What `estimate_histogram` loses by choosing" in text
    assert f"`python -m benchmarks.dpbench --quick {' '.join(few)}`" in text, "nothing of where it went"
    for path in tmp_path.glob("*.svg"):
        assert f"]({path.name})" in text
        assert path.read_text().startswith("<?xml")
    assert (tmp_path / "page_regret.svg").exists()
    assert main(["--only-page", "--out", str(out), "--error", "l1"]) == 0
    assert "the sum of |answer - truth|" in capsys.readouterr().out
    assert main(["--list"]) == 0
    assert "published shape  1-D  ADULT" in capsys.readouterr().out


def test_a_folder_of_ones_own_is_measured(tmp_path, capsys):
    np.save(tmp_path / "ages.npy", np.random.default_rng(1).integers(0, 99, 64))
    arguments = ["--datasets", str(tmp_path), "--mechanisms", "identity", "estimate_histogram", "--trials", "2"]
    assert main([*arguments, "--scales", "1000", "--epsilons", "1", "--workloads", "prefix"]) == 0
    assert "1 folder" in capsys.readouterr().out


WRONG = [
    (["--datasets", "none such"], "datasets must be"),
    (["--mechanisms", "none_such:f"], "module:function"),
    (["--mechanisms", "ahpp"], "one of uniform, identity"),
    (["--resume"], "out must be"),
    (["--quick", "--out", __file__], "--resume goes on with it"),
    (["--quick", "--page", "none/such.md"], "page must be"),
    (["--only-page", "--out", "none.parquet"], "a file that this suite wrote"),
    (["--datasets", "zipf", "--workloads", "rectangles"], "workloads must be"),
]


@pytest.mark.parametrize(("arguments", "why"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_arguments_are_one_line(arguments, why, capsys):
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert why in told
    assert told.count("\n") == 1


def test_what_is_not_installed_is_said_before_the_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(suite, "find_spec", lambda name: None)
    assert main(["--quick", "--page", str(tmp_path / "page.md")]) == 2
    assert "pip install 'dpfast[synthesis]'" in capsys.readouterr().err
    monkeypatch.setattr(suite, "find_spec", lambda name: None if name == "matplotlib" else name)
    monkeypatch.setattr(suite, "_measured", lambda given: pytest.fail("nothing is to be measured here"))
    with pytest.raises(pytest.fail.Exception):
        main(["--quick", "--page", str(tmp_path / "page.md")])
    assert capsys.readouterr().err == "not drawn: charts of the page (pip install matplotlib)\n"


@pytest.mark.parametrize("arguments", [["--scales", "0"], ["--epsilons", "-1"], ["--trials", "2.5"], ["--sides", "x"]])
def test_numbers_that_are_none_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_a_killed_run_goes_on(tmp_path):
    """Killed at any time, the file has whole rows, and the end is the same as without."""
    path = tmp_path / "run.parquet"
    program = textwrap.dedent(f"""
        from pathlib import Path
        from benchmarks.dpbench import running
        from tests.synthesis.test_dpbench_suite import some
        from benchmarks.dpbench.mechanisms import mechanisms_named
        running._WRITE_EVERY = 0.0
        running.run(some(), mechanisms_named(["identity", "mwem"]), 400, Path({str(path)!r}))
    """)
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.wait()
    killed = read_results(path)
    assert killed.height > 0
    mechanisms = mechanisms_named(["identity", "mwem"])
    resumed = run(some(), mechanisms, 2, path, resume=True).filter(pl.col("trial") < 2)
    assert resumed.select(FIXED).sort(KEYS).equals(run(some(), mechanisms, 2, None).select(FIXED).sort(KEYS))


def test_a_file_that_is_none_of_ours_is_not_overwritten_by_going_on(tmp_path):
    path = tmp_path / "other.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(path)
    with pytest.raises(ParameterError, match="a file that this suite wrote"):
        run(some(), mechanisms_named(["identity"]), 1, path, resume=True)
    assert pl.read_parquet(path).columns == ["x"]


def test_combinations_are_drawn_at_random_and_fixed_by_the_seed():
    every = some()
    assert [one.key for one in some(most=4)] == [one.key for one in every[:4]]
    assert sorted(one.key for one in every) != [one.key for one in every]
    assert len({one.key for one in every}) == len(every) == 2 * (2 * 2 + 2 * 1)
    assert running._WRITE_EVERY <= 30


def test_undecided_combinations_get_more_trials_and_only_the_mechanisms_that_need_them():
    """The choice beside itself under another name is never told from it; the rest of the trials stay what they were."""
    names = mechanisms_named(["identity", "adaptive_hierarchy", "estimate_histogram"])
    once, wanted = run(some(), names, 2, None), some()
    looked = run(wanted, names, 2, None, looks=3)
    trials = looked.group_by(KEYS[:8]).agg(pl.len())["len"].unique().sort().to_list()
    assert set(trials) <= {2, 4, 8}
    assert 8 in trials, trials
    kept = looked.filter(pl.col("trial") < 2)
    assert kept.select(FIXED).sort(KEYS).equals(once.select(FIXED).sort(KEYS))


def test_a_run_that_is_resumed_looks_at_what_it_would_have(tmp_path):
    names, path = mechanisms_named(["identity", "estimate_histogram"]), tmp_path / "looks.parquet"
    whole = run(some(), names, 2, path, looks=3)
    resumed = run(some(), names, 2, path, looks=3, resume=True)
    assert resumed.select(FIXED).sort(KEYS).equals(whole.select(FIXED).sort(KEYS))
