"""What a user may ask, with its exact sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Numeric, Special, Text, is_real, no_numbers
from dpfast.columns.candidates import Candidates, read_candidates
from dpfast.columns.declarations import TypedColumn
from dpfast.columns.grid import Bounds, Grid, PublicGrid, check_bounds, public_grid, read_grid
from dpfast.columns.ranks import PARTS, Quantiles, read_quantiles
from dpfast.errors import ParameterError

__all__ = [
    "Bins",
    "Measure",
    "ModeQuery",
    "QuantileQuery",
    "Query",
    "bins",
    "choices_measure",
    "count",
    "mean",
    "mode",
    "points_measure",
    "quantile",
    "sum",
    "sum_measure",
]


#: A table may have a column without a name.
NAME = Text("a column's name", blank=True)
Name: TypeAlias = Annotated[str, NAME]
OwnName: TypeAlias = Annotated[str | None, replace(NAME, optional=True)]


def _no_edges() -> Iterator[object]:
    yield from (5, 0.5, "01", b"01", object(), {0: 1}, [], [0], [0, 0], [1, 0], [0, "1"], [0, True], [0, 2**53 + 1])
    yield from (np.zeros((2, 2)), ["a", "b"], *([0, number] for number in (*no_numbers(), None)))


Edges: TypeAlias = Annotated[Sequence[Numeric] | TypedColumn, Special(_no_edges)]


@dataclass(frozen=True)
class Bins:
    """A key made of a numeric column and public edges: x lies in the bin ``edges[i] <= x < edges[i + 1]``.

    A bin is called by its left edge, in a key column of the column's name: Int64 if all edges are integers,
    else Float64. Values below the first edge, from the last edge on, NaN and null belong to the null key.
    Values are compared as float64.

    Parameters
    ----------
    column
        A column of integers or floats.
    edges
        At least two finite numbers, increasing. They are public: choose them without looking at the data.

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
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        allowed = "at least two finite, increasing numbers"
        NAME.read("column", self.column)
        if isinstance(self.edges, (str, bytes)):
            raise ParameterError("edges", self.edges, allowed)
        try:
            edges = tuple(self.edges)
            exact = all(is_real(edge) and float(edge) == edge for edge in edges)
        except (TypeError, ValueError, OverflowError):
            exact = False
        if not exact or len(edges) < 2 or not all(math.isfinite(edge) for edge in edges):
            raise ParameterError("edges", self.edges, allowed)
        if not all(left < right for left, right in pairwise(edges)):
            raise ParameterError("edges", self.edges, allowed)
        whole = all(float(edge).is_integer() and -(2**53) <= edge <= 2**53 for edge in edges)
        object.__setattr__(self, "edges", tuple((int if whole else float)(edge) for edge in edges))

    @property
    def labels(self) -> tuple[float, ...]:
        """The bins' names: each one's left edge."""
        return self.edges[:-1]


