"""Events to and from dp_accounting."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.accounting.events import (
    Approximate,
    Composed,
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
from dpfast.accounting.exchange import from_dp_accounting, to_dp_accounting
from dpfast.errors import DpfastError, ParameterError

dp_event = pytest.importorskip("dp_accounting.dp_event")

PAIRS = [
    (Laplace(2.0), dp_event.LaplaceDpEvent(2.0)),
    (Gaussian(1.5), dp_event.GaussianDpEvent(1.5)),
    (DiscreteLaplace(4.0, 3), dp_event.DiscreteLaplaceDpEvent(0.25, 3)),
    (ZeroConcentrated(0.1), dp_event.ZCDpEvent(0.1)),
    (PoissonSubsampled(Gaussian(1.0), 0.1), dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1))),
    (Laplace(3.0).times(7), dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(3.0), 7)),
    (
        Composed((Laplace(3.0), Gaussian(2.0).times(2))),
        dp_event.ComposedDpEvent(
            [
                dp_event.LaplaceDpEvent(3.0),
                dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(2.0), 2),
            ]
        ),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda event: type(event).__name__)
def test_round_trip(ours, theirs):
    assert to_dp_accounting(ours) == theirs
    assert from_dp_accounting(theirs) == ours


@settings(max_examples=200)
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 30.0), st.integers(2, 100))
def test_rounding_is_to_less_noise(scale, sensitivity, epsilon, categories):
    """Where a ratio is no float, the other side has at most one rounding less noise, never more."""
    for kind in (Laplace, Gaussian):
        back = from_dp_accounting(to_dp_accounting(kind(scale, sensitivity)))
        assert back.scale * sensitivity <= scale * (1 + 2**-52)
        assert back.scale * sensitivity == pytest.approx(scale, rel=1e-15)
    back = from_dp_accounting(to_dp_accounting(DiscreteLaplace(scale, 3)))
    assert back.sensitivity == 3
    assert scale * (1 - 1e-15) <= back.scale <= scale
    back = from_dp_accounting(to_dp_accounting(RandomizedResponse(epsilon, categories)))
    assert back.categories == categories
    assert epsilon <= back.epsilon <= epsilon * (1 + 1e-9) + 1e-12


def test_randomized_response_has_the_same_odds():
    theirs = to_dp_accounting(RandomizedResponse(1.0, 4))
    truth = 1 - theirs.noise_parameter + theirs.noise_parameter / 4
    assert truth / (theirs.noise_parameter / 4) == pytest.approx(math.e)


@pytest.mark.parametrize(
    "event",
    [
        Pure(1.0),
        Approximate(1.0, 1e-6),
        KeySelection(1.0, 1e-6),
        ExponentialMechanism(1.0),
        PermuteAndFlip(1.0),
        Partitioned((Laplace(1.0),)),
        Laplace(1e300, 1e-300),
        RandomizedResponse(1e4),
        "Laplace",
    ],
    ids=lambda event: type(event).__name__,
)
def test_ours_that_they_cannot_say(event):
    for nested in (event, *([Composed((Laplace(1.0), event))] if not isinstance(event, str) else [])):
        with pytest.raises(ParameterError) as caught:
            to_dp_accounting(nested)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "event",
    [
        dp_event.NoOpDpEvent(),
        dp_event.NonPrivateDpEvent(),
        dp_event.UnsupportedDpEvent(),
        dp_event.ComposedDpEvent([]),
        dp_event.ComposedDpEvent([dp_event.NonPrivateDpEvent()]),
        dp_event.ZCDpEvent(0.1, 0.2),
        dp_event.LaplaceDpEvent(0.0),
        dp_event.GaussianDpEvent(math.nan),
        dp_event.RandomizedResponseDpEvent(0.0, 2),
        dp_event.RandomizedResponseDpEvent(1.0, 2),
        dp_event.DiscreteLaplaceDpEvent(0.0, 1),
        dp_event.SampledWithReplacementDpEvent(10, 5, dp_event.GaussianDpEvent(1.0)),
        dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(1.0), 1, 1),
        Laplace(1.0),
        None,
    ],
    ids=lambda event: type(event).__name__,
)
def test_theirs_that_we_cannot_say(event):
    with pytest.raises(ParameterError) as caught:
        from_dp_accounting(event)
    assert "\n" not in str(caught.value)


def test_no_cost_is_left_out_of_a_composition():
    event = dp_event.ComposedDpEvent([dp_event.NoOpDpEvent(), dp_event.LaplaceDpEvent(1.0)])
    assert from_dp_accounting(event) == Composed((Laplace(1.0),))


def test_without_the_library(monkeypatch):
    import importlib

    def missing(name, *_):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    for convert in (to_dp_accounting, from_dp_accounting):
        with pytest.raises(DpfastError, match=r"^dp_accounting is not installed; install dpfast\[dp-accounting\]$"):
            convert(Laplace(1.0))
