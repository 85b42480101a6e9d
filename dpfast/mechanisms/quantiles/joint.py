"""All quantiles of a group by one exponential mechanism: a kernel, and ball arithmetic for what it leaves in doubt.

JointExp (Gillenwater, Joseph, Kulesza 2021) scores k quantiles together by how far the numbers of values between them
are from those that are wanted, q_j n - q_{j-1} n. A row more changes one number by 1 and what is wanted by 1 in all, so
that each row costs the range 4 (1 - min share) of these scores. Here a noisy number of rows t is drawn first, with one
eighth of epsilon, and stands in the place of n: then a row more changes one number by 1 and nothing else, and costs the
range 2. The slope is nearly twice as large for it, and an error of t matters little: the gaps between the quantiles,
and so the numbers of values in them, absorb it evenly.

What it costs. Let a neighbour have one row more. With t given, and for every output, the values to the left of each of
its cells are the same but for the new one, which takes a cell of its own in its point (dpfast.kernels.quantiles.joint):
one of the k + 1 numbers grows by 1. So the sum of abs(D number - P t) moves by between -D and D: its range is 2 D.
What an output counts by itself does not depend on the data. Hence with slope = epsilon / (2 R D) the R rows of a unit
cost a bounded range of epsilon (Durfee, Rogers 2019), and so epsilon as a pure mechanism.

Replace: a unit takes at most R rows away and brings at most R. Pair them. A pair in one group has a range of 4 D there,
a pair in two groups 2 D in each: with slope = epsilon / (4 R D) the former costs epsilon / R, the latter half
of it in either group. Where a unit leaves one group for another, each of the two counts so for one half, as
dpfast.mechanisms.quantiles.tree has it. The noise of t is that of R rows, or of 2 R where a unit may be replaced by one
in another group: then R rows less in one group cost half. If there is no other group, the unit's rows can only be
dropped or become valid, R at most.

When it pays. With c = n / (k + 1) rows between quantiles, placing one more of them in a gap at an end of the bounds
costs exp(-2 slope D c) and gains as many times more points as there are in that gap. So quantiles are far off together
where c is below 25 / epsilon or so and bounds are far from the values, and those by halves fewer of them. Measured for
epsilon 1 and 400 rows or more, from 4 to 12 quantiles err 0.5 to 1 of what they do by halves, save for many equal
values or bounds far away on one side; 2 or 3 err no less, and 15 or more are far off in more data. n is private: hence
FEWEST and MOST, which do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.aggregation.grouped_points import GroupedPoints
from dpfast.columns import borrow
from dpfast.columns.ranks import PARTS
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import round_down
from dpfast.kernels.quantiles.joint import CELL_BITS, MOST_SORTED, draw_joint
from dpfast.mechanisms.noise.exact import whole_number_below
from dpfast.mechanisms.noise.half_widths import half_width
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, laplace_of_epsilon
from dpfast.mechanisms.noise.laplace import laplace_noise
from dpfast.mechanisms.quantiles.exact_joint import exact_blocks
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail
from dpfast.threads import in_stretches, thread_count

__all__ = ["JointCalibration", "count_units", "draw_joint_quantiles", "joint_calibration", "joint_pays"]

FEWEST, MOST = 4, 12
#: Of epsilon, in rows of a unit: wider windows would take too much memory, steeper slopes are never needed.
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 100), 64
_COUNT_SHARE = 8
_MOST_ROWS = 2**38
#: Bits by which the likeliest output may be less likely than all of them: for each quantile, and besides.
_USUAL_BITS, _SPARE_BITS = 40, 170
_CELLS: int = 2**CELL_BITS


@dataclass(frozen=True)
class JointCalibration:
    """What the quantiles of a group are drawn with, all of them together.

    Guarantee
        Given the noisy number of rows, the quantiles of a group cost a privacy unit ``epsilon`` of bounded range, and
        that number is the number of rows with the noise of `count_noise`: see above.

    Attributes
    ----------
    parts
        The quantiles in ascending order, in units of 1 / PARTS.
    count_scale
        The scale b of the noise of the number of rows.
    epsilon
        Of the quantiles.
    rows
        The most rows of a privacy unit in the group.
    neighbors
        The neighbour relation.
    alone
        Whether there is no other group that a replaced row may come from or go to.

    """

    parts: tuple[int, ...]
    count_scale: float
    epsilon: Fraction
    rows: int
    neighbors: Neighbors
    alone: bool

    @property
    def shares(self) -> tuple[NDArray[np.int64], int]:
        """The shares of values between quantiles, P_1, P_2, .. of D in all."""
        ends = np.array([0, *self.parts, PARTS], np.int64)
        shares: NDArray[np.int64] = ends[1:] - ends[:-1]
        divisor = int(np.gcd.reduce(shares))
        return shares // divisor, PARTS // divisor

    @property
    def sensitivity(self) -> int:
        """How far the scores are taken to move between neighbours, in ranks: a replaced row counts twice."""
        return self.rows * moved_cells(self.neighbors)

    @property
    def slope(self) -> float:
        """What the sum of distances, in units of 1 / D, is multiplied by: epsilon / (2 sensitivity), rounded down."""
        return round_down(self.epsilon / (2 * self.sensitivity * self.shares[1]))

    @property
    def scale(self) -> float:
        """How many ranks, between two quantiles, divide a probability by e."""
        return 1 / (self.slope * self.shares[1])

    def rank_error(self, points: int, miss: float) -> float:
        """Return within how many ranks all quantiles of a group are, with probability at least 1 - ``miss``.

        Theorem 3.11 of Dwork, Roth (2014). Some output has numbers within 1 of those wanted for n rows, so that its sum
        of distances, in ranks, is at most abs(n - t) + k + 1. The sum x of what is drawn exceeds that of the best by y
        with probability at most exp(-y / scale) times the number of outputs, points * cells to the power k. And a
        quantile is off by max(q, 1 - q) x at most: x >= abs(r - q t) + abs((n - r) - (1 - q) t).

        Not counted: of m equal values beyond 65,535, m / 65,536 lie in each cell, and quantiles beside them may be
        off by as many ranks more.
        """
        count = half_width("laplace", self.count_scale, miss / 2)
        outputs = len(self.parts) * math.log(points * _CELLS)
        total = count + len(self.parts) + 1 + (outputs - math.log(miss / 2)) * self.scale
        widest = max(max(part, PARTS - part) for part in self.parts)
        return total * widest / PARTS


def joint_pays(quantiles: int, epsilon_units: int, rows: int, neighbors: Neighbors) -> bool:
    """Return whether quantiles are drawn together and not by halves, by public facts alone."""
    each = Fraction(epsilon_units, UNITS_PER_ONE) / (rows * moved_cells(neighbors))
    return FEWEST <= quantiles <= MOST and _LEAST_EPSILON <= each <= _MOST_EPSILON


def count_units(epsilon_units: int) -> int:
    """Return how much of epsilon the number of rows gets, in units of 1e-18."""
    return epsilon_units // _COUNT_SHARE


def count_noise(epsilon_units: int, rows: int, neighbors: Neighbors, *, alone: bool) -> IntegerNoise:
    """Return the noise of the number of rows at its own share of epsilon."""
    moved = rows if neighbors == "add_remove" or alone else 2 * rows
    return laplace_of_epsilon(moved, epsilon_units)


def joint_calibration(
    parts: Sequence[int], epsilon_units: int, rows: int, neighbors: Neighbors, *, alone: bool
) -> JointCalibration:
    """Return what quantiles are drawn with: epsilon, in units of 1e-18, pays for them and for the number of rows."""
    counted = count_units(epsilon_units)
    noise = count_noise(counted, rows, neighbors, alone=alone)
    rest = Fraction(epsilon_units - counted, UNITS_PER_ONE)
    return JointCalibration(tuple(parts), noise.scale, rest, rows, neighbors, alone)


def draw_joint_quantiles(
    data: GroupedPoints,
    points: int,
    calibration: JointCalibration,
    source: RandomSource,
    *,
    refine_all: bool = False,
) -> NDArray[np.int64]:
    """Return the points of all quantiles, one row for each group, ascending.

    Guarantee
        The noise of the number of rows and, given that, the quantiles are drawn from exactly the laws that
        ``calibration`` prices; and as many words are read for each group, whatever the values are.

    Parameters
    ----------
    data
        Each group's points, numbered from 1; they are sorted.
    points
        The number of points of the grid.
    calibration
        The quantiles, and what they are drawn with.
    source, refine_all
        Where keys come from; whether to leave every group to ball arithmetic.

    """
    sizes = np.subtract(data.stops, data.starts)
    noisy = laplace_noise(borrow(sizes), calibration.count_scale, source)
    return _draw(data, points, calibration, np.clip(noisy, 0, _MOST_ROWS), Keystream(source.key()), refine_all)


def _draw(
    data: GroupedPoints,
    points: int,
    calibration: JointCalibration,
    counts: NDArray[np.int64],
    keystream: Keystream,
    refine_all: bool,
) -> NDArray[np.int64]:
    groups, quantiles = len(data), len(calibration.parts)
    shares, d = calibration.shares
    slope, bits = calibration.slope, points.bit_length() + CELL_BITS
    words = np.empty((groups, 4 * quantiles), np.uint64)
    keystream.words(Purpose.NOISE).fill(0, words.reshape(-1))
    choosing = np.ascontiguousarray(words[:, : 2 * quantiles])
    blocks = np.full((4, groups, quantiles), -1, np.int64)
    undecided = np.arange(groups)
    _sort_long_groups(data)
    # Few data need more than the usual number of bits, which are so many ranks: many equal values do, whose cells hold
    # several each.
    for each in () if refine_all else (_USUAL_BITS, bits, 4 * bits, 16 * bits):
        reach = reach_of(quantiles * each + _SPARE_BITS, slope * d)

        def work(first: int, last: int, chosen: NDArray[np.int64] = undecided, reach: int = reach) -> None:
            own = chosen[first:last]
            found = np.full((4, own.size, quantiles), -1, np.int64)
            groups_of = data.starts[own], data.stops[own], counts[own]
            draw_joint(data.points, groups_of, (points, bits), shares, d, slope, reach, choosing[own], found)
            blocks[:, own] = found

        if undecided.size:
            in_stretches(work, undecided.size, min(thread_count(None, data.points.size), undecided.size))
            undecided = undecided[blocks[0, undecided, 0] < 0]
    for group in undecided.tolist():
        own = np.sort(data.points[data.starts[group] : data.stops[group]])
        tails = [Tail(keystream, 4 * quantiles * group + i, int(words[group, i]), 64) for i in range(2 * quantiles)]
        blocks[:, group] = exact_blocks(own, int(counts[group]), points, shares.tolist(), Fraction(slope), tails)
    return _placed(blocks, words[:, 2 * quantiles :], keystream)


def _sort_long_groups(data: GroupedPoints) -> None:
    """Sort the groups that the kernel does not: its sort takes quadratic time for some orders, and NumPy's for none."""
    for group in np.flatnonzero(np.subtract(data.stops, data.starts) > MOST_SORTED).tolist():
        data.points[data.starts[group] : data.stops[group]].sort()


