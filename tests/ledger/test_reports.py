"""Reports at the edges of a budget: wholly spent, untouched, without delta; what a report may call a guarantee."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpfast.accounting.accountants.advanced import Advanced
from dpfast.accounting.accountants.basic import Basic
from dpfast.accounting.accountants.optimal import Optimal
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.accountants.rdp import RDP
from dpfast.accounting.accountants.zcdp import ZCDP
from dpfast.accounting.events import Approximate, Gaussian, KeySelection, Laplace, PoissonSubsampled, Pure
from dpfast.ledger import Charge, ChargeColumns, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
WHOLE = [
    (1.0, 1e-6, 1),
    (0.1, 1e-7, 10),
    (Fraction(1, 3), Fraction(1, 3_000_000), 3),
    (Fraction(3, 7), Fraction(1, 9), 2),
    (0.3, 0.1, 7),
    (1e-18, 1e-18, 3),
    (49.99999999999999, 0.14285714285714285, 6),
]


@pytest.mark.parametrize(("epsilon", "delta", "count"), WHOLE, ids=str)
@pytest.mark.parametrize("conversion", [None, 0.0625])
def test_a_budget_wholly_spent(epsilon, delta, count, conversion):
    """Every row is finite, and none above the exact sums: charges of no event, of events, in one call and in many."""
    total, whole = Fraction(epsilon) * count if isinstance(epsilon, Fraction) else epsilon * count, None
    one = Charge.of(epsilon, delta)
    units = (one.epsilon_units * count, one.delta_units * count)
    budget = [Fraction(amount, 10**18) for amount in units]
    accountant = {} if conversion is None else {"accountant": "zcdp", "conversion_delta": conversion}
    if conversion is not None:
        budget[1] += Fraction(conversion)
        # One plain sum that fits: rho need not.
    ledger = Ledger(*budget, **accountant)
    for _ in range(count):
        ledger.charge(one, **ABOUT)
    rows = ledger.report().rows()
    figures = {name: value for name, value, *_ in rows}
    most = Fraction(units[0], 10**18)
    assert "basic composition" in figures
    for name, figure in figures.items():
        assert 0.0 <= figure <= float(most) * (1 + 1e-15), (name, rows, total, whole)
    declared = Ledger(*budget, **accountant)
    declared.charge_many([one] * count, **ABOUT)
    assert declared.report()["holds"].all()
    assert all(math.isfinite(value) for value in declared.report()["epsilon"])


def test_events_wholly_spent():
    """The same where the charges name their events, and a column of them."""
    ledger = Ledger(1.0, 1e-6)
    keys = Charge.of(0.3, 1e-6, event=KeySelection(0.3, 1e-6))
    columns = ChargeColumns(Laplace, {"scale": np.full(7, 10.0), "sensitivity": np.ones(7)}, np.full(7, 0.1))
    ledger.charge_many([keys, columns], **ABOUT)
    figures = ledger.report()
    assert figures["holds"].all()
    assert figures["epsilon"].max() <= 1.0000000000000002


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "rdp"])
def test_at_the_edges_of_delta(accountant):
    """Nothing spent; a ledger without delta; and a ledger that converts read at its conversion delta."""
    empty = Ledger(1.0, 1e-6, accountant=accountant)
    assert empty.report()["accountant"].to_list() == ["budget"]
    if accountant == "basic":
        pure = Ledger(1.0)
        pure.charge(Charge.of(1.0, event=Laplace(1.0)), **ABOUT)
        assert pure.report().select("accountant", "epsilon", "holds").rows() == [
            ("budget", 1.0, True),
            ("basic composition", 1.0, True),
        ]
        return
    ledger = Ledger(1.0, 1e-6, accountant=accountant, conversion_delta=4e-7)
    ledger.charge(Charge(0, 0, "", Gaussian(10.0)), **ABOUT)
    for delta in (None, 4e-7, 1e-6):
        assert all(0.0 < value <= 1.0 for value in ledger.report(delta)["epsilon"])
    # What events have of delta is beside the conversion's: at its delta alone nothing is left for them.
    ledger.charge(Charge.of(0.1, 6e-7), **ABOUT)
    assert all(math.isfinite(value) for value in ledger.report()["epsilon"])


def test_deltas_that_may_depend_on_answers():
    """Basic composition at a delta below the ledger's: the sum on this path is no bound, after several calls."""
    ledger = Ledger(1.0, 1e-3)
    for _ in range(2):
        ledger.charge(Charge.of(0.1, 1e-9), **ABOUT)
    holds = {delta: dict(ledger.report(delta).select("accountant", "holds").rows()) for delta in (None, 1e-3, 2e-9)}
    assert holds[None]["basic composition"]
    assert holds[1e-3]["basic composition"]
    assert not holds[2e-9]["basic composition"]
    assert not Ledger(1.0, 1e-3).report(2e-9).is_empty()
    declared = Ledger(1.0, 1e-3)
    declared.charge_many([Charge.of(0.1, 1e-9)] * 2, **ABOUT)
    assert declared.report(2e-9)["holds"].all()
    converting = Ledger(1.0, 1e-3, accountant="zcdp", conversion_delta=9e-4)
    for _ in range(2):
        converting.charge(Charge.of(0.1, 1e-9), **ABOUT)
    rows = dict(converting.report(1e-4).select("accountant", "holds").rows())
    assert rows["basic composition"]
    assert not rows["zCDP"]


