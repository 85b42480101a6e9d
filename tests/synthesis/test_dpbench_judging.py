"""Errors of the accuracy suite, and what is concluded from them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchmarks.dpbench.certainty import certainty, contested, interval, shares_by
from benchmarks.dpbench.judging import CELL, compared, hindsight, means, regret, regret_by, winners
from benchmarks.dpbench.questions import WORKLOADS, one_record, scaled_errors, workload_named, workloads_for
from benchmarks.dpbench.trials import SCHEMA

SHAPES = {1: (12,), 2: (5, 4), 3: (4, 3, 2), 4: (3, 2, 2, 2), 6: (2, 2, 3, 2, 1, 2)}


@pytest.mark.parametrize("name", WORKLOADS)
def test_errors_are_those_of_all_answers(name):
    generator = np.random.default_rng(1)
    for axes in WORKLOADS[name]:
        shape = SHAPES[axes]
        counts, estimate = generator.integers(0, 9, shape), generator.normal(4.0, 3.0, shape)
        workload = workload_named(name, shape)
        wrong = workload.answer(estimate - counts)
        l2, l1 = scaled_errors(name, counts, estimate, 50)
        assert l2 == pytest.approx(np.sqrt(np.square(wrong).sum()) / (50 * len(workload)))
        assert l1 == pytest.approx(np.abs(wrong).sum() / (50 * len(workload)))


@pytest.mark.parametrize("name", WORKLOADS)
def test_one_record_is_worth_what_the_mean_cell_is(name):
    for axes in WORKLOADS[name]:
        shape = SHAPES[axes]
        cells = np.eye(int(np.prod(shape)), dtype=np.int64).reshape(-1, *shape)
        errors = np.array([scaled_errors(name, np.zeros(shape, np.int64), cell, 50) for cell in cells])
        l2, l1 = one_record(name, shape, 50)
        assert l2 == pytest.approx(np.sqrt(np.square(errors[:, 0]).mean()))
        assert l1 == pytest.approx(errors[:, 1].mean())


def test_workloads_are_asked_where_they_fit():
    assert workloads_for((8,), WORKLOADS) == ["identity", "prefix", "all ranges", "random ranges"]
    assert workloads_for((8, 8), WORKLOADS) == ["identity", "rectangles", "marginals"]
    assert "all ranges" not in workloads_for((2**16,), WORKLOADS)


def table(errors: dict[str, list[float | None]], scale: int = 10) -> pl.DataFrame:
    """Return rows of results of one combination, as the suite writes them."""
    about = {"dataset": "d", "kind": "made", "axes": 1, "shape": "4", "scale": scale, "epsilon": 1.0}
    rows = [
        {**about, "workload": "identity", "mechanism": name, "trial": trial, "l2": error, "l1": error, "seconds": 0.1}
        | {"refused": None if error is not None else "no", "seed": 1, "data": "", "code": ""}
        for name, values in errors.items()
        for trial, error in enumerate(values)
    ]
    return pl.DataFrame(rows, SCHEMA)


def test_means_have_intervals_by_students_law():
    values = [0.3, 0.5, 0.9, 0.4]
    row = means(table({"a": values})).row(0, named=True)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (row["mean"] - row["half"], row["mean"] + row["half"]) == pytest.approx((low, high))


def test_a_mechanism_that_refused_is_left_out_and_one_trial_has_no_interval():
    found = means(table({"a": [0.3, None], "b": [0.5]}))
    assert found["mechanism"].to_list() == ["b"]
    assert found["half"].to_list() == [None]


def test_competitive_is_what_welchs_test_does_not_tell_from_the_best():
    generator = np.random.default_rng(3)
    errors = {f"m{place}": list(generator.normal(1.0 + 0.1 * place, 0.2, 20)) for place in range(8)}
    found = compared(means(table(errors)))
    best = min(errors, key=lambda name: np.mean(errors[name]))
    for row in found.iter_rows(named=True):
        chance = stats.ttest_ind(errors[row["mechanism"]], errors[best], equal_var=False).pvalue
        assert row["competitive"] == (row["mechanism"] == best or chance >= 0.05 / 7)
        assert row["ratio"] == pytest.approx(np.mean(errors[row["mechanism"]]) / np.mean(errors[best]))
    assert 1 < found["competitive"].sum() < 8, "both happen"


def test_less_than_one_wrong_record_counts_as_one():
    """One record in one of 4 cells is an error of 1 / (scale * 4)."""
    errors = {"exact": [0.0, 0.0], "half": [0.0125, 0.0125], "twice": [0.05, 0.05]}
    found = {row["mechanism"]: row for row in compared(means(table(errors))).iter_rows(named=True)}
    assert [found[name]["ratio"] for name in errors] == pytest.approx([1.0, 1.0, 2.0])
    assert [found[name]["competitive"] for name in errors] == [True, True, False]
    assert found["exact"]["mean"] == 0.0


def test_the_regret_of_a_choice_is_its_error_over_the_best_of_all_contestants():
    errors = {"estimate_histogram": [0.6, 0.6], "ahp": [0.4, 0.4], "uniform": [0.1, 0.1]}
    chosen = regret(means(table(errors)))
    assert chosen["ratio"].to_list() == pytest.approx([1.5])
    assert chosen["best_mechanism"].to_list() == ["ahp"]
    both = pl.concat([chosen, chosen.with_columns(ratio=pl.lit(1.1), competitive=pl.lit(True))])
    row = regret_by(both, "workload").row(0, named=True)
    assert row == pytest.approx(
        {"workload": "identity", "combinations": 2, "close": 0.5, "twice": 1.0, "competitive": 0.5}
        | {"mean": np.sqrt(1.65), "worst": 1.5, "surely worst": 1.5}
    )


def test_hindsight_takes_the_best_of_the_other_half():
    """In even trials a is the best, in odd ones b: each is judged by the trials in which it is not."""
    errors = {"a": [1.0, 3.0, 1.0, 3.0], "b": [2.0, 2.0, 2.0, 2.0], "uniform": [0.1] * 4}
    found = hindsight(table(errors, scale=1))
    assert found.select("mechanism", "ratio").rows() == [("b", 2.0), ("a", 1.5)]
    assert hindsight(table({"a": [1.0], "b": [2.0]})).is_empty(), "of one trial there is no other half"


def test_winners_are_counted():
    found = winners(compared(means(table({"a": [0.4, 0.4, 0.5], "b": [0.9, 0.8, 0.9]}))))
    assert found["mechanism"].to_list() == ["a", "b"]
    assert found["best"].to_list() == [1.0, 0.0]
    assert found["competitive"].to_list() == [1.0, 0.0]
    assert set(CELL) <= set(SCHEMA.names())


def test_intervals_of_ratios_hold_as_often_as_they_say():
    """Paired lognormal errors, seeds fixed: of 2,000 ends each is wrong in 5% plus or minus four deviations of that."""
    generator, wrong = np.random.default_rng(7), np.zeros(2)
    for _ in range(2000):
        shared, one, other = np.exp(0.2 * generator.normal(size=(3, 30)))
        lower, upper = interval(1.5 * shared * one, shared * other, 0.05, 0.05)
        wrong += [lower > 1.5, upper < 1.5]
    assert (np.abs(wrong / 2000 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000)).all(), wrong


@pytest.mark.parametrize("other", [[0.0, 0.0], [1.0]])
def test_too_little_tells_nothing_of_a_ratio(other):
    assert interval(np.ones(len(other)), np.array(other), 0.05, 0.05) == (0.0, np.inf)


def test_crossfitted_ratios_have_no_luck_of_the_least():
    """Nine mechanisms of the same law: the least of their means is 0.8 of the choice's, the cross-fitted one is not."""
    generator = np.random.default_rng(1)
    errors = {f"m{place}": list(np.exp(generator.normal(size=40))) for place in range(9)}
    errors["estimate_histogram"] = list(np.exp(generator.normal(size=40)))
    rows = table(errors)
    found = certainty(rows)
    assert found.height == 1
    lucky = regret(means(rows))["ratio"].item()
    assert found["ratio"].item() < lucky
    assert found["lower"].item() < 1.0 < found["upper"].item()


