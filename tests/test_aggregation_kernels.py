"""Kernels of counting and factorizing: no write outside, whatever they are given, and exact numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.kernels.grouping import bounding, counting, factorizing
from dpfast.kernels.intrinsics import high_product

SCALED = numba.njit(lambda word, limit: high_product(word, limit))
ADVERSARIAL = np.array([0, 3, 4, 5, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**63 + 3, 2**64 - 1], np.uint64)


def fenced(length: int, dtype) -> tuple[np.ndarray, np.ndarray]:
    """A table of zeros in the middle of a field of marks."""
    field = np.full(length + 2000, 77, dtype)
    field[1000 : 1000 + length] = 0
    return field, field[1000 : 1000 + length]


@pytest.mark.parametrize("dtype", [np.uint64, np.uint32])
def test_unknown_codes_go_to_the_trash(dtype):
    """Soundness rule 19: no code, whatever its bits, is written outside the table."""
    slots = ADVERSARIAL if dtype == np.uint64 else ADVERSARIAL[ADVERSARIAL < 2**32].astype(dtype)
    field, table = fenced(5, np.int64)
    counting.count_slots(slots, table)
    assert table.tolist() == [1, 0, 0, 1, len(slots) - 2]
    counting.add_to_slots(slots, np.full(len(slots), -3), table)
    assert table.tolist() == [-2, 0, 0, -2, -2 * (len(slots) - 2)]
    assert (field[:1000] == 77).all()
    assert (field[-1000:] == 77).all()


@pytest.mark.parametrize("slots", [1, 5, 4095, 4096, 70_000])
def test_codes_are_counted_at_once(slots, seed):
    """Whether a small table is counted in turns or not, what has no mark counts as if all had one."""
    generator = np.random.default_rng(seed)
    for rows in (0, 1, 3, 4, 1001):
        values = generator.integers(-3, slots + 3, rows)
        values[: rows // 3] = values[:1]
        for marked, null in itertools.product((None, 0.2, 1.0), (2, slots, 2**63)):
            valid = None if marked is None else (generator.random(rows) < 0.9).astype(np.uint8)
            seen = None if marked is None else (generator.random(rows) < marked).astype(np.uint8) * np.uint8(255)
            field, table = fenced(slots + 1, np.int64)
            table[:] = expected = generator.integers(0, 9, slots + 1)
            expected = expected.copy()
            lowest, size = np.uint64(2**64 - 1), np.uint64(slots)
            counting.count_codes_at_once(values, valid, seen, lowest, size, np.uint64(null), table)
            for row, value in enumerate(values.tolist()):
                slot = value + 1 if 0 <= value + 1 < slots else slots
                slot = slot if valid is None or valid[row] else min(null, slots)
                expected[slot if seen is None or seen[row] else slots] += 1
            assert (table == expected).all()
            assert (field[:1000] == 77).all()
            assert (field[-1000:] == 77).all()


def test_bounds_are_checked_where_the_kernel_does_not():
    """The same kernels compiled with bounds checking raise nothing on adversarial codes."""

    def checked(kernel):
        return numba.njit(boundscheck=True, error_model="numpy")(kernel.py_func)

    table = np.zeros(5, np.int64)
    checked(counting.count_slots)(ADVERSARIAL, table)
    checked(counting.add_to_slots)(ADVERSARIAL, np.ones(len(ADVERSARIAL), np.int64), table)
    assert table.sum() == 2 * len(ADVERSARIAL)
    rows = np.empty(len(ADVERSARIAL), np.int32)
    checked(counting.look_up_slots)(ADVERSARIAL, np.array([5, 6, 7, 8], np.int32), rows)
    assert rows.tolist() == [5, 8] + [-1] * 10
    narrow = np.empty(len(ADVERSARIAL), np.uint32)
    checked(counting.narrow_slots)(ADVERSARIAL, np.uint64(4), narrow)
    assert narrow.tolist() == [0, 3] + [4] * 10

    units = np.array([-1, 0, 1, 2, 2**31 - 1, -(2**31)], np.int32)
    groups = np.array([0, 0, -1, 0, 0, 0], np.int32)
    starts = np.zeros(3, np.int64)
    checked(bounding.count_unit_rows)(units, groups, starts)
    assert starts.tolist() == [0, 1, 0]
    out, rows = np.full(1, -5, np.int32), np.full(1, -5, np.int32)
    for own in (None, rows):
        checked(bounding.sort_by_unit)(units, groups, 0, np.zeros(2, np.int64), out, own)
    assert out.tolist() == [0]
    assert rows.tolist() == [1]

    edges = np.array([0.0, 1.0, 2.0])
    values = np.array([-math.inf, -1e-300, 0.0, 1.0, 2.0, math.inf, math.nan])
    bins, inside = np.empty(7, np.int64), np.empty(7, np.uint8)
    checked(counting.find_bins)(values, np.ones(7, np.uint8), edges, bins, inside)
    assert inside.tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert bins[2:4].tolist() == [0, 1]


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), st.integers(-(2**63), 2**63 - 1), st.integers(0, 100))
def test_key_codes_are_known_just_within_the_range(values, lowest, size):
    column = np.array([*values, lowest, max(lowest - 1, -(2**63))], np.int64)
    codes = np.full(len(column), 5, np.uint64)
    valid = np.ones(len(column), np.uint8)
    counting.add_key_codes(
        column, valid, np.uint64(lowest % 2**64), np.uint64(size), np.uint64(7), counting.UNKNOWN, codes
    )
    for value, code in zip(column.tolist(), codes.tolist(), strict=True):
        # Beyond the largest int64 the range of an unsigned column goes on with the same bits.
        offset = (value - lowest) % 2**64
        assert code == 5 + 7 * offset if offset < size else code >= 2**63


def test_an_unknown_code_stays_unknown():
    codes = np.zeros(1, np.uint64)
    one = np.ones(1, np.uint8)
    for value in (9, 9, 1):
        counting.add_key_codes(
            np.array([value]), one, np.uint64(0), np.uint64(3), np.uint64(1), counting.UNKNOWN, codes
        )
        assert codes[0] >= counting.UNKNOWN


@settings(deadline=None)
@given(
    st.lists(st.floats(), max_size=20),
    st.integers(-1060, 1060),
    st.integers(-(2**23), 2**23),
    st.integers(0, 2**23),
)
def test_floats_are_rounded_exactly(values, step_exponent, lower, width):
    """Soundness rule 16: fixed point by exact rational arithmetic."""
    column = np.array(values, np.float64)
    out = np.empty(len(column), np.int64)
    half = -step_exponent // 2
    counting.round_floats(
        column,
        np.ones(len(column), np.uint8),
        2.0**half,
        2.0 ** (-step_exponent - half),
        lower,
        lower + width,
        lower,
        out,
    )
    for x, steps in zip(values, out.tolist(), strict=True):
        if math.isnan(x):
            assert steps == 0
            continue
        exact = round(Fraction(x) / Fraction(2) ** step_exponent) if math.isfinite(x) else x
        assert steps == min(max(exact, lower), lower + width) - lower


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=200))
def test_factorizing_numbers_values_as_they_are_met(values):
    column = np.array([0 if value is None else value for value in values], np.int64)
    valid = np.array([value is not None for value in values], np.uint8)
    table, numbers = np.zeros(1024, np.int64), np.full(1024, -1, np.int32)
    out = np.empty(len(column), np.int32)
    done, known = factorizing.factorize_values(column, valid, 0, table, numbers, out)
    order = {value: i for i, value in enumerate(dict.fromkeys(value for value in values if value is not None))}
    assert (done, known) == (len(values), len(order))
    assert out.tolist() == [-1 if value is None else order[value] for value in values]


@settings(deadline=None)
@given(st.sets(st.integers(0, 2**63 - 1), min_size=1, max_size=100), st.lists(st.integers(0, 2**64 - 2), max_size=50))
def test_hash_table_finds_its_codes_and_no_others(known, others):
    codes = np.array(sorted(known), np.uint64)
    table = np.full(256, factorizing.EMPTY)
    places = np.empty(len(codes), np.int64)
    assert factorizing.insert_codes(codes, table, places)
    asked = np.array([*known, *others], np.uint64)
    found = np.empty(len(asked), np.uint64)
    factorizing.find_codes(asked, table, found)
    where = dict(zip(codes.tolist(), places.tolist(), strict=True))
    assert found.tolist() == [where.get(code, 2**64 - 1) for code in asked.tolist()]
    again = np.full(256, factorizing.EMPTY)
    assert not factorizing.insert_codes(np.append(codes, codes[:1]), again, np.empty(len(codes) + 1, np.int64))


def test_views_are_compared_without_what_stands_behind_the_end():
    views = np.array(
        [[2 | 0x6261 << 32, 0], [2 | 0xFFFF6261 << 32, 99], [12 | 5 << 32, 7], [13 | 5 << 32, 7]], np.uint64
    )
    assert factorizing.clean_views(views) == 1
    assert views[0].tolist() == views[1].tolist()
    assert views[2:].tolist() == [[12 | 5 << 32, 7], [13 | 5 << 32, 7]]


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1))
def test_scaling_a_word_is_exact(word, limit):
    assert int(SCALED(np.uint64(word), np.uint64(limit))) == word * limit >> 64
