"""The privacy loss of one run of each mechanism, as its moment generating function M(z) = E exp(z loss).

The loss is ln(P/Q) under P, for the dominating pair (P, Q) of the mechanism (Zhu, Dong, Wang 2022). Independent
losses add, so transforms multiply, whatever the parameters: a composition needs no common grid. With
w = z + 1/2 and e = sensitivity / scale (or epsilon):

- Laplace: atoms at e and -e, density exp(-(e - loss)/2)/4 between: M = exp(-e/2) (cosh(we) + sinh(we)/(2w)).
- Randomized response with k answers: M = (2 exp(e/2) cosh(we) + k - 2) / (exp(e) + k - 1). At k = 2 it dominates
  everything that is epsilon-private (Kairouz, Oh, Viswanath 2015).
- Discrete Laplace of scale b: atoms (sensitivity - 2x)/b for x = 0..sensitivity, a geometric sum.
- Bounded range e (exponential mechanism): the loss of two neighbours lies in some [t - e, t], so the pair with
  those two losses dominates it (connect two dots of the hockey-stick curve), and its curve at x = exp(epsilon) is
  (exp(e) - exp(t)) (1 - x exp(-t)) / (exp(e) - 1). The largest over t, (exp(e/2) - sqrt(x))^2 / (exp(e) - 1), is
  convex, falls from 1 and stays above 1 - x: the curve of a pair, which dominates every t at once, also when an
  adversary chooses t anew each time. Its loss has density exp(loss/2) / (4 sinh(e/2)) on [-e, e]:
  M = sinh(we) / (2w sinh(e/2)).

Every M is written as exp(z e) times something bounded, so nothing overflows. Beside each value stands a bound
of its rounding error; the constants in them are 4 to 10 times the sum of the steps' errors, with 4 ulp for each
call of exp, expm1, sin and cos.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FAMILIES",
    "ROUNDING",
    "Array",
    "BoundedRange",
    "DiscreteLaplaces",
    "Family",
    "Laplaces",
    "Loss",
    "Responses",
]

Array = NDArray[Any]

#: One unit in the last place of a float64 near 1: twice its largest rounding error.
ROUNDING = 2.0**-52


class Family(ABC):
    """Mechanisms of one kind, each with its largest loss and its number of runs."""

    def __init__(self, tops: Array, counts: Array, *more: Array) -> None:
        # Those that move the loss most come first: they show soonest which frequencies do not matter.
        order = np.argsort(-counts * tops**2, kind="stable")
        self.tops, self.counts = tops[order], counts[order]
        self.more = tuple(values[order] for values in more)
        self.pivot = float(np.sum(self.counts * self.tops))

    @property
    def size(self) -> int:
        """How many values one tilt takes."""
        return len(self.tops)

    @abstractmethod
    def scaled(self, z: Array, part: slice) -> Array:
        """Return M(z) exp(-z top) for a column of real or complex z, one mechanism per column."""

    def log_moments(self, tilts: Array) -> Array:
        """Return ln M at real arguments: one row each."""
        column = tilts[:, None]
        return column * self.tops + np.log(self.scaled(column, slice(None)))

    def ratio(self, tilt: float, frequencies: Array, part: slice, period: float) -> Array:
        """Return M(tilt + iu) / M(tilt) exp(-iu top), at most 1 in magnitude; u are multiples of 2 pi / period."""
        exact: Array = self.scaled(tilt + 1j * frequencies[:, None], part) / self.scaled(np.array([[tilt]]), part)
        return exact

    def rough_log_moments(self, tilts: Array) -> Array:
        """Return about `log_moments`, fast: for finding where to look, never for a bound."""
        return self.log_moments(tilts)

    def log_error(self, tilts: Array) -> Array:
        """Return bounds on the errors of `log_moments`, apart from the final sum's."""
        return self.error(tilts, np.zeros(len(tilts)), slice(None))

    def log_ceiling(self, tilt: float, frequencies: Array, period: float) -> Array:
        """Return a cheap bound on ln abs(ratio) of the first mechanism."""
        return np.zeros(len(frequencies))

    def error(self, tilt: float | Array, frequencies: Array, part: slice) -> Array:
        """Return a bound on the rounding error of `ratio`, and at frequency 0 of the relative error of M itself.

        The phase u e, rounded, is wrong by ROUNDING u e; all else is a few roundings of terms whose sum of
        magnitudes is the value at the real tilt, or at most twice that.
        """
        size = np.hypot(tilt + 0.5, frequencies)[:, None] * self.tops[part]
        bound: Array = ROUNDING * (16.0 + 16.0 * size)
        return bound


