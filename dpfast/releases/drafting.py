"""A budget and what is to be measured -> the noise of every query by group, and the selection of keys.

There are a few ways to plan the same queries: Laplace or Gaussian noise, numbers of values measured by themselves or as
rows less missing values, keys tested by the released count or apart. Each is drafted, and the one of least noise taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Literal

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.queries import Measure, QuantileQuery, Query, RankedQuery
from dpfast.releases.choosing_keys import best_apart, divided_delta, tested_count
from dpfast.releases.key_share import KeyShare
from dpfast.releases.measure_noise import gaussian_blocks, laplace_block, modes_of, quantiles_of
from dpfast.releases.measurements import Block, Figure, Layout, Use, layouts
from dpfast.releases.planned_queries import Combined, DrawnPart, Mechanism, NoisyMeasure, Part, describe, drawn_parts
from dpfast.releases.query_measures import importance_of, said_of
from dpfast.releases.request import AskedMechanism
from dpfast.releases.splitting import Split, Stake, portions, weights_of
from dpfast.releases.value_planning import values_of

__all__ = ["Asked", "Draft", "Given", "counts_rows", "draft_with", "plan_noise", "possible_kinds", "select_apart"]

#: The noise that may be used.
NOISES: dict[AskedMechanism, tuple[Mechanism, ...]] = {
    "auto": ("laplace", "gaussian"),
    "laplace": ("laplace",),
    "gaussian": ("gaussian",),
}

#: A selection apart from the count is taken where it needs fewer than this part of the units.
_WORTH = 2 / 3


@dataclass(frozen=True)
class Asked:
    """What has to be planned, checked.

    Attributes
    ----------
    queries, measures
        The queries, and what each is answered from, by name.
    unit
        Whose presence is hidden.
    groups
        How many groups there are, None where keys are selected.
    by
        The names of the key columns, in words.
    mechanism, key_selection, budget, split
        As asked.
    lists_groups
        Whether it will be known which groups each unit holds.

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
    #: What each query for the most common values gets of delta; the budget's is without it.
    delta_of_values: int = 0

    @property
    def count(self) -> str | None:
        """The name of the first number of units that is asked, or else of the first count of rows, if any is."""
        counts = [name for name, query in self.queries.items() if counts_rows(query)]
        return next((name for name in counts if self.queries[name].kind == "units"), next(iter(counts), None))

    @property
    def counted(self) -> Measure | None:
        """What that query is answered from."""
        return None if self.count is None else self.measures[self.count][0]

    @property
    def selects(self) -> bool:
        """Whether keys are selected."""
        return self.groups is None

    def description(self, uses: Sequence[Use]) -> str:
        """Return what a measure's charge is for."""
        names = list(dict.fromkeys(use.query for use in uses))
        if len(names) > 1:
            return f"{', '.join(names)} by {self.by}: one measurement"
        told = said_of(self.queries[names[0]], uses[0].asked)
        return f"{self.described(names[0])}" + (f" ({told})" if told else "")

    def described(self, name: str) -> str:
        """Return what a query's charge is for."""
        return f"{name}: {describe(self.queries[name])} by {self.by}"


@dataclass(frozen=True)
class Given:
    """Shares of the budget that are known already, in its units: nothing is left to divide.

    Attributes
    ----------
    figures
        Of every measure that is paid for, block by block.
    selected
        Of every quantile and mode.
    keys
        Of the selection of keys.

    """

    figures: Sequence[int]
    selected: Sequence[int]
    keys: int = 0


@dataclass(frozen=True)
class Draft:
    """One way to plan it: what every query is answered from, and the selection of keys.

    ``selection`` is the selection's share of the budget, ``tested`` the selection by a released count, which has none.
    """

    parts: dict[str, tuple[Part, ...]]
    layout: Layout
    kind: Mechanism
    selection: Budget | None
    tested: KeyShare | None
    #: The logarithm of what is to be small.
    error: float


def counts_rows(query: Query) -> bool:
    """Return whether a query counts all rows, or units, and so may be the test of its groups."""
    return query.kind == "units" or (query.kind == "count" and query.column is None)


