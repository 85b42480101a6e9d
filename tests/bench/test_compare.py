"""Two files of results: what got worse is found, and noise is not, by results that are made up."""

from __future__ import annotations

import random

import polars as pl
import pytest

from dpfast.bench.compare import compare
from dpfast.bench.results import FORMAT, read_results
from dpfast.errors import FileError
from tests.bench.made_up import ELSEWHERE, frame, measured

SLOW, FAST = [1.0 + place / 100 for place in range(7)], [0.5 + place / 100 for place in range(7)]
TEN = [10.0] * 7


def verdicts(found):
    return {(change.name, change.contestant): change.verdict for change in found.changes}


def test_a_ratio_that_fell_is_worse_and_one_that_rose_better():
    old = frame(("a", measured(FAST, TEN)), ("b", measured(SLOW, TEN)), ("c", measured(FAST, TEN)))
    new = frame(("a", measured(SLOW, TEN)), ("b", measured(FAST, TEN)), ("c", measured(FAST, TEN)))
    found = compare(old, new)
    assert verdicts(found) == {("a", "NumPy"): "worse", ("b", "NumPy"): "better", ("c", "NumPy"): "same"}
    assert found.is_worse
    [worse] = [change for change in found.changes if change.verdict == "worse"]
    assert worse.factor == pytest.approx(0.515, abs=0.01)
    assert found.false_alarms == pytest.approx(3 / 3432)
    assert "1 worse, 1 better, 1 same" in found.explain()


def test_a_machine_that_is_slower_altogether_is_no_regression():
    slower = measured([5 * one for one in FAST], [5 * one for one in TEN])
    assert not compare(frame(("a", measured(FAST, TEN))), frame(("a", slower), about=ELSEWHERE)).is_worse


def test_intervals_that_overlap_or_small_changes_are_noise():
    wide = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.05]
    assert not compare(frame(("a", measured(wide, TEN))), frame(("a", measured(SLOW, TEN)))).is_worse
    little = [1.05 * one for one in TEN]
    old, new = frame(("a", measured([1.0] * 7, little))), frame(("a", measured([1.0] * 7, TEN)))
    assert not compare(old, new).is_worse
    assert compare(old, new, tolerance=0.01).is_worse


def test_too_few_rounds_are_not_judged():
    found = compare(frame(("a", measured(FAST[:3], TEN[:3]))), frame(("a", measured(SLOW[:3], TEN[:3]))))
    assert verdicts(found) == {("a", "NumPy"): "not judged"}
    assert (found.is_worse, found.false_alarms) == (False, 0)
    assert "too few" in found.changes[0].note


def test_times_alone_are_compared_on_one_machine_only():
    old = frame(("a", measured(FAST)))
    assert verdicts(compare(old, frame(("a", measured(SLOW))))) == {("a", "dpfast"): "worse"}
    found = compare(old, frame(("a", measured(SLOW)), about=ELSEWHERE))
    assert verdicts(found) == {("a", "dpfast"): "not judged"}
    assert "different machines" in found.explain()
    # An error is no time: it is the same on every machine.
    old, new = frame(("a", measured(FAST, unit="ranks"))), frame(("a", measured(SLOW, unit="ranks")), about=ELSEWHERE)
    assert compare(old, new).is_worse


def test_what_raises_now_is_worse_and_what_did_before_is_the_same():
    good, bad = ("a", measured(FAST, TEN)), ("a", measured([], failure="raised", note="raised ValueError: no"))
    assert compare(frame(good), frame(bad)).is_worse
    assert not compare(frame(bad), frame(bad)).is_worse
    assert verdicts(compare(frame(bad), frame(good)))["a", "dpfast"] == "better"


def test_rows_that_are_new_or_gone_are_told_and_no_regression():
    found = compare(frame(("a", measured(FAST, TEN))), frame(("b", measured(FAST, TEN))))
    assert verdicts(found) == {("a", "NumPy"): "gone", ("a", "dpfast"): "gone", ("b", "NumPy"): "new"}
    assert not found.is_worse


def test_noise_alone_is_hardly_ever_called_worse():
    """False-failure rate below 1e-9: of 2,000 rows 0.6 are expected, above 15 with a probability of 1e-16."""
    draw = random.Random(20_261_123)

    def run():
        return frame(*(
            (str(number), measured([draw.lognormvariate(0, 0.5) for _ in range(7)], TEN)) for number in range(2_000)
        ))  # fmt: skip

    found = compare(run(), run(), tolerance=0)
    assert sum(change.verdict == "worse" for change in found.changes) <= 15
    assert found.false_alarms == pytest.approx(2_000 / 3432)


def test_per_value_ratios_and_those_by_rounds():
    rows = frame(("a", measured([1.0, 2.0, 4.0], [0.5, 1.0, 4.0], size=100, their_size=10)))
    theirs = rows.row(1, named=True)
    assert (theirs["ratio"], theirs["ratio_low"], theirs["ratio_high"]) == (5.0, 5.0, 10.0)
    assert rows.row(0, named=True)["ratio"] is None


def test_other_files_and_formats_are_refused(tmp_path):
    path = tmp_path / "results.parquet"
    good = frame(("a", measured(FAST, TEN)))
    good.write_parquet(path)
    assert read_results(path).equals(good)
    for wrong, told in (
        (good.with_columns(format=pl.lit(FORMAT + 1, pl.Int32)), f"format {FORMAT}"),
        (good.drop("ratio"), "lacks ratio"),
        (pl.DataFrame({"x": [1]}), "dpfast bench --out"),
        (good.clear(), "dpfast bench --out"),
    ):
        wrong.write_parquet(path)
        with pytest.raises(FileError, match=told):
            read_results(path)
    path.write_text("no table")
    with pytest.raises(FileError, match="read as Parquet"):
        read_results(path)
    with pytest.raises(FileError, match="no such file"):
        read_results(tmp_path / "none.parquet")


def test_a_file_of_another_version_is_said_to_be():
    old, new = (frame(("a", measured(FAST, TEN))) for _ in range(2))
    found = compare(old.with_columns(dpfast=pl.lit("0.0.9")), new)
    assert found.notes == ("OLD is of dpfast 0.0.9, NEW of dpfast 0.1.0",)
