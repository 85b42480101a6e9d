"""How much privacy units lose where they are bounded: exact histograms of units, to which each adds 1 in one place.

A unit that loses x rows is counted at one of the two public points next to x, chosen at random such that the expected
point is x. So the sum of all points, each times its number of units, is the number of all rows lost on average, and yet
each unit is counted once: one more or fewer changes one number by 1. Of what is kept, and of groups, the same.

The proof that this sensitivity holds: what a unit has and keeps, and at which point it is counted, is a function of its
own rows and of words that no other unit reads (`dpfast.aggregation.units`). Units that neighbouring data share are
counted at the same points in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.private import Private

__all__ = ["MOST_ROWS", "LossCounts", "LossKind", "Losses", "losses_of", "points_up_to"]

#: What is lost: rows; or groups, each of which is a pair of a unit and a group.
LossKind: TypeAlias = Literal["rows", "groups"]
#: No unit has more rows: that is the documented limit of all rows.
MOST_ROWS = 2**38


def points_up_to(most: int) -> NDArray[np.int64]:
    """Return 0, the powers of two below a number, and the number.

    Examples
    --------
    >>> points_up_to(20).tolist()
    [0, 1, 2, 4, 8, 16, 20]

    """
    powers = (1 << place for place in range(most.bit_length()))
    return np.array([0, *(power for power in powers if power < most), most], np.int64)


@dataclass(frozen=True, repr=False)
class Losses(Private):
    """What units have and keep, one number for each unit, 0 for units without rows: exact and private.

    Attributes
    ----------
    lost, kept : int64
        Of rows and of groups.

    """

    lost: Mapping[LossKind, NDArray[np.int64]]
    kept: Mapping[LossKind, NDArray[np.int64]]


def losses_of(
    rows: NDArray[np.int64], kept_rows: NDArray[np.int64], groups: NDArray[np.int64], max_groups: int
) -> Losses:
    """Return what units have and keep.

    Parameters
    ----------
    rows, groups
        What each has.
    kept_rows, max_groups
        How many of its rows it keeps, and of its groups at most.

    """
    kept_groups = np.minimum(groups, min(max_groups, MOST_ROWS))
    lost: dict[LossKind, NDArray[np.int64]] = {"rows": rows - kept_rows, "groups": groups - kept_groups}
    return Losses(lost, {"rows": kept_rows, "groups": kept_groups})


@dataclass(frozen=True, repr=False)
class LossCounts(Private):
    """How many units are counted at each public point, by what they lose and by what they keep: exact and private.

    Attributes
    ----------
    lost, kept : int64
        Of rows and of groups, as many as there are points. All units that have a row are in each.
    points_of_kept
        The points of what is kept; of what is lost they are `points_up_to` `MOST_ROWS`.

    """

    lost: Mapping[LossKind, NDArray[np.int64]]
    kept: Mapping[LossKind, NDArray[np.int64]]
    points_of_kept: Mapping[LossKind, NDArray[np.int64]]

    #: The points of what is lost.
    POINTS_OF_LOST = points_up_to(MOST_ROWS)

    @classmethod
    def of_none(cls, max_groups: int, max_rows: int) -> LossCounts:
        """Return the counts of no unit; the points depend on the limits alone, and not on how many groups there are."""
        groups = points_up_to(min(max_groups, MOST_ROWS))
        points: dict[LossKind, NDArray[np.int64]] = {
            "rows": points_up_to(min(max_groups * max_rows, MOST_ROWS)),
            "groups": groups,
        }
        lost: dict[LossKind, NDArray[np.int64]] = {kind: np.zeros_like(cls.POINTS_OF_LOST) for kind in points}
        return cls(lost, {kind: np.zeros_like(of_it) for kind, of_it in points.items()}, points)

    def add(self, losses: Losses, words: Callable[[int], np.ndarray]) -> None:
        """Count units; ``words(n)`` gives n fresh uniform uint64."""
        has_rows = losses.kept["rows"] > 0
        for kind in self.lost:
            for counts, points, numbers in (
                (self.lost[kind], self.POINTS_OF_LOST, losses.lost[kind]),
                (self.kept[kind], self.points_of_kept[kind], losses.kept[kind]),
            ):
                counts += np.bincount(_places(numbers[has_rows], points, words), minlength=points.size)


def _places(
    numbers: NDArray[np.int64], points: NDArray[np.int64], words: Callable[[int], np.ndarray]
) -> NDArray[np.int64]:
    """Return the place of a point next to each number, of which the number is the mean."""
    lower = np.minimum(np.searchsorted(points, numbers, side="right") - 1, points.size - 2)
    above = (numbers - points[lower]) / (points[lower + 1] - points[lower])
    # Numbers beyond the last point are counted there. A word is read as a number from 0 to below 1.
    uniform = (words(max(numbers.size, 1))[: numbers.size] >> np.uint64(11)) * 2.0**-53
    found: NDArray[np.int64] = lower + (uniform < above)
    return found