def plan_noise(asked: Asked) -> tuple[dict[str, tuple[Part, ...]], KeyShare | None]:
    """Return what every query is answered from with the least noise, and the selection of keys of the fewest units.

    Delta is divided among all that may use some; what turns out to be better without it leaves it to the others.
    """
    kinds = possible_kinds(asked)
    ranked, others = _may_use_delta(asked)
    while True:
        divided = _apart_from_values(asked, ranked, others=others)
        parts, share = _planned(divided, kinds)
        if not divided.delta_of_values:
            return parts, share
        used = [name for name in ranked if _takes_delta(parts[name])]
        others_use = share is not None or any(_takes_delta(some) for name, some in parts.items() if name not in ranked)
        if (used, others_use) == (ranked, others):
            return parts, share
        ranked, others = used, others_use


def _takes_delta(parts: tuple[Part, ...]) -> bool:
    return any(part.delta_units for part in drawn_parts([parts]))


def _planned(asked: Asked, kinds: Sequence[Mechanism]) -> tuple[dict[str, tuple[Part, ...]], KeyShare | None]:
    """Return the same where delta is divided."""
    ways = layouts(asked.measures)
    draft = _least(asked, ways, kinds)
    if draft.selection is None:
        return draft.parts, None
    apart = select_apart(asked, draft.selection)
    if asked.count is None or asked.key_selection not in ("auto", "count"):
        assert apart is not None
        return draft.parts, apart
    # The count's noise is chosen with its threshold, that of the others as if there were none.
    layout = _least(asked, [way for way in ways if asked.counted in way.measured], [draft.kind]).layout
    tested = min(
        (draft_with(asked, layout, draft.kind, test) for test in kinds),
        key=lambda draft: math.inf if draft.tested is None else draft.tested.needed.typical,
    )
    assert tested.tested is not None
    # A count that is its own test has the selection's budget too, and about half the noise: worth some units.
    if apart is not None and apart.needed.typical < _WORTH * tested.tested.needed.typical:
        return draft.parts, apart
    return tested.parts, tested.tested


def select_apart(asked: Asked, share: Budget) -> KeyShare | None:
    """Return the selection of keys apart from the count, at a share of the budget; None where the count is to test."""
    description = f"selection of keys by {asked.by}"
    rule, mechanism, lists = asked.key_selection, asked.mechanism, asked.lists_groups
    return best_apart(asked.unit, share, rule, mechanism, description, lists_groups=lists)


def possible_kinds(asked: Asked) -> list[Mechanism]:
    """Return the kinds of noise that the budget allows, of those that are asked for."""
    mechanism, budget = asked.mechanism, asked.budget
    # What a budget is split into at most: each share may be divided for a mean.
    pieces = 4 * (len(asked.queries) + asked.selects)
    if budget.units < pieces:
        allowed = f"at least {pieces}e-18, to be split into so many parts"
        raise ParameterError(budget.kind, float(budget.amount), allowed)
    is_split = budget.kind == "rho" or budget.delta_units >= pieces
    if mechanism == "gaussian" and not is_split:
        few = f"at least {pieces}e-18, to be split into parts"
        allowed = few if budget.delta_units else "above 0 for Gaussian noise"
        raise ParameterError("delta", budget.delta_units / 10**18, allowed, "write for example delta=1e-6")
    possible: tuple[Mechanism, ...] = ("laplace", "gaussian") if is_split else ("laplace",)
    return [kind for kind in possible if mechanism in ("auto", kind)]


def _may_use_delta(asked: Asked) -> tuple[list[str], bool]:
    """Return which queries that rank values may use delta, and whether anything else may.

    Public candidates need some for Gaussian noise by epsilon alone.
    """
    may_be_gaussian = asked.budget.kind == "epsilon" and asked.mechanism != "laplace"
    ranked = [
        name
        for name, query in asked.queries.items()
        if isinstance(query, RankedQuery) and (may_be_gaussian or not query.candidates)
    ]
    return ranked, asked.selects or any(not some[0].selects for some in asked.measures.values())


def _apart_from_values(asked: Asked, ranked: Sequence[str], *, others: bool) -> Asked:
    """Return what is asked with delta divided: an equal part for each of these queries, and one for others."""
    if not ranked or not asked.budget.delta_units:
        return asked
    each = asked.budget.delta_units // (len(ranked) + others)
    rest = asked.budget.delta_units - each * len(ranked) if others else 0
    return replace(asked, budget=replace(asked.budget, delta_units=rest), delta_of_values=each)


