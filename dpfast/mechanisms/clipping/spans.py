"""Where a column's values lie, told by noisy histograms of privacy units over public cells: all of it post-processing.

Each unit is counted in one cell of a histogram. The first histogram has cells that double in width from 0 on, of both
signs. Where nearly all units lie in a few of its cells, which is far from 0 in relation to their spread, histograms of
equal cells zoom in. The last one has cells that grow from a centre on, on both sides, and tells how many units lie
farther than each distance from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from dpfast.mechanisms.clipping.choosing import Survey, exceeded
from dpfast.mechanisms.noise.integer_noise import IntegerNoise

__all__ = ["Counted", "Span", "find_span"]

#: From edges and a part of the budget (None for all that is left) to noisy counts between them, and their noise: what
#: lies below the first edge is in the first cell, what lies above the last one in the last.
Counted: TypeAlias = Callable[[Sequence[Fraction], Fraction | None], tuple[NDArray[np.int64], IntegerNoise]]

#: The first histogram's part of the budget, and that of each zoom of what is left then; the last one gets the rest.
_FIRST, _ZOOM, _ZOOMS = Fraction(1, 2), Fraction(1, 3), 3
#: Noise alone is taken for units in one of so many histograms next to where units are, and more rarely far from there.
_MISTAKEN = 0.01
#: Cells of the first histogram are near while their values are at most 2 to this power times as large, and beyond 2 to
#: that one all are as far.
_NEAR, _FARTHEST = 4, 34
#: Cells of a zoom; a spread over fewer than some of them is zoomed into again.
_CELLS, _FEW = 128, 16
#: So large a share of the units is nearly all.
_NEARLY_ALL = 0.9
#: Cells of the last histogram grow by this factor.
_GROWTH = math.sqrt(2.0)
_MOST_CELLS = 128


@dataclass(frozen=True)
class Span:
    """About where values lie.

    Attributes
    ----------
    centre
        A place in the middle of them.
    above, below
        How many units lie farther than a distance above it, and below it.
    units
        How many units have values, about.

    """

    centre: Fraction
    above: Survey
    below: Survey
    units: float


def find_span(count: Counted, doublings: tuple[int, int], finest: Callable[[Fraction], Fraction]) -> Span | None:
    """Return about where values lie; None where the counts do not tell of it.

    Parameters
    ----------
    count
        Draws a histogram.
    doublings
        The exponents of the smallest and the largest magnitude that are told apart.
    finest
        Returns how close bounds around a place may lie.

    """
    edges = _signed(doublings)
    counts, noise = count(edges, _FIRST)
    told = _told(counts, noise, _farther(_sizes(doublings), counts))
    if told is None:
        return None
    first, last = told
    units = max(float(counts[first : last + 1].sum()), 1.0)
    low, high = edges[first], edges[last + 1]
    narrow = _nearly_all(counts, first, last)
    closest = Fraction(0)
    if narrow is None:
        centre = _median(edges, counts, first, last)
    else:
        centre, closest = _zoom(count, edges[narrow[0]], edges[narrow[1] + 1], finest)
    # What the first histogram does not tell of lies next to what it does, if anywhere.
    farthest = max(high - centre, centre - low, closest) * 2
    closest = max(closest, finest(centre) / 2, farthest / 2 ** (_MOST_CELLS // 4))
    if narrow is None:
        closest = max(closest, abs(centre) / 32)
    distances = _growing(closest, farthest)
    both = [centre - distance for distance in reversed(distances)] + [centre] + [centre + one for one in distances]
    counts, noise = count(both, None)
    middle = len(distances)
    shown = np.array([distances[0] / 2, *distances], np.float64)
    return Span(
        centre,
        _beyond(shown, counts[middle:], noise),
        _beyond(shown, counts[:middle][::-1], noise),
        units,
    )


def _beyond(edges: NDArray[np.float64], counts: NDArray[np.int64], noise: IntegerNoise) -> Survey:
    # The first histogram told of units within half of the farthest distance.
    expected = float(edges[-1]) / 2
    return Survey(edges, counts.astype(np.float64), noise.deviation, noise.mechanism == "laplace", expected)


@cache
def _signed(doublings: tuple[int, int]) -> tuple[Fraction, ...]:
    """Return powers of two of both signs, and 0."""
    powers = [Fraction(2) ** exponent for exponent in range(doublings[0], doublings[1] + 1)]
    return (*(-power for power in reversed(powers)), Fraction(0), *powers)


def _growing(closest: Fraction, farthest: Fraction) -> list[Fraction]:
    """Return distances that grow by a factor, from the closest to the farthest."""
    cells = min(max(math.ceil(math.log(float(farthest / closest)) / math.log(_GROWTH)), 1), _MOST_CELLS)
    return [closest * Fraction(_GROWTH**place) for place in range(cells + 1)]


@cache
def _sizes(doublings: tuple[int, int]) -> NDArray[np.float64]:
    """Return the largest magnitudes in the cells between `_signed` edges, as powers of two."""
    places = np.abs(np.array([float(edge) for edge in _signed(doublings)]))
    sizes: NDArray[np.float64] = np.log2(np.maximum(places[1:], places[:-1]))
    return sizes


def _farther(sizes: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how much larger the values of each cell are than those of the most common one, as logarithms.

    A cell that noise alone fills makes the grid of the last histogram as much too coarse. So the probability of that
    is divided by as much, and what it costs is the same of every cell.
    """
    farther = np.clip(sizes - sizes[np.argmax(counts)], _NEAR, _FARTHEST) - _NEAR
    return np.asarray(farther * math.log(2.0))


