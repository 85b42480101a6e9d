"""A Toeplitz factor of the prefix sums that decays in a few exponentials, and what is proved of it.

Let B(x) = sum of weight_j / (1 - rate_j x), with positive weights that add up to 1 and rates in [0, 1); b_k = sum of
weight_j rate_j**k are its coefficients. With A the prefix sums, A(x) = 1 / (1 - x), the factor that is measured is
C = A / B, so that A = B C.

1. *No c_k is negative and none exceeds the one before; c_0 = 1.* (b_k) is log-convex, so that 1 / B = 1 - F with
   no negative coefficient in F (Kaluza 1928). F sums to 1 - 1 / B(1) <= 1, and c_k = 1 - (f_1 + ... + f_k).
2. *A unit of k steps moves C x most where these are the first k.* The product of columns i < j of C over T steps, the
   sum over m < T - j of c_m c_(m + j - i), falls with j, and with j - i, by 1. Of steps t_1 < ... < t_k, t_b is at
   least b, and t_b - t_a at least b - a, counted from 0: no product exceeds that of the first k steps.
3. *|B(x)| >= |weight_j / (1 - rate_j x)| and |B(x)| >= 1/2 for |x| <= 1.* On the circle all 1 / (1 - rate x) have a
   real part of at least 1/2 and imaginary parts of one sign: they lie in one quadrant, where adding one to others
   makes none shorter; and inside, by the maximum of the quotients on the circle. So the operators
   weight_j / (1 - rate_j x) / B(x) have a norm of at most 1, and 1 / B(x) of at most 2, on sequences with the
   Euclidean norm, cut off after any number of steps.

Partial fractions: c_k = sum of residue (1 - z)**k for k > 0, with positive residues, where z is 0 or solves
sum of weight_j / (loss_j - z) = 0, loss = 1 - rate: there is one such z between any two losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.exact.balls import ball, float_above, working_precision

__all__ = ["Buffers"]

_BITS = 256
#: Zeros are known to this share of themselves.
_WITHIN = Fraction(1, 2**36)
_HALVINGS = 64
#: Up to so many steps, sums over several of a unit's columns are added up term by term.
_LONGEST_COLUMN = 2**22
#: What rounding adds to them at most: terms are positive, and each is known to about T times 2**-52.
_MARGIN = 1 + Fraction(1, 2**20)


@dataclass(frozen=True, eq=False)
class Buffers:
    """The factor B, by what its buffers lose in a step and by their weights.

    Attributes
    ----------
    losses
        1 less the rates, from the smallest: above 0 and at most 1.
    weights
        Positive; they add up to 1.

    """

    losses: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def rates(self) -> NDArray[np.float64]:
        """What is left of a buffer after a step."""
        return 1.0 - self.losses

    @cached_property
    def poles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The losses and the residues of C's exponentials: c_k = sum of residue (1 - loss)**k for k > 0."""
        low, high = self.losses[:-1].copy(), self.losses[1:].copy()
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            above = (self.weights[:, None] / (self.losses[:, None] - middle)).sum(0) > 0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        zeros = np.sqrt(low * high)
        slopes = (self.weights[:, None] / (self.losses[:, None] - zeros) ** 2).sum(0)
        # A loss of 1 is a rate of 0, whose zero at infinity is none.
        residues = 1 / (zeros * slopes * (1 - zeros))
        return np.append(0.0, zeros), np.append(1 / (self.weights / self.losses).sum(), residues)

    def energy(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sum of the squares of the first so many b_k, for each number of steps."""
        return _geometric(self.losses, self.weights, steps)

    def measured_energy(self, steps: int) -> float:
        """Return the sum of the squares of the first so many c_k, nearly."""
        losses, residues = self.poles
        rest = _geometric(losses, residues, np.array([steps]))[0] - residues.sum() ** 2
        return float(1 + rest)

    def coefficients(self, steps: int) -> NDArray[np.float64]:
        """Return the first c_k, nearly."""
        losses, residues = self.poles
        times = np.arange(steps)
        column = np.zeros(steps)
        for loss, residue in zip(losses, residues, strict=True):
            column += residue * np.exp(times * np.log1p(-loss))
        column[0] = 1.0
        return column

    def l2_squared(self, horizon: int, max_steps: int) -> Fraction:
        """Return, rounded up, the square of the largest norm of a sum of so many columns of C.

        Notes
        -----
        One column: in balls, from zeros that are proved by the change of sign around them. Several, by 2: the windows
        of as many coefficients; or, for long columns, as many squared times one.

        """
        if max_steps == 1 or horizon > _LONGEST_COLUMN:
            return max_steps**2 * self._proved_energy(horizon)
        sums = np.cumsum(self.coefficients(horizon))
        sums[max_steps:] -= sums[:-max_steps].copy()
        return Fraction(float((sums**2).sum())) * _MARGIN

    def _proved_energy(self, steps: int) -> Fraction:
        if self.losses.size == 1:
            # C = (1 - rate x) / (1 - x): 1, and then the loss at every step.
            return 1 + (steps - 1) * Fraction(float(self.losses[0])) ** 2
        losses = [Fraction(float(loss)) for loss in self.losses]
        weights = [Fraction(float(weight)) for weight in self.weights]
        zeros = [_enclosed(losses, weights, Fraction(float(zero))) for zero in self.poles[0][1:]]
        with working_precision(_BITS):
            balls = [(ball(low) + ball(high)) / 2 + arb(0, 1) * (ball(high) - ball(low)) for low, high in zeros]
            parts = [ball(loss) for loss in losses], [ball(weight) for weight in weights]
            slopes = [sum((w / (m - z) ** 2 for m, w in zip(*parts, strict=True)), arb(0)) for z in balls]
            residues = [1 / (z * slope * (1 - z)) for z, slope in zip(balls, slopes, strict=True)]
            residues.append(1 / sum((w / m for m, w in zip(*parts, strict=True)), arb(0)))
            balls.append(arb(0))
            total = arb(1)
            for z, r in zip(balls, residues, strict=True):
                for y, s in zip(balls, residues, strict=True):
                    lost = z + y - z * y
                    if lost == 0:
                        total += r * s * (steps - 1)
                    else:
                        total += r * s * (1 - lost) * (1 - ((steps - 1) * (-lost).log1p()).exp()) / lost
            return Fraction(float_above(total))


def _geometric(
    losses: NDArray[np.float64], weights: NDArray[np.float64], steps: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the sums over k < steps of (sum of weight (1 - loss)**k)**2."""
    sums = np.zeros(steps.size)
    for loss, weight in zip(losses, weights, strict=True):
        for other, beside in zip(losses, weights, strict=True):
            lost = loss + other - loss * other
            if lost == 0.0:
                sums += weight * beside * steps
            elif lost < 1.0:
                sums -= weight * beside * np.expm1(steps * np.log1p(-lost)) / lost
            else:
                sums += weight * beside * (steps > 0)
    return sums


def _enclosed(losses: list[Fraction], weights: list[Fraction], near: Fraction) -> tuple[Fraction, Fraction]:
    """Return two numbers between which there is a zero of sum of weight / (loss - z), proved by its sign there."""
    width = _WITHIN
    while True:
        ends = near * (1 - width), near * (1 + width)
        signs = [sum(weight / (loss - end) for loss, weight in zip(losses, weights, strict=True)) for end in ends]
        same = all((loss > ends[0]) == (loss > ends[1]) for loss in losses)
        if same and signs[0] < 0 < signs[1]:
            return ends
        width *= 4
        if width >= 1:
            message = "no zero was found"
            raise ArithmeticError(message)
