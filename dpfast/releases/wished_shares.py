"""The shares of least cost with which noise is within wished errors, in one way to measure with one kind of noise.

First about, by Lagrange (`dpfast.releases.wished_planning`). Then by trial: shares are lowered one after the other as
far as the errors that plans show allow, and what counts of rows get is moved as long as the whole becomes less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

from dpfast.accounting.accountants import zcdp
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.noise.calibration import analytic_gaussian_epsilon
from dpfast.mechanisms.noise.integer_noise import laplace_of_scale
from dpfast.mechanisms.noise.joint_widths import Noise
from dpfast.mechanisms.noise.lattice import LARGEST_INTEGER_SCALE
from dpfast.queries import Measure
from dpfast.releases.choosing_keys import divided_delta
from dpfast.releases.drafting import Asked
from dpfast.releases.measurements import Figure, Layout
from dpfast.releases.planned_queries import Mechanism
from dpfast.releases.splitting import portions
from dpfast.releases.wishes import MISS, Wish, half_range

__all__ = ["DRAWN", "SharesProblem"]

#: What is drawn by the exponential mechanism.
DRAWN = ("quantile", "minimum", "maximum", "mode")
_ROUNDS, _SETTLED = 400, 1e-7
_EXCHANGES, _STEPS = 4, (0.2, 0.03)
#: To which part of themselves shares are lowered: while they are exchanged, and in the end.
_ROUGHLY, _EXACTLY = 2.0**-14, 2.0**-53


@dataclass(frozen=True)
class _Drawn:
    """A noisy number that a query needs: which shares pay for it, how large its noise is at 1, and what it counts."""

    paying: tuple[int, ...]
    size: float
    worth: float


@dataclass(frozen=True)
class SharesProblem:
    """The shares of measures, and what they have to meet.

    A share is an epsilon of Laplace noise, also by rho; of Gaussian noise the square of sensitivity / sigma. Shares are
    in the order of ``measures``.
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
    def _sizes(self) -> list[float]:
        return [self._size(measure) for measure in self.measures]

    def _size(self, measure: Measure) -> float:
        return measure.sensitivity(self.asked.unit).of_noise(self.mechanism)[1]

    @cached_property
    def wished(self) -> dict[str, Wish]:
        """The wishes of queries that are answered from these measures."""
        return {name: wish for name, wish in self.wishes.items() if wish.query.kind not in DRAWN}

    @property
    def _power(self) -> int:
        """The p of the cost c / s**p."""
        return 1 if self.mechanism == "laplace" and self.asked.budget.kind == "epsilon" else 2

    @cached_property
    def _drawn(self) -> dict[str, list[list[_Drawn]]]:
        """What every query needs, figure by figure."""
        places = {measure: place for place, measure in enumerate(self.measures)}
        paying, sizes = {}, {}
        for block in self.layout.blocks:
            for measure in block.measures:
                own = block.uses if measure == block.missing else (measure,)
                # A free one has all shares of its block.
                paying[measure], sizes[measure] = tuple(places[one] for one in own), self._size(measure)

        def drawn(figure: Figure) -> list[_Drawn]:
            return [
                _Drawn(paying[one], sizes[one], float(one.step) if figure.other is None else 1.0)
                for one in figure.measures
            ]

        return {name: [drawn(figure) for figure in self.layout.figures[name]] for name in self.wished}

    @cached_property
    def _needing(self) -> list[list[str]]:
        """The names of the queries whose errors a share decides, by way of free measures too."""
        return [
            [
                name
                for name, figures in self._drawn.items()
                if any(place in one.paying for drawn in figures for one in drawn)
            ]
            for place in range(len(self.measures))
        ]

    def meets(self, shares: Sequence[float], names: Iterable[str] | None = None) -> bool:
        """Return whether these queries, or all, are within their wishes."""
        return all(self._is_met(name, shares) for name in (self.wished if names is None else names))

    def _is_met(self, name: str, shares: Sequence[float]) -> bool:
        """Return whether a query is within its wish, and no noise wider than any may be."""
        noises = []
        for drawn in self._drawn[name]:
            figure = []
            for one in drawn:
                share = math.fsum(shares[place] for place in one.paying)
                scale = one.size / (share if self.mechanism == "laplace" else math.sqrt(share))
                if scale > LARGEST_INTEGER_SCALE / 2:
                    return False
                figure.append(Noise(self.mechanism, scale, one.worth))
            noises.append(figure)
        return self.wished[name].is_met(noises)

    def cost(self, shares: Sequence[float]) -> float:
        """Return what shares cost, in proportion."""
        if self.mechanism == "laplace" and self.asked.budget.kind == "rho":
            return math.fsum(share * math.tanh(share / 2) for share in shares)
        return math.fsum(shares)

    def near_shares(self) -> list[float]:
        """Return about the shares of least cost."""
        root = 1.0 if self.mechanism == "laplace" else 2.0
        scales = self._least_scales()
        return [(size / min(scale, 2.0**58)) ** root for size, scale in zip(self._sizes, scales, strict=True)]

    @cached_property
    def _met_shares(self) -> list[float]:
        """About the shares of least cost, raised or lowered together as far as all wishes need."""
        shares = self.near_shares()
        times = _least(lambda times: self.meets([share * times for share in shares]), 1.0, _ROUGHLY)
        return [share * times for share in shares]

    def met_cost(self, *, tests: bool) -> float:
        """Return what the wishes cost at shares that were not moved yet, in units of the budget."""
        return self._cost_of_units(self._met_shares, tests=tests)

    def rough_cost(self, *, tests: bool) -> float:
        """Return about what the wishes cost at least, in units of the budget."""
        return self._cost_of_units(self.rough_shares, tests=tests)

    def _cost_of_units(self, shares: Sequence[float], *, tests: bool) -> float:
        """Return what shares cost in units of the budget: infinity where it is beyond any."""
        units = self.units(shares, tests=tests) if all(map(math.isfinite, shares)) else None
        return math.inf if units is None else sum(units)

    @cached_property
    def rough_shares(self) -> list[float]:
        """The shares of least cost that meet all wishes, but for a part of about 2**-14."""
        if not self.measures:
            return []
        shares, places = self._met_shares, list(range(len(self.measures)))
        hubs = [place for place in places if any(self.wished[name].rows for name in self._needing[place])]
        hubs = [place for place in hubs if self.measures[place].kind not in ("sum", "matches")]
        others = [place for place in places if place not in hubs]
        ways = [self._lowered(shares, order, _ROUGHLY) for order in ([*hubs, *others], [*others, *hubs])]
        return self._exchanged(min(ways, key=self.cost), hubs)

    def least_shares(self) -> list[float]:
        """Return the shares of least cost that meet all wishes."""
        return self._lowered(self.rough_shares, range(len(self.rough_shares)), _EXACTLY)

    def _lowered(self, shares: Sequence[float], order: Sequence[int], part: float) -> list[float]:
        """Return shares that are set one after the other to the least that the wishes allow."""
        lowered = list(shares)
        for place in order:
            names = self._needing[place]

            def suffices(share: float, place: int = place, names: list[str] = names) -> bool:
                return self.meets([*lowered[:place], share, *lowered[place + 1 :]], names)

            near = lowered[place]
            least = _least(suffices, near, part)
            lowered[place] = least if part > _EXACTLY or suffices(least) else near
            if math.isinf(least):
                break  # whatever the others get, it is not enough
        return lowered

    def _exchanged(self, shares: list[float], hubs: Sequence[int]) -> list[float]:
        """Return shares of which those of counts are moved, as long as the others can be lowered by more for it."""
        best = shares
        for _ in range(_EXCHANGES):
            before = self.cost(best)
            for hub in hubs:
                best = self._moved(best, hub)
            if self.cost(best) > before * (1 - 2.0**-12):
                break
        return best

    def _moved(self, shares: list[float], hub: int) -> list[float]:
        """Return shares of least cost along one of them, as those beside it follow: in steps, then by a parabola.

        The cost has one least value along it, next to which it is nearly a parabola in the share's logarithm.
        """
        names = self._needing[hub]
        beside = [place for place, some in enumerate(self._needing) if place != hub and not set(some).isdisjoint(names)]
        tried: dict[float, tuple[float, list[float]]] = {0.0: (self.cost(shares), shares)}

        def cost_at(far: float) -> float:
            if far not in tried:
                moved = [share * math.exp(far) if place == hub else share for place, share in enumerate(shares)]
                moved = self._lowered(moved, beside, _ROUGHLY)
                cost = self.cost(moved)
                tried[far] = cost if math.isfinite(cost) and self.meets(moved, names) else math.inf, moved
            return tried[far][0]

        at = 0.0
        for step in _STEPS:
            while cost_at(at - step) < cost_at(at) or cost_at(at + step) < cost_at(at):
                at += step if cost_at(at + step) < cost_at(at - step) else -step
            left, middle, right = (cost_at(at + one) for one in (-step, 0.0, step))
            bend = left - 2 * middle + right
            if math.isfinite(bend) and bend > 0:
                vertex = at + step * (left - right) / (2 * bend)
                at = vertex if cost_at(vertex) < middle else at
        return min(tried.values(), key=lambda one: one[0])[1]

    def _least_scales(self) -> list[float]:
        """Return the scales of least cost, about: as if noise were not rounded, and Gaussian where it adds up."""
        power, limits = self._power, self._limits()
        costs = [size**power for size in self._sizes]
        multipliers, scales = [1.0] * len(limits), [1.0] * len(costs)
        for turn in range(_ROUNDS):
            slopes, ratios = [0.0] * len(costs), []
            for (terms, most), multiplier in zip(limits, multipliers, strict=True):
                reach = math.hypot(*(factor * scales[place] for place, factor in terms.items()))
                ratios.append(reach / most)
                for place, factor in terms.items():
                    slopes[place] += multiplier * factor * (factor * scales[place] / reach)
            if turn:
                multipliers = [
                    max(multiplier * ratio ** (power + 1 if turn == 1 else 1.0), 1e-280)
                    for multiplier, ratio in zip(multipliers, ratios, strict=True)
                ]
            before = scales
            scales = [
                (power * cost / max(slope, 1e-300)) ** (1 / (power + 1))
                for cost, slope in zip(costs, slopes, strict=True)
            ]
            moved = max((abs(new / old - 1) for new, old in zip(scales, before, strict=True)), default=0.0)
            if turn > 1 and moved < _SETTLED:
                break
        return scales

    def _limits(self) -> list[tuple[dict[int, float], float]]:
        """Return for every wish the factors of the scales of which it limits the norm, and that limit."""
        z = -math.log(MISS) if self.mechanism == "laplace" else NormalDist().inv_cdf(1 - MISS / 2)
        found = []
        for name, wish in self.wished.items():
            terms: dict[int, float] = {}
            for place, drawn in enumerate(self._drawn[name]):
                counts = half_range(wish.query) if wish.rows is not None and place == 1 else 1.0
                for one in drawn:
                    # A free one has so many scales of the first that pays for it.
                    payer = one.paying[0]
                    factor = z * one.worth * counts * one.size / self._sizes[payer]
                    terms[payer] = math.hypot(terms.get(payer, 0.0), factor)
            found.append((terms, wish.error * (1 if wish.rows is None else wish.rows)))
        return found

    def units(self, shares: Sequence[float], *, tests: bool) -> list[int] | None:
        """Return shares in units of the budget, rounded up; None if they are beyond any budget."""
        kind = self.asked.budget.kind
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


def _ceiling(share: float) -> int:
    return max(math.ceil(Fraction(share) * UNITS_PER_ONE), 1)


def _least(suffices: Callable[[float], bool], near: float, part: float) -> float:
    """Return the least float that suffices, to a part of itself; infinity if none does near 2**200 times this one."""
    first = 1.0 + max(64 * part, _ROUGHLY)
    step, high = first, near
    while not suffices(high):
        high *= step
        step = min(step**2, 2.0**16)
        if high > near * 2.0**200:
            return math.inf
    step = first
    low = high / step
    while suffices(low) and low > 0:
        step = min(step**2, 2.0**16)
        high, low = low, low / step
    while high - low > high * part and (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
