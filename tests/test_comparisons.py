"""The benchmark table's rows at a small size: ours and the baseline compute the same thing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from benchmarks.comparisons import COMPARISONS, HEADLINES, Comparison
from benchmarks.limits import LIMITS, is_below_goal
from benchmarks.origins import digest_of_kernels

SIZE = 100_000
#: Rows in which every value waits for the disk, opens a file or is a call of its own.
FEWER = {
    "Single durable charges": 100,
    "Open a ledger of 10^6 charges": 20_000,
    "Footers of 10^4 Parquet files": 300,
    "1,000 selections, a call each, 5 candidates": 1_000,
    "1,000 selections, a call each, 100": 1_000,
    "1,000 selections, a call each, 1,000": 1_000,
}
ROOT = Path(__file__).resolve().parent.parent
#: The cells of a row, and the digest of its kernels.
Measured = tuple[list[str], str]
NAMES = [comparison.name for comparison in COMPARISONS]


@pytest.mark.filterwarnings("ignore::dpfast.errors.PrivacyUnitWarning")
@pytest.mark.statistical
@pytest.mark.parametrize("comparison", COMPARISONS, ids=[comparison.name for comparison in COMPARISONS])
def test_same_thing(comparison: Comparison) -> None:
    """False-failure rate below 1e-12 a row.

    Sample deviations of 10**5 Laplace or normal values differ by more than 5% with probability below 1e-20 (the
    variance of the squared deviation is at most 5 sd**4). A count strays by more than 35 scales with
    probability e**-35, over at most 10**4 groups. Winners' mean scores of 1,000 rows have a deviation below 3 /
    sqrt(1,000) each; they differ by 14 times that with probability below 1e-40. Values and scores made to be above
    lie 300 scales of noise from all others. Mean errors of MWEM, over 600 queries or more, are those of queries that
    were not measured for the most part: two runs differ by a few percent, and a factor of 5 is allowed.
    """
    if not comparison.is_possible:
        pytest.skip(f"{comparison.needs} is not installed")
    prepared = comparison.prepare(FEWER.get(comparison.name, SIZE))
    ours, theirs = prepared.ours(), prepared.baseline()
    if prepared.agree is not None:
        assert prepared.agree(ours, theirs)
        return
    if prepared.values is not None:
        assert ours.shape == theirs.shape
        assert prepared.floor is None or (prepared.floor() == prepared.values).all()
        noise = theirs if "alone" in comparison.baseline else theirs - prepared.values
        assert (ours - prepared.values).std() == pytest.approx(noise.std(), rel=0.05)
        return
    assert {"n", "n_scale", "n_lower", "n_upper"} <= set(ours.columns)
    keys = [column for column in theirs.columns if column != "len"]
    both = ours.join(theirs, on=keys, how="left").with_columns(pl.col("len").cast(pl.Int64).fill_null(0))
    if "bounded" not in comparison.name:
        assert ((both["n"] - both["len"]).abs() <= 35 * both["n_scale"] + 1).all()


def test_headlines_are_rows() -> None:
    """Those that are no comparisons are of whole processes, which scripts/measure.py knows."""
    known = {comparison.name for comparison in COMPARISONS}
    rest = [name for name in HEADLINES if name not in known]
    script = (ROOT / "scripts" / "measure.py").read_text()
    assert FEWER.keys() <= known
    assert all(name.split(":")[0] in known or f'"{name}"' in script for name in rest), rest


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return scripts/measure.py on a processor with AVX-512, over a table and a README of its own."""
    specification = importlib.util.spec_from_file_location("measure", ROOT / "scripts" / "measure.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "has_avx512", lambda: True)
    (tmp_path / "README.md").write_text(f"Before.\n{module.BEGIN}\n{module.END}\nAfter.\n")
    module.write([[name, f"old {name}", "", "", ""] for name in (*NAMES, "Single charges")])
    return module


def test_a_run_that_is_stopped_has_written_what_it_measured(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that it did not come to stay as they were, in the order of the table; so does what an earlier stop left."""
    for stopped_after in (NAMES[:2], NAMES[2:3]):

        def stopped(only: str, failed: list[str], some: Sequence[str] = stopped_after) -> Iterator[Measured]:
            yield from (([name, f"new {name}", "", "", ""], "") for name in some)
            raise KeyboardInterrupt

        monkeypatch.setattr(measure, "rows_of_comparisons", stopped)
        monkeypatch.setattr(sys, "argv", ["measure.py", "--write"])
        with pytest.raises(KeyboardInterrupt):
            measure.main()
    shown = [f"{'new' if name in NAMES[:3] else 'old'} {name}" for name in (*NAMES, "Single charges")]
    assert [row[1] for row in measure.rows_written()] == shown


def test_a_whole_run_keeps_no_row_of_before(measure: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[name, "new", "", "", ""] for name in NAMES[1:]]
    given = [(row, "") for row in rows]
    monkeypatch.setattr(measure, "rows_of_comparisons", lambda only, failed: iter(given[:-1]))
    monkeypatch.setattr(measure, "rows_of_processes", lambda: iter(given[-1:]))
    for arguments, left in (([], 1 + len(NAMES)), (["--write", "--only", "a"], 1 + len(NAMES)), (["--write"], None)):
        monkeypatch.setattr(sys, "argv", ["measure.py", *arguments])
        measure.main()
        assert left is None or len(measure.rows_written()) == left
    assert measure.rows_written() == rows


def test_a_processor_without_avx512_writes_its_own_column(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What AVX-512 took stays, and the page says of which processor it is, and where kernels have changed since."""
    found = {"time": "4 ms", "beside": "2.0 of the time of B (goal 9)", "ratio": "2.0 (goal 9)", "peers": "P"}
    kernels = dict.fromkeys(NAMES[:2], "one")
    monkeypatch.setattr(measure, "_in_own_process", lambda name, _: found | {"kernels": kernels[name]})
    monkeypatch.setattr(measure, "rows_of_processes", lambda: iter([]))
    possible = [row for row in COMPARISONS if row.name in kernels]
    monkeypatch.setattr("benchmarks.comparisons.COMPARISONS", possible)
    monkeypatch.setattr(sys, "argv", ["measure.py", "--write"])
    monkeypatch.setattr(measure.origins, "processor", lambda: "a wide one")
    measure.main()
    wide = ["4 ms", found["beside"], found["ratio"], "P"]
    assert measure.rows_written() == [[name, *wide] for name in NAMES[:2]]
    page = tmp_path / "benchmarks" / "measured.md"
    assert "- AVX2 alone: a wide one, as one without AVX-512, 2 rows." in page.read_text()
    assert "Of earlier kernels" not in page.read_text()

    kernels[NAMES[1]] = "another"
    found |= {"time": "7 ms", "beside": "3.0 of the time of B (goal 9)", "ratio": "3.0 (goal 9)", "peers": "Q"}
    monkeypatch.setattr(measure, "has_avx512", lambda: False)
    monkeypatch.setattr(measure.origins, "processor", lambda: "a narrow one")
    measure.main()
    assert measure.rows_written() == [[name, *wide[:2], found["ratio"], "P"] for name in NAMES[:2]]
    assert "- AVX-512: a wide one, 2 rows.\n- AVX2 alone: a narrow one, 2 rows." in page.read_text()
    earlier = page.read_text().partition("## Of earlier kernels")[2]
    assert f"- AVX-512: {NAMES[1]}." in earlier
    assert NAMES[0] not in earlier.replace(NAMES[1], "")
    kernels[NAMES[0]] = "another"
    measure.main()
    assert "- AVX-512: all rows." in page.read_text()
    # A row that was never measured elsewhere has no figure of AVX-512.
    monkeypatch.setattr(measure, "rows_written", list)
    assert measure.cells_of(NAMES[0], found, found) == [NAMES[0], "7 ms (AVX2)", "", found["beside"], "Q"]


def test_kernels_are_known_by_their_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A comment, such as the stamp of all kernels, changes no digest; a line of code does."""
    module = ModuleType("dpfast.kernels.invented")
    module.__file__ = str(tmp_path / "invented.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    digests = []
    for text in ("one = 1\n# Stamp: 1\n", "one = 1\n# Stamp: 2\n", "one = 2\n# Stamp: 2\n"):
        Path(module.__file__).write_text(text)
        digests.append(digest_of_kernels())
    assert digests[0] == digests[1] != digests[2]


def test_rows_below_a_goal_are_known() -> None:
    cells = {
        "12.2x faster than NumPy (goal 14x; words and bytes alone 15.2x)": True,
        "8,427.5x faster than NumPy (goal 50x)": False,
        "1.83 (goal 1.5)": True,
        "0.08 of the time of Polars group_by (goal 0.35)": False,
        "1.03 of 700 ms (goal 1); with a cold kernel cache 3.7 s": True,
        "0.83 of 25 us (goal 1)": False,
        "10.2 ms": False,
        "": False,
    }
    assert {cell: is_below_goal(cell) for cell in cells} == cells


def test_what_may_take_a_time_is_compared_with_it(measure: ModuleType) -> None:
    assert measure.within(0.539, 0.7) == "0.77 of 700 ms (goal 1)"
    assert measure.within(30e-6, 25e-6) == "1.20 of 25 us (goal 1)"


def test_every_row_below_a_goal_is_named_below_the_table() -> None:
    table, _, listed = (ROOT / "benchmarks" / "measured.md").read_text().partition("\n## Below their goals\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    assert LIMITS.keys() <= {row[0] for row in rows}
    below = [row[0] for row in rows if any(map(is_below_goal, row))]
    assert [name for name in below if name not in listed] == []
