"""Exact amounts of privacy: whole numbers of a unit of 10⁻¹⁸, never floats.

Floating-point amounts drift: ten charges of ``0.1`` sum to ``0.9999999999999999``, three of them exceed
``0.3``, and a charge of ``1e-18`` vanishes beside 1. An amount here is a Python integer of units, which
neither rounds nor overflows (in 64 bits, as in NumPy and in SQLite's ``SUM``, epsilon would end at 9.22).

What a caller gives is read as the decimal it was written as: the float ``0.1`` is one tenth. What does not
come out at whole units is rounded to the side of privacy: a budget down, a charge up.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, cast

import numpy as np

from dpfast.errors import ParameterError, Words

__all__ = [
    "LARGEST_DELTA_UNITS",
    "LARGEST_EPSILON_UNITS",
    "UNITS_PER_ONE",
    "Coordinate",
    "budget_units",
    "charge_units",
    "exact_text",
    "share_units",
    "to_decimal",
    "to_float",
]

Coordinate = Literal["epsilon", "delta"]

_DECIMAL_PLACES = 18
UNITS_PER_ONE: int = 10**_DECIMAL_PLACES
LARGEST_EPSILON_UNITS: int = 10**6 * UNITS_PER_ONE
LARGEST_DELTA_UNITS: int = UNITS_PER_ONE

_ALLOWED = {"epsilon": "a number from 1e-18 to 1e6", "delta": "0, or a number from 1e-18 to below 1"}
_EXAMPLE = {"epsilon": "0.5", "delta": "1e-6"}

# Exact types only: a subclass may lie in its `__float__`, `__eq__` or `__lt__`. Not `longdouble`, whose
# conversion to a float could round a charge down, and not `timedelta64`, which NumPy counts among the
# integers.
_NUMPY_SCALARS: tuple[type, ...] = tuple(
    np.dtype(code).type for code in ("b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d")
)

# Exponents beyond these are out of every range; converting them would build a number of as many digits.
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -20, 20
_LONGEST_SHOWN_BITS = 4_000


def _read(value: object) -> Fraction | None:
    """Return a number exactly as it was written, or None for what is no finite number of 0 or more."""
    kind = type(value)
    if kind is not float and kind is not int and any(kind is scalar for scalar in _NUMPY_SCALARS):
        value = cast("np.generic", value).item()
    if type(value) is float:
        return _read_written(repr(value)) if math.isfinite(value) else None
    if type(value) is Decimal:
        return _read_decimal(value)
    if type(value) is int:
        value = Fraction(value)
    if type(value) is Fraction and value >= 0:
        return value
    return None


@lru_cache(maxsize=1024)
def _read_written(text: str) -> Fraction | None:
    """Return the same of a decimal's text: most budgets are read again and again."""
    return _read_decimal(Decimal(text))


def _read_decimal(value: Decimal) -> Fraction | None:
    if not value.is_finite() or value.is_signed():
        return None
    if value.is_zero():
        return Fraction(0)
    return Fraction(value) if _SMALLEST_EXPONENT <= value.adjusted() <= _LARGEST_EXPONENT else None


def _amount(value: object, coordinate: Coordinate, argument: str | None) -> Fraction:
    """Return an amount within its coordinate's range, or refuse it."""
    amount = _read(value)
    if amount is not None:
        if amount * UNITS_PER_ONE >= 1:
            if (amount <= 10**6) if coordinate == "epsilon" else (amount < 1):
                return amount
        elif amount == 0 and coordinate == "delta":
            return amount
    name = coordinate if argument is None else argument
    shown = value
    if type(value) is Fraction and value.denominator.bit_length() + abs(value.numerator).bit_length() > (
        _LONGEST_SHOWN_BITS
    ):
        shown = Words("a fraction of thousands of digits")
    raise ParameterError(name, shown, _ALLOWED[coordinate], f"write for example {name}={_EXAMPLE[coordinate]}")


