"""A charge may not contradict its event: every kind, alone and in columns, under every way of counting it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfast.accounting.accountants import basic
from dpfast.accounting.accountants.gdp import GDP
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.accountants.zcdp import ZCDP
from dpfast.accounting.events import (
    Approximate,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    KeySelection,
    Laplace,
    Partitioned,
    PermuteAndFlip,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
)
from dpfast.errors import ParameterError
from dpfast.ledger import Charge, ChargeColumns, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
OWN = [
    Laplace(1.0),
    Laplace(3.0, 2.0),
    DiscreteLaplace(2.5, 4),
    ExponentialMechanism(0.3),
    PermuteAndFlip(0.3),
    RandomizedResponse(0.3, 5),
    Pure(0.1),
    Approximate(0.1, 1e-9),
    KeySelection(0.1, 1e-9),
    PoissonSubsampled(Laplace(1.0), 0.1),
    Partitioned((Laplace(10.0), Pure(0.3))),
]
NO_EPSILON = [
    (Gaussian(5.0), GDP),
    (Gaussian(0.5), GDP),
    (ZeroConcentrated(0.01), ZCDP),
    (PoissonSubsampled(Gaussian(1.0), 0.01), PLD),
    (Partitioned((Gaussian(9.0), Laplace(9.0))), PLD),
]


def refused(epsilon, delta, event):
    with pytest.raises(ParameterError, match="event") as caught:
        Charge.of(epsilon, delta, event=event)
    assert "\n" not in str(caught.value)
    assert "charge what it costs" in str(caught.value)


@pytest.mark.parametrize("event", OWN, ids=repr)
def test_what_has_an_epsilon(event):
    epsilon, delta = basic.cost(event)
    Charge(epsilon, delta, "", event)
    Charge(epsilon + 10**15, delta, "", event)
    for factor in (0.001, 0.5, 1 - 1e-9):
        refused(epsilon / 1e18 * factor, delta / 1e18, event)
        if delta:
            refused(epsilon / 1e18, delta / 1e18 * min(factor, 1 - 1e-6), event)
    with pytest.raises(ParameterError, match="event"):
        Charge(0, max(delta, 1), "", event)


def test_the_issues_example():
    refused(0.001, 0, Laplace(1.0))
    refused(0.001, 1e-6, Gaussian(1.0))
    refused(1.0, 0, Gaussian(1e6))
    refused(0.5, 0, ZeroConcentrated(1e-9))


@pytest.mark.parametrize(("event", "accountant"), NO_EPSILON, ids=repr)
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_what_has_a_profile(event, accountant, delta):
    """What the accountant says of it passes; a tenth less of epsilon, or a part of delta, does not."""
    epsilon = accountant(event).epsilon(delta)
    if epsilon == 0.0:
        return
    Charge.of(epsilon, delta, event=event)
    lower = PLD(event).epsilon_lower(delta) if PLD.applies(event) else epsilon
    refused(lower * 0.9, delta * (1 - 1e-6), event)


@pytest.mark.parametrize(
    ("event", "least"),
    [
        (Laplace(1.0), lambda e: -math.expm1((e - 1.0) / 2)),
        (Pure(1.0), lambda e: (math.exp(1.0) - math.exp(e)) / (math.exp(1.0) + 1)),
        (ExponentialMechanism(1.0), lambda e: (math.exp(0.5) - math.exp(e / 2)) ** 2 / math.expm1(1.0)),
        (DiscreteLaplace(3.0, 3), lambda e: PLD(DiscreteLaplace(3.0, 3)).delta(e)),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 0.9])
def test_less_epsilon_for_some_delta(event, least, epsilon):
    """Below its own epsilon an event passes at the delta of its exact curve, alone and in columns."""
    delta = least(epsilon)
    Charge.of(epsilon, delta * 1.001, event=event)
    refused(epsilon, delta * 0.999, event)
    names = {name: np.full(3, float(getattr(event, name))) for name in event.__slots__}
    for factor, good in ((1.001, True), (0.999, False)):
        columns = (type(event), names, np.full(3, epsilon), np.full(3, delta * factor))
        if good:
            ChargeColumns(*columns)
        else:
            with pytest.raises(ParameterError, match=r"parameters\[0\]"):
                ChargeColumns(*columns)


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace, Gaussian, ExponentialMechanism, PermuteAndFlip, Pure])
@pytest.mark.parametrize("row", [0, 17, 99])
def test_columns(kind, row):
    """One row that costs more than it is charged refuses all of them, by its number; the others pass."""
    generator = np.random.default_rng(10)
    # Under wide Gaussian noise a delta of 1e-6 is enough by itself.
    epsilon = 10 ** generator.uniform(-2 if kind is Gaussian else -6, 1, 100)
    delta = None
    if kind is Gaussian:
        delta = np.full(100, 1e-6)
        parameters = {"scale": np.sqrt(2 * np.log(1.25e6)) / np.minimum(epsilon, 1.0), "sensitivity": np.ones(100)}
    elif "scale" in kind.__slots__:
        parameters = {"scale": 3.0 / epsilon * (1 + 2.0**-50), "sensitivity": np.full(100, 3.0)}
    else:
        parameters = {"epsilon": epsilon}
    ChargeColumns(kind, parameters, epsilon, delta)
    wrong = epsilon.copy()
    wrong[row] = 0.5 * wrong[row] if kind is not Gaussian else 0.01 * min(wrong[row], 1.0)
    with pytest.raises(ParameterError, match=rf"parameters\[{row}\]"):
        ChargeColumns(kind, parameters, wrong, delta)
    if kind is Gaussian:
        with pytest.raises(ParameterError, match=r"parameters\[0\]"):
            ChargeColumns(kind, parameters, epsilon)
        ChargeColumns(kind, parameters, None)


def test_equal_gaussian_rows():
    """Rows of one charge are decided by that of the least noise."""
    parameters = {"scale": np.full(9, 3.7306317), "sensitivity": np.ones(9)}
    ChargeColumns(Gaussian, parameters, np.ones(9), np.full(9, 1e-5))
    parameters["scale"][4] = 3.7306
    with pytest.raises(ParameterError, match=r"parameters\[4\]"):
        ChargeColumns(Gaussian, parameters, np.ones(9), np.full(9, 1e-5))


WORSE_PAIRS = [
    Partitioned((ExponentialMechanism(0.1).times(100), Pure(0.1))),
    Partitioned((PermuteAndFlip(0.1).times(9),)),
    PoissonSubsampled(ExponentialMechanism(0.5), 0.1),
]


@pytest.mark.parametrize("event", WORSE_PAIRS, ids=repr)
def test_a_pair_that_is_worse_than_its_event(event, monkeypatch):
    """What is below such a pair's curve says nothing of the event: neither does it refuse, nor let pass."""
    profile = PLD(event)
    epsilon = 0.3 * basic.cost(event)[0] / 1e18
    delta = profile.delta(epsilon)
    # What rho allows passes, although the lower bound of the pair's curve may be above.
    at_rho = ZCDP(event).epsilon(1e-6)
    assert (
        isinstance(event, PoissonSubsampled)
        or type(event.events[0].event) is not ExponentialMechanism
        or (at_rho < profile.epsilon_lower(1e-6))
    )
    monkeypatch.setattr(PLD, "delta_lower", None)
    Charge.of(at_rho, 1e-6, event=event)
    Charge.of(epsilon, delta, "by the upper bound", event=event)
    refused(epsilon, min(delta, ZCDP(event).delta(epsilon)) * 0.5, event)


def test_what_adds_up_rho_alone():
    """Without amounts the event alone is charged, and a ledger that counts amounts refuses it."""
    for event in (Gaussian(1.0), ZeroConcentrated(0.5)):
        Ledger(10.0, 1e-6, accountant="zcdp").charge(Charge(0, 0, "", event), **ABOUT)
    with pytest.raises(ParameterError, match="epsilon_units"):
        Charge(0, 0, "", Laplace(1.0))


def test_an_event_with_forged_fields():
    """Unpickling goes around the check of an event's fields; a charge reads them again."""
    forged = Laplace(1.0)
    object.__setattr__(forged, "scale", -1.0)
    nested = Partitioned((Laplace(1.0),))
    object.__setattr__(nested, "events", (forged,))
    for event in (forged, nested):
        with pytest.raises(ParameterError, match="scale"):
            Charge.of(1.0, event=event)


def test_roundings_of_floats_pass():
    """1 / epsilon in floats is a scale that may cost more by a rounding."""
    for epsilon in np.random.default_rng(6).uniform(1e-6, 10, 300).tolist():
        Charge.of(epsilon, event=Laplace(1 / epsilon))
        Charge.of(epsilon, event=Laplace(3 / epsilon, 3))
