"""Queries by public keys -> a blueprint that clips each unit as a whole, to a norm that is chosen privately."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation import Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.protocols import is_engine
from dpfast.errors import ParameterError, Words
from dpfast.queries import Measure, Query, UnitQuery
from dpfast.releases.caveats import caveats
from dpfast.releases.clipped_blueprint import ClippedBlueprint
from dpfast.releases.clipping import Clipping, Coordinate
from dpfast.releases.group_planning import check_names
from dpfast.releases.measure_noise import noise_of
from dpfast.releases.measurements import ROWS
from dpfast.releases.planned_queries import exact_measures
from dpfast.releases.query_measures import measures_of, of_columns
from dpfast.releases.request import Request
from dpfast.releases.splitting import read_split
from dpfast.rows.filters import in_short

__all__ = ["clips_whole_units", "draw_up_clipped"]

_KINDS = ("count", "sum", "mean")
_AUTO = 'max_groups="auto"'


def clips_whole_units(request: Request) -> bool:
    """Return whether a request without limits is met by clipping units as a whole: of less error than limits.

    Else limits are chosen: for keys that are selected, other queries, bounds that are chosen as well, Laplace noise, a
    budget without delta, and shares that the noise of each query decides.
    """
    if request.privacy_unit is None:
        return True
    if (request.keys is None and request.by is not None) or request.mechanism == "laplace":
        return False
    optimal = type(request.split) is tuple or (type(request.split) is str and request.split == "optimal")
    if optimal or (request.error is None and request.rho is None and not request.delta):
        return False
    queries = request.queries.values()
    return all(
        not isinstance(query, Query)
        or (query.kind in _KINDS and not query.leaves_open and not isinstance(query, UnitQuery))
        for query in queries
    )


def draw_up_clipped(request: Request) -> ClippedBlueprint:
    """Return the blueprint of a release by public keys in which all of a unit's rows count.

    Raises
    ------
    ParameterError
        What is asked needs a limit on groups or rows: numbers for both are given in its place.

    """
    _refuse_what_does_not_fit(request)
    entries, queries, keys = request.read_by(), request.queries, request.keys
    check_names(queries, list(map(name_of, entries)))
    budget = request.read_budget()
    split = read_split(request.split, list(queries), selects=False)
    source = request.open()
    if is_engine(source):
        allowed = f'"rows" with {_AUTO}'
        raise ParameterError("engine", request.engine, allowed, "or give numbers for max_groups and max_rows_per_group")
    columns = source.schema()
    queries = {name: of_columns(query, columns) for name, query in queries.items()}
    measures = {name: tuple(measures_of(query)) for name, query in queries.items()}
    coordinates = _coordinates(measures, {name: split.weights.get(name, Fraction(1)) for name in queries})
    assert request.privacy_unit is not None
    unit = PrivacyUnit(request.privacy_unit, max(1 if keys is None else keys.height, 1), 1, request.neighbors)
    where = request.read_where()
    grouping = Grouping(entries, keys, unit.column, population=request.population, by_unit=True, where=where)
    exact = exact_measures(coordinate.measure for coordinate in coordinates)
    by = (", ".join(map(name_of, entries)) or "nothing") + in_short(where)
    noise, charge = noise_of(budget, "gaussian", 1, 1, f"{', '.join(queries)} by {by}: limits and measures together")
    blueprint = ClippedBlueprint(
        aggregation=prepare(source, grouping, exact),
        unit=unit,
        dataset=request.known_as,
        concentrated=budget.kind == "rho",
        asked=tuple((name, query, measures[name]) for name, query in queries.items()),
        clipping=Clipping(tuple(exact), coordinates, noise, 2 if unit.neighbors == "replace" else 1),
        charge=charge,
        split=str(split),
    )
    return replace(blueprint, warnings=caveats(request, blueprint.budget))


def _refuse_what_does_not_fit(request: Request) -> None:
    if request.privacy_unit is None:
        raise ParameterError(
            "max_groups", Words("auto"), "left out where each row is a unit", "give privacy_unit= as well"
        )
    if request.key_selection != "auto":
        raise ParameterError("key_selection", request.key_selection, '"auto" where keys are public', "leave it out")


def _coordinates(measures: dict[str, tuple[Measure, ...]], weights: dict[str, Fraction]) -> tuple[Coordinate, ...]:
    """Return what of a unit is clipped together: rows, missing values of columns whose values count, and sums.

    Rows weigh as much as the queries that count alone; a sum as much as its queries, in relation to that.
    """
    counting = sum((weights[name] for name, some in measures.items() if all(_counts(one) for one in some)), Fraction(0))
    found = {ROWS: Coordinate(ROWS, 1.0)}
    for some in measures.values():
        for measure in some:
            if measure.kind == "values":
                missing = Measure("missing", measure.column)
                found.setdefault(missing, Coordinate(missing, 1.0))
    for some in measures.values():
        for measure in some:
            if measure.kind == "sum":
                weight = sum(weights[other] for other, of_it in measures.items() if measure in of_it)
                importance = float(weight / counting) ** 0.5 if counting else 1.0
                found.setdefault(measure, Coordinate(measure, min(max(importance, 2.0**-20), 2.0**20), len(some) > 1))
    return tuple(found.values())


def _counts(measure: Measure) -> bool:
    return measure.kind in ("rows", "values")
