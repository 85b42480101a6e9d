"""What a user may ask: keys made of bins, sums, means, quantiles, extremes and modes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpfast.arguments import Choice, Number
from dpfast.columns.bounds import (
    AUTO,
    AskedBounds,
    OrderedBounds,
    OwnAddedBounds,
    OwnUnitBounds,
    ordered_bounds,
    read_bounds,
    show_bounds,
)
from dpfast.columns.candidates import Candidates, read_candidates
from dpfast.columns.edges import Edge, Edges, read_edges
from dpfast.columns.grid import Grid, read_grid
from dpfast.columns.ranks import PARTS, Quantiles, read_quantiles
from dpfast.columns.values import NUMBERS, ValueKind
from dpfast.errors import ParameterError
from dpfast.rows.values import NAME
from dpfast.showing import Facts, Shown

__all__ = [
    "Bins",
    "ModeQuery",
    "Per",
    "QuantileQuery",
    "Query",
    "UnitQuery",
    "are_computed",
    "bins",
    "maximum",
    "mean",
    "minimum",
    "mode",
    "quantile",
    "sum",
]


#: What is asked.
Kind: TypeAlias = Literal[
    "count",
    "filtered_count",
    "units",
    "sum",
    "mean",
    "proportion",
    "variance",
    "std",
    "covariance",
    "histogram",
    "cdf",
    "quantile",
    "minimum",
    "maximum",
    "mode",
    "top_k",
    "count_distinct",
]
LOWEST, HIGHEST = Number(0, 0.5), Number(0.5, 1)
PER = Choice(("row", "unit"))
#: Whether each row counts the same, or each privacy unit.
Per: TypeAlias = Annotated[Literal["row", "unit"], PER]
Name: TypeAlias = Annotated[str, NAME]
OwnName: TypeAlias = Annotated[str | None, replace(NAME, optional=True)]


@dataclass(frozen=True, repr=False)
class Bins(Shown):
    """A key made of a column and public edges: x lies in the bin ``edges[i] <= x < edges[i + 1]``.

    A bin is called by its left edge, in a key column of the column's name: Int64 if all edges are integers,
    else Float64; or Date, Datetime, Duration or Time. Values below the first edge, from the last edge on, NaN and null
    belong to the null key. Integers and floats are compared as float64; decimals, dates and times exactly, where an
    edge such as 0.1 is the decimal that is written so.

    Parameters
    ----------
    column
        A column of integers, floats or decimals, or of dates, datetimes, durations or times.
    edges
        At least two finite numbers, increasing; or dates, datetimes, timedeltas or times, of the column's own type.
        They are public: choose them without looking at the data.

    Raises
    ------
    ParameterError
        If the edges are not numbers that float64 holds exactly, not finite or not increasing.

    Examples
    --------
    >>> Bins("hour", (0, 6, 12, 18, 24)).labels
    (0, 6, 12, 18)
    """

    column: str
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        NAME.read("column", self.column)
        object.__setattr__(self, "edges", read_edges(self.edges))

    @property
    def labels(self) -> tuple[Edge, ...]:
        """The bins' names: each one's left edge."""
        return self.edges[:-1]


@dataclass(frozen=True, repr=False)
class Query(Shown):
    """A statistic for every group: what `count`, `units`, `sum`, `mean`, `variance` and `std` return.

    It is a specification and no expression: it cannot be evaluated, and so cannot be evaluated twice.

    Attributes
    ----------
    kind, column, bounds
        What is asked.
    computed
        Whether a bound was given as a NumPy number, as computations on arrays yield them: a plan warns of it.
    values
        How the column's values are measured and shown, once its dtype is known (`of_columns`).

    """

    kind: Kind
    column: str | None = None
    bounds: AskedBounds | None = None
    computed: bool = field(default=False, repr=False, compare=False)
    values: ValueKind = field(default=NUMBERS, repr=False, compare=False)

    def _facts(self) -> Facts:
        """Return what is said."""
        return [(name, value) for name, value in super()._facts() if value is not None]

    def limits(self) -> tuple[Fraction, Fraction]:
        """Return the bounds as numbers of ticks; see `dpfast.columns.values`."""
        assert self.bounds is not None
        if isinstance(self.bounds, str):
            raise ParameterError("bounds", self.bounds, "two values here", "give bounds")
        lower, upper = self.values.limits(self.bounds, str(self.column))
        return Fraction(lower), Fraction(upper)

    @property
    def leaves_open(self) -> tuple[str, ...]:
        """The names of the bounds that are chosen privately."""
        return ("bounds",) if self.bounds == AUTO else ()

    @property
    def in_words(self) -> str:
        """What is asked, where that takes other words than the kind, the column and its bounds."""
        return ""


@dataclass(frozen=True, repr=False)
class UnitQuery(Query):
    """A sum or a mean to which each privacy unit adds one number: what `sum` and `mean` return of units."""

    @property
    def in_words(self) -> str:
        """What is asked."""
        assert self.bounds is not None
        if self.kind == "sum":
            return f"sum of {self.column}, the sum of each unit clipped to {show_bounds(self.bounds)}"
        return f"mean over units of the mean of {self.column}, values clipped to {show_bounds(self.bounds)}"


@dataclass(frozen=True, repr=False)
class QuantileQuery(Query):
    """Quantiles for every group: what `quantile` returns.

    Attributes
    ----------
    parts
        The quantiles in ascending order, in units of 1 / PARTS.
    order
        The place of each quantile as it was given.
    single
        Whether it was given as one number.
    grid
        The distance between points, None for the default.

    """

    parts: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    single: bool = False
    grid: float | None = None

    def _facts(self) -> Facts:
        """Return the quantiles as they were given, in place of what they are kept as."""
        kept = [(name, value) for name, value in super()._facts() if name not in ("parts", "order", "single")]
        return [*kept, ("quantiles", [self.parts[place] / PARTS for place in self.order])]

    @property
    def labels(self) -> tuple[str, ...]:
        """What a query's name is followed by in the release's columns: ``_p25`` for 0.25, nothing for one number."""
        if self.single:
            return ("",)
        percents = (Decimal(self.parts[place]) * 100 / PARTS for place in self.order)
        return tuple(f"_p{percent.normalize():f}" for percent in percents)

    @property
    def in_words(self) -> str:
        """What is asked of an extreme: which quantile it is read as."""
        if self.kind == "quantile" or self.bounds is None:
            return ""
        part = f"{self.parts[0] / PARTS:.7g}"
        return f"{self.kind}, as the {part}-quantile, of {self.column}, values clipped to {show_bounds(self.bounds)}"


@dataclass(frozen=True, repr=False)
class ModeQuery(Query):
    """The most common value in every group, of public candidates: what `mode` returns."""

    candidates: tuple[Any, ...] = ()


def sum(column: Name, *, bounds: OwnAddedBounds = None, unit_bounds: OwnUnitBounds = None) -> Query:
    """Ask for the sum of a column in every group: each value clipped, or the sum of each privacy unit.

    Parameters
    ----------
    column
        A column of integers, floats, decimals, Booleans or durations. Null and NaN count as missing and add nothing;
        infinities are clipped. The sum of decimals is a decimal, that of durations a duration.
    bounds
        The lowest and the highest value that counts in full: public, chosen without looking at the data. Two numbers,
        or two timedeltas. ``"auto"`` for bounds that the release chooses privately, from the data, at a share of its
        budget (`dpf.plan`): where nothing better is known, since good bounds cost nothing.
    unit_bounds
        In place of ``bounds``: what one privacy unit may add to a group. All its rows there are added up, and their sum
        is clipped to these, so that the noise does not depend on how many rows a unit has: ``max_rows_per_group`` plays
        no role, and may be left out where no other query needs it. Units without a value in a group add nothing. Where
        each row is a unit it is the same as ``bounds``.

    Notes
    -----
    No value of a unit is clipped but those of at least 4,096 times the larger of ``unit_bounds`` in magnitude, and
    infinities like them. Values are rounded to about 2**-35 of that bound before they are added up, whole numbers below
    bounds of 2**35 not at all. The sum itself is exact, and the same in any order of rows. What a unit adds to a
    `count` of a group is bounded by ``max_rows_per_group``.

    Raises
    ------
    ParameterError
        Neither or both of the bounds are given, or they are not two numbers or timedeltas, the lower one first.

    Examples
    --------
    >>> sum("dep_delay", bounds=(0, 600))
    Query(kind='sum', column='dep_delay', bounds=(0.0, 600.0))
    >>> sum("dep_delay", unit_bounds=(0, 5000)).in_words
    'sum of dep_delay, the sum of each unit clipped to [0, 5000]'

    """
    name = NAME.read("column", column)
    if unit_bounds is None:
        return Query("sum", name, read_bounds(bounds), are_computed(bounds))
    if bounds is not None:
        raise ParameterError("bounds", bounds, "left out where unit_bounds is given", "give one of both")
    return UnitQuery("sum", name, ordered_bounds(unit_bounds, "unit_bounds"), are_computed(unit_bounds))


def mean(column: Name, *, bounds: OrderedBounds, per: Per = "row") -> Query:
    """Ask for the mean of a column's values in every group, each value clipped to the bounds.

    It is made of two answers that share the query's budget: the sum of the differences to the middle of the
    bounds, and the number of values that are not missing, which is that of the other queries of the plan that need it.
    A group of which the noise leaves nothing shows the mean of all groups, within its interval.

    Parameters
    ----------
    column
        As for `sum`, or a column of dates, datetimes or times of day: its mean is one of these, that of dates a
        datetime, and the scale of its noise a duration.
    bounds
        As for `sum`, or two dates, datetimes or times: of the column's own type, with a time zone if it has one; or
        ``"auto"``.
    per
        ``"row"`` for the mean of all values. ``"unit"`` for the mean, over privacy units, of the mean of each unit's
        values in the group: each unit counts the same, however many rows it has, all of which count. It is made of the
        sum of these means and of the number of units that have a value, whose noise is that of one row a unit:
        ``max_rows_per_group`` plays no role, and may be left out where no other query needs it. The mean of a unit is
        rounded to the nearest step of the bounds, as values are. Where each row is a unit, both are the same.

    Examples
    --------
    >>> mean("dep_delay", bounds=(-60, 600)).bounds
    (-60.0, 600.0)
    >>> mean("dep_delay", bounds=(-60, 600), per="unit").in_words
    'mean over units of the mean of dep_delay, values clipped to [-60, 600]'
    >>> from datetime import datetime
    >>> mean("departed", bounds=(datetime(2013, 1, 1), datetime(2014, 1, 1))).column
    'departed'

    """
    name = NAME.read("column", column)
    if PER.read("per", per) == "row":
        return Query("mean", name, read_bounds(bounds), are_computed(bounds))
    if isinstance(bounds, str) and bounds == AUTO:
        raise ParameterError("bounds", bounds, 'two values with per="unit"', "write for example bounds=(0, 600)")
    return UnitQuery("mean", name, ordered_bounds(bounds), are_computed(bounds))


def quantile(column: Name, q: Quantiles, *, bounds: OrderedBounds, grid: Grid = None) -> QuantileQuery:
    """Ask for quantiles of a column's values in every group.

    Parameters
    ----------
    column
        A column of numbers, as for `sum`, or of dates, datetimes, durations or times. Null and NaN count as missing
        and are dropped; infinities are clipped.
    q
        A number from 0 to 1, or several different ones; read to seven decimals.
    bounds
        The lowest and the highest value that can be drawn, as for `mean`; values beyond are clipped. Public, chosen
        without looking at the data; or ``"auto"``.
    grid
        The distance between the points that can be drawn, a power of two; see `dpf.quantiles`. For columns of integers
        and floats only.

    Notes
    -----
    A release has a column of the query's name for a single number; for several ones a column for each, named
    by its percentage: ``delay_p25``, ``delay_p97.5``. There is no interval for the value: how far it lies from
    the exact one depends on how dense the values are there, which is private. ``delay_ranks`` bounds its error
    in ranks with probability 0.95, for the worst data (`Plan.error`): values far closer together than the bounds.

    Examples
    --------
    >>> query = quantile("dep_delay", [0.25, 0.5, 0.975], bounds=(-60, 600))
    >>> query.bounds, query.labels
    ((-60.0, 600.0), ('_p25', '_p50', '_p97.5'))

    """
    parts, order, single = read_quantiles(q)
    checked = NAME.read("column", column), read_bounds(bounds), are_computed(bounds)
    step = None if grid is None else read_grid(grid)
    return QuantileQuery("quantile", *checked, parts=parts, order=tuple(order), single=single, grid=step)


#: What a minimum and a maximum are read as.
Lowest: TypeAlias = Annotated[float, LOWEST]
Highest: TypeAlias = Annotated[float, HIGHEST]


def minimum(column: Name, *, bounds: OrderedBounds, q: Lowest = 0.01, grid: Grid = None) -> QuantileQuery:
    """Ask for a low quantile of a column's values in every group, in place of the minimum.

    A minimum itself cannot be private: it is one row's value, and what it is with that row and without may lie as far
    apart as the bounds. A low quantile says nearly as much, since a part ``q`` of the values lies below it.

    Parameters
    ----------
    column, bounds, grid
        As for `quantile`.
    q
        The quantile, at most 0.5. The smaller it is, the more values a group must have: with fewer than about
        ``20 / (q * epsilon)`` of them the answer tends to the lower bound.

    Examples
    --------
    >>> minimum("dep_delay", bounds=(-60, 600)).in_words
    'minimum, as the 0.01-quantile, of dep_delay, values clipped to [-60, 600]'

    """
    query = quantile(column, LOWEST.read("q", q), bounds=bounds, grid=grid)
    return replace(query, kind="minimum")


def maximum(column: Name, *, bounds: OrderedBounds, q: Highest = 0.99, grid: Grid = None) -> QuantileQuery:
    """Ask for a high quantile of a column's values in every group, in place of the maximum.

    A maximum itself cannot be private, as `minimum` says.

    Parameters
    ----------
    column, bounds, grid
        As for `quantile`.
    q
        The quantile, at least 0.5. The larger it is, the more values a group must have: with fewer than about
        ``20 / ((1 - q) * epsilon)`` of them the answer tends to the upper bound.

    Examples
    --------
    >>> maximum("dep_delay", bounds=(-60, 600), q=0.999).in_words
    'maximum, as the 0.999-quantile, of dep_delay, values clipped to [-60, 600]'

    """
    query = quantile(column, HIGHEST.read("q", q), bounds=bounds, grid=grid)
    return replace(query, kind="maximum")


def mode(column: Name, *, candidates: Candidates) -> ModeQuery:
    """Ask for the most common value of a column in every group, among public candidates.

    Parameters
    ----------
    column
        A column that can be a key: strings, bytes, categories, integers, decimals, Booleans, dates, datetimes, times or
        durations. Rows of other values than the candidates count for none of them, and so do nulls, unless None is a
        candidate.
    candidates
        The values that may be answered, at least one: a list of different values of one kind, and None if null is to
        count as a value. Public, chosen without looking at the data.

    Notes
    -----
    A release has a column of the query's name (String, Binary, Int64, UInt64 beyond it, Decimal of 38 digits, Boolean,
    Date, Datetime or Duration of microseconds, or Time) with one of the candidates for each group, and a column
    ``name_rows``: with probability 0.95 the answer has at most so many rows fewer than the most common candidate
    (`Plan.error`), of those kept of each privacy unit. In a group without rows all candidates are as likely. How many
    rows the answer has is not shown; a count by the column tells.

    Examples
    --------
    >>> mode("dest", candidates=["IAH", "MIA"]).candidates
    ('IAH', 'MIA')

    """
    return ModeQuery("mode", NAME.read("column", column), candidates=read_candidates(candidates))


def bins(column: Name, edges: Edges) -> Bins:
    """Group by the bins of a column of numbers, dates or times; see `Bins`.

    Examples
    --------
    >>> bins("distance", [0, 500, 1000, 5000]).labels
    (0, 500, 1000)

    """
    return Bins(column, edges)  # type: ignore[arg-type]  # which become a tuple there


def are_computed(bounds: Iterable[object] | None) -> bool:
    """Return whether a bound was given as a NumPy number."""
    return any(isinstance(bound, np.generic) for bound in bounds or ())
