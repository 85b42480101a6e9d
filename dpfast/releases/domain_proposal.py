"""Domains of tables whose values nobody may look at: bins and categories by private quantiles and private values."""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, TypeAlias

import polars as pl

from dpfast.accounting.budget import Delta, Epsilon, Rho, ShownAmounts
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.aggregation.sources import Data, Schema, path_of
from dpfast.arguments import Special, Whole
from dpfast.columns.comparable import is_integer
from dpfast.columns.dtypes import dtype_name
from dpfast.domain.arguments import OUTSIDE, ColumnNames, Outside, OwnAttributes
from dpfast.domain.counting import open_data
from dpfast.domain.declaring import read_columns, values_of_dtype
from dpfast.domain.domain import Domain
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER
from dpfast.progress import TellStages
from dpfast.queries.basic import Query, quantile
from dpfast.queries.basic import bins as bins_of
from dpfast.queries.values import top_k
from dpfast.releases.plan import Plan
from dpfast.releases.planning import plan
from dpfast.releases.release import Release
from dpfast.showing import Shown

__all__ = ["DomainProposal", "plan_proposal", "propose_domain"]

#: The outermost quantiles: what lies beyond them is in a bin of its own, up to the bound.
_TAIL = Fraction(1, 100)
#: Edges of whole numbers are exact floats.
_LARGEST_EDGE = 2**53
#: The longest duration that a column holds.
_LONGEST = datetime.timedelta(microseconds=2**63 - 1)
_TIMES = (datetime.date, datetime.timedelta, datetime.time)

_BINS = Whole(1, 1_000, mend="write for example {name}=16")
_CATEGORIES = Whole(1, 10_000, mend="write for example {name}=100")
#: Bounds of columns of numbers or times, by their names.
ColumnBounds: TypeAlias = Annotated[
    Mapping[str, Any] | None,
    Special(lambda: (5, "a", [1], object(), {"none such": (0, 1)}, {"n": 5}, {"n": (1, 0)}), optional=True),
]


@dataclass(frozen=True, repr=False)
class DomainProposal(Shown):
    """A domain that was chosen by a private look at a table, and what that cost.

    Guarantee
        Post-processing of one release: it is as private as `spent` says, whatever is made of it.

    Attributes
    ----------
    attributes
        The values of each column, as `Domain` takes them.
    outside
        What becomes of other values.
    spent
        What it cost; None where nothing had to be asked.
    entry
        The number of the first charge in the ledger, or None.

    """

    attributes: dict[str, Any]
    outside: Outside
    spent: ShownAmounts | None
    entry: int | None

    @property
    def domain(self) -> Domain:
        """The domain."""
        return Domain(self.attributes, self.outside)


def propose_domain(
    data: Data,
    attributes: OwnAttributes = None,
    *,
    ledger: Annotated[Ledger, LEDGER],
    columns: ColumnNames = None,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    bins: Annotated[int, _BINS] = 16,
    categories: Annotated[int, _CATEGORIES] = 64,
    listed: ColumnNames = None,
    bounds: ColumnBounds = None,
    outside: Outside = "null",
    neighbors: Neighbors = "add_remove",
    dataset: OwnName = None,
    schema: Schema = None,
    progress: TellStages = None,
) -> DomainProposal:
    """Choose the values and bins of a table's columns by a private look at it: at a price, charged before it.

    What its schema says of a column (both Booleans, the categories of an Enum) or you declare costs nothing. Of other
    columns of numbers, dates, datetimes, durations and times the edges of bins are private quantiles; of strings and
    categories the values are those that enough rows have, found privately.

    Guarantee
        One release, (epsilon, delta)-differentially private or of rho, where neighbouring data differ in one row: it
        asks `dpf.quantile` of each column that gets bins, and `dpf.top_k` of each that gets categories, in one plan
        (`dpf.plan`), whose guarantee this is. All else is made of its answers and of the schema. The ledger is charged
        before any row is read, and for nothing where nothing has to be asked.

    Parameters
    ----------
    data, schema
        As for `dpfast.plan`. Each row is a privacy unit.
    attributes
        The values of columns that are public, as for `Domain`.
    ledger
        The budget.
    columns
        Which columns; all of them if not given.
    epsilon, delta, rho
        What the whole proposal may cost; delta is needed to find categories. Each column that is asked of gets an equal
        share.
    bins
        About how many bins a column gets: as many rows in each, one more for each tail, fewer where values repeat, and
        a bin of its own for a whole number that many rows have.
    categories
        How many values at most; those that few rows have are not among them.
    listed
        Columns of whole numbers or dates whose values are categories, not numbers: codes.
    bounds
        The bounds of columns that get bins, public, by their names; chosen privately if not given.
    outside
        As for `Domain`. By default all other values, and nulls, have a cell: no row is left out.
    neighbors, dataset
        As for `dpfast.plan`.
    progress
        Called with the name of each stage as it begins.

    Returns
    -------
    DomainProposal
        With ``domain``, ``attributes`` and ``spent``.

    Raises
    ------
    ParameterError, ColumnError
        An argument is of another kind or range, or a column is of a type that no domain has; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.
    DpfastError
        The data cannot be read to their end, after the charge.

    Examples
    --------
    >>> import dpfast as dpf
    >>> people = pl.DataFrame({"age": list(range(100)) * 100, "city": ["Rome", "Oslo"] * 5_000})
    >>> ledger = dpf.Ledger(epsilon=4.0, delta=1e-6)
    >>> found = dpf.propose_domain(people, ledger=ledger, epsilon=4.0, delta=1e-6, bins=4, bounds={"age": (0, 120)})
    >>> sorted(found.attributes["city"]), found.domain.shape, str(found.spent)
    (['Oslo', 'Rome'], (7, 3), 'epsilon 4, delta 1e-06')

    """
    LEDGER.read("ledger", ledger)
    planned = plan_proposal(
        data,
        attributes,
        columns=columns,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        bins=bins,
        categories=categories,
        listed=listed,
        bounds=bounds,
        outside=outside,
        neighbors=neighbors,
        dataset=dataset,
        schema=schema,
    )
    return planned.run(ledger, progress)


