"""The adaptive hierarchy: boxes, what a path of them costs, and how measurements are brought together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import DataError, ParameterError
from dpfast.kernels.histograms.siblings import fit_siblings, shrink_siblings
from dpfast.mechanisms.noise.gradual_release import LARGEST_SCALE
from dpfast.synthesis.histograms.boxes import Boxes, PrefixSums
from dpfast.synthesis.histograms.levels import Level, settle
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.histograms.trees import Tree
from dpfast.synthesis.preparing import PARTS
from dpfast.testing import SeededRandom

shapes = st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)


@given(shapes, st.data())
@settings(deadline=None, max_examples=60)
def test_boxes_split_into_disjoint_ones_that_cover_them(shape, data):
    boxes = Boxes.whole(shape)
    for _ in range(2):
        sides = boxes.sides
        parts = np.array([[data.draw(st.integers(1, int(side))) for side in box] for box in sides], np.int64)
        below = boxes.split(parts)
        assert len(below) == parts.prod(axis=1).sum()
        sums = np.add.reduceat(below.sizes, np.concatenate([[0], np.cumsum(parts.prod(axis=1))[:-1]]))
        assert sums.tolist() == boxes.sizes.tolist(), "the parts of a box stand together"
        boxes = below
    covered = np.zeros(shape, np.int64)
    for lower, upper in zip(boxes.lower, boxes.upper, strict=True):
        covered[tuple(map(slice, lower, upper))] += 1
    assert (covered == 1).all()
    values = np.arange(len(boxes)) + 1.0
    spread = boxes.spread(values, shape)
    for lower, upper, value in zip(boxes.lower, boxes.upper, values, strict=True):
        within = spread[tuple(map(slice, lower, upper))]
        assert np.allclose(within, value / within.size)


@given(shapes, st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_prefix_sums_count_boxes_exactly(shape, seed):
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 2**55, shape)
    corners = np.sort(np.stack([generator.integers(0, np.array(shape) + 1, (9, len(shape))) for _ in range(2)]), axis=0)
    boxes = Boxes(corners[0], corners[1])
    expected = [int(counts[tuple(map(slice, *corner))].sum()) for corner in zip(*corners, strict=True)]
    assert PrefixSums(counts).count(boxes).tolist() == expected


def recorded(monkeypatch, counts, **arguments):
    """Run, and return (its cells as a mask, thousandths, count, scale) of all that was measured.

    What was looked at with coarse noise first, and measured with finer noise of which the coarse was made, stands there
    once, with the thousandths and the scale of the finer.
    """
    measured, exact, places = [], [], {}
    measure, look, again, add = Tree._measure, Tree._look, Tree._measure_again, Noise.add

    def adding(self, values, parts, prepared):
        exact.append((values, parts))
        return add(self, values, parts, prepared)

    def masked(boxes, runs, size):
        masks = np.zeros((size, *counts.shape), np.int8)
        for lower, upper, run in zip(boxes.lower, boxes.upper, runs, strict=True):
            masks[(run, *map(slice, lower, upper))] += 1
        return masks

    def measuring(self, boxes, parts, starts=None):
        result = measure(self, boxes, parts, starts)
        runs = (
            np.arange(len(boxes))
            if starts is None
            else np.repeat(np.arange(starts.size), np.diff(np.append(starts, len(boxes))))
        )
        masks = masked(boxes, runs, parts.size)
        measured.extend(zip(masks, parts.tolist(), exact.pop()[0].tolist(), self._noise.scales(parts), strict=True))
        return result

    def looking(self, boxes, parts, left):
        result = look(self, boxes, parts, left)
        if self._noise.gradual:
            values, drawn_for = exact.pop()
            assert (drawn_for == left).all(), "what is withheld has the noise that all of the budget buys"
            for place, lower, upper in zip(itertools.count(len(measured)), boxes.lower, boxes.upper, strict=False):
                places[*lower.tolist(), *upper.tolist()] = place
            masks = masked(boxes, np.arange(len(boxes)), len(boxes))
            measured.extend(zip(masks, parts.tolist(), values.tolist(), self._noise.scales(parts), strict=True))
        return result

    def measuring_again(self, level, which, seen):
        total = seen.spent[which] + level.left[which]
        boxes = level.boxes.take(which)
        again(self, level, which, seen)
        if seen.withheld is not None:
            scales = self._noise.scales(total).tolist()
            for lower, upper, parts, scale in zip(boxes.lower, boxes.upper, total.tolist(), scales, strict=True):
                place = places[*lower.tolist(), *upper.tolist()]
                measured[place] = (measured[place][0], parts, measured[place][2], scale)

    monkeypatch.setattr(Tree, "_measure", measuring)
    monkeypatch.setattr(Tree, "_look", looking)
    monkeypatch.setattr(Tree, "_measure_again", measuring_again)
    monkeypatch.setattr(Noise, "add", adding)
    estimate = dpf.adaptive_hierarchy(counts, **arguments)
    assert not exact, "all noise is added in two places"
    return estimate, measured


def spent_on_cells(measured, shape) -> np.ndarray:
    return sum((parts * mask.astype(np.int64) for mask, parts, _, _ in measured), np.zeros(shape, np.int64))


def histograms(seed):
    generator = np.random.default_rng(seed)
    yield generator.poisson(50, 300)
    yield np.where(generator.random(1000) < 0.02, generator.poisson(5_000, 1000), 0)
    yield np.zeros(17, np.int64)
    yield generator.poisson(3, (40, 33))
    yield np.where(generator.random((64, 64)) < 0.01, 10**6, 0)
    yield generator.poisson(900, (9, 8, 7))
    yield np.array([10**9])


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [{"epsilon": 0.7}, {"rho": 0.02}])
def test_what_holds_a_cell_costs_the_whole_budget_at_most(seed, monkeypatch, neighbors, budget):
    """The privacy of a path: for every cell the amounts of all boxes around it add up to the whole, and no more."""
    for counts in histograms(seed):
        with monkeypatch.context() as patched:
            given_ = dict(budget, neighbors=neighbors, random=SeededRandom(seed))
            estimate, measured = recorded(patched, counts, **given_)
        assert (spent_on_cells(measured, counts.shape) == PARTS).all(), "no cell's budget is left over either"
        assert (spent_on_cells([*measured, measured[-1]], counts.shape) > PARTS).any(), "the mutant: a box once more"
        for mask, _, exact, _ in measured:
            assert mask.max() == 1, "no cell is twice in what is measured at once"
            assert exact == counts[mask == 1].sum()
        assert estimate.histogram.shape == counts.shape
        assert estimate.histogram.min() >= 0


def with_and_without(monkeypatch, counts, seed, **arguments):
    """Return an estimate; the same with no number in place of finer counts that nobody paid for; and how many."""
    look, again, withheld = Tree._look, Tree._measure_again, 0
    paid: set[tuple[int, ...]] = set()

    def measuring_again(self, level, which, seen):
        if seen.withheld is not None:
            boxes = level.boxes.take(which)
            paid.update(
                (*lower, *upper) for lower, upper in zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)
            )
        again(self, level, which, seen)

    def looking(self, boxes, parts, left):
        nonlocal withheld
        *result, finest = look(self, boxes, parts, left)
        for place, (lower, upper) in enumerate(zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)):
            if (*lower, *upper) not in paid:
                withheld += 1
                finest[place] = np.nan
        return *result, finest

    with monkeypatch.context() as patched:
        patched.setattr(Tree, "_measure_again", measuring_again)
        expected = dpf.adaptive_hierarchy(counts, random=SeededRandom(seed), **arguments).histogram
    with monkeypatch.context() as patched:
        patched.setattr(Tree, "_look", looking)
        found = dpf.adaptive_hierarchy(counts, random=SeededRandom(seed), **arguments).histogram
    return expected, found, withheld


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_nothing_depends_on_what_nobody_has_paid_for(seed, monkeypatch, neighbors):
    """Finer counts of boxes that are split after all: without them the estimate is the same."""
    several = 0
    for counts in histograms(seed):
        expected, found, withheld = with_and_without(monkeypatch, counts, seed, epsilon=0.7, neighbors=neighbors)
        assert (found == expected).all()
        several += withheld
    assert several > 0


def test_a_tree_that_peeks_at_what_nobody_has_paid_for_is_caught(seed, monkeypatch):
    """A mutant: what is split is decided by the finer counts."""
    split = Tree._split

    def peeking(self, *arguments):
        below, seen = split(self, *arguments)
        return below, seen if seen.withheld is None else replace(seen, guess=seen.withheld)

    monkeypatch.setattr(Tree, "_split", peeking)
    counts = np.random.default_rng(seed).poisson(500, 300)
    expected, found, _ = with_and_without(monkeypatch, counts, seed, epsilon=0.7)
    assert not np.array_equal(found, expected)


def test_noise_too_wide_to_be_discrete_is_measured_twice_instead(seed, monkeypatch):
    """Scales of 2**25 and more are rounded to a coarser grid, which gradual release does not cover."""
    counts = np.random.default_rng(seed).poisson(10**9, 64)
    monkeypatch.setattr("dpfast.synthesis.histograms.tree_noise.coarsened", None)
    for epsilon in (2e-5, 1e-9):
        with monkeypatch.context() as patched:
            _, measured = recorded(patched, counts, epsilon=epsilon, random=SeededRandom(seed))
        assert (spent_on_cells(measured, counts.shape) == PARTS).all()
    with pytest.raises(TypeError):
        dpf.adaptive_hierarchy(counts, epsilon=1e3 / LARGEST_SCALE * 1.01, random=SeededRandom(seed))


@pytest.mark.parametrize(("neighbors", "moved"), [("add_remove", 1), ("replace", 2)])
def test_scales_are_what_the_thousandths_buy(seed, monkeypatch, neighbors, moved):
    """Soundness rule 10, in rationals: along every path the losses of both neighbours' cells make at most epsilon."""
    counts = np.repeat([0, 700, 3], [30, 40, 58])
    _, measured = recorded(monkeypatch, counts, epsilon=0.1, neighbors=neighbors, random=SeededRandom(seed))
    for cell in range(counts.size):
        loss = sum(1 / Fraction(scale) for mask, _, _, scale in measured if mask[cell])
        assert Fraction(99, 1000) < loss * moved <= Fraction(1, 10)


