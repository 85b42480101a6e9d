"""Methods on histograms take the same arguments, and a delta buys what it can."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import dpfast as dpf
from dpfast.accounting.accountants import gdp, zcdp
from dpfast.accounting.accountants.zcdp import largest_rho
from dpfast.accounting.budget import Budget, read_budget
from dpfast.accounting.events import Gaussian
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.synthesis.fitted.mwem import plan_rounds
from dpfast.synthesis.histograms.ahp import noises_of_clusters
from dpfast.synthesis.preparing import Task
from dpfast.synthesis.shares import SharedBudget
from dpfast.testing import SeededRandom

PREFIX = dpf.workloads.prefix(64)
COUNTS = np.arange(64) * 50
#: What each method asks for beside a histogram.
METHODS = {
    "adaptive_hierarchy": {},
    "ahp": {},
    "dawa": {},
    "estimate_histogram": {},
    "mwem": {"workload": PREFIX},
    "matrix_mechanism": {"workload": PREFIX},
    "PrivateMultiplicativeWeights": {},
    "projection_mechanism": {"workload": PREFIX},
    "boost_queries": {"workload": PREFIX, "samples": 4, "rounds": 4},
}
ASKED = ["epsilon", "delta", "rho", "neighbors", "ledger", "dataset", "privacy_unit", "random", "threads", "progress"]


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_the_same_arguments(name):
    assert set(ASKED) <= set(inspect.signature(getattr(dpf, name)).parameters)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 0.1}], ids=repr)
def test_each_tells_how_far_it_has_come_and_what_it_spent(name, budget):
    told: list[object] = []
    method = getattr(dpf, name)
    released = method(COUNTS, **METHODS[name], **budget, random=SeededRandom(1), progress=told.append)
    assert told
    spent = getattr(released, "spent", None)
    if spent is not None:
        amount = spent.rho if "rho" in budget else spent.epsilon
        assert amount == pytest.approx(budget.get("rho", 1.0), rel=1e-9)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("delta", [0.1, 1e-9])
def test_a_ledger_of_epsilons_pays_for_a_delta_at_most(name, delta):
    ledger = dpf.Ledger(epsilon=1.0, delta=delta)
    getattr(dpf, name)(COUNTS, **METHODS[name], epsilon=1.0, delta=delta, ledger=ledger)
    assert 0.99 < ledger.spent.epsilon <= 1.0
    assert ledger.spent.delta in (0.0, delta)
    full = dpf.Ledger(epsilon=0.999, delta=delta)
    with pytest.raises(BudgetExceededError):
        getattr(dpf, name)(COUNTS, **METHODS[name], epsilon=1.0, delta=delta, ledger=full)


@pytest.mark.parametrize("name", ["adaptive_hierarchy", "ahp", "dawa", "mwem"])
def test_a_ledger_of_rho_pays_for_what_is_drawn(name):
    ledger = dpf.Ledger(epsilon=1.0, delta=0.1, accountant="zcdp", conversion_delta=0.1)
    getattr(dpf, name)(COUNTS, **METHODS[name], epsilon=1.0, delta=0.1, ledger=ledger)
    rho = largest_rho(Fraction(1), Fraction(1, 10)) / UNITS_PER_ONE
    assert 0.95 * rho < ledger.spent.rho <= rho


@pytest.mark.parametrize("accountant", [None, "basic", "zcdp", "rdp"])
@pytest.mark.parametrize("name", ["adaptive_hierarchy", "ahp", "estimate_histogram", "mwem", "mwem, flipped", "dawa"])
def test_noise_is_the_least_that_a_ledger_of_epsilons_allows(name, accountant, monkeypatch):
    """Other ledgers are charged the noise itself, by its rho; permute-and-flip has no cost of its own in GDP."""
    name, _, flipped = name.partition(", ")
    split = SharedBudget.of.__func__
    seen: list[Budget] = []

    def spied(cls, *given, **more):
        seen.append((shared := split(cls, *given, **more)).split)
        return shared

    monkeypatch.setattr(SharedBudget, "of", classmethod(spied))
    more = {} if accountant is None else {"ledger": dpf.Ledger(epsilon=2.0, delta=0.2, accountant=accountant)}
    if flipped:
        more["selection"] = "permute_and_flip"
    getattr(dpf, name)(COUNTS, **METHODS[name], epsilon=1.0, delta=0.1, **more)
    by_gdp = accountant in (None, "basic") and name != "dawa" and not flipped
    units = (gdp if by_gdp else zcdp).largest_rho_of_units(UNITS_PER_ONE, UNITS_PER_ONE // 10)
    assert [(budget.kind, budget.units) for budget in seen] == [("rho", units)]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.1, 1e-2), (4.0, 0.3)])
def test_all_noise_together_costs_what_was_given(epsilon, delta, neighbors):
    task = Task.read(COUNTS, None, epsilon, delta, None, neighbors, 2, only_noise=True)
    assert task.budget.kind == "rho"
    drawn = [noise.scale / math.sqrt(task.moved) for noise in noises_of_clusters(task)]
    cost = dpf.accounting.gdp([Gaussian(scale) for scale in drawn]).delta(epsilon)
    assert 0.98 * delta < cost <= delta


@pytest.mark.parametrize("rounds", [10, 64])
def test_selections_and_noise_together_cost_what_was_given(rounds):
    """In GDP, where a selection of range epsilon is sqrt(pi / 8) epsilon-GDP."""
    epsilon, delta = 1.0, 0.1
    plan = plan_rounds(
        PREFIX, read_budget(epsilon, delta, None), "add_remove", rounds, "exponential", charged_whole=True
    )
    assert plan.shared.split.kind == "rho"
    drawn = [Gaussian(plan.total_noise.scale), Gaussian(plan.noise.scale).times(plan.rounds)]
    assert (plan.selection is None) == (rounds == 64)
    if plan.selection is not None:
        # Noise that costs as much; the factor is far more than the error of these operations.
        as_noise = (1 + 1e-12) / (math.sqrt(math.pi / 8) * plan.selection.epsilon)
        drawn.append(Gaussian(as_noise).times(plan.rounds))
    cost = dpf.accounting.gdp(drawn).delta(epsilon)
    assert 0.98 * delta < cost <= delta


def test_noise_that_depends_on_what_was_seen_is_gaussian_private_together():
    """A second measurement whose noise the first one decides: together no more than one with all of the mu (the claim
    of `SharedBudget.of`), by quadrature of the hockey-stick divergence on both sides; rules of several kinds.
    """

    def beyond(mu, epsilon):
        """P(N(mu, 1)'s loss against N(0, 1) exceeds epsilon), less exp(epsilon) times that of N(0, 1)."""
        mu = np.maximum(mu, 1e-12)
        tail = norm.cdf(mu / 2 - epsilon / mu)
        return np.maximum(tail - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu), 0.0)

    whole, first = 1.5, 0.8
    rest = math.sqrt(whole**2 - first**2)
    seen, step = np.linspace(-12.0, 12.0, 40_001, retstep=True)
    rules = [np.where(seen > cut, low, high) * rest for cut in (-1.0, 0.0, 1.0) for low, high in ((0, 1), (1, 0))]
    rules += [rest / (1 + seen**2), rest * np.abs(np.sin(3 * seen))]
    for sign in (1.0, -1.0):
        density = norm.pdf(seen - first * (sign > 0))
        loss = sign * (first * seen - first**2 / 2)
        for rule in rules:
            for epsilon in (0.1, 0.5, 1.0, 3.0):
                found = step * (density * beyond(rule, epsilon - loss)).sum()
                assert found <= beyond(whole, epsilon) + 1e-9