def test_what_is_sure_is_counted():
    near, steady = [1.0, 1.01, 0.99, 1.0] * 5, [3.0, 3.03, 2.97, 3.0] * 5
    far = certainty(table({"estimate_histogram": steady, "dawa": near, "uniform": [0.1] * 20}))
    close = certainty(table({"estimate_histogram": near, "dawa": near[1:] + near[:1]}))
    assert far["ratio"].item() == pytest.approx(3.0, rel=0.01)
    shares = shares_by(pl.concat([far, close]), "axes")
    counted = shares.select("combinations", "close", "surely_close", "surely_beyond", "surely_far").row(0)
    assert counted == (2, 0.5, 1, 1, 1)
    assert 0.0 < shares["low"].item() < 0.5 < shares["high"].item() < 1.0


def test_a_mechanism_that_refused_is_no_contestant_for_certainty():
    found = certainty(table({"estimate_histogram": [1.0, 1.1], "dawa": [0.1, None], "ahp": [1.0, 1.2]}))
    assert found["ratio"].item() == pytest.approx(1.0, rel=0.1)
    assert certainty(table({"estimate_histogram": [1.0, 1.1]})).is_empty()


def test_trials_are_asked_for_where_they_may_decide():
    """Errors of two laws that overlap are undecided; what is surely worse than the choice needs no more trials."""
    generator = np.random.default_rng(3)
    errors = {name: list(np.exp(0.5 * generator.normal(size=6))) for name in ("estimate_histogram", "dawa")}
    rows = table({**errors, "identity": [100.0, 101.0, 99.0] * 2, "uniform": [0.1] * 6})
    assert contested(rows)["names"].to_list() == [["estimate_histogram", "dawa"]]
    near = [1.0, 1.01, 0.99, 1.0] * 5
    assert contested(table({"estimate_histogram": near, "dawa": near[1:] + near[:1]})).is_empty()
    assert certainty(rows, looks=4)["lower"].item() < certainty(rows)["lower"].item(), "each look has its part"
