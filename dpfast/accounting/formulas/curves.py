"""Rényi divergences of single mechanisms, as balls: one formula each, exact for the mechanism's worst case.

Every function takes the order a > 1 as a ball and returns D_a of the mechanism's worst pair of neighbours. All are
written with exp of negative numbers only, so that nothing overflows.
"""

from __future__ import annotations

from flint import arb

__all__ = ["bounded_range", "laplace", "randomized_response"]


def laplace(order: arb, epsilon: arb) -> arb:
    """Return D_a of continuous Laplace noise with sensitivity / scale = epsilon.

    ln(a/(2a - 1) exp((a - 1) e) + (a - 1)/(2a - 1) exp(-a e)) / (a - 1) (Mironov 2017, proposition 6). It is
    convex in e and 0 at 0, so that a vector of one L1 norm costs most where it lies on an axis.

    Examples
    --------
    >>> round(float(laplace(arb(2), arb(1)).mid()), 7)
    0.6191236

    """
    inner = (order + (order - 1) * (-(2 * order - 1) * epsilon).exp()) / (2 * order - 1)
    return epsilon + inner.log() / (order - 1)


def randomized_response(order: arb, epsilon: arb, categories: int = 2) -> arb:
    """Return D_a of randomized response among ``categories`` answers.

    ln((exp(a e) + exp((1 - a) e) + k - 2) / (exp(e) + k - 1)) / (a - 1), by summing over the k answers. For two
    it is the largest of every (epsilon, 0)-private mechanism, which post-processes it (Kairouz, Oh, Viswanath
    2015; Mironov 2017, proposition 5).

    Examples
    --------
    >>> round(float(randomized_response(arb(2), arb(1)).mid()), 7)
    0.7353257

    """
    low = (-epsilon).exp()
    upper = (-(2 * order - 1) * epsilon).exp() + (categories - 2) * (-order * epsilon).exp()
    return epsilon + (upper.log1p() - ((categories - 1) * low).log1p()) / (order - 1)


def _log_one_minus_exp(x: arb) -> arb:
    return (-(-x).expm1()).log()


def bounded_range(order: arb, eta: arb) -> arb:
    """Return the largest D_a of any mechanism of bounded range eta (the exponential mechanism's index).

    At given ends t - eta and t of the loss, D_a is largest if only the ends occur (Dong, Durfee, Rogers
    2020), and E exp(a L) = y**-a (A + B y) with y = exp(-t), B = (1 - exp(-a eta)) / (1 - exp(-eta)) and
    A = exp(-a eta) - exp(-eta) B; its largest value is at y = a A / ((1 - a) B).

    Examples
    --------
    >>> round(float(bounded_range(arb(2), arb(1)).mid()), 7)
    0.240229

    """
    u, v, w = (_log_one_minus_exp(factor * eta) for factor in (order - 1, order, arb(1)))
    log_y = (order / (order - 1)).log() - eta + u - v
    return (u - w - eta - (order - 1).log() - order * log_y) / (order - 1)
