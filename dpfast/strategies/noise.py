"""A budget and a sensitivity -> the noise of a strategy's measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

from dpfast.accounting import zcdp
from dpfast.accounting.amounts import UNITS_PER_ONE, budget_units, to_decimal
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Laplace
from dpfast.errors import ParameterError, Words
from dpfast.mechanisms.calibration import analytic_gaussian_scale, laplace_scale, round_up, round_up_root
from dpfast.mechanisms.intervals import grid_of_integers
from dpfast.mechanisms.lattice import LARGEST_INTEGER_SCALE
from dpfast.queries import Sensitivity

__all__ = ["Budget", "MeasurementNoise", "NoiseTooWideError", "cheapest_noise", "noise_of"]


class NoiseTooWideError(ParameterError):
    """The scale would be above 2**60."""


@dataclass(frozen=True)
class Budget:
    """Epsilon, or epsilon and delta, or rho; in units of 1e-18, rounded down."""

    epsilon: int | None
    delta: int
    rho: int | None

    @staticmethod
    def read(epsilon: object, delta: object, rho: object) -> Budget:
        """Return a budget from what a user wrote.

        Raises
        ------
        ParameterError
            Not exactly one of epsilon and rho is given, or one is out of range, or delta stands beside rho.

        """
        if (epsilon is None) == (rho is None):
            given = Words("given beside rho" if rho is not None else "None, and rho as well")
            raise ParameterError("epsilon", given, "the budget, if rho is not", "write epsilon=... or rho=...")
        if rho is not None:
            if delta is not None:
                mend = "leave delta out: rho converts to (epsilon, delta) for every delta"
                raise ParameterError("delta", delta, "None beside rho", mend)
            return Budget(None, 0, budget_units(rho, "epsilon", "rho"))
        return Budget(budget_units(epsilon, "epsilon"), 0 if delta is None else budget_units(delta, "delta"), None)

    @property
    def mechanisms(self) -> tuple[Literal["laplace", "gaussian"], ...]:
        """The kinds of noise that this budget allows; with rho Gaussian noise is always the better one."""
        if self.rho is not None:
            return ("gaussian",)
        return ("laplace", "gaussian") if self.delta else ("laplace",)

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho = {to_decimal(self.rho)}"
        assert self.epsilon is not None
        return f"epsilon = {to_decimal(self.epsilon)}" + (f", delta = {to_decimal(self.delta)}" if self.delta else "")


@dataclass(frozen=True)
class MeasurementNoise:
    """Noise on every number that a strategy measures.

    Attributes
    ----------
    mechanism, scale
        ``"laplace"`` with scale b, or ``"gaussian"`` with standard deviation sigma.
    event
        What is done to the data, for an accountant.

    """

    mechanism: Literal["laplace", "gaussian"]
    scale: float
    event: DiscreteLaplace | Laplace | Gaussian

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, its rounding to whole numbers included."""
        grid = grid_of_integers(self.scale)
        if self.mechanism == "gaussian":
            return math.sqrt(self.scale**2 + grid**2 / 12)
        if grid > 1:
            return math.sqrt(2 * self.scale**2 + grid**2 / 12)
        # 2q / (1 - q)**2 with q = exp(-1 / b).
        return math.sqrt(0.5) / math.sinh(0.5 / self.scale) if self.scale > 1 / 1400 else 0.0

    def reach(self, miss: float) -> float:
        """Return how many standard deviations a weighted sum of such noises strays at most, but with this probability.

        Notes
        -----
        Gaussian noise: the normal quantile z. A sum of Laplace variables X is symmetric with a log-concave density
        (Prekopa), so log P(abs(X) > t) is concave in t and 0 at 0; if it is log p at h, it is at least -a t before,
        a = log(1 / p) / h, and s**2 = 2 * integral of t P(abs(X) > t) >= 2 / a**2 * (1 - p (1 + log(1 / p))): h is at
        most s log(1 / p) / sqrt(2 - 2 p (1 + log(1 / p))), 2.37 s for 0.05.

        Noise is rounded to whole numbers (or a grid g), which matters where it is about as small as these: a single
        Gaussian one of scale sigma strays beyond z sigma + g / 2 as rarely as unrounded noise beyond z sigma, and a
        Laplace one, of which P(abs(K) >= k) = exp(-k / b) 2 / (1 + q) <= exp(1 / 2 b - k / b), beyond b log(1 / p) +
        1 / 2 with probability p at most. Half a step more, and at least the latter, is therefore right for single
        measurements. A sum takes more values, and strays less; that this much is enough for it was computed for sums
        of up to 8 terms of scales from 0.08 to 8 (a test does it again for some), not proved.

        """
        deviation, half_a_step = self.deviation, grid_of_integers(self.scale) / 2
        if deviation == 0.0:
            return 0.0
        if self.mechanism == "gaussian":
            return -NormalDist().inv_cdf(miss / 2) + half_a_step / deviation
        log = math.log(1 / miss)
        # 1 + log / 3 + log**2 / 24 + ..., where the difference would vanish in rounding.
        sums = 1 + log / 2.9 if log < 1e-3 else log / math.sqrt(2 - 2 * miss * (1 + log))
        return max(sums, (self.scale * log + half_a_step) / deviation)


