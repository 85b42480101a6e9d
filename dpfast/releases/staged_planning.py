"""A request that leaves numbers open -> the blueprint of a release in two stages, the first of which chooses them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Approximate
from dpfast.aggregation.keys import name_of
from dpfast.aggregation.sources import Source
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.releases.bounds_choice import BoundsChoice, bounds_choice
from dpfast.releases.caveats import caveats
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.group_planning import draw_up_groups, read_whole_budget
from dpfast.releases.limits_choice import limits_choice
from dpfast.releases.population_intervals import refuse_population
from dpfast.releases.private_choices import PrivateChoice
from dpfast.releases.request import Request
from dpfast.releases.splitting import portions, read_split
from dpfast.releases.staged_blueprint import StagedBlueprint, survey_share
from dpfast.releases.survey_noise import concentrated_charge, plan_surveys
from dpfast.releases.wishes import refuse_wishes
from dpfast.rows.filters import in_short

__all__ = ["choices_of", "draw_up_staged"]


def choices_of(request: Request) -> list[PrivateChoice]:
    """Return what a request leaves open, in the order in which it is chosen."""
    return [choice for choice in (limits_choice(request), bounds_choice(request)) if choice is not None]


def draw_up_staged(request: Request, choices: Sequence[PrivateChoice]) -> StagedBlueprint:
    """Return the blueprint of a release that chooses first.

    Raises
    ------
    ParameterError
        What is asked needs numbers that are known beforehand, or its rows are not read here, or the budget is too small
        for whatever may be chosen.

    """
    choices = list(choices)
    about = " and ".join(choice.about for choice in choices)
    refuse_wishes(request.error, f"with {about} chosen privately, whose noise is not known beforehand")
    refuse_population(request.interval, f"with {about} chosen privately, from the rows themselves")
    split = read_split(request.split, list(request.queries), selects=request.keys is None and bool(request.read_by()))
    if split.rule == "optimal" and any(isinstance(choice, BoundsChoice) for choice in choices):
        # Bounds are chosen by the noise that their query's share buys.
        allowed = f'"even" or weights with {about} chosen privately: the noise is not known beforehand'
        raise ParameterError("split", request.split, allowed, 'write for example split={"n": 1, "delay": 3}')

    def filled(asked: Request) -> Request:
        for choice in choices:
            asked = choice.stand_in(asked)
        return asked

    def draft(asked: Request) -> GroupBlueprint:
        return draw_up_groups(filled(asked))

    unit, whole = filled(request).read_unit(), read_whole_budget(request)
    questions = sum(choice.questions for choice in choices)
    share = survey_share(questions)
    of_surveys, of_rest = portions(whole.units, [share, 1 - share])
    by = (", ".join(map(name_of, request.read_by())) or "nothing") + in_short(request.read_where())
    noise = plan_surveys(
        whole, Budget(whole.kind, of_surveys), 2 if unit.neighbors == "replace" else 1, questions, f"{about} by {by}"
    )
    source = request.open()
    if not isinstance(source, Source):
        allowed = f'"rows" where {about} are chosen privately'
        raise ParameterError("engine", request.engine, allowed, "or give numbers")
    known_as = request.known_as
    rest = _as_charged(Budget(whole.kind, of_rest, whole.delta_units))
    opened = replace(request, data=source, schema=None, engine="auto", dataset=known_as, rest=rest)

    drafted: list[GroupBlueprint] = []

    def largest(choice: PrivateChoice) -> None:
        others = [other for other in choices if other.about != choice.about]
        drafted[:] = [draft(extreme) for extreme in _extremes([choice, *others], opened)]

    # What was narrowed for one choice is so for the next ones.
    for place, choice in enumerate(choices):
        choices[place] = choice.within(largest)
    plan = draft(opened)
    if rest.kind == "epsilon" and rest.delta_units and not any(extreme.delta_units for extreme in drafted):
        # What needs no delta is not charged any, and so none of the second stage may take it.
        opened = replace(opened, rest=replace(rest, delta_units=0))
        plan = draft(opened)
        for extreme in _extremes(choices, opened):
            draft(extreme)
    for choice in choices:
        choice.prepare(source, filled(opened))
    blueprint = StagedBlueprint(
        aggregation=plan.aggregation,
        unit=plan.unit,
        dataset=known_as,
        concentrated=plan.concentrated,
        request=opened,
        source=source,
        choices=choices,
        noise=noise,
        share=share,
        rest=_charges(opened.read_budget(), f"{', '.join(request.queries)} by {by}: with what was chosen"),
        draft=draft,
        plan=plan,
    )
    # How many units a key needs is not known where limits are open.
    key_share = None if any(choice.unit_said for choice in choices) else plan.key_share
    return replace(blueprint, warnings=caveats(request, blueprint.budget, key_share))


def _extremes(choices: Sequence[PrivateChoice], request: Request) -> Iterator[Request]:
    """Yield requests with the extremes of all choices together."""
    if not choices:
        yield request
        return
    for extreme in choices[0].extremes(request):
        yield from _extremes(choices[1:], extreme)


def _as_charged(rest: Budget) -> Budget:
    """Return the rest as its event has it, which holds rho as a float."""
    if rest.kind == "epsilon":
        return rest
    return replace(rest, units=int(as_written(written_below(rest.units)) * UNITS_PER_ONE))


def _charges(rest: Budget, description: str) -> list[Charge]:
    """Return the charges for anything that is private at the rest of the budget."""
    if rest.kind == "epsilon":
        return [Charge(rest.units, rest.delta_units, description)]
    charges = [concentrated_charge(rest.units, description)]
    if rest.delta_units:
        delta = written_below(rest.delta_units)
        charges.append(Charge(0, rest.delta_units, description, Approximate(0.0, delta)))
    return charges
