"""From wished errors to a budget: the least that meets them all, and how it is divided among what is measured.

Every measure has a share of the budget, and with it a scale: b = D / share for Laplace noise by epsilon, and
sigma = D / sqrt(share) for Gaussian noise. Answers are off by more as scales grow. So the wishes are constraints
sum of a_i s_i <= K on scales s_i, and the cost is a sum of c_i / s_i**p, p = 1 or 2. By Lagrange
s_i = (p c_i / sum of l_k a_ki)**(1 / (p + 1)), with a multiplier l_k for each wish. Where no two wishes share a
measure, each multiplier follows from its own wish, in closed form; else they are found by proportional steps.

That is right up to the rounding of noise to whole steps. Then every share is lowered, one after the other, as far as
the errors by `dpfast.mechanisms.noise.half_widths` allow, which are those that plans show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from statistics import NormalDist

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import LARGEST_RHO, Budget
from dpfast.accounting.events import Pure
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import LARGEST_EPSILON_UNITS, UNITS_PER_ONE, to_float
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.calibration import analytic_gaussian_epsilon
from dpfast.mechanisms.noise.integer_noise import laplace_of_scale
from dpfast.mechanisms.noise.lattice import LARGEST_INTEGER_SCALE
from dpfast.queries import Measure, QuantileQuery
from dpfast.releases.choosing_keys import divided_delta
from dpfast.releases.drafting import Asked, Draft, Given, draft_with, possible_kinds, select_apart
from dpfast.releases.key_share import KeyShare
from dpfast.releases.measure_noise import modes_of, quantiles_of
from dpfast.releases.measurements import Block, Layout, layouts
from dpfast.releases.planned_queries import Combined, Mechanism, NoisyMeasure, Part
from dpfast.releases.splitting import portions
from dpfast.releases.wishes import MISS, Wish, check_limit, half_range

__all__ = ["Fulfilled", "fulfil"]

_ROUNDS = 400
_EXCHANGES, _FACTORS = 4, (2.0, 1.3, 1.1, 1.03, 1.01, 0.99, 0.97, 0.9, 0.75, 0.5)
#: Ways to plan that seem to cost so many times as much as the cheapest are not looked at.
_DEAR = 1.4
_UNPAID = Charge(UNITS_PER_ONE, 0, "not charged", Pure(1.0))
_UNMOVED = Sensitivity(0, 0)


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
    drawn = [wish for wish in wishes.values() if wish.query.kind in _DRAWN]
    selected = [_selected_units(of_budget[0], wish, most) for wish in drawn]
    possible: list[tuple[int, _Problem]] = []
    drafts = [(way, *one) for way in of_budget for one in product(layouts(way.measures), possible_kinds(way))]
    for way, layout, mechanism in drafts:
        if mechanism == "laplace" and kind == "rho" and any(block.missing for block in layout.blocks):
            continue
        if tests and asked.counted not in layout.measured:
            continue
        problem = _Problem(way, layout, mechanism, wishes)
        about = problem.units(problem.near_shares(), tests=tests)
        if about is not None:
            possible.append((sum(about), problem))
    cheapest = min((cost for cost, _ in possible), default=0)
    near = [_met(problem, selected, most, tests=tests) for cost, problem in possible if cost <= _DEAR * cheapest]
    found = [met for met in near if met is not None]
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


#: What is drawn by the exponential mechanism.
_DRAWN = ("quantile", "minimum", "maximum", "mode")


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


def _met(problem: _Problem, selected: Sequence[int], most: int, *, tests: bool) -> tuple[int, Draft, Asked] | None:
    """Return what a way to plan costs, and that plan; None if it is more than any plan may."""
    asked, shares = problem.asked, problem.least_shares()
    raised = 2.0**-50
    while raised < 1:
        figures = problem.units(shares, tests=tests)
        if figures is None:
            return None
        # The selection of keys apart gets what a query gets on average.
        keys = max(sum([*figures, *selected]) // len(asked.queries), 1) if asked.selects and not tests else 0
        total = sum([*figures, *selected, keys])
        if total > most:
            return None
        planned = replace(asked, budget=replace(asked.budget, units=total))
        test = problem.mechanism if tests else None
        draft = draft_with(planned, problem.layout, problem.mechanism, test, Given(figures, selected, keys))
        if all(wish.reached(draft.parts[name]) <= wish.error for name, wish in problem.wishes.items()):
            return total, draft, planned
        # Scales are rounded up.
        shares = {one: share * (1 + raised) for one, share in shares.items()}
        raised *= 4
    return None


@dataclass(frozen=True)
class _Problem:
    """The shares of measures, in one layout with one kind of noise, and what they have to meet.

    A share is an epsilon of Laplace noise, also by rho; of Gaussian noise the square of sensitivity / sigma.
    """

    asked: Asked
    layout: Layout
    mechanism: Mechanism
    wishes: Mapping[str, Wish]

    @cached_property
    def measures(self) -> list[Measure]:
        """All that has a share."""
        return [measure for block in self.layout.blocks for measure in block.uses]

    @cached_property
    def sizes(self) -> dict[Measure, float]:
        """Of every measure, free ones too, its sensitivity."""
        moved = {
            measure: measure.sensitivity(self.asked.unit) for block in self.layout.blocks for measure in block.measures
        }
        return {measure: size.of_noise(self.mechanism)[1] for measure, size in moved.items()}

    @cached_property
    def wished(self) -> dict[str, Wish]:
        """The wishes of queries that are answered from these measures."""
        return {name: wish for name, wish in self.wishes.items() if wish.query.kind not in _DRAWN}

    @property
    def power(self) -> int:
        """The p of the cost c / s**p."""
        return 1 if self.mechanism == "laplace" and self.asked.budget.kind == "epsilon" else 2

    @cached_property
    def blocks(self) -> dict[Measure, Block]:
        """The block of every measure, free ones too."""
        return {measure: block for block in self.layout.blocks for measure in block.measures}

    @cached_property
    def needing(self) -> dict[Measure, list[str]]:
        """The names of the queries whose errors a share decides, by way of free measures too."""
        return {
            measure: [
                name for name in self.blocks[measure].queries if name in self.wished and self._needs(name, measure)
            ]
            for measure in self.measures
        }

    def _needs(self, name: str, measure: Measure) -> bool:
        needed = [one for figure in self.layout.figures[name] for one in figure.measures]
        return measure in needed or any(one == self.blocks[measure].missing for one in needed)

    def scale(self, measure: Measure, shares: Mapping[Measure, float]) -> float:
        """Return the scale of a measure; a free one has all shares of its block."""
        block = self.blocks[measure]
        share = shares[measure] if measure != block.missing else math.fsum(shares[one] for one in block.uses)
        return self.sizes[measure] / (share if self.mechanism == "laplace" else math.sqrt(share))

    def meets(self, shares: Mapping[Measure, float], names: Sequence[str]) -> bool:
        """Return whether these queries are within their wishes."""
        return all(self._reached(name, shares) <= self.wished[name].error for name in names)

    def _reached(self, name: str, shares: Mapping[Measure, float]) -> float:
        """Return the error of a query; infinite where noise would be wider than any may be."""
        parts: list[Part] = []
        for figure in self.layout.figures[name]:
            scales = [self.scale(measure, shares) for measure in figure.measures]
            if max(scales) > LARGEST_INTEGER_SCALE / 2:
                return math.inf
            noisy = [
                NoisyMeasure(measure, _UNMOVED, self.mechanism, scale, _UNPAID)
                for measure, scale in zip(figure.measures, scales, strict=True)
            ]
            parts.append(noisy[0] if len(noisy) == 1 else Combined(figure.asked, noisy[0], noisy[1], figure.sign))
        return self.wished[name].reached(parts)

    def cost(self, shares: Mapping[Measure, float]) -> float:
        """Return what shares cost, in proportion."""
        if self.mechanism == "laplace" and self.asked.budget.kind == "rho":
            return math.fsum(share * math.tanh(share / 2) for share in shares.values())
        return math.fsum(shares.values())

    def near_shares(self) -> dict[Measure, float]:
        """Return about the shares of least cost."""
        scales = self._least_scales()
        root = 1.0 if self.mechanism == "laplace" else 2.0
        return {one: (self.sizes[one] / min(scales[one], 2.0**58)) ** root for one in self.measures}

    def least_shares(self) -> dict[Measure, float]:
        """Return the shares of least cost that meet all wishes."""
        if not self.measures:
            return {}
        shares, names = self.near_shares(), list(self.wished)
        times = _least(lambda times: self.meets({one: share * times for one, share in shares.items()}, names), 1.0)
        shares = {one: share * times for one, share in shares.items()}
        hubs = [one for one in self.measures if any(self.wished[name].rows for name in self.needing[one])]
        hubs = [one for one in hubs if one.kind not in ("sum", "matches")]
        others = [one for one in self.measures if one not in hubs]
        ways = [self._lowered(shares, order) for order in ([*hubs, *others], [*others, *hubs])]
        best = self._exchanged(min(ways, key=self.cost), hubs)
        return self._lowered(best, self.measures, exactly=True)

    def _lowered(
        self, shares: Mapping[Measure, float], order: Sequence[Measure], *, exactly: bool = False
    ) -> dict[Measure, float]:
        """Return shares that are set one after the other to the least that the wishes allow."""
        lowered = dict(shares)
        for measure in order:
            names = self.needing[measure]

            def suffices(share: float, measure: Measure = measure, names: list[str] = names) -> bool:
                return self.meets({**lowered, measure: share}, names)

            near = lowered[measure]
            least = _least(suffices, near, 2.0**-53 if exactly else 2.0**-20)
            lowered[measure] = least if not exactly or suffices(least) else near
            if math.isinf(least):
                break  # whatever the others get, it is not enough
        return lowered

    def _exchanged(self, shares: dict[Measure, float], hubs: Sequence[Measure]) -> dict[Measure, float]:
        """Return shares of which those of counts are moved, as long as the others can be lowered by more for it."""
        best = shares
        for _ in range(_EXCHANGES):
            before = self.cost(best)
            for hub, factor in product(hubs, _FACTORS):
                beside = {one for name in self.needing[hub] for one in self._used_by(name)} - {hub}
                moved = self._lowered(
                    {**best, hub: best[hub] * factor}, [one for one in self.measures if one in beside]
                )
                if self.cost(moved) < self.cost(best) and self.meets(moved, list(self.wished)):
                    best = moved
            if self.cost(best) > before * (1 - 2.0**-12):
                break
        return best

    def _used_by(self, name: str) -> list[Measure]:
        """Return what decides a query's error and is paid for."""
        return [one for one in self.measures if name in self.needing[one]]

    def _least_scales(self) -> dict[Measure, float]:
        """Return the scales of least cost, as if noise were not rounded; see the module."""
        power, limits = self.power, self._limits()
        costs = {measure: self.sizes[measure] ** power for measure in self.measures}
        multipliers = dict.fromkeys(limits, 1.0)
        scales: dict[Measure, float] = {}
        for turn in range(_ROUNDS):
            slopes = dict.fromkeys(self.measures, 0.0)
            for name, (terms, _) in limits.items():
                for measure, factor in terms.items():
                    slopes[measure] += multipliers[name] * factor
            scales = {one: (power * costs[one] / max(slopes[one], 1e-300)) ** (1 / (power + 1)) for one in costs}
            largest = 0.0
            for name, (terms, most) in limits.items():
                ratio = math.fsum(factor * scales[measure] for measure, factor in terms.items()) / most
                multipliers[name] = max(multipliers[name] * ratio ** (power + 1 if turn == 0 else 1.0), 1e-280)
                largest = max(largest, ratio)
            if turn and largest < 1 + 1e-9 and len(limits) == 1:
                break
        return scales

    def _limits(self) -> dict[str, tuple[dict[Measure, float], float]]:
        """Return for every wish the factors of the scales of which it limits the sum, and that limit."""
        found = {}
        for name, wish in self.wished.items():
            terms: dict[Measure, float] = {}
            for place, figure in enumerate(self.layout.figures[name]):
                miss = MISS if wish.rows is None else MISS / 2
                worth = float(figure.asked.step)
                if wish.rows is not None and place == 1:
                    worth *= half_range(wish.query) + wish.error
                for measure in figure.measures:
                    z = _quantile(self.mechanism, miss / len(figure.measures)) * worth
                    paying, factor = self._who_pays(measure)
                    terms[paying] = terms.get(paying, 0.0) + z * factor
            found[name] = terms, wish.error * (1 if wish.rows is None else wish.rows)
        return found

    def _who_pays(self, measure: Measure) -> tuple[Measure, float]:
        """Return the measure itself; for a free one the first that pays for it, and how many of its scales it has."""
        if measure.kind != "missing":
            return measure, 1.0
        paying = next(iter(next(block for block in self.layout.blocks if block.missing == measure).uses))
        return paying, self.sizes[measure] / self.sizes[paying]

    def units(self, by_measure: Mapping[Measure, float], *, tests: bool) -> list[int] | None:
        """Return shares in units of the budget, rounded up; None if they are beyond any budget."""
        kind, shares = self.asked.budget.kind, [by_measure[measure] for measure in self.measures]
        if self.mechanism == "laplace" and kind == "epsilon":
            return [_ceiling(share) for share in shares]
        if self.mechanism == "laplace":
            return [self._rho_of_laplace(measure, share) for measure, share in zip(self.measures, shares, strict=True)]
        if kind == "rho":
            return [_ceiling(share / 2) for share in shares]
        if not shares:
            return []
        total = self._gaussian_units(math.fsum(shares), tests=tests)
        return None if total is None else portions(total, [Fraction(share) for share in shares])

    def _rho_of_laplace(self, measure: Measure, share: float) -> int:
        size = measure.sensitivity(self.asked.unit).l1
        return zcdp.cost(laplace_of_scale(size / share, size).event)[0]

    def _gaussian_units(self, share: float, *, tests: bool) -> int | None:
        """Return the least epsilon of Gaussian noise on all measures; its part of delta may depend on it."""
        ratio, delta = Fraction(1 / math.sqrt(share)), self.asked.budget.delta_units
        of_noise = delta if not self.asked.selects else delta // 2
        units = analytic_gaussian_epsilon(ratio, Fraction(of_noise, UNITS_PER_ONE))
        for _ in range(8 if tests else 0):
            if units is None:
                break
            of_noise = divided_delta(units, delta, self.asked.unit.max_groups)[0]
            units = analytic_gaussian_epsilon(ratio, Fraction(of_noise, UNITS_PER_ONE))
        return units


def _quantile(mechanism: Mechanism, miss: float) -> float:
    return math.log(1 / miss) if mechanism == "laplace" else NormalDist().inv_cdf(1 - miss / 2)


def _ceiling(share: float) -> int:
    return max(math.ceil(Fraction(share) * UNITS_PER_ONE), 1)


def _least(suffices: Callable[[float], bool], near: float, part: float = 2.0**-53) -> float:
    """Return the least float that suffices, to a part of itself; infinity if none does near 2**200 times this one."""
    step, high = 1.25, near
    while not suffices(high):
        high *= step
        step = min(step**2, 2.0**16)
        if high > near * 2.0**200:
            return math.inf
    step, low = 1.25, high / 1.25
    while suffices(low) and low > 0:
        high, low = low, low / step
        step = min(step**2, 2.0**16)
    while high - low > high * part and (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