@dataclass(frozen=True)
class PlannedProposal:
    """What a proposal asks, checked: nothing is charged yet, and no row read.

    Attributes
    ----------
    known
        The values of each column; None for those that are asked of.
    outside
        What becomes of other values.
    queries
        What is asked of each column that is.
    wholes
        The columns of whole numbers.
    plan
        The release that answers; None where nothing is asked.

    """

    known: dict[str, Any]
    outside: Outside
    queries: dict[str, Query]
    wholes: frozenset[str]
    plan: Plan | None

    def run(self, ledger: Ledger, progress: TellStages = None) -> DomainProposal:
        """Charge the ledger, look, and propose."""
        if self.plan is None:
            return DomainProposal(self.known, self.outside, None, None)
        released = self.plan.run(ledger, progress=progress)
        found = {
            column: _proposed(column, query, f"column {place}", released, whole=column in self.wholes)
            for place, (column, query) in enumerate(self.queries.items())
        }
        return DomainProposal({**self.known, **found}, self.outside, released.spent, released.entry)


def plan_proposal(
    data: Data,
    attributes: OwnAttributes,
    *,
    columns: ColumnNames,
    bins: int,
    categories: int,
    listed: ColumnNames,
    bounds: ColumnBounds,
    outside: Outside,
    dataset: OwnName,
    schema: Schema,
    **budget: Any,
) -> PlannedProposal:
    """Return what `propose_domain` does, before it does it; the parameters are its own."""
    OUTSIDE.read("outside", outside)
    parts, most = _BINS.read("bins", bins), _CATEGORIES.read("categories", categories)
    source = open_data(data, schema)
    dtypes = source.schema()
    declared, names = read_columns(dtypes, attributes, columns)
    known = {name: declared.get(name, values_of_dtype(dtypes[name])) for name in names}
    asked = [name for name, values in known.items() if values is None]
    codes = [] if listed is None else read_columns(dtypes, None, listed, "listed")[1]
    limits = _read_bounds(bounds, asked)
    queries = {name: _query(name, dtypes[name], parts, most, name in codes, limits) for name in asked}
    # What was declared must serve before anything is charged.
    if declared:
        Domain(declared, outside)
    wholes = frozenset(name for name in asked if is_integer(dtypes[name]))
    if not queries:
        return PlannedProposal(known, outside, queries, wholes, None)
    by_place: dict[str, Any] = {f"column {place}": query for place, query in enumerate(queries.values())}
    named = path_of(data) if dataset is None else dataset
    planned = plan(source, privacy_unit="row", dataset=named, **budget, **by_place)
    return PlannedProposal(known, outside, queries, wholes, planned)


