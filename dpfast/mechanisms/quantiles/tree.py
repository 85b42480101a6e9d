"""The nodes of a quantile release: which ranks are hit in which part of the data, and what a privacy unit pays.

One quantile is one node. Several are drawn by halves (Kaplan, Schnapp, Stemmer 2022): the middle one among all
values; its point parts a group's values in two, and the lower quantiles are drawn among those to its left, the others
among those to its right. Values at the point itself belong to both sides: a cell is drawn with the point (SPLIT of
`dpfast.kernels.quantiles.nodes`) that says how many of them, floor(cell * count / cells), are on the left. Quantile x
among the values between the quantiles a and b is the rank (x - a) / (b - a) there.

What it costs (Soundness rule 24). A node's scores, in units of 1 / d, are min(p n - d lt, d le - p n), or
-abs(d left - p n); its bounded range is what it costs (Durfee, Rogers 2019): multiplied by a slope s, scores that move
by values between a and b change the logarithm of a probability by numbers of a range of s (b - a), 0 among them.

1. One row more in a node moves each score by between -c and c, c = max(p, d - p): the range is 2c. With p = 0 the score
   is -d lt, which moves by -d or 0, and with p = d by 0 or -d: the range is d. One row in the place of another in the
   same node moves each score by between -d and d, since n stays: the range is w = 2d; with p = 0 or p = d, where every
   score moves to the same side, w = d. So w <= 2 range(one row more).
2. Rows of a unit lie in different nodes of a level. Let B be the other rows. Where a point is drawn that parts B,
   and B with the unit's rows, both sides of B are contained in those of B with them: floor(cell * count / cells) grows
   with the count, and count - floor(cell * count / cells) does. So the m rows of a unit that are in a node, beside
   those of B, are parted into m_left + m_right = m, or none where a side has no node: on each level every row is
   in one node at most. Steps of one row after the other add their ranges up.
3. Add/remove: with s = epsilon / (R range(one row more)) a row costs epsilon / R on a level, in whichever node it lies,
   and the R rows of a unit in a group epsilon together. The answers of a level's nodes are independent, given those of
   the levels above, so that their ranges add up.
4. Replace: a unit takes at most R rows away and brings at most R. Pair them. A pair in one node of one group
   has the range w there; a pair in two nodes, or in two groups, the range of one row more in each. With
   s = epsilon / (2 R range(one row more)) either costs epsilon / R at most, and a level epsilon in all. Over several
   groups, at most R rows of the unit in each: pair the groups that it only leaves with those that it only enters,
   epsilon / 2 each. So max_groups groups, or as many as there are, stand for all of them, and
   not twice as many. If the group is the only one, then a replaced row of the first level stays in its one node, or
   is dropped, and s = epsilon / (R w) will do there.

A level is thus a mechanism of bounded range epsilon, and levels are composed: each one is chosen by the answers before.

Ways of unequal length. Above, a row pays epsilon / R in each node that it lies in, and these nodes are a way down the
tree. Where some ways end earlier, their last nodes may spend more: let a node spend epsilon_v, and let these
sum up to at most E on every way from the root down. A row then pays at most E / R whatever way it takes, and the R
rows of a unit E. Under replace a pair of rows pays, by 4, epsilon_v / R in a node that they share and epsilon_v / (2 R)
in one where only one of them lies: half of what either row's way costs, E / (2 R) each. So the answers of a group are
E-differentially private. This is a claim of pure epsilon: the squares, which zCDP adds up, are larger on a short way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.columns.ranks import PARTS
from dpfast.exact.balls import round_down

__all__ = ["CELLS", "Calibration", "Node", "QuantileTree", "quantile_tree", "rank_error"]


#: The cells that a point is divided into where it parts the values.
CELLS = 2**16


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
    share
        How many levels' epsilon it may spend, where only the sum of epsilon on each way from the root down counts:
        what the nodes above leave, divided by the levels from here on. The shares of every way to a node
        without children sum up to the number of levels.

    """

    quantile: int
    p: int
    d: int
    children: tuple[Node | None, Node | None] = (None, None)
    share: Fraction = Fraction(1)

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