@dataclass(frozen=True)
class Measure:
    """One exact integer aggregate per group, from which answers are made.

    A row contributes

    - ``"rows"``: 1;
    - ``"values"``: 1 where ``column`` is neither null nor NaN, else 0; ``"missing"``: 0 there, else 1;
    - ``"sum"``: ``clip(round_half_even(x / 2**step_exponent), lower, upper) - centre``, 0 where x is null or
      NaN;
    - ``"points"``: the same, with ``centre`` one below ``lower``, so that 0 is none; they are not added up but kept
      group by group; with ``doublings`` they are the numbers of points of a `PublicGrid`;
    - ``"choices"``: the number of the candidate that it is, from 1, 0 for none; rows are counted for each of them.

    ``lower``, ``upper`` and ``centre`` count steps of ``2**step_exponent``; infinities are clipped like any
    other value. The largest magnitude of a sum's contribution times 2**38 rows stays below 2**62.
    """

    kind: Literal["rows", "values", "missing", "sum", "points", "choices"]
    column: str | None = None
    step_exponent: int = 0
    lower: int = 0
    upper: int = 1
    centre: int = 0
    candidates: tuple[Any, ...] = ()
    doublings: int = 0

    @property
    def selects(self) -> bool:
        """Whether answers are selected, by the exponential mechanism, and not sums with noise."""
        return self.kind in ("points", "choices")

    @property
    def points(self) -> int:
        """How many points or candidates there are."""
        return self.upper - self.centre

    @property
    def grid(self) -> PublicGrid:
        """The grid of points."""
        return PublicGrid(self.step_exponent, self.lower, self.upper, self.doublings)

    def sensitivity(self, unit: PrivacyUnit) -> Sensitivity:
        """Return how far the figures of all groups can move between neighbours, in steps, exactly.

        G groups of R rows a unit; a row contributes between low and high, so at most M = max(|low|, |high|) in
        magnitude. Adding a unit moves at most G entries by R M each: L1 = G R M, L2 = sqrt(G) R M. Replacing one
        takes away and adds: L1 = 2 G R M; in L2 an entry that both touch moves by at most R S,
        S = max(high, 0) - min(low, 0), and two entries apart by R M each, so L2 = sqrt(G) R max(S, sqrt(2) M).
        """
        low, high = (self.lower - self.centre, self.upper - self.centre) if self.kind == "sum" else (0, 1)
        largest, spread = max(abs(low), abs(high)), max(high, 0) - min(low, 0)
        groups, rows = unit.max_groups, unit.max_rows_per_group
        step = float(Fraction(2) ** self.step_exponent) if self.kind == "sum" else 1.0
        rows_reason = [f"{rows} rows"] * (rows > 1)
        row_reason = f"{largest * step:g} a row"
        l1_terms = [f"{groups} groups"] * (groups > 1) + rows_reason
        l2_terms = [f"sqrt({groups} groups)"] * (groups > 1) + rows_reason
        if unit.neighbors == "add_remove":
            l1, l2_squared = groups * rows * largest, groups * (rows * largest) ** 2
            l2_row = row_reason
        else:
            l1 = 2 * groups * rows * largest
            l2_squared = groups * rows**2 * max(spread**2, 2 * largest**2)
            l1_terms.insert(0, "2 (replaced)")
            replaced = f"sqrt(2) x {row_reason}"
            l2_row = replaced if 2 * largest**2 >= spread**2 else f"{spread * step:g} a replaced row"
        return Sensitivity(l1, l2_squared, " x ".join([*l1_terms, row_reason]), " x ".join([*l2_terms, l2_row]))


@dataclass(frozen=True)
class Query:
    """A statistic for every group: what `count`, `sum` and `mean` return.

    It is a specification and no expression: it cannot be evaluated, and so cannot be evaluated twice.

    Attributes
    ----------
    kind, column, bounds
        What is asked.
    computed
        Whether a bound was given as a NumPy number, as computations on arrays yield them: a plan warns of it.

    """

    kind: Literal["count", "sum", "mean", "quantile", "mode"]
    column: str | None = None
    bounds: tuple[float, float] | None = None
    computed: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True)
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

    @property
    def labels(self) -> tuple[str, ...]:
        """What a query's name is followed by in the release's columns: ``_p25`` for 0.25, nothing for one number."""
        if self.single:
            return ("",)
        percents = (Decimal(self.parts[place]) * 100 / PARTS for place in self.order)
        return tuple(f"_p{percent.normalize():f}" for percent in percents)


@dataclass(frozen=True)
class ModeQuery(Query):
    """The most common value in every group, of public candidates: what `mode` returns."""

    candidates: tuple[Any, ...] = ()


def count(column: OwnName = None) -> Query:
    """Ask for the number of rows in every group, or of a column's values.

    Parameters
    ----------
    column
        A column of any dtype, whose nulls and NaN are not counted. None for all rows.

    Examples
    --------
    >>> count()
    Query(kind='count', column=None, bounds=None)
    >>> count("dep_delay")
    Query(kind='count', column='dep_delay', bounds=None)

    """
    return Query("count", None if column is None else NAME.read("column", column))


def sum(column: Name, *, bounds: Bounds) -> Query:
    """Ask for the sum of a column in every group, each value clipped to the bounds.

    Parameters
    ----------
    column
        A column of integers, floats or Booleans. Null and NaN count as missing and add nothing; infinities
        are clipped.
    bounds
        The lowest and the highest value that counts in full: public, chosen without looking at the data.

    Examples
    --------
    >>> sum("dep_delay", bounds=(0, 600))
    Query(kind='sum', column='dep_delay', bounds=(0.0, 600.0))

    """
    return Query("sum", NAME.read("column", column), check_bounds(bounds), _are_computed(bounds))


def mean(column: Name, *, bounds: Bounds) -> Query:
    """Ask for the mean of a column's values in every group, each value clipped to the bounds.

    It is made of two answers that share the query's budget: the sum of the differences to the middle of the
    bounds, and the number of values that are not missing.

    Parameters
    ----------
    column, bounds
        As for `sum`.

    Examples
    --------
    >>> mean("dep_delay", bounds=(-60, 600)).bounds
    (-60.0, 600.0)

    """
    return Query("mean", NAME.read("column", column), check_bounds(bounds), _are_computed(bounds))


