"""Counts out of range on routes with a ledger: no error depends on them, and neighbours at the ends stay neighbours.

There a count is moved to the nearest that is allowed. If one of two neighbours has a count out of range by one, only
the other cell of the two that a replaced record changes is seen to change: so the sum of what is left is not public,
and an answer moves by a whole coefficient, not by the difference of two.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.synthesis.fitted.exact_workload import ExactWorkload
from dpfast.workloads.histograms import clamped, counted, records

from .test_privacy import WORKLOADS, neighbours
from .transcripts import loss, replay, transcript

POSITIVE = dpf.workloads.matrix(np.array([[0.9, 1.0, 0.95, 0.92], [1.0, 1.0, 1.0, 1.0], [0.5, 0.75, 0.5, 0.5]]))
ALL_WORKLOADS = WORKLOADS | {
    "real and positive": POSITIVE,
    "signed and shifted": dpf.workloads.matrix(-POSITIVE.rows(0, 3)),
}


def ends(workload, largest, generator):
    """Give histograms with counts just below, at and beyond either end."""
    for _ in range(3):
        cells = generator.integers(1, 30, workload.cells)
        some = generator.permutation(workload.cells)[:2]
        cells[some] = generator.choice([-1, 0, largest, largest + 1], 2)
        yield cells


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("name", ALL_WORKLOADS)
def test_clamped_neighbours_are_no_further_apart_than_claimed(name, relation, seed):
    generator = np.random.default_rng(seed)
    workload = ALL_WORKLOADS[name]
    exact = ExactWorkload(workload)
    change, group_sensitivity = exact.sensitivity(relation), exact.group_sensitivity(relation)
    for cells in ends(workload, exact.largest_scored, generator):
        own = exact.answers(clamped(cells, exact.largest_scored, clamp=True))
        estimates = generator.normal(15.0, 12.0, len(workload))
        scores = exact.scores(own, estimates, 3.0)
        for step in neighbours(workload.cells, relation):
            moved = exact.answers(clamped(cells + step, exact.largest_scored, clamp=True))
            assert np.add.reduceat(np.abs(moved - own), exact.offsets[:-1]).max() <= group_sensitivity.l1
            assert np.add.reduceat((moved - own) ** 2, exact.offsets[:-1]).max() <= group_sensitivity.l2_squared
            assert np.abs(exact.scores(moved, estimates, 3.0) - scores).max() <= exact.score_sensitivity(relation)
    for cells in ends(workload, exact.largest_count, generator):
        own = exact.answers(clamped(cells, exact.largest_count, clamp=True))
        for step in neighbours(workload.cells, relation):
            apart = np.abs(exact.answers(clamped(cells + step, exact.largest_count, clamp=True)) - own)
            assert np.count_nonzero(apart) <= change.answers
            assert apart.max() <= change.largest
            assert sum(int(one) ** 2 for one in apart) <= change.l2_squared


def test_the_number_of_records_is_counted_before_counts_are_moved():
    assert records(np.array([-1, 5, 0])) == 4
    assert records(np.array([2**63 - 1, 2**63 - 1, -3])) == 2**64 - 5
    assert records(np.array([2**64 - 1, 2], np.uint64)) == 2**64 + 1
    assert records(np.array([[100, 100], [100, -128]], np.int8)) == 172


def test_the_type_of_a_list_says_nothing_of_its_counts():
    """NumPy makes floats or objects of a list with a number of 2**63 or more: that is no error before the charge."""
    for largest in (2**63 - 1, 2**63, 2**64, -(2**63) - 1, 2**100):
        for given in ([largest, 0, 5, 7], (largest, 0, 5, 7), [[largest, 0], [5, 7]]):
            assert counted(given, np.shape(given)).tolist() == [min(max(largest, -(2**63)), 2**63 - 1), 0, 5, 7]
            assert records(given) == largest + 12
        ledger = dpf.Ledger(epsilon=1)
        dpf.mwem([largest, 0, 5, 7], PREFIXES, epsilon=1.0, ledger=ledger)
        assert ledger.spent.epsilon == 1.0
    for given in ([1.5, 0, 5, 7], [2.0**63, 0, 5, 7], [2**63, 0.5, 5, 7]):
        with pytest.raises(ParameterError, match="of integers, but was of type float64"):
            counted(given, (4,))


def charged(release):
    """Return what is released with a ledger, on which no error may depend on counts."""

    def run(histogram):
        estimate = release(histogram, dpf.Ledger(epsilon=1.0))
        return [np.asarray(part) for part in (estimate.answers, getattr(estimate, "total", 0.0))]

    return run


PREFIXES = dpf.workloads.prefix(4)
RELEASES = {
    "mwem": lambda histogram, **given: dpf.mwem(histogram, PREFIXES, epsilon=0.8, rounds=3, **given),
    "mwem, real": lambda histogram, **given: dpf.mwem(histogram, POSITIVE, epsilon=0.8, rounds=2, **given),
    "projection": lambda histogram, **given: dpf.projection_mechanism(histogram, PREFIXES, epsilon=0.8, **given),
    "projection, real": lambda histogram, **given: dpf.projection_mechanism(histogram, POSITIVE, epsilon=0.8, **given),
    "boosting": lambda histogram, **given: dpf.boost_queries(
        histogram, PREFIXES, epsilon=0.8, rounds=3, samples=2, accuracy=0.0, **given
    ),
    "boosting, real": lambda histogram, **given: dpf.boost_queries(
        histogram, POSITIVE, epsilon=0.8, rounds=3, samples=2, accuracy=0.0, **given
    ),
    "adaptive hierarchy": lambda histogram, **given: dpf.adaptive_hierarchy(histogram, PREFIXES, epsilon=0.8, **given),
    "estimate": lambda histogram, **given: dpf.estimate_histogram(histogram, None, epsilon=0.8, **given),
    "AHP": lambda histogram, **given: dpf.ahp(histogram, None, epsilon=0.8, **given),
}
LARGEST = {"mwem": 2**50, "mwem, real": 2**38, "projection, real": 2**40, "boosting, real": 2**40}


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("end", ["lower", "upper"])
def test_transcripts_of_neighbours_at_the_ends_cost_epsilon_and_show_nothing_else(name, end, monkeypatch, seed):
    """A release of the sum of counts in range, which differs between these two, fails here."""
    largest = LARGEST.get(name, 2**60)
    outside, inside = (-1, 0) if end == "lower" else (largest, largest + 1)
    one, other = np.array([outside, 7, 900, 20]), np.array([inside, 6, 900, 20])
    assert one.sum() == other.sum()
    run = charged(lambda histogram, ledger: RELEASES[name](histogram, neighbors="replace", ledger=ledger))
    with monkeypatch.context() as patch:
        # A ledger wants secure noise; the transcript draws it from the seed.
        patch.setattr("dpfast.ledger.payment.refuse_repeatable", lambda _: None)
        released, steps = transcript(monkeypatch, run, one, seed)
        again, twin = replay(monkeypatch, run, other, steps)
    for first, second in zip(released, again, strict=True):
        np.testing.assert_array_equal(first, second)
    assert loss(steps, twin).pure <= 0.8 * (1 + 1e-9)


@pytest.mark.parametrize("end", ["lower", "upper"])
def test_weights_start_from_the_public_number_of_records(end):
    """Online too: all that is public before the first query is the same for neighbours at the ends."""
    largest = 2**40 // 4
    outside, inside = (-1, 0) if end == "lower" else (largest, largest + 1)
    made = [
        dpf.PrivateMultiplicativeWeights(
            np.array(counts), epsilon=1.0, neighbors="replace", ledger=dpf.Ledger(epsilon=1.0)
        ).histogram
        for counts in ([outside, 7, 900, 20], [inside, 6, 900, 20])
    ]
    np.testing.assert_array_equal(*made)
