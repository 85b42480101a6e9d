"""Quantiles in plans: every route to the points, what is charged, what is explained, and that no value is needed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.events import ExponentialMechanism
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.exact.balls import as_written

CARRIERS = ["AA", "B6", "DL", "UA"]
LARGE = {"epsilon": 9e5}


def flights(size=4000):
    """Return rows like those of flights: carriers, planes, delays in minutes with nulls, and hours in the air."""
    generator = np.random.default_rng(20_261_124)
    delays = np.rint(generator.exponential(40, size) - 20).astype(np.int64)
    return pl.DataFrame(
        {
            "carrier": generator.choice(CARRIERS, size),
            "tailnum": [f"N{number}" for number in generator.integers(0, size // 4, size)],
            "dep_delay": pl.Series(delays).set(pl.Series(generator.random(size) < 0.05), None),
            "air_time": generator.normal(2.5, 1.0, size).astype(np.float32),
            "day": generator.integers(0, 7, size),
            # So far apart that no 63 bits hold both.
            "far": np.where(np.arange(size) % 2, 2**60, -(2**60)),
            "farther": np.where(np.arange(size) % 2, 2**60, -(2**60)),
        }
    )


def exact_ranks(values, drawn, q):
    """Return how many ranks a drawn value is beside the quantile."""
    values = np.sort(np.asarray(values))
    lt, le = np.searchsorted(values, drawn), np.searchsorted(values, drawn, "right")
    return max(lt - q * values.size, q * values.size - le, 0.0)


def run(data, by=None, **arguments):
    ledger = dpf.Ledger(epsilon=1e6, delta=0.5)
    return dpf.plan(data, by, **{"privacy_unit": "row", **arguments}).run(ledger).frame


QUERIES = {
    "delay": dpf.quantile("dep_delay", [0.9, 0.25, 0.5], bounds=(-30, 300)),
    "air": dpf.quantile("air_time", 0.5, bounds=(0, 8)),
}
KEYS = pl.DataFrame({"carrier": [*CARRIERS, "ZZ"]})
ROUTES = {
    "slots": ({"carrier": pl.Enum([*CARRIERS, "ZZ"])}, {"keys": KEYS}, ["carrier"]),
    "strings": ({}, {"keys": KEYS}, ["carrier"]),
    "bins": (
        {},
        {"keys": KEYS.join(pl.DataFrame({"day": [0, 3]}), how="cross")},
        ["carrier", dpf.bins("day", [0, 3, 7])],
    ),
    "selected": ({}, {"delta": 1e-3}, ["carrier"]),
    "units": ({}, {"keys": KEYS, "privacy_unit": "tailnum", "max_groups": 4, "max_rows_per_group": 50}, ["carrier"]),
    "units, selected": (
        {},
        {"delta": 1e-3, "privacy_unit": "tailnum", "max_groups": 4, "max_rows_per_group": 50},
        ["carrier"],
    ),
    "native": ({}, {"delta": 1e-3}, ["carrier", "far", "farther"]),
    "native, public": (
        {},
        {"keys": KEYS.join(pl.DataFrame({"far": [-(2**60), 2**60], "farther": [-(2**60), 2**60]}), how="cross")},
        ["carrier", "far", "farther"],
    ),
    "nothing": ({}, {}, []),
}


@pytest.mark.parametrize("lazy", [False, True], ids=["frame", "lazy"])
@pytest.mark.parametrize("route", ROUTES)
def test_every_route_draws_near_the_exact_quantiles(route, lazy):
    """At a huge epsilon drawn points are within the ranks that the release names, in every group, nulls left out."""
    casts, arguments, by = ROUTES[route]
    data = flights().cast(casts)
    released = run(data.lazy() if lazy else data, by, **QUERIES, **arguments, **LARGE)
    assert released.columns[-6:] == ["delay_p90", "delay_p25", "delay_p50", "delay_ranks", "air", "air_ranks"]
    assert released["delay_p90"].dtype == pl.Int64
    assert released["air"].dtype == pl.Float64
    if by and "day" in released.columns:
        data = data.with_columns(pl.when(pl.col("day") < 3).then(0).otherwise(3).alias("day"))
    groups = 0
    for row in released.iter_rows(named=True):
        own = data.filter([pl.col(name) == row[name] for name in ("carrier", "day", "far") if name in row] or True)
        if not own.height:
            continue
        groups += 1
        delays, hours = own["dep_delay"].drop_nulls().to_numpy(), own["air_time"].to_numpy()
        assert row["delay_ranks"] < 1.5
        for name, q in (("delay_p25", 0.25), ("delay_p50", 0.5), ("delay_p90", 0.9)):
            assert exact_ranks(delays, row[name], q) <= row["delay_ranks"] + 1
        assert exact_ranks(hours.astype(np.float64).clip(0, 8), row["air"], 0.5) <= row["air_ranks"] + 1
    assert groups == (8 if "far" in row or "day" in row else 4 if by else 1)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_scanned(tmp_path, suffix):
    path = tmp_path / f"flights.{suffix}"
    data = flights()
    getattr(data, f"write_{suffix}")(path)
    schema = {"schema": dict(data.schema)} if suffix == "csv" else {}
    released = run(path, "carrier", keys=KEYS, **QUERIES, **LARGE, **schema)
    expected = run(data, "carrier", keys=KEYS, **QUERIES, **LARGE)
    assert released.height == 5
    filled = pl.col("carrier") != "ZZ"
    near = (released.filter(filled)["delay_p50"] - expected.filter(filled)["delay_p50"]).abs().max()
    assert near <= 1


def test_empty_data_are_charged_and_released():
    """Soundness rule 12: an empty frame costs the same; its quantiles are uniform between the bounds."""
    ledger = dpf.Ledger(epsilon=2)
    released = dpf.release(
        flights().clear(), "carrier", keys=KEYS, **{"privacy_unit": "row", **QUERIES}, epsilon=1, ledger=ledger
    ).frame
    assert released.height == 5
    assert released["delay_p50"].is_between(-30, 300).all()
    assert ledger.remaining.epsilon == 1


def charge_of(unit, groups, nodes, **arguments):
    plan = dpf.plan(flights(), "carrier", keys=KEYS[:groups], epsilon=1, **{"privacy_unit": "row", **unit, **arguments})
    (charge,) = plan._blueprint.charges
    assert charge.count == nodes
    assert isinstance(charge.event, ExponentialMechanism)
    # Soundness rule 24: as many draws as a unit pays for, together no more than the budget.
    assert as_written(charge.event.epsilon) * nodes <= 1
    assert as_written(charge.event.epsilon) * nodes > 1 - Fraction(1, 10**9)
    assert charge.epsilon_units * charge.count <= 10**18
    ledger = dpf.Ledger(epsilon=1, neighbors=unit.get("neighbors", "add_remove"))
    plan.run(ledger)
    assert ledger.spent.epsilon == pytest.approx(1)
    assert ledger.spent.epsilon <= 1


def test_charges():
    """The levels of a group, times the groups of a unit, but no more than there are, whoever is replaced."""
    one, three = dpf.quantile("dep_delay", 0.5, bounds=(0, 9)), QUERIES["delay"]
    person = {"privacy_unit": "tailnum", "max_groups": 2, "max_rows_per_group": 3}
    replaced = {"neighbors": "replace"}
    charge_of({}, 5, 1, q=one)
    charge_of({}, 5, 2, q=three)
    charge_of(replaced, 5, 1, q=one)
    charge_of(replaced, 1, 1, q=one)
    charge_of(replaced, 5, 2, q=three)
    charge_of(person, 5, 2, q=one)
    charge_of(person, 5, 2 * 2, q=three)
    charge_of(person | replaced, 5, 2, q=one)
    charge_of(person | replaced, 1, 1, q=one)
    charge_of(person | replaced, 1, 2, q=three)


def test_rho_is_that_of_the_events():
    """Bounded range: epsilon**2 / 8 a draw at least; nearly all of the budget is used."""
    plan = dpf.plan(flights(), "carrier", keys=KEYS, delay=QUERIES["delay"], n=dpf.count(), privacy_unit="row", rho=0.1)
    assert 0.0999999 < plan.rho <= 0.1
    event = plan._blueprint.charges[0].event
    assert event.epsilon**2 / 8 * 2 >= 0.05 * (1 - 1e-6)
    ledger = dpf.Ledger(epsilon=8, delta=1e-6, accountant="zcdp")
    plan.run(ledger)
    assert ledger.spent.rho <= 0.1


def test_noise_of_other_queries_is_chosen_as_before():
    """delta goes to Gaussian noise alone; a plan of quantiles alone spends none."""
    plan = dpf.plan(flights(), "carrier", keys=KEYS, **{"privacy_unit": "row", **QUERIES}, epsilon=1, delta=1e-6)
    assert plan.delta == 0
    plan = dpf.plan(
        flights(), "carrier", keys=KEYS, n=dpf.count(), **{"privacy_unit": "row", **QUERIES}, epsilon=1, delta=1e-6
    )
    plan = dpf.plan(
        flights(),
        "carrier",
        keys=KEYS,
        n=dpf.count(),
        **{"privacy_unit": "row", **QUERIES},
        epsilon=1,
        delta=1e-6,
        mechanism="gaussian",
    )
    assert plan.delta == 1e-6
    assert plan.to_frame()["mechanism"].to_list() == ["gaussian", "exponential", "exponential"]


def test_what_a_plan_says():
    plan = dpf.plan(
        flights(),
        "carrier",
        keys=KEYS,
        **QUERIES,
        privacy_unit="tailnum",
        max_groups=2,
        max_rows_per_group=3,
        epsilon=1,
    )
    text = plan.explain()
    assert "quantiles 0.9, 0.25, 0.5 of dep_delay, values clipped to [-30, 300]" in text
    # Of the levels' nodes that of 0.9 among the upper half has the largest sensitivity, 0.8.
    assert "score sensitivity 2.4 ranks = 3 rows x 0.8 (max(q, 1 - q)); a unit pays for 4 draws" in text
    frame = plan.to_frame()
    assert frame["event"][0] == repr(plan._blueprint.charges[0].event.times(4))
    errors = plan.error(0.05)
    assert errors["one"].to_list() == frame["error95"].to_list()
    assert (errors["all"] > errors["one"]).all()
    released = plan.run(dpf.Ledger(epsilon=1)).frame
    assert released["air_ranks"].to_list() == [errors["one"][1]] * 5


@pytest.mark.statistical
def test_ranks_hold_as_often_as_they_say():
    """Three quantiles at once, 2,000 groups: at most 5% stray further. False-failure rate below 1e-12."""
    size, groups = 400, 2000
    data = pl.DataFrame({"g": np.repeat(np.arange(groups), size), "x": np.tile(np.arange(size) * 7 % 1000, groups)})
    released = run(
        data,
        "g",
        x=dpf.quantile("x", [0.2, 0.5, 0.8], bounds=(0, 1000)),
        keys=pl.DataFrame({"g": np.arange(groups)}),
        epsilon=1,
    )
    values = np.arange(size) * 7 % 1000
    strays = sum(
        max(exact_ranks(values, row[f"x_p{round(100 * q)}"], q) for q in (0.2, 0.5, 0.8)) > row["x_ranks"]
        for row in released.iter_rows(named=True)
    )
    # 100 are expected at most, with a deviation of 10.
    assert strays < 175
    print(f"{strays} of {groups} stray further")


def test_charts_of_quantiles(tmp_path):
    pytest.importorskip("vl_convert")
    ledger = dpf.Ledger(epsilon=1)
    release = dpf.release(
        flights(), "carrier", keys=KEYS, **{"privacy_unit": "row", **QUERIES}, epsilon=1, ledger=ledger
    )
    for query in (None, "delay", "delay_p90", "air"):
        release.plot(tmp_path / "chart.png", query=query)
    with pytest.raises(ParameterError, match="query must be one of"):
        release.plot(query="delay_p33")


BAD = [
    ({"q": dpf.quantile("dep_delay", 0.5, bounds=(0, 9))}, {"split": "optimal"}, "split must be"),
    ({"q": dpf.quantile("dep_delay", 0.5, bounds=(0, 9)), "q_ranks": dpf.count()}, {}, "the query's name must be"),
    (
        {"q": dpf.quantile("dep_delay", [0.2, 0.5], bounds=(0, 9))},
        {"epsilon": 1e-18},
        "at least",
    ),
    ({"q": dpf.quantile("dep_delay", 0.5, bounds=(0, 9), grid=1024)}, {}, "grid must be"),
]


@pytest.mark.parametrize(("queries", "change", "message"), BAD)
def test_bad_plans_are_refused(queries, change, message):
    with pytest.raises(DpfastError, match=message) as caught:
        dpf.plan(flights(10), "carrier", keys=KEYS, **({"privacy_unit": "row", **{"epsilon": 1.0} | change, **queries}))
    assert "\n" not in str(caught.value)


def test_bad_queries_are_refused():
    with pytest.raises(ParameterError, match="q must be"):
        dpf.quantile("x", 2, bounds=(0, 1))
    with pytest.raises(ParameterError, match="bounds must be"):
        dpf.quantile("x", 0.5, bounds=(1, 0))
    with pytest.raises(ParameterError, match="grid must be"):
        dpf.quantile("x", 0.5, bounds=(0, 9), grid=100)
    with pytest.raises(ParameterError, match="column must be"):
        dpf.quantile(5, 0.5, bounds=(0, 1))
    with pytest.raises(ColumnError, match="cannot draw quantiles of"):
        dpf.plan(flights(10), q=dpf.quantile("carrier", 0.5, bounds=(0, 1)), privacy_unit="row", epsilon=1)
    with pytest.raises(ColumnError):
        dpf.plan(flights(10), q=dpf.quantile("missing", 0.5, bounds=(0, 1)), privacy_unit="row", epsilon=1)
