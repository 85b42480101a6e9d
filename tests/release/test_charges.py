"""Charges say what is drawn: events that are true of it, within the budget; and a check of that sees lies."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.accounting.accountants import zcdp
from dpfast.accounting.budget import ConcentratedAmounts
from dpfast.accounting.events import DiscreteLaplace
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.queries import Measure

from . import joint_moves
from .charge_checks import FRAME, KEYS, SPLITS, UNITS, a_plan, apart, check_charges, check_parts


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
            # Gaussian noise is one; of Laplace noise what a column's missing values stand beside.
            kinds = 1 if mechanism == "gaussian" else len(joint_moves.by_charge(plan._blueprint.parts))
            share = plan._blueprint.key_share
            assert len(plan._blueprint.charges) == kinds + (0 if share is None else len(share.charges))


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


LIES = ["scale", "sensitivity", "event", "sum", "missing", "together", "stranger"]


@pytest.mark.parametrize("lie", LIES)
def test_the_check_of_charges_sees_a_lie(lie, monkeypatch):
    """The mutants: too little noise, a sensitivity rounded down, another event, a share too many; measures in one
    charge that share more than it, missing values beside those of another column or with too little noise.
    """
    noise, drafting, shared = map(
        import_module,
        ("dpfast.mechanisms.noise.integer_noise", "dpfast.releases.drafting", "dpfast.releases.measure_noise"),
    )
    mechanism = "gaussian" if lie == "together" else "laplace"
    with monkeypatch.context() as patch:
        if lie == "scale":
            scale = noise.laplace_scale
            patch.setattr(noise, "laplace_scale", lambda *given: math.nextafter(scale(*given), 0.0))
        elif lie == "sensitivity":
            patch.setattr(noise, "DiscreteLaplace", lambda scale, l1: DiscreteLaplace(scale, max(l1 - 1, 1)))
        elif lie == "event":
            patch.setattr(noise, "grid_of_integers", lambda scale: 2)
        elif lie == "sum":
            split = drafting.portions
            patch.setattr(drafting, "portions", lambda total, weights: split(total + 1, weights))
        elif lie == "missing":
            sizes = Measure.sensitivity

            def rows_forgotten(measure, unit):
                return sizes(measure, replace(unit, max_rows_per_group=1) if measure.kind == "missing" else unit)

            patch.setattr(Measure, "sensitivity", rows_forgotten)
        elif lie == "together":
            scale_within = noise.scale_within
            patch.setattr(shared, "scale_within", lambda *given: math.nextafter(scale_within(*given), 0.0))
        else:
            lay_out = import_module("dpfast.releases.measurements").lay_out

            def beside_others(measures, derived):
                layout = lay_out(measures, derived)
                uses = {measure: some for block in layout.blocks for measure, some in block.uses.items()}
                lone = next((block for block in layout.blocks if block.missing is not None), None)
                return layout if lone is None else replace(layout, blocks=(replace(lone, uses=uses),))

            patch.setattr(import_module("dpfast.releases.measurements"), "lay_out", beside_others)
        plan = a_plan(mechanism=mechanism, **UNITS[1])
    with pytest.raises(AssertionError):
        check_charges(plan, 7 * 10**17, 10**12)


# Ledgers ------------------------------------------------------------------------------------------------------


def test_a_basic_ledger_keeps_an_entry_a_charge_with_its_event():
    ledger = dpf.Ledger(epsilon=1, delta=1e-5)
    plan = a_plan(keys=None, mechanism="laplace", key_selection="optimal")
    release = plan.run(ledger)
    history = ledger.history()
    assert release.entry == 1
    assert history["event"].to_list() == [repr(charge.event) for charge in plan._blueprint.charges]
    assert history["description"].to_list() == [
        "selection of keys by k",
        "n, m by k: one measurement; s: sum of v, values clipped to [0, 600] by k; "
        "m: mean of v, values clipped to [-0.1, 7.3] by k (sum)",
        "i: sum of i, values clipped to [-3, 9] by k",
    ]
    assert (release.spent.epsilon, release.spent.delta) == (ledger.spent.epsilon, ledger.spent.delta) == (0.7, 1e-6)
    assert a_plan(epsilon=0.1).run(ledger).entry == 4
    # What shares nothing has an entry each; Gaussian noise has one for all.
    ledger = dpf.Ledger(epsilon=2, delta=1e-5)
    apart().run(ledger)
    apart(mechanism="gaussian", delta=1e-6, epsilon=0.5).run(ledger)
    assert ledger.history()["description"].to_list() == [
        "s: sum of v, values clipped to [0, 600] by k",
        "i: sum of i, values clipped to [-3, 9] by k",
        "m: mean of v, values clipped to [-0.1, 7.3] by k (sum)",
        "m: mean of v, values clipped to [-0.1, 7.3] by k (number of values)",
        "s, i, m by k: measured together",
    ]
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
    # Far less than epsilon composed as a whole: what is measured beside missing values, another sum, the selection.
    assert rho / 1e18 < 0.2**2 / 2 / 2
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
    # What the charges declare is true as well.
    check_parts(plan._blueprint.parts, plan._blueprint.unit)


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
