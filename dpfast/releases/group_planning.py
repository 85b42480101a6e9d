"""Queries by group -> a blueprint: everything checked, the budget split, and the mechanism of less noise chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpfast.aggregation import Aggregation, Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.protocols import is_engine
from dpfast.errors import ParameterError
from dpfast.queries import ModeQuery, QuantileQuery, Query
from dpfast.releases.caveats import caveats
from dpfast.releases.cut_report import corrected_name, plan_cut, refuse_cut
from dpfast.releases.drafting import Asked, counts_rows, plan_noise
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.key_share import Policy, Weights
from dpfast.releases.planned_queries import PlannedQuery, columns_of, drawn_parts, exact_measures
from dpfast.releases.query_measures import is_whole, measures_of
from dpfast.releases.request import Request
from dpfast.releases.splitting import read_split

__all__ = ["check_names", "draw_up_groups"]


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
    check_names(queries, list(map(name_of, entries)), corrected=request.report_cut is not None)
    if unit.column is None:
        refuse_cut(request.report_cut, "None where each row is a unit, of which nothing is cut")
    whole = request.read_budget(selects_keys=selects)
    by = ", ".join(map(name_of, entries)) or "nothing"
    cut, budget = plan_cut(request.report_cut, queries, unit, whole, mechanism, by)
    split = read_split(request.split, list(queries), selects=selects)
    if split.rule == "optimal" and any(isinstance(query, (QuantileQuery, ModeQuery)) for query in queries.values()):
        allowed = '"even" or weights where there are quantiles or modes, which have no variance known beforehand'
        raise ParameterError("split", request.split, allowed, 'write for example split={"n": 1, "delay": 3}')
    counts = any(isinstance(query, Query) and counts_rows(query) for query in queries.values())
    if request.key_selection != "auto" and not selects:
        raise ParameterError("key_selection", request.key_selection, '"auto" where keys are public', "leave it out")
    if request.key_selection == "count" and not counts:
        allowed = "another rule where no count of rows or units is asked"
        raise ParameterError("key_selection", request.key_selection, allowed, "ask for a count as well")

    source = request.open()
    columns = source.schema()
    gaussian = budget.kind == "rho" or mechanism == "gaussian"
    measures = {name: measures_of(query, columns, gaussian=gaussian) for name, query in queries.items()}
    lists = not is_engine(source)
    if not lists:
        refuse_cut(request.report_cut, "None where a database aggregates", 'let rows be read: engine="rows"')
    planned, key_share = plan_noise(
        Asked(queries, measures, unit, groups, by, mechanism, request.key_selection, budget, split, lists)
    )
    grouping = Grouping(entries, keys, unit.column, *request.limits, request.population)
    drawn = drawn_parts(planned.values())
    aggregation = prepare(source, grouping, exact_measures(part.measure for part in drawn))
    if key_share is not None and isinstance(key_share.rule, (Weights, Policy)):
        assert isinstance(aggregation, Aggregation)
        aggregation = replace(aggregation, lists_groups=True)
    if cut is not None:
        assert isinstance(aggregation, Aggregation)
        aggregation = replace(aggregation, tells_losses=True)
    answers = tuple(
        PlannedQuery(name, query, planned[name], is_whole(query, columns)) for name, query in queries.items()
    )
    blueprint = GroupBlueprint(
        aggregation=aggregation,
        unit=unit,
        dataset=request.known_as,
        concentrated=budget.kind == "rho",
        queries=answers,
        key_share=key_share,
        split=str(split),
        cut=cut,
    )
    return replace(blueprint, warnings=caveats(request, blueprint.budget, key_share))


def check_names(queries: Mapping[str, Query], by: Sequence[str], *, corrected: bool = False) -> None:
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
        if not isinstance(name, str) or not name:
            raise ParameterError("queries", name, "named by strings")
        beside = corrected_name(name, query) if corrected else None
        columns = {*columns_of(name, query)} | ({beside} if beside else set())
        if columns & taken:
            allowed = f"a name that leaves {', '.join(sorted(columns & taken))} to one column"
            raise ParameterError("the query's name", name, allowed, "rename the query")
        taken |= columns
