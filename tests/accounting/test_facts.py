"""One row an event: there for every kind, complete, and the same for a single event as for columns."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from dpfast import accounting
from dpfast.accounting import events, facts
from dpfast.accounting.accountants import basic, gdp, rdp, zcdp
from dpfast.accounting.encoding import from_text, to_text
from dpfast.accounting.exchange import to_dp_accounting
from dpfast.accounting.facts import FACTS, for_add_remove_only
from dpfast.accounting.formulas import pairs
from dpfast.accounting.formulas.transforms import FAMILIES
from dpfast.errors import ParameterError
from dpfast.ledger import Charge, ChargeColumns

KINDS = get_args(events.Event)
TOGETHER = (events.PoissonSubsampled, events.Partitioned, events.Repeated, events.Composed)
MECHANISMS = [kind for kind in KINDS if kind not in TOGETHER]

#: A value for each field that an event may have.
VALUES = {"scale": 3.0, "sensitivity": 2, "epsilon": 0.7, "delta": 1e-6, "rho": 0.02, "categories": 3, "rate": 0.25}
VALUES |= {"count": 3, "event": events.Laplace(4.0), "events": (events.Laplace(4.0), events.Pure(0.1))}


def example(kind):
    return kind(**{one.name: VALUES[one.name] for one in fields(kind)})


def check_complete(kind):
    """Every question is answered by the row of a kind, or refused in words that name the kind."""
    row, event = FACTS[kind], example(kind)
    # Its cost is known in some way, and each cost in one way.
    assert (row.epsilon is None) != (row.concentrated is None)
    assert row.epsilon is not None or (row.delta, row.rho, row.curve, row.epsilons, row.epsilon_units) == (None,) * 5
    assert (row.epsilon is None) == (row.epsilons is None) == (row.epsilon_units is None)
    if row.in_ledger_columns:
        assert row.profile is not None or kind is events.Gaussian, "ledgers check columns by profiles"
        assert row.rhos is not None, "and add up their rho"
    for name, known, question in [
        ("basic", row.epsilon, lambda: basic.cost(event)),
        ("gdp", row.squared_mean, lambda: gdp.cost(event)),
        ("pld", row.loss, lambda: accounting.pld(event)),
        ("dp_accounting", row.exchange, lambda: to_dp_accounting(event)),
        ("columns of epsilon", row.epsilon_units, lambda: basic.epsilon_units(kind, **columns_of(event))),
        ("columns of rho", row.rhos, lambda: zcdp.rho_units(kind, **columns_of(event))),
        ("columns of ledgers", row.in_ledger_columns or None, lambda: ledger_columns(event)),
    ]:
        if known is None:
            with pytest.raises(ParameterError, match=rf"{kind.__name__}|^kind must be"):
                question()
        else:
            assert question() is not None, name
    rho, curve = zcdp.cost(event), rdp.cost(event)
    assert rho[0] > 0
    assert min(curve[0]) > 0
    if row.loss is not None:
        loss = row.loss(event)
        assert loss.family in (None, *FAMILIES)
        assert loss.squared_mean is not None or row.pair is not None, "a pair to be sampled"
        assert row.sampled(event)
    # The exact amounts, rounded up once.
    if row.epsilon is not None:
        exact = Fraction(row.epsilon(event)), Fraction(0 if row.delta is None else row.delta(event))
        assert basic.cost(event) == tuple(math.ceil(amount * 10**18) for amount in exact)
    else:
        assert rho == (math.ceil(row.concentrated(event) * 10**18), 0)


def columns_of(event):
    return {one.name: np.full(3, float(getattr(event, one.name))) for one in fields(event) if one.name in VALUES}


def ledger_columns(event):
    charged = np.full(3, 1.0)
    return ChargeColumns(type(event), columns_of(event), charged, np.full(3, 0.2), "charged")


def test_every_kind_has_a_row():
    assert tuple(FACTS) == KINDS
    assert set(get_args(events.Single)) == {kind for kind in KINDS if kind not in TOGETHER[2:]}
    assert {kind.__name__ for kind in KINDS} <= set(events.__all__)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_every_row_is_complete(kind):
    check_complete(kind)


@pytest.mark.parametrize("kind", TOGETHER)
def test_what_puts_events_together_is_left_to_the_accountants(kind):
    """A row says of it only what does not depend on a theorem."""
    nothing = {one.name: one.default for one in fields(facts.Facts)}
    said = {name for name, value in nothing.items() if getattr(FACTS[kind], name) != value}
    assert said <= {"add_remove_only", "exchange"}
    for cost in (basic.cost, zcdp.cost, rdp.cost):
        assert cost(example(kind)) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_stored_and_charged(kind):
    event = example(kind)
    assert from_text(to_text(event)) == event
    assert f'"kind": "{kind.__name__}"' in to_text(event)
    assert for_add_remove_only(event) == (kind in TOGETHER[:2]) == for_add_remove_only(event.times(2))
    if kind in get_args(events.Single):
        assert Charge(10**18, 10**17, "charged", event).event == event
    else:
        with pytest.raises(ParameterError):
            Charge(10**18, 10**17, "charged", event)
    # Only what has no epsilon may be left without one.
    if kind in MECHANISMS and FACTS[kind].epsilon is None:
        assert Charge(0, 0, "charged", event).event == event
    else:
        with pytest.raises(ParameterError):
            Charge(0, 0, "charged", event)


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("size", [1e-4, 0.03, 1.0, 7.0])
def test_single_events_and_columns_cost_the_same(kind, size):
    """Soundness rule 10: a column's cost is not below the event's, nor above it by more than a relative 2**-38."""
    given = {"scale": 1 / size, "sensitivity": 1, "epsilon": size, "rho": size, "delta": 1e-9, "categories": 4}
    event = kind(**{one.name: given[one.name] for one in fields(kind)})
    row, columns = FACTS[kind], columns_of(event)
    for formula, units, cost in (
        (row.epsilon_units, basic.epsilon_units, basic.cost),
        (row.rhos, zcdp.rho_units, zcdp.cost),
    ):
        if formula is not None:
            one = cost(event)[0]
            for found in units(kind, **columns):
                assert one <= found <= one + 2 + math.ceil(one * Fraction(2.0**-38))
    if row.epsilons is not None:
        assert row.epsilons(*columns.values())[0] == pytest.approx(float(row.epsilon(event)), rel=1e-15)
    if row.profile is not None:
        own = row.epsilons(*columns.values())
        asked = own / 2.0
        delta = row.profile(own, asked, *columns.values())[0]
        lower, upper = accounting.pld(event).delta_lower(asked[0]), accounting.pld(event).delta(asked[0])
        assert lower * (1 - 1e-9) <= delta <= upper * (1 + 1e-9)


def test_whose_loss_is_that_of_its_pair():
    """Of these alone a lower bound of the pair's curve is one of the event: ledgers refuse by it (`check_event`).

    Noise and randomized response are one mechanism each. Some epsilon-private mechanism is randomized response, also
    beside a failure of probability delta; no selection of a winner or of keys is.
    """
    found = {kind: row.loss_is for kind, row in FACTS.items() if row.loss_is != "a bound"}
    own = (events.Laplace, events.DiscreteLaplace, events.Gaussian, events.RandomizedResponse)
    assert found == dict.fromkeys(own, "its own") | dict.fromkeys((events.Pure, events.Approximate), "attained")


@pytest.mark.parametrize("kind", [events.Laplace, events.ExponentialMechanism, events.RandomizedResponse])
def test_what_is_known_beside_an_epsilon_is_used(kind):
    """A curve, or a rho, of its own is below what holds of anything with that epsilon."""
    event = example(kind)
    anything = rdp.claimed(*basic.cost(event))[0]
    assert all(own < other for own, other in zip(rdp.cost(event)[0][:50], anything, strict=False))
    assert (zcdp.cost(event) < zcdp.claimed(*basic.cost(event))) == (FACTS[kind].rho is not None)


@dataclass(frozen=True, slots=True)
class NewNoise(events._Fact):
    """An event that somebody has just written."""

    scale: float


def test_a_new_kind_without_a_row_is_seen(monkeypatch):
    """Mutant: the class stands among the events, and nothing is known of it."""
    monkeypatch.setattr(sys.modules[__name__], "KINDS", (*KINDS, NewNoise))
    with pytest.raises(AssertionError):
        test_every_kind_has_a_row()
    with pytest.raises(KeyError):
        check_complete(NewNoise)


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        (kind, lost)
        for kind, names in {
            events.Laplace: ("epsilon", "epsilons", "epsilon_units", "rhos", "pair", "profile"),
            events.PermuteAndFlip: ("epsilon", "epsilons", "epsilon_units", "pair", "profile"),
            events.KeySelection: ("epsilon", "epsilons", "pair"),
            events.Gaussian: ("concentrated",),
            events.ZeroConcentrated: ("concentrated",),
        }.items()
        for lost in names
    ],
)
def test_a_row_with_a_gap_is_seen(monkeypatch, kind, lost):
    """Mutants: a row that lost one of its facts."""
    monkeypatch.setitem(FACTS, kind, replace(FACTS[kind], **{lost: None}))
    clear()
    with pytest.raises((AssertionError, ParameterError)):
        check_complete(kind)
    clear()


def test_a_row_whose_columns_disagree_is_seen(monkeypatch):
    """Mutant: the columns of the exponential mechanism have the rho of anything pure, those of Laplace half of it."""
    for kind, rhos in (
        (events.ExponentialMechanism, FACTS[events.Pure].rhos),
        (events.Laplace, lambda scale, sensitivity: 0.5 * sensitivity / scale),
    ):
        monkeypatch.setitem(FACTS, kind, replace(FACTS[kind], rhos=rhos))
        with pytest.raises(AssertionError):
            test_single_events_and_columns_cost_the_same(kind, 1.0)


def clear():
    for module in (basic, zcdp, rdp):
        module._cost.cache_clear()


def test_finite_pairs_are_for_samples_that_they_can_show():
    narrow = events.Laplace(1.0, 2.0 * pairs.LARGEST_RATIO)
    assert not FACTS[events.Laplace].sampled(narrow)
    assert not accounting.pld.applies(events.PoissonSubsampled(narrow, 0.5))
    assert not FACTS[events.DiscreteLaplace].sampled(events.DiscreteLaplace(9.0, pairs.LARGEST_DISCRETE + 1))


@pytest.mark.parametrize("wrong", [bytearray(b"12"), memoryview(b"12"), b"12", "12", True, None, [1.0], 1j, math.nan])
@pytest.mark.parametrize("kind", [events.Laplace, events.Gaussian, events.Pure, events.ZeroConcentrated], ids=repr)
def test_fields_are_numbers(kind, wrong):
    with pytest.raises(ParameterError, match=fields(kind)[0].name):
        kind(wrong)


@pytest.mark.parametrize("tiny", [Decimal("1e-400"), Fraction(1, 10**400)], ids=type)
def test_what_is_rounded_to_nothing_is_refused(tiny):
    with pytest.raises(ParameterError, match="epsilon"):
        events.Approximate(tiny, 0.1)
    assert events.Approximate(0, 0.1).epsilon == 0.0
