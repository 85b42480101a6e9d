"""Queries by public keys -> a blueprint that clips each unit as a whole, to a norm that is chosen privately."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation import Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.protocols import is_engine
from dpfast.errors import ParameterError, Words
from dpfast.queries import Measure, UnitQuery
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

__all__ = ["draw_up_clipped"]

_KINDS = ("count", "sum", "mean")
_AUTO = 'max_groups="auto"'


def draw_up_clipped(request: Request) -> ClippedBlueprint:
    """Return the blueprint of a release by public keys in which all of a unit's rows count.

    Raises
    ------
    ParameterError
        What is asked needs a limit on groups or rows: numbers for both are given in its place.

    """
    _refuse_what_needs_limits(request)
    entries, queries, keys = request.read_by(), request.queries, request.keys
    check_names(queries, list(map(name_of, entries)))
    budget = request.read_budget()
    split = read_split(request.split, list(queries), selects=False)
    if split.rule == "optimal":
        allowed = f'"even" or weights with {_AUTO}: the noise is not known beforehand'
        raise ParameterError("split", request.split, allowed)
    if request.mechanism == "laplace":
        raise ParameterError("mechanism", request.mechanism, f'"auto" or "gaussian" with {_AUTO}')
    if budget.kind == "epsilon" and not budget.delta_units:
        allowed = f"above 0 with {_AUTO}, whose noise is Gaussian"
        raise ParameterError("delta", float(budget.delta), allowed, "write for example delta=1e-6, or give numbers")
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


def _refuse_what_needs_limits(request: Request) -> None:
    mend = "give numbers for max_groups and max_rows_per_group"
    if request.privacy_unit is None:
        raise ParameterError(
            "max_groups", Words("auto"), "left out where each row is a unit", "give privacy_unit= as well"
        )
    if request.keys is None and request.by is not None:
        raise ParameterError("keys", None, f"a frame of public keys with {_AUTO}", f"give keys=, or {mend}")
    for name, query in request.queries.items():
        if isinstance(query, UnitQuery):
            allowed = f"of rows with {_AUTO}, which clips units as a whole"
            raise ParameterError(name, Words(f"a {query.kind} of units"), allowed, mend)
        if getattr(query, "kind", "count") not in _KINDS:
            raise ParameterError(
                name, Words(f"a {query.kind.replace('_', ' ')}"), f"a count, a sum or a mean with {_AUTO}", mend
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
