"""Joint quantiles by brute force: all small neighbouring data sets, every output with its number of rows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpfast.columns.ranks import PARTS
from dpfast.mechanisms.quantiles.joint import JointCalibration, joint_calibration, joint_pays

from .joint_oracles import Outputs, law_of_points, positions
from .test_privacy import ROUTE_NAMES, ROUTES, data_sets, joined

#: Points that stand for stretches of a fine grid: an even one, and long stretches at either end or in the middle.
SIZES = [(1, 1, 1), (10**15, 1, 1), (1, 1, 10**15), (10**9, 1, 10**15), (1, 10**15, 1)]
CELLS = 4
COUNTS = (0, 1, 2, 3, 4, 5, 7, 12, 30)


def calibrated(quantiles, rows, relation, *, alone, epsilon=1):
    return joint_calibration([round(q * PARTS) for q in quantiles], epsilon * 10**18, rows, relation, alone=alone)


class Laws:
    """The exact laws of all outputs of one group, given the number of rows."""

    def __init__(self, calibration: JointCalibration, sizes) -> None:
        shares, _ = calibration.shares
        self.shares, self.slope = shares.tolist(), calibration.slope
        self.points = len(sizes)
        self.outputs = Outputs(np.repeat(sizes, CELLS), len(self.shares) - 1)
        self.known: dict[tuple, list] = {}

    def of(self, values):
        if values not in self.known:
            placed = np.array(positions(values, CELLS))
            lefts = np.searchsorted(placed, np.arange(self.points * CELLS), side="right")
            self.known[values] = [self.outputs.law(lefts, len(values), t, self.shares, self.slope) for t in COUNTS]
        return self.known[values]

    def loss(self, one, other):
        """Return the largest log ratios of the probabilities of an output: from one to the other, and back."""
        differences = [first - second for first, second in zip(self.of(one), self.of(other), strict=True)]
        return max(d.max() for d in differences), max(-d.min() for d in differences)


def worst_loss(calibration, bases, sizes, *, rows=None, relation=None):
    """Return the largest loss of quantiles and of the number of rows, of neighbours as the calibration has them."""
    rows, replaced = rows or calibration.rows, (relation or calibration.neighbors) == "replace"
    laws = Laws(calibration, sizes)
    units = data_sets(rows, len(sizes))
    within = left = entered = 0.0
    for base in bases:
        for unit in units[1:]:
            gone, come = laws.loss(joined(base, unit), base)
            left, entered = max(left, gone), max(entered, come)
        if replaced:
            # A unit that stays in the group, any of whose values may be missing before or after.
            sets = [joined(base, unit) for unit in units]
            within = max(within, *(max(laws.loss(*pair)) for pair in itertools.combinations(sets, 2)))
    # A geometric law's ratio is exp(rows / scale) at most, on the far side of either number of rows, and is reached.
    counted = rows / calibration.count_scale
    if not replaced:
        return max(left, entered) + counted
    if calibration.alone:
        return within + counted
    # What a unit takes from one group and brings to another adds up; within one group the number of rows moves too.
    return max(within + counted, left + entered + 2 * counted)


BASES = [*data_sets(1, 3), (1, 1, 3, 3), (2, 2, 2), (2,) * 8]
QUANTILES = [[0.2, 0.4, 0.6, 0.8], [0.0, 0.1, 0.5, 1.0]]


@pytest.mark.parametrize(("relation", "alone"), ROUTES, ids=ROUTE_NAMES)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("quantiles", QUANTILES, ids=str)
def test_the_loss_is_epsilon_at_most(quantiles, rows, relation, alone):
    """Every output of four quantiles beside the noisy number of rows: at most epsilon, and nearly all of it."""
    calibration = calibrated(quantiles, rows, relation, alone=alone)
    losses = [worst_loss(calibration, BASES, sizes) for sizes in SIZES]
    print("losses", ", ".join(f"{loss:.4f}" for loss in losses), "of 1")
    assert 0.9 < max(losses) <= 1 + 1e-9


@pytest.mark.parametrize("sizes", SIZES[1:3])
def test_seven_quantiles(sizes):
    calibration = calibrated([k / 8 for k in range(1, 8)], 1, "add_remove", alone=True)
    cells = 2
    laws = Laws.__new__(Laws)
    shares, _ = calibration.shares
    laws.shares, laws.slope, laws.points, laws.known = shares.tolist(), calibration.slope, 3, {}
    laws.outputs = Outputs(np.repeat(sizes, cells), 7)
    worst = 0.0
    for base in [(), (1,), (2,) * 5, (1, 1, 2, 3)]:
        for point in (1, 2, 3):
            both = []
            for values in (base, joined(base, (point,))):
                lefts = np.searchsorted(positions(values, cells), np.arange(3 * cells), side="right")
                both.append([laws.outputs.law(lefts, len(values), t, laws.shares, laws.slope) for t in COUNTS])
            worst = max(worst, *(float(np.abs(one - other).max()) for one, other in zip(*both, strict=True)))
    assert 0.7 < worst + 1 / calibration.count_scale <= 1 + 1e-9


def test_wrong_calibrations_are_caught():
    """Mutants: one row's slope for units of two, a row added for one replaced, one group for two, the wanted of n."""
    one = calibrated([0.2, 0.4, 0.6, 0.8], 1, "add_remove", alone=True)
    assert max(worst_loss(one, BASES, sizes, rows=2) for sizes in SIZES) > 1.7
    assert max(worst_loss(one, BASES, sizes, relation="replace") for sizes in SIZES) > 1.5
    lonely = calibrated([0.2, 0.4, 0.6, 0.8], 1, "replace", alone=True)
    assert max(worst_loss(dataclasses.replace(lonely, alone=False), BASES, sizes) for sizes in SIZES) > 1.05
    # Without the noisy number: n in the place of t.
    laws = Laws(dataclasses.replace(one, epsilon=Fraction(1)), SIZES[3])
    worst = 0.0
    for base in BASES:
        for point in (1, 2, 3):
            logs = []
            for values in (base, joined(base, (point,))):
                lefts = np.searchsorted(positions(values, CELLS), np.arange(3 * CELLS), side="right")
                logs.append(laws.outputs.law(lefts, len(values), len(values), laws.shares, laws.slope))
            worst = max(worst, float(np.abs(logs[0] - logs[1]).max()))
    assert worst > 1.1


