"""Sums of integers are exact up to the last that fits, and refused beyond; sums of floats lose next to nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import DataError
from dpfast.kernels.histograms.prefixes import COLUMNS, cover_magnitudes

make = dpf.workloads
LARGEST = 2**63 - 1


def integer_workloads(n):
    mask = np.ones((1, n), bool)
    yield make.prefix(n)
    yield make.all_range(n)
    yield make.ranges(n, [0], [n])
    yield make.rectangles((n,), [[0]], [[n]])
    yield make.marginals((n,), k=0)
    yield make.total(n)
    yield make.matrix(mask)
    yield make.kronecker(make.total(n), make.identity(1))
    yield make.total(n) + make.identity(n)


def test_sums_just_below_the_largest_integer_are_exact():
    """Soundness rule 16: sums of integers never go through floats, and never wrap."""
    histogram = np.array([2**62, 1, 2**61, 3])  # the sum of magnitudes stays a billionth below 2**63
    for workload in integer_workloads(4):
        assert workload.answer(histogram).max() == 2**62 + 2**61 + 4
        assert workload.answer(-histogram).min() == -(2**62) - 2**61 - 4


@pytest.mark.parametrize("histogram", [[2**62, 2**62, 0, 0], [LARGEST, 1, 0, 0], [-(2**63), 0, 0, -1]])
def test_sums_that_could_pass_int64_are_refused(histogram):
    for workload in integer_workloads(4):
        with pytest.raises(DataError, match=r"^histogram must have counts whose sum stays below 2\*\*63; "):
            workload.answer(np.array(histogram))


def test_coefficients_count_in_what_fits():
    matrix = make.matrix(np.array([[-8, 1]]))
    assert matrix.answer([2**59, 3]).tolist() == [-(2**62) + 3]
    with pytest.raises(DataError):
        matrix.answer([2**60, 3])
    with pytest.raises(DataError):
        make.kronecker(matrix, matrix).answer([[2**57, 0], [0, 0]])


def test_unsigned_counts():
    assert make.prefix(2).answer(np.array([1, 2**62], np.uint64)).tolist() == [1, 2**62 + 1]
    assert make.prefix(2).answer(np.array([200, 100], np.uint8)).tolist() == [200, 300]
    with pytest.raises(DataError, match=r"^histogram must have counts below 2\*\*63; "):
        make.prefix(2).answer(np.array([1, 2**63], np.uint64))


def test_magnitudes_are_covered():
    for value in (0, 1, -1, 2**40, -(2**40), LARGEST, -(2**63)):
        covered = int(cover_magnitudes(np.array([0, value, 5])))
        assert abs(value) <= 1 << covered.bit_length()


def test_large_integers_keep_their_last_bit():
    """Floats would round them."""
    shape = (3, 5, 4)
    histogram = np.random.default_rng(1).integers(2**54, 2**55, shape) | 1
    exact = [int(value) for value in histogram.reshape(-1)]
    marginals = make.marginals(shape, k=1)
    expected = [int(count) for axes in ((1, 2), (0, 2), (0, 1)) for count in histogram.astype(object).sum(axis=axes)]
    assert marginals.answer(histogram).tolist() == expected
    assert make.total(shape).answer(histogram).tolist() == [sum(exact)]
    rectangles = make.random_rectangles(shape, 20, seed=2)
    for row, answer in zip(rectangles.rows(0, 20), rectangles.answer(histogram).tolist(), strict=True):
        assert answer == sum(value for value, inside in zip(exact, row, strict=True) if inside)


def error_bound(magnitudes, additions):
    """Return the rounding errors of so many additions of numbers of these magnitudes."""
    return additions * 2.0**-53 * magnitudes


def test_prefix_sums_of_floats_are_rounded_once():
    """The bound of `kernels.histograms.prefixes`, which does not grow with the length as a plain sum's error does."""
    histogram = np.full(2_000_000, 0.1)
    histogram[0] = 1e9
    places = [0, 511, 512, 12_345, 1_999_999]
    exact = [Fraction(1e9) + Fraction(0.1) * place for place in places]
    ours = make.prefix(histogram.size).answer(histogram)
    behind = make.prefix(histogram.size).transposed(histogram[::-1])[::-1]
    for place, value in zip(places, exact, strict=True):
        bound = error_bound(float(value), 1.001)
        assert abs(Fraction(ours[place]) - value) <= bound
        assert abs(Fraction(behind[place]) - value) <= bound
    assert abs(Fraction(np.cumsum(histogram)[-1]) - exact[-1]) > 100 * bound


@pytest.mark.parametrize("shape", [(200_000,), (200_000, 2), (2, COLUMNS + 3), (3000, 2, 3)])
def test_prefix_sums_of_rectangles_keep_their_digits(shape):
    histogram = np.full(shape, 0.1)
    histogram.reshape(-1)[0] = 1e9
    whole = make.rectangles(shape, [[0] * len(shape)], [list(shape)])
    exact = Fraction(1e9) + Fraction(0.1) * (histogram.size - 1)
    error = abs(Fraction(whole.answer(histogram)[0]) - exact)
    assert error <= error_bound(float(exact), 2 * len(shape) - 0.99)


def test_marginals_of_floats_keep_their_digits():
    histogram = np.random.default_rng(3).random((2, 300_000, 2))
    marginals = make.marginals(histogram.shape, attributes=[(), (0,), (0, 2)])
    tables = marginals.split(marginals.answer(histogram))
    assert tables[0] == pytest.approx(math.fsum(histogram.reshape(-1)), rel=1e-12)
    for first in range(2):
        assert tables[1][first] == pytest.approx(math.fsum(histogram[first].reshape(-1)), rel=1e-12)
        for last in range(2):
            assert tables[2][first, last] == pytest.approx(math.fsum(histogram[first, :, last]), rel=1e-11)


def test_energies_of_many_cells_are_closed_forms():
    """Ten million cells at once, beside sums in integers."""
    n = 10_000_000
    edges = np.unique(np.concatenate([[0, n], np.random.default_rng(4).integers(0, n, 1000)]))
    sizes = [int(size) for size in np.diff(edges)]
    assert make.identity(n).energy(edges) == n
    assert make.total(n).energy(edges) == pytest.approx(sum(size**2 for size in sizes), rel=1e-14)
    prefix = 0
    for size, stop in zip(sizes, edges[1:].tolist(), strict=True):
        prefix += size**2 * (n + 1 - stop) + (size - 1) * size * (2 * size - 1) // 6
    assert make.prefix(n).energy(edges) == pytest.approx(prefix, rel=1e-14)
    drawn = make.random_ranges(n, 5, seed=5)
    expected = sum(
        max(0, min(high, stop) - max(low, start)) ** 2
        for low, high in zip(drawn.lower.tolist(), drawn.upper.tolist(), strict=True)
        for start, stop in zip(edges.tolist(), edges[1:].tolist(), strict=False)
    )
    assert drawn.energy(edges) == pytest.approx(expected, rel=1e-14)
