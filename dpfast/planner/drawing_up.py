"""Parameters -> a blueprint: everything checked, the budget split, and the mechanism of less noise chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpfast.aggregation.exact import Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.sources import open_source
from dpfast.errors import ParameterError
from dpfast.planner.blueprint import (
    Blueprint,
    KeyShare,
    Mechanism,
    NoisyMeasure,
    Part,
    PlannedQuery,
    columns_of,
    describe,
)
from dpfast.planner.caveats import caveats, read_population
from dpfast.planner.noise import (
    modes_of,
    noise_of_epsilon,
    noise_of_rho,
    quantiles_of,
    selection_of_epsilon,
    selection_of_rho,
)
from dpfast.planner.parameters import GivenBudget, read_budget, read_by, read_dataset, read_unit
from dpfast.planner.splitting import Split, Stake, portions, read_split, weights_of
from dpfast.queries import (
    Bins,
    Measure,
    ModeQuery,
    PrivacyUnit,
    QuantileQuery,
    Query,
    Sensitivity,
    choices_measure,
    points_measure,
    sum_measure,
)

__all__ = ["draw_up"]


@dataclass(frozen=True)
class _Task:
    """What has to be planned: measures of queries, how many groups there are, None where keys are selected."""

    queries: Mapping[str, Query]
    measures: Mapping[str, list[Measure]]
    unit: PrivacyUnit
    groups: int | None
    by: str

    @property
    def selects(self) -> bool:
        """Whether keys are selected."""
        return self.groups is None

    @property
    def selection(self) -> list[Fraction]:
        """The even weight of the selection of keys, if there is one."""
        return [Fraction(1)] * self.selects

    def description(self, name: str, measure: Measure) -> str:
        """Return what a measure's charge is for."""
        query = self.queries[name]
        what = f"{name}: {describe(query)} by {self.by}"
        return what if query.kind != "mean" else f"{what} ({'sum' if measure.kind == 'sum' else 'number of values'})"


@dataclass(frozen=True)
class _Draft:
    """One way to plan it: every query's measures with noise, and the selection's share of the budget."""

    parts: list[tuple[Part, ...]]
    selection_units: int
    #: The logarithm of what is to be small.
    error: float


def draw_up(
    data: object,
    queries: Mapping[str, Query],
    *,
    by: str | Bins | Sequence[str | Bins] | None,
    epsilon: object,
    delta: object,
    rho: object,
    split: object,
    keys: pl.DataFrame | None,
    privacy_unit: str | None,
    max_groups: int | None,
    max_rows_per_group: int | None,
    neighbors: str,
    mechanism: str,
    population: object,
    dataset: str | None,
    schema: Mapping[str, Any] | None,
) -> Blueprint:
    """Return the blueprint of a release; see `dpfast.plan` for the parameters.

    The budget is split between the queries and, where keys are selected, the selection; a mean divides its share
    between its sum and its count. delta goes to the selection, and evenly to all if their noise is Gaussian and
    planned by epsilon; what is not needed is not charged.
    """
    entries = read_by(by)
    unit = read_unit(privacy_unit, max_groups, max_rows_per_group, neighbors)
    groups = None
    if keys is not None or not entries:
        # A unit touches no more groups than there are.
        groups = keys.height if isinstance(keys, pl.DataFrame) and entries else 1
        unit = replace(unit, max_groups=max(min(unit.max_groups, groups), 1))
    _check_names(queries, [name_of(entry) for entry in entries if isinstance(entry, (str, Bins))])
    if type(mechanism) is not str or mechanism not in ("auto", "laplace", "gaussian"):
        raise ParameterError("mechanism", mechanism, '"auto", "laplace" or "gaussian"')
    budget = read_budget(epsilon, delta, rho)
    rule = read_split(split, list(queries), selects=groups is None)
    if rule.rule == "optimal" and any(isinstance(query, (QuantileQuery, ModeQuery)) for query in queries.values()):
        allowed = '"even" or weights where there are quantiles or modes, which have no variance known beforehand'
        raise ParameterError("split", split, allowed, 'write for example split={"n": 1, "delay": 3}')
    people = read_population(population)
    name = read_dataset(dataset, data)

    source = open_source(data, schema=schema)
    columns = source.collect_schema()
    measures = {name: _measures(query, columns) for name, query in queries.items()}
    grouping = Grouping(entries, keys, unit.column, max_groups, max_rows_per_group)
    aggregation = prepare(source, grouping, [measure for part in measures.values() for measure in part])

    task = _Task(queries, measures, unit, groups, ", ".join(map(name_of, entries)) or "nothing")
    planned, key_share = _plan_noise(task, budget, rule, mechanism)
    answers = tuple(
        PlannedQuery(name, query, parts, _is_whole(query, columns))
        for (name, query), parts in zip(queries.items(), planned, strict=True)
    )
    blueprint = Blueprint(
        aggregation=aggregation,
        unit=unit,
        dataset=name,
        concentrated=budget.kind == "rho",
        queries=answers,
        key_share=key_share,
        split=str(rule),
    )
    return replace(blueprint, warnings=caveats(blueprint.budget, people, queries.items(), data, keys))