def test_scales_of_rho_are_what_the_thousandths_buy(seed, monkeypatch):
    _, measured = recorded(monkeypatch, np.full(64, 500), rho=0.1, neighbors="replace", random=SeededRandom(seed))
    for cell in range(64):
        around = [scale for mask, _, _, scale in measured if mask[cell]]
        cost = sum(1 / (2 * Fraction(scale) ** 2) for scale in around)
        assert Fraction(99, 1000) < 2 * cost <= Fraction(1, 10)


def test_the_number_of_records_is_public_where_records_are_replaced(seed):
    counts = np.random.default_rng(seed).poisson(20, 256)
    estimate = dpf.adaptive_hierarchy(counts, epsilon=0.5, neighbors="replace", random=SeededRandom(seed))
    assert np.isclose(estimate.histogram.sum(), counts.sum())


families = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(families, st.integers(0, 2**32))
@settings(deadline=None, max_examples=80)
def test_fitted_families_are_the_nearest_that_have_their_sum(sizes, seed):
    """The conditions of optimality: the same multiplier for all that are above 0, and no larger one for the rest."""
    generator = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values, variances = generator.normal(0, 5, offsets[-1]), generator.uniform(0.1, 3, offsets[-1])
    totals = generator.uniform(-5, 20, len(sizes))
    fitted = np.empty(offsets[-1])
    fit_siblings(values, variances, totals, offsets, fitted)
    for family, (first, last) in enumerate(itertools.pairwise(offsets)):
        part = slice(first, last)
        assert np.isclose(fitted[part].sum(), max(totals[family], 0.0))
        if totals[family] > 0:
            multiplier = (fitted[part] - values[part]) / variances[part]
            shared = multiplier[fitted[part] > 0]
            assert np.allclose(shared, shared[0])
            assert (multiplier >= shared[0] - 1e-9).all()
        else:
            assert not fitted[part].any()


