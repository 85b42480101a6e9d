"""Transcripts of everything that synthesises, audited on all neighbours of tiny histograms; mutants are caught."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import dpfast as dpf
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.accountants.zcdp import largest_rho
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale
from dpfast.synthesis.fitted import boosting_privacy
from dpfast.synthesis.fitted.exact_workload import ExactWorkload
from dpfast.synthesis.histograms import trees
from dpfast.synthesis.histograms.dawa import partition_rule
from dpfast.synthesis.preparing import Task
from dpfast.testing import SeededRandom

from .transcripts import audit, loss, neighbours, replay, transcript

RELATIONS = ("add_remove", "replace")
SLACK = 1 + 1e-9
REAL = np.array([[0.3, 1.0, 0.0, 0.7], [0.1, 0.5, 1 / 3, 0.2], [1.0, 0.9, 0.8, 0.7]])
WORKLOADS = {
    "prefixes": (dpf.workloads.prefix(4), [3, 1, 4, 9]),
    "pairs": (dpf.workloads.marginals((2, 2, 2), 2), [[[3, 0], [1, 5]], [[0, 0], [2, 7]]]),
    "real": (dpf.workloads.matrix(REAL), [3, 1, 4, 2]),
}


def projected(workload, relation, **budget):
    def run(histogram):
        released = dpf.projection_mechanism(histogram, workload, neighbors=relation, **budget)
        return released.answers, released.histogram, released.noisy, released.total

    return run


def boosted(workload, relation, **given):
    given = {"samples": 3, "rounds": 4, "accuracy": 0.0} | given

    def run(histogram):
        released = dpf.boost_queries(histogram, workload, neighbors=relation, **given)
        return released.answers, released.total, released.rounds["worst"].to_numpy()

    return run


def many(histogram):
    """Return so many records that boosting's samples tell of them."""
    return 1000 * np.array(histogram)


def weighted(workload, relation, **given):
    def run(histogram):
        estimate = dpf.mwem(histogram, workload, neighbors=relation, rounds=3, **given)
        return estimate.histogram, estimate.answers

    return run


def flipped(workload, relation, **given):
    return weighted(workload, relation, selection="permute_and_flip", **given)


def measured(workload, relation, **given):
    def run(histogram):
        released = dpf.matrix_mechanism(histogram, workload, neighbors=relation, **given)
        return released.answers, released.histogram

    return run


def clustered(workload, relation, **given):
    def run(histogram):
        estimate = dpf.ahp(histogram, workload if len(workload.shape) < 3 else None, neighbors=relation, **given)
        return estimate.histogram, np.zeros(0)

    return run


def grown(workload, relation, **given):
    def run(histogram):
        estimate = dpf.adaptive_hierarchy(histogram, workload, neighbors=relation, **given)
        return estimate.histogram, estimate.answers

    return run


def chosen(workload, relation, **given):
    def run(histogram):
        estimate = dpf.estimate_histogram(histogram, workload, neighbors=relation, **given)
        return estimate.histogram, estimate.answers

    return run


RUNS = {
    "projection": projected,
    "boosting": boosted,
    "mwem": weighted,
    "mwem by permute-and-flip": flipped,
    "matrix mechanism": measured,
    "AHP": clustered,
    "adaptive hierarchy": grown,
    "estimate": chosen,
}


#: With few records these tell nothing of them.
MANY = ("boosting", "adaptive hierarchy", "estimate")

#: Every mechanism on prefixes, and the first three on all workloads; the rest with --long.
CASES = [
    pytest.param(mechanism, name, marks=[] if name == "prefixes" or place < 3 else pytest.mark.long)
    for place, mechanism in enumerate(RUNS)
    for name in WORKLOADS
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("mechanism", "name"), CASES)
def test_no_transcript_costs_more_than_epsilon(mechanism, name, relation, monkeypatch, seed):
    workload, histogram = WORKLOADS[name]
    histogram = many(histogram) if mechanism in MANY else histogram
    losses = audit(monkeypatch, RUNS[mechanism](workload, relation, epsilon=0.8), histogram, relation, seed)
    worst = max(one.pure for one in losses)
    print(f"{worst:.4f} of 0.8")
    assert worst <= 0.8 * SLACK
    assert worst > 0
    for one in losses:
        assert all(sup <= claim * SLACK for (sup, _), claim in zip(one.selections, one.claims, strict=True))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("mechanism", "name"), CASES)