def reach_of(bits: int, slope: float) -> int:
    """Return how many ranks, at the slope of one, are worth so many bits, where two such distances add up."""
    return math.ceil(bits * math.log(2) / (2 * slope)) + 1


def _placed(blocks: NDArray[np.int64], words: NDArray[np.uint64], keystream: Keystream) -> NDArray[np.int64]:
    """Return points that are drawn uniformly from the cells of blocks, each row sorted."""
    groups, quantiles = blocks.shape[1:]
    drawn = np.empty((groups, quantiles), np.int64)
    lists: list[Any] = [part.tolist() for part in blocks]
    for group, row in enumerate(words.tolist()):
        for j in range(quantiles):
            first, cell, end, rest = (part[group][j] for part in lists)
            start = first * _CELLS + cell
            width = end * _CELLS + rest - start
            leading = row[2 * j] << 64 | row[2 * j + 1]
            point = (start + (leading * width >> 128)) // _CELLS
            if (start + ((leading + 1) * width - 1 >> 128)) // _CELLS != point:
                index = 4 * quantiles * group + 2 * quantiles + 2 * j
                point = (start + whole_number_below(width, Tail(keystream, index, leading, 128))) // _CELLS
            drawn[group, j] = point
    drawn.sort(axis=1)
    return drawn