def _plan_noise(
    task: _Task, budget: GivenBudget, rule: Split, mechanism: str
) -> tuple[list[tuple[Part, ...]], KeyShare | None]:
    """Return every query's measures with the least noise, and the selection of keys."""
    # What a budget is split into at most: each share may be halved for a mean.
    pieces = 2 * (len(task.queries) + task.selects)
    if budget.units < pieces:
        raise ParameterError(budget.kind, budget.given, f"at least {pieces}e-18, to be split into so many parts")
    is_split = budget.kind == "rho" or budget.delta_units >= pieces
    if mechanism == "gaussian" and not is_split:
        few = f"at least {pieces}e-18, to be split into parts"
        allowed = few if budget.delta_units else "above 0 for Gaussian noise"
        raise ParameterError("delta", budget.delta_units / 10**18, allowed, "write for example delta=1e-6")
    drafts = []
    if mechanism in ("auto", "laplace"):
        drafts.append(_draft(task, budget, rule, "laplace"))
    if mechanism == "gaussian" or (mechanism == "auto" and is_split):
        drafts.append(_draft(task, budget, rule, "gaussian"))
    draft = min(drafts, key=lambda draft: draft.error)
    if not task.selects:
        return draft.parts, None
    description = f"selection of keys by {task.by}"
    if budget.kind == "rho":
        share = selection_of_rho(task.unit, draft.selection_units, budget.delta_units, description)
    else:
        spent_delta = sum(part.delta_units for parts in draft.parts for part in parts)
        left = budget.delta_units - spent_delta
        share = selection_of_epsilon(task.unit, draft.selection_units, left, description)
    return draft.parts, share


def _draft(task: _Task, budget: GivenBudget, rule: Split, mechanism: Mechanism) -> _Draft:
    """Return the plan with one kind of noise for all measures."""
    stakes = {
        name: [_stake(task.queries[name], measure, task.unit, mechanism) for measure in measures]
        for name, measures in task.measures.items()
    }
    weights = weights_of(rule, stakes, budget=budget.kind)
    of_queries = [sum(parts, Fraction(0)) for parts in weights]
    mean = sum(of_queries, Fraction(0)) / len(of_queries)
    selection = [mean if rule.keys is None else rule.keys] * task.selects
    flat = [weight for parts in weights for weight in parts]
    shares = portions(budget.units, [*selection, *flat])
    if not all(shares):
        raise ParameterError("split", str(rule), "less uneven: a share would be below 1e-18", "give weights nearer")
    if mechanism == "gaussian" and budget.kind == "epsilon":
        # The exponential mechanism needs none.
        even = [
            Fraction(not measure.selects, len(measures)) for measures in task.measures.values() for measure in measures
        ]
        takers = [*task.selection, *even]
        deltas = portions(budget.delta_units, takers)[task.selects :] if any(takers) else [0] * len(flat)
    else:
        deltas = [0] * len(flat)
    pairs = iter(zip(shares[task.selects :], deltas, strict=True))

    def part(name: str, measure: Measure, share: tuple[int, int]) -> Part:
        description, query = task.description(name, measure), task.queries[name]
        if isinstance(query, QuantileQuery):
            return quantiles_of(query, measure, task.unit, task.groups, (budget.kind, share[0]), description)
        if measure.kind == "choices":
            return modes_of(measure, task.unit, (budget.kind, share[0]), description)
        sensitivity = Sensitivity.of(measure, task.unit)
        if budget.kind == "rho":
            noise = noise_of_rho(sensitivity, mechanism, share[0], description)
        else:
            noise = noise_of_epsilon(sensitivity, mechanism, *share, description)
        return NoisyMeasure(measure, sensitivity, mechanism, *noise)

    parts = [
        tuple(part(name, measure, next(pairs)) for measure in measures) for name, measures in task.measures.items()
    ]
    return _Draft(parts, shares[0] if task.selects else 0, _error(parts, stakes, rule))


