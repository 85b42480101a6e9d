"""Noisy counts of bins, and of blocks of them -> histograms and distribution functions, by post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.edges import Edge
from dpfast.mechanisms.noise.half_widths import half_width
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.queries import DistributionQuery
from dpfast.releases.planned_queries import NoisyMeasure

__all__ = ["answer_distribution", "as_lists", "best_blocks", "block_sums", "spread_of"]

#: For each level how many bins make a block, and what its counts are times.
Blocks: TypeAlias = tuple[tuple[int, int], ...]

_FAN_OUTS = (4, 8, 16, 32)
_LARGEST = 2**62


def block_sums(counts: NDArray[np.int64], blocks: Blocks) -> NDArray[np.int64]:
    """Return what is measured of exact counts, a row for each group: level by level, the counts of blocks.

    Counts are limited so that no sum leaves int64, which moves neighbours no further apart.

    Examples
    --------
    >>> block_sums(np.array([[1, 2, 3]]), ((1, 1), (2, 3)))
    array([[1, 2, 3, 9, 9]])

    """
    bins = counts.shape[1]
    limit = _LARGEST // max(weight * min(size, bins) for size, weight in blocks)
    limited = np.clip(counts, -limit, limit)
    levels = [np.add.reduceat(limited, np.arange(0, bins, size), axis=1) * weight for size, weight in blocks]
    return levels[0] if len(levels) == 1 else np.concatenate(levels, axis=1)


def _matrix(bins: int, blocks: Blocks) -> NDArray[np.float64]:
    """Return what is measured as a matrix, a column for each bin."""
    return block_sums(np.eye(bins, dtype=np.int64), blocks).T.astype(np.float64)


@lru_cache(maxsize=64)
def best_blocks(bins: int, *, gaussian: bool) -> Blocks:
    """Return which blocks are measured beside the bins so that a distribution function errs least.

    The error is that of the counts up to each edge less the part of all values that lie there, where every interval has
    as many: known beforehand. One row adds as much to each level, so that Laplace noise is as many times wider as there
    are levels, and Gaussian noise the root of that.

    Examples
    --------
    >>> best_blocks(10, gaussian=False), best_blocks(900, gaussian=True)
    (((1, 1),), ((1, 1), (8, 1), (64, 1)))

    """
    options: list[Blocks] = [((1, 1),)]
    for fan_out in _FAN_OUTS:
        sizes = [size for size in (fan_out, fan_out**2) if size < bins]
        options += [tuple((size, 1) for size in (1, *sizes[: depth + 1])) for depth in range(len(sizes))]

    return min(options, key=lambda blocks: spread_of(bins, blocks) * len(blocks) ** (1 if gaussian else 2))


@lru_cache(maxsize=1024)
def spread_of(bins: int, blocks: Blocks) -> float:
    """Return the error of `best_blocks`, summed over edges, for noise of variance 1 on every count.

    Examples
    --------
    >>> round(spread_of(2, ((1, 1),)), 12)
    0.5

    """
    asked = np.tril(np.ones((bins, bins)))[:-1] - np.arange(1, bins)[:, None] / bins
    matrix = _matrix(bins, blocks)
    return float(((asked @ np.linalg.inv(matrix.T @ matrix)) * asked).sum())


@lru_cache(maxsize=64)
def _least_squares(bins: int, blocks: Blocks) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matrix from measurements to counts up to each bin, and their covariance for noise of variance 1."""
    matrix = _matrix(bins, blocks)
    covariance = np.linalg.inv(matrix.T @ matrix)
    up_to = np.tril(np.ones((bins, bins)))
    return up_to @ covariance @ matrix.T, up_to @ covariance @ up_to.T


def answer_distribution(
    part: NoisyMeasure, query: DistributionQuery, noisy: NDArray[np.int64], miss: float
) -> tuple[pl.Series | NDArray[Any], ...]:
    """Return what figures stand for, the figures, their scale and both ends of their intervals: a list a group."""
    shown = _same_list(query.shown, len(noisy))
    if query.kind == "histogram":
        reach = half_width(part.mechanism, part.scale, miss)
        limits = np.iinfo(np.int64)
        low, high = np.maximum(noisy, limits.min + reach) - reach, np.minimum(noisy, limits.max - reach) + reach
        return shown, _lists(noisy), np.full(len(noisy), part.scale), _lists(low), _lists(high)
    return shown, *_distribution_function(part, noisy, miss)


@np.errstate(all="ignore")
def _distribution_function(part: NoisyMeasure, noisy: NDArray[np.int64], miss: float) -> Sequence[pl.Series | Any]:
    """Return parts of all values up to each edge: C / n, C and n being counts that follow from what was measured.

    For the true part F, C - F n has an error of variance v(F) = v_C - 2 F v_Cn + F**2 v_n, and so lies within z
    deviations of 0 with probability 1 - ``miss``. The interval has every F of which that is true: those between the
    roots of a quadratic, or all where the number of values is not told from 0 (Fieller 1954). C is set between its
    neighbours by the mean of the least monotone line above and the largest below, which moves no figure further from
    the true line than the worst one is.
    """
    measure = part.measure
    to_counts, covariance = _least_squares(measure.points, measure.blocks)
    counts = noisy.astype(np.float64) @ to_counts.T
    total = counts[:, -1:]
    fractions = np.clip(counts[:, :-1] / np.maximum(total, 1.0), 0.0, 1.0)
    rising = np.maximum.accumulate(fractions, axis=1)
    falling = np.minimum.accumulate(fractions[:, ::-1], axis=1)[:, ::-1]
    noise = IntegerNoise(part.mechanism, part.scale, part.charge.event)  # type: ignore[arg-type]
    own, shared, whole = np.diag(covariance)[:-1], covariance[:-1, -1], covariance[-1, -1]
    squared = (noise.deviation * noise.reach(miss)) ** 2
    a = total**2 - squared * whole
    b = total * counts[:, :-1] - squared * shared
    c = counts[:, :-1] ** 2 - squared * own
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    told = (a > 0) & (total > 0)
    divisor = np.where(told, a, 1.0)
    low, high = np.where(told, (b - root) / divisor, 0.0), np.where(told, (b + root) / divisor, 1.0)
    middle = float(np.sqrt(np.max(own - shared + whole / 4))) * noise.deviation
    return (
        _lists((rising + falling) / 2),
        middle / np.maximum(total[:, 0], 1.0),
        _lists(np.clip(low, 0.0, 1.0)),
        _lists(np.clip(high, 0.0, 1.0)),
    )


def _lists(values: NDArray[Any]) -> pl.Series:
    """Return the rows of a matrix as lists."""
    return as_lists(pl.Series(np.ascontiguousarray(values).ravel()), values.shape[1])


def as_lists(values: pl.Series, width: int) -> pl.Series:
    """Return lists of so many values each."""
    if not len(values):
        return pl.Series([], dtype=pl.List(values.dtype))
    return values.reshape((len(values) // width, width)).arr.to_list()


def _same_list(values: Sequence[Edge], rows: int) -> pl.Series:
    """Return the same list for every group."""
    dtype = pl.Series(values).dtype
    return pl.Series([list(values)], dtype=pl.List(dtype)).new_from_index(0, rows)