def quantile(column: Name, q: Quantiles, *, bounds: Bounds, grid: Grid = None) -> QuantileQuery:
    """Ask for quantiles of a column's values in every group.

    Parameters
    ----------
    column
        A column of integers, floats or Booleans. Null and NaN count as missing and are dropped; infinities are
        clipped.
    q
        A number from 0 to 1, or several different ones; read to seven decimals.
    bounds
        The lowest and the highest value that can be drawn; values beyond are clipped. Public, chosen without
        looking at the data.
    grid
        The distance between the points that can be drawn, a power of two; see `dpf.quantiles`.

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
    checked = NAME.read("column", column), check_bounds(bounds), _are_computed(bounds)
    return QuantileQuery("quantile", *checked, parts, tuple(order), single, None if grid is None else read_grid(grid))


def mode(column: Name, *, candidates: Candidates) -> ModeQuery:
    """Ask for the most common value of a column in every group, among public candidates.

    Parameters
    ----------
    column
        A column of strings, categories, integers, Booleans or dates. Rows of other values than the candidates
        count for none of them, and so do nulls, unless None is a candidate.
    candidates
        The values that may be answered, at least one: a list of different strings, integers, Booleans or dates,
        and None if null is to count as a value. Public, chosen without looking at the data.

    Notes
    -----
    A release has a column of the query's name (String, Int64, UInt64 beyond it, Boolean or Date) with one of the
    candidates for each group, and a column ``name_rows``: with probability 0.95 the answer has at most so many rows
    fewer than the most common candidate (`Plan.error`), of those kept of each privacy unit. In a group without
    rows all candidates are as likely. How many rows the answer has is not shown; a count by the column tells.

    Examples
    --------
    >>> mode("dest", candidates=["IAH", "MIA"]).candidates
    ('IAH', 'MIA')

    """
    return ModeQuery("mode", NAME.read("column", column), candidates=read_candidates(candidates))


def bins(column: Name, edges: Edges) -> Bins:
    """Group by the bins of a numeric column; see `Bins`.

    Examples
    --------
    >>> bins("distance", [0, 500, 1000, 5000]).labels
    (0, 500, 1000)

    """
    return Bins(column, edges)  # type: ignore[arg-type]  # which become a tuple there


def _are_computed(bounds: tuple[object, object]) -> bool:
    return any(isinstance(bound, np.generic) for bound in bounds)


# With 2**38 rows, the documented limit, and less than 2**24 steps a row, sums stay below 2**62.
_LARGEST_CONTRIBUTION, _LARGEST_STEPS = 2**24 - 1, 2**53
# Steps and the scales in them stay normal floats.
_FINEST_EXPONENT = -960


def sum_measure(query: Query, *, whole: bool) -> Measure:
    """Return the measure of a sum or of a mean's numerator: the finest step that its bounds allow.

    Parameters
    ----------
    query
        A sum or mean.
    whole
        Whether the column holds integers; then a sum's step is at least 1.

    """
    assert query.bounds is not None
    lower, upper = (Fraction(bound) for bound in query.bounds)
    centred = query.kind == "mean"
    widest = max(abs(lower), abs(upper))
    exponent = math.frexp(float((upper - lower) / 2 if centred else widest))[1] - 26
    exponent = max(exponent, math.frexp(float(widest))[1] - 54, _FINEST_EXPONENT)
    if whole and not centred:
        exponent = max(exponent, 0)
    while True:
        step = Fraction(2) ** exponent
        low, high = round(lower / step), round(upper / step)
        centre = round((lower + upper) / (2 * step)) if centred else 0
        largest = max(abs(low - centre), abs(high - centre))
        if largest <= _LARGEST_CONTRIBUTION and max(abs(low), abs(high)) <= _LARGEST_STEPS:
            break
        exponent += 1
    if low == high:
        raise ParameterError("bounds", query.bounds, "further apart in relation to their size")
    return Measure("sum", query.column, exponent, low, high, centre)


def points_measure(query: QuantileQuery, *, whole: bool) -> Measure:
    """Return the measure of a quantile, whose points are numbered from 1."""
    grid = public_grid(check_bounds(query.bounds), query.grid, whole=whole)
    return Measure("points", query.column, grid.exponent, grid.lower, grid.upper, grid.lower - 1, (), grid.doublings)


def choices_measure(query: ModeQuery) -> Measure:
    """Return the measure of a mode."""
    return Measure("choices", query.column, lower=1, upper=len(query.candidates), candidates=query.candidates)
