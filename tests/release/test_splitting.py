"""One budget, several queries: shares never add up to more, the optimal ones are, and charges say what is drawn."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from importlib import import_module

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.accounting.accountants import basic, zcdp
from dpfast.accounting.budget import ConcentratedAmounts
from dpfast.accounting.events import Approximate, DiscreteLaplace, Gaussian, KeySelection, Laplace
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written
from dpfast.releases.splitting import Split, Stake, portions, read_split, weights_of

from . import oracles

FRAME = pl.DataFrame({"k": ["a", "b"] * 300, "u": list(range(300)) * 2, "v": [1.0, 2.0] * 300, "i": [1, 2] * 300})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})

weight = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6) | st.integers(1, 10**30).map(Fraction)


@settings(deadline=None)
@given(st.integers(0, 10**24), st.lists(weight, min_size=1, max_size=12))
def test_portions_add_up_to_the_total_and_are_near_their_weights(total, weights):
    shares = portions(total, weights)
    assert sum(shares) == total
    for share, each in zip(shares, weights, strict=True):
        floor = math.floor(total * each / sum(weights))
        # Equal weights differ by a unit at most, and the smallest gets none of what is left.
        assert floor <= share <= floor + (each > min(weights) or len(set(weights)) < len(weights))


def variances(stakes, shares, budget):
    """Return the weighted sum of the variances of Laplace noise by epsilon, or of Gaussian noise by rho."""
    if budget == "epsilon":
        return math.fsum(2 * s.importance * s.sensitivity_squared / e**2 for s, e in zip(stakes, shares, strict=True))
    return math.fsum(s.importance * s.sensitivity_squared / (2 * e) for s, e in zip(stakes, shares, strict=True))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.fractions(Fraction(1, 1000), 1000)), min_size=1, max_size=6),
    st.sampled_from(["epsilon", "rho"]),
    st.randoms(use_true_random=False),
)
def test_no_other_split_has_a_smaller_sum_of_variances(given, budget, generator):
    stakes = {str(place): [Stake(Fraction(size**2), importance)] for place, (size, importance) in enumerate(given)}
    flat = [stake for (stake,) in stakes.values()]

    def error(weights):
        return variances(flat, [float(w / sum(weights)) for w in weights], budget)

    optimal = [w for (w,) in weights_of(Split("optimal"), stakes, budget=budget)]
    least = error(optimal) * (1 - 1e-9)
    assert least <= error([Fraction(1)] * len(flat))
    for _ in range(10):
        assert least <= error([Fraction(generator.uniform(0.01, 1)) for _ in flat])
        # Also next to it: a tenth of one share given to another.
        one, other = generator.randrange(len(flat)), generator.randrange(len(flat))
        moved = list(optimal)
        moved[one], moved[other] = moved[one] * Fraction(9, 10), moved[other] + moved[one] / 10
        assert least <= error(moved)


def test_the_closed_forms():
    """Derivatives of w 2 D**2 / e**2 and of w D**2 / (2 rho) are equal at e ~ (w D**2)**(1/3) and rho ~ sqrt(w) D."""
    stakes = {"a": [Stake(Fraction(1))], "b": [Stake(Fraction(600**2))], "c": [Stake(Fraction(7**2), Fraction(3))]}
    for budget, power in (("epsilon", 1 / 3), ("rho", 1 / 2)):
        weights = [float(w) for (w,) in weights_of(Split("optimal"), stakes, budget=budget)]
        expected = [1, (600**2) ** power, (3 * 7**2) ** power]
        assert weights == pytest.approx([x / max(expected) for x in expected], rel=1e-12)
        weighed = weights_of(Split("optimal", {"b": Fraction(1, 600**2)}), stakes, budget=budget)
        assert weighed[0][0] == pytest.approx(weighed[1][0], rel=1e-12)


def test_huge_sensitivities_do_not_overflow():
    stakes = {"a": [Stake(Fraction(10**620))], "b": [Stake(Fraction(1, 10**600))]}
    (most,), (least,) = weights_of(Split("optimal"), stakes, budget="epsilon")
    assert most == 1
    assert least == 0


def a_plan(**changed):
    queries = {
        "n": dpf.count(),
        "s": dpf.sum("v", bounds=(0, 600)),
        "i": dpf.sum("i", bounds=(-3, 9)),
        "m": dpf.mean("v", bounds=(-0.1, 7.3)),
    }
    # Beside rho only private keys take a delta.
    delta = 1e-6 if changed.get("rho") is None or changed.get("keys", KEYS) is None else 0
    return dpf.plan(
        FRAME,
        "k",
        **{"privacy_unit": "row", "epsilon": 0.7, "delta": delta, "keys": KEYS, "dataset": "d", **queries, **changed},
    )


SPLITS = [
    "even",
    "optimal",
    {"n": 1, "s": 3, "i": 0.1, "m": Fraction(1, 3)},
    {"n": Decimal("0.7"), "s": np.float32(2), "i": np.int8(5), "m": 10**6},
    ("optimal", {"s": 1e-6, "m": 4}),
]
UNITS = [{}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 5}]


def check_charges(plan, epsilon_units, delta_units):
    """Charges add up to no more than was given, and their events are true of what is drawn and cost no more."""
    blueprint = plan._blueprint
    charges = blueprint.charges
    assert sum(charge.epsilon_units for charge in charges) == blueprint.epsilon_units <= epsilon_units
    assert sum(charge.delta_units for charge in charges) == blueprint.delta_units <= delta_units
    for part in blueprint.parts:
        event, sensitivity = part.charge.event, part.measure.sensitivity(blueprint.unit)
        assert event.scale == part.scale
        share = Fraction(part.epsilon_units, UNITS_PER_ONE)
        if part.mechanism == "gaussian":
            assert type(event) is Gaussian
            assert Fraction(event.sensitivity) ** 2 >= sensitivity.l2_squared
            delta = Fraction(part.delta_units, UNITS_PER_ONE)
            with mpmath.workdps(100):
                assert oracles.gaussian_delta(event.scale, event.sensitivity, share) <= oracles.exact(delta)
        else:
            assert type(event) is (DiscreteLaplace if part.scale < 2**25 else Laplace)
            assert event.sensitivity >= sensitivity.l1
            assert type(event) is Laplace or event.sensitivity == sensitivity.l1
            assert Fraction(event.sensitivity) / Fraction(event.scale) <= share
            assert basic.cost(event) <= (part.epsilon_units, 0)
            assert part.delta_units == 0
    share = blueprint.key_share
    if share is not None and share.rule.name != "optimal":
        (lonely,) = [charge for charge in share.charges if type(charge.event) is Approximate]
        assert basic.cost(lonely.event) <= (0, lonely.delta_units)
    elif share is not None:
        (charge,) = share.charges
        event, table = charge.event, share.rule.table
        assert type(event) is KeySelection
        kappa = blueprint.unit.max_groups * (2 if blueprint.unit.neighbors == "replace" else 1)
        assert table.epsilon * kappa == as_written(event.epsilon)
        assert table.delta * kappa == as_written(event.delta)
        assert basic.cost(event)[0] <= share.epsilon_units
        assert basic.cost(event)[1] <= share.delta_units


@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=["rows", "units"])
@pytest.mark.parametrize("keys", [None, KEYS], ids=["private", "public"])
def test_events_are_true_and_charges_within_the_budget(split, unit, keys):
    """Soundness rules 10, 14, 18 and 21."""
    for mechanism in ("laplace", "gaussian"):
        for neighbors in ("add_remove", "replace"):
            plan = a_plan(split=split, keys=keys, mechanism=mechanism, neighbors=neighbors, **unit)
            check_charges(plan, 7 * 10**17, 10**12)
            assert plan.epsilon == 0.7
            share = plan._blueprint.key_share
            assert len(plan._blueprint.charges) == 5 + (0 if share is None else len(share.charges))


@settings(deadline=None, max_examples=20)
@given(
    st.fractions(Fraction(1, 10**9), 50),
    st.fractions(Fraction(1, 10**12), Fraction(1, 2)),
    st.integers(1, 2**40),
    st.floats(1e-3, 1e12),
    st.booleans(),
)
def test_any_budget_any_sensitivity(epsilon, delta, rows, bound, public):
    """Also what float64 does not hold: the event's sensitivity is rounded up, its epsilon never above the share."""
    unit = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": rows}
    queries = {"n": dpf.count(), "s": dpf.sum("v", bounds=(-bound, 1))}
    for mechanism in ("laplace", "gaussian"):
        given = {"epsilon": epsilon, "delta": delta, "keys": KEYS if public else None, "mechanism": mechanism}
        plan, refused = None, None
        try:
            plan = dpf.plan(FRAME, "k", **given, **queries, **unit)
        except ParameterError as error:
            refused = error.argument
        if plan is None:
            assert refused == "epsilon"  # noise beyond int64, or a table of keys too long
        else:
            check_charges(plan, math.floor(epsilon * UNITS_PER_ONE), math.floor(delta * UNITS_PER_ONE))


