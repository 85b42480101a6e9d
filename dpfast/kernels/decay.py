"""The decreasing exponential exp(-x) for 0 <= x <= 700, with a proven bound on the error.

Method. k = round(x / ln 2), r = x - k ln 2, abs(r) <= 0.3466; exp(-r) by its Taylor polynomial of degree 13, and
exp(-x) = exp(-r) 2**-k, exactly, as k <= 1010 leaves a normal float.

Error, with u = 2**-53 and first-order terms rounded up. ln 2 is the sum of a float of 36 bits, whose product with k is
exact, and a second one: r takes two roundings of at most 0.35u each, and what the two floats leave of ln 2, below
2**-92, times k: 0.71u in all, in exp(-r) as much, relatively. The polynomial is cut off at r**14 / 14! < 0.05u of
exp(-r) >= 0.7. Horner's rule, p = fma(-r, p, c): the last step rounds by u max(1, exp(-r)), at most u / 0.7 of the
value; the one before it by u too, which enters times abs(r) <= 0.35, and so on: below 1.43u (1 + 0.35 + 0.18 + ..)
< 2.4u. Altogether less than 4u of exp(-x).
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined
from dpfast.kernels.intrinsics import (
    f64_from_bits,
    fused_multiply_add,
    polynomial,
    round_half_even,
    shift_left,
    subtract,
)

__all__ = ["LARGEST", "TAYLOR", "decay_f64"]

LARGEST = 700.0
"""The largest x."""

#: 1 / 0!, 1 / 1!, ..., 1 / 13!.
TAYLOR = (
    1.0,
    1.0,
    0.5,
    0.16666666666666666,
    0.041666666666666664,
    0.008333333333333333,
    0.001388888888888889,
    0.0001984126984126984,
    2.48015873015873e-05,
    2.7557319223985893e-06,
    2.755731922398589e-07,
    2.505210838544172e-08,
    2.08767569878681e-09,
    1.6059043836821613e-10,
)
_INVERSE_LN2 = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fefap-1"), float.fromhex("0x1.cf79abc9e3b3ap-40")
_BIAS, _EXPONENT = np.uint64(1023), np.uint64(52)


@inlined
def decay_f64(x):
    """Return exp(-x) with a relative error below 4 * 2**-53, for 0 <= x <= 700."""
    k = round_half_even(x * _INVERSE_LN2)
    r = fused_multiply_add(-k, _LN2_HIGH, x)
    r = fused_multiply_add(k, _LN2_LOW, -r)  # less the remainder
    return polynomial(r, TAYLOR) * f64_from_bits(shift_left(subtract(_BIAS, np.uint64(np.int64(k))), _EXPONENT))


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
