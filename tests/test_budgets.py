"""One rule and one message for every epsilon, delta and rho; the same keywords wherever data are read."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import BudgetExceededError, DpfastError, LedgerError, ParameterError

HISTOGRAM = np.array([40, 0, 7, 0, 0, 25, 0, 3])
WORKLOAD = dpf.workloads.prefix(8)
FRAME = pl.DataFrame({"cell": [0, 1, 2] * 9})
QUERIES = pl.DataFrame({"value": [3, 1, 4]})


@dataclass(frozen=True)
class Method:
    """A public method that takes a budget; ``call`` takes what a user would write."""

    name: str
    call: Callable[..., Any]
    #: The public function, of which the keywords are read.
    function: Callable[..., Any]
    delta: bool = False
    #: Whether a delta may stand beside rho: thresholds by which private keys are shown need one.
    selects_keys: bool = False
    #: Whether amounts may be columns, so that a message names a row, and all are given by name.
    columns: bool = False
    #: Whether it takes a histogram.
    histogram: bool = True
    #: The relation of neighbours if none is given: a mean over examples has a public number of them.
    neighbors: str = "add_remove"


def planned(ledger=None, **given):
    plan = dpf.plan(
        FRAME, "cell", n=dpf.count(), keys=pl.DataFrame({"cell": [0, 1, 2]}), **{"privacy_unit": "row", **given}
    )
    return plan if ledger is None else plan.run(ledger)


def released(ledger=None, **given):
    ledger = open_ledger(given) if ledger is None else ledger
    return dpf.release(
        FRAME,
        "cell",
        n=dpf.count(),
        keys=pl.DataFrame({"cell": [0, 1, 2]}),
        ledger=ledger,
        **{"privacy_unit": "row", **given},
    )


def planned_with_private_keys(**given):
    return dpf.plan(FRAME, "cell", n=dpf.count(), **{"privacy_unit": "row", "delta": 1e-6, **given})


def planned_workload(ledger=None, **given):
    keys = pl.DataFrame({"cell": [0, 1, 2]})
    plan = dpf.plan(FRAME, "cell", workload=dpf.workloads.prefix(3), keys=keys, **{"privacy_unit": "row", **given})
    return plan if ledger is None else plan.run(ledger)


def answered(ledger=None, **given):
    return dpf.answer(QUERIES, value="value", ledger=open_ledger(given) if ledger is None else ledger, **given)


def synthesized(ledger=None, **given):
    ledger = open_ledger(given) if ledger is None else ledger
    return dpf.synthesize(FRAME, dpf.Domain({"cell": [0, 1, 2]}), ledger=ledger, rounds=2, **given)


def proposed(ledger=None, **given):
    ledger = open_ledger(given) if ledger is None else ledger
    return dpf.propose_domain(FRAME, ledger=ledger, bins=2, bounds={"cell": (0, 3)}, **given)


def planned_marginals(**given):
    return dpf.plan_marginals(dpf.Domain({"cell": [0, 1, 2]}), **given)


def planned_synthesis(**given):
    return dpf.plan_synthesis(dpf.Domain({"cell": [0, 1, 2]}), rounds=2, **given)


def released_marginals(ledger=None, **given):
    ledger = open_ledger(given) if ledger is None else ledger
    return dpf.release_marginals(FRAME, dpf.Domain({"cell": [0, 1, 2]}), ledger=ledger, **given)


def regressed(**given):
    return dpf.LinearRegression((0, 5), (0, 5), **given).fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 5.0])


def queried(**given):
    return dpf.StatisticalQueryOracle([0, 1, 1], queries=2, **given)


def open_ledger(given):
    return dpf.Ledger(epsilon=10**6, delta=0.5, accountant="zcdp" if given.get("rho") is not None else "basic")


def over(method, *more):
    return lambda **given: method(HISTOGRAM, *more, **given)


METHODS = [
    Method("plan", planned, dpf.plan, delta=True),
    Method("plan with private keys", planned_with_private_keys, dpf.plan, delta=True, selects_keys=True),
    Method("release", released, dpf.release, delta=True),
    Method("answer", answered, dpf.answer, delta=True, columns=True),
    Method("synthesize", synthesized, dpf.synthesize, delta=True),
    Method("propose_domain", proposed, dpf.propose_domain, delta=True),
    Method("plan_marginals", planned_marginals, dpf.plan_marginals, delta=True),
    Method("plan_synthesis", planned_synthesis, dpf.plan_synthesis, delta=True),
    Method("release_marginals", released_marginals, dpf.release_marginals, delta=True),
    Method("plan of a workload", planned_workload, dpf.plan, delta=True),
    Method("choose", lambda **given: dpf.strategies.choose(WORKLOAD, **given), dpf.strategies.choose, delta=True),
    *(
        Method(method.__name__, over(method, WORKLOAD), method, delta=True)
        for method in (
            dpf.matrix_mechanism,
            dpf.projection_mechanism,
            dpf.boost_queries,
            dpf.mwem,
            dpf.dawa,
            dpf.ahp,
            dpf.adaptive_hierarchy,
            dpf.estimate_histogram,
        )
    ),
    *(
        Method(
            method.__name__,
            lambda method=method, more=more, **given: method(*more, **given),
            method,
            delta=neighbors == "add_remove",
            histogram=False,
            neighbors=neighbors,
        )
        for method, more, neighbors in (
            (dpf.continual_count, (10,), "add_remove"),
            (dpf.continual_sum, (10, (0, 5)), "add_remove"),
            (dpf.select_concept, ([[0, 1], [1, 1]], [0, 1]), "replace"),
            (dpf.select_outcome, ([[0.0, 1.0], [1.0, 0.5]],), "replace"),
        )
    ),
    Method("LinearRegression", regressed, dpf.LinearRegression, delta=True, histogram=False),
    Method("StatisticalQueryOracle", queried, dpf.StatisticalQueryOracle, histogram=False, neighbors="replace"),
    Method(
        "multiplicative weights",
        over(dpf.PrivateMultiplicativeWeights),
        dpf.PrivateMultiplicativeWeights,
        delta=True,
    ),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)

NOT_NUMBERS = [0, -1, -0.0, float("nan"), float("inf"), True, "1", [1], np.array([1.0]), 1e-19, 1e7, 1 + 0j]


def message_of(method, **given):
    with pytest.raises(ParameterError) as caught:
        method.call(**given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@EACH
def test_exactly_one_of_epsilon_and_rho(method):
    assert message_of(method) == (
        "epsilon must be given, or else rho, but was None; write for example epsilon=1.0 or rho=0.1"
    )
    assert message_of(method, epsilon=1, rho=0.5) == (
        "rho must be left out where epsilon is given, but was 0.5; give one of both"
    )


@EACH
def test_epsilon_and_rho_are_numbers_in_range(method):
    for wrong in NOT_NUMBERS:
        said = {name: message_of(method, **{name: wrong}) for name in ("epsilon", "rho")}
        if method.columns:
            assert all(name in text for name, text in said.items()), wrong
        else:
            assert said["epsilon"].startswith("epsilon must be a number from 1e-18 to 1e6, but was "), wrong
            assert said["rho"].startswith("rho must be a number from 1e-18 to 100000, but was "), wrong


@EACH
def test_rho_ends_where_its_epsilon_would_exceed_every_ledger(method):
    row = "[0]" if method.columns else ""
    assert message_of(method, rho=2e5).startswith(f"rho{row} must be a number from 1e-18 to 100000, but was ")


@EACH
@pytest.mark.parametrize("none", [None, 0, 0.0])
def test_no_delta_is_none_or_zero(method, none):
    if not method.delta or method.selects_keys:
        return
    method.call(epsilon=1, delta=none)
    method.call(rho=0.1, delta=none)


@EACH
@pytest.mark.parametrize("wrong", [-1e-6, 1, 1.5, float("nan"), "1e-6", False, 1e-19], ids=repr)
def test_delta_is_a_number_in_range(method, wrong):
    if not method.delta:
        assert "delta" not in inspect.signature(method.function).parameters
        return
    if method.columns:
        assert message_of(method, epsilon=1, delta=wrong).startswith("delta")
        return
    allowed = "delta must be 0, or a number from 1e-18 to below 1, but was "
    assert message_of(method, epsilon=1, delta=wrong).startswith(allowed)


@EACH
def test_beside_rho_there_is_no_delta_but_for_keys(method):
    if not method.delta:
        return
    if method.selects_keys:
        method.call(rho=0.1, delta=1e-6)
        return
    allowed = "delta must be None or 0 beside rho, which is an (epsilon, delta) for every delta, but was "
    assert message_of(method, rho=0.1, delta=1e-6).startswith(allowed)


@EACH
@pytest.mark.parametrize("amount", [1, 0.5, np.float32(0.5), np.int64(1), Decimal("0.25"), Fraction(1, 3)], ids=repr)
def test_every_kind_of_number_is_taken(method, amount):
    method.call(epsilon=amount)
    method.call(rho=amount)


@EACH
def test_epsilon_then_delta_everywhere_and_rho_by_name(method):
    parameters = inspect.signature(method.function).parameters
    names = list(parameters)
    assert parameters["rho"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["epsilon"].default is parameters["rho"].default is None
    if method.delta and not method.columns:
        assert names[names.index("epsilon") + 1] == "delta"
        assert parameters["delta"].default == 0


PAYING = [
    method
    for method in METHODS
    if not method.name.startswith(("choose", "plan", "answer", "release", "synthesize", "propose"))
]


@pytest.mark.parametrize("method", PAYING, ids=lambda method: method.name)
def test_what_touches_data_takes_a_ledger_and_what_its_guarantee_is_about(method):
    parameters = inspect.signature(method.function).parameters
    for name in ("ledger", "dataset", "privacy_unit", "random"):
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is None
    assert parameters["neighbors"].default == method.neighbors


@pytest.mark.parametrize("method", PAYING, ids=lambda method: method.name)
def test_a_ledger_is_charged_once_what_was_given_and_no_more(method):
    for given, accountant in (({"epsilon": 0.5}, "basic"), ({"rho": 0.125}, "zcdp")):
        ledger = dpf.Ledger(epsilon=8, delta=1e-6, accountant=accountant)
        released = method.call(**given, ledger=ledger, dataset="cells", privacy_unit="person")
        assert getattr(released, "entry", 1) == 1
        spent = ledger.spent.epsilon if accountant == "basic" else ledger.spent.rho
        (amount,) = given.values()
        assert 0.999 * amount <= spent <= amount
        assert (ledger.identity.dataset, ledger.identity.privacy_unit) == ("cells", "person")
        # A histogram of other data is another ledger's.
        with pytest.raises(LedgerError, match="'cells'"):
            method.call(**given, ledger=ledger, dataset="others", privacy_unit="person")


@pytest.mark.parametrize("method", PAYING, ids=lambda method: method.name)
def test_what_cannot_pay_is_refused_and_nothing_spent(method):
    small = dpf.Ledger(epsilon=0.1)
    with pytest.raises(BudgetExceededError):
        method.call(epsilon=1, ledger=small)
    assert message_of(method, rho=0.001, ledger=small).startswith(
        'rho must be left out: this ledger adds up epsilons (accountant "basic"), but was 0.001'
    )
    for wrong in ("ledger.db", 3, dpf.Ledger):
        assert message_of(method, epsilon=0.01, ledger=wrong).startswith("ledger must be a dpfast.Ledger, but was ")
    from dpfast.testing import SeededRandom

    repeatable = message_of(method, epsilon=0.01, ledger=small, random=SeededRandom(1))
    assert repeatable.startswith("random must be left out where a ledger is charged, but was ")
    for argument in ("dataset", "privacy_unit"):
        for wrong in ("", 3, b"rows"):
            message = message_of(method, epsilon=0.01, ledger=small, **{argument: wrong})
            assert message.startswith(f"{argument} must be a string that is not empty, but was ")
    for wrong in ("swap", None, True, "add remove"):
        message = message_of(method, epsilon=0.01, ledger=small, neighbors=wrong)
        assert message.startswith('neighbors must be "add_remove" or "replace", but was ')
    assert small.spent.epsilon == 0


def test_every_public_method_with_a_budget_is_asked():
    """Mechanisms that draw one value take their epsilon as a parameter of the mechanism, and no rho."""
    functions = {getattr(method.function, "__name__", "") for method in METHODS}
    budgeted = {
        name
        for name in dpf.__all__
        if callable(getattr(dpf, name)) and "rho" in inspect.signature(getattr(dpf, name)).parameters
    }
    assert budgeted - functions == set()


@pytest.mark.parametrize("accountant", ["basic", "zcdp"])
def test_allotments_ask_the_same(accountant):
    ledger = dpf.Ledger(epsilon=8, delta=1e-6, accountant=accountant)
    for given, wanted in (
        ({}, "epsilon must be given, or else rho"),
        ({"epsilon": 1, "rho": 1}, "rho must be left out where epsilon is given"),
        ({"rho": 2e5}, "rho must be a number from 1e-18 to 100000"),
        ({"epsilon": -1}, "epsilon must be a number from 1e-18 to 1e6"),
        ({"epsilon": 0.1} if accountant == "zcdp" else {"rho": 0.1}, " must be left out: this ledger adds up "),
    ):
        with pytest.raises(ParameterError) as caught:
            ledger.allot("team", **given)
        assert wanted in str(caught.value)
    assert ledger.allot("team", **{"rho" if accountant == "zcdp" else "epsilon": 0.1}, delta=None)


#: What only shows once a histogram or a parameter is used; none of it may be found after the charge.
MISTAKES = [
    *({"histogram": wrong} for wrong in (
        np.ones(7, int), np.ones((2, 4)), np.ones(8), np.ones(8, bool), np.ones(8, object), "12345678", None,
        [[1, 2], [3]], {"a": 1}, pl.DataFrame({"a": [1] * 8}), lambda: HISTOGRAM, pl.Series([1] * 7 + [None]),
        np.ma.masked_array(HISTOGRAM, [1] + [0] * 7),
    )),
    *({"threads": wrong} for wrong in (0, -1, 1.5, "2", True)),
    *({"random": wrong} for wrong in (3, "seed", np.random.default_rng(1))),
    *({"workload": wrong} for wrong in (3, "prefix", dpf.workloads.prefix, dpf.workloads.prefix(7))),
    *({"nonnegative": wrong} for wrong in ("no", 1, None, np.ones(2, bool), pl.Series([True, False]), pl.col("a"))),
    *({"strategy": wrong} for wrong in ("best", None, 3, dpf.strategies.identity(7))),
    *({"mechanism": wrong} for wrong in ("normal", 3, np.ones(2), pl.Series(["laplace"]))),
    *({"calibration": wrong} for wrong in ("loose", 3, np.ones(2))),
    *({"generator": wrong} for wrong in ("best", ["projection"], 3)),
    *({"advantage": wrong} for wrong in (1e-300, 1e-160, 0, 0.5, "1/3")),
    *({"rounds": wrong} for wrong in (0, 1.5, "2")),
    *({"total": wrong} for wrong in (-1, 1.5, "2")),
    *({"prior": wrong} for wrong in (
        np.zeros(8), np.ones(7), "uniform", [1e-300] * 7 + [1e300], [np.nan] * 8, [-1.0] * 8,
    )),
    *({"max_groups": wrong} for wrong in (0, 1.5, 2**41)),
]  # fmt: skip


@pytest.mark.parametrize("method", [one for one in PAYING if one.histogram], ids=lambda method: method.name)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: next(iter(mistake)))
def test_no_mistake_is_found_after_the_charge(method, mistake):
    parameters = inspect.signature(method.function).parameters
    (argument,) = mistake
    if argument not in parameters:
        return
    if (
        argument == "histogram"
        and "workload" not in parameters
        and getattr(mistake[argument], "shape", ()) in ((7,), (8, 1))
    ):
        return  # a histogram like any other
    if argument == "histogram" and callable(mistake[argument]) and method.function is dpf.mwem:
        return  # which takes a function, and says so
    ledger = dpf.Ledger(epsilon=1)
    given = {"histogram": HISTOGRAM, "epsilon": 0.5, "ledger": ledger, **mistake}
    if "workload" in parameters:
        given.setdefault("workload", WORKLOAD)
    try:
        method.function(**given)
    except DpfastError as error:
        caught = str(error)
    else:
        caught = ""
    # What one method refuses may be another's default, None above all.
    assert caught or mistake[argument] is None
    assert "\n" not in caught
    assert ledger.spent.epsilon == (0 if caught else 0.5)


@EACH
@pytest.mark.parametrize("amount", [1e-18, 1e-17, 1e-15, 1e-12, 1e-9])
def test_next_to_nothing_is_drawn_or_refused_at_once(method, amount):
    """What whole units are too few for is refused: no search for a scale goes on for ever."""
    for kind in ("epsilon", "rho"):
        with contextlib.suppress(DpfastError):
            method.call(**{kind: amount})


@pytest.mark.parametrize("prior", [[1e-310] * 8, [1e308] * 8, [5e-324] * 8, [1e-150, *[1.0] * 7], [1.0, *[1e150] * 7]])
@pytest.mark.parametrize("total", [1, 75, 2**40])
def test_a_prior_of_any_size_is_what_its_proportions_are(prior, total):
    """Weights out of range were no numbers, and neighbours told apart for certain (Soundness rule 25).

    False-failure rate below 1e-11 a case: at epsilon .01 twenty draws are all of one kind here and of the other there
    with a probability of at most 2 (p (1 - p) exp(.01))**20 <= 2**-38.
    """
    for method in (dpf.PrivateMultiplicativeWeights, lambda *given, **named: dpf.mwem(given[0], WORKLOAD, **named)):
        made = method(HISTOGRAM, epsilon=1.0, prior=prior, total=total).histogram
        assert np.isfinite(made).all()
        assert made.sum() == pytest.approx(total)
    measured = [
        sum(
            dpf.PrivateMultiplicativeWeights(
                np.array([first, 0, 0, 0, 30, 25, 10, 10]), epsilon=0.01, updates=3, prior=prior, total=total
            )
            .answer([1, 1, 1, 1, 0, 0, 0, 0])
            .source
            == "measured"
            for _ in range(20)
        )
        for first in (0, 1)
    ]
    assert sorted(measured) != [0, 20]