def _least(asked: Asked, ways: Sequence[Layout], kinds: Sequence[Mechanism]) -> Draft:
    """Return the plan of least noise, of these ways to measure with these kinds of noise."""
    drafts: list[Draft] = []
    refused: list[ParameterError] = []
    for layout, kind in product(ways, kinds):
        # By rho, Laplace noise on some measures has no room for missing values.
        if kind == "laplace" and asked.budget.kind == "rho" and any(block.missing for block in layout.blocks):
            continue
        try:
            drafts.append(draft_with(asked, layout, kind))
        except ParameterError as error:
            refused.append(error)
    if not drafts:
        raise refused[0]
    return min(drafts, key=lambda draft: draft.error)


def draft_with(
    asked: Asked, layout: Layout, mechanism: Mechanism, test: Mechanism | None = None, given: Given | None = None
) -> Draft:
    """Return the plan with one kind of noise for all measures.

    With ``test``, the count has this kind of noise and the selection's share, and is the test of its group. With
    ``given``, shares are these, and not those of the split.
    """
    budget, blocks = asked.budget, layout.blocks
    kinds = [test if test is not None and asked.counted in block.uses else mechanism for block in blocks]
    paying = [(place, measure) for place, block in enumerate(blocks) for measure in block.uses]
    selecting = [(name, some[0]) for name, some in asked.measures.items() if some[0].selects]
    tested = None if test is None else next(of for of, (_, measure) in enumerate(paying) if measure == asked.counted)
    if given is None:
        given = _shares(asked, layout, kinds, [name for name, _ in selecting], mechanism, tested)
    parts: list[list[int]] = [[] for _ in blocks]
    for (place, _), units in zip(paying, given.figures, strict=True):
        parts[place].append(units)

    drawn: dict[Measure, NoisyMeasure] = {}
    together = [place for place, kind in enumerate(kinds) if kind == "gaussian"]
    left, delta = _divided(asked, sum(sum(parts[place]) for place in together), tested=test == "gaussian")
    if together:
        share = Budget(budget.kind, sum(sum(parts[place]) for place in together), delta)
        some = [blocks[place] for place in together]
        found = gaussian_blocks(share, some, [parts[place] for place in together], asked.unit, _together(asked, some))
        drawn |= {part.measure: part for part in found}
    for block, some_units, kind in zip(blocks, parts, kinds, strict=True):
        if kind == "laplace":
            each = [Budget(budget.kind, units) for units in some_units]
            found = laplace_block(each, block, asked.unit, [asked.description(uses) for uses in block.uses.values()])
            drawn |= {part.measure: part for part in found}
    selected: dict[str, DrawnPart] = {}
    for (name, measure), units in zip(selecting, given.selected, strict=True):
        query, share, description = asked.queries[name], Budget(budget.kind, units), asked.described(name)
        if isinstance(query, RankedQuery):
            own, allowed = replace(share, delta_units=asked.delta_of_values), asked.mechanism
            selected[name] = values_of(measure, asked.unit, own, NOISES[allowed], description, query.winners)
        elif isinstance(query, QuantileQuery):
            selected[name] = quantiles_of(query, measure, asked.unit, asked.groups, share, description)
        else:
            selected[name] = modes_of(measure, asked.unit, share, description)
    answers: dict[str, tuple[Part, ...]] = {
        name: (selected[name],) if name in selected else tuple(_part(figure, drawn) for figure in layout.figures[name])
        for name in asked.queries
    }
    error = _error(asked, layout, answers)
    if tested is None:
        return Draft(
            answers, layout, mechanism, Budget(budget.kind, given.keys, left) if asked.selects else None, None, error
        )
    assert asked.count is not None
    assert asked.counted is not None
    order, rows = drawn_parts(answers.values()), drawn[asked.counted]
    rule_of_keys = tested_count(
        asked.count, order.index(rows), rows, asked.unit, left, f"selection of keys by {asked.by}"
    )
    return Draft(answers, layout, mechanism, None, rule_of_keys, error)


