"""Real numbers as Arb balls (Johansson 2017), and how they leave as floats and whole units: rounded outward.

A ball holds the true value whatever the working precision, so that precision, a global of the library, decides
only how tight a figure is, never whether it is right.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, to_float

__all__ = [
    "PRECISION",
    "as_written",
    "ball",
    "ceiling_units",
    "exact_lower",
    "float_above",
    "round_down",
    "round_up",
    "round_up_written",
    "units_above",
    "units_below",
    "working_precision",
    "written_below",
]

#: Held while the working precision is changed.
PRECISION = threading.RLock()
_BITS = 192
_LARGEST_EXPONENT = 10**7


@contextmanager
def working_precision(bits: int = _BITS) -> Iterator[None]:
    """Compute with ``bits`` of precision inside the block, one thread at a time."""
    with PRECISION, ctx.workprec(bits):
        yield


def ball(x: Fraction | float) -> arb:
    """Return the ball of a rational number, or of a float exactly as it is."""
    x = Fraction(x)
    return arb(fmpq(fmpz(x.numerator), fmpz(x.denominator)))


def as_written(x: float) -> Fraction:
    """Return the shortest decimal that denotes a float, exactly: 0.1 is one tenth.

    Examples
    --------
    >>> as_written(0.1)
    Fraction(1, 10)

    """
    return Fraction(repr(float(x)))


def round_down(x: Fraction) -> float:
    """Return the largest finite float that is not above a positive rational number.

    Examples
    --------
    >>> round_down(Fraction(1, 10)) <= Fraction(1, 10) < Fraction(math.nextafter(round_down(Fraction(1, 10)), 1))
    True
    >>> round_down(Fraction(10) ** 400)
    1.7976931348623157e+308

    """
    try:
        nearest = float(x)
    except OverflowError:
        return sys.float_info.max
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, 0.0)


def round_up(x: Fraction) -> float:
    """Return the smallest float that is not below a rational number.

    Examples
    --------
    >>> round_up(Fraction(1, 3)) >= Fraction(1, 3) > Fraction(math.nextafter(round_up(Fraction(1, 3)), 0))
    True

    """
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf
    return nearest if math.isinf(nearest) or Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def round_up_written(x: Fraction) -> float:
    """Return the smallest float that is not below a rational number, nor is the decimal that denotes it."""
    above = round_up(x)
    return above if math.isinf(above) or as_written(above) >= x else math.nextafter(above, math.inf)


def float_above(x: arb) -> float:
    """Return a float that is not below a ball: at most three units in the last place above its upper end."""
    if not x.is_finite():
        return math.inf
    if x.is_zero():
        return 0.0
    return math.nextafter(math.nextafter(float(x.upper()), math.inf), math.inf)


def exact_lower(x: arb) -> Fraction:
    """Return a ball's lower end, exactly."""
    mantissa, exponent = x.lower().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def units_above(x: arb) -> int:
    """Return a ball's upper end in units of 1e-18, rounded up to a whole number of them, or refuse infinity.

    Examples
    --------
    >>> with working_precision():
    ...     units_above(ball(Fraction(1, 3)))
    333333333333333334

    """
    if x.is_finite():
        mantissa, exponent = (x * UNITS_PER_ONE).upper().man_exp()
        if int(exponent) < _LARGEST_EXPONENT:
            return _shifted_up(int(mantissa), int(exponent))
    raise ParameterError("events", Words("one whose cost overflows"), "of a finite cost")


def ceiling_units(x: Fraction) -> int:
    """Return a rational number in units of 1e-18, rounded up to a whole number of them.

    Examples
    --------
    >>> ceiling_units(Fraction(1, 10))
    100000000000000000

    """
    return math.ceil(x * UNITS_PER_ONE)


def units_below(x: arb) -> int:
    """Return a ball's lower end in units of 1e-18, rounded down; not below 0, and 0 for what is no number."""
    if not x.is_finite():
        return 0
    mantissa, exponent = (x * UNITS_PER_ONE).lower().man_exp()
    return max(0, -_shifted_up(-int(mantissa), int(exponent)))


def _shifted_up(mantissa: int, exponent: int) -> int:
    """Return mantissa * 2**exponent, rounded up."""
    if exponent >= 0:
        return mantissa << exponent
    # Shifting further than the mantissa has bits changes nothing.
    return -(-mantissa >> min(-exponent, mantissa.bit_length() + 1))


def written_below(units: int) -> float:
    """Return the largest float that, as the decimal it denotes, is no more than an amount in units of 1e-18.

    Examples
    --------
    >>> written_below(300_000_000_000_000_000), written_below(300_000_000_000_000_001)
    (0.3, 0.3)

    """
    value = to_float(units)
    while as_written(value) * UNITS_PER_ONE > units:
        value = math.nextafter(value, 0.0)
    return value
