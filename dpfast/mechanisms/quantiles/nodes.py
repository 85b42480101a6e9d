"""Quantiles drawn node by node in every group: a kernel, and ball arithmetic for what it leaves in doubt."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.grouped_points import GroupedPoints
from dpfast.kernels.quantiles.nodes import BUCKETS, ROOM, draw_nodes, part_nodes
from dpfast.mechanisms.quantiles.exact_nodes import exact_draw, node_blocks
from dpfast.mechanisms.quantiles.tree import Calibration, Node
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail
from dpfast.threads import in_stretches, thread_count

__all__ = ["draw_quantiles"]

_FARTHEST = 2**40


class _Scratch:
    """One thread's scratch memory."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._buckets = np.empty(BUCKETS, np.int64)
        self.grow(ROOM)

    def grow(self, room: int) -> None:
        """Make it as long as is needed, and then some."""
        room += room // 4
        self.arrays = (
            self._buckets,
            np.empty(room, self._dtype),
            *(np.empty(room, np.int64) for _ in range(5)),
            np.empty(room),
        )


class _Drawing:
    """A call: its data, grid and words.

    Parameters
    ----------
    data
        The groups; their points are reordered.
    points
        The number of points of the grid.
    source
        Where the call's key comes from.
    refine_all
        Leave every node to ball arithmetic: the slow, exact path, which must agree with the fast one.

    """

    def __init__(self, data: GroupedPoints, points: int, source: RandomSource, *, refine_all: bool) -> None:
        self._values = data.points
        self._points = points
        self._keystream = Keystream(source.key())
        self._words = self._keystream.words(Purpose.NOISE)
        self._refine_all = refine_all
        self._drawn = 0

    def draw(
        self,
        node: Node,
        slope: float,
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        lows: NDArray[np.int64],
        highs: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the points of one node in every group, and how many of its values are on the left."""
        words = np.empty(3 * starts.size, np.uint64)
        self._words.fill(self._drawn, words)
        points, parts = np.full(starts.size, -1, np.int64), np.zeros(starts.size, np.int64)
        farthest = (math.log(self._points * (node.cells or 1)) + 50 * math.log(2)) / (slope * node.d)
        groups = starts, stops, lows, highs
        rank = node.p, node.d, slope, node.cells, int(min(farthest, _FARTHEST)) + 2

        def work(first: int, last: int) -> None:
            scratch = _Scratch(self._values.dtype)
            done = first
            while done < last:
                done, room = draw_nodes(done, last, self._values, groups, rank, words, scratch.arrays, points, parts)
                if done < last:
                    scratch.grow(room)

        if not self._refine_all:
            in_stretches(work, starts.size, min(thread_count(None, self._values.size), starts.size))
        for group in np.flatnonzero(points < 0).tolist():
            own = self._values[starts[group] : stops[group]]
            blocks = node_blocks(own, int(lows[group]), int(highs[group]), node.p, node.d, node.cells)
            first = 3 * (self._drawn * starts.size + group)
            block, high, low = (int(word) for word in words[3 * group : 3 * group + 3])
            tails = Tail(self._keystream, first, block, 64), Tail(self._keystream, first + 1, high << 64 | low, 128)
            points[group], parts[group] = exact_draw(blocks, Fraction(slope), *tails)
        self._drawn += 1
        return points, parts

    def part(self, starts: NDArray[np.int64], stops: NDArray[np.int64], points: NDArray[np.int64]) -> None:
        """Order every group's values by the point that was drawn in it."""
        part_nodes(self._values, starts, stops, points)


def draw_quantiles(
    data: GroupedPoints,
    points: int,
    calibration: Calibration,
    source: RandomSource,
    *,
    refine_all: bool = False,
) -> NDArray[np.int64]:
    """Return the points of all quantiles, one row for each group, ascending.

    Guarantee
        Each node is drawn by the exponential mechanism, exactly, so that a group costs what ``calibration`` says; and
        three words are read for each node of each group, whatever the values are.

    Parameters
    ----------
    data
        Each group's points, numbered from 1; they are reordered.
    points
        The number of points of the grid.
    calibration
        The quantiles, and what they are drawn with.
    source, refine_all
        Where the key comes from; whether to leave every node to ball arithmetic.

    """
    groups, tree = len(data), calibration.tree
    drawn = np.empty((groups, len(tree.parts)), np.int64)
    drawing = _Drawing(data, points, source, refine_all=refine_all)

    def descend(
        node: Node,
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        lows: NDArray[np.int64],
        highs: NDArray[np.int64],
    ) -> None:
        slope = calibration.slope(node)
        chosen, parts = drawing.draw(node, slope, starts, stops, lows, highs)
        drawn[:, node.quantile] = chosen
        if node.cells:
            drawing.part(starts, stops, chosen)
            left, right = node.children
            middle = starts + parts
            if left is not None:
                descend(left, starts, middle, lows, chosen)
            if right is not None:
                descend(right, middle, stops, chosen, highs)

    descend(tree.root, data.starts, data.stops, np.ones(groups, np.int64), np.full(groups, points, np.int64))
    return drawn