@pytest.mark.parametrize("lie", ["scale", "sensitivity", "event", "sum"])
def test_the_check_of_charges_sees_a_lie(lie, monkeypatch):
    """The mutants: too little noise, a sensitivity rounded down, another event, a share too many."""
    noise, splitting = (
        import_module("dpfast.mechanisms.noise.integer_noise"),
        import_module("dpfast.releases.group_planning"),
    )
    if lie == "scale":
        scale = noise.laplace_scale
        monkeypatch.setattr(noise, "laplace_scale", lambda *given: math.nextafter(scale(*given), 0.0))
    elif lie == "sensitivity":
        monkeypatch.setattr(noise, "DiscreteLaplace", lambda scale, l1: DiscreteLaplace(scale, max(l1 - 1, 1)))
    elif lie == "event":
        monkeypatch.setattr(noise, "grid_of_integers", lambda scale: 2)
    else:
        split = splitting.portions
        monkeypatch.setattr(splitting, "portions", lambda total, weights: split(total + 1, weights))
    with pytest.raises(AssertionError):
        check_charges(a_plan(mechanism="laplace", **UNITS[1]), 7 * 10**17, 10**12)


def test_even_is_the_default_and_a_mean_halves_its_share():
    plan = a_plan(epsilon=0.4, mechanism="laplace")
    assert plan.to_frame()["epsilon"].to_list() == [0.1, 0.1, 0.1, 0.05, 0.05]
    assert a_plan(epsilon=0.4, mechanism="laplace", split="even").explain() == plan.explain()