class Laplaces(Family):
    """Continuous Laplace noise; tops are sensitivity / scale."""

    def scaled(self, z: Array, part: slice) -> Array:
        """Return M(z) exp(-z top)."""
        w = z + 0.5
        # At a real tilt this is at least 1/2, and abs(4w) >= 2: errors are not magnified.
        fall = np.exp(-2.0 * w * self.tops[part])
        value: Array = (1.0 + fall) / 2.0 + (1.0 - fall) / (4.0 * w)
        return value


class Responses(Family):
    """Randomized response; more[0] is the number of answers besides the two that differ."""

    def scaled(self, z: Array, part: slice) -> Array:
        """Return M(z) exp(-z top)."""
        tops, others = self.tops[part], self.more[0][part]
        rest = np.exp(-2.0 * (z + 0.5) * tops) + others * np.exp(-(z + 1.0) * tops)
        value: Array = (1.0 + rest) / (1.0 + (1.0 + others) * np.exp(-tops))
        return value


class BoundedRange(Family):
    """The exponential mechanism, its index alone released."""

    def scaled(self, z: Array, part: slice) -> Array:
        """Return M(z) exp(-z top)."""
        # expm1 keeps relative accuracy for small epsilon, where both differences vanish.
        w, tops = z + 0.5, self.tops[part]
        value: Array = np.expm1(-2.0 * w * tops) / (2.0 * w * np.expm1(-tops))
        return value


class DiscreteLaplaces(Family):
    """Two-sided geometric noise; more[0] is the scale, more[1] the integer sensitivity."""

    def scaled(self, z: Array, part: slice) -> Array:
        """Return M(z) exp(-z top)."""
        tops, (scales, steps) = self.tops[part], (values[part] for values in self.more)
        w = z + 0.5
        base = np.exp(-1.0 / scales)
        fall = np.exp(-2.0 * w * tops)
        with np.errstate(divide="ignore", invalid="ignore"):
            geometric = (np.exp(-2.0 * w / scales) - fall) / -np.expm1(-2.0 * w / scales)
        inner = np.where(steps > 1.0, np.tanh(0.5 / scales) * geometric, 0.0)
        value: Array = (1.0 + fall) / (1.0 + base) + inner
        return value

    def error(self, tilt: float | Array, frequencies: Array, part: slice) -> Array:
        """Return a bound on the error of `ratio`."""
        # tanh(1/2b) / abs(1 - exp(-2w/b)) <= 1, so a relative error of the geometric sum's denominator costs at
        # most itself times the sum, which is at most `steps`.
        scales, steps = (values[part] for values in self.more)
        size = np.hypot(tilt + 0.5, frequencies)[:, None]
        more = np.where(steps > 1.0, 32.0 * ROUNDING * steps * (1.0 + size / scales), 0.0)
        bound: Array = super().error(tilt, frequencies, part) + more
        return bound


#: All families, in the order in which compositions multiply their transforms.
FAMILIES: tuple[type[Family], ...] = (Laplaces, DiscreteLaplaces, BoundedRange, Responses)


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of one run: that of a family at its parameters, beside a probability of an infinite one.

    Of Gaussian noise the square of its mean, which composes in closed form; else None.
    """

    family: type[Family] | None = None
    parameters: tuple[float, ...] = ()
    failure: float = 0.0
    squared_mean: float | None = None
