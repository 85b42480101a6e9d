"""Exact integer costs: never below the truth, additive, and the same for one event as for a million."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpfast.accounting.accountants import basic, gdp, rdp, zcdp
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
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, charge_units
from dpfast.exact.balls import (
    as_written,
    ball,
    ceiling_units,
    float_above,
    round_up_written,
    units_above,
    units_below,
    working_precision,
)
from dpfast.exact.elementary import SLACK, exp_minus, log, one_minus_exp
from dpfast.exact.units import Units, units_as_written, units_of_floats

MANY = settings(max_examples=300, deadline=None)
POSITIVE = st.floats(1e-6, 1e4)


def rho_of_laplace(e):
    return e + mp.expm1(-e)


def rho_of_pure(e):
    return e * mp.tanh(e / 2)


def rho_of_range(e):
    x = e / mp.expm1(e)
    return x - 1 - mp.log(x)


def test_golden_rho():
    """Soundness rules 21 and 22."""
    assert zcdp.cost(Laplace(1.0)) == (367879441171442322, 0)
    assert zcdp.cost(Laplace(1.0, 2.0))[0] / 1e18 == pytest.approx(1.1353353, abs=1e-7)
    assert zcdp.cost(DiscreteLaplace(1.0)) == zcdp.cost(Pure(1.0)) == (462117157260009759, 0)
    assert zcdp.cost(PermuteAndFlip(1.0)) == zcdp.cost(RandomizedResponse(1.0)) == zcdp.cost(Pure(1.0))
    assert zcdp.cost(KeySelection(1.0, 1e-6)) == zcdp.cost(Approximate(1.0, 1e-6)) == (462117157260009759, 10**12)
    assert zcdp.cost(ExponentialMechanism(1.0))[0] < 10**18 // 8
    assert zcdp.cost(ExponentialMechanism(0.001))[0] == pytest.approx(1e12 / 8, rel=1e-6)
    assert zcdp.cost(Gaussian(10.0)) == (5 * 10**15, 0)
    assert zcdp.cost(ZeroConcentrated(0.1)) == (10**17, 0)


@MANY
@given(POSITIVE)
def test_rho_is_rounded_up(x):
    """Within one unit above 60 digits of the formula."""
    with mp.workdps(60):
        written, exact = mp.mpf(repr(x)), 1 / mp.mpf(x)
        for event, rho in [
            (Laplace(x), rho_of_laplace(exact)),
            (DiscreteLaplace(x), rho_of_pure(exact)),
            (Pure(x), rho_of_pure(mp.mpf(basic.cost(Pure(x))[0]) / 10**18)),
            (ExponentialMechanism(x), rho_of_range(written)),
            (Gaussian(x), exact**2 / 2),
            (ZeroConcentrated(x), written),
        ]:
            # The epsilon of what is pure is rounded up to a unit first, which e tanh(e/2) at most doubles.
            assert rho * 10**18 * (1 - mp.mpf(10) ** -50) <= zcdp.cost(event)[0] <= rho * 10**18 + 4, event


@MANY
@given(POSITIVE, st.floats(1e-3, 1e3), st.integers(1, 10**9))
def test_vectors_are_not_below_single_costs(x, sensitivity, whole):
    assume(max(sensitivity, whole) < 1e7 * x)
    for function, single, slack in ((zcdp.rho_units, zcdp.cost, 2.0**-38), (basic.epsilon_units, basic.cost, 2.0**-49)):
        cases = [
            (Laplace(x, sensitivity), {"scale": x, "sensitivity": sensitivity}),
            (DiscreteLaplace(x, whole), {"scale": x, "sensitivity": whole}),
            (ExponentialMechanism(x), {"epsilon": x}),
            (PermuteAndFlip(x), {"epsilon": [x]}),
            (RandomizedResponse(x, 3), {"epsilon": x, "categories": 3}),
            (Pure(x), {"epsilon": np.array([x])}),
        ]
        if function is zcdp.rho_units:
            cases += [(Gaussian(x, sensitivity), {"scale": x, "sensitivity": sensitivity})]
            cases += [(ZeroConcentrated(x), {"rho": x})]
        for event, parameters in cases:
            one, (found,) = single(event)[0], function(type(event), **parameters)
            assert one <= found <= one + 2 + math.ceil(one * Fraction(slack)), event


@pytest.mark.parametrize("kind", [Laplace, DiscreteLaplace, Gaussian, ExponentialMechanism, Pure])
def test_a_million_at_once(kind):
    """Exact sums; a row of benchmarks/comparisons.py says how fast they are made."""
    generator = np.random.default_rng(7)
    values = 10.0 ** generator.uniform(-3, 3, 10**6)
    name = "scale" if kind in (Laplace, DiscreteLaplace, Gaussian) else "epsilon"
    units = zcdp.rho_units(kind, **{name: values})
    total = units.total()
    assert total == sum(units)
    assert len(units) == 10**6
    chosen = range(0, 10**6, 9973)
    for i in chosen:
        assert units[i] >= zcdp.cost(kind(values[i]))[0]


@pytest.mark.parametrize("value", [0.1, 0.25, 1e-6, 123.456, 99999.125, 1e-15, 0.3, 7.0])
def test_short_decimals_are_exact(value):
    """Soundness rule 10: a million charges of 0.1 are 100,000."""
    assert basic.epsilon_units(Pure, epsilon=[value] * 3).total() == 3 * charge_units(value, "epsilon")
    if value < 1:
        assert basic.delta_units([value]).total() == charge_units(value, "delta")
        assert basic.epsilon_units(Approximate, epsilon=value, delta=1e-6).total() == charge_units(value, "epsilon")


@MANY
@given(st.floats(1e-18, 1e6))
def test_decimals_are_rounded_up(value):
    (found,) = units_as_written(np.array([value]), "x")
    exact = charge_units(value, "epsilon")
    assert exact <= found <= exact + 1 + exact * Fraction(2.0**-49)


@given(st.floats(0.0, 2.0**53, exclude_max=True))
def test_floats_are_rounded_up(value):
    (found,) = units_of_floats(np.array([value]), "x")
    assert Fraction(value) * UNITS_PER_ONE <= found <= Fraction(value) * UNITS_PER_ONE + 258


def test_sums_do_not_wrap():
    """Soundness rule 10: the sum of both limbs' largest values."""
    size = 1000
    units = Units(np.full(size, 2**53, np.int64), np.full(size, 10**18, np.int64))
    assert units.total() == sum(units) == size * (2**53 * 10**18 + 10**18)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (Laplace, {}),
        (Laplace, {"scale": [1.0, -1.0]}),
        (Laplace, {"scale": [1.0, math.nan]}),
        (Laplace, {"scale": [0.0]}),
        (Laplace, {"scale": ["1"]}),
        (Laplace, {"scale": [True]}),
        (Laplace, {"scale": [[1.0]]}),
        (Laplace, {"scale": [1.0, 2.0], "sensitivity": [1.0, 2.0, 3.0]}),
        (Laplace, {"scale": 1.0, "epsilon": 2.0}),
        (Laplace, {"scale": 1e-200, "sensitivity": 1e200}),
        (Pure, {"epsilon": [math.inf]}),
        (Pure, {"epsilon": 1e300}),
        (Partitioned, {"events": [1.0]}),
        (PoissonSubsampled, {"rate": 0.1}),
        (int, {}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("function", [zcdp.rho_units, basic.epsilon_units])
def test_bad_vectors(function, kind, parameters):
    with pytest.raises(ParameterError) as caught:
        function(kind, **parameters)
    assert "\n" not in str(caught.value)


def test_kinds_without_a_formula():
    with pytest.raises(ParameterError):
        basic.epsilon_units(Gaussian, scale=1.0)
    with pytest.raises(ParameterError):
        zcdp.rho_units(Approximate, epsilon=1.0, delta=0.1)


@given(st.lists(st.sampled_from([Laplace(3.0), Pure(0.1), ExponentialMechanism(0.7)]), min_size=1, max_size=6))
def test_costs_add_up_exactly(events):
    for cost in (basic.cost, zcdp.cost):
        pairs = [cost(event) for event in events]
        assert cost(events) == cost(Composed(tuple(events))) == tuple(map(sum, zip(*pairs, strict=True)))
    curves = [rdp.cost(event)[0] for event in events]
    assert rdp.cost(events) == (tuple(map(sum, zip(*curves, strict=True))), 0)


def test_partition_costs_the_larger():
    """Soundness rule 13."""
    parts = Partitioned((Approximate(1.0, 1e-9), Approximate(0.5, 1e-6).times(3)))
    assert basic.cost(parts) == (15 * 10**17, 3 * 10**12)
    assert zcdp.cost(parts)[0] == zcdp.cost(Pure(1.0))[0] > 3 * zcdp.cost(Pure(0.5))[0]
    assert gdp.cost(Partitioned((Gaussian(1.0), Gaussian(2.0).times(3)))) == 10**36


@pytest.mark.parametrize("x", [1e-300, 1e-9, 1e9, 1e300])
def test_extreme_parameters(x):
    """No overflow, no zero."""
    for event in (Laplace(x), Pure(x), ExponentialMechanism(x), Gaussian(x), ZeroConcentrated(x), DiscreteLaplace(x)):
        assert zcdp.cost(event)[0] >= 1
        accountant = zcdp.ZCDP(event)
        assert 0.0 <= accountant.delta(1.0) <= 1.0
        assert accountant.epsilon(1e-6) >= 0.0
        assert min(rdp.cost(event)[0]) >= 1
        assert 0.0 <= rdp.RDP(event).delta(1.0) <= 1.0
        assert rdp.RDP(event).epsilon(1e-6) >= 0.0
    assert basic.cost(PoissonSubsampled(Pure(x), 0.5))[0] <= basic.cost(Pure(x))[0]
    assert gdp.GDP(Gaussian(x)).delta(1.0) <= 1.0
    assert gdp.GDP(Gaussian(x)).epsilon(1e-6) >= 0.0


# Elementary functions and balls --------------------------------------------------------------------------------

ARGUMENTS = np.concatenate([[0.0], 10.0 ** np.linspace(-300, 308, 3001), np.linspace(0, 50, 3001)])


@pytest.mark.parametrize("function", [exp_minus, one_minus_exp])
def test_exponentials(function):
    """The proved error, against 40 digits."""
    found = function(ARGUMENTS)
    with mp.workdps(40):
        for x, y in zip(ARGUMENTS, found, strict=True):
            exact = mp.exp(-mp.mpf(x)) if function is exp_minus else -mp.expm1(-mp.mpf(x))
            assert abs(mp.mpf(y) - exact) <= SLACK / 4 * exact + mp.mpf("1e-320")


def test_logarithms():
    arguments = np.concatenate([10.0 ** np.linspace(-300, 308, 3001), np.linspace(0.5, 2.0, 3001)])
    with mp.workdps(40):
        for x, y in zip(arguments, log(arguments), strict=True):
            exact = mp.log(mp.mpf(x))
            assert abs(mp.mpf(y) - exact) <= SLACK / 4 * (abs(exact) + 1)


@given(st.fractions(min_value=0, max_value=10**30))
def test_balls_leave_outward(x):
    unit = Fraction(1, UNITS_PER_ONE)
    for bits in (53, 192):
        with working_precision(bits):
            assert units_below(ball(x)) * unit <= x <= units_above(ball(x)) * unit
            assert float_above(ball(x)) >= x
    with working_precision():
        assert units_above(ball(x)) - units_below(ball(x)) <= 2
        assert ceiling_units(x) <= units_above(ball(x)) <= ceiling_units(x) + 1
    assert Fraction(round_up_written(x)) >= x <= as_written(round_up_written(x))
    assert float_above(ball(0)) == 0.0