def noise_of(sensitivity: Sensitivity, budget: Budget, mechanism: Literal["laplace", "gaussian"]) -> MeasurementNoise:
    """Return the least noise of a kind that a budget allows.

    Guarantee
        The scale b is at least l1 / epsilon in rationals; sigma is the analytic Gaussian mechanism's, proved in balls,
        or costs at most rho by `dpfast.accounting.zcdp.cost`; of a sensitivity rounded up (Soundness rules 10, 14).

    Raises
    ------
    NoiseTooWideError
        The scale would be above 2**60.

    """
    event: DiscreteLaplace | Laplace | Gaussian
    if mechanism == "laplace":
        assert budget.epsilon is not None
        share = Fraction(budget.epsilon, UNITS_PER_ONE)
        # Rounded up first, so that the event of noise too wide for the ones is as private as the exact one.
        size = Fraction(round_up(Fraction(sensitivity.l1)))
        scale = laplace_scale(size, share)
        _check_scale(scale, budget)
        discrete = grid_of_integers(scale) == 1
        event = DiscreteLaplace(scale, sensitivity.l1) if discrete else Laplace(scale, float(size))
        return MeasurementNoise(mechanism, scale, event)
    spread = round_up_root(Fraction(sensitivity.l2_squared))
    if budget.rho is None:
        assert budget.epsilon is not None
        share = Fraction(budget.epsilon, UNITS_PER_ONE)
        scale = analytic_gaussian_scale(Fraction(spread), share, Fraction(budget.delta, UNITS_PER_ONE))
    else:
        scale = round_up_root(Fraction(spread) ** 2 / (2 * Fraction(budget.rho, UNITS_PER_ONE)))
        while zcdp.cost(Gaussian(scale, spread))[0] > budget.rho:
            scale = math.nextafter(scale, math.inf)
    _check_scale(scale, budget)
    return MeasurementNoise(mechanism, scale, Gaussian(scale, spread))


def cheapest_noise(sensitivity: Sensitivity, budget: Budget) -> MeasurementNoise:
    """Return the noise of the least standard deviation that a budget allows."""
    kinds = [noise_of(sensitivity, budget, mechanism) for mechanism in budget.mechanisms]
    return min(kinds, key=lambda noise: noise.deviation)


def _check_scale(scale: float, budget: Budget) -> None:
    if not scale <= LARGEST_INTEGER_SCALE:
        argument = "rho" if budget.rho is not None else "epsilon"
        given: Any = to_decimal(budget.rho if budget.rho is not None else budget.epsilon or 0)
        allowed = "larger: the noise would drown every value that an int64 can hold"
        raise NoiseTooWideError(argument, given, allowed, f"raise {argument}, or lower max_groups")
