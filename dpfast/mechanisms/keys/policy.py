"""Keys selected by a policy: each unit in turn spends one unit of norm on those of its keys that still lack most.

The l2-descent policy of Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin (2020). Every key's sum begins at 0. Units
come one after the other. A unit that holds the keys S looks at what their sums lack, v = cutoff - H on S, and adds v
where its Euclidean norm is at most 1, else v / norm(v): nothing is spent on sums that have what they need. Then
Gaussian noise is added to every sum, and keys are shown where it reaches a threshold; the cutoff lies a few sigma
above it.

**Sensitivity in exact arithmetic.** In terms of what lacks, a unit takes v to v - P(v), P the projection to the unit
ball: a map that moves no two points apart, since projections to convex sets are firmly nonexpansive. Take a unit away:
up to its turn nothing changes, there the sums move by a vector of norm at most 1, and every unit after it, the same in
both worlds and in the same order, leaves the distance as it is or makes it smaller. So the sums of all keys move by a
vector of norm at most 1. For v >= 0, v - P(v) = v max(0, 1 - 1 / norm(v)) grows with every entry of v. So a unit more
leaves no key lacking more than without it, then and after every later unit: the difference that it makes to the sums
has no negative entry. Two exchanged units move them by a - b, both of no negative entry and of norm at most 1: by
sqrt(2).

**The order** must be the same for all other units whether one is there or not. Units are ordered by what they hold and
nothing else: those of more keys first, of as many by their keys, sorted, as words are in a dictionary. Keys are
compared by their values: without one unit some keys may be gone, but the others stand as they stood. Units that hold
the same keys are interchangeable. (What a unit holds is a function of its own rows and its own random words, see
`dpfast.aggregation.units`; take the same words in both worlds.) Which units come first decides only how many keys are
shown; units of many keys first shows the most, since later ones can spend where those left gaps.

**Rounding.** Sums are whole numbers of steps of 2**-49. A step of a unit of s keys is computed in float64, of which
the operations err by u = 2**-53 at most: norm(v)**2 by (s + 2) u, its root by half of that and u, the quotient
1 / norm(v) and the product with v (itself rounded) by 3 u, the sum with 1/2 by u, all relative, together
(s / 2 + 6) u, with terms of higher order below a millionth of this; and rounding to whole steps by 1/2 a coordinate.
In steps: (s / 2 + 6) / 16 + sqrt(s) / 2 < 0.91 s from the exact step from the same sums, in Euclidean norm. (It is the
same where rounding decides whether v is shortened at all: its norm is then 1 but for the same error.) Exact steps move
no two points apart, so after all units the sums are off by at most 0.91 n 2**-49 from exact arithmetic, where n is the
number of (unit, key) pairs. These are at most as many as rows, of which there may be 2**38 (as for sums:
`dpfast.aggregation.contributions`): less than 0.00045 in each of two worlds. Last, sums are rounded down to `STEPS`,
which moves their difference by less than 2**-24 for each of at most 2**31 keys, sqrt(2**31) 2**-24 < 0.00277. So the
sensitivity of the rounded sums is below 1 + 2 * 0.00045 + 0.00277 < 1 + 2**-8, and below sqrt(2) (1 + 2**-8) for
exchanged units. Beyond 2**38 rows nothing is claimed, as for every other release.

**Keys of one unit alone**, t of them: their sums are 0 at its turn, so that each lacks the cutoff c, and gets at most
c / norm(v) <= 1 / sqrt(t), whatever else the unit holds, and rounding adds less than two steps and a half of 2**-24 for
s up to 2**31: the proof of `dpfast.mechanisms.keys.thresholds` holds for these numbers. Every other key is held by
somebody in both worlds, and is looked at in both, also where its sum is rounded to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.holdings import Holdings
from dpfast.mechanisms.keys.thresholds import Lonely
from dpfast.mechanisms.keys.weights import STEPS, lonely_keys

__all__ = ["SENSITIVITY", "cutoff_above", "lonely_by_policy", "sums_by_policy", "units_needed"]

#: What one unit moves the sums by, in Euclidean norm and steps: 1 + 2**-8, rounding included.
SENSITIVITY = STEPS + (STEPS >> 8)

#: Sums are added up in steps finer by these bits, of which a unit of norm has 2**49.
_FINER = 25
_ONE = 49
_LARGEST_CUTOFF = (1 << (63 - _FINER)) - 1

#: What rounding adds to a lonely key's sum at most, and one more.
_ROUNDED = 4

#: How many standard deviations the cutoff lies above the threshold.
_ABOVE = 8


def cutoff_above(threshold: int, scale: float) -> int | None:
    """Return the cutoff, in steps: so far above the threshold that a key that reaches it is shown for sure, nearly.

    None where it would not fit: sums of 2**14 units of norm or more are not added up.
    """
    cutoff = threshold + math.ceil(_ABOVE * scale)
    return cutoff if cutoff <= _LARGEST_CUTOFF else None


def lonely_by_policy(most: int) -> list[Lonely]:
    """Return what a unit may hold alone: as for weights, and a few steps of rounding."""
    return [Lonely(case.keys, case.number + _ROUNDED) for case in lonely_keys("gaussian", most)]


def units_needed(keys: int, threshold: int, cutoff: int) -> int:
    """Return how many units of so many keys bring one key to the threshold, where all their other keys lack the cutoff.

    Notes
    -----
    What others lack makes a unit's step smaller, so that no other data need more units. With v = cutoff - H, one unit
    lowers v by v / sqrt(v**2 + a**2), a = sqrt(keys - 1) cutoff; as steps grow smaller, so many of them reach further
    than the flow, which needs the integral of sqrt(1 + a**2 / v**2).

    Examples
    --------
    >>> units_needed(1, 10 * STEPS, 20 * STEPS), units_needed(100, 10 * STEPS, 20 * STEPS)
    (10, 139)

    """
    high, low = cutoff / STEPS, (cutoff - threshold) / STEPS
    a = math.sqrt(keys - 1) * high

    def primitive(v: float) -> float:
        root = math.hypot(v, a)
        return root - a * math.log((a + root) / v) if a else v

    # Rounding of sums and of this is far below a millionth.
    return max(math.ceil((primitive(high) - primitive(low)) * (1 + 1e-6) - 1e-5), 1)


def sums_by_policy(runs: Sequence[Iterable[Holdings]], singles: NDArray[np.int64], cutoff: int) -> NDArray[np.int64]:
    """Return every key's sum, in steps, rounded down.

    Guarantee
        One unit more or less moves the sums by at most `SENSITIVITY` in Euclidean norm, two exchanged ones by sqrt(2)
        times as much: see the module's docstring. They are exact and private, each from 0 to the cutoff.

    Parameters
    ----------
    runs
        What units hold, as `sorted_units` has it: each run is of other units, in order, in blocks of some of them. One
        block of each run is in memory at a time.
    singles
        How many units hold a key alone: one entry per key. It is read when all runs have been gone through.
    cutoff
        In steps: see `cutoff_above`.

    Examples
    --------
    >>> from dpfast.aggregation.holdings import sorted_units
    >>> part, singles = Holdings(np.array([1, 3]), np.array([1, 0, 1], np.int32)), np.zeros(2, np.int64)
    >>> units = sorted_units(part, np.arange(2, dtype=np.int32), singles)
    >>> (sums_by_policy([[units]], singles, 2 * STEPS) / STEPS).round(4).tolist()
    [0.7071, 1.7071]

    """
    sums = np.zeros(singles.size, np.int64)
    merged = _Merged([iter(run) for run in runs])
    while (run := merged.add(cutoff << _FINER, sums)) >= 0:
        merged.load(run)
    lack = (cutoff << _FINER) - sums
    fills = singles > (lack >> _ONE)
    sums[fills] = cutoff << _FINER
    sums[~fills] += singles[~fills] << _ONE
    sums >>= _FINER
    return sums


class _Merged:
    """A block of every run, side by side in one array for all."""

    def __init__(self, runs: list[Iterator[Holdings]]) -> None:
        self._runs = runs
        self._units, self._last_units, self._starts = np.zeros((3, len(runs)), np.int64)
        self._stops, self._groups = np.empty((len(runs), 0), np.int64), np.empty((len(runs), 0), np.int32)
        self._heap = np.empty(len(runs), np.int64)
        for run in range(len(runs)):
            self.load(run)

    def load(self, run: int) -> None:
        """Take the next block of a run that has no unit left here, if it has another one."""
        for block in self._runs[run]:
            if block.stops.size:
                self._make_room(block.stops.size, block.groups.size)
                first, start = run * self._stops.shape[1], run * self._groups.shape[1]
                self._stops[run, : block.stops.size] = block.stops + start
                self._groups[run, : block.groups.size] = block.groups
                self._units[run], self._last_units[run], self._starts[run] = first, first + block.stops.size, start
                return

    def add(self, cutoff: int, sums: NDArray[np.int64]) -> int:
        """Let units add to the sums until a run has none left here, and return this run, or -1 if all have none."""
        from dpfast.kernels.grouping.policy import add_by_policy

        stops, groups = self._stops.reshape(-1), self._groups.reshape(-1)
        places = self._units, self._last_units, self._starts
        return int(add_by_policy(*places, stops, groups, self._heap, cutoff, 2.0**_ONE, sums))

    def _make_room(self, units: int, groups: int) -> None:
        """Let blocks of so many units and groups fit, wherever they come."""
        room_of_units, room = self._stops.shape[1], self._groups.shape[1]
        if units <= room_of_units and groups <= room:
            return
        # By half at least, so that few blocks in a row are moved.
        more_units, more = max(units - room_of_units, room_of_units // 2), max(groups - room, room // 2)
        runs = np.arange(len(self._runs))
        self._stops = np.pad(self._stops + (more * runs)[:, None], ((0, 0), (0, more_units)))
        self._groups = np.pad(self._groups, ((0, 0), (0, more)))
        self._units += more_units * runs
        self._last_units += more_units * runs
        self._starts += more * runs
