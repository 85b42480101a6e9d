"""Exact amounts: what is read, how it is rounded, what is refused."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.errors import ParameterError
from dpfast.exact.amounts import (
    UNITS_PER_ONE,
    budget_units,
    charge_units,
    share_units,
    to_decimal,
    to_float,
)


class Hostile(float):
    """A float that lies about itself."""

    def __float__(self):
        raise RuntimeError("called")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __repr__ = __float__
    __hash__ = None


class HostileObject:
    def __float__(self):
        raise RuntimeError("called")

    __index__ = __int__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __float__
    __repr__ = __str__ = __bool__ = __float__
    __hash__ = None


REFUSED_BY_BOTH = [
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    -1,
    -1e-18,
    5e-324,
    1e-320,
    9.99e-19,
    1e308,
    10**400,
    10**5000,
    -(10**5000),
    True,
    False,
    "0.1",
    "NaN",
    b"1",
    None,
    0.1 + 0j,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("-0"),
    Decimal("1E-999999"),
    Decimal("1E+999999"),
    Fraction(-1, 2),
    Fraction(1, 10**5000),
    Fraction(10**5000),
    np.float64("nan"),
    np.float32("inf"),
    np.float64(-0.0),
    np.longdouble(0.5),
    np.bool_(True),
    np.timedelta64(1, "s"),
    np.array(0.5),
    np.array([0.5]),
    [0.5],
    Hostile(0.5),
    HostileObject(),
    object(),
]


def is_refused(read, value, coordinate):
    with pytest.raises(ParameterError) as caught:
        read(value, coordinate, "share")
    message = str(caught.value)
    return message.startswith("share must be ") and "\n" not in message and len(message) < 300


@pytest.mark.parametrize("read", [budget_units, charge_units])
@pytest.mark.parametrize("coordinate", ["epsilon", "delta"])
@pytest.mark.parametrize("value", REFUSED_BY_BOTH, ids=lambda value: f"{type(value).__name__}")
def test_refused(read, coordinate, value):
    """Bad input: no bad amount is read, and the error is one line."""
    assert is_refused(read, value, coordinate)


@pytest.mark.parametrize("read", [budget_units, charge_units])
def test_limits(read):
    assert read(1e-18, "epsilon") == 1
    assert read(1e6, "epsilon") == 10**24
    assert read(0, "delta") == read(0.0, "delta") == read(Decimal("0E-999999999"), "delta") == 0
    assert read(0.9999999999999999, "delta") == 999_999_999_999_999_900
    for value in (0, 0.0, 1000000.0000000001, Decimal("1000000.000000000000000001"), 10**6 + 1):
        assert is_refused(read, value, "epsilon")
    for value in (1, 1.0, 2, Decimal(1), np.int64(1)):
        assert is_refused(read, value, "delta")


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        Decimal("0.1"),
        Fraction(1, 10),
        np.float64(0.1),
        np.float64("0.1") * 1,
    ],
)
def test_decimals_as_written(value):
    """Soundness rule 10: a decimal is read as written, whatever NumPy's repr says."""
    assert budget_units(value, "epsilon") == charge_units(value, "epsilon") == 10**17


def test_kinds():
    for value in (2, 2.0, np.int8(2), np.uint64(2), np.longlong(2), np.float16(2), np.float32(2)):
        assert charge_units(value, "epsilon") == 2 * UNITS_PER_ONE
    assert charge_units(np.float32(0.1), "epsilon") == 100_000_001_490_116_120
    assert charge_units(2.0**-51, "epsilon") == 445


def test_rounding():
    """Soundness rule 10: budgets are rounded down, charges up."""
    assert budget_units(Fraction(1, 3), "epsilon") == 333_333_333_333_333_333
    assert charge_units(Fraction(1, 3), "epsilon") == 333_333_333_333_333_334
    assert budget_units(Decimal("0.1000000000000000009"), "delta") == 10**17
    assert charge_units(Decimal("0.1000000000000000001"), "delta") == 10**17 + 1


def test_decimal_context_is_ignored():
    """A caller's decimal precision of 3 digits changes nothing."""
    with decimal.localcontext() as context:
        context.prec = 3
        context.traps[decimal.Inexact] = context.traps[decimal.FloatOperation] = True
        assert charge_units(0.123456789, "epsilon") == 123_456_789_000_000_000
        assert charge_units(Decimal("0.123456789"), "epsilon") == 123_456_789_000_000_000
        assert to_decimal(123_456_789_000_000_001) == Decimal("0.123456789000000001")


@given(st.fractions(min_value=Fraction(1, 10**18), max_value=10**6))
def test_rounding_brackets(value):
    """Soundness rule 10: budget <= value <= charge, less than one unit apart."""
    low, high = budget_units(value, "epsilon"), charge_units(value, "epsilon")
    assert Fraction(low, UNITS_PER_ONE) <= value <= Fraction(high, UNITS_PER_ONE)
    assert high - low == int((value * UNITS_PER_ONE).denominator > 1)


@given(st.floats(min_value=1e-18, max_value=1e6))
def test_floats_survive(value):
    """Where a float's decimal has at most 18 places, reading and showing give it back."""
    if Decimal(repr(value)).as_tuple().exponent >= -18:
        assert to_float(charge_units(value, "epsilon")) == value == to_float(budget_units(value, "epsilon"))


@given(st.integers(0, 10**26))
def test_shown(units):
    exact = Fraction(units, UNITS_PER_ONE)
    assert Fraction(to_decimal(units)) == exact
    assert to_float(units) == float(exact)


@given(st.integers(0, 10**26), st.integers(1, 10**9))
def test_shares(total, parts):
    """Soundness rule 18: shares are rounded down, so they never exceed the whole."""
    if 0 < total < parts:
        with pytest.raises(ParameterError):
            share_units(total, parts)
    else:
        share = share_units(total, parts)
        assert 0 <= total - share * parts < parts


@pytest.mark.parametrize(("total", "parts"), [(-1, 2), (True, 2), (1.0, 2), (5, 0), (5, True), (5, 2.0), (2, 3)])
def test_bad_shares(total, parts):
    with pytest.raises(ParameterError):
        share_units(total, parts)


def test_tenths():
    assert to_float(sum(charge_units(0.1, "epsilon") for _ in range(10))) == 1.0
    assert 3 * charge_units(0.1, "epsilon") == budget_units(0.3, "epsilon")
