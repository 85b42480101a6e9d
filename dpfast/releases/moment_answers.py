"""Noisy sums, products and numbers of values -> variances, standard deviations and covariances, with their intervals.

All of it is post-processing. A spread is centre + P / n - (A / n) (B / n), times n / (n - 1): P is the sum of products
less their centre, A and B the sums of differences to the middles of the bounds, n the number of rows; of a variance A
is B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.queries.moments import half_widths
from dpfast.releases.planned_queries import Combined, NoisyMeasure, PlannedQuery

__all__ = ["answer_spread"]


@dataclass(frozen=True)
class _Noisy:
    """A noisy figure of every group, and how far from it the exact one may lie."""

    values: NDArray[np.float64]
    reach: float

    @property
    def low(self) -> NDArray[np.float64]:
        return self.values - self.reach

    @property
    def high(self) -> NDArray[np.float64]:
        return self.values + self.reach


@np.errstate(all="ignore")
def answer_spread(
    planned: PlannedQuery, noisy: Sequence[NDArray[np.int64]], miss: float
) -> tuple[pl.Series | NDArray[Any], ...]:
    """Return a variance, a standard deviation or a covariance, its scale, and both ends of its interval.

    The interval holds the exact value of the rows that were kept, clipped to the bounds, with probability at least
    1 - ``miss``: each noisy measure stays within its own bound but with an equal part of this probability (a union
    bound), and the ends are the least and the largest value that any figures within all bounds give.

    Figures are in halves of the bounds' widths, so that their squares stay far from the ends of float64.
    """
    query = planned.query
    first, second = map(float, half_widths(query))
    sums, numbers, products = _by_kind(planned, noisy, miss)
    (count,) = numbers
    alike = len(sums) == 1
    one, two = (_scaled(sums[place], unit) for place, unit in ((0, first), (-1, second)))
    part = planned.parts[-1]
    assert isinstance(part, NoisyMeasure)
    centre = part.measure.centre * part.step / first / second
    product = _scaled(_scaled(products[0], first), second)
    rows = np.maximum(count.values, 1.0)
    value = centre + product.values / rows - (one.values / rows) * (two.values / rows)
    least, most = _range(centre, product, _products(one, two, alike=alike), count)
    floor = 0.0 if alike else -1.0
    value, least, most = (np.clip(figure, floor, 1.0) for figure in (value, least, most))
    widest, narrowest = _sample(np.maximum(count.low, 2.0)), _sample(np.maximum(count.high, 2.0))
    value = value * _sample(np.maximum(count.values, 2.0))
    least = least * np.where(least < 0, widest, narrowest)
    most = most * np.where(most < 0, narrowest, widest)
    # Of fewer than two rows it is 0.
    few = count.low < 2
    least, most = np.where(few, np.minimum(least, 0.0), least), np.where(few, np.maximum(most, 0.0), most)
    scale = part.scale * (part.step / first / second) / rows
    unit = first * second
    if query.kind == "std":
        root = np.sqrt(value)
        # The scale of a root, by its slope, but not beyond the root of the scale.
        steep = np.sqrt(scale)
        scale = np.where(2 * root * steep > scale, scale / np.maximum(2 * root, 1e-300), steep)
        widths = query.values.distances
        return (
            widths(root * first, np.rint),
            widths(scale * first),
            widths(np.sqrt(least) * first, np.floor),
            widths(np.sqrt(most) * first),
        )
    return value * unit, scale * unit, least * unit, most * unit


def _by_kind(
    planned: PlannedQuery, noisy: Sequence[NDArray[np.int64]], miss: float
) -> tuple[list[_Noisy], list[_Noisy], list[_Noisy]]:
    """Return the sums, the number of rows and the products, each in its own unit with its bound."""
    found: dict[str, list[_Noisy]] = {"sum": [], "values": [], "product": []}
    for part, values in zip(planned.parts, noisy, strict=True):
        assert isinstance(part, (NoisyMeasure, Combined))
        reach = part.reach(miss / len(planned.parts))
        found[part.measure.kind].append(_Noisy(values.astype(np.float64) * part.step, reach))
    return found["sum"], found["values"], found["product"]


def _scaled(figure: _Noisy, unit: float) -> _Noisy:
    return _Noisy(figure.values / unit, figure.reach / unit)


def _sample(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows / (rows - 1)


def _products(one: _Noisy, two: _Noisy, *, alike: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest product of two sums within their bounds, of a square if they are one sum."""
    if alike:
        nearest = np.maximum(np.abs(one.values) - one.reach, 0.0)
        return nearest**2, (np.abs(one.values) + one.reach) ** 2
    corners = [a * b for a in (one.low, one.high) for b in (two.low, two.high)]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _range(
    centre: float, product: _Noisy, squares: tuple[NDArray[np.float64], NDArray[np.float64]], count: _Noisy
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest of centre + P u - Q u**2, u being 1 / n for an n of at least 1 within bounds.

    A parabola is least and largest at an end or at its vertex, P / 2 Q.
    """
    ends = 1 / np.maximum(count.high, 1.0), 1 / np.maximum(count.low, 1.0)

    def extreme(p: NDArray[np.float64], q: NDArray[np.float64], take: np.ufunc) -> NDArray[np.float64]:
        vertex = np.clip(p / np.where(q == 0, np.inf, 2 * q), *ends)
        found: NDArray[np.float64] = take.reduce([p * u - (q * u) * u for u in (*ends, vertex)])
        return centre + found

    low, high = squares
    return extreme(product.low, high, np.minimum), extreme(product.high, low, np.maximum)
