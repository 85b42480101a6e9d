"""Exponential variates E = -ln U from the leading bits of U, with a proven bound on the error.

U is an infinite string of random bits of which a kernel has read the first ``m``: an integer ``r`` with
U in [r, r+1) * 2**-m. The functions here return

- E, an approximation of -ln((r + 1/2) * 2**-m), and
- width, such that every u in [r, r+1) * 2**-m has |ln u - ln((r + 1/2) * 2**-m)| <= 1.0625 * width.

Method. Write a = r + 1/2 = M * 2**k with M in [sqrt(1/2), sqrt(2)); with f = M - 1 (exact: Sterbenz) and
s = f / (M + 1), ln M = 2 artanh(s) = 2s + s z P(z), z = s**2 <= (3 - 2 sqrt 2)**2 = 0.02944, P a minimax
polynomial; then E = (m - k) ln 2 - ln M in one fused operation.

Error in float64, with u = 2**-53 and first-order terms rounded up:

- s has relative error 2u (a sum and a quotient), z 5u, and s z P(z) is at most 0.0099 of 2s, so that
  ln M = fma(s z, P, 2s) is off by at most (2 + 0.1 + 1) u |ln M| plus the polynomial's own error;
- |ln M| <= ln(2)/2 <= E if m - k >= 1, and |ln M| = E if m = k, so |ln M| <= E in every case; likewise
  (m - k) ln 2 <= 2E, so that ln 2 rounded to a float (relative error 0.3u in float64, 0.05u in float32)
  costs at most 0.6u E;
- the last operation rounds once more, u E.

Altogether |E - exact| <= 5u E, plus the polynomial's error (below 0.1u E; a test bounds it in ball arithmetic). The
conversion of r costs nothing: r < 2**48 is exact.

Width: half a cell is 1/2 of a, so |ln u - ln(a 2**-m)| <= -ln(1 - 1/(2a)) <= 1/(2(a - 1/2)) <= 3/(4a) for
r >= 1, and 1/a <= sqrt(2) 2**-k, hence at most 1.0607 * 2**-k. For r = 0 the cell is unbounded in ln u:
``r`` must be tested apart, the value returned for it means nothing.

In float32, m = 31, there is no quotient, and the polynomial is evaluated from both ends: fewer operations wait for one
another. E is that of the cell's lower end: a = r, rounded to float32, is M 2**k. f = M - 1 is exact, and
ln M = f + f**2 Q(f) with Q a minimax polynomial, Q(0) = -1/2. E = (31 - k) ln 2 - ln M. With u = 2**-24, for f in
[sqrt(1/2) - 1, sqrt(2) - 1], where Q is between -0.626 and -0.394:

- Q = (A + B f**2) + f**4 (C + D f**2), A to D linear in f and each one operation. Below f = 0 the operations that end
  in A, A + B f**2 and Q round by u / 2 each, above 0 by u / 4; B, f**2 and what is multiplied by f**4 add 0.08u below
  0 and 0.13u above: 1.58u of at least 0.5, 0.88u of at least 0.394, and so 3.2u of Q;
- f**2 rounds by u of itself, and f**2 Q is at most 0.16 of ln M below 0 and 0.2 above, where Q is off by 2.3u of
  itself: 0.68u of ln M; the last operation rounds by u of it, and Q's own error moves it by less than 0.6u (a test):
  ln M is off by at most 2.3u |ln M|, which is at most 2.3u E and at most 0.8u;
- ln 2 rounded to float32 costs 0.1u E, and the last operation u E: altogether 3.4u E, and 1.1u E + 0.8u;
- the rounding of a moves ln a by at most u (1 + u), absolutely;
- the bits not read move it by at most ln((r + 1) / r) <= 1 / r, at most 0.70715 width for width = 2**(1 - k).

For r = 0 nothing is known of E. There k comes out as -127, and width as infinity: so is every bound with it.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined
from dpfast.kernels.intrinsics import (
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
    "LOGARITHM_F32",
    "POLYNOMIAL_F64",
    "exponential_f32",
    "exponential_f64",
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
# Minimax in f on [sqrt(1/2) - 1, sqrt(2) - 1] for (ln(1 + f) - f) / f**2, weighted by f**2 / ln(1 + f).
LOGARITHM_F32 = (
    -0.5,
    0.3333390951156616,
    -0.2500133812427521,
    0.1996307522058487,
    -0.16577574610710144,
    0.14914722740650177,
    -0.14267519116401672,
    0.08700626343488693,
)

_2_52 = 2.0**52
_LN2 = 0.6931471805599453
_ONE_64, _EXPONENT_64, _BIAS_64 = np.uint64(1), np.uint64(52), np.uint64(1024)
# The bits of sqrt(1/2) less one exponent: subtracting them leaves k + 1 above the mantissa, even for r = 0.
_ROOT_HALF_64 = np.uint64(0x3FE6A09E667F3BCD - (1 << 52))

_Q0, _Q1, _Q2, _Q3, _Q4, _Q5, _Q6, _Q7 = map(np.float32, LOGARITHM_F32)
_ONE_F32, _LN2_F32 = np.float32(1.0), np.float32(_LN2 * 2.0**-23)
_ROOT_HALF_32, _EXPONENTS_32 = np.uint32(0x3F3504F3), np.uint32(0xFF800000)
# 31, and the bits of 2.0, above the mantissa.
_THIRTY_ONE_32, _TWO_BITS_32 = np.uint32(31 << 23), np.uint32(0x40000000)


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
def exponential_f32(r):
    """Return (E, width) of the docstring's last part for r < 2**31 (uint32), the first 31 bits of U (float32)."""
    bits = bits_of_f32(f32_from_i32(r))
    power = bit_and(subtract(bits, _ROOT_HALF_32), _EXPONENTS_32)  # k, above the mantissa
    f = f32_from_bits(subtract(bits, power)) - _ONE_F32
    square = f * f
    first = fused_multiply_add(square, fused_multiply_add(f, _Q3, _Q2), fused_multiply_add(f, _Q1, _Q0))
    second = fused_multiply_add(square, fused_multiply_add(f, _Q7, _Q6), fused_multiply_add(f, _Q5, _Q4))
    log_mantissa = fused_multiply_add(square, fused_multiply_add(square * square, second, first), f)
    exponential = fused_multiply_add(f32_from_i32(subtract(_THIRTY_ONE_32, power)), _LN2_F32, -log_mantissa)
    return exponential, f32_from_bits(subtract(_TWO_BITS_32, power))


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
