"""From sensitivity and privacy to a scale, rounded up so that the guarantee holds for the float that is used."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.exact.amounts import LARGEST_EPSILON_UNITS, UNITS_PER_ONE
from dpfast.exact.balls import ball, round_up, working_precision

__all__ = [
    "analytic_gaussian_epsilon",
    "analytic_gaussian_ratios",
    "analytic_gaussian_scale",
    "laplace_scale",
    "round_up",
    "round_up_root",
]

_BITS = 256
_BELOW = 1 - Fraction(1, 2**53)


def round_up_root(x: Fraction) -> float:
    """Return the smallest float whose square is not below a positive rational number."""
    root = math.sqrt(float(x))
    while Fraction(root) ** 2 >= x:
        root = math.nextafter(root, 0.0)
    while Fraction(root) ** 2 < x:
        root = math.nextafter(root, math.inf)
    return root


def laplace_scale(sensitivity: Fraction, epsilon: Fraction) -> float:
    """Return the smallest float b with sensitivity / b <= epsilon.

    Guarantee
        Laplace noise of this scale on a statistic of this L1 sensitivity is (epsilon, 0)-differentially
        private: proved in rational numbers, b * epsilon >= sensitivity (Dwork, Roth 2014, theorem 3.6).

    Examples
    --------
    >>> laplace_scale(Fraction(1), Fraction(1, 10))
    10.0

    """
    return round_up(sensitivity / epsilon)


def _normal_cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def _delta_ball(ratio: arb, epsilon: arb) -> arb:
    """Return delta of the Gaussian mechanism with scale = ratio * sensitivity (Balle, Wang 2018, theorem 8)."""
    half, shift = 1 / (2 * ratio), epsilon * ratio
    return _normal_cdf(half - shift) - epsilon.exp() * _normal_cdf(-half - shift)


@lru_cache(maxsize=1024)
def _analytic_ratio(epsilon: Fraction, delta: Fraction) -> float:
    """Return a float r, within a few units in the last place of the least, with delta(r) <= delta proved."""

    def suffices(ratio: float) -> bool:
        return bool(_delta_ball(ball(ratio), ball(epsilon)) <= target)

    with working_precision(_BITS):
        target = ball(delta)
        high = 1.0
        while not suffices(high):
            high *= 2
        low = high / 2
        while suffices(low):
            high, low = low, low / 2
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def analytic_gaussian_scale(sensitivity: Fraction | float, epsilon: Fraction | float, delta: Fraction | float) -> float:
    """Return the least standard deviation that makes the Gaussian mechanism (epsilon, delta)-private.

    Guarantee
        The scale suffices: proved in ball arithmetic at the float returned, which is within a few units in the
        last place of the least one. It holds for every epsilon > 0, unlike the classical
        sqrt(2 ln(1.25 / delta)) * sensitivity / epsilon, which fails above epsilon of about 8.

    Parameters
    ----------
    sensitivity
        The L2 sensitivity, above 0.
    epsilon
        Above 0.
    delta
        Between 0 and 1, both excluded.

    References
    ----------
    Balle, Wang (2018), theorem 8 and algorithm 1.

    Examples
    --------
    >>> round(analytic_gaussian_scale(1.0, 1.0, 1e-5), 7)
    3.7306316

    """
    if not 0 < delta < 1:
        raise ParameterError("delta", delta, "between 0 and 1 for Gaussian noise", "write for example delta=1e-6")
    ratio = _analytic_ratio(Fraction(epsilon), Fraction(delta))
    return round_up(Fraction(ratio) * Fraction(sensitivity))


def analytic_gaussian_epsilon(ratio: Fraction, delta: Fraction) -> int | None:
    """Return the least epsilon at which Gaussian noise of scale ratio * sensitivity is (epsilon, delta)-private.

    Guarantee
        It suffices: proved in ball arithmetic. In whole units of 1e-18, the least that does.

    Parameters
    ----------
    ratio
        Above 0.
    delta
        Between 0 and 1, both excluded.

    Returns
    -------
    int or None
        At least 1; None if it is above 10**6.

    Examples
    --------
    >>> units = analytic_gaussian_epsilon(Fraction("3.7306316"), Fraction("1e-5"))
    >>> assert units is not None
    >>> round(units / 10**18, 6)
    1.0

    """
    with working_precision(_BITS):
        target, width = ball(delta), ball(ratio)

        def suffices(units: int) -> bool:
            return bool(_delta_ball(width, ball(Fraction(units, UNITS_PER_ONE))) <= target)

        near = _near_gaussian_epsilon(float(ratio), float(delta))
        step = (near >> 40) + 1
        low = high = near
        while not suffices(high):
            low, high, step = high, high + step, 16 * step
            if low > LARGEST_EPSILON_UNITS:
                return None
        while low and (low == high or suffices(low)):
            low, high, step = max(low - step, 0), low, 16 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
    return high if high <= LARGEST_EPSILON_UNITS else None


def _near_gaussian_epsilon(ratio: float, delta: float) -> int:
    """Return about that epsilon in whole units, at least 1: a place from which to look for it."""
    low, high = 1e-18, 700.0
    for _ in range(70):
        epsilon = math.sqrt(low * high)
        shift, half = epsilon * ratio, 1 / (2 * max(ratio, 1e-300))
        tails = math.erfc((shift - half) / math.sqrt(2.0)), math.erfc((shift + half) / math.sqrt(2.0))
        low, high = (low, epsilon) if (tails[0] - math.exp(epsilon) * tails[1]) / 2 <= delta else (epsilon, high)
    return max(round(high * UNITS_PER_ONE), 1)


def analytic_gaussian_ratios(epsilon: NDArray[np.float64], delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sigma / sensitivity of the Gaussian mechanism for columns of (epsilon, delta).

    Guarantee
        As for `analytic_gaussian_scale`, for amounts up to 2**-53 below these floats too (a decimal that is charged may
        lie there), proved by a kernel's error bounds, within 2e-12 of the least; a delta above 0.9 counts as 0.9.

    Parameters
    ----------
    epsilon, delta
        Of one length: epsilon from 1e-18 to 10**6, delta from 1e-18 to below 1.

    References
    ----------
    Balle, Wang (2018), theorem 8.

    Examples
    --------
    >>> analytic_gaussian_ratios(np.array([1.0, 0.5]), np.array([1e-5, 1e-5])).round(7).tolist()
    [3.7306316, 7.0318267]

    """
    from dpfast.kernels.amounts.analytic_gaussian import gaussian_ratios  # not at the top: plans do without numba

    ratios = np.empty(epsilon.size)
    if gaussian_ratios(epsilon, delta, mills_ratio_series(), ratios):
        for row in np.flatnonzero(ratios == np.inf):
            pair = Fraction(epsilon[row]) * _BELOW, Fraction(delta[row]) * _BELOW
            ratios[row] = analytic_gaussian_scale(1, *pair)
    return ratios


@lru_cache(maxsize=1)
def mills_ratio_series() -> NDArray[np.float64]:
    """Return the Taylor coefficients of Mills' ratio at the kernel's nodes, rounded to the nearest.

    M = sqrt(pi / 2) exp(x**2 / 2) erfc(x / sqrt(2)), M' = x M - 1, and (k + 1) m_(k+1) = x m_k + m_(k-1).
    """
    from dpfast.kernels.amounts.analytic_gaussian import FIRST, NODES, ORDER

    series = np.empty((NODES, ORDER))
    with working_precision(2 * _BITS):
        for node in range(NODES):
            x = arb(FIRST) + arb(node) / 8
            terms = [(arb.pi() / 2).sqrt() * (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()]
            terms.append(x * terms[0] - 1)
            for k in range(1, ORDER - 1):
                terms.append((x * terms[k] + terms[k - 1]) / (k + 1))
            series[node] = [float(term) for term in terms]
    return series
