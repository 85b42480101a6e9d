"""What boosting costs: the margin of its verdicts and the noise of its answers, from a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Event, ExponentialMechanism, Repeated
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.noise.integer_noise import NoiseKind
from dpfast.synthesis.fitted.answer_noise import AnswerNoise, noise_of_epsilon, noise_of_rho
from dpfast.synthesis.fitted.boosting_bounds import least_margin, sample_epsilon

__all__ = ["BoostingPrivacy", "Size", "boosting_privacy", "boosting_privacy_of_book"]

#: Scores are sums of so many margins; both stay exact in an int64 with room to spare.
_LARGEST_SCORE = 2**60


@dataclass(frozen=True)
class Size:
    """What is public of a boosting before it is calibrated.

    Attributes
    ----------
    rounds, samples
        T, and k queries a round.
    step
        alpha.
    sensitivity
        By how many steps one answer changes at most.
    total
        By how many steps the number of records changes where it is measured, else 0.

    """

    rounds: int
    samples: int
    step: float
    sensitivity: int
    total: int

    def answer_sensitivity(self, rounds: int) -> Sensitivity:
        """Return what neighbours do to all answers that are measured in so many rounds, and to the total."""
        measured = rounds * self.samples
        change = Sensitivity.of_answers(measured, self.sensitivity, measured * self.sensitivity**2)
        return change.and_total(self.total) if self.total else change


@dataclass(frozen=True)
class BoostingPrivacy:
    """A calibrated boosting.

    Attributes
    ----------
    margin
        mu, in steps: a whole number.
    noise
        What every measured answer gets.
    sample_epsilons
        The epsilon of one sample of rounds 2, 3, ..., T.
    events
        All that is drawn.

    """

    margin: int
    noise: AnswerNoise
    sample_epsilons: tuple[float, ...]
    events: tuple[Event, ...]


def _epsilons(size: Size, margin: int) -> tuple[float, ...]:
    """Return what a sample costs in rounds 2 to T: 4 alpha (t - 1) rho / mu, as t - 1 verdicts are known then."""
    return tuple(sample_epsilon(size.step, known, size.sensitivity, margin) for known in range(1, size.rounds))


def _finished(size: Size, margin: float, noise: AnswerNoise) -> BoostingPrivacy:
    if not margin * size.rounds < _LARGEST_SCORE:
        allowed = "larger: the verdicts' margin would be beyond what an int64 can hold"
        raise ParameterError("epsilon", Words(f"so small that the margin is {margin:.3g} steps"), allowed, "raise it")
    whole = max(math.ceil(margin), 1)
    epsilons = _epsilons(size, whole)
    if epsilons and epsilons[0] < 1e-18:
        raise ParameterError("epsilon", Words(f"so small that a sample has {epsilons[0]:.3g}"), "larger", "raise it")
    samples = tuple(Repeated(ExponentialMechanism(epsilon), size.samples) for epsilon in epsilons)
    return BoostingPrivacy(whole, noise, epsilons, (*samples, noise.event))


def boosting_privacy(size: Size, budget: Budget, mechanism: NoiseKind, share: Fraction) -> BoostingPrivacy:
    """Return a calibration that spends ``share`` of a budget on samples and the rest on noise.

    Guarantee
        The events cost no more than the budget: a rho by `zcdp.cost`, which is what a budget of
        (epsilon, delta) is taken for if delta is above 0 (Canonne, Kamath, Steinke 2020); an epsilon alone by their
        sum.
        The sample of round t is drawn by the exponential mechanism with bounded range e_t = 4 alpha (t - 1) rho / mu,
        e_t**2 / 8-zCDP; so mu**2 = 2 alpha**2 rho**2 k sum (t - 1)**2 / (share of the budget), where the text has T in
        place of t - 1 and advanced composition.
    """
    rounds, samples = size.rounds, size.samples
    pure = budget.kind == "epsilon" and not budget.delta_units
    unit = 4 * size.step * size.sensitivity
    if pure:
        units = budget.units
        first = math.floor(units * share)
        margin = unit * samples * (rounds * (rounds - 1) // 2) * UNITS_PER_ONE / first if first else math.inf
        noise = noise_of_epsilon(size.answer_sensitivity(rounds), mechanism, units - first, 0)
    else:
        rho = budget.kind == "rho"
        units = budget.units if rho else zcdp.largest_rho_of_units(budget.units, budget.delta_units)
        first = math.floor(units * share)
        squares = rounds * (rounds - 1) * (2 * rounds - 1) // 6
        margin = unit * math.sqrt(samples * squares * UNITS_PER_ONE / (8 * first)) if first else math.inf
        noise = noise_of_rho(size.answer_sensitivity(rounds), mechanism, units - first)
    accountant, step = (basic if pure else zcdp), 2.0**-30
    while True:
        privacy = _finished(size, margin, noise)
        samples_alone = privacy.events[:-1]
        if not samples_alone or accountant.cost(samples_alone)[0] <= first:
            return privacy
        # Rounding alone is made good at once; where costs are a few units each, or none will do, steps grow.
        margin = max(margin * (1 + step), privacy.margin + 1)
        step *= 2


def boosting_privacy_of_book(size: Size, budget: Budget, mechanism: NoiseKind, share: Fraction) -> BoostingPrivacy:
    """Return the text's calibration: equation 6.7 for samples, corollary 3.21 for the answers of each round.

    Guarantee
        (epsilon, delta) are the sums of the shares of samples and of all rounds (Dwork, Roth 2014, theorem 6.1). The
        noise's constant is the corollary's, not the one that theorem 6.6 states, whose noise would cost more. Where the
        number of records is measured too, it is one more answer of every round.
    """
    if budget.kind == "rho" or not budget.delta_units or budget.units >= UNITS_PER_ONE:
        allowed = '"book" below epsilon 1, with a delta'
        raise ParameterError("calibration", Words('"book"'), allowed, 'take "tight"')
    first = [math.floor(units * share) for units in (budget.units, budget.delta_units)]
    each = [
        (units - some) // size.rounds for units, some in zip((budget.units, budget.delta_units), first, strict=True)
    ]
    if min(*first, *each) <= 0:
        raise ParameterError("delta", budget.delta_units / UNITS_PER_ONE, "larger, as all rounds share it", "raise it")
    noise = noise_of_epsilon(size.answer_sensitivity(1), mechanism, each[0], each[1], "book")
    epsilon, delta = (units / UNITS_PER_ONE * (1 - 2.0**-40) for units in first)
    margin = least_margin(size.step, size.rounds, size.samples, epsilon, delta, size.sensitivity)
    privacy = _finished(size, margin, noise)
    return BoostingPrivacy(
        privacy.margin, noise, privacy.sample_epsilons, (*privacy.events[:-1], Repeated(noise.event, size.rounds))
    )
