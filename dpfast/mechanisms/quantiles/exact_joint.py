"""Joint quantiles in ball arithmetic, for the few groups that a kernel leaves in doubt.

The law is that of dpfast.kernels.quantiles.joint, the way another one: sums of weights to one side are differences of
partial sums, at a precision that grows until the outcome is beyond doubt, as the bits of the words and the window
do. There is no cap: stopping early would cost a delta. Words are at boundaries with probability zero, so that the loop
ends with probability one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.exact.balls import ball, working_precision
from dpfast.kernels.quantiles.joint import CELL_BITS
from dpfast.mechanisms.noise.exact import Bits, uniform_ball

__all__ = ["exact_blocks"]

_CELLS: int = 2**CELL_BITS
_GUARD_BITS = 128


def exact_blocks(
    values: NDArray[np.signedinteger],
    t: int,
    points: int,
    shares: Sequence[int],
    slope: Fraction,
    words: Sequence[Bits],
) -> NDArray[np.int64]:
    """Return each quantile's block: its first point and cell, and the point and the cell that it ends before.

    Parameters
    ----------
    values
        A group's points, sorted.
    t
        What stands in the place of their number.
    points
        Of the grid.
    shares
        P_1, P_2, ...
    slope
        What the sum of distances, in units of 1 / D, is multiplied by.
    words
        Two for each quantile.

    """
    bits, rounds = 64, 1
    # All that is left out weighs less than 2**-128 of one output, all of whose cells are alone, in a window.
    worth = len(shares) * (points.bit_length() + CELL_BITS) + _GUARD_BITS
    reach = math.ceil(worth / (2 * slope * sum(shares))) + 1
    while True:
        group = _Group(values, t, points, shares, slope, reach)
        # A window's weights fall by so many bits, and partial sums of them lose as many.
        lost = math.ceil(group.longest * group.slope * group.d * Fraction(3, 2))
        with working_precision(bits + _GUARD_BITS * rounds**2 + lost + points.bit_length() * len(shares)):
            blocks = _chosen(group, words, bits)
        if blocks is not None:
            return np.array([[*group.place(r - 1), *group.place(r)] for r in blocks], np.int64).T
        bits, rounds, reach = bits + 64, rounds + 1, 2 * reach


@dataclass
class _Group:
    """A group's values and what is wanted of them."""

    values: NDArray[np.signedinteger] = field(repr=False)
    t: int = field(repr=False)
    points: int
    shares: Sequence[int]
    slope: Fraction
    reach: int

    def __post_init__(self) -> None:
        self.d, self.n = sum(self.shares), self.values.size
        passed = [part * self.t // self.d for part in accumulate(self.shares)][:-1]
        less, more = min(self.n - self.t, 0), max(self.n - self.t, 0)
        self.windows = [
            range(
                min(max(centre + less - self.reach, 0), self.n),
                max(min(centre + 1 + more + self.reach, self.n), 0) + 1,
            )
            for centre in passed
        ]
        self.longest = max(len(window) for window in self.windows)
        self._cells: dict[int, tuple[int, list[int]]] = {}

    def place(self, i: int) -> tuple[int, int]:
        """Return the point and the cell of the value with i others before it, or an end of the grid."""
        if i < 0:
            return 1, 0
        if i >= self.n:
            return self.points + 1, 0
        point = int(self.values[i])
        if point not in self._cells:
            first, last = np.searchsorted(self.values, [point, point + 1]).tolist()
            self._cells[point] = first, sorted(_reversed(number) for number in range(1, last - first + 1))
        first, cells = self._cells[point]
        return point, cells[i - first]

    def widths(self, window: range) -> list[int]:
        """Return the numbers of cells of blocks."""
        ends = [point * _CELLS + cell for point, cell in map(self.place, range(window.start - 1, window.stop))]
        return [end - start for start, end in pairwise(ends)]

    def decay(self, distance: int) -> arb:
        """Return exp(-slope * distance)."""
        return (-ball(self.slope * distance)).exp()

    def left_out(self) -> arb:
        """Return a ball that holds the weight of all outputs that leave a window."""
        if all(len(window) == self.n + 1 for window in self.windows):
            return arb(0)
        every = arb(self.points * _CELLS) ** len(self.windows)
        return arb(0).union(every * self.decay(self.d * (abs(self.n - self.t) + 2 * self.reach)))


def _reversed(number: int) -> int:
    """Return the last bits of a number, reversed."""
    return int(f"{number % _CELLS:0{CELL_BITS}b}"[::-1], 2)


def _entered(group: _Group, before: range, placed: list[arb], window: range, wanted: int) -> list[arb]:
    """Return E_j for a window from T_{j-1} for the one before it."""
    d, least = group.d, -(-wanted // group.d)
    further = max(least, 1)
    factor, edge = group.decay(d), group.decay(d * further - wanted)
    running: list[arb] = []
    total = arb(0)
    for r in range(before.start + further, window.stop):
        total = total * factor
        if r - further < before.stop:
            total += placed[r - further - before.start] * edge
        running.append(total)
    powers = [arb(1)]
    for _ in range(len(before)):
        powers.append(powers[-1] * factor)
    partial = [arb(0), *accumulate(weight * power for weight, power in zip(placed, powers, strict=False))]
    result = []
    for r in window:
        at = r - before.start - further
        weight = running[at] if at >= 0 else arb(0)
        first, last = max(r - least + 1 - before.start, 0), min(r - before.start, len(before))
        if first < last:
            nearest = group.decay(wanted - d * (r - first - before.start))
            weight += (partial[last] - partial[first]) / powers[first] * nearest
        result.append(weight)
    return result


def _pick(weights: Sequence[arb], left_out: arb, word: Bits, bits: int) -> int | None:
    """Return the weight that so many bits of a word choose, None if they leave a doubt."""
    sums = [arb(0), *accumulate(weights)]
    threshold = (sums[-1] + left_out) * uniform_ball(word.leading(bits), bits)
    place = min(bisect_right(sums, threshold.mid(), key=lambda end: end.mid()) - 1, len(weights) - 1)
    if place < 0:
        return None
    # What is left out may lie on either side.
    exact = bool(left_out == 0)
    begun = (exact and place == 0) or bool(sums[place] + left_out <= threshold)
    ended = (exact and place == len(weights) - 1) or bool(threshold < sums[place + 1])
    return place if begun and ended else None


def _chosen(group: _Group, words: Sequence[Bits], bits: int) -> list[int] | None:
    """Return the blocks that so many bits of the words choose, None if they leave a doubt."""
    windows, shares = group.windows, group.shares
    k = len(windows)
    stays = [group.decay(share * group.t) for share in shares]
    widths = [group.widths(window) for window in windows]
    entered: list[list[arb]] = []
    placed: list[list[arb]] = []

    def ways(j: int, r: int) -> list[arb]:
        """Return the weights of 0, 1, .. quantiles more, before the j-th one, in its block r."""
        width = widths[j][r - windows[j].start]
        result, factor = [], arb(1)
        for i in range(j, -1, -1):
            factor *= arb(width) / (j - i + 1) * (stays[i + 1] if i < j else 1)
            result.append(entered[i][r - windows[i].start] * factor if r in windows[i] else arb(0))
        return result

    for j, window in enumerate(windows):
        if j == 0:
            entered.append([group.decay(abs(group.d * r - shares[0] * group.t)) for r in window])
        else:
            entered.append(_entered(group, windows[j - 1], placed[-1], window, shares[j] * group.t))
        placed.append([sum(ways(j, r), arb(0)) for r in window])
    blocks = [0] * k
    j, following, suffix, left_out = k - 1, group.n, arb(1), group.left_out()
    while j >= 0:
        window = windows[j]
        wanted = shares[j + 1] * group.t
        nearest = [
            group.decay(abs(group.d * (following - r) - wanted)) if r < following or j == k - 1 else arb(0)
            for r in window
        ]
        weights = [weight * factor for weight, factor in zip(placed[j], nearest, strict=True)]
        chosen = _pick(weights, left_out / suffix, words[2 * j], bits)
        if chosen is None:
            return None
        block = window[chosen]
        suffix *= nearest[chosen]
        options = ways(j, block)
        together = _pick(options, left_out / suffix, words[2 * j + 1], bits)
        if together is None:
            return None
        entry = j - together
        factor = arb(1)
        for i in range(j, entry - 1, -1):
            factor *= arb(widths[j][chosen]) / (j - i + 1) * (stays[i + 1] if i < j else 1)
            blocks[i] = block
        suffix *= factor
        j, following = entry - 1, block
    return blocks
