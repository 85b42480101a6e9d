"""About where values lie -> bounds to clip them to, by predicted error: all of it post-processing.

Wider bounds cost noise, narrower ones what is cut off: both are predicted for every pair of bounds on a public grid,
and the pair is taken by which their squares add up to least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.clipping.choosing import SPREADING, Survey
from dpfast.mechanisms.clipping.spans import Span

__all__ = ["Stakes", "bounds_around", "bounds_from_zero", "bounds_of_all"]

#: Bounds are considered on a grid that is so many times as fine as that of the counts.
_FINER = 4
#: So many lower bounds are weighed at a time.
_ROWS = 64


@dataclass(frozen=True)
class Stakes:
    """What bounds are weighed by.

    Attributes
    ----------
    noise
        The deviation of the noise on a group's sum where values lie within 1 of the middle of the bounds, or, of
        squares, of that of their squares.
    power
        1 where values are added up, 2 where their squares are.
    rows
        How many rows of a unit count, about.
    groups
        How many groups there are, about.

    """

    noise: float
    power: int
    rows: float
    groups: float


class _Places:
    """Places around the centre, as distances from it, and how many units lie beyond each."""

    def __init__(self, span: Span) -> None:
        edges = span.above.edges
        exponents = np.arange(_FINER * (edges.size - 1) + 1) / _FINER
        distances = np.exp(np.interp(exponents, np.arange(edges.size), np.log(edges)))
        above, below = (_beyond(side, distances) for side in (span.above, span.below))
        units = max(span.units, above[0], below[0])
        self.places = np.concatenate([-distances[::-1], distances])
        self.above = np.concatenate([np.maximum(units - below[::-1], above[0]), above])
        self.below = np.concatenate([below[::-1], np.maximum(units - above, below[0])])

    def lost_above(self, power: int) -> NDArray[np.float64]:
        """Return how much all units together exceed each place, of values or of their squares."""
        areas = self._areas(self.above, power)
        return np.append(np.cumsum(areas[::-1])[::-1], 0.0)

    def lost_below(self, power: int) -> NDArray[np.float64]:
        """Return how much all units together fall short of each place."""
        return np.insert(np.cumsum(self._areas(self.below, power)), 0, 0.0)

    def _areas(self, numbers: NDArray[np.float64], power: int) -> NDArray[np.float64]:
        weights = numbers * power * np.abs(self.places) ** (power - 1)
        areas: NDArray[np.float64] = (weights[1:] + weights[:-1]) / 2 * np.diff(self.places)
        return areas


def _beyond(side: Survey, distances: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.interp(distances, side.edges, np.append(side.above(), 0.0))
    return found


def bounds_around(span: Span, stakes: Stakes) -> tuple[Fraction, Fraction]:
    """Return bounds for what is added up around their middle: means, and with a power of 2 variances.

    Notes
    -----
    What units lose is spread over groups as `choose_norm` has it. What is lost above and below has opposite signs in a
    sum; how it falls on groups is not known, and so their squares are added up.

    """
    around = _Places(span)
    power = stakes.power
    # As parts of the farthest distance, whose powers and their squares are floats.
    whole = float(around.places[-1])
    places, scale = around.places / whole, whole**power
    below, above = (_cost(lost / scale, stakes) ** 2 for lost in (around.lost_below(power), around.lost_above(power)))
    least, low, high = math.inf, 0, places.size - 1
    # Some lower bounds at a time, with all upper ones above the first of them: what is compared stays in the cache.
    for first in range(0, places.size - 1, _ROWS):
        half = (places[None, first:] - places[first : first + _ROWS, None]) / 2
        errors = _noise(half, stakes) ** 2
        errors += below[first : first + _ROWS, None]
        errors += above[None, first:]
        errors[half <= 0] = math.inf
        row, column = divmod(int(np.argmin(errors)), errors.shape[1])
        if errors[row, column] < least:
            least, low, high = float(errors[row, column]), first + row, first + column
    return span.centre + Fraction(float(around.places[low])), span.centre + Fraction(float(around.places[high]))


def bounds_from_zero(span: Span, stakes: Stakes) -> tuple[Fraction, Fraction]:
    """Return bounds for what is added up as it is: only the larger of their magnitudes costs noise.

    The other one is as large, or 0 where nothing tells of values on its side of 0.
    """
    around = _Places(span)
    centre = float(span.centre)
    values = around.places + centre
    sizes = np.unique(np.abs(values))
    sizes = sizes[sizes > 0]
    above = np.interp(sizes, values, around.lost_above(1), right=0.0)
    below = np.interp(-sizes, values, around.lost_below(1), left=0.0)
    errors = np.hypot(_cost(np.hypot(above, below), stakes), _noise(sizes, stakes))
    size = Fraction(float(sizes[int(np.argmin(errors))]))
    near = float(size) / 2**10
    has_below, has_above = np.interp(-near, values, around.below) > 0, np.interp(near, values, around.above) > 0
    if not has_above and not has_below:
        return -size, size
    return (-size if has_below else Fraction(0)), (size if has_above else Fraction(0))


def bounds_of_all(span: Span) -> tuple[Fraction, Fraction]:
    """Return bounds that leave out next to nobody."""
    ends = []
    for side in (span.below, span.above):
        told = np.flatnonzero(side.above() > 0)
        ends.append(Fraction(float(side.edges[int(told[-1]) + 1 if told.size else 0])))
    return span.centre - ends[0], span.centre + ends[1]


def _cost(lost: NDArray[np.float64], stakes: Stakes) -> NDArray[np.float64]:
    cost: NDArray[np.float64] = lost * (stakes.rows / max(stakes.groups, 1.0) ** SPREADING)
    return cost


def _noise(half: NDArray[np.float64], stakes: Stakes) -> NDArray[np.float64]:
    noise: NDArray[np.float64] = math.sqrt(max(stakes.groups, 1.0)) * stakes.noise * np.abs(half) ** stakes.power
    return noise
