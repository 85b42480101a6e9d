"""Noise for many answers at once: calibrated to a budget, drawn exactly, charged as events."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.events import Event, Repeated
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Choice
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.noise.calibration import round_up_root
from dpfast.mechanisms.noise.integer_noise import (
    IntegerNoise,
    NoiseKind,
    gaussian_of_delta,
    gaussian_of_rho,
    gaussian_of_scale,
    laplace_of_epsilon,
    laplace_of_rho,
    laplace_of_scale,
)

__all__ = ["CALIBRATION", "AnswerNoise", "Calibration", "noise_of_epsilon", "noise_of_rho"]

CALIBRATION = Choice(("tight", "zcdp", "book"))
Calibration: TypeAlias = Annotated[Literal["tight", "zcdp", "book"], CALIBRATION]

_CLOSE = 1e-3


@dataclass(frozen=True)
class AnswerNoise:
    """Independent noise on every one of many integers.

    Attributes
    ----------
    each
        The noise: Laplace noise for one answer, Gaussian noise for all of them.
    event
        What is charged for all of them together.

    """

    each: IntegerNoise
    event: Event

    @property
    def scale(self) -> float:
        """The Laplace scale or the standard deviation, in the integers' unit."""
        return self.each.scale

    def largest(self, answers: int, beta: float) -> int:
        """Return a bound that the noises of so many answers all keep to with probability at least 1 - beta."""
        return self.each.half_width(beta / answers)


@lru_cache(maxsize=1024)
def noise_of_epsilon(
    change: Sensitivity, mechanism: NoiseKind, epsilon: int, delta: int, calibration: Calibration = "tight"
) -> AnswerNoise:
    """Return noise that makes answers (epsilon, delta)-private.

    Guarantee
        With m = change.answers answers that may differ, by D = change.largest each, and l2 = the Euclidean distance:

        - Gaussian, "tight": the analytic Gaussian mechanism's scale at l2 (Balle, Wang 2018, theorem 8); "zcdp":
          l2 / sqrt(2 rho) with the rho that (epsilon, delta) allows (Canonne, Kamath, Steinke 2020); "book":
          l2 sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon below 1 (Dwork, Roth 2014, theorem A.1).
        - Laplace, delta = 0: m D / epsilon. "tight": the least scale, within a thousandth, at which the privacy loss of
          m answers with this noise, composed exactly, stays within (epsilon, delta), by certified upper bounds
          (`dpfast.accounting.pld`). Given a pair of neighbours, answers that agree add no loss; so m copies of the
          mechanism at sensitivity D dominate. "zcdp": by rho. "book": D sqrt(8 m ln(1 / delta)) / epsilon, for epsilon
          below 1 (Dwork, Roth 2014, corollary 3.21).

    Parameters
    ----------
    change
        What neighbours do to the answers.
    mechanism
        "laplace" or "gaussian".
    epsilon, delta
        The budget, in units of 1e-18.
    calibration
        "tight", "zcdp" or "book".

    """
    CALIBRATION.read("calibration", calibration)
    budget, slack = Fraction(epsilon, UNITS_PER_ONE), Fraction(delta, UNITS_PER_ONE)
    if mechanism == "gaussian" and delta == 0:
        raise ParameterError("delta", 0, "above 0 for Gaussian noise", 'write delta=1e-6, or mechanism="laplace"')
    if calibration == "book" and not (budget < 1 and delta):
        given = Words(f"epsilon={float(budget):g}, delta={float(slack):g}")
        raise ParameterError(
            "calibration", Words(f'"book" at {given}'), '"book" below epsilon 1, with a delta', 'take "tight"'
        )
    if mechanism == "laplace" and delta == 0:
        # All answers are one vector of this sensitivity, and one answer's noise an event of its own.
        whole = laplace_of_epsilon(change.l1, epsilon)
        return _laplace(whole.scale, change)
    if calibration == "book":
        # Twice the next float up covers what the roots and logarithms lose.
        if mechanism == "gaussian":
            ratio = math.sqrt(2 * math.log(1.25 / float(slack))) / float(budget) * (1 + 2.0**-40)
            root = round_up_root(Fraction(change.l2_squared))
            return _all(gaussian_of_scale(ratio * root, change.l2_squared), change)
        scale = change.largest * math.sqrt(8 * change.answers * math.log(1 / float(slack))) / float(budget)
        return _laplace(scale * (1 + 2.0**-40), change)
    if calibration == "tight" and mechanism == "gaussian":
        return _all(gaussian_of_delta(change.l2_squared, epsilon, delta), change)
    simple = noise_of_rho(change, mechanism, zcdp.largest_rho_of_units(epsilon, delta))
    if calibration == "zcdp":
        return simple

    def loss(scale: float) -> float:
        return PLD(_laplace(scale, change).event).epsilon(slack)

    limit = float(budget)
    if Fraction(limit) > budget:
        limit = math.nextafter(limit, 0.0)
    return _laplace(_least_scale(loss, limit, simple.each.scale), change)


def _least_scale(loss: Callable[[float], float], budget: float, sufficient: float) -> float:
    """Return about the least scale whose loss is within a budget, given one that is: loss falls as the scale rises.

    Secants of log loss over log scale, which are nearly straight; only scales that were seen to be sufficient are
    returned.
    """
    low, best = sufficient / 2, sufficient
    low_loss, best_loss = loss(low), loss(best)
    while low_loss <= budget:
        low, best, low_loss, best_loss = low / 2, low, loss(low / 2), low_loss
    for _ in range(30):
        if best <= low * (1 + _CLOSE) or best_loss >= budget * (1 - _CLOSE):
            break
        slope = math.log(low_loss / best_loss) / math.log(best / low) if math.isfinite(low_loss) and best_loss else 0.0
        guess = best * (best_loss / (budget * (1 - _CLOSE / 4))) ** (1 / slope) if slope else math.sqrt(low * best)
        if not low < guess < best:
            guess = math.sqrt(low * best)
        if (found := loss(guess)) <= budget:
            best, best_loss = guess, found
        else:
            low, low_loss = guess, found
    return best


def noise_of_rho(change: Sensitivity, mechanism: NoiseKind, rho: int) -> AnswerNoise:
    """Return noise that makes answers rho-zCDP: `zcdp.cost` says so of the event that is charged.

    Parameters
    ----------
    change, mechanism
        As for `noise_of_epsilon`.
    rho
        The budget, in units of 1e-18.

    """
    if rho <= 0:
        raise ParameterError(
            "epsilon", Words("too small"), "larger, for noise by zero-concentrated privacy", "raise it"
        )

    if mechanism == "gaussian":
        return _all(gaussian_of_rho(change.l2_squared, rho), change)
    return _all(laplace_of_rho(change.largest, rho, answers=change.answers), change)


def _all(noise: IntegerNoise, change: Sensitivity) -> AnswerNoise:
    """Return noise on all answers: an event of its own for each, or one event of the vector if it is Gaussian."""
    event = noise.event if noise.mechanism == "gaussian" else Repeated(noise.event, change.answers)
    return AnswerNoise(noise, event)


def _laplace(scale: float, change: Sensitivity) -> AnswerNoise:
    return _all(laplace_of_scale(scale, change.largest), change)
