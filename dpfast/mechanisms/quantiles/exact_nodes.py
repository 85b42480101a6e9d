"""A node's quantile in ball arithmetic, for the few that a kernel leaves in doubt: all blocks, and no window.

Precision and bits grow until the outcome is beyond doubt. There is no cap: stopping early would cost a
delta. U and V are boundaries of blocks with probability zero, so that the loop ends with probability one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.exact.balls import ball
from dpfast.mechanisms.noise.exact import Bits, decided, uniform_ball, whole_number_below

__all__ = ["Blocks", "exact_draw", "node_blocks"]


class Blocks:
    """Points (or cells) of equal scores side by side, in the order of the grid.

    Attributes
    ----------
    firsts, widths, units, scores, lefts : int64
        Each block's first point, how many it has, how much each counts (in cells, where there are any), their score,
        and how many values are to the left (of cells).

    """

    __slots__ = ("firsts", "lefts", "scores", "units", "widths")

    def __init__(
        self,
        firsts: NDArray[np.int64],
        widths: NDArray[np.int64],
        units: NDArray[np.int64],
        scores: NDArray[np.int64],
        lefts: NDArray[np.int64],
    ) -> None:
        held = (widths > 0) & (units > 0)
        self.firsts, self.widths, self.units = firsts[held], widths[held], units[held]
        self.scores, self.lefts = scores[held], lefts[held]

    def size(self, part: slice) -> int:
        """Return how much the points of some blocks count together."""
        return sum(
            width * unit for width, unit in zip(self.widths[part].tolist(), self.units[part].tolist(), strict=True)
        )


def node_blocks(values: NDArray[np.signedinteger], low: int, high: int, p: int, d: int, cells: int) -> Blocks:
    """Return all blocks of a node, by the formulas of dpfast.kernels.quantiles.nodes.

    Parameters
    ----------
    values
        Points from ``low`` to ``high``, in any order.
    low, high, p, d, cells
        As of `draw_nodes`.

    """
    distinct, counts = np.unique(values.astype(np.int64), return_counts=True)
    ends = np.cumsum(counts)
    lt = ends - counts
    target = p * values.size
    gap_firsts = np.concatenate([[low], distinct + 1])
    gap_widths = np.concatenate([distinct, [high + 1]]) - gap_firsts
    gap_lefts = np.concatenate([[0], ends])
    gap_scores = -np.abs(d * gap_lefts - target)
    # Where the values' own blocks stand among the gaps: between gap k and gap k + 1.
    if not cells:
        scores = np.minimum(target - d * lt, d * ends - target)
        after = np.arange(1, distinct.size + 1)
        return Blocks(
            np.insert(gap_firsts, after, distinct),
            np.insert(gap_widths, after, 1),
            np.ones(gap_widths.size + after.size, np.int64),
            np.insert(gap_scores, after, scores),
            np.insert(gap_lefts, after, lt),
        )
    inner = np.arange(values.size) - np.repeat(lt, counts)
    repeated = np.repeat(counts, counts)
    cell = -(-inner * cells // repeated)
    following = -(-(inner + 1) * cells // repeated)
    lefts = np.arange(values.size)
    after = np.repeat(np.arange(1, distinct.size + 1), counts)
    return Blocks(
        np.insert(gap_firsts, after, np.repeat(distinct, counts)),
        np.insert(gap_widths, after, 1),
        np.insert(np.full(gap_widths.size, cells), after, following - cell),
        np.insert(gap_scores, after, -np.abs(d * lefts - target)),
        np.insert(gap_lefts, after, lefts),
    )


def exact_draw(blocks: Blocks, slope: Fraction, block_bits: Bits, place_bits: Bits) -> tuple[int, int]:
    """Return the point that words choose, and how many values are to the left of the cell.

    Parameters
    ----------
    blocks
        All blocks of the node.
    slope
        What scores are multiplied by.
    block_bits, place_bits
        The bits of U and V.

    """
    gaps = int(blocks.scores.max()) - blocks.scores
    spare = blocks.size(slice(None)).bit_length() + blocks.scores.size.bit_length()
    chosen = decided(lambda count: _chosen(blocks, gaps, slope, block_bits, count), block_bits.known, spare)
    within = whole_number_below(int(blocks.widths[chosen]), place_bits)
    return int(blocks.firsts[chosen]) + within, int(blocks.lefts[chosen])


def _chosen(blocks: Blocks, gaps: NDArray[np.int64], slope: Fraction, bits: Bits, count: int) -> int | None:
    """Return the block that so many bits of U choose, None if they leave a doubt.

    Weights below 2**-count of the best are only bounded, in two lumps: scores rise and fall along the grid, so that
    the blocks of larger weights lie together.
    """
    # Anything of this size will do; it need not be exact.
    largest = float(blocks.widths.max()) * float(blocks.units.max())
    widest = (count + math.log2(largest)) * math.log(2) / float(slope)
    near = np.flatnonzero(gaps <= min(widest, 2.0**62))
    first, last = int(near[0]), int(near[-1])

    def weight(block: int) -> arb:
        return int(blocks.widths[block]) * int(blocks.units[block]) * (-ball(slope * int(gaps[block]))).exp()

    def lump(part: slice) -> arb:
        points = blocks.size(part)
        return arb(0).union(points * (-ball(slope * int(gaps[part].min()))).exp()) if points else arb(0)

    sums = [lump(slice(0, first))]
    for block in range(first, last + 1):
        sums.append(sums[-1] + weight(block))
    total = sums[-1] + lump(slice(last + 1, None))
    threshold = total * uniform_ball(bits.leading(count), count)
    place = min(bisect_right(sums, threshold.mid(), key=lambda end: end.mid()) - 1, last - first)
    if place < 0:
        return None
    # The first block begins, and the last one ends, without doubt.
    begun = first + place == 0 or bool(sums[place] <= threshold)
    ended = first + place == gaps.size - 1 or bool(threshold < sums[place + 1])
    return first + place if begun and ended else None
