"""Exact samples in ball arithmetic, for the few that a kernel leaves undecided.

Each function computes one rounded sample from an infinite string of random bits, reading as few as decide it.
All arithmetic is on Arb balls (Johansson 2017), which contain the true value whatever the working precision;
precision and bits grow until the ball holds one integer only. There is no cap: stopping early would cost a
delta. A loop ends with probability one, after one round in all but a vanishing share of cases.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from flint import arb, ctx, fmpq, fmpz

from dpfast.exact.balls import PRECISION

__all__ = ["Bits", "discrete_offset", "exact_gaussian", "exact_laplace"]

_GUARD_BITS = 64


class Bits(Protocol):
    """An infinite string of random bits of which ``known`` are at hand."""

    known: int

    def leading(self, count: int) -> int:
        """Return the first ``count`` bits as an integer."""


def _rational(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


def _exponential(bits: int, count: int) -> arb:
    """Return the ball of -ln U for all U in [bits, bits + 1] * 2**-count; bits > 0."""
    return -(arb(fmpz(2 * bits + 1), 1) / arb(2) ** (count + 1)).log()


def _offset(scale: arb) -> arb:
    """Return ln(2 / (1 + exp(-1 / scale))) without cancellation: -log1p(expm1(-1 / scale) / 2)."""
    return -((-1 / scale).expm1() / 2).log1p()


def discrete_offset(scale: float) -> float:
    """Return scale * ln(2 / (1 + exp(-1 / scale))) - 1/2, correctly rounded up to 2**-100.

    Examples
    --------
    >>> discrete_offset(1.0)
    -0.12011450695827752

    """
    bits = 200
    with PRECISION:  # results are right under any precision, slow under a wrong one
        while True:
            with ctx.workprec(bits):
                b = arb(_rational(Fraction(scale)))
                offset = b * _offset(b) - arb("0.5")
                if offset.rad() < arb(2) ** -100:
                    return float(offset.mid())
            bits *= 2


def exact_laplace(negative: bool, bits: Bits, scale: Fraction, fraction: Fraction, discrete: bool) -> int:
    """Return s * floor(scale * (E + c)) if discrete, else s * floor(scale * E + s * fraction + 1/2).

    Parameters
    ----------
    negative
        Whether the sign s is -1.
    bits
        The bits of U; E = -ln U.
    scale, fraction
        In units of the grid; ``fraction`` is 0 if discrete.
    discrete
        Whether the noise is discrete Laplace noise, c = ln(2 / (1 + exp(-1 / scale))).

    """
    signed = -fraction if negative else fraction
    count = bits.known
    with PRECISION:  # results are right under any precision, slow under a wrong one
        while True:
            leading = bits.leading(count)
            if leading:
                with ctx.workprec(count + _GUARD_BITS + scale.numerator.bit_length()):
                    b = arb(_rational(scale))
                    e = _exponential(leading, count)
                    v = b * (e + _offset(b)) if discrete else b * e + arb(_rational(signed + Fraction(1, 2)))
                    magnitude = v.floor().unique_fmpz()
                if magnitude is not None:
                    return -int(magnitude) if negative else int(magnitude)
            count += 64


def exact_gaussian(radius: Bits, angle: Bits, sine: bool, scale: Fraction, fraction: Fraction) -> int:
    """Return floor(scale * sqrt(-2 ln U) * cos(2 pi V) + fraction + 1/2), or sin for cos.

    Parameters
    ----------
    radius, angle
        The bits of U and of V.
    sine
        Whether the value is the pair's second.
    scale, fraction
        In units of the grid.

    """
    count = min(radius.known, angle.known)
    with PRECISION:  # results are right under any precision, slow under a wrong one
        while True:
            leading = radius.leading(count)
            if leading:
                with ctx.workprec(count + _GUARD_BITS + scale.numerator.bit_length()):
                    # In the cell next to U = 1 the ball reaches below zero and its root is no number, which
                    # counts as undecided.
                    root = (2 * _exponential(leading, count)).sqrt()
                    turns = arb(fmpz(2 * angle.leading(count) + 1), 1) / arb(2) ** count
                    direction = turns.sin_pi() if sine else turns.cos_pi()
                    v = arb(_rational(scale)) * root * direction + arb(_rational(fraction + Fraction(1, 2)))
                    n = v.floor().unique_fmpz()
                if n is not None:
                    return int(n)
            count += 64