def naive_shrunk(values, variance, tail, box, spread, union, union_variance) -> tuple[np.ndarray, np.ndarray]:
    """Shrink one family, and say what moved: of all ways of keeping the largest, the least estimate of the error."""
    size = values.size
    if size <= 3:
        return values, np.zeros(size, bool)

    def off(total, members):
        return variance * (total + union - box) ** 2 / (spread + union_variance + members * variance)

    order, everything = np.argsort(-values), off(values.sum(), size)
    options = [(2 * variance * size + everything, values, np.zeros(size, bool))]
    for high in range(size):
        rest = order[high:]
        searched = np.log(size / high) if high else 0.0
        price = 2 * variance * high * (1 + searched + tail * searched**2)
        moved = np.isin(np.arange(size), rest)
        mean = values[rest].mean()
        about_mean = ((values[rest] - mean) ** 2).sum() + price + 2 * variance + everything
        if mean > 0 or not high:
            options.append((about_mean, np.where(moved, mean, values), moved))
        if high:
            about_zero = (values[rest] ** 2).sum() + price + off(values[order[:high]].sum(), high)
            options.append((about_zero, np.where(moved, 0.0, values), moved))
    return min(options, key=lambda option: option[0])[1:]


@pytest.mark.parametrize("tail", [0.0, 0.25])
@given(families, st.integers(0, 2**32))
@settings(deadline=None, max_examples=80)
def test_families_are_drawn_together_by_the_smaller_estimate_of_the_error(tail, sizes, seed):
    generator = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = generator.normal(0, 1, offsets[-1]) + 20 * (generator.random(offsets[-1]) < 0.2)
    variances = np.repeat(generator.uniform(0.2, 2, len(sizes)), sizes)
    unions = generator.random(len(sizes)) < 0.5
    boxes = np.add.reduceat(values, offsets[:-1]) + generator.normal(0, 3, len(sizes))
    above = generator.choice([0.0, 0.5, 5.0], len(sizes))
    shrunk, moved = np.empty(values.size), np.empty(values.size, bool)
    sums, spreads = np.empty((2, len(sizes)))
    shrink_siblings(values, variances, offsets, unions, boxes, above, tail, shrunk, moved, sums, spreads)
    for family, (first, last) in enumerate(itertools.pairwise(offsets)):
        inner = last - unions[family]
        union, union_variance = (values[inner], variances[first]) if unions[family] else (0.0, 0.0)
        noise_alone = unions[family] and inner > first and union < np.sqrt(2 * union_variance)
        if noise_alone:
            union, union_variance = 0.0, 0.0
        expected, expected_moved = naive_shrunk(
            values[first:inner], variances[first], tail, boxes[family], above[family], union, union_variance
        )
        assert np.allclose(shrunk[first:inner], expected)
        assert (moved[first:inner] == expected_moved).all()
        variance = variances[first] * (inner - first) + union_variance
        if (expected_moved & (expected == 0)).any():
            variance -= variances[first] * expected_moved.sum()
        if unions[family]:
            assert shrunk[inner] == union
            assert not moved[inner]
        assert np.isclose(sums[family], shrunk[first:last].sum())
        assert np.isclose(spreads[family], variance)