def test_shares_by_weight_and_the_selection_of_keys():
    weights = {"n": 1, "s": 3, "i": 2, "m": 2}
    plan = a_plan(epsilon=0.8, split=weights)
    assert plan.to_frame()["epsilon"].to_list() == [0.1, 0.3, 0.2, 0.1, 0.1]
    # The selection gets what it would of an even split, or what it is given.
    optimal = {"keys": None, "mechanism": "laplace", "key_selection": "optimal"}
    plan = a_plan(epsilon=1, split=weights, **optimal)
    assert plan._blueprint.key_share.epsilon_units == 2 * 10**17
    assert plan.to_frame()["epsilon"].sum() == pytest.approx(0.8)
    plan = a_plan(epsilon=1, split={**weights, "keys": 2}, **optimal)
    assert plan._blueprint.key_share.epsilon_units == 2 * 10**17
    plan = a_plan(epsilon=1, split={**weights, "keys": 8}, **optimal)
    assert plan._blueprint.key_share.epsilon_units == 5 * 10**17
    # A count that is the test of its own group has the selection's share as well.
    plan = a_plan(epsilon=1, split={**weights, "keys": 8}, keys=None, mechanism="laplace", key_selection="count")
    assert plan._blueprint.key_share.epsilon_units == 0
    assert plan.to_frame()["epsilon"].to_list() == pytest.approx([9 / 16, 3 / 16, 2 / 16, 1 / 16, 1 / 16])


def total_error(plan):
    """Return the sum of all variances in the queries' own units, a mean as the numerator that it is made of."""
    total = 0.0
    for planned in plan._blueprint.queries:
        low, high = planned.query.bounds or (0.0, 0.0)
        for part in planned.parts:
            variance = (part.scale * part.step) ** 2 * (2 if part.mechanism == "laplace" else 1)
            is_count_of_mean = planned.query.kind == "mean" and part.measure.kind == "values"
            total += variance * (((high - low) / 2) ** 2 if is_count_of_mean else 1)
    return total


