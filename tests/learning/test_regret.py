"""Bounds on regret against the figures of the theorems, and against play."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpfast.accounting.accountants.zcdp import ZCDP
from dpfast.accounting.events import ExponentialMechanism
from dpfast.errors import ParameterError
from dpfast.learning.regret import (
    as_decimal,
    best_eta,
    likely_regret_bound,
    private_eta,
    private_regret_bound,
    regret_bound,
    rounds_for_regret,
)


def test_golden_numbers():
    """Rows 11-7, 11-8 and 11-9."""
    assert regret_bound(100, 10_000) == pytest.approx(0.0429193, abs=5e-8)
    assert regret_bound(100, 10_000) == pytest.approx(2 * math.sqrt(math.log(100) / 10_000))
    assert private_eta(10_000, 0.5, 1e-6, method="advanced") == pytest.approx(2.37800e-4, rel=1e-5)
    assert private_eta(10_000, 0.5, 1e-6) == pytest.approx(1.15252e-3, rel=1e-5)
    assert private_eta(10_000, 0.5, 1e-6) / private_eta(10_000, 0.5, 1e-6, method="advanced") == pytest.approx(
        4.85, abs=0.005
    )
    assert private_regret_bound(100, 10_000, 0.5, 1e-6) == pytest.approx(3.873148, abs=5e-7)
    # What the eta of the theorem really costs.
    spent = ZCDP(ExponentialMechanism(2 * private_eta(10_000, 0.5, 1e-6, method="advanced")).times(10_000))
    assert spent.epsilon(1e-6) == pytest.approx(0.093465, abs=5e-7)


def test_rounds_and_eta_fit_the_bound():
    """Row 11-10."""
    for regret in (0.5, 0.05, 0.007):
        rounds = rounds_for_regret(30, regret)
        assert regret_bound(30, rounds) <= regret < regret_bound(30, rounds - 1)
    least = regret_bound(30, 500)
    assert all(regret_bound(30, 500, best_eta(30, 500) * factor) > least for factor in (0.9, 1.1))
    assert likely_regret_bound(100, 10_000, 0.01, 0.05) - regret_bound(100, 10_000, 0.01) == pytest.approx(
        math.sqrt(math.log(2000) / 10_000)
    )


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.5, 3.0])
@pytest.mark.parametrize("rounds", [1, 10, 10_000, 10**7])
def test_eta_is_rounded_down(epsilon, rounds):
    """Rule 10: squares and multiples in rationals never exceed the budget, read as decimals as mechanisms read them."""
    plain = private_eta(rounds, epsilon)
    assert rounds * as_decimal(2.0 * plain) <= as_decimal(epsilon)
    # It loses less than a unit of 1e-18 in a round, and a float's last figure.
    unit = Fraction(1, 10**18)
    assert rounds * (as_decimal(2.0 * plain) * (1 + Fraction(1, 2**50)) + unit) > as_decimal(epsilon)
    approximate = private_eta(rounds, epsilon, 1e-6)
    assert approximate >= plain
    if approximate > plain:
        assert ZCDP(ExponentialMechanism(2.0 * approximate).times(rounds)).epsilon(1e-6) <= epsilon


@pytest.mark.parametrize("chooser", ["fixed", "adaptive"])
def test_the_expected_regret_stays_below_the_bound(chooser, seed):
    """Theorem 11.1 is about expectations, which are computed here from the law: no chance is involved."""
    generator = np.random.default_rng(seed)
    experts, rounds = 5, 400
    eta = best_eta(experts, rounds)
    sums, expected = np.zeros(experts), 0.0
    for _ in range(rounds):
        law = np.exp(-eta * (sums - sums.min()))
        law /= law.sum()
        # The worst chooser hits whom the player trusts most.
        losses = generator.random(experts) if chooser == "fixed" else (law >= np.sort(law)[-2]).astype(float)
        expected += law @ losses
        sums += losses
    assert (expected - sums.min()) / rounds <= regret_bound(experts, rounds, eta)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: private_eta(10, 2.0, 1e-6, method="advanced"), "method"),
        (lambda: private_eta(10, 0.5, method="advanced"), "method"),
        (lambda: private_eta(10**6, 1e-13), "rounds"),
        (lambda: private_regret_bound(2, 10, 100.0, 1e-6), "epsilon"),
    ],
)
def test_bad_input(call, argument):
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.argument == argument
