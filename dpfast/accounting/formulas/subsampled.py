"""The Rényi curve of Gaussian noise on a Poisson sample: a finite sum at whole orders, a series between them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from dpfast.exact.balls import ball, float_above, working_precision
from dpfast.exact.elementary import SLACK, Floats, exp_minus, one_minus_exp

__all__ = ["log_moment_between", "log_moments"]


# A series ends where its terms are below this share of the moment less 1, or after so many.
_NEGLIGIBLE = 1e-9
_MOST_TERMS = 500


@lru_cache(maxsize=4)
def _terms(orders: tuple[int, ...]) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Return order, k and ln C(order, k), rounded to nearest, for 2 <= k <= order, and where each order starts."""
    logs: list[float] = []
    with working_precision():
        for order in orders:
            ways = fmpz(order)
            for k in range(2, order + 1):
                ways = ways * (order - k + 1) // k
                logs.append(float(arb(ways).log().mid()))
    sizes = np.array(orders) - 1
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    chosen = np.concatenate([np.arange(2.0, order + 1) for order in orders])
    return np.repeat(np.array(orders, np.float64), sizes), chosen, np.array(logs), starts


def log_moments(orders: tuple[int, ...], rate: Fraction, squared_mu: Fraction) -> list[arb]:
    """Return (a - 1) D_a of Gaussian noise on a Poisson sample, for whole orders a >= 2, rounded up.

    Guarantee
        (a - 1) D_a = ln(1 + sum over k of C(a, k) (1 - q)**(a - k) q**k (exp(k (k - 1) mu**2 / 2) - 1)), the
        larger of the two directions of add/remove (Mironov, Talwar, Zhang 2019, theorems 4 and 5, section 3.3;
        the 1 taken out of the binomial sum leaves positive terms). A term's logarithm is a sum of four parts,
        each off by 2 roundings, and so by less than 2**-50 of the parts' magnitudes; the largest such error is
        added to all, and `elementary`'s beside it.

    Parameters
    ----------
    orders
        Whole numbers of at least 2.
    rate
        Each unit's probability, above 0 and below 1.
    squared_mu
        (sensitivity / scale)**2.

    """
    order, k, log_ways, starts = _terms(orders)
    with working_precision():
        log_out, log_in = float(ball(1 - rate).log().mid()), float(ball(rate).log().mid())
        half = float_above(ball(squared_mu / 2))
    grown = k * (k - 1.0) * half
    out, into = (order - k) * log_out, k * log_in
    logs = log_ways + out + into + grown
    magnitudes = log_ways + np.abs(out) + np.abs(into) + grown
    most = np.maximum.reduceat(logs, starts)
    # What lies more than 744 below the largest term is raised to it.
    below = np.minimum(np.repeat(most, np.diff(starts, append=len(k))) - logs, 744.0)
    sums = np.add.reduceat(exp_minus(below) * one_minus_exp(grown), starts) * (1.0 + 4.0 * SLACK)
    raised = most + np.maximum.reduceat(magnitudes, starts) * 2.0**-50
    with working_precision():
        return [(ball(top).exp() * ball(total)).log1p() for top, total in zip(raised, sums, strict=True)]


def log_moment_between(order: float, rate: Fraction, squared_mu: Fraction) -> arb:
    """Return (a - 1) D_a at an order a that is no whole number, as a ball.

    The moment is (1 - q)**a exp(-z**2 / 2s**2) / 2 times the sum over i >= 0 of C(a, i) (f((i - z)/s) +
    f((i + z - a)/s)), with s = 1/mu, z = 1/2 + s**2 ln(1/q - 1) and f(x) = exp(x**2 / 2) erfc(x / sqrt 2)
    (Mironov, Talwar, Zhang 2019, section 3.3, each term completed to a square). From i > a on the signs
    alternate and the terms fall, since abs C(a, i) and f do: what is left out is at most the next term.
    """
    with working_precision():
        a, q, mu = ball(order), ball(rate), ball(squared_mu).sqrt()
        z = (1 / q - 1).log() / mu**2 + arb("0.5")
        factor = (a * (-q).log1p() - (z * mu) ** 2 / 2).exp() / 2
        ways, total, i = arb(1), arb(0), 0
        while True:
            term = factor * ways * (_mills((i - z) * mu) + _mills((i + z - a) * mu))
            if i > order and (abs(term) < _NEGLIGIBLE * (total - 1) or i > _MOST_TERMS):
                return (total + arb(0, float_above(abs(term)))).log()
            total += term
            ways *= (a - i) / (i + 1)
            i += 1


def _mills(x: arb) -> arb:
    """Return exp(x**2 / 2) erfc(x / sqrt 2), which falls."""
    return (x * x / 2).exp() * (x / arb(2).sqrt()).erfc()