@pytest.mark.parametrize("budget", [{"epsilon": 0.7, "delta": 0, "mechanism": "laplace"},
                                    {"epsilon": None, "rho": 0.02, "mechanism": "gaussian"}], ids=str)  # fmt: skip
def test_the_optimal_plan_has_less_error_than_others(budget, seed):
    generator = random.Random(seed)
    optimal = total_error(a_plan(split="optimal", **budget))
    assert optimal < 0.8 * total_error(a_plan(split="even", **budget))
    for _ in range(20):
        split = {name: generator.uniform(0.05, 1) for name in "nsim"}
        assert optimal < total_error(a_plan(split=split, **budget))


def test_weights_of_errors():
    """With each query's squared sensitivity as the inverse weight, optimal is even."""
    parts = {"n": dpf.count(), "s": dpf.sum("v", bounds=(0, 600))}
    split = ("optimal", {"s": Fraction(1, 600**2)})
    plan = dpf.plan(FRAME, epsilon=1, split=split, **{"privacy_unit": "row", **parts})
    assert plan.to_frame()["epsilon"].to_list() == pytest.approx([0.5, 0.5], rel=1e-12)
    assert "weighing s 2.77778e-06" in plan.explain()


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_split_says_what_it_is(split):
    assert "split         " in a_plan(split=split).explain()
    assert str(read_split(split, ["n", "s", "i", "m"], selects=True))


def test_a_split_too_uneven_is_named():
    with pytest.raises(ParameterError, match=r"^split must be less uneven"):
        a_plan(split={"n": 1e-30, "s": 1, "i": 1, "m": 1})


# Ledgers ------------------------------------------------------------------------------------------------------


def test_a_basic_ledger_keeps_an_entry_a_measure_with_its_event():
    ledger = dpf.Ledger(epsilon=1, delta=1e-5)
    plan = a_plan(keys=None, mechanism="laplace", key_selection="optimal")
    release = plan.run(ledger)
    history = ledger.history()
    assert release.entry == 1
    assert history["event"].to_list() == [repr(charge.event) for charge in plan._blueprint.charges]
    assert history["description"].to_list() == [
        "selection of keys by k",
        "n: count by k",
        "s: sum of v, values clipped to [0, 600] by k",
        "i: sum of i, values clipped to [-3, 9] by k",
        "m: mean of v, values clipped to [-0.1, 7.3] by k (sum)",
        "m: mean of v, values clipped to [-0.1, 7.3] by k (number of values)",
    ]
    assert (release.spent.epsilon, release.spent.delta) == (ledger.spent.epsilon, ledger.spent.delta) == (0.7, 1e-6)
    assert a_plan(epsilon=0.1).run(ledger).entry == 7
    # One call declared it all, so tighter accountants may speak of it.
    report = dpf.Ledger(epsilon=1, delta=1e-5)
    a_plan(keys=None, mechanism="gaussian").run(report)
    assert report.report().filter(~pl.col("holds")).is_empty()


def test_a_zcdp_ledger_is_charged_the_rho_of_the_events():
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accountant="zcdp")
    plan = a_plan(epsilon=0.2, delta=1e-7, keys=None, mechanism="laplace")
    plan.run(ledger)
    rho, delta = zcdp.cost([charge.event for charge in plan._blueprint.charges])
    assert (ledger.spent.rho, ledger.spent.delta) == (rho / 10**18, delta / 10**18)
    # Far less than epsilon composed as a whole: five measures and the selection.
    assert rho / 1e18 < 0.2**2 / 2 / 3
    assert delta == 10**11


