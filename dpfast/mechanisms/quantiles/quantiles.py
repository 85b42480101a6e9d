"""Private quantiles of a column, or of every group of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import BOUND, Bound, Neighbors, read_neighbors
from dpfast.aggregation.grouped_points import Collector, GroupedPoints
from dpfast.arguments import Real, Special, Whole
from dpfast.columns import BLOCK_ROWS, Column, borrow, dimensions
from dpfast.columns.declarations import WHOLE_COLUMN, AnyColumn, Numbers, wrong_columns
from dpfast.columns.grid import MANTISSA, Bounds, Grid, PublicGrid, check_bounds, public_grid
from dpfast.columns.ranks import Quantiles, read_quantiles
from dpfast.errors import ColumnError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.kernels.grouping.counting import clip_integers, number_floats, round_floats
from dpfast.mechanisms.parameters import Epsilon
from dpfast.mechanisms.quantiles.joint import draw_joint_quantiles, joint_calibration, joint_pays
from dpfast.mechanisms.quantiles.nodes import draw_quantiles
from dpfast.mechanisms.quantiles.tree import Calibration, quantile_tree
from dpfast.randomness import Random, random_source
from dpfast.threads import in_stretches, thread_count

__all__ = ["quantiles"]

_GROUP_COUNT = Whole(0, 2**31 - 1, optional=True, mend="groups are public: say how many there are")
Values: TypeAlias = Annotated[Numbers, Special(lambda: wrong_columns(most=32))]
Groups: TypeAlias = Annotated[AnyColumn | Sequence[int] | None, replace(WHOLE_COLUMN, optional=True)]
#: Counters of all threads together that are worth the memory.
_MOST_COUNTERS = 1 << 24


@overload
def quantiles(
    values: Values,
    q: Real,
    *,
    bounds: Bounds,
    epsilon: Epsilon,
    groups: None = None,
    group_count: None = None,
    grid: Grid = None,
    max_rows_per_group: Bound = 1,
    neighbors: Neighbors = "add_remove",
    random: Random = None,
) -> float: ...
@overload
def quantiles(
    values: Values,
    q: Sequence[Real] | NDArray[Any],
    *,
    bounds: Bounds,
    epsilon: Epsilon,
    groups: Groups = None,
    group_count: int | None = None,
    grid: Grid = None,
    max_rows_per_group: Bound = 1,
    neighbors: Neighbors = "add_remove",
    random: Random = None,
) -> NDArray[Any]: ...
@overload
def quantiles(
    values: Values,
    q: Real,
    *,
    bounds: Bounds,
    epsilon: Epsilon,
    groups: AnyColumn | Sequence[int],
    group_count: int,
    grid: Grid = None,
    max_rows_per_group: Bound = 1,
    neighbors: Neighbors = "add_remove",
    random: Random = None,
) -> NDArray[Any]: ...
def quantiles(
    values: Values,
    q: Quantiles,
    *,
    bounds: Bounds,
    epsilon: Epsilon,
    groups: Groups = None,
    group_count: Annotated[int | None, _GROUP_COUNT] = None,
    grid: Grid = None,
    max_rows_per_group: Bound = 1,
    neighbors: Neighbors = "add_remove",
    random: Random = None,
) -> float | NDArray[Any]:
    """Draw quantiles of a column, or of every group of its values, by the exponential mechanism.

    Guarantee
        All quantiles of one group together are (epsilon, 0)-differentially private, where neighbouring data differ in
        one privacy unit that has at most ``max_rows_per_group`` rows in the group. A unit with rows in several
        groups pays for each; a replaced one, whose rows may change group, half for a group that it only leaves and
        half for one that it only enters. A point y of the grid, or a set of points, is drawn with probability
        proportional to exp(epsilon' * score(y) / (2 * sensitivity)), exactly; for q = 0 and q = 1 by themselves, whose
        scores count the rows on one side, without the 2. No budget is kept here.

    Parameters
    ----------
    values
        An int64, int32, uint32, float64 or float32 column (Polars Series, PyArrow Array or ChunkedArray, NumPy array,
        pandas Series, list). Nulls and NaN are dropped and do not count; infinities are clipped to the bounds.
    q
        A number from 0 to 1, or several different ones in any order; read to seven decimals.
    bounds
        The lowest and the highest value that can be drawn; values beyond are clipped. Public: chosen without
        looking at the data, as the grid is.
    epsilon
        A number from 1e-18 to 1e6, for all quantiles of a group together. Floats are read as the decimals they
        were written as.
    groups
        Each row's group: a column of integers from 0 to ``group_count`` - 1. Rows with another number, or null, are
        dropped. None for a single group of all rows.
    group_count
        The number of groups, which is public; needed with ``groups``.
    grid
        The distance between points, a power of two. By default 1 for integers, or more where there would be more than
        2**60 points. For floats such that there are 2**59 points or up to twice as many, evenly spaced, and closer
        ones near zero: 2**16 for each halving of the magnitude. So bounds that are too wide by any factor do not blur
        values. A coarser grid helps where a group has so few values that a quantile is lost between the bounds, and
        where many values are equal. Bounds and values are rounded to the nearest point.
    max_rows_per_group
        The most rows of one privacy unit in a group. The caller sees to it.
    neighbors
        ``"add_remove"`` or ``"replace"``.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    int, float or numpy.ndarray
        A quantile; an axis for the groups, if there are any, and then one for the quantiles, in the order of ``q``, if
        it is a sequence. int64 for columns of integers, else float64. Quantiles of a group rise with ``q``.

    Raises
    ------
    ParameterError
        A parameter is not as above.
    ColumnError
        The kind or type of ``values`` or ``groups`` is none of the above, or their lengths differ.

    Notes
    -----
    With lt and le the numbers of a group's n values that are below y, and not above it, the score is
    min(q n - lt, le - q n): less than 0 by as many ranks as y lies beside the quantile, and more by how deep
    the quantile is among equal values. A row more moves it by at most max(q, 1 - q), which is the sensitivity of one
    row; a replaced row that may change group counts as two. One that may not moves it by 1. An empty
    group's quantile is uniform between the bounds. With probability at least 0.95 the rank of a single quantile
    is off by no more than ln(20 * points) * 2 * sensitivity / epsilon.

    Four to twelve quantiles are drawn together, if epsilon is from 0.01 to 64 for each row of a unit (twice as much
    under replace). A noisy number of rows t is drawn with an eighth of epsilon. Then the score of a set of quantiles is
    less than 0 by how far the numbers of values between them are from those wanted of t values, added up; a row more
    moves it by 1. Equal values are parted over 2**16 cells of their point. The proof stands in
    `dpfast.mechanisms.quantiles.joint`. Where there are fewer than 25 / epsilon rows or so between two quantiles,
    bounds far from the values make all quantiles wrong: give closer ones, or ask for fewer quantiles.

    Other numbers of quantiles are drawn by halves: the middle one, then the others among the values left and right of
    it. The rows of a unit lie in different parts, but each row in one only, so that all the quantiles of a level cost
    what one does: epsilon' is epsilon divided by log2(k + 1) levels for k quantiles, rounded up. Where parts of the
    values have fewer levels than others, these get more, so that epsilon is spent in all of them. The proof stands in
    `dpfast.mechanisms.quantiles.tree`. A release draws all levels with the same epsilon', for zCDP adds up its square,
    and all numbers of quantiles so where the budget is given as rho. Where the point is drawn that parts the values,
    equal values are parted as well, evenly over 2**16 cells of the point, one of which is drawn with it by the score
    -abs(left - q n).

    Points are found from certified partial sums of weights near the quantiles' ranks, and in ball arithmetic where
    these leave a doubt. Each quantile of each group uses up three words, or four, whatever the values are.

    References
    ----------
    McSherry, Talwar (2007); Smith (2011), algorithm 2, for a single quantile; Kaplan, Schnapp, Stemmer (2022),
    algorithm 1, for several; Gillenwater, Joseph, Kulesza (2021) for several together.

    Examples
    --------
    >>> import numpy as np
    >>> delays = np.arange(100_000) % 1000
    >>> bool(abs(quantiles(delays, 0.5, bounds=(-60, 2000), epsilon=1.0) - 500) < 5)
    True
    >>> quantiles([5, 5, 5, 7] * 100, [0.25, 0.5, 0.9], bounds=(0, 1000), epsilon=10)
    array([5, 5, 7])
    >>> quantiles([1.0, 9.0] * 500, 0.2, bounds=(0, 10), epsilon=10, groups=[0, 1] * 500, group_count=2, grid=1)
    array([1., 9.])
    >>> quantiles([1, 2], 1.5, bounds=(0, 10), epsilon=1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: q must be a number from 0 to 1, or several different ones, but was 1.5

    """
    parts, order, single = read_quantiles(q)
    rows = BOUND.read("max_rows_per_group", max_rows_per_group)
    relation = read_neighbors(neighbors)
    units = budget_units(epsilon, "epsilon")
    column = borrow(values, "values")
    if dimensions(values) == 0:
        raise ColumnError("values must be a column, but was a number; pass a list of numbers")
    whole = column.dtype.kind in "iu"
    points = public_grid(check_bounds(bounds), grid, whole=whole)
    grouped = _group(column, _borrow_groups(groups, group_count, column.length), group_count, points)
    alone, source = len(grouped) == 1, random_source(random)
    if joint_pays(len(parts), units, rows, relation):
        joint = joint_calibration(parts, units, rows, relation, alone=alone)
        drawn = draw_joint_quantiles(grouped, points.points, joint, source)
    else:
        tree = quantile_tree(parts)
        share = Fraction(units, UNITS_PER_ONE) / len(tree.levels)
        calibration = Calibration(tree, share, rows, relation, alone=alone, ways=True)
        drawn = draw_quantiles(grouped, points.points, calibration, source)
    drawn = drawn[:, order] + (points.lower - 1)
    released = drawn * int(points.step) if whole and points.exponent >= 0 else points.values(drawn)
    if single:
        released = released[:, 0]
    return released if groups is not None else released[0].item() if single else released[0]


def _borrow_groups(groups: Any, group_count: Any, length: int) -> Column | None:
    if groups is None:
        if group_count is not None:
            raise ParameterError("group_count", group_count, "left out without groups", "give groups= as well")
        return None
    _GROUP_COUNT.read("group_count", group_count)
    column = borrow(groups, "groups")
    if column.dtype.kind not in "iu":
        raise ColumnError(f"groups must be a column of integers, but was one of {column.dtype}; number the groups")
    if dimensions(groups) != 1:
        raise ColumnError("groups must be a column; pass one dimension, with one number for each value")
    if column.length != length:
        raise ColumnError(f"groups must have a row for each of the {length} values, but had {column.length}")
    return column


def _group(values: Column, groups: Column | None, group_count: int | None, grid: PublicGrid) -> GroupedPoints:
    """Return the values as points of the grid, group by group."""
    count = 1 if group_count is None else int(group_count)
    chunks = -(-values.length // BLOCK_ROWS)
    threads = min(thread_count(None, values.length), max(1, _MOST_COUNTERS // (count + 1)))

    def collect(first: int, last: int) -> Collector:
        collector = Collector(count, grid.points)
        rows = min(values.length, BLOCK_ROWS)
        no_slots, numbers = np.zeros(rows, np.uint32), np.empty(rows, np.int64)
        for start in range(first * BLOCK_ROWS, min(last * BLOCK_ROWS, values.length), BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, values.length)
            placed = numbers[: stop - start]
            place_points(values.block(start, stop), values.missing(start, stop), grid, placed)
            slots: NDArray[Any] = no_slots[: stop - start]
            if groups is not None:
                slots = groups.block(start, stop)
                missing = groups.missing(start, stop)
                if missing is not None:
                    placed[missing] = 0
            collector.add(slots, placed)
        return collector

    return Collector.join(in_stretches(collect, chunks, threads))


def place_points(
    values: NDArray[Any], missing: NDArray[np.bool_] | None, grid: PublicGrid, out: NDArray[np.int64]
) -> None:
    """Write the number of each value's nearest point, from 1 on, 0 for null and NaN."""
    valid = np.ones(values.size, np.uint8) if missing is None else (~missing).view(np.uint8)
    centre = grid.lower - 1
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # of a signalling NaN NumPy would warn
            values = values.astype(np.float64, copy=False)
    if grid.doublings:
        floats = values.astype(np.float64, copy=False)
        shape = MANTISSA, grid.finest, grid.doublings
        number_floats(floats, valid, *shape, grid.lower, grid.upper, centre, out)
        return
    if values.dtype.kind == "f":
        half = -grid.exponent // 2
        factors = 2.0**half, 2.0 ** (-grid.exponent - half)
        round_floats(values, valid, *factors, grid.lower, grid.upper, centre, out)
        return
    steps = values.astype(np.int64, copy=False)
    if grid.exponent > 0:
        # The last bit that is shifted out rounds; points fit into an int64, so that the exponent is below 63.
        steps = (steps >> grid.exponent) + ((steps >> (grid.exponent - 1)) & 1)
    elif grid.exponent < 0:
        shift = -grid.exponent
        steps = np.clip(steps, -(2**53) >> min(shift, 54), 2**53 >> min(shift, 54)) << min(shift, 62)
    clip_integers(steps, valid, grid.lower, grid.upper, centre, out)