def test_what_is_moved_fits_the_box_as_well():
    """Two of sixteen look like noise beside one that does not: whether they are depends on the box's own count."""
    values = np.zeros(16)
    values[:3] = 40.0, 2.9, 2.9
    kept = []
    for box in (40.0, 45.8):
        shrunk, moved = np.empty(16), np.empty(16, bool)
        given_ = (np.full(16, 2.0), np.array([0, 16]), np.zeros(1, bool), np.array([box]), np.full(1, 0.1), 0.25)
        shrink_siblings(values, *given_, shrunk, moved, np.empty(1), np.empty(1))
        kept.append(np.flatnonzero(~moved).tolist())
    assert kept == [[0], [0, 1, 2]]


def test_a_spike_among_empty_cells_is_found(seed):
    """Errors fall off like exp(-x / 22), by 400 runs of which the largest was 104: false-failure rate below 1e-30."""
    counts = np.zeros((128, 128), np.int64)
    counts[17, 90] = 10**6
    estimate = dpf.adaptive_hierarchy(counts, epsilon=0.5, random=SeededRandom(seed))
    assert np.abs(estimate.histogram - counts).sum() < 2_000


def test_few_records_are_told_by_large_boxes(seed):
    """The tree stops early where noise would drown the counts, and goes down to the cells where it does not.

    One draw in 40 (71 of 3,000) follows a box that noise made large; more than half of 25 do less than once in 10**14.
    """
    source = SeededRandom(seed)
    trees = [dpf.adaptive_hierarchy(np.full(4096, 1), epsilon=0.01, random=source) for _ in range(25)]
    many = dpf.adaptive_hierarchy(np.full(4096, 10**5), epsilon=0.1, random=SeededRandom(seed))
    assert np.median([few.rounds["boxes"].sum() for few in trees]) < 300
    assert many.rounds["boxes"].to_list()[-1] == 4096
    assert many.rounds.columns == ["boxes", "split", "cells"]


