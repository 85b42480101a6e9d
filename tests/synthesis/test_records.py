"""Records come from a table without negative cells that errs no more than the answers that it was fitted to."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast import progress
from dpfast.strategies.matrix_mechanism import matrix_mechanism
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.fitted import nonnegative
from dpfast.testing import SeededRandom
from dpfast.workloads import Workload

from .census import census

#: What a table, or records, may err more than the answers.
ALLOWED = 1.2
SHAPE = (5, 7, 3, 8, 11)


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def sampling_error(workload: Workload, table: np.ndarray) -> float:
    """Return the root mean square error of so many records drawn independently."""
    means = np.asarray(workload.answer(table / table.sum()), np.float64)
    squares = means if workload.binary else np.asarray(np.square(workload.rows(0, len(workload))) @ table.ravel())
    return float(np.sqrt(table.sum() * np.mean(np.maximum(squares - means**2, 0.0))))


def lines(cells: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(cells)
    return {
        "even": generator.poisson(10, cells),
        "spikes": (generator.random(cells) < 0.02) * generator.poisson(800, cells),
        "bell": np.bincount((generator.beta(2, 9, 40_000) * cells).astype(int), minlength=cells),
        "tail": np.bincount(np.minimum(generator.pareto(0.6, 30_000).astype(int), cells - 1), minlength=cells),
        "few": np.bincount(generator.integers(0, 3, 20), minlength=cells),
    }


def workloads() -> dict[str, tuple[Workload, np.ndarray]]:
    generator, small = np.random.default_rng(5), (8, 9, 7)
    asked: dict[str, tuple[Workload, np.ndarray]] = {
        "marginals k=2": (dpf.workloads.marginals(SHAPE, 2), census(SHAPE, 40_000)),
        "marginals k=1": (dpf.workloads.marginals(SHAPE, 1), census(SHAPE, 30_000, 1)),
        "marginals k=3": (dpf.workloads.marginals((4, 6, 5, 9), 3), census((4, 6, 5, 9), 5_000, 2)),
        "stacked": (dpf.workloads.marginals(small, 2) + dpf.workloads.total(small), census(small, 5_000)),
        "matrix": (dpf.workloads.matrix(generator.integers(0, 2, (60, 504)), small), census(small, 5_000)),
        "real matrix": (dpf.workloads.matrix(generator.normal(size=(60, 504)), small), census(small, 5_000)),
        "product": (
            dpf.workloads.kronecker(dpf.workloads.prefix(8), dpf.workloads.identity(9), dpf.workloads.all_range(7)),
            census(small, 5_000),
        ),
        "three axes": (dpf.workloads.identity(small), census(small, 5_000)),
    }
    for name, counts in lines(1000).items():
        asked[f"prefixes, {name}"] = dpf.workloads.prefix(1000), counts
        asked[f"ranges, {name}"] = dpf.workloads.random_ranges(1000, 500, 1), counts
        asked[f"cells, {name}"] = dpf.workloads.identity(1000), counts
        asked[f"rectangles, {name}"] = dpf.workloads.random_rectangles((40, 25), 500, 1), counts.reshape(40, 25)
    return asked


ASKED = workloads()


def measured(workload: Workload, counts: np.ndarray, epsilon: float, seed: int, strategy: str) -> Estimate:
    """Return an estimate by the method that is chosen, or by a strategy in closed form whatever is chosen."""
    if strategy == "chosen":
        return dpf.estimate_histogram(counts, workload, epsilon=epsilon, random=SeededRandom(seed))
    fixed = dpf.strategies.identity(workload.shape) if strategy == "cells" else "auto"
    released = matrix_mechanism(counts, workload, epsilon=epsilon, strategy=fixed, random=SeededRandom(seed))
    return Estimate(released.histogram, workload, None)


@pytest.mark.parametrize("strategy", ["chosen", "closed", "cells"])
@pytest.mark.parametrize("name", ASKED)
def test_records_err_no_more_than_the_answers(name, strategy):
    """Over tables, workloads, strategies and epsilons, root mean square over all queries and three runs.

    What is allowed beyond is what sampling as many records would cost. The seeds are fixed: nothing fails falsely.
    """
    workload, counts = ASKED[name]
    truth = workload.answer(counts)
    for epsilon in (0.05, 1.0):
        errors = []
        for seed in range(3):
            estimate = measured(workload, counts, epsilon, seed, strategy)
            table, whole = estimate.table, estimate.counts(random=SeededRandom(seed + 100))
            assert table.histogram.min() >= 0.0
            assert whole.min() >= 0
            errors.append([rms(workload.answer(h) - truth) for h in (estimate.histogram, table.histogram, whole)])
        answers, fitted, records = np.sqrt(np.mean(np.square(errors), axis=0))
        # Of few records in much noise nothing is left to draw: the total is 0 or less.
        assert fitted <= ALLOWED * answers + 1e-9, (epsilon, answers, fitted, table)
        allowed = np.hypot(ALLOWED * answers, sampling_error(workload, counts))
        assert records <= allowed + 1.0, (epsilon, answers, fitted, records, table)


def variation(workload, one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean total variation distance of marginals, as shares."""
    tables = zip(workload.split(one / one.sum()), workload.split(other / other.sum()), strict=True)
    return float(np.mean([np.abs(a / a.sum() - b / b.sum()).sum() / 2 for a, b in tables]))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_pairs_of_five_census_attributes(epsilon):
    """The pairs of records err as the answers do; those of independent columns, and of a clipped estimate, far more."""
    counts = census(SHAPE, 40_000)
    pairs, singles = dpf.workloads.marginals(SHAPE, 2), dpf.workloads.marginals(SHAPE, 1)
    truth = pairs.answer(counts).astype(float)
    estimate = dpf.estimate_histogram(counts, pairs, epsilon=epsilon, random=SeededRandom(7))
    domain = dpf.Domain({f"x{axis}": size for axis, size in enumerate(SHAPE)})
    frame = domain.records(estimate, random=SeededRandom(8))
    assert frame.height == round(estimate.table.histogram.sum())
    drawn = pairs.answer(domain.count(frame)).astype(float)
    columns = np.ones(())
    for share in singles.split(singles.answer(counts)):
        columns = np.multiply.outer(columns, share / counts.sum())
    sampled = np.mean([np.sqrt(p * (1 - p) / counts.sum()).sum() / 2 for p in pairs.split(truth / counts.sum())])
    answers, records = variation(pairs, estimate.answers, truth), variation(pairs, drawn, truth)
    assert records <= ALLOWED * answers + sampled
    assert records < 0.3 * variation(pairs, pairs.answer(columns), truth)
    if epsilon <= 1.0:
        clipped = variation(pairs, pairs.answer(np.maximum(estimate.histogram, 0.0)), truth)
        assert clipped > ALLOWED * answers + sampled, "the mutant: negative cells set to 0"


