"""Intervals for a population: they hold it with the probability that is said, whatever the population."""

from __future__ import annotations

import math
import secrets

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.releases.population_intervals import _highest_mean, _lowest_mean

FRAME = pl.DataFrame({"k": ["a", "b"] * 50, "u": range(100), "v": [1.0, 2.0] * 50})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})
ASKED = {
    "n": dpf.count(),
    "d": dpf.units(),
    "c": dpf.count("v"),
    "s": dpf.sum("v", bounds=(0, 10)),
    "m": dpf.mean("v", bounds=(-5, 10)),
    "p": dpf.proportion("v", above=4),
}
GROUPS = 2000
#: Groups in which an interval may miss: each misses with probability 0.05 at most, and independently of the others. The
#: binomial tail P(X > 165), X of 2,000 trials at 0.05, is 3.2e-10.
MISSED = 165

#: A population: units a group on average, rows of a unit, values of a row (none: those of a unit are at one bound), and
#: the means of rows a unit, of values, of values clipped to (0, 10), and the part above 4.
POPULATIONS = {
    "one row each": (20, lambda rng, n: np.ones(n, int), lambda rng, n: rng.uniform(-5, 10, n), (1, 2.5, 10 / 3, 0.4)),
    "hardly anybody": (
        0.5, lambda rng, n: np.ones(n, int), lambda rng, n: rng.uniform(-5, 10, n), (1, 2.5, 10 / 3, 0.4)
    ),
    "all rows or one": (
        30, lambda rng, n: rng.choice([1, 4], n), lambda rng, n: rng.uniform(-5, 10, n), (2.5, 2.5, 10 / 3, 0.4)
    ),
    "rare large values": (
        50, lambda rng, n: rng.integers(1, 5, n), lambda rng, n: np.where(rng.random(n) < 0.02, 10, -5),
        (2.5, -4.7, 0.2, 0.02),
    ),
    "units that differ": (40, lambda rng, n: np.full(n, 4), None, (4, -0.5, 3.0, 0.3)),
}  # fmt: skip


def a_sample(rng, units, rows_of, values_of):
    """Return rows of one sample for each group: a Poisson number of units, who are in one group each."""
    numbers = rng.poisson(units, GROUPS)
    groups = np.repeat(np.arange(GROUPS), numbers)
    rows = rows_of(rng, groups.size)
    if values_of is None:
        # All rows of a unit have one value, which is at one of the bounds.
        values = np.repeat(np.where(rng.random(groups.size) < 0.3, 10.0, -5.0), rows)
    else:
        values = values_of(rng, rows.sum()).astype(float)
    unit = np.repeat(np.arange(groups.size), rows)
    return pl.DataFrame({"k": np.repeat(groups, rows), "u": unit, "v": values})


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("epsilon", [1.0, 50.0])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_intervals_hold_the_population(population, epsilon, mechanism):
    """Of 2,000 samples with fresh noise more than 165 miss with probability 3.2e-10.

    Six figures in twenty cases: 3.9e-8.
    """
    units, rows_of, values_of, (rows, mean, clipped, above) = POPULATIONS[population]
    each = units * rows
    truths = {"n": each, "c": each, "d": units, "s": each * clipped, "m": mean, "p": above}
    seed = secrets.randbits(64)
    frame = a_sample(np.random.default_rng(seed), units, rows_of, values_of)
    keys = pl.DataFrame({"k": range(GROUPS)})
    ledger = dpf.Ledger(epsilon=100, delta=1e-3)
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 4}
    given = {"mechanism": mechanism, "delta": 1e-6 if mechanism == "gaussian" else 0.0, "interval": "population"}
    shown = dpf.release(frame, "k", keys=keys, ledger=ledger, epsilon=epsilon, **unit, **given, **ASKED).frame
    for name, truth in truths.items():
        low, high = shown[f"{name}_population_lower"], shown[f"{name}_population_upper"]
        missed = ((low > truth) | (high < truth)).sum()
        assert missed <= MISSED, (name, seed)
        assert (low <= high).all(), (name, seed)


def test_intervals_of_the_noise_alone_do_not_hold_the_population():
    """At epsilon 50 hardly any noise is left, and a Poisson number of 20 is itself with probability 0.089."""
    seed = secrets.randbits(64)
    frame = a_sample(np.random.default_rng(seed), *POPULATIONS["one row each"][:3])
    keys = pl.DataFrame({"k": range(GROUPS)})
    given = {"privacy_unit": "row", "epsilon": 50.0, "interval": "population"}
    shown = dpf.release(frame, "k", keys=keys, ledger=dpf.Ledger(epsilon=50), n=dpf.count(), **given).frame
    # P(X <= 1000) of 2,000 trials at 0.9 is below 1e-300.
    assert ((shown["n_lower"] > 20) | (shown["n_upper"] < 20)).sum() > 1000
    # They are no wider than Chernoff's bound makes them: 20 + sqrt(2 * 20 * ln 80) and so on.
    width = (shown["n_population_upper"] - shown["n_population_lower"]).mean()
    assert 20 < width < 40


