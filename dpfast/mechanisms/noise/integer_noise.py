"""Noise on whole numbers, calibrated to a budget: its scale, what it does, and the event that it is.

An event is a fact about the noise: the scale is the float that is drawn, the sensitivity is rounded up, and what the
event costs by exact arithmetic is never above the budget that it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.accountants import zcdp
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Laplace, Repeated, Single
from dpfast.columns import borrow
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, charge_units
from dpfast.mechanisms.noise.additive import Buffers
from dpfast.mechanisms.noise.calibration import analytic_gaussian_scale, laplace_scale, round_up, round_up_root
from dpfast.mechanisms.noise.gaussian import gaussian, gaussian_noise
from dpfast.mechanisms.noise.half_widths import grid_of_integers, half_width
from dpfast.mechanisms.noise.laplace import laplace, laplace_noise
from dpfast.mechanisms.noise.lattice import LARGEST_INTEGER_SCALE
from dpfast.randomness import RandomSource
from dpfast.showing import Shown

__all__ = [
    "IntegerNoise",
    "NoiseKind",
    "NoiseTooWideError",
    "declared_amounts",
    "gaussian_of_delta",
    "gaussian_of_rho",
    "gaussian_of_scale",
    "laplace_of_epsilon",
    "laplace_of_rho",
    "laplace_of_scale",
    "scale_within",
]

NoiseKind: TypeAlias = Literal["laplace", "gaussian"]

#: Gaussian noise planned by rho has an epsilon only beside a delta: the one at this delta stands in its charge.
_DECLARED_DELTA = 1e-6
_DROWNED = "larger: the noise would drown every value that an int64 can hold"
_MEND = "raise it, or lower what one privacy unit changes"


class NoiseTooWideError(ParameterError):
    """The noise would be wider than any that an int64 can hold."""


@dataclass(frozen=True)
class IntegerNoise(Shown):
    """Independent noise on every one of many whole numbers.

    Attributes
    ----------
    mechanism, scale
        ``"laplace"`` with scale b, or ``"gaussian"`` with standard deviation sigma.
    event
        What is done to the data, for an accountant, where all values together move by the sensitivity.

    """

    mechanism: NoiseKind
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

    @property
    def expected(self) -> float:
        """The mean of the noise's magnitude, before rounding."""
        return self.scale * (1.0 if self.mechanism == "laplace" else math.sqrt(2.0 / math.pi))

    def half_width(self, miss: float) -> int:
        """Return a number that one draw exceeds, in magnitude, with probability at most ``miss``."""
        return half_width(self.mechanism, self.scale, miss)

    def reach(self, miss: float) -> float:
        """Return a number of standard deviations: a weighted sum of such noises is within them of 0.

        This holds with probability at least 1 - ``miss``.

        Notes
        -----
        Gaussian noise: the normal quantile z. A sum of Laplace variables X is symmetric with a log-concave density
        (Prekopa), so log P(abs(X) > t) is concave in t and 0 at 0; if it is log p at h, it is at least -a t before,
        a = log(1 / p) / h, and s**2 = 2 * integral of t P(abs(X) > t) >= 2 / a**2 * (1 - p (1 + log(1 / p))): h is at
        most s log(1 / p) / sqrt(2 - 2 p (1 + log(1 / p))), 2.37 s for 0.05.

        Noise is rounded to whole numbers (or a grid g), which matters where it is about as small as these: a single
        Gaussian one of scale sigma exceeds z sigma + g / 2 no more often than unrounded noise exceeds z sigma. For a
        Laplace one, P(abs(K) >= k) = exp(-k / b) 2 / (1 + q) <= exp(1 / 2 b - k / b): it exceeds b log(1 / p) + 1 / 2
        with probability p at most. So half a step more, and at least the latter, is right for single measurements.
        For sums it is not proved that this is enough. It was computed for sums of up to 8 terms of scales from 0.08
        to 8 (a test does it again for some of them).

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

    def add(self, values: NDArray[np.int64], random: Any, threads: int | None = 1) -> NDArray[np.int64]:
        """Return whole numbers with fresh noise, exactly distributed; every call costs the event.

        ``random`` is of any type: the mechanism reads it.
        """
        draw = laplace if self.mechanism == "laplace" else gaussian
        noisy: NDArray[np.int64] = draw(values, self.scale, random=random, threads=threads)
        return noisy

    def add_again(
        self, values: NDArray[np.int64], source: RandomSource, threads: int | None, kept: list[Buffers]
    ) -> NDArray[np.int64]:
        """Return the same as `add`, with scratch memory that is kept for the next call."""
        draw = laplace_noise if self.mechanism == "laplace" else gaussian_noise
        return draw(borrow(values), self.scale, source, threads, kept=kept)


def laplace_of_scale(scale: float, l1: int) -> IntegerNoise:
    """Return Laplace noise of a scale, as the event that it is at a sensitivity."""
    return IntegerNoise("laplace", scale, _laplace_event(scale, l1))


def gaussian_of_scale(scale: float, l2_squared: int | Fraction) -> IntegerNoise:
    """Return Gaussian noise of a scale, as the event that it is at a sensitivity, rounded up."""
    return IntegerNoise("gaussian", scale, Gaussian(scale, round_up_root(Fraction(l2_squared))))


def _laplace_event(scale: float, l1: int) -> DiscreteLaplace | Laplace:
    """Return the event of Laplace noise on integers: that of continuous noise where the grid is wider than 1."""
    narrow = grid_of_integers(scale) == 1
    return DiscreteLaplace(scale, l1) if narrow else Laplace(scale, round_up(Fraction(l1)))


def laplace_of_epsilon(l1: int, epsilon: int, *, mend: str = _MEND) -> IntegerNoise:
    """Return the least Laplace noise that epsilon allows for a sensitivity.

    Guarantee
        (epsilon, 0)-differentially private: the scale is at least l1 / epsilon, in rationals (Soundness rule 10).

    Parameters
    ----------
    l1
        How far all values move together.
    epsilon
        In units of 1e-18.
    mend
        What to do about noise that is too large.

    """
    share = Fraction(epsilon, UNITS_PER_ONE)
    # Rounded up first, so that the event of noise too wide for the ones is as private as the exact one.
    size = Fraction(round_up(Fraction(l1)))
    scale = laplace_scale(size, share) if size / share < 2**1000 else math.inf
    _check_scale(scale, "epsilon", share, mend)
    return laplace_of_scale(scale, l1)


def gaussian_of_delta(l2_squared: int | Fraction, epsilon: int, delta: int, *, mend: str = _MEND) -> IntegerNoise:
    """Return the least Gaussian noise that (epsilon, delta) allows for a sensitivity.

    Guarantee
        (epsilon, delta)-differentially private: the scale is the analytic Gaussian mechanism's (Balle, Wang 2018,
        theorem 8), in balls.

    Parameters
    ----------
    l2_squared
        The square of the Euclidean distance by which all values move together.
    epsilon, delta
        In units of 1e-18.
    mend
        What to do about noise that is too large.

    """
    share, spread = Fraction(epsilon, UNITS_PER_ONE), round_up_root(Fraction(l2_squared))
    scale = analytic_gaussian_scale(Fraction(spread), share, Fraction(delta, UNITS_PER_ONE))
    _check_scale(scale, "epsilon", share, mend)
    return IntegerNoise("gaussian", scale, Gaussian(scale, spread))


def gaussian_of_rho(l2_squared: int | Fraction, rho: int, *, mend: str = _MEND) -> IntegerNoise:
    """Return the least Gaussian noise that rho allows for a sensitivity: sigma = l2 / sqrt(2 rho).

    Guarantee
        rho-zCDP: `zcdp.cost` says so of the very event.

    Parameters
    ----------
    l2_squared, mend
        As for `gaussian_of_delta`.
    rho
        In units of 1e-18.

    """
    share, spread = Fraction(rho, UNITS_PER_ONE), round_up_root(Fraction(l2_squared))
    scale = round_up_root(Fraction(spread) ** 2 / (2 * share))
    while zcdp.cost(Gaussian(scale, spread))[0] > rho:
        scale = math.nextafter(scale, math.inf)
    _check_scale(scale, "rho", share, mend)
    return IntegerNoise("gaussian", scale, Gaussian(scale, spread))


def scale_within(
    noise: IntegerNoise, l2_squared: int | Fraction, part: Fraction, argument: str, amount: Fraction, mend: str = _MEND
) -> float:
    """Return the scale at which one of several vectors of whole numbers is drawn, as a part of one Gaussian noise.

    Guarantee
        All vectors together are no more than the noise's event where their parts add up to 1 at most. Independent
        Gaussian noises of standard deviations s_i, each on a vector that moves by D_i at most, are one spherical noise
        on the vector of all x_i / s_i, which moves by at most the root of the sum of (D_i / s_i)**2. That sum is at
        most (D / s)**2 of the event, because s_i >= s D_i / (D sqrt(part_i)), in rationals.

    Parameters
    ----------
    noise
        Gaussian noise for a vector that moves by its event's sensitivity.
    l2_squared
        The square of the distance by which this vector can move.
    part
        Above 0.
    argument, amount, mend
        The budget's name and amount, and what to do about noise that is too large.

    """
    assert isinstance(noise.event, Gaussian)
    unit = (Fraction(noise.scale) / Fraction(noise.event.sensitivity)) ** 2
    squared = unit * l2_squared / part
    scale = round_up_root(squared) if squared < 2**1000 else math.inf
    _check_scale(scale, argument, amount, mend)
    return scale


def laplace_of_rho(l1: int, rho: int, *, answers: int = 1, mend: str = _MEND) -> IntegerNoise:
    """Return the least Laplace noise that rho allows for a sensitivity.

    Guarantee
        rho-zCDP: `zcdp.cost` says so of the event, repeated for each of the values that may move.

    Parameters
    ----------
    l1
        How far a value moves, of as many as ``answers`` that do.
    rho
        In units of 1e-18.
    answers, mend
        How many values may move so far each; what to do about noise that is too large.

    Notes
    -----
    b = l1 / e with m e tanh(e / 2) = rho where the noise is discrete and m (e + exp(-e) - 1) = rho where it is
    continuous, by halving.

    """

    def suffices(scale: float) -> bool:
        return zcdp.cost(Repeated(_laplace_event(scale, l1), answers))[0] <= rho

    share = Fraction(rho, UNITS_PER_ONE)
    # m e**2 / 2 >= rho >= m (e - 2).
    each = float(share) / answers
    scale = _least(suffices, l1 / (each + 2), l1 / math.sqrt(2 * each))
    _check_scale(scale, "rho", share, mend)
    return laplace_of_scale(scale, l1)


def _least(suffices: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least float that suffices: above ``low``, and about ``high`` at most.

    Infinity if none does: costs are whole units, and a budget may have too few of them.
    """
    step = 2.0**-40
    while not suffices(high):
        if not high <= LARGEST_INTEGER_SCALE:
            return math.inf
        high *= 1 + step
        step *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _check_scale(scale: float, argument: str, share: Fraction, mend: str) -> None:
    if not scale <= LARGEST_INTEGER_SCALE:
        raise NoiseTooWideError(argument, float(share), _DROWNED, mend)


def declared_amounts(event: Single) -> tuple[int, int]:
    """Return the epsilon and the delta, in units of 1e-18, that stand in the charge of noise planned by rho."""
    epsilon = zcdp.ZCDP(event).epsilon(_DECLARED_DELTA)
    return charge_units(max(epsilon, 1e-18), "epsilon"), charge_units(_DECLARED_DELTA, "delta")
