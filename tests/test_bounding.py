"""What each unit keeps: how much, how it is chosen, and from what."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from dpfast.aggregation import unit_orders
from dpfast.aggregation import units as units_module
from dpfast.aggregation.units import bound_contributions

ALPHA = 1e-12


def secure(seed: int):
    generator = np.random.default_rng(seed)
    return lambda number: generator.integers(0, 2**64, number, dtype=np.uint64)


def bound(units, groups, max_groups, max_rows, words, *, mark_rows=True):
    """Return the tables and the rows that are left."""
    units, groups = np.array(units, np.int32), np.array(groups, np.int32)
    number, keys = int(units.max(initial=-1)) + 1, int(groups.max(initial=0)) + 1
    bounded = bound_contributions(units, number, groups, keys, max_groups, max_rows, words, mark_rows=mark_rows)
    return bounded, groups


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 5)), max_size=80),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(0, 100),
)
def test_each_unit_keeps_exactly_what_it_may(rows, max_groups, max_rows, seed):
    check_what_is_kept(rows, max_groups, max_rows, seed)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_share_the_units(threads, monkeypatch):
    """The same rows unit by unit, and as much of each unit, however many threads there are."""
    for module in (units_module, unit_orders):
        monkeypatch.setattr(module, "thread_count", lambda asked, items: threads)
    monkeypatch.setattr(unit_orders, "_LEAST_ROWS", 0)
    generator = np.random.default_rng(threads)
    for seed in range(30):
        number = int(generator.integers(0, 90))
        drawn = zip(generator.integers(-1, 7, number).tolist(), generator.integers(-1, 6, number).tolist(), strict=True)
        rows = list(drawn)
        check_what_is_kept(rows, int(generator.integers(1, 7)), int(generator.integers(1, 7)), seed)
        units, groups = (np.array([row[place] for row in rows], np.int32) for place in (0, 1))
        order = unit_orders.order_by_unit(units, 7, groups, rows=True)
        expected = sorted((row for row in range(number) if min(rows[row]) >= 0), key=lambda row: units[row])
        assert order.rows.tolist() == expected
        assert order.groups.tolist() == groups[expected].tolist() if expected else True
        assert np.diff(order.starts).tolist() == [sum(units[row] == unit for row in expected) for unit in range(7)]


def check_what_is_kept(rows, max_groups, max_rows, seed):
    units, groups = [unit for unit, _ in rows], [group for _, group in rows]
    bounded, left = bound(units, groups, max_groups, max_rows, secure(seed))
    table_units, table_rows = Counter(), Counter()
    for unit in range(7):
        had = Counter(group for other, group in rows if other == unit and group >= 0)
        kept = Counter(int(g) for other, g in zip(units, left, strict=True) if other == unit and g >= 0)
        assert len(kept) == min(max_groups, len(had))
        assert all(count == min(max_rows, had[group]) for group, count in kept.items())
        table_units.update(kept.keys())
        table_rows.update(kept)
    for old, new, unit in zip(groups, left, units, strict=True):
        assert new in (old, -1)
        assert unit >= 0 or new == -1
    assert bounded.units.tolist() == [table_units[group] for group in range(len(bounded.units))]
    assert bounded.rows.tolist() == [table_rows[group] for group in range(len(bounded.rows))]

    counted, untouched = bound(units, groups, max_groups, max_rows, secure(seed), mark_rows=False)
    assert untouched.tolist() == groups
    assert counted.units.sum() == bounded.units.sum()


def chi_square(counts: Counter, outcomes: list) -> float:
    expected = sum(counts.values()) / len(outcomes)
    return sum((counts[outcome] - expected) ** 2 / expected for outcome in outcomes)


def chosen_groups(seed: int, trials: int = 20_000) -> Counter:
    """Which 2 of 5 groups each of many units keeps; the groups come in another order for every unit."""
    order = np.random.default_rng(seed + 1)
    groups = np.concatenate([order.permutation(5) for _ in range(trials)])
    units = np.repeat(np.arange(trials), 5)
    _, left = bound(units, groups, 2, 1, secure(seed))
    return Counter(tuple(sorted(int(g) for g in line if g >= 0)) for line in left.reshape(trials, 5))


def test_groups_are_chosen_uniformly():
    """Chi-square over the 10 subsets of 20,000 units; false-failure rate 1e-12."""
    subsets = list(combinations(range(5), 2))
    counts = chosen_groups(1)
    limit = chi2.isf(ALPHA, len(subsets) - 1)
    assert chi_square(counts, subsets) < limit
    # The same test fails a choice that favours one subset by a quarter.
    counts[subsets[0]] += sum(counts.values()) // 40
    assert chi_square(counts, subsets) > limit


def test_rows_are_chosen_uniformly():
    """Chi-square over the 20 ways to keep 3 of 6 rows, 20,000 units; false-failure rate 1e-12."""
    trials = 20_000
    subsets = list(combinations(range(6), 3))
    _, left = bound(np.repeat(np.arange(trials), 6), np.zeros(6 * trials), 1, 3, secure(2))
    counts = Counter(tuple(np.flatnonzero(line == 0).tolist()) for line in left.reshape(trials, 6))
    assert chi_square(counts, subsets) < chi2.isf(ALPHA, len(subsets) - 1)


def test_groups_and_rows_are_chosen_independently():
    """2 of 3 groups and 1 of 2 rows in each: 12 equally likely outcomes; false-failure rate 1e-12."""
    trials = 20_000
    groups = np.tile([0, 0, 1, 1, 2, 2], trials)
    _, left = bound(np.repeat(np.arange(trials), 6), groups, 2, 1, secure(3))
    counts = Counter(tuple(np.flatnonzero(line >= 0).tolist()) for line in left.reshape(trials, 6))
    assert len(counts) == 12
    assert chi_square(counts, list(counts)) < chi2.isf(ALPHA, 11)


def test_a_unit_is_handled_by_itself():
    """Soundness rule 14 rests on it: what others hold changes nothing for given words."""
    generator = np.random.default_rng(4)
    units, groups = generator.integers(0, 50, 2000), generator.integers(0, 20, 2000)
    _, left = bound(units, groups, 3, 2, secure(5))
    for last in (10, 30, 49):
        # Units are handled in order: those up to `last` read the same words without the others.
        alone = units <= last
        _, part = bound(units[alone], np.append(groups[alone], 19)[:-1], 3, 2, secure(5))
        assert part.tolist() == left[alone].tolist()


def test_every_word_is_drawn_for_one_use():
    """Soundness rule 1: a call of words() is never used for two runs of units, and never short."""
    drawn = []

    def words(number):
        drawn.append(number)
        return secure(len(drawn))(number)

    units, groups = np.repeat(np.arange(3000), 100), np.tile(np.arange(100), 3000)
    bounded, _ = bound(units, groups, 40, 1, words, mark_rows=False)
    assert bounded.units.sum() == 3000 * 40
    assert sum(drawn) >= 3000 * 40
    units, groups = np.zeros(200_000), np.arange(200_000) % 2
    bounded, _ = bound(units, groups, 1, 10, words)
    assert bounded.rows.sum() == 10


@pytest.mark.parametrize("mark_rows", [False, True])
def test_nothing_to_bound(mark_rows):
    bounded, _ = bound([], [], 1, 1, secure(0), mark_rows=mark_rows)
    assert bounded.units.tolist() == [0]
    bounded, _ = bound([-1, -1], [0, 1], 1, 1, secure(0), mark_rows=mark_rows)
    assert bounded.rows.tolist() == [0, 0]
