"""From wished errors to a budget: the least that meets them all, and how it is divided among what is measured.

Every measure has a share of the budget, and with it a scale: b = D / share for Laplace noise by epsilon, and
sigma = D / sqrt(share) for Gaussian noise. Answers are off by more as scales grow. So the wishes are constraints
q_k(s) <= K on scales s_i, with norms q_k, about the roots of sums of squares (a_ki s_i)**2, and the cost is a sum of
c_i / s_i**p, p = 1 or 2. By Lagrange s_i = (p c_i / sum of l_k dq_k / ds_i)**(1 / (p + 1)), with a multiplier l_k for
each wish. They are found by proportional steps.

Then every share is lowered, one after the other, as far as the errors that plans show allow
(`dpfast.releases.wished_shares`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dpfast.accounting.budget import LARGEST_RHO, Budget
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import LARGEST_EPSILON_UNITS, UNITS_PER_ONE, to_float
from dpfast.queries import QuantileQuery
from dpfast.releases.drafting import Asked, Draft, Given, draft_with, possible_kinds, select_apart
from dpfast.releases.key_share import KeyShare
from dpfast.releases.measure_noise import modes_of, quantiles_of
from dpfast.releases.measurements import layouts
from dpfast.releases.planned_queries import Part
from dpfast.releases.wished_shares import DRAWN, SharesProblem
from dpfast.releases.wishes import Wish, check_limit

__all__ = ["Fulfilled", "fulfil"]

#: Ways to plan that seem to cost so many times as much as the cheapest are not looked at: about, and once their shares
#: are raised or lowered until they meet all wishes.
_DEAR, _DEARER, _NEARLY = 1.4, 1.05, 1 + 2.0**-10
#: What a plan costs is written in so many digits.
_DIGITS = 12


@dataclass(frozen=True)
class Fulfilled:
    """The least budget that meets wishes, what queries are answered from, and the selection of keys."""

    budget: Budget
    parts: dict[str, tuple[Part, ...]]
    key_share: KeyShare | None


def fulfil(ways: Sequence[Asked], wishes: Mapping[str, Wish], limit: int | None) -> Fulfilled:
    """Return the plan of least cost that meets all wishes.

    Parameters
    ----------
    ways
        What is asked, with the measures for each kind of noise; of its budget only the kind and delta count.
    wishes
        For every query.
    limit
        What it may cost at most, in units of 1e-18; None for what any plan may.

    Raises
    ------
    ParameterError
        The wishes cost more.

    """
    asked = ways[0]
    kind = asked.budget.kind
    most = LARGEST_EPSILON_UNITS if kind == "epsilon" else LARGEST_RHO * UNITS_PER_ONE
    of_budget = [replace(way, budget=Budget(kind, UNITS_PER_ONE, way.budget.delta_units)) for way in ways]
    tests = asked.selects and asked.count is not None and asked.key_selection in ("auto", "count")
    drawn = [wish for wish in wishes.values() if wish.query.kind in DRAWN]
    selected = [_selected_units(of_budget[0], wish, most) for wish in drawn]
    possible: list[tuple[int, SharesProblem]] = []
    drafts = [(way, *one) for way in of_budget for one in product(layouts(way.measures), possible_kinds(way))]
    for way, layout, mechanism in drafts:
        if mechanism == "laplace" and kind == "rho" and any(block.missing for block in layout.blocks):
            continue
        if tests and asked.counted not in layout.measured:
            continue
        problem = SharesProblem(way, layout, mechanism, wishes)
        about = problem.units(problem.near_shares(), tests=tests)
        if about is not None:
            possible.append((sum(about), problem))
    cheapest = min((cost for cost, _ in possible), default=0)
    near = [(problem.met_cost(tests=tests), problem) for cost, problem in possible if cost <= _DEAR * cheapest]
    cheapest_met = min((cost for cost, _ in near), default=0)
    last = [(problem.rough_cost(tests=tests), problem) for cost, problem in near if cost <= _DEARER * cheapest_met]
    cheapest_rough = min((cost for cost, _ in last), default=0)
    few = [problem for cost, problem in last if cost <= _NEARLY * cheapest_rough]
    met = [_met(problem, selected, most, limit, tests=tests) for problem in few]
    found = [one for one in met if one is not None]
    if not found:
        allowed = f"larger: these wishes need {kind} above {to_float(most):g}"
        raise ParameterError("error", _written(wishes), allowed, "wish for less")
    units, draft, planned = min(found, key=lambda one: one[0])
    check_limit(kind, units, limit, _written(wishes))
    if draft.selection is None:
        return Fulfilled(planned.budget, draft.parts, draft.tested)
    apart = select_apart(planned, draft.selection)
    assert apart is not None
    return Fulfilled(planned.budget, draft.parts, apart)


def _written(wishes: Mapping[str, Wish]) -> Words:
    return Words(", ".join(f"{wish.name} {wish.error:g}" for wish in wishes.values()))


def _selected_units(asked: Asked, wish: Wish, most: int) -> int:
    """Return the least share, to a part in 2**40, at which a quantile or a mode is within its wish, by halving."""
    measure, name = asked.measures[wish.name][0], wish.name

    def suffices(units: int) -> bool:
        share = Budget(asked.budget.kind, units)
        try:
            if isinstance(wish.query, QuantileQuery):
                part: Part = quantiles_of(wish.query, measure, asked.unit, asked.groups, share, name)
            else:
                part = modes_of(measure, asked.unit, share, name)
        except ParameterError:
            return False
        return wish.reached([part]) <= wish.error

    low, high = 0, UNITS_PER_ONE
    while not suffices(high):
        if high >= most:
            raise ParameterError(f"error[{name!r}]", wish.error, f"larger: no {asked.budget.kind} meets it")
        low, high = high, min(4 * high, most)
    while high - low > max(high >> 40, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _written_above(units: int, most: int) -> int:
    """Return an amount rounded up to 12 digits, within ``most``: a float says it exactly, such as a ledger's budget."""
    digit: int = 10 ** max(len(str(units)) - _DIGITS, 0)
    return min(-(-units // digit) * digit, max(most, units))


def _met(
    problem: SharesProblem, selected: Sequence[int], most: int, limit: int | None, *, tests: bool
) -> tuple[int, Draft, Asked] | None:
    """Return what a way to plan costs, and that plan; None if it is more than any plan may."""
    asked, shares = problem.asked, problem.least_shares()
    raised = 2.0**-50
    while raised < 1:
        figures = problem.units(shares, tests=tests)
        if figures is None:
            return None
        # The selection of keys apart gets what a query gets on average.
        keys = max(sum([*figures, *selected]) // len(asked.queries), 1) if asked.selects and not tests else 0
        needed = sum([*figures, *selected, keys])
        total = _written_above(needed, most if limit is None or needed > limit else limit)
        if needed > most:
            return None
        # What a few digits more cost is the first one's.
        paid, *others = [*figures, *selected]
        given = [paid + total - needed, *others]
        planned = replace(asked, budget=replace(asked.budget, units=total))
        test = problem.mechanism if tests else None
        shares_given = Given(given[: len(figures)], given[len(figures) :], keys)
        draft = draft_with(planned, problem.layout, problem.mechanism, test, shares_given)
        if all(wish.reached(draft.parts[name]) <= wish.error for name, wish in problem.wishes.items()):
            return total, draft, planned
        # Scales are rounded up.
        shares = [share * (1 + raised) for share in shares]
        raised *= 4
    return None
