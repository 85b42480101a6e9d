"""Rényi curves against quadrature and sums, and what zero-concentrated privacy says of them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.accounting.accountants.rdp import ORDERS, cost
from dpfast.accounting.accountants.zcdp import cost as rho_cost
from dpfast.accounting.events import (
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
)
from dpfast.accounting.formulas import curves
from dpfast.accounting.formulas.subsampled import log_moment_between, log_moments
from dpfast.exact.balls import ball, working_precision

from .truth import renyi

FEW = settings(max_examples=20, deadline=None)
EXCESS, EPSILON = st.floats(0.01, 200.0), st.floats(1e-3, 20.0)


def mid(x: arb) -> mp.mpf:
    return mp.mpf(x.mid().str(50, radius=False))


def ball_of(function, *arguments):
    with working_precision():
        return mid(function(*(ball(argument) for argument in arguments)))


def test_orders():
    assert list(ORDERS) == sorted(set(ORDERS))
    assert ORDERS[0] == 1.01
    assert ORDERS[-1] > 9e4


@settings(max_examples=15, deadline=None)
@given(EXCESS, EPSILON)
def test_laplace_by_quadrature(excess, epsilon):
    order = 1 + min(excess, 20.0)
    with mp.workdps(30):
        p, q = (lambda x: mp.exp(-abs(x)) / 2), (lambda x: mp.exp(-abs(x - epsilon)) / 2)
        exact = renyi(p, q, mp.mpf(order), [-mp.inf, 0, epsilon, mp.inf])
        assert abs(ball_of(curves.laplace, order, epsilon) - exact) <= mp.mpf(10) ** -15 * (1 + exact)


@FEW
@given(EXCESS, EPSILON, st.integers(2, 20))
def test_responses_by_their_sum(excess, epsilon, k):
    with mp.workdps(60):
        a, e = mp.mpf(1 + excess), mp.mpf(epsilon)
        total = mp.exp(e) + k - 1
        p, r = mp.exp(e) / total, 1 / total
        exact = mp.log(p**a * r ** (1 - a) + r**a * p ** (1 - a) + (k - 2) * r) / (a - 1)
        with working_precision():
            found = mid(curves.randomized_response(ball(1 + excess), ball(epsilon), k))
        assert abs(found - exact) <= mp.mpf(10) ** -40 * (1 + exact)


@FEW
@given(EXCESS, EPSILON, st.floats(0.0, 1.0))
def test_bounded_range_is_the_largest(excess, eta, share):
    """Soundness rule 22: no pair of losses t and t - eta diverges further, and the best t attains it."""
    with mp.workdps(60):
        a, e = mp.mpf(1 + excess), mp.mpf(eta)
        found = ball_of(curves.bounded_range, 1 + excess, eta)

        def divergence(t):
            q = (mp.exp(-t) - mp.exp(-e)) / (1 - mp.exp(-e))
            return mp.log(q * mp.exp(a * t) + (1 - q) * mp.exp(a * (t - e))) / (a - 1)

        assert divergence(share * e) <= found + mp.mpf(10) ** -40
        # Falls on both sides of the largest: a search by thirds.
        low, high = mp.mpf(0), e
        for _ in range(120):
            one, other = low + (high - low) / 3, high - (high - low) / 3
            low, high = (one, high) if divergence(one) < divergence(other) else (low, other)
        assert abs(divergence(low) - found) <= mp.mpf(10) ** -15 * (1 + found)


@FEW
@given(st.floats(1e-4, 30.0))
def test_rho_bounds_the_curve(epsilon):
    """Soundness rule 21: D_a <= rho a at every order, next to equality at the smallest."""
    for event in (Laplace(1.0, epsilon), Pure(epsilon), ExponentialMechanism(epsilon), DiscreteLaplace(1 / epsilon)):
        rho, curve = rho_cost(event)[0], cost(event)[0]
        assert all(one <= math.ceil(rho * Fraction(order)) + 1 for one, order in zip(curve, ORDERS, strict=True))
        assert curve[0] / (rho * ORDERS[0]) > 0.95 / (1 + epsilon)
        assert list(curve) == sorted(curve)


def test_kinds_in_their_order():
    """The exponential mechanism below Laplace below what is only pure, at every order."""
    events = [ExponentialMechanism(1.0), Laplace(1.0), Pure(1.0)]
    low, middle, high = (cost(event)[0] for event in events)
    assert all(x < y < z for x, y, z in zip(low, middle, high, strict=True))
    assert cost(RandomizedResponse(1.0)) == cost(Pure(1.0)) == cost(DiscreteLaplace(1.0))
    assert all(x < y for x, y in zip(cost(RandomizedResponse(1.0, 9))[0], high, strict=True))


def sampled_moment(order, rate, sigma, flip=False) -> mp.mpf:
    def q(x):
        return mp.npdf(x, 0, sigma)

    def p(x):
        return (1 - rate) * mp.npdf(x, 0, sigma) + rate * mp.npdf(x, 1, sigma)

    top = order if not flip else 1
    points = [-30 * sigma, -5 * sigma, 0, 0.5, 1, top / 2 + 0.5, top, top + 5 * sigma, top + 30 * sigma]
    return (order - 1) * (renyi(q, p, order, points) if flip else renyi(p, q, order, points))


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.5, 2.0), (0.9, 0.7), (0.001, 5.0), (0.1, 10.0)])
@pytest.mark.parametrize("order", [2, 3, 7, 2.1, 2.5, 7.8, 9.9])
def test_sampled_gaussian_by_quadrature(order, rate, sigma):
    """Upper bounds of both directions of add/remove, and tight to 9 digits."""
    squared = Fraction(1 / sigma**2)
    with mp.workdps(30):
        exact = sampled_moment(mp.mpf(order), mp.mpf(rate), mp.mpf(sigma))
        if order == int(order):
            (found,) = log_moments((int(order),), Fraction(rate), squared)
        else:
            found = log_moment_between(float(order), Fraction(rate), squared)
        assert exact * (1 - mp.mpf(10) ** -14) <= mp.mpf(float(found.upper()))
        assert mp.mpf(float(found.upper())) <= exact * (1 + mp.mpf(10) ** -8) + mp.mpf(10) ** -20
        assert sampled_moment(mp.mpf(order), mp.mpf(rate), mp.mpf(sigma), flip=True) <= exact * (1 + mp.mpf(10) ** -12)


@pytest.mark.parametrize(("rate", "scale"), [(0.01, 1.0), (1e-9, 0.3), (0.999, 100.0), (0.5, 1e-3), (0.3, 1e-50)])
def test_sampled_gaussian_rises_and_amplifies(rate, scale):
    sampled, plain = cost(PoissonSubsampled(Gaussian(scale), rate))[0], cost(Gaussian(scale))[0]
    assert list(sampled) == sorted(sampled)
    assert all(x <= y for x, y in zip(sampled, plain, strict=True))
    # (a - 1) D_a is convex, and so are the chords below 2.
    products = [(Fraction(a) - 1) * d for a, d in zip(ORDERS, sampled, strict=True) if a <= 2000]
    slopes = [
        (y - x) / (Fraction(b) - Fraction(a))
        for a, b, x, y in zip(ORDERS, ORDERS[1:], products, products[1:], strict=False)
    ]
    assert all(low <= high * (1 + Fraction(1, 10**7)) + 10**6 for low, high in pairwise(slopes))


def test_sampled_laplace_takes_the_better_curve():
    sampled, plain = PoissonSubsampled(Laplace(1.0), 0.999), Laplace(1.0)
    assert all(x <= y for x, y in zip(cost(sampled)[0], cost(plain)[0], strict=True))
    assert cost(PoissonSubsampled(plain, 1.0)) == cost(plain)
    amplified = math.log1p(0.01 * math.expm1(1.0))
    found, expected = cost(PoissonSubsampled(plain, 0.01))[0], cost(Pure(amplified))[0]
    assert found == pytest.approx(expected, rel=1e-9)
