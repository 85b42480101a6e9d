"""Exponentials and logarithms of arrays from additions, multiplications and divisions alone.

IEEE arithmetic rounds these the same way on every machine, which neither NumPy nor a C library promises of
``exp`` and ``log``: a charge computed here is the same everywhere, and its error is proved below instead of
trusted. With u = 2**-53 the unit roundoff:

- Horner's rule on sum c_n x**n of degree d is off by at most 2(d + 1) u sum |c_n x**n| (1 + O(du)), and the
  rounded coefficients by another u sum |c_n x**n| (Higham 2002, section 5.1).
- 1 - exp(-f) = f P(f) on [0, 1), P(f) = sum (-f)**n / (n + 1)!: sum |c_n f**n| <= e - 1 and P >= 0.63, so that
  degree 18 is off by at most 39u * 1.72 / 0.63 <= 107u, relatively; what is left out is below 2**-60.
- exp(-x) = exp(-n) exp(-f), n = floor(x) and f = x - n exact, the first factor a table rounded from balls: off
  by 107u * 0.63 / 0.36 + 4u <= 192u, relatively (absolutely below 1e-320 where the result is subnormal).
- 1 - exp(-x) for x >= 1 is off by 192u * 0.37 / 0.63 + u <= 114u, relatively.
- ln x = k ln 2 + 2 artanh(s), s = (m - 1)/(m + 1), x = m 2**k, m in [sqrt(1/2), sqrt 2): the polynomial in s**2
  of degree 10 is off by at most 30u, relatively; ln 2 and two more roundings make 8u (|k| ln 2 + 1) absolutely
  beside it, at most 40u (|ln x| + 1) altogether.

Every result is therefore within a relative `SLACK` = 2**-43 = 1024u of the truth (of |ln x| + 1, for `log`).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpfast.exact.balls import ball, working_precision

__all__ = ["SLACK", "Floats", "exp_minus", "horner", "log", "one_minus_exp"]

Floats = NDArray[np.float64]

SLACK = 2.0**-43
_DEGREE = 18
_ALTERNATING = [(-1) ** n / math.factorial(n + 1) for n in range(_DEGREE + 1)]
_ARTANH = [2.0 / (2 * n + 1) for n in range(11)]
_LN2 = 0.6931471805599453
# Beyond it exp(-n) is 0 in float64.
_LARGEST_WHOLE = 746


def horner(coefficients: list[float], x: Floats) -> Floats:
    """Return the polynomial with these coefficients, the constant one first."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result *= x
        result += coefficient
    return result


@cache
def _whole_powers() -> Floats:
    """Return exp(-n) for n up to where it vanishes."""
    with working_precision():
        values = [float(ball(-n).exp().mid()) for n in range(_LARGEST_WHOLE)]
    return np.array([*values, 0.0])


def _split(x: Floats) -> tuple[Floats, Floats]:
    whole = np.floor(np.minimum(x, float(_LARGEST_WHOLE)))
    fraction = np.where(x < _LARGEST_WHOLE, x - whole, 0.0)
    return _whole_powers()[whole.astype(np.int64)], fraction * horner(_ALTERNATING, fraction)


def exp_minus(x: Floats) -> Floats:
    """Return exp(-x) for x >= 0."""
    whole, one_minus = _split(x)
    return whole * (1.0 - one_minus)


def one_minus_exp(x: Floats) -> Floats:
    """Return 1 - exp(-x) for x >= 0, accurate next to 0 too."""
    whole, one_minus = _split(x)
    return np.where(x < 1.0, one_minus, 1.0 - whole * (1.0 - one_minus))


def log(x: Floats) -> Floats:
    """Return ln x for finite normal x > 0."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < math.sqrt(0.5)
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    return (exponent - small) * _LN2 + s * horner(_ARTANH, s * s)
