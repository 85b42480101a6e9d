"""Local sensitivity of the median, how smooth it can be made, and noise that follows it: all in whole grid points.

Write x_1 <= ... <= x_n for the sorted values, x_i for i < 1 for the lower bound and for i > n for the upper one. The
median is x_m, m = floor((n + 1) / 2). A(k) is the largest local sensitivity of any data within k rows of x, and
S = max A(k) exp(-beta k) the smallest smooth bound: S(x) <= exp(beta) S(x') for neighbours.

Replace. A(k) = max of x_j - x_i over i <= m <= j, j - i = k + 1 (Nissim, Raskhodnikova, Smith 2007, proposition 3.4).
For the mean without the t lowest and t highest values, k = j - i - (n - 2 t) over i <= t + 1, j >= n - t, and A(k) is
divided by n - 2 t: that of the median is this one with n odd and t = (n - 1) / 2.

Add/remove. Adding or removing one row, the median of an odd number n = 2 r - 1 of values can go down to x_(r - 1) and
not up, that of an even number n = 2 r up to x_(r + 1) and not down. So the local sensitivity is the gap that has L
values up to its lower end and R from its upper end on, R - L being 1 or 0. For the gap from x_i to x_j to be that one,
the j - i - 1 values in it are removed and then max(0, n - i - j, i + j - n - 1) rows added or removed at the ends, a
row for each by which R - L = n - j + 1 - i is above 1 or below 0. With i + j < n the larger j = n - i costs no more,
and with i + j > n + 1 the smaller i = n + 1 - j: pairs with i + j = n or n + 1 suffice, and cost j - i - 1.

Noise. With Z of density h, f(x) + S(x) Z / alpha is private if h(z) changes by a factor exp(epsilon_1) at most when z
moves by alpha, and by exp(epsilon_2), but for a probability delta, when z is stretched by exp(b), abs(b) <= beta:
epsilon = epsilon_1 + epsilon_2. Stretch first, then move, and delta is not multiplied by anything: P(f(x) +
S(x) Z / alpha in T) <= exp(epsilon_2) P(f(x) + S(x') Z / alpha in T) + delta, and abs(f(x) - f(x')) <= S(x').

- Laplace, h(z) = exp(-abs(z)) / 2: alpha = epsilon_1. Stretched by b, the ratio of densities is
  exp(-b + abs(z) (exp(b) - 1)): at most exp(epsilon_2) up to t = (epsilon_2 + b) / (exp(b) - 1), and what is beyond t
  exceeds exp(epsilon_2) times the other by exp(-t) (1 - exp(-b)) in all, which rises with b. Shrunk, the ratio is at
  most exp(b). So delta = exp(-t) (1 - exp(-beta)) at b = beta <= epsilon_2.
- Cauchy, h(z) = 1 / (pi (1 + z**2)): the slope of ln h is 2 abs(z) / (1 + z**2) <= 1, hence alpha = epsilon_1; and
  exp(-b) (1 + exp(2 b) z**2) / (1 + z**2) lies between exp(-b) and exp(b), hence beta = epsilon_2, and delta = 0.

What is released is f(x) + S Z / alpha rounded to the grid of the bounds, which has nothing to do with S: rounding is
post-processing, and the draw is exact, in ball arithmetic, for every S.

Rounding of S. What is computed is within a relative 2**-35 of the S of a beta that is smaller by 2**-33, then raised
by a relative 2**-34; or it is the constant 2**-900 times the distance of the bounds, where that is larger. So it is not
below the local sensitivity, and falls by exp(-beta) at most from x to x'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, round_down, working_precision
from dpfast.exact.elementary import exp_minus
from dpfast.mechanisms.noise.exact import Bits, decided, exact_laplace, uniform_ball, unique_floor
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail

__all__ = ["SmoothNoise", "gaps_around", "smooth_noise", "smooth_sensitivity_of"]

#: What lies so far below the distance of the bounds is rounded up to it: exp(-700) is less.
_LEAST, _FARTHEST = 2.0**-900, 700.0
_SLACK, _RAISED = 2.0**-33, 1.0 + 2.0**-34
_REST = 0x7FFFFFFF


def smooth_sensitivity_of(
    points: NDArray[np.int64], lower: int, upper: int, beta: float, neighbors: Neighbors, cut: int | None = None
) -> float:
    """Return the beta-smooth sensitivity of the median, or of the sum that a trimmed mean divides, of sorted points.

    Parameters
    ----------
    points
        Sorted, from ``lower`` to ``upper``; differences of bounds have at most 53 bits.
    lower, upper
        The bounds.
    beta
        Above 2**-32.
    neighbors
        Of a trimmed sum, ``"replace"`` alone.
    cut
        How many of them are cut off at each end; None for the median.

    Returns
    -------
    float
        Not below the local sensitivity, and beta-smooth: see this module's docstring.

    """
    smaller, n = beta - _SLACK, points.size
    reach = math.ceil(_FARTHEST / smaller) + 1
    middle = (n + 1) // 2
    if neighbors == "add_remove":
        i = np.arange(max(0, (n - reach) // 2 - 1), n // 2 + 1)
        best = 0.0
        for j in (n - i, n + 1 - i):
            real = j > i
            gaps = _placed(points, lower, upper, j[real]) - _placed(points, lower, upper, i[real])
            costs = (j - i - 1)[real].astype(np.float64)
            best = max(best, float((gaps * exp_minus(smaller * costs)).max(initial=0.0)))
    else:
        last, least, span = (middle, middle, 1) if cut is None else (cut + 1, n - cut, n - 2 * cut)
        first, most = max(0, last - reach), min(n + 1, least + reach)
        own = _placed(points, lower, upper, np.arange(first, most + 1))
        decay = exp_minus(smaller * np.arange(most - first + 1, dtype=np.float64))
        from dpfast.kernels.stability import steepest_gap  # not at the top: numba takes long to import

        best = float(steepest_gap(own, decay, 0, last - first, least - first, most - first, span))
    return max(best, _LEAST * (upper - lower)) * _RAISED


def gaps_around(points: NDArray[np.int64], lower: int, upper: int, neighbors: Neighbors) -> float:
    """Return the local sensitivity of the median of sorted points."""
    middle, odd = (points.size + 1) // 2, points.size % 2 == 1
    gaps = np.diff(_placed(points, lower, upper, np.arange(middle - 1, middle + 2)))
    if neighbors == "replace":
        return float(gaps.max())
    return float(gaps[0 if odd else 1])


def _placed(points: NDArray[np.int64], lower: int, upper: int, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the points of ranks from 1 on, above the lower bound; rank 0 is there, and n + 1 at the upper one."""
    padded = np.zeros(ranks.size)  # also for ranks below 1
    inside = (ranks >= 1) & (ranks <= points.size)
    padded[inside] = points[ranks[inside] - 1] - lower
    padded[ranks > points.size] = upper - lower
    return padded


