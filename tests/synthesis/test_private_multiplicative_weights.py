"""Online answers: what they cost, when they are measured, when they end, and the bound on their errors."""

from __future__ import annotations

import copy
import pickle
import traceback

import numpy as np
import pytest

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.synthesis.fitted.exact_workload import ExactWorkload
from dpfast.testing import SeededRandom

from .test_privacy import neighbours

COUNTS = np.array([900, 3100, 4200, 5000, 3800, 2600, 1200, 200])


def online(**given):
    return dpf.PrivateMultiplicativeWeights(COUNTS, **{"epsilon": 1.0, **given})


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("signed", [False, True])
def test_what_is_tested_moves_no_further_than_claimed(relation, signed, seed):
    """Soundness rule 25, over all neighbours, for the extreme coefficients and random ones."""
    generator = np.random.default_rng(seed)
    least = -1.0 if signed else 0.0
    rows = [[least, 1.0, 0.3, 1 / 3], generator.uniform(least, 1.0, 4), [1.0, 1.0, least, least]]
    queries = ExactWorkload(dpf.workloads.matrix(np.array(rows)), 20)
    made = dpf.PrivateMultiplicativeWeights(np.ones(4, int), epsilon=1.0, signed=signed, neighbors=relation)
    claimed = made._noise.event.sensitivity
    cells, public = generator.integers(1, 50, 4), generator.integers(0, 2**26, 3)
    tested = np.abs(queries.answers(cells) - public)
    reached = 0
    for change in neighbours(4, relation):
        moved = np.abs(np.abs(queries.answers(cells + change) - public) - tested)
        assert moved.max() <= claimed
        reached = max(reached, int(np.abs(queries.answers(cells + change) - queries.answers(cells)).max()))
    assert reached == claimed


@pytest.mark.parametrize("amount", [0.1, 1 / 3, 2.0])
def test_the_whole_budget_is_charged_at_creation_and_no_more(amount):
    ledger = dpf.Ledger(epsilon=2.0)
    made = online(epsilon=amount, updates=7, ledger=ledger)
    assert amount * (1 - 1e-12) <= ledger.spent.epsilon <= amount == made.spent.epsilon
    charges = ledger.history()
    assert charges["count"].to_list() == [1, 1, 7]
    made.answer_all(dpf.workloads.prefix(8))
    assert ledger.history().height == charges.height
    rho = dpf.Ledger(epsilon=20.0, delta=1e-6, accountant="zcdp")
    left = rho.remaining.rho
    made = online(epsilon=None, rho=0.1, updates=7, ledger=rho)
    assert left - rho.remaining.rho <= 0.1 + 1e-12
    assert zcdp.cost(made._noise.event)[0] * 7 <= 0.1e18
    with pytest.raises(BudgetExceededError):
        online(epsilon=3.0, ledger=dpf.Ledger(epsilon=2.0))
    assert basic.cost(online(updates=5)._noise.event)[0] * 5 <= 10**18


@pytest.mark.statistical
def test_few_measurements_answer_many_queries(seed):
    """False-failure rate below 1e-12: at epsilon 10**5 no noise reaches 1 but with probability e**-100."""
    workload = dpf.workloads.all_range(8)
    made = online(epsilon=1e5, updates=12, threshold=40.0, total=int(COUNTS.sum()), random=SeededRandom(seed))
    frame = made.answer_all(workload)
    assert 0 < (frame["source"] == "measured").sum() <= 12
    assert not frame["exhausted"].any()
    assert np.abs(frame["value"].to_numpy() - workload.answer(COUNTS)).max() < 41.0
    # Asked again, one by one, none is far enough to be measured once more, or few are.
    before = made.remaining
    for row, value in zip(workload.rows(0, 5), workload.answer(COUNTS)[:5], strict=True):
        assert abs(made.answer(row).value - value) < 41.0
    assert made.answered == len(workload) + 5
    assert made.remaining <= before


def test_answers_go_on_from_the_weights_when_the_updates_are_spent(seed):
    made = online(updates=2, threshold=1e-3, epsilon=1e4, random=SeededRandom(seed))
    frame = made.answer_all(dpf.workloads.prefix(8))
    assert (made.remaining, (frame["source"] == "measured").sum()) == (0, 2)
    last = int(np.flatnonzero(frame["source"] == "measured")[-1])
    assert frame["exhausted"].to_list() == [False] * (last + 1) + [True] * (7 - last)
    weights = made.histogram
    answer = made.answer(np.eye(8)[3])
    assert (answer.source, answer.exhausted) == ("hypothesis", True)
    assert answer.value == pytest.approx(weights[3])
    assert np.array_equal(made.histogram, weights)


