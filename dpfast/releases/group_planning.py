"""Queries by group -> a blueprint: everything checked, the budget split, and the mechanism of less noise chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation import Aggregation, Grouping, prepare
from dpfast.aggregation.keys import name_of
from dpfast.errors import ParameterError
from dpfast.queries import Measure, ModeQuery, QuantileQuery, Query
from dpfast.releases.caveats import caveats
from dpfast.releases.choosing_keys import best_apart, divided_delta, tested_count
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.key_share import KeyShare, Policy, Weights
from dpfast.releases.measure_noise import modes_of, noise_of, quantiles_of
from dpfast.releases.planned_queries import Mechanism, NoisyMeasure, Part, PlannedQuery, columns_of, describe
from dpfast.releases.query_measures import importance_of, is_whole, measures_of, said_of
from dpfast.releases.request import AskedMechanism, Request
from dpfast.releases.splitting import Split, Stake, portions, read_split, weights_of
from dpfast.rows.filters import in_short

__all__ = ["draw_up_groups"]

#: A selection apart from the count is taken where it needs fewer than this part of the units.
_WORTH = 2 / 3


@dataclass(frozen=True)
class _Checked:
    """What has to be planned, checked: ``groups`` says how many there are, None where keys are selected.

    ``lists_groups`` says whether it will be known which groups each unit holds.
    """

    queries: Mapping[str, Query]
    measures: Mapping[str, list[Measure]]
    unit: PrivacyUnit
    groups: int | None
    by: str
    mechanism: AskedMechanism
    key_selection: str
    budget: Budget
    split: Split
    lists_groups: bool

    @property
    def count(self) -> str | None:
        """The name of the first count of rows that is asked, if any is."""
        return next((name for name, query in self.queries.items() if _counts_rows(query)), None)

    @property
    def selects(self) -> bool:
        """Whether keys are selected."""
        return self.groups is None

    def description(self, name: str, measure: Measure) -> str:
        """Return what a measure's charge is for."""
        query = self.queries[name]
        told = said_of(query, measure)
        return f"{name}: {describe(query)} by {self.by}" + (f" ({told})" if told else "")


@dataclass(frozen=True)
class _Draft:
    """One way to plan it: every query's measures with noise, and the selection of keys.

    ``selection`` is the selection's share of the budget, ``tested`` the selection by a released count, which has none.
    """

    parts: list[tuple[Part, ...]]
    kind: Mechanism
    selection: Budget | None
    tested: KeyShare | None
    #: The logarithm of what is to be small.
    error: float


def draw_up_groups(request: Request) -> GroupBlueprint:
    """Return the blueprint of a release by group.

    The budget is split between the queries and, where keys are selected, the selection; a mean divides its share
    between its sum and its count. delta goes to the selection, and evenly to all if their noise is Gaussian and
    planned by epsilon; what is not needed is not charged.
    """
    queries, keys, mechanism = request.queries, request.keys, request.mechanism
    entries, unit = request.read_by(), request.read_unit()
    groups = None
    if keys is not None or not entries:
        # A unit touches no more groups than there are.
        groups = keys.height if keys is not None and entries else 1
        unit = replace(unit, max_groups=max(min(unit.max_groups, groups), 1))
    selects = groups is None
    _check_names(queries, list(map(name_of, entries)))
    budget = request.read_budget(selects_keys=selects)
    split = read_split(request.split, list(queries), selects=selects)
    if split.rule == "optimal" and any(isinstance(query, (QuantileQuery, ModeQuery)) for query in queries.values()):
        allowed = '"even" or weights where there are quantiles or modes, which have no variance known beforehand'
        raise ParameterError("split", request.split, allowed, 'write for example split={"n": 1, "delay": 3}')
    counts = any(isinstance(query, Query) and _counts_rows(query) for query in queries.values())
    if request.key_selection != "auto" and not selects:
        raise ParameterError("key_selection", request.key_selection, '"auto" where keys are public', "leave it out")
    if request.key_selection == "count" and not counts:
        allowed = "another rule where no count of rows is asked"
        raise ParameterError("key_selection", request.key_selection, allowed, "ask for a count as well")

    source = request.open()
    columns = source.schema()
    measures = {name: measures_of(query, columns) for name, query in queries.items()}
    bounds = request.max_groups, request.max_rows_per_group
    where = request.read_where()
    grouping = Grouping(entries, keys, unit.column, *bounds, request.population, where)
    aggregation = prepare(source, grouping, [measure for part in measures.values() for measure in part])

    by = (", ".join(map(name_of, entries)) or "nothing") + in_short(where)
    lists = isinstance(aggregation, Aggregation)
    checked = _Checked(queries, measures, unit, groups, by, mechanism, request.key_selection, budget, split, lists)
    planned, key_share = _plan_noise(checked)
    if key_share is not None and isinstance(key_share.rule, (Weights, Policy)):
        assert isinstance(aggregation, Aggregation)
        aggregation = replace(aggregation, lists_groups=True)
    answers = tuple(
        PlannedQuery(name, query, parts, is_whole(query, columns))
        for (name, query), parts in zip(queries.items(), planned, strict=True)
    )
    blueprint = GroupBlueprint(
        aggregation=aggregation,
        unit=unit,
        dataset=request.known_as,
        concentrated=budget.kind == "rho",
        queries=answers,
        key_share=key_share,
        split=str(split),
    )
    return replace(blueprint, warnings=caveats(request, blueprint.budget, key_share))