def test_what_does_not_fit_spends_nothing_at_all():
    """All charges or none."""
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accountant="zcdp")
    plan = a_plan(epsilon=3, delta=1e-7, keys=None, mechanism="laplace")
    with pytest.raises(BudgetExceededError):
        plan.run(ledger)
    assert ledger.spent == ConcentratedAmounts(0.0, 0.0)
    assert ledger.history().height == 0
    basic_ledger = dpf.Ledger(epsilon=0.69, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        a_plan().run(basic_ledger)
    assert basic_ledger.history().height == 0
    assert basic_ledger.spent.epsilon == 0


# Plans by rho -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.02, 0.5, 7.0, 100.0])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("keys", [None, KEYS], ids=["private", "public"])
def test_a_plan_by_rho_costs_that_rho_and_hardly_less(rho, mechanism, keys):
    plan = a_plan(epsilon=None, rho=rho, keys=keys, mechanism=mechanism, delta=0 if keys is not None else 1e-7)
    charges = plan._blueprint.charges
    cost, delta = zcdp.cost([charge.event for charge in charges])
    assert cost <= round(rho * 10**18)
    assert cost >= rho * 10**18 * (1 - 1e-9) - 20
    assert delta == (10**11 if keys is None else 0)
    assert plan.rho == cost / 10**18
    for part in plan._blueprint.parts:
        event = part.charge.event
        assert event.scale == part.scale
        share = Fraction(part.epsilon_units, UNITS_PER_ONE)
        if type(event) is Gaussian:
            assert Fraction(event.sensitivity) ** 2 >= part.sensitivity.l2_squared
            # What the charge declares is true as well.
            with mpmath.workdps(100):
                assert oracles.gaussian_delta(event.scale, event.sensitivity, share) <= part.delta_units / 1e18
        else:
            assert event.sensitivity >= part.sensitivity.l1
            assert basic.cost(event) == (part.epsilon_units, 0)


def test_auto_by_rho_takes_the_kind_of_less_noise():
    for rho, expected in ((0.02, "gaussian"), (60.0, "laplace")):
        plan = dpf.plan(FRAME, n=dpf.count(), privacy_unit="row", rho=rho)
        assert plan.to_frame()["mechanism"].to_list() == [expected]
    scale = dpf.plan(FRAME, n=dpf.count(), privacy_unit="row", rho=0.5).to_frame()["scale"].item()
    assert scale == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_a_plan_by_rho_runs_on_ledgers_that_add_it_up(accountant):
    ledger = dpf.Ledger(epsilon=2, delta=1e-5, accountant=accountant)
    plan = a_plan(epsilon=None, rho=0.02, delta=1e-7, keys=None)
    release = plan.run(ledger)
    assert type(release.spent) is ConcentratedAmounts
    assert release.spent.rho == plan.rho
    assert "spent rho 0.0" in repr(release)
    if accountant == "zcdp":
        assert ledger.spent == release.spent
    assert "rho 0.0" in plan.explain()


def test_a_plan_by_rho_is_refused_by_a_basic_ledger_before_anything():
    ledger = dpf.Ledger(epsilon=100, delta=1e-2)
    plan = a_plan(epsilon=None, rho=0.02)
    stages = []
    with pytest.raises(ParameterError, match="rho must be left out: this ledger adds up epsilons"):
        plan.run(ledger, progress=stages.append)
    assert stages == []
    assert ledger.history().height == 0
    assert plan.run(dpf.Ledger(epsilon=2, delta=1e-5, accountant="zcdp")).frame.height == 3


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({}, "epsilon"),
        ({"epsilon": 1, "rho": 1}, "rho"),
        ({"rho": 0}, "rho"),
        ({"rho": 1e-18}, "rho"),
        ({"rho": 100_001}, "rho"),
        ({"rho": -1.0}, "rho"),
        ({"rho": "1"}, "rho"),
        ({"rho": 1e-17, "m": dpf.sum("v", bounds=(0, 1)), "privacy_unit": "u", "max_groups": 2**30,
          "max_rows_per_group": 2**30}, "rho"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_budgets_by_rho(given, argument):
    queries = {"n": dpf.count(), "m": dpf.mean("v", bounds=(0, 1)), **given}
    with pytest.raises(ParameterError, match=f"^{argument} "):
        dpf.plan(FRAME, **{"privacy_unit": "row", **queries})


def test_keys_by_rho_need_a_delta():
    with pytest.raises(ParameterError, match=r"^delta "):
        dpf.plan(FRAME, "k", n=dpf.count(), privacy_unit="row", rho=0.1)