@pytest.mark.parametrize("accountant", [Basic, Advanced, Optimal, ZCDP, RDP, PLD])
@pytest.mark.parametrize("event", [Approximate(0.3, 1e-6), KeySelection(0.1, 1e-9), Approximate(0.0, 0.1), Pure(0.1)])
def test_exactly_the_sum_of_deltas(accountant, event):
    """An accountant at the delta that events have together: the plain sum of epsilons, not infinity."""
    for count in (1, 2, 3, 9):
        delta = Fraction(basic_delta(event) * count, 10**18)
        figure = accountant(event.times(count)).epsilon(delta)
        assert figure <= Basic(event.times(count)).epsilon(delta) < math.inf


def basic_delta(event):
    from dpfast.accounting.accountants import basic

    return basic.cost(event)[1]


def test_what_takes_long_is_left_out_unless_asked_for():
    """The row stays, with a null, and says how to ask; work is counted, not timed, so that this is repeatable."""
    ledger = Ledger(1e6, 1e-6, accountant="zcdp")
    scale = 1e6 * np.linspace(1.0, 2.0, 900)
    ledger.charge_many([ChargeColumns(Laplace, {"scale": scale, "sensitivity": np.ones(900)}, 1 / scale)], **ABOUT)
    (left_out,) = ledger.report().filter(accountant="Rényi (RDP)").rows()
    assert left_out[1:3] == (None, False)
    assert "report(accountants=['Rényi (RDP)'])" in left_out[3]
    asked = ledger.report(accountants=["zCDP"])
    assert asked["accountant"].to_list() == ["budget", "basic composition", "zCDP"]
    assert asked["holds"].all()
    assert ledger.report().filter(accountant="zCDP").rows() == asked.filter(accountant="zCDP").rows()


def test_private_training_is_not_left_out():
    """Ten thousand steps of noise on samples: every row is there."""
    ledger = Ledger(10.0, 1e-6, accountant="rdp")
    step = PoissonSubsampled(Gaussian(1.0), 0.001)
    ledger.charge_many([Charge.of(1.0, 1e-6, event=step, count=10_000)], **ABOUT)
    figures = dict(ledger.report().select("accountant", "epsilon").rows())
    assert 0.555 < figures["privacy loss distribution"] < 0.5555 < figures["Rényi (RDP)"] < 10.0