def _told(counts: NDArray[np.int64], noise: IntegerNoise, farther: NDArray[np.float64]) -> tuple[int, int] | None:
    """Return the first and the last cell that tell of units: alone, or 2, 4 or 8 side by side.

    ``farther`` says for each cell by how much less often noise may do so, as logarithms.
    """
    rarely, laplace = math.log(4 * counts.size / _MISTAKEN) + farther, noise.mechanism == "laplace"
    found = []
    for width in (1, 2, 4, 8):
        if width > counts.size:
            break
        sums = np.convolve(counts, np.ones(width), "valid")
        rarest = sliding_window_view(rarely, width).max(axis=1)
        places = np.flatnonzero(sums > exceeded(rarest, width, noise.deviation, laplace=laplace))
        if places.size:
            found += [_inner(counts, int(place), int(place) + width - 1) for place in (places[0], places[-1])]
    if not found:
        return None
    return min(first for first, _ in found), max(last for _, last in found)


def _inner(counts: NDArray[np.int64], first: int, last: int) -> tuple[int, int]:
    """Return cells without those at the ends that have less than a tenth of them."""
    least = counts[first : last + 1].sum() / 10
    while counts[first] < least:
        first += 1
    while counts[last] < least:
        last -= 1
    return first, last


def _nearly_all(counts: NDArray[np.int64], first: int, last: int) -> tuple[int, int] | None:
    """Return a cell, or two side by side, that hold nearly all units of those told; None where none do."""
    whole = counts[first : last + 1].sum()
    for width in (1, 2):
        if last - first + 1 < width:
            break
        sums = np.convolve(counts[first : last + 1], np.ones(width), "valid")
        place = int(np.argmax(sums))
        if sums[place] >= _NEARLY_ALL * whole:
            return first + place, first + place + width - 1
    return None


def _median(edges: Sequence[Fraction], counts: NDArray[np.int64], first: int, last: int) -> Fraction:
    """Return the place that divides the counts between two cells."""
    sums = np.cumsum(np.maximum(counts[first : last + 1], 0))
    half = sums[-1] / 2
    cell = int(np.searchsorted(sums, half))
    inside = sums[cell] - (sums[cell - 1] if cell else 0)
    part = 1 - (sums[cell] - half) / inside if inside else 0.5
    left, right = edges[first + cell], edges[first + cell + 1]
    return left + (right - left) * Fraction(min(max(float(part), 0.0), 1.0))


def _zoom(
    count: Counted, low: Fraction, high: Fraction, finest: Callable[[Fraction], Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the middle of what lies between two places, and about how close to it units are told apart."""
    middle = (low + high) / 2
    left = 1 - _FIRST
    for _ in range(_ZOOMS):
        width = (high - low) / _CELLS
        if width < finest(middle) / 2:
            width = finest(middle) / 2
        cells = max(min(math.ceil((high - low) / width), _CELLS), 1)
        inner = [low + width * place for place in range(cells + 1)]
        # What lies outside is counted by itself.
        edges = [low - width, *inner, inner[-1] + width]
        counts, noise = count(edges, _ZOOM * left)
        left *= 1 - _ZOOM
        counts = counts[1:-1]
        # A false cell widens what is zoomed into in proportion to its distance.
        told = _told(counts, noise, 2 * np.log1p(np.abs(np.arange(counts.size) - np.argmax(counts))))
        if told is None:
            return middle, (high - low) / 4
        first, last = told
        middle = _median(inner, counts, first, last)
        if last - first >= _FEW or width <= finest(middle):
            return middle, width
        low, high = inner[max(first - 1, 0)], inner[min(last + 2, cells)]
    return middle, width
