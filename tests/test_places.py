"""Values counted between edges where they stand: as sorting counts them, whatever values and edges are."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import polars as pl
import pytest

from dpfast.aggregation.places import Places
from dpfast.errors import DpfastError
from dpfast.kernels.grouping import counting, places

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1.7976931348623157e308]


def plainly(values, edges):
    present = values[~np.isnan(values)] if values.dtype == np.float64 else values
    return np.bincount(np.searchsorted(edges, present, side="right"), minlength=edges.size + 1)


def edges_around(generator, values, centre):
    """Return edges that grow from a centre, evenly spaced ones, or any, some of them values."""
    distances = np.sqrt(2.0) ** np.arange(generator.integers(0, 130)) * 10.0 ** generator.uniform(-20, 3)
    kinds = [
        centre - distances[::-1],
        [centre],
        centre + distances,
        np.linspace(centre - 1, centre + 1, 99),
        values[:40],
    ]
    chosen = [kind for kind in kinds if generator.random() < 0.7]
    edges = np.unique(np.concatenate([[], *chosen]))
    return edges[np.isfinite(edges)]


@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_floats_are_counted_as_by_sorting(rows, seed):
    generator = np.random.default_rng(seed)
    for _ in range(40):
        centre = generator.normal() * 10.0 ** generator.uniform(-10, 10)
        values = generator.normal(size=rows) * 10.0 ** generator.uniform(-300, 300) + centre * generator.integers(0, 2)
        values[: len(SPECIAL)] = SPECIAL[: values.size]
        edges = edges_around(generator, values, centre)
        np.testing.assert_array_equal(Places(pl.Series(values), "floats").count(edges), plainly(values, edges))


def test_whole_numbers_are_counted_as_by_sorting(seed):
    """Those that floats do not tell apart, too."""
    generator = np.random.default_rng(seed)
    for _ in range(60):
        values = generator.integers(-(2**63), 2**63, 2000) >> generator.integers(0, 63)
        values[:4] = 2**63 - 1, -(2**63), 2**62, -(2**62)
        centre = int(values[generator.integers(0, 2000)])
        near = [min(max(centre + step, -(2**63)), 2**63 - 1) for step in range(-40, 40)]
        powers = [sign * 2**place for place in range(62) for sign in (-1, 1)]
        edges = np.unique(np.array([*near, *powers, *values[:50].tolist()], np.int64))
        np.testing.assert_array_equal(Places(pl.Series(values), "wholes").count(edges), plainly(values, edges))


def test_rows_that_do_not_count_are_left_out():
    values = pl.concat([pl.Series([1.0, None, 5.0]), pl.Series([2.0, 9.0, float("nan")])], rechunk=False)
    assert Places(values, "floats").count(np.array([2.0])).tolist() == [1, 3]
    seen = np.array([1, 1, 0, 1, 0, 1], np.uint8)
    assert Places(values, "floats", seen).count(np.array([2.0])).tolist() == [1, 1]
    points = pl.Series([0, 3, 2**63 - 3, 0], dtype=pl.Int64)
    assert Places(points, "points").count(np.array([3, 2**63 - 3])).tolist() == [0, 1, 1]
    assert Places(points, "points", np.array([1, 0, 1, 1], np.uint8)).count(np.array([3])).tolist() == [0, 1]


def test_several_threads_count_the_same():
    values = np.random.default_rng(7).normal(size=1_200_000)
    edges = np.linspace(-3, 3, 100)
    found = Places(pl.Series(values), "floats").count(edges)
    np.testing.assert_array_equal(found, plainly(values, edges))


def test_it_is_private():
    found = Places(pl.Series([1.0]), "floats")
    assert repr(found) == "Places(private)"
    with pytest.raises(DpfastError, match="cannot be pickled"):
        found.__reduce__()


def test_kernels_stay_within_their_tables():
    """Compiled with bounds checking, they raise nothing on adversarial values."""

    def checked(kernel):
        return numba.njit(boundscheck=True, error_model="numpy")(kernel.py_func)

    values = np.array([-(2**63), -1, 0, 4, 5, 2**63 - 1], np.int64)
    valid, seen = np.array([1, 1, 0, 1, 1, 1], np.uint8), np.array([1, 1, 1, 1, 1, 0], np.uint8)
    table = np.zeros(6, np.int64)
    for null in (np.uint64(1 << 63), np.uint64(2)):
        checked(counting.count_codes_at_once)(values, valid, seen, np.uint64(0), np.uint64(5), null, table)
    assert table.tolist() == [0, 0, 1, 0, 2, 9]
    small, large = np.zeros(6, np.int64), np.zeros(5000, np.int64)
    for marks_of, table in itertools.product(((None, None), (valid, None), (None, seen)), (small, large)):
        size, null = np.uint64(table.size - 1), np.uint64(2**64 - 1)
        checked(counting.count_codes_at_once)(values, *marks_of, np.uint64(0), size, null, table)
    assert small.sum() == large.sum() == 3 * values.size
    marks = np.ones(6, np.uint8)
    checked(counting.mark_within)(values, valid, np.int64(-1), np.int64(4), marks)
    assert marks.tolist() == [0, 1, 0, 1, 0, 0]
    for some, found in ((valid, 2), (None, 3)):
        assert checked(counting.count_within)(values, some, np.int64(-1), np.int64(4)) == found
    floats, edges = np.array(SPECIAL), np.array([-1.0, 0.0, 1e300])
    places_of, cells = np.empty(3, np.uint64), np.empty(floats.size, np.uint32)
    checked(places.order_distances)(edges, 0.0, places_of)
    low, last = places_of[0], np.uint64(9)
    checked(places.find_cells)(floats, np.ones(floats.size, np.uint8), 0.0, low, np.uint64(60), last, cells)
    assert cells.max() <= 10
    below, counts = np.array([0] * 6 + [3] * 6, np.int16), np.zeros(4, np.int64)
    own = np.zeros(11, np.int64)
    checked(places.count_cells)(floats, cells, edges, below, own, counts)
    checked(places.fold_cells)(below, own, counts)
    assert own.sum() == floats.size