def quantile_tree(parts: Sequence[int]) -> QuantileTree:
    """Return the tree of quantiles, given in units of 1 / PARTS, ascending and distinct.

    Examples
    --------
    >>> tree = quantile_tree([PARTS // 4, PARTS // 2, 3 * PARTS // 4])
    >>> [[(node.quantile, node.p / node.d) for node in level] for level in tree.levels]
    [[(1, 0.5)], [(0, 0.5), (2, 0.5)]]
    >>> [[int(node.share) for node in level] for level in quantile_tree([1, 2, 3, 4]).levels]
    [[1], [1, 2], [1]]

    """

    def node(first: int, last: int, low: int, high: int, left: Fraction) -> Node | None:
        if first == last:
            return None
        middle = (first + last) // 2
        at = parts[middle]
        # From here on there are as many levels as a number of so many quantiles has bits.
        share = left / (last - first).bit_length()
        below = left - share
        children = node(first, middle, low, at, below), node(middle + 1, last, at, high, below)
        return Node(middle, at - low, high - low, children, share)

    root = node(0, len(parts), 0, PARTS, Fraction(len(parts).bit_length()))
    assert root is not None, "there is a quantile"
    return QuantileTree(root, tuple(parts))


@dataclass(frozen=True)
class Calibration:
    """What the nodes of a group are drawn with.

    Guarantee
        A level costs a privacy unit ``epsilon`` of bounded range, in a group that it adds rows to; or, replaced, in one
        where it takes rows away and brings others, half where it does only one of the two: see above. With ``ways``
        all levels together cost ``epsilon`` times their number in the same sense, as pure epsilon.

    Attributes
    ----------
    tree
        The nodes.
    epsilon
        Of a level.
    rows
        The most rows of a privacy unit in the group.
    neighbors
        The neighbour relation.
    alone
        Whether there is no other group that a replaced row may come from or go to.
    ways
        Whether the last node of a short way down the tree spends what longer ones spend on further levels.

    """

    tree: QuantileTree
    epsilon: Fraction
    rows: int
    neighbors: Neighbors
    alone: bool
    ways: bool = False

    def sensitivity(self, node: Node) -> int:
        """Return how far a node's scores are taken to move between neighbours, in units of 1 / d.

        With pairs of nodes in mind, a replaced row counts as one taken away and one brought.
        """
        if self.neighbors == "replace" and self.alone and node == self.tree.root:
            return self.rows * node.d
        return self.rows * max(node.p, node.d - node.p) * moved_cells(self.neighbors)

    def slope(self, node: Node) -> float:
        """Return what a node's scores, in units of 1 / d, are multiplied by, rounded down.

        It is epsilon / (2 sensitivity), for epsilon the node's own. The least and the greatest value, p = 0 and p = d,
        whose scores a row moves one way only, need no factor 2.
        """
        sensitivity = self.sensitivity(node)
        epsilon = self.epsilon * node.share if self.ways else self.epsilon
        return round_down(epsilon / (sensitivity if node.p in (0, node.d) else 2 * sensitivity))


def rank_error(node: Node, slope: float, points: int, miss: float) -> float:
    """Return within how many ranks a node's point is, among its values, with probability at least 1 - ``miss``.

    Theorem 3.11 of Dwork, Roth (2014): the score of a point is below -t, for the best one's is 0 or more, with
    probability at most points * exp(-slope t d).
    """
    cells = node.cells or 1
    # A cell that is hit best misses the rank by one half, and by what a cell holds, which is not known beforehand.
    return (math.log(points * cells) - math.log(miss)) / (slope * node.d) + (0.5 if node.cells else 0.0)