def _shares(
    asked: Asked,
    layout: Layout,
    kinds: Sequence[Mechanism],
    selecting: Sequence[str],
    mechanism: Mechanism,
    tested: int | None,
) -> Given:
    """Return the budget divided by the split; ``tested`` is the place of the count that gets the selection's share."""
    budget, rule, blocks = asked.budget, asked.split, layout.blocks
    paying = [(place, measure) for place, block in enumerate(blocks) for measure in block.uses]
    stakes = [[_stake(asked, use, kinds[place]) for use in blocks[place].uses[measure]] for place, measure in paying]
    free = [
        (
            [of for of, (home, _) in enumerate(paying) if home == place],
            [_stake(asked, use, kind) for use in block.missed],
        )
        for place, (block, kind) in enumerate(zip(blocks, kinds, strict=True))
        if block.missing is not None
    ]
    adds: Literal["scales", "squares"] = "scales" if budget.kind == "epsilon" and mechanism == "laplace" else "squares"
    weights = weights_of(rule, [*stakes, *([Stake(name)] for name in selecting)], free, adds=adds)
    selection = [sum(weights, Fraction(0)) / len(asked.queries) if rule.keys is None else rule.keys] * asked.selects
    if tested is not None:
        weights[tested] += selection.pop()
    shares = portions(budget.units, [*selection, *weights])
    if not all(shares):
        raise ParameterError("split", str(rule), "less uneven: a share would be below 1e-18", "give weights nearer")
    of_keys = shares.pop(0) if selection else 0
    return Given(shares[: len(paying)], shares[len(paying) :], of_keys)


def _divided(asked: Asked, units: int, tested: bool) -> tuple[int, int]:
    """Return delta divided: what the selection of keys gets, and what Gaussian noise on all measures together gets.

    Only Gaussian noise that is planned by epsilon needs one; the exponential mechanism needs none. Where that noise is
    also the selection's, delta is divided as makes the threshold lowest; else evenly.
    """
    budget = asked.budget
    if budget.kind == "rho":
        return budget.delta_units, 0
    if not asked.selects:
        return 0, budget.delta_units if units else 0
    if not units:
        return budget.delta_units, 0
    if tested:
        of_noise, of_threshold = divided_delta(units, budget.delta_units, asked.unit.max_groups)
        return of_threshold, of_noise
    of_keys, of_noise = portions(budget.delta_units, [Fraction(1), Fraction(1)])
    return of_keys, of_noise


def _together(asked: Asked, blocks: list[Block]) -> str:
    """Return what the charge of one Gaussian noise on all of these is for."""
    if len(blocks) == 1 == len(blocks[0].uses):
        return asked.description([use for uses in blocks[0].uses.values() for use in uses])
    names = list(dict.fromkeys(name for block in blocks for name in block.queries))
    if len(names) == 1:
        return asked.described(names[0])
    return f"{', '.join(names)} by {asked.by}: measured together"


def _part(figure: Figure, drawn: Mapping[Measure, NoisyMeasure]) -> Part:
    measured = drawn[figure.measured]
    return measured if figure.other is None else Combined(figure.asked, measured, drawn[figure.other], figure.sign)


def _stake(asked: Asked, use: Use, mechanism: Mechanism) -> Stake:
    """Return a query's stake in a measure, for the noise that is planned; its size where the split asks for that."""
    if asked.split.rule != "optimal":
        return Stake(use.query, use.part)
    sensitivity = use.measured.sensitivity(asked.unit)
    size_squared = sensitivity.l1**2 if mechanism == "laplace" else sensitivity.l2_squared
    told = size_squared * use.measured.step**2
    return Stake(use.query, use.part, told, importance_of(asked.queries[use.query], use.asked))


def _error(asked: Asked, layout: Layout, answers: Mapping[str, tuple[Part, ...]]) -> float:
    """Return what a way to plan is chosen by, as a logarithm.

    The weighted sum of variances where that is what the split minimises; else the product of all variances, each to the
    power of its query's weight, by which the choice is the same for all units.
    """
    rule, logs = asked.split, []
    for name, figures in layout.figures.items():
        for figure, part in zip(figures, answers[name], strict=True):
            # Quantiles and modes are drawn the same way whatever the noise of the others is.
            if figure.asked.selects:
                continue
            assert isinstance(part, (NoisyMeasure, Combined))
            log, weight = 2 * math.log(part.deviation), rule.weights.get(name, Fraction(1))
            if rule.rule != "optimal":
                logs.append(float(weight) * log)
                continue
            weight *= importance_of(asked.queries[name], figure.asked)
            logs.append(log + 2 * math.log(part.step) + math.log(weight.numerator) - math.log(weight.denominator))
    if rule.rule != "optimal":
        return math.fsum(logs)
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs))