def _read_bounds(bounds: object, asked: list[str]) -> Mapping[str, Any]:
    """Return bounds by the names of columns that are asked of."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping) or not all(name in asked for name in bounds):
        allowed = "a dictionary of bounds by columns whose bins are asked for"
        raise ParameterError("bounds", bounds, allowed, 'write for example {"age": (0, 120)}')
    return bounds


def _query(name: str, dtype: pl.DataType, parts: int, most: int, listed: bool, bounds: Mapping[str, Any]) -> Query:
    """Return what is asked of a column."""
    times = isinstance(dtype, (pl.Date, pl.Datetime, pl.Duration, pl.Time))
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)) or (listed and (is_integer(dtype) or dtype == pl.Date)):
        if name in bounds:
            raise ParameterError("bounds", Words(f"of {name!r}"), "of columns that get bins", "leave them out")
        return top_k(name, most)
    if listed:
        given, allowed = Words(f"{name!r}, a column of {dtype_name(dtype)}"), "columns of strings, integers or dates"
        raise ParameterError("listed", given, allowed, "leave it out, for bins")
    if not (dtype.is_float() or is_integer(dtype) or times):
        kinds = "integers, floats, strings, categories, Booleans, dates or times"
        raise ColumnError(
            f"the column {name!r} must hold {kinds} for a domain, but was of {dtype_name(dtype)}; "
            "name other columns, or cast it before"
        )
    points = sorted({_TAIL, 1 - _TAIL} | {Fraction(place, parts) for place in range(1, parts)})
    return quantile(name, [float(point) for point in points], bounds=bounds.get(name, "auto"))


def _proposed(name: str, query: Query, own: str, released: Release, *, whole: bool) -> Any:
    """Return the values of a column, or its bins, by what was released of it."""
    frame = released.frame
    if query.kind == "top_k":
        found = frame[own].item()
        # A domain has a value at least; nobody has one of these.
        return pl.Series(name, found).drop_nulls() if len(found) else pl.Series(name, [_stand_in(found.dtype)])
    points = sorted(frame[column].item() for column in frame.columns if _is_point(column, own))
    low, high = released.chosen.get(own, query.bounds)
    return bins_of(name, _edges([low, *points, high], whole=whole))


def _is_point(column: str, own: str) -> bool:
    return column.startswith(f"{own}_p")


def _edges(values: list[Any], *, whole: bool) -> list[Any]:
    """Return the edges of bins between ascending values; one that comes again has a bin of its own.

    Examples
    --------
    >>> _edges([0, 3.0, 3.0, 9.5], whole=True), _edges([0.0, 1.0], whole=False)
    ([0, 3, 4, 10], [0.0, 1.0000000000000002])

    """
    if whole:
        values = [min(max(math.floor(value), -_LARGEST_EDGE), _LARGEST_EDGE - 1) for value in values]
    elif not isinstance(values[0], _TIMES):
        values = [float(value) for value in values]
    edges = {*values[:-1], _after(values[-1])}
    edges |= {_after(one) for one, other in pairwise(values) if one == other}
    if len(edges) == 1:  # nothing comes after the last of all values
        edges.add(_before(values[0]))
    return sorted(edges)


def _after(value: Any) -> Any:
    """Return the next value; the last of all, which no error may tell of, is its own next one."""
    try:
        if isinstance(value, datetime.timedelta):
            return min(value + datetime.timedelta(microseconds=1), _LONGEST)
        if isinstance(value, datetime.datetime):
            return value + datetime.timedelta(microseconds=1)
        if isinstance(value, datetime.date):
            return value + datetime.timedelta(days=1)
    except OverflowError:
        return value
    if isinstance(value, datetime.time):
        moment = datetime.datetime.combine(datetime.date(2000, 1, 1), value) + datetime.timedelta(microseconds=1)
        return max(moment.time(), value)
    return value + 1 if isinstance(value, int) else min(math.nextafter(value, math.inf), sys.float_info.max)


def _before(value: Any) -> Any:
    """Return a value that is less than the last of all."""
    if isinstance(value, datetime.time):
        return datetime.time(0)
    if isinstance(value, (datetime.datetime, datetime.timedelta)):
        return value - datetime.timedelta(microseconds=1)
    return value - datetime.timedelta(days=1) if isinstance(value, datetime.date) else math.nextafter(value, -math.inf)


def _stand_in(dtype: pl.DataType) -> Any:
    """Return a value for a column of which none was found."""
    return "" if dtype == pl.String else pl.Series([0]).cast(dtype).item()
