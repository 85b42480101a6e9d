"""Bounds of columns that are chosen privately: ``bounds="auto"``.

Surveyed is one value of each unit: of a row of it that is chosen at random, from all its rows whose group is shown,
where keys are public. So a histogram tells how values are spread within units and among them, and each unit is counted
once at most, whatever it has: in no cell where that value is missing (null or NaN).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation import Aggregates, Aggregation, Grouping, prepare
from dpfast.aggregation.places import Places
from dpfast.aggregation.sources import Source
from dpfast.columns.bounds import ReadBounds, show_bounds
from dpfast.columns.value_axis import ValueAxis, axis_of
from dpfast.columns.values import ValueKind
from dpfast.mechanisms.clipping.bounding import Stakes, bounds_around, bounds_from_zero, bounds_of_all
from dpfast.mechanisms.clipping.spans import Span, find_span
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.queries import CovarianceQuery, Measure, QuantileQuery, Query
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.planned_queries import Combined, NoisyMeasure
from dpfast.releases.private_choices import Chosen, Draft, PrivateChoice
from dpfast.releases.query_measures import of_columns
from dpfast.releases.request import Request
from dpfast.releases.survey_noise import Surveyor

__all__ = ["BoundsChoice", "bounds_choice", "count_places"]

#: Two places on an axis.
_Pair: TypeAlias = tuple[Fraction, Fraction]

#: Of floats, magnitudes from 2**-60 on are told apart; larger ones than 2**400 count as that.
_DOUBLINGS_OF_FLOATS, _DOUBLINGS_OF_WHOLE = (-60, 400), (0, 62)
#: Bounds are multiples of a power of two that is at most this part of their distance.
_ROUNDED_TO = 64
#: What is planned beforehand is planned for bounds of so many ticks, of which sums are floats.
_STAND_IN = 2**40


def bounds_choice(request: Request) -> BoundsChoice | None:
    """Return the choice of all bounds that a request leaves open; None where it leaves none."""
    queries = {name: query for name, query in request.queries.items() if isinstance(query, Query)}
    open_ones = {name: query.leaves_open for name, query in queries.items() if query.leaves_open}
    return BoundsChoice(queries, open_ones) if open_ones else None


@dataclass(frozen=True)
class BoundsChoice(PrivateChoice):
    """The choice of bounds.

    Attributes
    ----------
    queries
        All queries of the plan.
    open_bounds
        Which bounds of which query are open.

    """

    queries: Mapping[str, Query]
    open_bounds: Mapping[str, tuple[str, ...]]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are surveyed."""
        named = (
            _column_of(self.queries[name], argument)
            for name, arguments in self.open_bounds.items()
            for argument in arguments
        )
        return tuple(dict.fromkeys(named))

    @property
    def questions(self) -> int:
        """One for each column."""
        return len(self.columns)

    @property
    def about(self) -> str:
        """Whose bounds are chosen."""
        return f"bounds of {', '.join(self.columns)}"

    def leaves_open(self, name: str) -> bool:
        """Return whether a query's noise follows the bounds.

        That of other queries does too where a sum's bounds are open: which kind of noise suits a sum depends on
        whether both of its bounds are on one side of 0.
        """
        sums = any(self.queries[one].kind == "sum" for one in self.open_bounds)
        return sums or name in self.open_bounds

    def stand_in(self, request: Request) -> Request:
        """Return the request with wide bounds."""
        if not any(query.leaves_open for query in request.queries.values()):
            return request
        return self._with(request, lambda axis, kind: (Fraction(-_STAND_IN), Fraction(_STAND_IN)))

    def extremes(self, request: Request) -> Iterator[Request]:
        """Yield the narrowest bounds, next to 0 and far from it, and the widest ones."""

        def farthest(axis: ValueAxis, kind: str) -> _Pair:
            # One of a sum's bounds is 0, or as far from it as the other.
            most = Fraction(axis.most)
            return (Fraction(0) if kind == "sum" else most - axis.finest(most)), most

        yield self._with(request, lambda axis, kind: (Fraction(0), axis.finest(Fraction(0))))
        yield self._with(request, farthest)
        yield self._with(request, lambda axis, kind: (Fraction(axis.least), Fraction(axis.most)))

    def _with(self, request: Request, place: Callable[[ValueAxis, str], _Pair]) -> Request:
        """Return the request with bounds, by a function of each column's axis and what is asked of it."""
        axes = self._axes(request)

        def bounds(name: str, argument: str) -> ReadBounds:
            query = self.queries[name]
            axis = axes[_column_of(query, argument)]
            return axis.bounds(*place(axis, query.kind))

        return self._filled(request, bounds)

    def _filled(self, request: Request, bounds: Callable[[str, str], ReadBounds]) -> Request:
        """Return the request with bounds, by a function of each query's name and argument."""
        queries = dict(request.queries)
        for name, arguments in self.open_bounds.items():
            given: dict[str, Any] = {argument: bounds(name, argument) for argument in arguments}
            queries[name] = replace(queries[name], **given)
        return replace(request, queries=queries)

    def _axes(self, request: Request) -> dict[str, ValueAxis]:
        """Return the axis of every column; of one that is not there, which is refused elsewhere, that of numbers."""
        schema = request.open().schema()
        kinds: dict[str, ValueKind] = {}
        for name, arguments in self.open_bounds.items():
            known = of_columns(self.queries[name], schema)
            for argument in arguments:
                values = known.values if argument == "bounds" else getattr(known, "other_values")  # noqa: B009
                kinds[_column_of(known, argument)] = values
        return {column: axis_of(values) for column, values in kinds.items()}

    def prepare(self, source: Source, request: Request) -> Aggregation:
        """Return the aggregation of the places of one row of each unit."""
        axes = self._axes(request)
        measures = []
        for column in self.columns:
            grid = axes[column].grid
            placed = grid.exponent, grid.lower, grid.upper, grid.lower - 1, (), grid.doublings
            measures.append(Measure("points", column, *placed, tick=axes[column].values.tick))
        unit = request.unit_column
        limit = None if unit is None else 1
        by = request.read_by() if request.keys is not None else ()
        keys = request.keys if by else None
        grouping = Grouping(by, keys, unit, limit, limit, request.population, where=request.read_where())
        prepared = prepare(source, grouping, measures)
        assert isinstance(prepared, Aggregation)
        return replace(prepared, surveys_values=True)

    def choose(self, exact: Aggregates, request: Request, surveyor: Surveyor, draft: Draft) -> Chosen:
        """Find where each column's values lie, and choose bounds for every query by predicted error."""
        axes = self._axes(request)
        spans: dict[str, Span | None] = {}
        for place, column in enumerate(self.columns):
            places, exact.measures[place] = exact.measures[place], None
            spans[column] = _span(places, axes[column], surveyor, Fraction(1, self.questions))
        planned = draft(request)
        found: dict[tuple[str, str], ReadBounds] = {}
        lines = []
        for name, arguments in self.open_bounds.items():
            for argument in arguments:
                column = _column_of(self.queries[name], argument)
                axis, span = axes[column], spans[column]
                low, high = axis.unknown() if span is None else _bounds(span, axis, planned, name, argument, request)
                bounds = axis.bounds(*_rounded(low, high, axis))
                found[name, argument] = bounds
                lines.append(_line(name, column, bounds, span))
        filled = self._filled(request, lambda name, argument: found[name, argument])
        values = {
            name: found[name, arguments[0]] if len(arguments) == 1 else tuple(found[name, one] for one in arguments)
            for name, arguments in self.open_bounds.items()
        }
        return Chosen(filled, values, tuple(lines))