def _plan_noise(checked: _Checked) -> tuple[list[tuple[Part, ...]], KeyShare | None]:
    """Return every query's measures with the least noise, and the selection of keys that needs the fewest units."""
    mechanism, budget = checked.mechanism, checked.budget
    # What a budget is split into at most: each share may be halved for a mean.
    pieces = 2 * (len(checked.queries) + checked.selects)
    if budget.units < pieces:
        allowed = f"at least {pieces}e-18, to be split into so many parts"
        raise ParameterError(budget.kind, float(budget.amount), allowed)
    is_split = budget.kind == "rho" or budget.delta_units >= pieces
    if mechanism == "gaussian" and not is_split:
        few = f"at least {pieces}e-18, to be split into parts"
        allowed = few if budget.delta_units else "above 0 for Gaussian noise"
        raise ParameterError("delta", budget.delta_units / 10**18, allowed, "write for example delta=1e-6")
    possible: tuple[Mechanism, ...] = ("laplace", "gaussian") if is_split else ("laplace",)
    kinds = [kind for kind in possible if mechanism in ("auto", kind)]
    draft = min((_draft(checked, kind) for kind in kinds), key=lambda draft: draft.error)
    if draft.selection is None:
        return draft.parts, None
    description = f"selection of keys by {checked.by}"
    unit, rule = checked.unit, checked.key_selection
    apart = best_apart(unit, draft.selection, rule, mechanism, description, lists_groups=checked.lists_groups)
    if checked.count is None or checked.key_selection not in ("auto", "count"):
        assert apart is not None
        return draft.parts, apart
    # The count's noise is chosen with its threshold, that of the others as if there were none.
    tested = min(
        (_draft(checked, draft.kind, test) for test in kinds),
        key=lambda draft: math.inf if draft.tested is None else draft.tested.needed.typical,
    )
    assert tested.tested is not None
    # A count that is its own test has the selection's budget too, and about half the noise: worth some units.
    if apart is not None and apart.needed.typical < _WORTH * tested.tested.needed.typical:
        return draft.parts, apart
    return tested.parts, tested.tested


