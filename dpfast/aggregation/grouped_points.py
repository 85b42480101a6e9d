"""Points of a grid, group by group in one array: what quantiles are drawn from. Private until then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.private import Private
from dpfast.columns.fresh import fresh_array
from dpfast.kernels.grouping.by_group import (
    STAGED,
    count_codes,
    narrow_points,
    release_staged,
    sort_points,
    sort_staged,
)
from dpfast.threads import in_stretches, thread_count

__all__ = ["Collector", "GroupedPoints", "count_different", "point_dtype", "sorted_points"]

#: Groups whose waiting points fit into the second-level cache.
_MOST_STAGED = 8192
#: Rows whose memory is taken at once, where as many were met before: fresh pages cost more than what is written there.
_MOST_ROOM = 1 << 20
#: So many different values of a group are counted by a table, more by sorting.
_FEW = 4096


class GroupedPoints(Private):
    """The points of each group: a slice of one array, in any order.

    Attributes
    ----------
    points : int32 or int64
        All of them, numbered from 1.
    starts, stops : int64
        Each group's slice.

    """

    __slots__ = ("points", "starts", "stops")

    def __init__(
        self, points: NDArray[np.signedinteger[Any]], starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> None:
        self.points, self.starts, self.stops = points, starts, stops

    def __getitem__(self, chosen: Any) -> GroupedPoints:
        """Return chosen groups, sharing the points."""
        return GroupedPoints(self.points, self.starts[chosen], self.stops[chosen])

    def __len__(self) -> int:
        return self.starts.size

    def __repr__(self) -> str:
        """Show nothing of the points."""
        return f"GroupedPoints({self.starts.size} groups, private)"


def point_dtype(points: int) -> type[np.signedinteger[Any]]:
    """Return the type of points numbered from 1."""
    return np.int32 if points < 2**31 - 1 else np.int64


def count_different(points: GroupedPoints) -> NDArray[np.int64]:
    """Return how many different points (int64) each group has, of points that stand group by group.

    Examples
    --------
    >>> count_different(GroupedPoints(np.array([5, 5, 7, 5]), np.array([0, 3, 3]), np.array([3, 3, 4])))
    array([2, 0, 1])

    """
    counts = np.zeros(len(points), np.int64)
    if counts.size > _MOST_STAGED:
        owners = np.repeat(np.arange(counts.size, dtype=np.uint32), points.stops - points.starts)
        found = pl.DataFrame({"group": owners, "point": points.points}).unique()["group"].value_counts()
        counts[found["group"].to_numpy()] = found["count"].to_numpy()
        return counts

    def count(first: int, last: int) -> None:
        table = np.zeros(2 * _FEW, np.int64)
        for group in range(first, last):
            own = points.points[points.starts[group] : points.stops[group]]
            counts[group] = -1
            if own.size > _FEW:
                table[:] = 0
                counts[group] = count_codes(own, table, _FEW)
            if counts[group] < 0:
                own.sort()
                counts[group] = (own.size > 0) + np.count_nonzero(own[1:] != own[:-1])

    in_stretches(count, len(points), thread_count(None, points.points.size))
    return counts


def sorted_points(points: GroupedPoints) -> tuple[NDArray[np.int64], NDArray[np.signedinteger[Any]]]:
    """Return each point's group and the points, sorted by both.

    Examples
    --------
    >>> found = sorted_points(GroupedPoints(np.array([5, 7, 5, 1]), np.array([3, 0]), np.array([4, 3])))
    >>> [column.tolist() for column in found]
    [[0, 1, 1, 1], [1, 5, 5, 7]]

    """
    lengths = points.stops - points.starts
    owners, ends = np.repeat(np.arange(lengths.size), lengths), np.cumsum(lengths)
    # Groups that were chosen may stand in any order.
    moves = np.repeat(points.starts - (ends - lengths), lengths)
    moves += np.arange(owners.size)
    own = points.points[moves]
    if lengths.size > _MOST_STAGED:
        order = np.lexsort((own, owners))
        return owners, own[order]

    def sort(first: int, last: int) -> None:
        for group in range(first, last):
            own[ends[group] - lengths[group] : ends[group]].sort()

    in_stretches(sort, lengths.size, thread_count(None, own.size))
    return owners, own


def _no_room(dtype: type[np.signedinteger[Any]]) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    return np.empty(0, np.uint32), np.empty(0, dtype)


class Collector:
    """Rows met block by block, to be sorted by group at the end; one for each thread.

    Parameters
    ----------
    groups
        How many groups there are; slots from there on are the trash.
    points
        The number of points of the grid.

    """

    def __init__(self, groups: int, points: int) -> None:
        self.counts = np.zeros(groups + 1, np.int64)
        self._trash = np.uint64(groups)
        self._dtype = point_dtype(points)
        self._slots: list[NDArray[np.uint32]] = []
        self._points: list[NDArray[Any]] = []
        self._room = _no_room(self._dtype)
        self._met = 0

    def add(self, slots: NDArray[Any], points: NDArray[np.int64]) -> None:
        """Add rows: each one's slot, and its point, 0 for none."""
        slots_kept, points_kept = self._memory_for(points.size)
        narrow_points(slots, points, self._trash, slots_kept, points_kept, self.counts)
        self._slots.append(slots_kept)
        self._points.append(points_kept)

    def _memory_for(self, rows: int) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """Return memory for the slots and the points of so many rows."""
        if rows > self._room[0].size:
            room = max(rows, min(self._met, _MOST_ROOM))
            self._room = fresh_array(room, np.dtype(np.uint32)), fresh_array(room, np.dtype(self._dtype))
        self._met += rows
        slots, points = self._room
        self._room = slots[rows:], points[rows:]
        return slots[:rows], points[:rows]

    def _sort(self, cursors: NDArray[np.int64], out: NDArray[Any]) -> None:
        self._room = _no_room(self._dtype)
        self._slots.reverse()
        self._points.reverse()
        if cursors.size > _MOST_STAGED:
            while self._slots:
                sort_points(self._slots.pop(), self._points.pop(), self._trash, cursors, out)
            return
        starts, stage = cursors.copy(), np.empty((cursors.size, STAGED), self._dtype)
        while self._slots:
            sort_staged(self._slots.pop(), self._points.pop(), self._trash, starts, cursors, stage, out)
        release_staged(starts, cursors, stage, out)

    @staticmethod
    def join(collectors: Sequence[Collector]) -> GroupedPoints:
        """Return all rows by group; the collectors are empty then."""
        counts = np.array([collector.counts[:-1] for collector in collectors])
        stops = np.cumsum(counts.sum(axis=0))
        starts = stops - counts.sum(axis=0)
        out = fresh_array(int(stops[-1]) if stops.size else 0, np.dtype(collectors[0]._dtype))
        cursors = starts + np.cumsum(counts, axis=0) - counts

        def sort(first: int, last: int) -> None:
            for own, places in zip(collectors[first:last], cursors[first:last], strict=True):
                own._sort(places, out)

        in_stretches(sort, len(collectors), len(collectors))
        return GroupedPoints(out, starts, stops)
