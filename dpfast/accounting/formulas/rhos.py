"""The rho of single mechanisms by their epsilon: as balls for one event, and as float64 columns for a million.

Why each holds stands in `dpfast.accounting.accountants.zcdp.cost`. Columns are computed in additions, multiplications
and divisions of floats, whose error `dpfast.exact.elementary` bounds: it is below a relative 2**-40.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb

from dpfast.exact.elementary import Floats, exp_minus, horner, log, one_minus_exp

__all__ = ["bounded_range", "bounded_range_column", "laplace", "laplace_column", "pure", "pure_column"]

_BERNOULLI = ["1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798", "-174611/330"]
_RANGE_SERIES = [
    float(Fraction(b) / math.factorial(2 * n) * (1 + Fraction(1, 2 * n))) for n, b in enumerate(_BERNOULLI, start=1)
]
_LAPLACE_SERIES = [(-1) ** n / math.factorial(n + 2) for n in range(18)]


def laplace(epsilon: arb) -> arb:
    """Return the rho of continuous Laplace noise, e + exp(-e) - 1."""
    return epsilon + (-epsilon).expm1()


def laplace_column(epsilon: Floats) -> Floats:
    """Return `laplace` of a column."""
    near = np.minimum(epsilon, 1.0)
    return np.where(epsilon < 1.0, near * near * horner(_LAPLACE_SERIES, near), epsilon - one_minus_exp(epsilon))


def pure(epsilon: arb) -> arb:
    """Return the rho of whatever is (epsilon, 0)-private, e tanh(e/2)."""
    return epsilon * (epsilon / 2).tanh()


def pure_column(epsilon: Floats) -> Floats:
    """Return `pure` of a column."""
    m = one_minus_exp(epsilon)
    return epsilon * (m / (2.0 - m))


def bounded_range(eta: arb) -> arb:
    """Return the rho of a bounded range: x - 1 - ln x with x = eta / (e**eta - 1), without overflow."""
    log_ratio = eta.log() - eta - (-(-eta).expm1()).log()
    return log_ratio.expm1() - log_ratio


def bounded_range_column(eta: Floats) -> Floats:
    """Return `bounded_range` of a column; below 1 by sum B_2n eta**2n (1 + 1/2n) / (2n)!, alternating and falling."""
    square, far = np.minimum(eta, 1.0) ** 2, np.maximum(eta, 1.0)
    ratio = far / one_minus_exp(far)
    return np.where(eta < 1.0, square * horner(_RANGE_SERIES, square), ratio * exp_minus(far) - 1.0 + far - log(ratio))