@pytest.mark.statistical
def test_a_query_without_error_is_seldom_measured(seed):
    """False-failure rate below 1e-12: more than 60 of 10,000 tests at 1/1000 each (Chernoff: e**-80)."""
    made = dpf.PrivateMultiplicativeWeights(
        np.full(4, 1000), epsilon=1.0, updates=100, total=4000, random=SeededRandom(seed), total_share=0.1
    )
    workload = dpf.workloads.ranges(4, np.zeros(10_000, int), np.full(10_000, 4))
    frame = made.answer_all(workload)
    assert (frame["source"] == "measured").sum() <= 60


@pytest.mark.statistical
def test_errors_keep_to_the_bound(seed):
    """False-failure rate below 1e-9, the bound's own."""
    generator = np.random.default_rng(seed)
    size, cells = 10**7, 16
    counts = generator.multinomial(size, generator.dirichlet(np.full(cells, 0.3)))
    matrix = generator.uniform(0.0, 1.0, (300, cells))
    for kind in ("real", "binary"):
        rows = matrix if kind == "real" else (matrix > 0.5).astype(np.uint8)
        workload = dpf.workloads.matrix(rows)
        given = {"updates": 600, "threshold": size / 5, "neighbors": "replace"}
        made = dpf.PrivateMultiplicativeWeights(counts, epsilon=1.0, **given, random=SeededRandom(seed))
        made = dpf.PrivateMultiplicativeWeights(
            counts, epsilon=1.0, **given, softness=size / (made._deviation * 2.0**-20), random=SeededRandom(seed)
        )
        bound = made.utility(300, 1e-9)
        assert size / 5 < bound < size / 4
        errors = np.abs(made.answer_all(workload)["value"].to_numpy() - workload.answer(counts))
        assert errors.max() <= bound


def test_without_room_there_is_no_bound():
    assert online(neighbors="replace").utility(100) == np.inf
    with pytest.raises(ParameterError, match="total"):
        online().utility(100)
    for given in ({"queries": 0}, {"queries": 10, "beta": 0.0}, {"queries": 10, "beta": 2}):
        with pytest.raises(ParameterError):
            online(neighbors="replace").utility(**given)


def test_one_seed_gives_one_stream():
    frames = [online(random=SeededRandom(3)).answer_all(dpf.workloads.all_range(8)) for _ in range(2)]
    assert frames[0].equals(frames[1])


def test_it_cannot_be_copied():
    made = online()
    for attempt in (lambda: pickle.dumps(made), lambda: copy.copy(made), lambda: copy.deepcopy(made)):
        with pytest.raises(LedgerError):
            attempt()


def test_queries_that_cannot_be():
    made = online()
    with pytest.raises(ParameterError, match="signed=True"):
        made.answer(np.full(8, -0.5))
    assert made.answered == 0
    with pytest.raises(ParameterError, match="over the shape"):
        made.answer_all(dpf.workloads.prefix(9))


@pytest.mark.parametrize("given", [{"epsilon": None}, {"rho": 1.0}, {"epsilon": 1e-18}])
def test_parameters_that_cannot_be(given):
    with pytest.raises(ParameterError):
        online(**given)


def test_it_tells_of_each_update_and_results_do_not_depend_on_threads():
    """What a function raises that is told leaves no frame that holds the exact answers."""
    counts, told = np.array([900, 3100, 4200, 5000]), []
    query = [1, 1, 0, 0]
    answers = []
    for threads in (None, 1, 4):
        online = dpf.PrivateMultiplicativeWeights(
            counts, epsilon=1.0, updates=4, random=SeededRandom(1), threads=threads, progress=told.append
        )
        answers.append([online.answer(query).value, online.answer(query).value])
        assert told == [0, 1]
        told.clear()
    assert answers[0] == answers[1] == answers[2]

    def fail(done):
        if done:
            raise RuntimeError("enough")

    online = dpf.PrivateMultiplicativeWeights(counts, epsilon=1.0, updates=4, random=SeededRandom(1), progress=fail)
    with pytest.raises(RuntimeError, match="enough") as caught:
        online.answer(query)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert not any("exact" in frame.f_locals for frame in frames)
    assert online.remaining == 3
    assert online.answer(query).source == "hypothesis"
