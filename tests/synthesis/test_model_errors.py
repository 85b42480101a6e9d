"""Intervals of a model's errors: they hold whenever the noise and the selection are within what they are within."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.budget import Budget
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.synthesis.graphical.at_once import measure_at_once
from dpfast.synthesis.graphical.errors import LastSelection, PairErrors, _sum_of_noise
from dpfast.synthesis.graphical.grouping import Axis, Grouping
from dpfast.synthesis.residuals.planning import plan_residuals
from dpfast.testing import SeededRandom

PAIRS = list(itertools.combinations(range(3), 2))


def summed(table, kept):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept)).reshape(-1)


def fitted(sizes, measured, deviation):
    held = {own: Measurement(own, values, deviation**2, deviation) for own, values in measured.items()}
    weights = TreeWeights(JunctionTree.holding(sizes, held), 1000.0, list(held.values()))
    weights.fit(200)
    return weights, held


@pytest.mark.parametrize("rare", [0.0, 60.0])
@pytest.mark.parametrize("noise", [0.0, 3.0])
@pytest.mark.parametrize("trial", range(10))
def test_the_truth_is_within_where_the_best_was_selected(trial, noise, rare):
    """Noise as large as it may be, or none; the selected set has the largest score."""
    generator = np.random.default_rng(trial)
    exact = generator.gamma(0.3, 1.0, (5, 4, 6))
    exact = np.round(exact * 1000 / exact.sum()).astype(np.int64)
    grouping = Grouping(tuple(Axis.of(*[summed(exact, (a,)).astype(float)] * 2, rare) for a in range(3)))

    def counts(held):
        return grouping.counts(held, summed(exact, held)).astype(np.float64)

    def noisy(held):
        own = counts(held)
        return own + noise * generator.choice([-1.0, 1.0], own.size) * 0.79

    before, _ = fitted(grouping.sizes, {(a,): noisy((a,)) for a in range(3)}, max(noise, 0.01))
    marginals, weights = TreeMarginals(before), dict(zip(PAIRS, (2, 3, 1), strict=True))
    scores = {
        held: weights[held] * np.maximum(np.abs(marginals.marginal(held) - counts(held)) - 2.0, 0.0).sum()
        for held in PAIRS
    }
    chosen = max(scores, key=scores.get)
    measured = {(a,): noisy((a,)) for a in range(3)} | {chosen: noisy(chosen)}
    model, held = fitted(grouping.sizes, measured, max(noise, 0.01))
    last = LastSelection(before.narrow(), weights, 3, chosen, 2.0, (measured[chosen], noise), 0.0)
    found = PairErrors(model, grouping, held, last)
    for own in [(0,), (1,), (2,), *PAIRS]:
        lower, upper, is_measured = found.interval(own)
        spread = grouping.spread(own, TreeMarginals(model).marginal(own)).reshape(-1)
        truth = np.abs(spread - summed(exact, own)).sum()
        assert is_measured == (own == chosen or set(own) <= set(chosen) or len(own) == 1)
        assert lower <= truth + 1e-9
        assert truth <= upper + 1e-9
    assert PairErrors(model, grouping, held, None).interval(next(own for own in PAIRS if own != chosen))[1] is None


def test_noise_adds_up_to_less_than_is_said(seed):
    """False failures: by Cantelli each of 9 means of 4,000 flags has a mean of 0.05 at most, and by far less in truth.

    A binomial of 4,000 with 0.05 is above 320 with probability below 1e-15.
    """
    generator = np.random.default_rng(seed)
    for cells, deviation in itertools.product((1, 8, 200), (0.3, 2.0, 50.0)):
        sums = np.abs(np.rint(generator.normal(0, deviation, (4_000, cells)))).sum(axis=1)
        rounded = np.sqrt(deviation**2 + 1 / 12)
        assert (sums > _sum_of_noise(cells, rounded, rounded, 0.05)).mean() < 0.08


@pytest.mark.parametrize("attributes", [(0, 1), (1, 2), (0,), (2,)])
def test_noise_that_cells_share_adds_up_to_less_than_is_said(attributes, seed):
    """Sets measured at once, of which everything is noise; a binomial of 400 with 0.05 is above 44 in 1e-6 of runs."""
    sizes = (2, 3, 5)
    plan = plan_residuals(sizes, PAIRS, [1.0, 2.0, 3.0], Budget("rho", 10**16), "add_remove")
    exact = {own: np.zeros(sizes[own[0]] * sizes[own[1]], np.int64) for own in PAIRS}
    grouping = Grouping(tuple(Axis.whole(size) for size in sizes))
    random, above = SeededRandom(seed), 0
    for _ in range(400):
        held, _ = measure_at_once(plan, exact, random)
        weights = TreeWeights(JunctionTree.holding(sizes, held), 1e-3, [])
        lower, upper, is_measured = PairErrors(weights, grouping, held, None).interval(attributes)
        assert is_measured
        assert upper is not None
        above += lower > 1.1e-3  # there are as many records as nothing
    assert above <= 44


def test_the_report_and_the_chart_of_a_model(tmp_path):
    generator = np.random.default_rng(5)
    first = generator.integers(0, 4, 20_000)
    codes = [first, (first + generator.integers(0, 2, first.size)) % 4, generator.integers(0, 50, first.size) // 10 * 9]
    frame = pl.DataFrame(dict(zip("abc", codes, strict=True)))
    domain = dpf.Domain({"a": 4, "b": 4, "c": 100})
    ledger = dpf.Ledger(epsilon=8.0, delta=1e-9)
    made = dpf.synthesize(frame, domain, epsilon=8.0, delta=1e-9, rounds=3, ledger=ledger)
    errors = made.estimate.errors()
    assert errors["columns"].to_list() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert ((errors["lower"] >= 0) & (errors["lower"] <= errors["upper"]) & (errors["upper"] <= 1)).all()
    assert errors.filter("measured")["upper"].min() < 0.1
    assert made.estimate.shape == (4, 4, 100)
    assert made.estimate.marginal(["c", "a"]).shape == (100, 4)
    assert made.estimate.cells < 4 * 4 + 2 * 4 * 100, "rare values are one"
    figure = made.estimate.plot(tmp_path / "counts.svg")
    assert (tmp_path / "counts.svg").read_text().startswith("<svg")
    assert figure.to_dict()["layer"][0]["encoding"]["x"]["axis"]["title"] == "noisy count"
    assert ledger.spent.epsilon == 8.0