def test_ends_are_the_roots_of_chernoffs_exponent():
    sums = np.array([0.01, 0.5, 1.0, 3.0, 10.0, 1e3, 1e6, 1e12])
    for limit in (math.log(80), 40 * math.log(80), 1e6):
        for ends, least in ((_highest_mean(sums, limit), 0.0), (_lowest_mean(sums, limit), limit * 0.02)):
            exponent = ends - sums + sums * np.log(sums / np.maximum(ends, 1e-300))
            known = (sums > least) & (ends > 1e-290)
            # Of large sums the exponent is a small difference of large numbers, and ends are a part in 1e9 wider.
            close = 1e-6 + 1e-8 * sums / limit + 1e-8 * np.sqrt(sums / limit)
            assert (np.abs(exponent / limit - 1)[known] <= close[known] + 1e-15 * sums[known] / limit * 100).all()
    assert _lowest_mean(np.array([0.0]), 5.0).tolist() == [0.0]
    assert _highest_mean(np.array([0.0]), 5.0) == pytest.approx(5.0, rel=1e-6)


def test_ends_widen_with_what_a_unit_may_add_and_rise_with_the_figure():
    sums = np.linspace(0, 1000, 500)
    for ends in (_highest_mean, _lowest_mean):
        assert (np.diff(ends(sums, 4.0)) >= 0).all()
    assert (_highest_mean(sums, 8.0) >= _highest_mean(sums, 4.0)).all()
    assert (_lowest_mean(sums, 8.0) <= _lowest_mean(sums, 4.0)).all()


@pytest.mark.parametrize(
    "unit", [{"privacy_unit": "row"}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}]
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("keys", [KEYS, None])
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}])
@pytest.mark.parametrize("rows", [100, 1, 0])
def test_every_route_has_the_columns(unit, neighbors, keys, budget, rows):
    delta = 1e-6 if keys is None or "epsilon" in budget else 0.0
    given = {**unit, **budget, "delta": delta, "neighbors": neighbors, "keys": keys, "interval": "population"}
    plan = dpf.plan(FRAME.head(rows).lazy(), "k", **given, **ASKED)
    accountant = "zcdp" if "rho" in budget else "basic"
    ledger = dpf.Ledger(epsilon=50, delta=1e-3, accountant=accountant)
    schema = plan.lazy(ledger).collect_schema()
    shown = plan.run(ledger).frame
    assert shown.schema == schema
    for name in ASKED:
        assert schema[f"{name}_population_lower"] == schema[f"{name}_population_upper"] == pl.Float64
        assert shown[f"{name}_population_lower"].null_count() == 0
        assert shown[f"{name}_population_lower"].is_finite().all()
        assert (shown[f"{name}_population_lower"] <= shown[f"{name}_population_upper"]).all()
    assert "population    intervals of n, d, c, s, m, p" in plan.explain()


def test_what_has_no_such_interval_keeps_its_columns():
    asked = {"n": dpf.count(), "q": dpf.quantile("v", 0.5, bounds=(0, 5)), "h": dpf.histogram("v", [0, 5])}
    plan = dpf.plan(FRAME, "k", keys=KEYS, privacy_unit="row", epsilon=1.0, interval="population", **asked)
    shown = plan.run(dpf.Ledger(epsilon=1)).frame
    assert [name for name in shown.columns if "population" in name] == ["n_population_lower", "n_population_upper"]


def test_negative_sums_are_mirrored():
    frame = pl.DataFrame({"k": ["a"] * 400, "v": [-2.0] * 400})
    asked = {"s": dpf.sum("v", bounds=(-5, 0))}
    given = {"privacy_unit": "row", "epsilon": 100.0, "interval": "population"}
    shown = dpf.release(frame, "k", keys=KEYS.head(1), ledger=dpf.Ledger(epsilon=100), **given, **asked).frame.row(
        0, named=True
    )
    assert -1200 < shown["s_population_lower"] < -900 < -700 < shown["s_population_upper"] < -500


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"interval": "sample", "n": dpf.count()}, 'interval must be "noise" or "population"'),
        ({"s": dpf.sum("v", bounds=(-1, 1))}, 'interval must be "noise" for a sum with bounds on both sides of 0'),
        ({"q": dpf.quantile("v", 0.5, bounds=(0, 1))}, 'interval must be "noise" where no count'),
        ({"workload": dpf.workloads.identity(3)}, 'interval must be "noise" with a workload'),
        (
            {"n": dpf.count(), "privacy_unit": "u", "max_groups": "auto", "max_rows_per_group": "auto", "delta": 1e-6},
            'interval must be "noise" with max_groups',
        ),
        ({"n": dpf.count(), "n_population_lower": dpf.count()}, "the query's name must be"),
    ],
)
def test_where_they_are_not_known_they_are_refused(given, said):
    with pytest.raises(ParameterError, match="^" + said):
        dpf.plan(FRAME, "k", **{"keys": KEYS, "privacy_unit": "row", "epsilon": 1.0, "interval": "population", **given})
