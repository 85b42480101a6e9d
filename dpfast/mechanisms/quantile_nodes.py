"""The nodes of a quantile release: which ranks are hit in which part of the data, what they cost, how they are drawn.

One quantile is one node. Several are drawn by halves (Kaplan, Schnapp, Stemmer 2022): the middle one among all
values; its point parts a group's values in two, and the lower quantiles are drawn among those to its left, the others
among those to its right. Values at the point itself belong to both sides: a cell is drawn with the point (SPLIT of
dpfast.kernels.quantiles) that says how many of them, floor(cell * count / cells), are on the left. One value
more at the point is one more on exactly one of the sides, so that every value lies in one node on each level. Quantile
x among the values between the quantiles a and b is the rank (x - a) / (b - a) there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.ranks import PARTS
from dpfast.kernels.quantiles import BUCKETS, ROOM, draw_nodes, part_nodes
from dpfast.mechanisms.additive import Tail, thread_count
from dpfast.mechanisms.exact_quantiles import exact_draw, node_blocks
from dpfast.mechanisms.grouped_points import GroupedPoints, in_stretches
from dpfast.randomness import Keystream, Purpose, RandomSource

__all__ = [
    "CELLS",
    "Neighbors",
    "Node",
    "QuantileTree",
    "draw_quantiles",
    "node_sensitivity",
    "node_slope",
    "quantile_tree",
    "rank_error",
]

Neighbors = Literal["add_remove", "replace"]

#: The cells that a point is divided into where it parts the values.
CELLS = 2**16

_FARTHEST = 2**40


@dataclass(frozen=True)
class Node:
    """One quantile among the values between two others.

    Attributes
    ----------
    quantile
        Its place among the quantiles in ascending order.
    p, d
        The rank to hit is p / d of the values.
    children
        The nodes for those to the left, and to the right; None where there is no quantile.

    """

    quantile: int
    p: int
    d: int
    children: tuple[Node | None, Node | None] = (None, None)

    @property
    def cells(self) -> int:
        """Into how many cells a point is divided; 0 where values need not be parted."""
        return 0 if self.children == (None, None) else CELLS


@dataclass(frozen=True)
class QuantileTree:
    """The nodes of one group.

    Attributes
    ----------
    root
        The middle quantile.
    parts
        The quantiles in ascending order, in units of 1 / PARTS.

    """

    root: Node
    parts: tuple[int, ...]

    @property
    def levels(self) -> list[list[Node]]:
        """The nodes, level by level."""
        levels, level = [], [self.root]
        while level:
            levels.append(level)
            level = [child for node in level for child in node.children if child is not None]
        return levels

    def touched(self, rows: int, neighbors: Neighbors) -> int:
        """Return how many nodes of a group one privacy unit pays for (Soundness rule 24).

        A unit with at most one row in the group, added or removed, lies in one node of each level. Otherwise it
        touches as many as it has rows, replaced ones twice, or all.
        """
        most = rows * (1 if neighbors == "add_remove" else 2)
        return sum(min(len(level), most) for level in self.levels)


def quantile_tree(parts: Sequence[int]) -> QuantileTree:
    """Return the tree of quantiles, given in units of 1 / PARTS, ascending and distinct.

    Examples
    --------
    >>> tree = quantile_tree([PARTS // 4, PARTS // 2, 3 * PARTS // 4])
    >>> [[(node.quantile, node.p / node.d) for node in level] for level in tree.levels]
    [[(1, 0.5)], [(0, 0.5), (2, 0.5)]]

    """

    def node(first: int, last: int, low: int, high: int) -> Node | None:
        if first == last:
            return None
        middle = (first + last) // 2
        at = parts[middle]
        children = node(first, middle, low, at), node(middle + 1, last, at, high)
        return Node(middle, at - low, high - low, children)

    root = node(0, len(parts), 0, PARTS)
    assert root is not None, "there is a quantile"
    return QuantileTree(root, tuple(parts))


def node_sensitivity(node: Node, rows: int, neighbors: Neighbors) -> int:
    """Return how far a node's scores move between neighbours, in units of 1 / d (Soundness rule 24).

    Adding a row moves p n - d lt and d le - p n by p, or by d - p the other way, and so every score by at most
    max(p, d - p); replacing one moves either by d at most.
    """
    return rows * (max(node.p, node.d - node.p) if neighbors == "add_remove" else node.d)


def node_slope(node: Node, epsilon: Fraction, rows: int, neighbors: Neighbors) -> float:
    """Return what a node's scores, in units of 1 / d, are multiplied by, rounded down.

    It is epsilon / (2 sensitivity). The least and the greatest value, p = 0 and p = d, need no factor 2: their scores
    are less d times the number of values on one side. A row that is added moves them one way only, and a replaced
    one too, since it goes to the left or to the right: of r rows some move scores up and the others down, so that any
    two scores move apart by r d at most, and a probability by a factor of exp(slope r d).
    """
    sensitivity = node_sensitivity(node, rows, neighbors)
    exact = epsilon / (sensitivity if node.p in (0, node.d) else 2 * sensitivity)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def rank_error(node: Node, slope: float, points: int, miss: float) -> float:
    """Return how many ranks a node's point strays at most, but with probability ``miss``, among the node's values.

    Theorem 3.11 of Dwork, Roth (2014): the score of a point is below -t, for the best one's is 0 or more, with
    probability at most points * exp(-slope t d).
    """
    cells = node.cells or 1
    # A cell that is hit best misses the rank by one half, and by what a cell holds, which is not known beforehand.
    return (math.log(points * cells) - math.log(miss)) / (slope * node.d) + (0.5 if node.cells else 0.0)


class _Scratch:
    """One thread's scratch memory."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self.buckets = np.empty(BUCKETS, np.int64)
        self.grow(ROOM)

    def grow(self, room: int) -> None:
        """Make it as long as is needed, and then some."""
        room += room // 4
        self.arrays = (
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
        groups = starts.size
        words = np.empty(2 * groups, np.uint64)
        self._words.fill(self._drawn, words)
        points, parts = np.full(groups, -1, np.int64), np.zeros(groups, np.int64)
        farthest = (math.log(self._points * (node.cells or 1)) + 50 * math.log(2)) / (slope * node.d)
        reach = int(min(farthest, _FARTHEST)) + 2

        def work(first: int, last: int) -> None:
            scratch = _Scratch(self._values.dtype)
            done = first
            while done < last:
                found, counts, firsts, widths, scores, lefts, sums = scratch.arrays
                done, room = draw_nodes(
                    done,
                    last,
                    self._values,
                    starts,
                    stops,
                    lows,
                    highs,
                    node.p,
                    node.d,
                    slope,
                    node.cells,
                    reach,
                    words,
                    scratch.buckets,
                    found,
                    counts,
                    firsts,
                    widths,
                    scores,
                    lefts,
                    sums,
                    points,
                    parts,
                )
                if done < last:
                    scratch.grow(room)

        if not self._refine_all:
            in_stretches(work, groups, min(thread_count(None, self._values.size), groups))
        for group in np.flatnonzero(points < 0).tolist():
            own = self._values[starts[group] : stops[group]]
            blocks = node_blocks(own, int(lows[group]), int(highs[group]), node.p, node.d, node.cells)
            first = 2 * (self._drawn * groups + group)
            tails = [Tail(self._keystream, first + j, int(words[2 * group + j]), 64) for j in range(2)]
            place, part = exact_draw(blocks, Fraction(slope), *tails)
            points[group] = place // node.cells if node.cells else place
            parts[group] = part
        self._drawn += 1
        return points, parts

    def part(self, starts: NDArray[np.int64], stops: NDArray[np.int64], points: NDArray[np.int64]) -> None:
        """Order every group's values by the point that was drawn in it."""
        part_nodes(self._values, starts, stops, points)


def draw_quantiles(
    data: GroupedPoints,
    points: int,
    tree: QuantileTree,
    epsilon: Fraction,
    rows: int,
    neighbors: Neighbors,
    source: RandomSource,
    *,
    refine_all: bool = False,
) -> NDArray[np.int64]:
    """Return the points of all quantiles, one row for each group, ascending.

    Guarantee
        Each node is drawn by the exponential mechanism, exactly, so that it is epsilon-differentially private for a
        unit of ``rows`` rows in it; and two words are read for each node of each group, whatever the values are.

    Parameters
    ----------
    data
        Each group's points, numbered from 1; they are reordered.
    points
        The number of points of the grid.
    tree
        The quantiles.
    epsilon
        Of a node.
    rows, neighbors
        The most rows of a privacy unit in a group, and the neighbour relation.
    source, refine_all
        Where the key comes from; whether to leave every node to ball arithmetic.

    """
    groups = len(data)
    drawn = np.empty((groups, len(tree.parts)), np.int64)
    drawing = _Drawing(data, points, source, refine_all=refine_all)

    def descend(
        node: Node,
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        lows: NDArray[np.int64],
        highs: NDArray[np.int64],
    ) -> None:
        slope = node_slope(node, epsilon, rows, neighbors)
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