@pytest.mark.long
def test_pairs_of_a_million_cells():
    shape = (20, 15, 15, 15, 15)
    counts, pairs = census(shape, 40_000), dpf.workloads.marginals(shape, 2)
    estimate = dpf.estimate_histogram(counts, pairs, epsilon=1.0, random=SeededRandom(7))
    truth = pairs.answer(counts)
    assert estimate.table.complete
    assert rms(pairs.answer(estimate.table.histogram) - truth) <= ALLOWED * rms(estimate.answers - truth)


def test_the_public_number_of_records_is_kept_where_records_are_replaced():
    counts = np.full(64, 1_000)
    counts[5::16] = 0
    workload = dpf.workloads.prefix(64)
    estimate = dpf.estimate_histogram(counts, workload, epsilon=0.1, neighbors="replace", random=SeededRandom(1))
    assert estimate.histogram.min() < 0
    assert np.isclose(estimate.table.histogram.sum(), 60_000)
    assert estimate.to_frame().height == 60_000


def released(histogram, workload=None) -> Estimate:
    cells = np.asarray(histogram, np.float64)
    return Estimate(cells, workload or dpf.workloads.identity(cells.shape), None)


@pytest.mark.parametrize(
    ("histogram", "records"),
    [
        ([0.0, 0.0], [0, 0]),
        ([-3.0, -1.0], [0, 0]),
        ([-3.0, 2.0], [0, 0]),
        ([-5.0], [0]),
        ([3.2], [3]),
        ([-2.0, 9.0], [0, 7]),
    ],
)
def test_totals_of_nothing(histogram, records):
    """An estimated total of 0 or less gives no records; where some are asked for, the positive cells, or all, share."""
    estimate = released(histogram)
    assert estimate.counts().tolist() == records
    assert estimate.to_frame(0).height == 0
    some = estimate.counts(1000)
    assert some.sum() == 1000
    positive = np.array(histogram) > 0
    assert not some[~positive].any() or not positive.any()
    if not positive.any():
        assert np.ptp(some) <= 1


def test_no_data_and_as_many_records_as_are_asked_for():
    ledger = dpf.Ledger(epsilon=1.0)
    workload = dpf.workloads.marginals(SHAPE, 2)
    estimate = dpf.estimate_histogram(np.zeros(SHAPE, np.int64), workload, epsilon=0.5, ledger=ledger)
    for n in (0, 1, 200_000):
        assert estimate.counts(n).sum() == n
    assert estimate.to_frame().columns == ["x0", "x1", "x2", "x3", "x4"]


def test_a_fit_that_was_cut_short_says_so_and_a_terminal_hears_of_a_long_one(monkeypatch, capsys):
    pairs = dpf.workloads.marginals(SHAPE, 2)
    estimate = dpf.estimate_histogram(census(SHAPE, 40_000), pairs, epsilon=0.2, random=SeededRandom(7))
    monkeypatch.setattr(nonnegative, "_SWEEPS", 10)
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    assert not estimate.table.complete
    assert capsys.readouterr().err == "", "no terminal, no line"
    estimate = released(estimate.histogram, pairs)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert estimate.table.sweeps == 10
    assert "sweep 10 of at most 10" in capsys.readouterr().err


def test_the_distance_is_the_answers():
    estimate = measured(*ASKED["marginals k=2"], 1.0, 3, "chosen")
    apart = estimate.workload.answer(estimate.table.histogram) - estimate.answers
    assert estimate.table.distance == pytest.approx(rms(apart))
    assert released([1.0, 0.0]).table.method == "none needed"


def test_plans_that_adapt_give_records():
    people = pl.DataFrame({"age": np.random.default_rng(1).integers(0, 40, 3_000)})
    domain = dpf.Domain({"age": 40})
    plan = dpf.plan(
        people,
        by=domain.by,
        keys=domain.frame(),
        workload=dpf.workloads.identity(40),
        strategy="adaptive",
        privacy_unit="row",
        epsilon=1.0,
    )
    estimate = plan.run(dpf.Ledger(epsilon=1.0)).estimate
    assert domain.records(estimate, 500).height == 500