@dataclass(frozen=True)
class SmoothNoise:
    """Noise in proportion to a smooth sensitivity.

    Attributes
    ----------
    kind
        ``"laplace"`` or ``"cauchy"``.
    alpha
        The noise is S Z / alpha.
    beta
        How smooth S must be.

    """

    kind: str
    alpha: Fraction
    beta: float

    def add(self, value: Fraction, sensitivity: Fraction, source: RandomSource) -> int:
        """Return a value with noise, rounded to a whole number of grid points: exactly distributed."""
        scale = sensitivity / self.alpha
        whole = math.floor(value + Fraction(1, 2))
        keystream = Keystream(source.key())
        word = np.empty(1, np.uint32)
        keystream.words(Purpose.NOISE).fill(0, word)
        drawn = int(word[0])
        if self.kind == "laplace":
            bits = Tail(keystream, 0, drawn & _REST, 31)
            return whole + exact_laplace(bool(drawn >> 31), bits, scale, value - whole, False)
        return whole + exact_cauchy(Tail(keystream, 0, drawn, 32), scale, value - whole)


def exact_cauchy(bits: Bits, scale: Fraction, fraction: Fraction) -> int:
    """Return floor(scale * cot(pi U) + fraction + 1/2), U the number with these bits: Cauchy noise, rounded."""

    def rounded(count: int) -> int | None:
        turn = uniform_ball(bits.leading(count), count)
        return unique_floor(ball(scale) * turn.cot_pi() + ball(fraction + Fraction(1, 2)))

    return decided(rounded, bits.known, max(0, scale.numerator.bit_length() - scale.denominator.bit_length()))


def smooth_noise(epsilon: Fraction, delta: Fraction) -> SmoothNoise:
    """Return the noise for a budget: Laplace where there is a delta, else Cauchy; half of epsilon for each step.

    Raises
    ------
    ParameterError
        epsilon is so small, or delta, that beta would vanish in rounding.

    Examples
    --------
    >>> smooth_noise(Fraction(1), Fraction(0))
    SmoothNoise(kind='cauchy', alpha=Fraction(1, 2), beta=0.5)
    >>> round(smooth_noise(Fraction(1), Fraction(1, 10**6)).beta, 4)
    0.0497

    """
    half = epsilon / 2
    beta = round_down(half)
    if delta:
        low = 0.0
        with working_precision():
            if not _fits(beta, half, delta):
                while low < (middle := (low + beta) / 2) < beta:
                    low, beta = (middle, beta) if _fits(middle, half, delta) else (low, middle)
                beta = low
    if beta <= 2 * _SLACK:
        raise ParameterError("epsilon", float(epsilon), "larger: noise would not follow the data at all")
    return SmoothNoise("laplace" if delta else "cauchy", half, beta)


def _fits(beta: float, epsilon: Fraction, delta: Fraction) -> bool:
    """Return whether stretching Laplace noise by exp(beta) costs no more than (epsilon, delta), proved in balls."""
    if beta == 0.0:
        return True
    b = ball(beta)
    t = (ball(epsilon) + b) / b.expm1()
    cost: arb = (-t).exp() * -((-b).expm1())
    return bool(cost <= ball(delta))