def test_the_same_seed_gives_the_same_estimate_whatever_the_threads():
    counts = np.random.default_rng(3).poisson(9, (64, 64))
    one, two = (
        dpf.adaptive_hierarchy(counts, epsilon=1.0, random=SeededRandom(5), threads=threads) for threads in (1, 2)
    )
    assert one.histogram.tolist() == two.histogram.tolist()


def test_a_ledger_is_charged_the_whole_budget_and_counts_out_of_range_are_no_error():
    ledger = dpf.Ledger(epsilon=1.0)
    estimate = dpf.adaptive_hierarchy(np.array([-4, 2**62, 7, 7]), epsilon=0.25, ledger=ledger)
    assert ledger.spent.epsilon == 0.25
    assert np.isfinite(estimate.histogram).all()
    with pytest.raises(DataError, match="from 0 to"):
        dpf.adaptive_hierarchy([1, -2, 3], epsilon=1.0)


def test_budgets_too_small_are_refused_before_they_are_charged():
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(ParameterError, match="epsilon"):
        dpf.adaptive_hierarchy([1, 2], epsilon=1e-17, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    ("seen", "settled"), [(-5.0, 0.0), (0.0, 0.0), (1e-200, 0.0), (14.0, 0.0), (30.0, 22.5), (225.0, 224.0)]
)
def test_a_number_of_records_that_may_be_noise_alone_is_drawn_to_nothing(seen, settled):
    """Of a variance of 100, one and a half deviations are no records; a public number stays what it is."""
    for variance, expected in ((100.0, settled), (0.0, max(seen, 0.0))):
        box, left = Boxes.whole((4,)), np.zeros(1, np.int64)
        root = Level(box, np.array([seen]), np.array([variance]), left, np.array([0, 1]), left)
        settle([root], 0.0)
        assert root.value[0] == pytest.approx(expected, abs=1e-190)
