"""Distances to instability and of scale against breadth-first search over all small data."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast.kernels.stability import rows_to_leave
from dpfast.stability.instability import edges, interquartile_range_of, interquartile_scale_of, mode_of

from .laws import every, neighbors_of, steps_until

RELATIONS = ("add_remove", "replace")
UNIVERSE = (0, 1, 2, 4)
STABILITY = dpf.stability


def median(data):
    return sorted(data)[(len(data) + 1) // 2 - 1] if data else None


def mode(data):
    counts = Counter(data)
    return min(counts, key=lambda value: (-counts[value], str(value))) if counts else None


def changed_from(function, data):
    own = function(data)
    return lambda other: function(other) != own


def local(data, relation, universe=UNIVERSE):
    values = [median(one) if one else min(universe) for one in (data, *neighbors_of(data, universe, relation))]
    return max(abs(value - values[0]) for value in values)


@pytest.mark.parametrize("relation", RELATIONS)
def test_distance_of_the_median(relation):
    """Rows 7-11 and 7-13: the rows that can change with the median the same for all neighbours, exactly."""
    wide = (-9, *UNIVERSE, 9)
    for data in every(UNIVERSE, 6, least=1):
        changes = steps_until(data, changed_from(median, data), wide, relation, 4)
        found = STABILITY.distance_to_instability(list(data), "median", bounds=(-9, 9), grid=1, neighbors=relation)
        assert min(found, 4) == changes - 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_distance_of_the_mode(relation):
    """Row 7-13: max(0, c1 - c2 - 1), or ceil(gap / 2) - 1; too low by 1 only where a tie would be kept."""
    for data in every(UNIVERSE, 6, least=1):
        changes = steps_until(data, changed_from(mode, data), UNIVERSE, relation, 6)
        counts = sorted(Counter(data).values(), reverse=True)
        lead = counts[0] - (counts[1] if len(counts) > 1 else 0)
        found = STABILITY.distance_to_instability(list(data), "mode", neighbors=relation)
        assert found == (max(0, lead - 1) if relation == "add_remove" else max(0, -(-lead // 2) - 1))
        assert found in (changes - 1, changes - 2)


@pytest.mark.parametrize("relation", RELATIONS)
def test_distances_are_zero_where_neighbours_differ_and_move_by_one(relation):
    """Rows 7-11 and 7-13: what the proof of the test asks of a distance."""
    for data in every(UNIVERSE[:3], 6):
        own = mode_of(Counter(map(str, data)), relation)
        for other in neighbors_of(data, UNIVERSE[:3], relation):
            value, far = mode_of(Counter(map(str, other)), relation)
            assert abs(far - own[1]) <= 1
            if value != own[0]:
                assert far == own[1] == 0


@pytest.mark.parametrize("relation", RELATIONS)
def test_local_sensitivity_of_the_median(relation):
    """Row 7-5: that of the neighbour where the median is farthest, by enumeration."""
    for data in every(UNIVERSE, 6, least=1 if relation == "replace" else 0):
        found = STABILITY.local_sensitivity_of_median(
            np.array(data, np.int64), bounds=(0, 4), grid=1, neighbors=relation
        )
        assert found == local(data, relation)


def test_local_sensitivity_of_the_median_is_the_larger_gap():
    """Row 7-5: max(x_m - x_(m-1), x_(m+1) - x_m) with m = floor((n + 1) / 2)."""
    for values, gap in (([1, 5, 6, 20, 22], 14), ([1, 5, 6, 20], 4), ([7], 7)):
        assert STABILITY.local_sensitivity_of_median(values, bounds=(0, 10**6), grid=1, neighbors="replace") == (
            gap if len(values) > 1 else 10**6 - 7
        )


def test_noise_in_proportion_to_local_sensitivity_is_not_private():
    """Row 7-6, erratum E19: x has no noise at all, its neighbour y noise of deviation sqrt(2) * 10**6 / epsilon."""
    n, far, epsilon = 10, 10**6, 0.5
    y = [0] * (n // 2) + [far] * (n // 2)
    x = [0, *y]
    at_x, at_y = (STABILITY.local_sensitivity_of_median(data, bounds=(0, far), grid=1) for data in (x, y))
    assert (at_x, at_y) == (0.0, far)
    assert np.sqrt(2) * at_y / epsilon == pytest.approx(np.sqrt(2) * 10**6 / epsilon)
    smooth = [STABILITY.smooth_sensitivity_of_median(data, 0.1, bounds=(0, far), grid=1) for data in (x, y)]
    assert smooth[0] == pytest.approx(far * np.exp(-0.1), rel=1e-8)
    assert smooth[1] == pytest.approx(far, rel=1e-8)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", [0, 1, 2, 3])
def test_distance_to_a_wide_median(relation, bound):
    """Row 7-7: the rows to change until the local sensitivity of the median exceeds what was proposed."""
    for data in every(UNIVERSE, 5, least=1 if relation == "replace" else 0):
        steps = steps_until(data, lambda other: local(other, relation) > bound, UNIVERSE, relation, 6)
        found = STABILITY.distance_to_wide_median(
            np.array(data, np.int64), bound, bounds=(0, 4), grid=1, neighbors=relation
        )
        assert found == steps
    assert STABILITY.distance_to_wide_median([1, 2], 4, bounds=(0, 4), grid=1, neighbors=relation) is None


def interquartile(data):
    x = sorted(data)
    return x[-(-3 * len(x) // 4) - 1] - x[-(-len(x) // 4) - 1] if x else 0


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 2), (2, 4), (3, 6)])
def test_rows_until_another_scale(replace, low, high):
    """Rows 7-8 and 7-10: two pointers against a search over all data, values far away among them."""
    inner, relation = (0, 1, 2, 3, 5), "replace" if replace else "add_remove"
    universe = (-100, *inner, 8, 100)
    generator, compared = np.random.default_rng(20_261_122), 0
    while compared < 25:
        data = tuple(sorted(generator.choice(inner, generator.integers(2 if replace else 0, 8)).tolist()))
        if not low <= interquartile(data) < high:
            continue
        compared += 1
        steps = steps_until(data, lambda other: not low <= interquartile(other) < high, universe, relation, 2)
        found = rows_to_leave(np.array(data, np.float64), float(low), float(high), replace)
        assert min(found, 3) == steps, data


def slow_rows_to_leave(x, low, high, replace):
    """All pairs, in rational numbers."""
    x = [Fraction(value) for value in x]
    n = len(x)
    a, b = (n + 3) // 4, (3 * n + 3) // 4

    def steps(first, second, most):
        return min(
            (v + t + u)
            for u in range(min(most, 4) + 1)
            for v in range(3 * n + 6)
            for t in range(3 * n + 6)
            if first <= 3 * v - t + u and second <= 3 * t - v + u
        )

    costs = []
    for i in range(n + 1):
        for j in range(i + 1, n + 2):
            within = i >= 1 and j <= n and x[j - 1] - x[i - 1] < low
            if within:  # x_i to x_j lie in one window
                below, above = i - 1, n - j
                costs.append(max(0, i - a) + max(0, b - j) if replace else steps(4 * below - n + 1, 4 * above - n, n))
            if i == 0 or j == n + 1 or x[j - 1] - x[i - 1] >= high:
                up, down = i, n - j + 1
                costs.append(
                    max(0, a - i) + max(0, j - b) if replace else steps(n - 4 * up, n - 4 * down + 1, j - i - 1)
                )
    if low > 0:
        costs += [max(0, i + 1 - a) + max(0, b - (i + 1)) for i in range(n)] if replace else []
    return min(costs)


@pytest.mark.parametrize("replace", [True, False])
def test_rows_until_another_scale_of_floats(replace):
    """Row 7-10: differences that round to the edge itself are told apart, up to n = 10."""
    generator = np.random.default_rng(7)
    for _ in range(40):
        n = int(generator.integers(2, 11))
        tiny = generator.choice([0.0, 2.0**-60, -(2.0**-60), 2.0**-30], n)
        x = np.sort(generator.choice([0.0, 1.0, 2.0, 3.0], n) + tiny)
        k = edges(2.0)[0].bin_of(interquartile_range_of(x))
        low, high = edges(2.0)[0].ends(k)
        wanted = slow_rows_to_leave(x.tolist(), low, high, replace)
        if replace or k is not None:
            assert rows_to_leave(x, low, high, replace) == wanted
    one = np.array([-(2.0**-60), 1.0])
    assert one[1] - one[0] == 1.0  # rounded: the range is above 1
    assert rows_to_leave(np.array([2.0**-60, 1.0, 1.0, 1.0]), 1.0, 2.0, True) == 0


@pytest.mark.parametrize("base", [2.0, 1.25, 7.0])
def test_bins_part_all_sizes(base):
    """Row 7-8, erratum E20: bins are of width 1 in the logarithm to the base, and each size is in one."""
    for way in edges(base):
        for size in (1e-300, 1.0, 1.5, 2.0, 1e9, 2.0**1000, 3.7e-20):
            k = way.bin_of(Fraction(size))
            low, high = way.ends(k)
            assert low <= size < high
            assert high / low == pytest.approx(base)
        assert way.bin_of(Fraction(0)) is None
        assert way.ends(None)[0] == 0.0
    first, second = edges(base)
    assert second.ends(0)[0] == pytest.approx(np.sqrt(base))
    assert first.ends(0) == (1.0, base)


def test_distances_to_another_scale_differ_by_one_between_neighbours():
    """Rows 7-8 and 7-9: where neighbours are in one bin; where not, both are one row away."""
    universe = (0, 1, 2, 3, 5)
    for relation in RELATIONS:
        for data in every(universe, 5, least=2):
            for way in edges(2.0):
                own = interquartile_scale_of(np.array(data, np.float64), way, relation)
                for other in neighbors_of(data, universe, relation):
                    bin_, far = interquartile_scale_of(np.array(other, np.float64), way, relation)
                    assert abs(far - own[1]) <= 1
                    if bin_ != own[0]:
                        assert far == own[1] == 0