def _draft(checked: _Checked, mechanism: Mechanism, test: Mechanism | None = None) -> _Draft:
    """Return the plan with one kind of noise for all measures.

    With ``test``, the first count has this kind of noise and the selection's share, and is the test of its group.
    """
    budget, rule = checked.budget, checked.split

    def kind_of(name: str) -> Mechanism:
        return test if test is not None and name == checked.count else mechanism

    stakes = {
        name: [_stake(checked.queries[name], measure, checked.unit, kind_of(name)) for measure in measures]
        for name, measures in checked.measures.items()
    }
    weights = weights_of(rule, stakes, budget=budget.kind)
    of_queries = [sum(parts, Fraction(0)) for parts in weights]
    mean = sum(of_queries, Fraction(0)) / len(of_queries)
    selection = [mean if rule.keys is None else rule.keys] * checked.selects
    names = [name for name, measures in checked.measures.items() for _ in measures]
    flat = [weight for parts in weights for weight in parts]
    tested = None if test is None or checked.count is None else names.index(checked.count)
    if tested is not None:
        flat[tested] += selection.pop()
    shares = portions(budget.units, [*selection, *flat])
    if not all(shares):
        raise ParameterError("split", str(rule), "less uneven: a share would be below 1e-18", "give weights nearer")
    of_keys = shares.pop(0) if selection else 0
    left, deltas = _deltas(checked, [kind_of(name) for name in names])
    if tested is not None:
        left, deltas[tested] = left + deltas[tested], 0
        if test == "gaussian" and budget.kind == "epsilon":
            deltas[tested], left = divided_delta(shares[tested], left, checked.unit.max_groups)
    each = iter([Budget(budget.kind, *pair) for pair in zip(shares, deltas, strict=True)])

    def part(name: str, measure: Measure, share: Budget) -> Part:
        description, query, kind = checked.description(name, measure), checked.queries[name], kind_of(name)
        if isinstance(query, QuantileQuery):
            return quantiles_of(query, measure, checked.unit, checked.groups, share, description)
        if measure.kind == "choices":
            return modes_of(measure, checked.unit, share, description)
        sensitivity = measure.sensitivity(checked.unit)
        noise, charge = noise_of(share, kind, sensitivity.l1, sensitivity.l2_squared, description)
        return NoisyMeasure(measure, sensitivity, kind, noise.scale, charge)

    parts = [
        tuple(part(name, measure, next(each)) for measure in measures) for name, measures in checked.measures.items()
    ]
    error = _error(parts, stakes, rule)
    if tested is None:
        return _Draft(parts, mechanism, Budget(budget.kind, of_keys, left) if checked.selects else None, None, error)
    assert checked.count is not None
    count = parts[list(checked.queries).index(checked.count)][0]
    assert isinstance(count, NoisyMeasure)
    rule_of_keys = tested_count(checked.count, tested, count, checked.unit, left, f"selection of keys by {checked.by}")
    return _Draft(parts, mechanism, None, rule_of_keys, error)


def _deltas(checked: _Checked, kinds: Sequence[Mechanism]) -> tuple[int, list[int]]:
    """Return delta split evenly: what the selection of keys gets, and every measure.

    Only Gaussian noise that is planned by epsilon needs one; the exponential mechanism needs none.
    """
    budget = checked.budget
    measures = [(measure, len(some)) for some in checked.measures.values() for measure in some]
    if budget.kind == "rho":
        return budget.delta_units, [0] * len(measures)
    takers = [
        Fraction(kind == "gaussian" and not measure.selects, beside)
        for (measure, beside), kind in zip(measures, kinds, strict=True)
    ]
    if not checked.selects and not any(takers):
        return 0, [0] * len(measures)
    selection, *deltas = portions(budget.delta_units, [Fraction(checked.selects), *takers])
    return selection, deltas


def _stake(query: Query, measure: Measure, unit: PrivacyUnit, mechanism: Mechanism) -> Stake:
    """Return a measure's part in the optimal split.

    Counts and sums are in their own unit, and the measures of any other query in that of its answer.
    """
    if measure.selects:
        # No stake in what only "optimal" splits look at.
        return Stake(Fraction(1))
    sensitivity = measure.sensitivity(unit)
    size_squared = sensitivity.l1**2 if mechanism == "laplace" else sensitivity.l2_squared
    step = Fraction(2) ** measure.step_exponent
    return Stake(size_squared * step**2, importance_of(query, measure))


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


def _counts_rows(query: Query) -> bool:
    return query.kind == "count" and query.column is None