def budget_units(value: object, coordinate: Coordinate, argument: str | None = None) -> int:
    """Read a budget, rounded down to whole units.

    Guarantee
    ---------
    The units never exceed the number as it was written, so a ledger never allows more than was given to it.

    Parameters
    ----------
    value
        A number: int, float, Decimal, Fraction, or a NumPy integer or floating-point scalar of up to 64 bits.
        A float is read as the shortest decimal that denotes it. No bool, string, array, NaN, infinity or
        ``-0.0``.
    coordinate
        ``"epsilon"``: from 1e-18 to 1e6. ``"delta"``: 0, or from 1e-18 to below 1.
    argument
        The argument's name in error messages; by default the coordinate's.

    Returns
    -------
    int
        Units of 1e-18: at least 1 for epsilon, at least 0 for delta.

    Raises
    ------
    ParameterError
        If ``value`` is no such number.

    Examples
    --------
    >>> budget_units(0.1, "epsilon")
    100000000000000000
    >>> from fractions import Fraction
    >>> budget_units(Fraction(1, 3), "epsilon")
    333333333333333333

    """
    amount = _amount(value, coordinate, argument)
    return amount.numerator * UNITS_PER_ONE // amount.denominator


def charge_units(value: object, coordinate: Coordinate, argument: str | None = None) -> int:
    """Read a charge, rounded up to whole units.

    Guarantee
    ---------
    The units are never less than the number as it was written: what a mechanism is said to cost is paid in
    full.

    Parameters
    ----------
    value, coordinate, argument
        As in :func:`budget_units`. What lies above 0 but below one unit is refused here too.

    Returns
    -------
    int
        Units of 1e-18: at least 1 for epsilon, at least 0 for delta.

    Raises
    ------
    ParameterError
        If ``value`` is no such number.

    Examples
    --------
    >>> charge_units(1e-6, "delta")
    1000000000000
    >>> from fractions import Fraction
    >>> charge_units(Fraction(1, 3), "epsilon")
    333333333333333334

    """
    amount = _amount(value, coordinate, argument)
    return -(-amount.numerator * UNITS_PER_ONE // amount.denominator)


def share_units(total_units: int, parts: int) -> int:
    """Split an amount evenly, each share rounded down.

    Guarantee
    ---------
    ``parts`` shares never exceed the total.

    Parameters
    ----------
    total_units
        Units to split, 0 or more.
    parts
        How many shares, 1 or more.

    Returns
    -------
    int
        Units of one share: 0 only where there is nothing to split.

    Raises
    ------
    ParameterError
        If an argument is no such integer, or a share would be below one unit.

    Examples
    --------
    >>> share_units(10, 3)
    3

    """
    if type(total_units) is not int or not (total_units >= 0):
        raise ParameterError("total_units", total_units, "a whole number of units, 0 or more")
    if type(parts) is not int or not (parts >= 1):
        raise ParameterError("parts", parts, "a whole number, 1 or more")
    if 0 < total_units < parts:
        raise ParameterError("parts", parts, f"at most {total_units}, the units there are", "split into fewer parts")
    return total_units // parts


def to_float(units: int) -> float:
    """Return an amount as the nearest float (Python divides integers with correct rounding).

    Examples
    --------
    >>> to_float(10 * charge_units(0.1, "epsilon"))
    1.0

    """
    return units / UNITS_PER_ONE


def to_decimal(units: int) -> Decimal:
    """Return an amount exactly, without trailing zeros and whatever the decimal context.

    Examples
    --------
    >>> to_decimal(2_500_000_000_000_000_000)
    Decimal('2.5')

    """
    exponent = -_DECIMAL_PLACES
    while exponent < 0 and units % 10 == 0:
        units //= 10
        exponent += 1
    return Decimal(f"{units}E{exponent}")


def exact_text(units: int) -> str:
    """Return an amount exactly, as Python writes floats: what is read beside it, an epsilon of a plan say, looks so.

    Examples
    --------
    >>> [exact_text(units) for units in (0, 1, 15 * 10**11, 10**14, 25 * 10**17, 10**23)]
    ['0', '1e-18', '1.5e-06', '0.0001', '2.5', '100000']

    """
    exact = to_decimal(units)
    if not units or exact.adjusted() >= -4:
        return f"{exact:f}"
    digits, _, exponent = f"{exact:e}".partition("e-")
    return f"{digits}e-{exponent:0>2}"