def test_rounds_that_are_paid_one_by_one_need_their_own_price():
    asked = {"epsilon": 1.0, "delta": 0.1, "rounds": 30, "pay": "by_round"}
    with pytest.raises(ParameterError, match="adds up epsilons"):
        dpf.mwem(COUNTS, PREFIX, **asked, ledger=dpf.Ledger(epsilon=1.0, delta=0.1))
    ledger = dpf.Ledger(epsilon=1.0, delta=0.1, accountant="zcdp", conversion_delta=0.1)
    assert dpf.mwem(COUNTS, PREFIX, **asked, ledger=ledger).complete


@pytest.mark.parametrize("moved", [1, 2])
@pytest.mark.parametrize("measurements", [1, 3, 10, 30, 100, 1000])
def test_what_is_split_is_what_leaves_less_noise(measurements, moved):
    given = read_budget(1.0, 1e-6, None)
    shared = SharedBudget.of(given, measurements, moved)
    rho = largest_rho(Fraction(1), Fraction(1, 10**6)) / UNITS_PER_ONE
    laplace, gaussian = 2.0 * (measurements * moved) ** 2, measurements * moved / (2 * rho)
    assert shared.split.kind == ("rho" if gaussian < laplace else "epsilon")
    assert shared.charged == (given if shared.is_converted else Budget("epsilon", UNITS_PER_ONE))


def test_both_kinds_are_chosen():
    """At epsilon 1 and delta 1e-6 one measurement is better by Laplace noise, and a thousand by Gaussian noise."""
    given = read_budget(1.0, 1e-6, None)
    assert [SharedBudget.of(given, many, 1).split.kind for many in (1, 1000)] == ["epsilon", "rho"]
