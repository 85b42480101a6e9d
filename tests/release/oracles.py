"""Independent oracles for releases: fractions, mpmath, SciPy and plain loops. Nothing here is dpfast's."""

from __future__ import annotations

import io
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import polars as pl
import polars.selectors as cs
from scipy.stats import chi2

#: The false-failure rate of every statistical test.
ALPHA = 1e-12


def touched_vectors(values, groups, max_groups, max_rows):
    """Return every vector over the groups that one bounded unit can add (int64, one a row), 0 for a missing value."""
    sums = {sum(rows) for k in range(max_rows + 1) for rows in product([*values, 0], repeat=k)}
    vectors = set()
    for places in combinations(range(groups), max_groups):
        for contents in product(sums, repeat=max_groups):
            vector = [0] * groups
            for place, content in zip(places, contents, strict=True):
                vector[place] = content
            vectors.add(tuple(vector))
    return np.array(sorted(vectors), np.int64)


def largest_moves(vectors, neighbors):
    """Return the largest L1 distance and squared L2 distance between neighbours, by trying all of them."""
    l1 = l2_squared = 0
    others = np.zeros((1, vectors.shape[1]), np.int64) if neighbors == "add_remove" else vectors
    for vector in others:
        moves = np.abs(vectors - vector)
        l1 = max(l1, int(moves.sum(axis=1).max()))
        l2_squared = max(l2_squared, int((moves**2).sum(axis=1).max()))
    return l1, l2_squared


def normal_cdf(x):
    """Return the normal distribution function at mpmath's precision, also far in the lower tail."""
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def exact(number):
    """Return a float or fraction as an mpmath number of the present precision."""
    fraction = Fraction(number)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def gaussian_delta(scale, sensitivity, epsilon):
    """Return the Gaussian mechanism's delta: Balle and Wang (2018), theorem 8."""
    ratio, epsilon = exact(scale) / exact(sensitivity), exact(epsilon)
    half, shift = 1 / (2 * ratio), epsilon * ratio
    return normal_cdf(half - shift) - mpmath.exp(epsilon) * normal_cdf(-half - shift)


def gaussian_scale(epsilon, delta):
    """Return the least scale of the Gaussian mechanism at sensitivity 1, to 15 digits, by halving."""
    low, high = mpmath.mpf("1e-6"), mpmath.mpf("1e12")
    with mpmath.workdps(60):
        while high / low > 1 + mpmath.mpf(10) ** -16:
            middle = mpmath.sqrt(low * high)
            within = gaussian_delta(fraction_of(middle), 1, epsilon) <= exact(delta)
            low, high = (low, middle) if within else (middle, high)
    return float(high)


def fraction_of(x):
    """Return an mpmath number as a fraction."""
    return Fraction(int(x.man)) * Fraction(2) ** int(x.exp)


def discrete_laplace_tail(scale, h):
    """Return P(abs(K) > h) from the probabilities (1 - q) / (1 + q) q**abs(k), added up."""
    q = mpmath.exp(-1 / exact(scale))
    first = (1 - q) / (1 + q)
    if h <= 2000:
        inside = first * (1 + 2 * mpmath.fsum(q**k for k in range(1, int(h) + 1)))
        return 1 - inside
    return 2 * first * q ** (int(h) + 1) / (1 - q)


def selection_probabilities(epsilon, delta, most=100_000):
    """Return p_0, p_1, ... up to the first 1: Desfontaines, Voss, Gipson, Mandayam (2022), theorem 1."""
    growth, delta = mpmath.exp(exact(epsilon)), exact(delta)
    table = [mpmath.mpf(0)]
    while table[-1] < 1:
        before = table[-1]
        table.append(min(growth * before + delta, 1 - (1 - before - delta) / growth, mpmath.mpf(1)))
        assert len(table) < most
    return table


def chi_square_p(observed, expected):
    """Return the p-value of counts against expected ones, cells below 10 merged into the largest."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    small = expected < 10
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        if expected[-1] < 10:
            observed, expected = (np.append(x[1:-1], x[0] + x[-1]) for x in (observed, expected))
    statistic = ((observed - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, len(expected) - 1)


def exported_bytes(frame: pl.DataFrame) -> list[bytes]:
    """Return every byte string that leaves with a frame: Arrow buffers whole, IPC and Parquet files."""
    exported = []

    def walk(array):
        exported.extend(bytes(buffer) for buffer in array.buffers() if buffer is not None)
        if hasattr(array, "dictionary"):
            walk(array.dictionary)

    # Arrow has no integers of 128 bits, and CSV no bytes, durations or lists.
    held, written = (
        frame.select(pl.exclude(pl.Int128)),
        frame.select(~cs.by_dtype(pl.Binary, pl.Duration) & ~cs.nested()),
    )
    for level in (pl.CompatLevel.oldest(), pl.CompatLevel.newest()):
        for column in held.to_arrow(compat_level=level).columns:
            for chunk in column.chunks:
                walk(chunk)
        file = io.BytesIO()
        frame.write_ipc(file, compression="uncompressed", compat_level=level)
        exported.append(file.getvalue())
    for statistics in (True, False):
        file = io.BytesIO()
        frame.write_parquet(file, compression="uncompressed", statistics=statistics)
        exported.append(file.getvalue())
    file = io.BytesIO()
    frame.lazy().sink_ipc(file, compression="uncompressed")
    exported.append(file.getvalue())
    exported.append(frame.serialize(format="binary"))
    exported.append(written.write_csv().encode())
    return exported


def round_half_even(x: Fraction) -> int:
    """Return the nearest integer, the even one of two."""
    return round(x)


def contribution(value, step_exponent, lower, upper, centre):
    """Return what a row adds to a sum by the documented formula; None and NaN are missing."""
    if value is None or value != value:
        return 0
    if value in (float("inf"), float("-inf")):
        return (upper if value > 0 else lower) - centre
    return min(max(round_half_even(Fraction(value) / Fraction(2) ** step_exponent), lower), upper) - centre