def _column_of(query: Query, argument: str) -> str:
    """Return the column whose bounds an argument says."""
    if argument == "other_bounds":
        assert isinstance(query, CovarianceQuery)
        return query.other
    return str(query.column)


def count_places(places: Places, axis: ValueAxis, edges: Sequence[Fraction]) -> NDArray[np.int64]:
    """Return how many values lie between edges; those beyond the outermost count next to these."""
    inner = edges[1:-1]
    if places.kind == "floats":
        return places.count(axis.first_floats(inner))
    return places.count(axis.first_wholes(inner) if places.kind == "wholes" else axis.numbers(inner))


def _span(places: Places, axis: ValueAxis, surveyor: Surveyor, part: Fraction) -> Span | None:
    """Return where values lie, at a part of what a surveyor may spend."""
    left = part

    def count(edges: Sequence[Fraction], share: Fraction | None) -> tuple[NDArray[np.int64], IntegerNoise]:
        nonlocal left
        asked = left if share is None else share * part
        left -= asked
        return surveyor.draw(count_places(places, axis, edges), asked)

    doublings = _DOUBLINGS_OF_WHOLE if axis.whole else _DOUBLINGS_OF_FLOATS
    return find_span(count, doublings, axis.finest)


def _bounds(span: Span, axis: ValueAxis, planned: GroupBlueprint, name: str, argument: str, request: Request) -> _Pair:
    """Return the bounds of a query."""
    query = next(one for one in planned.queries if one.name == name)
    if isinstance(query.query, QuantileQuery):
        return bounds_of_all(span)
    unit = planned.unit
    rows = math.sqrt(unit.max_groups * unit.max_rows_per_group)
    groups = planned.groups
    if groups is None:
        assert planned.key_share is not None
        groups = max(int(span.units * math.sqrt(unit.max_groups) / (4 * planned.key_share.needed.typical)), 1)
    power = 2 if query.query.kind in ("variance", "std") else 1
    part = query.parts[-1] if power == 2 else query.parts[1 if argument == "other_bounds" else 0]
    assert isinstance(part, (NoisyMeasure, Combined))
    # The noise of a sum is in proportion to the bounds that it was planned for.
    noise = part.deviation * 2.0**part.measure.step_exponent / float(_STAND_IN) ** power
    stakes = Stakes(noise, power, rows, groups)
    return bounds_from_zero(span, stakes) if query.query.kind == "sum" else bounds_around(span, stakes)


def _rounded(low: Fraction, high: Fraction, axis: ValueAxis) -> _Pair:
    """Return bounds of few digits, a little wider."""
    step = Fraction(2) ** math.floor(math.log2(max(float((high - low) / _ROUNDED_TO), 2.0**-900)))
    if axis.whole:
        step = max(step, Fraction(1))
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _line(name: str, column: str, bounds: ReadBounds, span: Span | None) -> str:
    """Return what a release says of a choice."""
    said = f"  bounds        {name}: {column} clipped to {show_bounds(bounds)}, "
    if span is None:
        return (
            f"{said}for want of better ones: too few units have values to tell where these lie; more of the budget, or "
            "bounds that are given, would help"
        )
    return f"{said}chosen by about {span.units:,.0f} units"
