"""Exact samples in ball arithmetic, for the few that a kernel leaves undecided.

Each function computes one rounded sample from an infinite string of random bits, reading as few as decide it.
All arithmetic is on Arb balls (Johansson 2017), which contain the true value whatever the working precision;
precision and bits grow until the ball holds one integer only. There is no cap: stopping early would cost a
delta. A loop ends with probability one, after one round in all but a vanishing share of cases.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeVar

from flint import arb, fmpz

from dpfast.exact.balls import ball, working_precision

__all__ = [
    "Bits",
    "decided",
    "discrete_offset",
    "exact_gaussian",
    "exact_laplace",
    "exponential_ball",
    "is_less",
    "magnitude",
    "uniform_ball",
    "unique_floor",
    "whole_number_below",
]

_GUARD_BITS = 64
_Decided = TypeVar("_Decided")


class Bits(Protocol):
    """An infinite string of random bits of which ``known`` are at hand."""

    known: int

    def leading(self, count: int) -> int:
        """Return the first ``count`` bits as an integer."""


def decided(attempt: Callable[[int], _Decided | None], count: int, spare: int = 0) -> _Decided:
    """Return what an attempt with enough random bits decides: each attempt reads 64 more, until one does not give None.

    An attempt is given how many bits it may read, and works at a precision of as many, ``spare`` more and guard bits.
    """
    while True:
        with working_precision(count + spare + _GUARD_BITS):
            outcome = attempt(count)
        if outcome is not None:
            return outcome
        count += 64


def uniform_ball(leading: int, count: int) -> arb:
    """Return the ball of all U in [leading, leading + 1] * 2**-count."""
    return arb(fmpz(2 * leading + 1), 1) / arb(2) ** (count + 1)


def exponential_ball(bits: Bits, count: int) -> arb | None:
    """Return the ball of -ln U for all U with these first bits, None where it is unbounded."""
    leading = bits.leading(count)
    return -uniform_ball(leading, count).log() if leading else None


def unique_floor(x: arb) -> int | None:
    """Return the largest integer that is not above a ball, None where the ball does not decide it."""
    floor = x.floor().unique_fmpz()
    return None if floor is None else int(floor)


def is_less(x: arb, y: arb) -> bool | None:
    """Return whether one ball lies below another, None where they overlap."""
    return True if x < y else False if x > y else None


def magnitude(*numbers: Fraction) -> int:
    """Return how many bits the largest number has in front of the point, up to one."""
    return max(0, *(abs(x).numerator.bit_length() - x.denominator.bit_length() for x in numbers))


def whole_number_below(bound: int, bits: Bits) -> int:
    """Return floor(bound * U) for the U in [0, 1) with these bits: evenly one of 0, 1, ..., bound - 1.

    With U in [r, r + 1) * 2**-n the floor is decided once it is the same at both ends.
    """

    def place(count: int) -> int | None:
        leading = bits.leading(count)
        low = bound * leading >> count
        return low if low == (bound * (leading + 1) - 1) >> count else None

    return decided(place, bits.known)


def _offset(scale: arb) -> arb:
    """Return ln(2 / (1 + exp(-1 / scale))) without cancellation: -log1p(expm1(-1 / scale) / 2)."""
    return -((-1 / scale).expm1() / 2).log1p()


@lru_cache(maxsize=256)
def discrete_offset(scale: float) -> float:
    """Return scale * ln(2 / (1 + exp(-1 / scale))) - 1/2, correctly rounded up to 2**-100.

    Examples
    --------
    >>> discrete_offset(1.0)
    -0.12011450695827752

    """

    def rounded(_: int) -> float | None:
        b = ball(scale)
        offset = b * _offset(b) - arb("0.5")
        return float(offset.mid()) if offset.rad() < arb(2) ** -100 else None

    return decided(rounded, 200)


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

    def rounded(count: int) -> int | None:
        e, b = exponential_ball(bits, count), ball(scale)
        if e is None:
            return None
        size = unique_floor(b * (e + _offset(b)) if discrete else b * e + ball(signed + Fraction(1, 2)))
        return -size if negative and size else size

    return decided(rounded, bits.known, scale.numerator.bit_length())


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

    def rounded(count: int) -> int | None:
        e = exponential_ball(radius, count)
        if e is None:
            return None
        # In the cell next to U = 1 the ball reaches below zero and its root is no number, which decides nothing.
        turns = 2 * uniform_ball(angle.leading(count), count)
        direction = turns.sin_pi() if sine else turns.cos_pi()
        return unique_floor(ball(scale) * (2 * e).sqrt() * direction + ball(fraction + Fraction(1, 2)))

    return decided(rounded, min(radius.known, angle.known), scale.numerator.bit_length())