def test_a_value_more_takes_one_place_more():
    """The ground of the sensitivity: at every point, all places but one are as before."""
    for count in range(600):
        before, after = positions((1,) * count, 64), positions((1,) * (count + 1), 64)
        assert len(after) == count + 1
        for place in before:
            after.remove(place)
        assert len(after) == 1
        assert 0 <= after[0] < 64


def test_the_slope_is_epsilon_over_twice_the_sensitivity():
    for rows, relation, each in ((1, "add_remove", 2), (3, "add_remove", 6), (1, "replace", 4), (5, "replace", 20)):
        for alone in (False, True):
            calibration = calibrated([0.2, 0.25, 0.6, 0.8], rows, relation, alone=alone)
            exact = calibration.epsilon / (each * calibration.shares[1])
            assert exact * (1 - Fraction(1, 2**52)) <= Fraction(calibration.slope) <= exact
            moved = rows if relation == "add_remove" or alone else 2 * rows
            assert Fraction(moved) / Fraction(calibration.count_scale) + calibration.epsilon <= 1


def test_the_choice_needs_public_facts_alone():
    """The number of quantiles, epsilon and the unit: few or many quantiles and extreme budgets are drawn by halves."""
    one = 10**18
    assert [k for k in range(1, 40) if joint_pays(k, one, 1, "add_remove")] == list(range(4, 13))
    assert joint_pays(9, one, 100, "add_remove")
    assert not joint_pays(9, one, 101, "add_remove")
    assert not joint_pays(9, one, 51, "replace")
    assert not joint_pays(9, 65 * one, 1, "add_remove")
    assert joint_pays(9, 65 * one, 1, "replace")


@pytest.mark.parametrize("values", [(), (3,), (1, 2, 2, 2, 3, 3), tuple(range(1, 13))], ids=len)
def test_rank_errors_hold_exactly(values):
    """The probability of straying by more ranks is at most the one that was asked for."""
    quantiles, points = [0.2, 0.4, 0.6, 0.8], 12
    calibration = calibrated(quantiles, 1, "add_remove", alone=True, epsilon=16)
    shares, n = calibration.shares[0].tolist(), len(values)
    ranks = [q * n for q in quantiles]
    laws = {t: law_of_points(values, points, t, shares, calibration.slope, 1 << 4) for t in range(max(n - 3, 0), n + 4)}
    for miss in (0.5, 0.05):
        most = calibration.rank_error(points, miss)
        for t, law in laws.items():
            strays = math.fsum(
                p
                for drawn, p in law.items()
                if any(
                    max(sum(v < y for v in values) - rank, rank - sum(v <= y for v in values)) > most
                    for y, rank in zip(drawn, ranks, strict=True)
                )
            )
            assert strays <= miss / 2 or abs(t - n) > 2
