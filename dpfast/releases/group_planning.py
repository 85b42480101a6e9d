"""Queries by group -> a blueprint: everything checked, the budget split, and the mechanism of less noise chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from dpfast.accounting.budget import Budget
from dpfast.aggregation import Aggregation, Grouping, prepare
from dpfast.aggregation.contributions import plan_contributions
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.protocols import is_engine
from dpfast.columns.values import Moments
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.queries import Measure, ModeQuery, QuantileQuery, Query, RankedQuery
from dpfast.releases.caveats import caveats
from dpfast.releases.cut_report import corrected_name, plan_cut, refuse_cut
from dpfast.releases.distribution_answers import spread_of
from dpfast.releases.drafting import Asked, counts_rows, plan_noise
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.key_share import Policy, Weights
from dpfast.releases.planned_queries import (
    Combined,
    NoisyMeasure,
    Part,
    PlannedQuery,
    columns_of,
    drawn_parts,
    exact_measures,
)
from dpfast.releases.population_intervals import has_population_interval, read_sampled, refuse_other_figures
from dpfast.releases.query_measures import measures_of, of_columns
from dpfast.releases.request import AskedMechanism, Request
from dpfast.releases.splitting import read_split
from dpfast.releases.wished_planning import fulfil
from dpfast.releases.wishes import read_limit, read_wishes
from dpfast.rows.filters import in_short

__all__ = ["check_names", "draw_up_groups", "read_whole_budget"]


def draw_up_groups(request: Request) -> GroupBlueprint:
    """Return the blueprint of a release by group.

    The budget is split between the queries and, where keys are selected, the selection; a mean divides its share
    between its sum and its number of values. What several queries need is measured once, with all their shares.
    Gaussian noise is one on all measures together: by epsilon it costs one (epsilon, delta), half of delta where keys
    are selected. What is not needed is not charged.
    """
    queries, keys, mechanism = request.queries, request.keys, request.mechanism
    entries, unit = request.read_by(), request.read_unit()
    groups = None
    if keys is not None or not entries:
        # A unit touches no more groups than there are.
        groups = keys.height if keys is not None and entries else 1
        unit = replace(unit, max_groups=max(min(unit.max_groups, groups), 1))
    selects = groups is None
    sampled = read_sampled(request.interval, queries, unit.max_rows_per_group)
    corrected = request.report_cut is not None
    check_names(queries, list(map(name_of, entries)), population=sampled is not None, corrected=corrected)
    if unit.column is None:
        refuse_cut(request.report_cut, "None where each row is a unit, of which nothing is cut")
    if request.error is not None:
        refuse_cut(request.report_cut, "None where error= says what the budget is", "give epsilon= or rho=")
    whole = read_whole_budget(request)
    where = request.read_where()
    by = (", ".join(map(name_of, entries)) or "nothing") + in_short(where)
    left = whole if request.rest is None else request.rest
    cut, budget = plan_cut(request.report_cut, queries, unit, whole, left, mechanism, by)
    split = read_split(request.split, list(queries), selects=selects)
    drawn_alone = (QuantileQuery, ModeQuery, RankedQuery)
    if split.rule == "optimal" and any(isinstance(query, drawn_alone) for query in queries.values()):
        allowed = '"even" or weights where there are quantiles, modes or values, whose error is not known beforehand'
        raise ParameterError("split", request.split, allowed, 'write for example split={"n": 1, "delay": 3}')
    counts = any(isinstance(query, Query) and counts_rows(query) for query in queries.values())
    if request.key_selection != "auto" and not selects:
        raise ParameterError("key_selection", request.key_selection, '"auto" where keys are public', "leave it out")
    if request.key_selection == "count" and not counts:
        allowed = "another rule where no count of rows or units is asked"
        raise ParameterError("key_selection", request.key_selection, allowed, "ask for a count as well")

    source = request.open()
    columns = source.schema()
    queries = {name: of_columns(query, columns) for name, query in queries.items()}
    if any(query.kind == "sum" and isinstance(query.values, Moments) for query in queries.values()):
        refuse_cut(request.report_cut, "None with a sum of durations", "cast the column to a number")
    if sampled is not None:
        refuse_other_figures(request.interval, queries)
    wishes = None if request.error is None else read_wishes(request.error, queries)
    ways = _measures_by_noise(queries, mechanism, budget, of_rows=unit.column is None)
    lists = not is_engine(source)
    if not lists:
        refuse_cut(request.report_cut, "None where a database aggregates", 'let rows be read: engine="rows"')
    known = unit, groups, by, mechanism, request.key_selection, budget, split, lists
    ways_asked = [Asked(queries, measures, *known) for measures in ways]
    wished = ""
    if wishes is None:
        drafts = [plan_noise(asked) for asked in ways_asked]
        planned, key_share = min(drafts, key=lambda draft: _predicted(draft[0])) if len(drafts) > 1 else drafts[0]
    else:
        met = fulfil(ways_asked, wishes, read_limit(request.budget)[1])
        budget, planned, key_share = met.budget, met.parts, met.key_share
        wished = ", ".join(wish.said(planned[name]) for name, wish in wishes.items())
    grouping = Grouping(entries, keys, unit.column, *request.limits, request.population, where=where)
    drawn = drawn_parts(planned.values())
    refusal = None
    try:
        aggregation = prepare(source, grouping, exact_measures(part.measure for part in drawn))
    except ColumnError as error:
        refusal = error
    if refusal is not None:
        raise _by_its_query(refusal, planned, columns)
    if key_share is not None and isinstance(key_share.rule, (Weights, Policy)):
        assert isinstance(aggregation, Aggregation)
        aggregation = replace(aggregation, lists_groups=True)
    if cut is not None:
        assert isinstance(aggregation, Aggregation)
        aggregation = replace(aggregation, tells_losses=True)
    answers = tuple(
        PlannedQuery(name, query, planned[name], sampled if has_population_interval(query) else None)
        for name, query in queries.items()
    )
    blueprint = GroupBlueprint(
        aggregation=aggregation,
        unit=unit,
        dataset=request.known_as,
        concentrated=budget.kind == "rho",
        queries=answers,
        key_share=key_share,
        split=str(split) if wishes is None else "the least that meets the wished errors",
        wished=wished,
        cut=cut,
    )
    return replace(blueprint, warnings=caveats(request, blueprint.budget, key_share))


def _by_its_query(refusal: ColumnError, planned: Mapping[str, Sequence[Part]], columns: pl.Schema) -> ColumnError:
    """Return the refusal of a column by the name of the first query that is refused so; as it is where none is."""
    for name, parts in planned.items():
        try:
            plan_contributions(exact_measures(one.measure for one in drawn_parts([parts])), columns)
        except ColumnError as error:
            if str(error) == str(refusal):
                return ColumnError(f"the query {name!r}: {error}")
    return refusal


def read_whole_budget(request: Request) -> Budget:
    """Return the budget of a release by group, of both of its stages where it has two."""
    selects = request.keys is None and bool(request.read_by())
    finds = any(isinstance(query, RankedQuery) and not query.candidates for query in request.queries.values())
    return request.read_whole(selects_keys=selects or finds)


def _measures_by_noise(
    queries: Mapping[str, Query], mechanism: AskedMechanism, budget: Budget, *, of_rows: bool
) -> list[dict[str, list[Measure]]]:
    """Return what queries are answered from, for each kind of noise that they may get, where that is another.

    Which blocks of bins are best depends on the noise.
    """
    both = [False, True] if budget.kind == "rho" or budget.delta_units else [False]
    likely = {"laplace": [False], "gaussian": [True]}.get(mechanism, both)
    ways = [
        {name: measures_of(query, gaussian=gaussian, of_rows=of_rows) for name, query in queries.items()}
        for gaussian in likely
    ]
    return ways[:1] if ways[0] == ways[-1] else ways


def _predicted(planned: Mapping[str, Sequence[Part]]) -> float:
    """Return what plans that differ in blocks of bins are chosen by: the product of variances, as a logarithm."""
    logs = []
    for parts in planned.values():
        for part in parts:
            if isinstance(part, (NoisyMeasure, Combined)):
                logs.append(2 * math.log(part.deviation))
            if part.measure.kind == "bins" and part.measure.points > 1:
                logs.append(math.log(spread_of(part.measure.points, part.measure.blocks)))
    return math.fsum(logs)


def check_names(
    queries: Mapping[str, Query], by: Sequence[str], *, population: bool = False, corrected: bool = False
) -> None:
    """Refuse what is no query, and names that are taken; ``corrected`` says that there are corrected figures too."""
    if not queries:
        raise ParameterError("queries", {}, "at least one", "write for example n=dpf.count()")
    taken = set(by)
    for name, query in queries.items():
        if not isinstance(query, Query):
            allowed = (
                "a query: dpf.count(), dpf.sum(column, bounds=), dpf.mean(column, bounds=), dpf.quantile(...), ..."
            )
            raise ParameterError(str(name), query, allowed)
        for argument in query.leaves_open:
            mend = f"write for example {argument}=(0, 600)"
            raise ParameterError(argument, Words("auto"), f"two values here, where none are chosen for {name}", mend)
        if not isinstance(name, str) or not name:
            raise ParameterError("queries", name, "named by strings")
        beside = corrected_name(name, query) if corrected else None
        columns = {*columns_of(name, query, population=population)} | ({beside} if beside else set())
        if columns & taken:
            allowed = f"a name that leaves {', '.join(sorted(columns & taken))} to one column"
            raise ParameterError("the query's name", name, allowed, "rename the query")
        taken |= columns
