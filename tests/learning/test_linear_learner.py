"""The linear learner: its losses' range, its privacy and what it finds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import dpfast as dpf
from dpfast.accounting.accountants.zcdp import ZCDP
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.learning import experts
from dpfast.learning.experts import LOSS_UNITS
from dpfast.learning.linear_learner import LinearLearner
from dpfast.ledger.account import Identity
from dpfast.testing import SeededRandom


@pytest.mark.statistical
def test_it_finds_the_least_coordinate(seed):
    """False-failure rate at most 1e-9: that of the bound. Row 11-11."""
    generator = np.random.default_rng(seed)
    features, examples = 8, 50_000
    means = generator.uniform(-0.5, 0.5, features)
    data = np.clip(means + generator.uniform(-0.5, 0.5, (examples, features)), -1.0, 1.0)
    learner = LinearLearner(features, examples, epsilon=1.0, delta=1e-6)
    theta = learner.learn(data, random=SeededRandom(seed))
    assert theta.shape == (features,)
    assert (theta >= 0).all()
    assert theta.sum() == pytest.approx(1.0)
    bound = learner.excess_bound(beta=1e-9)
    assert bound < 0.2
    assert theta @ means - means.min() <= bound


def test_a_replaced_example_moves_scores_by_one_unit_at_most(monkeypatch):
    """Erratum E34: losses are (1 + x) / 2. The mutant, x itself, would move them by two."""
    seen = []

    def recording(scores, epsilon, sensitivity, random, threads):
        assert sensitivity == LOSS_UNITS
        seen.append(-scores[1])
        return np.zeros(len(scores), np.int64)

    monkeypatch.setattr(experts, "exponential", recording)
    for row in ([1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [9.0, -9.0, np.nan], [np.inf, -np.inf, 0.5]):
        LinearLearner(3, 2, epsilon=1.0, delta=1e-6).learn([row, [0.0, 0.0, 0.0]])
    assert all(losses.min() >= 0 and losses.max() <= LOSS_UNITS for losses in seen)
    assert seen[0].tolist() == [LOSS_UNITS, 0, LOSS_UNITS // 2]
    assert abs(seen[0] - seen[1]).max() == LOSS_UNITS


def test_its_event_fits_the_budget_and_a_ledger():
    learner = LinearLearner(10, 1000, epsilon=0.5, delta=1e-6)
    assert 0.4999 < ZCDP(learner.event).epsilon(1e-6) <= 0.5
    pure = LinearLearner(10, 1000, epsilon=0.5)
    assert pure.event.event.epsilon * 1000 <= 0.5
    ledger = dpf.Ledger(epsilon=0.5)
    ledger.charge(pure.charge, dataset="examples", privacy_unit="row", neighbors="replace")
    assert ledger.remaining.epsilon < 1e-12


def test_it_pays_once_before_it_learns():
    ledger = dpf.Ledger(epsilon=0.7)
    learner = LinearLearner(3, 20, epsilon=0.5, ledger=ledger, dataset="examples", privacy_unit="column:person")
    with pytest.raises(ParameterError, match="secure"):
        learner.learn(np.zeros((20, 3)), random=SeededRandom(1))
    with pytest.raises(ParameterError, match="threads"):
        learner.learn(np.zeros((20, 3)), threads=0)
    with pytest.raises(ParameterError, match="of shape"):
        learner.learn(np.zeros((21, 3)))
    assert (ledger.spent.epsilon, learner.entry) == (0.0, None)
    assert learner.learn(np.zeros((20, 3))).sum() == pytest.approx(1.0)
    assert learner.entry == 1
    assert ledger.spent.epsilon == pytest.approx(0.5)
    assert ledger.identity == Identity("examples", "column:person", "replace")
    other = LinearLearner(3, 20, epsilon=0.5, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        other.learn(np.zeros((20, 3)))
    assert other.entry is None


def test_it_learns_once_and_is_not_copied():
    learner = LinearLearner(3, 20, epsilon=0.5)
    learner.learn(np.zeros((20, 3)))
    with pytest.raises(BudgetExceededError, match="has learnt"):
        learner.learn(np.zeros((20, 3)))
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(LedgerError, match="cannot be pickled or copied"):
            copied(learner)


def test_the_eta_of_the_reference_would_cost_less_than_it_was_given():
    """Erratum E34: with losses in [-1, 1] its eta really costs 0.195 of the 0.5 that it was set for."""
    from dpfast.accounting.events import ExponentialMechanism
    from dpfast.learning.regret import private_eta

    eta = private_eta(10_000, 0.5, 1e-6, method="advanced")
    assert ZCDP(ExponentialMechanism(4 * eta).times(10_000)).epsilon(1e-6) == pytest.approx(0.195, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: LinearLearner(2, 10, epsilon=1.0).learn(np.zeros((10, 3))), "examples"),
        (lambda: LinearLearner(2, 10, epsilon=1.0).learn(np.zeros((9, 2))), "examples"),
        (lambda: LinearLearner(2, 1, epsilon=1.0).learn(np.array([["a", "b"]])), "examples"),
    ],
)
def test_bad_input(call, argument):
    with pytest.raises(ParameterError) as caught:
        call()
    assert caught.value.argument == argument