def test_no_transcript_costs_more_than_rho(mechanism, name, relation, monkeypatch, seed):
    workload, histogram = WORKLOADS[name]
    histogram = many(histogram) if mechanism in MANY else histogram
    losses = audit(monkeypatch, RUNS[mechanism](workload, relation, rho=0.1), histogram, relation, seed)
    worst = max(one.rho for one in losses)
    print(f"{worst:.5f} of 0.1")
    assert worst <= 0.1 * SLACK
    assert worst > 0


def _few_heavy_cells():
    cells = np.zeros((12, 10, 8, 6), np.int64)
    cells[0] = 1
    cells[3, 4, 5, 2] = cells[8, 1, 0, 3] = 5_000
    return cells


#: By the method that is chosen for it: a table, how many attributes are asked for together, and epsilon.
TABLES = {
    "clusters of cells": (_few_heavy_cells(), 2, 0.03),
    "marginals without noise": (np.full((4, 5, 6), 50), 1, 0.5),
    "number of records": (np.eye(5, dtype=np.int64)[:, :, None] * np.ones(6, np.int64), 1, 0.01),
    "adaptive hierarchy": (np.full((4, 5, 6), 5), 2, 0.05),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", TABLES)
def test_no_choice_on_tables_of_three_axes_or_more_costs_more(method, relation, monkeypatch, seed):
    """By epsilon, and by a rho with about the same noise; a tree by rho alone, as for epsilon it withholds counts."""
    table, together, epsilon = TABLES[method]
    workload, chosen_methods = dpf.workloads.marginals(table.shape, together), set()
    expected = relation == "add_remove" or method != "number of records"  # which is public if records are replaced
    for own_seed, (kind, amount) in itertools.product(
        range(seed, seed + 4), (("epsilon", epsilon), ("rho", epsilon**2 / 4))
    ):
        if own_seed > seed and (method in chosen_methods or not expected):
            break  # a look is noisy: one of sixty takes another method, and then another seed has its turn

        def run(histogram, given=(kind, amount), own_seed=own_seed):
            own = {given[0]: given[1], "neighbors": relation, "random": SeededRandom(own_seed)}
            estimate = dpf.estimate_histogram(histogram, workload, **own)
            chosen_methods.add(estimate.rounds["method"][0])
            return estimate.histogram, estimate.answers

        losses = audit(monkeypatch, run, table, relation, own_seed)
        if kind == "rho" or method != "adaptive hierarchy":
            worst = max(one.pure if kind == "epsilon" else one.rho for one in losses)
            assert 0 < worst <= amount * SLACK
    assert method in chosen_methods or not expected


def test_laplace_noise_by_exact_composition_costs_no_more(monkeypatch, seed):
    workload, histogram = WORKLOADS["prefixes"]
    run = projected(workload, "add_remove", mechanism="laplace", epsilon=0.8, delta=1e-5)
    worst = max(audit(monkeypatch, run, histogram, "add_remove", seed), key=lambda one: one.pure)
    assert 0.7 < PLD(worst.events).epsilon(1e-5) <= 0.8


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_transcript_costs_more_than_epsilon_and_delta(name, relation, monkeypatch, seed):
    workload, histogram = WORKLOADS[name]
    both = {"epsilon": 0.8, "delta": 1e-5}
    gaussians = audit(
        monkeypatch, projected(workload, relation, mechanism="gaussian", **both), histogram, relation, seed
    )
    worst = math.sqrt(max(one.gaussian for one in gaussians))
    assert analytic_gaussian_scale(worst, 0.8, 1e-5 * SLACK) <= 1.0
    mixed = audit(monkeypatch, boosted(workload, relation, **both), many(histogram), relation, seed)
    assert max(one.rho for one in mixed) <= largest_rho(0.8, 1e-5) / UNITS_PER_ONE * SLACK


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_worst_neighbour_of_prefixes_loses_all_of_epsilon(relation, monkeypatch, seed):
    """The first cell is in all prefixes, and in the total: wider noise would be safe, but less than what is claimed."""
    workload, histogram = WORKLOADS["prefixes"]
    losses = audit(monkeypatch, projected(workload, "add_remove", epsilon=0.8), histogram, "add_remove", seed)
    assert max(one.pure for one in losses) == pytest.approx(0.8, rel=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
def test_nothing_goes_around_the_noise_of_dawa(relation, monkeypatch, seed):
    """Its partition is a noisy minimum, whose costs are no release; but all it does must follow from them."""

    def run(histogram):
        estimate = dpf.dawa(histogram, WORKLOADS["prefixes"][0], epsilon=0.8, neighbors=relation)
        return estimate.histogram, estimate.answers

    losses = audit(monkeypatch, run, WORKLOADS["prefixes"][1], relation, seed)
    for one in losses:
        single, longer = one.secret
        assert single == 0.0, "the deviation of a single cell is 0"
        assert 2 * longer <= partition_rule(WORKLOADS["prefixes"][0])[0] / 1000 * 0.8 * SLACK


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_counts_of_dawas_buckets_cost_what_its_partition_leaves(relation, monkeypatch, seed):
    """The first two steps are the noise on costs: its proof is tested on its own, in test_dawa."""

    def run(histogram):
        return (dpf.dawa(histogram, WORKLOADS["prefixes"][0], epsilon=0.8, neighbors=relation).histogram,)

    histogram = many(WORKLOADS["prefixes"][1])  # far enough apart for buckets of their own
    _, steps = transcript(monkeypatch, run, histogram, seed)
    moved = 1 if relation == "add_remove" else 2
    share = partition_rule(WORKLOADS["prefixes"][0])[0] / 1000
    assert [step.name for step in steps[:2]] == ["lowered", "lowered"]
    assert steps[0].parameters["scale"] >= moved / (share * 0.8)
    assert steps[1].parameters["scale"] >= 2 * moved / (share * 0.8)
    worst = 0.0
    for neighbour in neighbours(histogram, relation, seed):
        _, again = replay(monkeypatch, run, neighbour, steps)
        assert (steps[0].values == again[0].values).all()
        assert np.abs(steps[1].values - again[1].values).max() <= moved
        worst = max(worst, loss(steps[2:], again[2:]).pure)
    assert 0 < worst <= (1 - share) * 0.8 * SLACK


@pytest.mark.parametrize(("each", "share"), [(2, 0.4), (2_000, 0.1)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_what_dawa_spends_for_wide_queries(each, share, relation, monkeypatch, seed):
    """The number of records, if it is not public, chooses the partition's share; the counts cost what both leave."""
    workload, histogram = dpf.workloads.prefix(64), np.full(64, each)

    def run(cells):
        estimate = dpf.dawa(cells, workload, epsilon=0.8, neighbors=relation)
        return estimate.histogram, estimate.answers

    _, steps = transcript(monkeypatch, run, histogram, seed)
    moved, look = (1, 0.01) if relation == "add_remove" else (2, 0.0)
    first = 1 if look else 0
    names = [step.name for step in steps]
    assert names == ["laplace"] * first + ["lowered", "lowered"] + ["laplace"] * (len(names) - first - 2)
    assert steps[first].parameters["scale"] == pytest.approx(moved / (share * 0.8), rel=1e-9)
    assert steps[first + 1].parameters["scale"] >= 2 * moved / (share * 0.8)
    worst = 0.0
    for neighbour in neighbours(histogram, relation, seed):
        _, again = replay(monkeypatch, run, neighbour, steps)
        assert loss(steps[:first], again[:first]).pure <= look * 0.8 * SLACK
        assert np.abs(steps[first + 1].values - again[first + 1].values).max() <= moved
        worst = max(worst, loss(steps[first + 2 :], again[first + 2 :]).pure)
    if relation == "add_remove":  # a record that is replaced within one bucket moves no count
        assert worst > 0
    assert worst <= (1 - share - look) * 0.8 * SLACK


@pytest.mark.parametrize("mechanism", ["AHP", "adaptive hierarchy"])
def test_a_replaced_record_that_moves_one_count_only_is_caught(mechanism, monkeypatch, seed):
    """A mutant: noise for one cell that changes, where under "replace" two do."""
    workload, histogram = WORKLOADS["prefixes"]
    monkeypatch.setattr(Task, "moved", 1)
    losses = audit(monkeypatch, RUNS[mechanism](workload, "replace", epsilon=0.8), many(histogram), "replace", seed)
    assert max(one.pure for one in losses) > 1.5 * 0.8
    losses = audit(monkeypatch, RUNS[mechanism](workload, "replace", rho=0.1), many(histogram), "replace", seed)
    assert max(one.rho for one in losses) > 1.5 * 0.1


def test_boxes_that_are_measured_with_more_than_is_left_are_caught(monkeypatch, seed):
    """A mutant of the adaptive hierarchy that forgets what its boxes have spent when they are split.

    By rho: for epsilon some noisy counts are withheld for good, which this auditor would count as published. What those
    cost is in test_adaptive_hierarchy, and that nothing depends on them.
    """
    workload, histogram = WORKLOADS["prefixes"]
    split = trees.Tree._split

    def forgetful(self, level, *rest):
        below, *known = split(self, level, *rest)
        below.left[:] = 900
        return below, *known

    monkeypatch.setattr(trees.Tree, "_split", forgetful)
    monkeypatch.setattr(trees, "_fan_out", lambda boxes: (np.full((len(boxes), 1), 2), np.full(len(boxes), 2.0)))
    losses = audit(monkeypatch, grown(workload, "add_remove", rho=0.1), many(histogram), "add_remove", seed)
    assert max(one.rho for one in losses) > 1.1 * 0.1


@pytest.mark.parametrize("relation", RELATIONS)
def test_nothing_goes_around_the_noise_of_a_tree_of_several_levels(relation, monkeypatch, seed):
    """All that a tree publishes follows from noisy counts, those that it withholds among them."""
    cells = np.random.default_rng(seed).poisson(np.repeat([0, 40, 4, 900, 0, 1], 80))
    cells[[7, 100, 470]] += 3_000

    def run(histogram):
        estimate = dpf.adaptive_hierarchy(histogram, epsilon=0.8, neighbors=relation, random=SeededRandom(seed))
        assert estimate.rounds.height > 2
        return (estimate.histogram,)

    assert audit(monkeypatch, run, cells, relation, seed)


def halved(change):
    return Sensitivity.of_answers(change.answers, -(-change.largest // 2), -(-change.l2_squared // 4))


def test_half_the_sensitivity_is_caught(monkeypatch, seed):
    """Mutants: all answers of real queries move by half of what they do."""
    workload, histogram = WORKLOADS["real"]
    whole = ExactWorkload.sensitivity
    monkeypatch.setattr(ExactWorkload, "sensitivity", lambda self, relation: halved(whole(self, relation)))
    known = {"total": 10}
    losses = audit(monkeypatch, projected(workload, "add_remove", epsilon=0.8, **known), histogram, "add_remove", seed)
    assert max(one.pure for one in losses) > 1.1 * 0.8
    losses = audit(monkeypatch, projected(workload, "add_remove", rho=0.1, **known), histogram, "add_remove", seed)
    assert max(one.rho for one in losses) > 2 * 0.1
    run = boosted(workload, "add_remove", rho=0.1, samples=20, share=0.1, total=10_000)
    assert max(one.rho for one in audit(monkeypatch, run, many(histogram), "add_remove", seed)) > 1.1 * 0.1


def test_a_total_that_is_not_paid_for_is_caught(monkeypatch, seed):
    workload, histogram = WORKLOADS["prefixes"]
    monkeypatch.setattr(Sensitivity, "and_total", lambda change, each: change)
    losses = audit(monkeypatch, projected(workload, "add_remove", epsilon=0.8), histogram, "add_remove", seed)
    assert max(one.pure for one in losses) > 0.8 * 1.2


def test_a_total_read_from_the_histogram_is_caught(monkeypatch, seed):
    """A mutant that projects onto the true number of records under add_remove: no step shows it, the release does."""
    workload, histogram = WORKLOADS["prefixes"]

    def leaking(counts):
        released = dpf.projection_mechanism(counts, workload, epsilon=0.8)
        return (dpf.project_answers(released.noisy, workload, total=float(counts.sum())).answers,)

    with pytest.raises(AssertionError, match="depends on more"):
        audit(monkeypatch, leaking, histogram, "add_remove", seed)


def test_the_printed_constant_of_theorem_6_6_is_caught(monkeypatch, seed):
    """Noise of sqrt(k ln(1/delta)) / epsilon for k = 263 samples: 1.13 times the epsilon; the corollary's is fine."""
    workload = dpf.workloads.prefix(1)
    given = {"epsilon": 0.99, "delta": 1e-6, "calibration": "book", "mechanism": "laplace", "share": 1e-3}
    run = boosted(workload, "add_remove", rounds=1, samples=263, total=500, **given)
    right = audit(monkeypatch, run, [500], "add_remove", seed)
    assert PLD(right[0].events).epsilon(1e-6) <= 0.99
    mended = boosting_privacy.noise_of_epsilon

    def printed(change, mechanism, epsilon, delta, calibration):
        noise = mended(change, mechanism, epsilon, delta, calibration)
        return replace(noise, each=replace(noise.each, scale=noise.scale / math.sqrt(8)))

    monkeypatch.setattr(boosting_privacy, "noise_of_epsilon", printed)
    wrong = audit(monkeypatch, run, [500], "add_remove", seed)
    assert PLD(wrong[0].events).epsilon(1e-6) > 1.1 * 0.99


def test_scores_said_to_move_half_as_far_are_caught(monkeypatch, seed):
    """MWEM's selections would cost more than the epsilon that they are called with.

    The first prefix is far above the uniform estimate, the second below it: one more in the first cell makes the one
    error larger and the other smaller.
    """
    workload, histogram = WORKLOADS["prefixes"][0], [900, 0, 1000, 100]
    run = weighted(workload, "add_remove", epsilon=0.8, total=2000)
    assert max(_excess(audit(monkeypatch, run, histogram, "add_remove", seed))) == pytest.approx(1.0, abs=1e-6)
    whole = ExactWorkload.score_sensitivity
    monkeypatch.setattr(ExactWorkload, "score_sensitivity", lambda self, relation: whole(self, relation) / 2)
    assert max(_excess(audit(monkeypatch, run, histogram, "add_remove", seed))) > 1.9


def _excess(losses):
    """Return how many times its epsilon each selection costs."""
    return [sup / claim for one in losses for (sup, _), claim in zip(one.selections, one.claims, strict=True)]


@pytest.mark.statistical
def test_verdicts_that_are_forgotten_are_caught(monkeypatch, seed):
    """Boosting whose samples cost in every round what they do in the second: by the fourth they cost thrice that.

    False-failure rate 1e-8: one transcript of 50 (32 of 1,500) does not show it, and one of five is enough.
    """
    workload, histogram = WORKLOADS["prefixes"]
    run = boosted(workload, "add_remove", epsilon=0.8, samples=1, total=17_000)
    worst = 0.0
    for number in range(5):
        honest = audit(monkeypatch, run, many(histogram), "add_remove", seed + number)
        claims = honest[0].claims
        assert claims[1:] == pytest.approx([claims[1] * known for known in (1, 2, 3)])
        worst = max(worst, *(sup for one in honest for sup, _ in one.selections))
        if worst > 1.5 * claims[1]:
            break
    assert worst > 1.5 * claims[1]
