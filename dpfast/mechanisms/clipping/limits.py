"""Noisy numbers of privacy units, by their groups and by their rows there -> the limits of least predicted error.

All of it is post-processing: a poor choice costs accuracy, and no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.mechanisms.noise.integer_noise import IntegerNoise

__all__ = ["Aim", "AimKind", "Holdings", "Outlook", "choose_limits", "told_counts", "with_tail"]

#: What a query loses where units are cut: rows, or pairs of a unit and a group; or it is a ratio of what is kept.
AimKind: TypeAlias = Literal["rows", "units", "ratio"]
_Floats: TypeAlias = "NDArray[np.float64]"

#: What is lost is spread over groups as if its norm were divided by their number to this power, as `choose_norm` has.
_SPREADING = 0.2
#: A ratio is off by this part of its range where all is lost: those who are cut are a little different.
_BIAS = 0.02
#: Noise alone is taken for units with this probability at the first place, and beyond with one that is smaller in
#: proportion to the number there, as the noise of a limit as large is larger.
_MISTAKEN, _LEAST = 2e-3, 1e-12
#: Values are taken to spread by this part of their range: a ratio of few rows is off by what these are by chance.
_SPREAD = 0.1
#: A tail goes on by the power with which it falls to its last place from the nearest one with so many times as many
#: units, until it has less than half a unit.
_STEEP, _HALF = 4.0, 0.5
#: So many limits are considered from each power of two to the next.
_FINE = 4


@dataclass(frozen=True)
class Aim:
    """A query whose error is to be small: its kind, and the noise that its share of the budget buys.

    Attributes
    ----------
    kind
        What it loses where units are cut.
    laplace, gaussian
        The deviations of its noise where one unit has one row, of Laplace noise, or of what is paid for group by group,
        and of Gaussian noise; infinite for noise that it cannot have.
    figures
        How many figures it has for each group.

    """

    kind: AimKind
    laplace: float
    gaussian: float = math.inf
    figures: int = 1

    def noise(self, groups: _Floats, rows: _Floats) -> _Floats:
        """Return the deviation of its noise at limits."""
        found: _Floats = np.minimum(self.laplace * groups, self.gaussian * np.sqrt(groups))
        return found if self.kind == "units" else found * rows


@dataclass(frozen=True)
class Outlook:
    """What is known of a release beforehand.

    Attributes
    ----------
    aims
        Its queries.
    groups
        How many groups there are; None where keys are selected.
    keys
        Of the selection of keys: how many units the threshold is for each group that a unit may hold, by Laplace noise;
        and for the root of their number, by Gaussian noise. None where keys are public.

    """

    aims: Sequence[Aim]
    groups: int | None
    keys: tuple[float, float] | None = None


@dataclass(frozen=True)
class Holdings:
    """What units have, as far as it is told.

    Attributes
    ----------
    groups, units
        Numbers of groups, and about how many units have them.
    rows, shares
        Numbers of rows in a group, and which part of the pairs of a unit and a group has them.

    """

    groups: _Floats
    units: _Floats
    rows: _Floats
    shares: _Floats

    def pairs(self, limit: _Floats | float = math.inf) -> _Floats:
        """Return how many pairs are kept at limits on groups."""
        kept: _Floats = np.minimum(self.groups, np.asarray(limit)[..., None]) @ self.units
        return kept

    def each(self, limit: _Floats | float = math.inf) -> _Floats:
        """Return how many rows of a pair are kept on average, at limits on rows."""
        kept: _Floats = np.minimum(self.rows, np.asarray(limit)[..., None]) @ self.shares
        return kept


def told_counts(points: NDArray[np.int64], noisy: NDArray[np.int64], noise: IntegerNoise) -> _Floats:
    """Return numbers of units at points without the noise in the many places where there are none.

    Parameters
    ----------
    points
        Increasing; each stands for the numbers from it to below the next.
    noisy, noise
        What was drawn, and its noise.

    Notes
    -----
    Beyond the last place that tells of units there is nothing: one place, and beyond it 2, 4 or 8 side by side, with
    more than noise alone exceeds with probability 0.005, divided by the root of how many times as large it is as the
    first. So noise, which costs more at large numbers, is less often taken for units there. Below that place, sums from
    each place to it are made never rising: their differences are at least 0, and add up to nearly the same.

    Examples
    --------
    >>> from dpfast.mechanisms.noise.integer_noise import laplace_of_scale
    >>> points, counts = np.array([1, 2, 3, 4, 6, 8]), np.array([500, -5, 90, 260, -9, 7])
    >>> told_counts(points, counts, laplace_of_scale(5.0, 1)).tolist()
    [495.0, 0.0, 90.0, 260.0, 0.0, 0.0]

    """
    found, last = np.zeros(points.size), _last_place(points, noisy.astype(np.float64), noise)
    if last is None:
        return found
    sums = np.cumsum(noisy[last::-1].astype(np.float64))
    above = np.maximum.accumulate(np.maximum(sums, 0.0))[::-1]
    found[: last + 1] = above - np.append(above[1:], 0.0)
    return found


def with_tail(points: NDArray[np.int64], units: _Floats) -> _Floats:
    """Return numbers of units at points with those that are likely beyond the last one that tells of any.

    Where units become fewer toward the last place by a power of the points, that power goes on beyond it, down to half
    a unit: else the few with very much, which noise hides one by one, would count for nothing, and limits be too low
    for them. Where they do not, as where all have about as much, nothing is added.

    It is right for rows in a group. Numbers of groups mostly end more steeply: on the flights of the demo, limits that
    follow from a tail of these lost half as much again.

    Parameters
    ----------
    points, units
        What `told_counts` returns, in units.

    Examples
    --------
    >>> points, told = np.array([1, 2, 4, 8, 16, 32]), np.array([600.0, 200.0, 100.0, 0.0, 0.0, 0.0])
    >>> with_tail(points, told).round(1).tolist()
    [600.0, 200.0, 66.7, 22.2, 7.4, 3.7]
    >>> with_tail(points, np.array([0.0, 0.0, 900.0, 0.0, 0.0, 0.0])).tolist()
    [0.0, 0.0, 900.0, 0.0, 0.0, 0.0]

    """
    told = np.flatnonzero(units)
    if not told.size:
        return units
    last = int(told[-1])
    above = np.cumsum(units[::-1])[::-1]
    before = np.flatnonzero(above[:last] >= _STEEP * above[last])
    if not before.size:
        return units
    place = int(before[-1])
    power = math.log(above[place] / above[last]) / math.log(points[last] / points[place])
    beyond = above[last] * (points[last:] / points[last]) ** -power
    beyond[beyond < _HALF] = 0.0
    found = units.copy()
    found[last:] = beyond - np.append(beyond[1:], 0.0)
    return found


def _last_place(points: NDArray[np.int64], noisy: _Floats, noise: IntegerNoise) -> int | None:
    """Return the last place that tells of units; None where none does."""
    misses = np.maximum(_MISTAKEN * (points[0] / points), _LEAST).tolist()
    found = -1
    for width in (1, 2, 4, 8):
        # None of those side by side tells by itself: else all around it would.
        sums = np.convolve(noisy[found + 1 :], np.ones(width), "valid") if noisy.size - found > width else np.zeros(0)
        likely = np.flatnonzero(sums > noise.deviation)[::-1]
        for place in (likely + found + width).tolist():
            reach = noise.half_width(misses[place]) if width == 1 else noise.reach(misses[place]) * noise.deviation
            if sums[place - found - width] > reach * math.sqrt(width):
                found = place
                break
    return found if found >= 0 else None


def _candidates(most: int) -> _Floats:
    exponents = np.arange(_FINE * most.bit_length()) / _FINE
    found = np.unique(np.floor(2.0**exponents))
    return np.append(found[found < most], float(most))


def choose_limits(
    holdings: Holdings, outlook: Outlook, most: tuple[int, int], given: tuple[int | None, int | None] = (None, None)
) -> tuple[int, int]:
    """Return the limits that make the predicted error least, on groups and on rows in each.

    Parameters
    ----------
    holdings
        What units have.
    outlook
        What is asked, and at what noise.
    most
        The largest limits on groups and rows.
    given
        Limits that are not chosen.

    Notes
    -----
    Of a unit with g groups, min(g, G) are kept, and of n rows in a group min(n, R), as many of each number in every
    group. What counts and sums lose is spread over the groups as in `choose_norm`. Ratios lose nothing but precision,
    which is their noise by what is kept, and a little of what those are different who are cut. Where keys are selected,
    the groups are taken to have sizes like 1, 1/2, 1/3, ... (Zipf's law), and those below the threshold are lost. The
    product of the errors of all queries is made least, so that none counts for more by its unit.

    Where nothing is told, noise is all, and limits of 1 have the least.
    """
    groups, rows = (
        _candidates(largest) if fixed is None else np.array([float(fixed)])
        for largest, fixed in zip(most, given, strict=True)
    )
    error = _predicted(holdings, outlook, groups[:, None], rows[None, :])
    # Of equals the smallest: the first.
    place = int(np.argmin(error))
    return int(groups[place // rows.size]), int(rows[place % rows.size])


def _predicted(holdings: Holdings, outlook: Outlook, groups: _Floats, rows: _Floats) -> _Floats:
    """Return the logarithm of the product of all predicted errors."""
    pairs, kept_pairs = float(holdings.pairs()), holdings.pairs(groups[:, 0])[:, None]
    each, kept_each = float(holdings.each()), holdings.each(rows[0])[None, :]
    if outlook.keys is None:
        number: _Floats | float = float(max(outlook.groups or 1, 1))
        missing, spreading = np.zeros(1), number**-_SPREADING
    else:
        laplace, gaussian = outlook.keys
        threshold = 1 + np.minimum(laplace * groups, gaussian * np.sqrt(groups))
        largest = _largest_of(max(pairs, 1.0))
        # So many units does a key need, as many of its units as of all lose their pairs.
        needed = threshold * max(pairs, 1.0) / np.maximum(kept_pairs, 1.0)
        number = np.maximum(largest / needed, 1.0)
        missing = np.sqrt(largest * needed)
        spreading = math.pi / math.sqrt(6) * largest / max(pairs, 1.0)
    total = np.zeros(np.broadcast_shapes(groups.shape, rows.shape))
    for aim in outlook.aims:
        noise = aim.noise(groups, rows)
        have, kept = (pairs, kept_pairs) if aim.kind == "units" else (pairs * each, kept_pairs * kept_each)
        if aim.kind == "ratio":
            rows_each = np.maximum(kept / number, 1e-6)
            error = np.hypot(noise / rows_each, _SPREAD / np.sqrt(rows_each)) + _BIAS * (1 - kept / max(have, 1.0))
            error = error * np.maximum(missing, 1.0)
        else:
            unit = have / max(pairs, 1.0)
            lost = (have - kept) * spreading * aim.figures**-_SPREADING
            error = np.hypot(np.hypot(lost, np.sqrt(number * aim.figures) * noise), missing * unit)
        total = total + np.log(error)
    return total


def _largest_of(pairs: float) -> float:
    """Return the size c of the largest group, where groups of c, c / 2, c / 3, ... have so many pairs together."""
    largest = pairs
    for _ in range(20):
        largest = pairs / (math.log(largest + 1) + 0.58)
    return max(largest, 1.0)
