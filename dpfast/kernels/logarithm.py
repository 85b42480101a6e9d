"""Exponential variates E = -ln U from the leading bits of U, with a proven bound on the error.

U is an infinite string of random bits of which a kernel has read the first ``m``: an integer ``r`` with
U in [r, r+1) * 2**-m. The functions here return

- E, an approximation of -ln((r + 1/2) * 2**-m), and
- width, such that every u in [r, r+1) * 2**-m has |ln u - ln((r + 1/2) * 2**-m)| <= 1.0625 * width.

Method. Write a = r + 1/2 = M * 2**k with M in [sqrt(1/2), sqrt(2)); with f = M - 1 (exact: Sterbenz) and
s = f / (M + 1), ln M = 2 artanh(s) = 2s + s z P(z), z = s**2 <= (3 - 2 sqrt 2)**2 = 0.02944, P a minimax
polynomial; then E = (m - k) ln 2 - ln M in one fused operation.

Error, with u the unit roundoff (2**-53 or 2**-24) and first-order terms rounded up:

- s has relative error 2u (a sum and a quotient), z 5u, and s z P(z) is at most 0.0099 of 2s, so that
  ln M = fma(s z, P, 2s) is off by at most (2 + 0.1 + 1) u |ln M| plus the polynomial's own error;
- |ln M| <= ln(2)/2 <= E if m - k >= 1, and |ln M| = E if m = k, so |ln M| <= E in every case; likewise
  (m - k) ln 2 <= 2E, so that ln 2 rounded to a float (relative error 0.3u in float64, 0.05u in float32)
  costs at most 0.6u E;
- the last operation rounds once more, u E.

Altogether |E - exact| <= 5u E, plus the polynomial's error (below 0.1u E in both precisions; a test bounds it
in ball arithmetic), plus what the conversion of r costs: nothing in float64, where r < 2**48 is exact; in
float32 two roundings of a, so 2u(1 + 2u) in E, absolutely.

As |ln M| <= ln(2)/2, ln M is also off by at most 3.2u ln(2)/2 <= 1.11u, the polynomial's own error included. In float32
that is the better of both for most E: |E - exact| <= 1.1u E + 1.11u, plus the conversion's 2u(1 + 2u).

Width: half a cell is 1/2 of a, so |ln u - ln(a 2**-m)| <= -ln(1 - 1/(2a)) <= 1/(2(a - 1/2)) <= 3/(4a) for
r >= 1, and 1/a <= sqrt(2) 2**-k, hence at most 1.0607 * 2**-k. For r = 0 the cell is unbounded in ln u:
``r`` must be tested apart, the value returned for it means nothing.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined
from dpfast.kernels.intrinsics import (
    add,
    bit_and,
    bits_of_f32,
    bits_of_f64,
    f32_from_bits,
    f32_from_i32,
    f64_above_2_52,
    f64_from_bits,
    fused_multiply_add,
    polynomial,
    shift_left,
    shift_right,
    subtract,
)

__all__ = [
    "POLYNOMIAL_F32",
    "POLYNOMIAL_F64",
    "exponential_f32",
    "exponential_f64",
    "exponential_of_lower_end_f32",
    "half_above",
    "minus_log_f64",
]

# Minimax in z on [0, (3 - 2 sqrt 2)**2] for (2 artanh(sqrt z) - 2 sqrt z) / z**1.5.
POLYNOMIAL_F64 = (
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
)
POLYNOMIAL_F32 = (0.6666668503957586, 0.3998878056602198, 0.2957994939197279)

_ROUNDED_F32 = tuple(np.float32(coefficient) for coefficient in POLYNOMIAL_F32)

_2_52 = 2.0**52
_LN2 = 0.6931471805599453
_ONE_64, _EXPONENT_64, _BIAS_64 = np.uint64(1), np.uint64(52), np.uint64(1024)
# The bits of sqrt(1/2) less one exponent: subtracting them leaves k + 1 above the mantissa, even for r = 0.
_ROOT_HALF_64 = np.uint64(0x3FE6A09E667F3BCD - (1 << 52))

_LN2_F32 = np.float32(_LN2)
_HALF_F32, _ONE_F32 = np.float32(0.5), np.float32(1.0)
_EXPONENT_32, _BIAS_32 = np.uint32(23), np.uint32(128)
_ROOT_32, _MANTISSA_32 = np.uint32(0x3F3504F3), np.uint32((1 << 23) - 1)
_ROOT_HALF_32 = np.uint32(0x3F3504F3 - (1 << 23))


@inlined
def half_above(r):
    """Return r + 1/2 for r < 2**52 (uint64), exactly."""
    return f64_above_2_52(r) - (_2_52 - 0.5)


@inlined
def minus_log_f64(bits, exponents):
    """Return ((exponents - 1) ln 2 - ln x, k + 1) for the bits of x = M * 2**k, x >= 1/2 (uint64)."""
    k = shift_right(subtract(bits, _ROOT_HALF_64), _EXPONENT_64)  # one more than the docstring's k
    mantissa = f64_from_bits(subtract(bits, shift_left(subtract(k, _ONE_64), _EXPONENT_64)))
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    log_mantissa = fused_multiply_add(s * z, polynomial(z, POLYNOMIAL_F64), s + s)
    return fused_multiply_add((exponents + _2_52) - f64_above_2_52(k), _LN2, -log_mantissa), k


@inlined
def exponential_f64(r, bits_plus_one):
    """Return (E, width) of the module's docstring for r < 2**48 (uint64), bits_plus_one = m + 1 (float64)."""
    exponential, k = minus_log_f64(bits_of_f64(half_above(r)), bits_plus_one)
    width = f64_from_bits(shift_left(subtract(_BIAS_64, k), _EXPONENT_64))
    return exponential, width


@inlined
def exponential_f32(r, bits_plus_one):
    """Return (E, width) of the module's docstring for r < 2**31 (uint32), bits_plus_one = m + 1 (float32)."""
    return _minus_log_f32(f32_from_i32(r) + _HALF_F32, bits_plus_one)


@inlined
def exponential_of_lower_end_f32(r, bits_plus_one):
    """Return (E, width) for a = r, the lower end of the cell, which is one operation less; else as `exponential_f32`.

    E approximates -ln(r * 2**-m), with one rounding of a, u, in the place of two. And every u in [r, r+1) * 2**-m has
    |ln u - ln(r * 2**-m)| <= ln(1 + 1/r) <= 1/r <= 1.4143 * width.
    """
    return _minus_log_f32(f32_from_i32(r), bits_plus_one)


@inlined
def _minus_log_f32(a, bits_plus_one):
    """Return ((bits_plus_one - 1) ln 2 - ln a, 2**-k) for a = M * 2**k."""
    # What lies above sqrt(1/2) in the mantissa, and k + 1 above that.
    above = subtract(bits_of_f32(a), _ROOT_HALF_32)
    k = shift_right(above, _EXPONENT_32)
    mantissa = f32_from_bits(add(bit_and(above, _MANTISSA_32), _ROOT_32))
    s = (mantissa - _ONE_F32) / (mantissa + _ONE_F32)
    z = s * s
    log_mantissa = fused_multiply_add(s * z, polynomial(z, _ROUNDED_F32), s + s)
    exponential = fused_multiply_add(bits_plus_one - f32_from_i32(k), _LN2_F32, -log_mantissa)
    width = f32_from_bits(shift_left(subtract(_BIAS_32, k), _EXPONENT_32))
    return exponential, width


# Stamp of all kernel sources (scripts/stamp_kernels.py): 9ce2d34c21dbfc36
