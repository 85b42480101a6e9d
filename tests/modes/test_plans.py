"""Modes in plans: what is charged, in which order, what is said, what is refused, and what leaves."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib import import_module

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.events import ExponentialMechanism
from dpfast.aggregation.exact import Aggregation
from dpfast.errors import DpfastError, ParameterError
from dpfast.exact.balls import as_written

from .oracles import exported_bytes

SECRET = "SECRET-DESTINATION, a long one"
KEYS = pl.DataFrame({"g": ["a", "b", "c", "d", "e"]})
MODE = dpf.mode("x", candidates=["IAH", "MIA", "ORD"])
PERSON = {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}


def rows(size=1500):
    generator = np.random.default_rng(20_261_121)
    return pl.DataFrame(
        {
            "g": generator.choice(["a", "b", "c"], size),
            "x": generator.choice(["IAH", "MIA", SECRET], size),
            "u": generator.integers(0, size // 3, size),
        }
    )


@pytest.mark.parametrize(
    ("arguments", "groups", "draws"),
    [
        ({}, 5, 1),
        ({"neighbors": "replace"}, 5, 1),
        (PERSON, 5, 2),
        (PERSON, 1, 1),
        # What is taken from a group and brought to another costs half each: no more than the groups of one side.
        (PERSON | {"neighbors": "replace"}, 5, 2),
        (PERSON | {"neighbors": "replace"}, 1, 1),
    ],
)
def test_charges(arguments, groups, draws):
    """As many draws as a unit has groups, but no more than there are; together nearly all of the budget."""
    plan = dpf.plan(rows(), "g", keys=KEYS[:groups], epsilon=1, m=MODE, **{"privacy_unit": "row", **arguments})
    (charge,) = plan._blueprint.charges
    assert charge.count == draws
    assert isinstance(charge.event, ExponentialMechanism)
    assert 1 - Fraction(1, 10**9) < as_written(charge.event.epsilon) * draws <= 1
    assert charge.epsilon_units * draws <= 10**18
    ledger = dpf.Ledger(epsilon=1, neighbors=arguments.get("neighbors", "add_remove"))
    plan.run(ledger)
    assert ledger.spent.epsilon == pytest.approx(1)
    # Twice the rows of a replaced unit.
    (part,) = plan._blueprint.parts
    factor = 2 if "neighbors" in arguments else 1
    assert part.slope == pytest.approx(1 / draws / factor / arguments.get("max_rows_per_group", 1))


def test_rho_is_that_of_the_events():
    plan = dpf.plan(rows(), "g", keys=KEYS, m=MODE, n=dpf.count(), rho=0.1, **PERSON)
    assert 0.0999999 < plan.rho <= 0.1
    charge = plan._blueprint.charges[0]
    assert charge.event.epsilon**2 / 8 * charge.count >= 0.05 * (1 - 1e-6)
    ledger = dpf.Ledger(epsilon=8, delta=1e-6, accountant="zcdp")
    plan.run(ledger)
    assert ledger.spent.rho <= 0.1


def test_selected_keys_cost_their_share():
    plan = dpf.plan(rows(), "g", m=MODE, epsilon=1, delta=1e-6, **PERSON)
    *keys, mode = plan._blueprint.charges
    assert sum(charge.epsilon_units for charge in keys) + mode.epsilon_units * mode.count <= 10**18
    assert plan.error()["all"].to_list() == [None]
    assert set(plan.run(dpf.Ledger(epsilon=1, delta=1e-6)).frame["g"]) <= {"a", "b", "c"}


def test_no_delta_is_spent_on_modes():
    plan = dpf.plan(
        rows(), "g", keys=KEYS, m=MODE, n=dpf.count(), privacy_unit="row", epsilon=1, delta=1e-6, mechanism="gaussian"
    )
    assert plan.to_frame()["mechanism"].to_list() == ["exponential", "gaussian"]
    assert plan.to_frame()["delta"].to_list() == [0, 1e-6]
    assert dpf.plan(rows(), "g", keys=KEYS, m=MODE, privacy_unit="row", epsilon=1, delta=1e-6).delta == 0


def test_the_charge_comes_first_whatever_the_data(monkeypatch):
    """Soundness rule 12: charge, data, draw; an empty frame costs the same."""
    seen = []
    drawing = import_module("dpfast.releases.drawing")
    for owner, name in ((dpf.Ledger, "_record"), (Aggregation, "run"), (drawing, "draw_modes")):
        original = getattr(owner, name)

        def spied(*given, _name=name, _original=original, **named):
            result = _original(*given, **named)
            seen.append(_name)
            return result

        monkeypatch.setattr(owner, name, spied)
    ledger = dpf.Ledger(epsilon=2)
    released = dpf.release(rows().clear(), "g", keys=KEYS, m=MODE, privacy_unit="row", epsilon=1, ledger=ledger).frame
    assert seen == ["_record", "run", "draw_modes"]
    assert released.height == 5
    assert ledger.remaining.epsilon == 1


def test_what_a_plan_says():
    plan = dpf.plan(rows(), "g", keys=KEYS, m=MODE, epsilon=1, neighbors="replace", **PERSON)
    text = plan.explain()
    assert "most common of 3 candidates in x" in text
    assert "score sensitivity 3 rows = 3 rows x 1 (a row may change its candidate); a unit pays for 2 draws" in text
    assert "a factor e every 12 rows" in text
    assert plan.to_frame()["event"][0] == repr(plan._blueprint.charges[0].event.times(2))
    assert SECRET not in text


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
@pytest.mark.parametrize("arguments", [{"keys": KEYS}, {"delta": 1e-6}, {"delta": 1e-6, **PERSON}])
def test_no_bytes_of_other_values_leave(dtype, arguments):
    """Soundness rule 20: the release holds the candidates alone, in buffers of their own."""
    data = rows().cast({"x": dtype})
    # As a user might take candidates from a list of known values: the bytes beside them must stay behind.
    known = pl.Series(["IAH", SECRET, "a destination of some length"]).cast(dtype)[[0, 2]]
    if dtype == pl.String:
        # The control: they would not.
        assert any(SECRET[:12].encode() in exported for exported in exported_bytes(known.to_frame("m")))
    released = dpf.release(
        data,
        "g",
        m=dpf.mode("x", candidates=known),
        epsilon=1,
        ledger=dpf.Ledger(epsilon=1, delta=1e-6),
        **{"privacy_unit": "row", **arguments},
    ).frame
    assert released["m"].dtype == pl.String
    assert all(SECRET[:12].encode() not in exported for exported in exported_bytes(released))


def test_charts_of_modes(tmp_path):
    pytest.importorskip("vl_convert")
    mode = dpf.mode("u", candidates=[3, None, *range(5, 40)])
    for arguments in ({"keys": KEYS}, {"delta": 1e-12}):
        ledger = dpf.Ledger(epsilon=1, delta=1e-6)
        release = dpf.release(
            rows(30),
            "g",
            m=MODE,
            other=mode,
            n=dpf.count(),
            epsilon=0.1,
            ledger=ledger,
            **{"privacy_unit": "row", **arguments},
        )
        for query in ("m", "other", "n"):
            drawn = release.plot(tmp_path / "chart.png", query=query, top=2).to_dict()
            if query == "m" and release.frame.height:
                names = json.loads(
                    drawn["layer"][0]["encoding"]["x"]["axis"]["labelExpr"].removesuffix("[datum.value]")
                )
                assert sorted(names) == sorted(set(release.frame["m"].head(2)))


BAD = [
    ({"m": MODE}, {"split": "optimal"}, "split must be"),
    ({"m": MODE, "m_rows": dpf.count()}, {}, "the query's name must be"),
    ({"m": MODE}, {"epsilon": 4e-18, **PERSON, "max_groups": 5}, "epsilon must be at least 5e-18"),
    ({"m": dpf.mode("x", candidates=[1])}, {}, "the column 'x' of dtype String cannot be compared"),
    ({"m": dpf.mode("u", candidates=["1"])}, {}, "the column 'u' of dtype Int64 cannot be compared"),
    ({"m": dpf.mode("f", candidates=[1])}, {}, "the column 'f' of dtype Float64 cannot be compared"),
    ({"m": dpf.mode("e", candidates=["b", "c"])}, {}, "candidates must be values that the column 'e'"),
    ({"m": dpf.mode("i", candidates=[127, 128])}, {}, "candidates must be values that the column 'i'"),
    ({"m": dpf.mode("y", candidates=["b"])}, {}, "y"),
]


@pytest.mark.parametrize(("queries", "change", "message"), BAD)
def test_bad_plans_are_refused(queries, change, message):
    data = rows(9).with_columns(f=pl.lit(1.0), e=pl.lit("b").cast(pl.Enum(["a", "b"])), i=pl.lit(1, dtype=pl.Int8))
    with pytest.raises(DpfastError, match=message) as caught:
        dpf.plan(data, "g", keys=KEYS, **({"privacy_unit": "row", **{"epsilon": 1.0} | change, **queries}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "candidates",
    [
        [],
        [None],
        "IAH",
        None,
        5,
        {"IAH"},
        ["a", "a"],
        [None, "a", None],
        ["a", 1],
        [True, 1],
        [1.0],
        [1, 2**64],
        [-1, 2**63],
        [[1]],
        range(2**16 + 1),
        list(range(2**16 + 1)),
    ],
    ids=lambda given: repr(given)[:20],
)
def test_bad_candidates_are_refused(candidates):
    with pytest.raises(ParameterError, match="candidates must be") as caught:
        dpf.mode("x", candidates=candidates)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_candidates_may_be_columns():
    """Read as plain values, whatever holds them."""
    for candidates in (pl.Series([3, 1]), np.array([3, 1]), (np.int8(3), 1), [3, 1]):
        assert dpf.mode("x", candidates=candidates).candidates == (3, 1)
    with pytest.raises(ParameterError, match="column must be"):
        dpf.mode(5, candidates=[1])