def _stake(query: Query, measure: Measure, unit: PrivacyUnit, mechanism: Mechanism) -> Stake:
    """Return a measure's part in the optimal split.

    Counts and sums are in their own unit. A mean counts as the sum that it is made of, in the column's unit: its
    error is, but for the number of values in a group, that of sum - (mean - middle) * count, and abs(mean - middle)
    is at most half the width of the bounds, which so weighs the count.
    """
    if measure.selects:
        # No stake in what only "optimal" splits look at.
        return Stake(Fraction(1))
    sensitivity = Sensitivity.of(measure, unit)
    size_squared = sensitivity.l1**2 if mechanism == "laplace" else sensitivity.l2_squared
    step = Fraction(2) ** measure.step_exponent
    importance = Fraction(1)
    if query.kind == "mean" and measure.kind == "values":
        assert query.bounds is not None
        importance = ((Fraction(query.bounds[1]) - Fraction(query.bounds[0])) / 2) ** 2
    return Stake(size_squared * step**2, importance)


def _error(drawn: list[tuple[Part, ...]], stakes: Mapping[str, Sequence[Stake]], rule: Split) -> float:
    """Return what the kind of noise is chosen by, as a logarithm.

    The weighted sum of variances where that is what the split minimises; else the product of all variances, by
    which the choice is the same for all units and weights.
    """
    # Quantiles and modes are drawn the same way whatever the noise of the others is.
    parts = [tuple(part for part in query if isinstance(part, NoisyMeasure)) for query in drawn]
    logs = [math.log(part.scale**2 * (2 if part.mechanism == "laplace" else 1)) for query in parts for part in query]
    if rule.rule != "optimal":
        return math.fsum(logs)
    extra = []
    for (name, owned), query in zip(stakes.items(), parts, strict=True):
        for stake, part in zip(owned, query, strict=True):
            weight = rule.weights.get(name, Fraction(1)) * stake.importance
            extra.append(math.log(weight.numerator) - math.log(weight.denominator) + 2 * math.log(part.step))
    terms = [log + more for log, more in zip(logs, extra, strict=True)]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


def _check_names(queries: Mapping[str, Query], by: Sequence[str]) -> None:
    if not queries:
        raise ParameterError("queries", {}, "at least one", "write for example n=dpf.count()")
    taken = set(by)
    for name, query in queries.items():
        if not isinstance(query, Query):
            allowed = (
                "dpf.count(), dpf.sum(column, bounds=), dpf.mean(column, bounds=), dpf.quantile(...) or dpf.mode(...)"
            )
            raise ParameterError(str(name), query, allowed)
        if not isinstance(name, str) or not name:
            raise ParameterError("queries", name, "named by strings")
        columns = set(columns_of(name, query))
        if columns & taken:
            allowed = f"a name that leaves {', '.join(sorted(columns & taken))} to one column"
            raise ParameterError("the query's name", name, allowed, "rename the query")
        taken |= columns


def _is_whole(query: Query, columns: pl.Schema) -> bool:
    """Return whether a query is of whole numbers: rows, or a column of integers or Booleans."""
    dtype = pl.Int64() if query.column is None else columns.get(query.column)
    return dtype is not None and (dtype.is_integer() or dtype == pl.Boolean)


def _measures(query: Query, columns: pl.Schema) -> list[Measure]:
    if query.kind == "count":
        return [Measure("rows")]
    if isinstance(query, ModeQuery):
        return [choices_measure(query)]
    if isinstance(query, QuantileQuery):
        return [points_measure(query, whole=_is_whole(query, columns))]
    numerator = sum_measure(query, whole=_is_whole(query, columns))
    return [numerator] if query.kind == "sum" else [numerator, Measure("values", query.column)]
