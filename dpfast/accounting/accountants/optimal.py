"""Optimal composition of equal events: the exact privacy profile of k randomized responses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from fractions import Fraction

import numpy as np
from flint import arb

from dpfast.accounting.accountants.accountant import Events, nearly, smallest_epsilon
from dpfast.accounting.accountants.basic import cost
from dpfast.accounting.accountants.capped import Capped
from dpfast.accounting.events import runs
from dpfast.accounting.work import spend
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import ball, exact_lower, float_above, round_up, working_precision
from dpfast.exact.elementary import SLACK, Floats, one_minus_exp

__all__ = ["Optimal"]


# Terms are added until the rest is below this share of the largest one, and bounded from there on.
_NEGLIGIBLE = 2.0**-90
_SHORTEST_BLOCK = 256
# The terms that matter are about ten times the square root of the number of events: seconds, here.
_MOST_EVENTS = 2**36


@dataclass(frozen=True, repr=False)
class Optimal(Capped):
    """The best that holds for k events of one (epsilon, delta), whatever else is known of them.

    Guarantee
        delta = 1 - (1 - delta_1)**k (1 - d), where d = sum over l of P(l) (1 - exp(epsilon - (2l - k) e))+ and
        P is binomial with k trials of probability 1 / (1 + exp(-e)): the events post-process k randomized
        responses and k coins of probability delta_1, and these attain it (Kairouz, Oh, Viswanath 2015, theorem
        3.3). The answers may steer later questions; the parameters are fixed in advance. All terms are
        positive, the n-th from the largest is off by less than 8n 2**-53, and what is left out
        is below a geometric series; the sum is raised by both.

    Raises
    ------
    ParameterError
        The events have several epsilons or deltas, or an event has no epsilon, or there are more than 2**36.

    Attributes
    ----------
    epsilon_units, delta_units, count
        Each event's cost in units of 1e-18, and how many events there are.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.accounting.optimal(dpf.accounting.events.Pure(0.1).times(100)).epsilon(delta=1e-6), 7)
    4.7745676

    """

    events: InitVar[Events]
    epsilon_units: int = field(init=False)
    delta_units: int = field(init=False)
    count: int = field(init=False)

    def __post_init__(self, events: Events) -> None:
        counts = runs(events)
        pairs = {cost(event) for event in counts}
        if len(pairs) > 1:
            first, other, *_ = counts
            raise ParameterError(
                "events",
                (type(first).__name__, type(other).__name__, len(pairs)),
                "of one epsilon and one delta for optimal composition",
                "use Advanced, ZCDP or RDP for several",
            )
        if sum(counts.values()) > _MOST_EVENTS:
            raise ParameterError(
                "events", sum(counts.values()), "at most 2**36 for optimal composition", "use Advanced"
            )
        epsilon_units, delta_units = pairs.pop() if pairs else (0, 0)
        self._set(epsilon_units=epsilon_units, delta_units=delta_units, count=sum(counts.values()))
        self._keep_sums(event.times(count) for event, count in counts.items())

    @property
    def _told(self) -> dict[str, float]:
        return {"epsilon": nearly(self.epsilon_units), "delta": nearly(self.delta_units), "count": self.count}

    @property
    def _each(self) -> Fraction:
        return Fraction(self.epsilon_units, UNITS_PER_ONE)

    def _epsilon(self, target: Fraction) -> float:
        """Return the least epsilon, rounded up; infinity where delta is below that of k coins."""
        total = round_up(self.count * self._each)
        if self._delta(Fraction(0)) <= target:
            return 0.0
        slack = self._slack(target)
        if slack is None:
            return math.inf
        guess = min(total, max(math.sqrt(self.count) * float(self._each), 1e-300))
        return min(total, smallest_epsilon(lambda epsilon: self._pure_delta(Fraction(epsilon)), slack, guess))

    def _delta(self, target: Fraction) -> float:
        """Return the least delta, rounded up."""
        pure = self._pure_delta(target)
        if self.delta_units == 0:
            return pure
        with working_precision():
            return min(1.0, float_above(1 - self._kept() * (1 - ball(pure))))

    def _kept(self) -> arb:
        """Return (1 - delta_1)**k."""
        return (self.count * (-ball(Fraction(self.delta_units, UNITS_PER_ONE))).log1p()).exp()

    def _slack(self, target: Fraction) -> Fraction | None:
        """Return a d with 1 - (1 - delta_1)**k (1 - d) <= target, next to the largest, or None."""
        if self.delta_units == 0:
            return target
        with working_precision():
            slack = exact_lower(1 - (1 - ball(target)) / self._kept())
        # At k delta_1 there is one: (1 - delta_1)**k >= 1 - k delta_1.
        reached = target * UNITS_PER_ONE >= self.count * self.delta_units
        return max(slack, Fraction(0)) if slack >= 0 or reached else None

    def _pure_delta(self, target: Fraction) -> float:
        """Return d: the privacy profile of k randomized responses at ``target``, rounded up."""
        k, each = self.count, self._each
        if target >= k * each:
            return 0.0
        # The least l whose loss (2l - k) e is above the target, and by how much it is.
        first = math.floor((target / each + k) / 2) + 1
        gap = round_up((2 * first - k) * each - target)
        step = round_up(2 * each)
        with working_precision():
            odds = ball(each).exp()
            up, down = float_above(odds), float_above(1 / odds)
            # Terms rise to the mode and fall from there on, so that they are largest next to this one.
            most = max(first, min(k, math.floor((k + 1) / (1 + down))))
            largest = float_above(_probability(k, most, ball(each)))
        terms, rest = _falling(lambda n: (k - most - n) / (most + n + 1) * up, k - most)
        total = float(terms @ one_minus_exp(gap + (np.arange(float(len(terms))) + (most - first)) * step)) + rest
        longest = len(terms)
        if most > first:
            terms, rest = _falling(lambda n: (most - n) / (k - most + n + 1) * down, most - first)
            total += float(terms[1:] @ one_minus_exp(gap + (most - first - np.arange(1.0, len(terms))) * step)) + rest
            longest = max(longest, len(terms))
        raised = total * largest * (1.0 + 2.0 * SLACK + longest * 2.0**-50)
        return min(1.0, math.nextafter(raised, math.inf))


def _probability(k: int, successes: int, each: arb) -> arb:
    """Return the binomial probability of a number of successes at odds exp(each)."""
    ways = arb(k + 1).lgamma() - arb(successes + 1).lgamma() - arb(k - successes + 1).lgamma()
    return (ways - (k - successes) * each - k * (-each).exp().log1p()).exp()


def _falling(ratio: Callable[[Floats], Floats], count: int) -> tuple[Floats, float]:
    """Return products of falling ratios, at most ``count`` after the first, which is 1, and a bound on the others.

    Once a ratio r is below 1, the products after it sum to less than the last one times r / (1 - r).
    """
    parts: list[Floats] = [np.ones(1)]
    last, done = 1.0, 0
    while done < count:
        block = min(count - done, max(_SHORTEST_BLOCK, done))
        spend(float(block))
        ratios = ratio(np.arange(done, done + block, dtype=np.float64))
        products: Floats = np.multiply.accumulate(ratios)
        products *= last
        parts.append(products)
        done += block
        last, r = float(parts[-1][-1]), float(ratios[-1]) * (1.0 + 2.0**-50)
        if r < 1.0 and last * r < _NEGLIGIBLE * (1.0 - r):
            return np.concatenate(parts), 2.0 * last * r / (1.0 - r) if done < count else 0.0
    return np.concatenate(parts), 0.0
