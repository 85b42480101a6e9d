"""What plans say of themselves: frames, errors that hold, warnings."""

from __future__ import annotations

import gc
import math
import pickle
import weakref

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.mechanisms.noise.joint_widths import joint_reach
from dpfast.threads import thread_count

FRAME = pl.DataFrame({"k": ["a", "b"] * 300, "u": list(range(300)) * 2, "v": [1.0, 2.0] * 300})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})
UNIT = {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}


def a_plan(**changed):
    queries = {"n": dpf.count(), "m": dpf.mean("v", bounds=(0, 4))}
    return dpf.plan(
        FRAME, "k", **{"privacy_unit": "row", "epsilon": 1.0, "delta": 1e-6, "keys": KEYS, **queries, **changed}
    )


@pytest.mark.parametrize("cut", [None, 0.1])
def test_a_release_explains_itself_later_and_keeps_no_row(cut):
    """What an explanation needs is public: when it is asked for, the data may be gone. A copy has it as well."""
    plan = a_plan(where=dpf.column("v") > 0, **({} if cut is None else {**UNIT, "report_cut": cut}))
    said, aggregation = plan.explain(), weakref.ref(plan._blueprint.aggregation)
    release, other = plan.run(dpf.Ledger(2.0, 1e-5)), a_plan().run(dpf.Ledger(2.0, 1e-5))
    del plan
    gc.collect()
    assert aggregation() is None
    again = pickle.loads(pickle.dumps(release))
    assert again.explain() == release.explain() == release.explain()
    assert release.explain().startswith(said)
    assert other.explain() == a_plan().explain()


def test_the_frame_has_a_row_for_every_noisy_measure():
    plan = a_plan(mechanism="laplace", **UNIT)
    frame = plan.to_frame()
    # The rows are values and missing values together: each needs a half of n's share, values that of the mean as well.
    assert frame["query"].to_list() == ["n", "n", "m"]
    assert frame["measure"].to_list() == ["values that are not missing", "missing values", "sum of differences to 2"]
    assert frame["norm"].to_list() == ["L1"] * 3
    assert frame["sensitivity"].to_list() == [6.0, 6.0, 12.0]
    assert frame["reason"].to_list()[0] == "2 groups x 3 rows x 1 a row"
    assert frame["scale"].to_list() == pytest.approx([6 / (5 / 8), 6.0, 12 / (3 / 8)])
    assert frame["charge"].to_list() == [0, 0, 0]
    assert frame["epsilon"].to_list() == [1.0] * 3
    (charge,) = plan._blueprint.charges
    assert frame["event"].to_list() == [repr(charge.event)] * 3
    gaussian = a_plan(mechanism="gaussian", keys=None, **UNIT).to_frame()
    assert gaussian.schema == frame.schema
    assert gaussian["norm"].to_list() == ["L2"] * 3
    assert gaussian["sensitivity"][0] == pytest.approx(2**0.5 * 3)


def test_a_charge_of_each_measure_where_nothing_is_shared():
    """The number of a charge tells which rows are paid for once, together."""
    asked = {"n": dpf.count(), "s": dpf.sum("v", bounds=(0, 4))}
    plan = dpf.plan(
        FRAME, "k", keys=KEYS, epsilon=1, mechanism="laplace", dataset="d", **{"privacy_unit": "row", **asked}
    )
    frame = plan.to_frame()
    assert frame["charge"].to_list() == [0, 1]
    assert frame["event"].to_list() == [repr(charge.event) for charge in plan._blueprint.charges]
    assert frame.unique("charge")["epsilon"].sum() == plan.epsilon


def test_text_and_frame_agree():
    for mechanism in ("laplace", "gaussian"):
        plan = a_plan(mechanism=mechanism, **UNIT)
        text, short = plan.explain(), plan.explain(measures=False)
        for row in plan.to_frame().iter_rows(named=True):
            for cell in (row["kernel"], row["reason"], f"scale {row['scale']:g}", f"within {row['error95']:g}"):
                assert cell in text
            assert row["kernel"] not in short
        assert set(short.splitlines()) < set(text.splitlines())


def test_threads_are_told_where_the_groups_are_known():
    assert "3 public keys" in a_plan().explain()
    assert "noise drawn by one thread" in a_plan().explain()
    many = pl.DataFrame({"k": [str(key) for key in range(2**19)]})
    plan = a_plan(keys=many)
    threads = thread_count(None, 2**19)
    assert plan._blueprint.threads == threads
    assert ("one thread" if threads == 1 else f"{threads} threads") in plan.explain()
    assert a_plan(keys=None)._blueprint.threads is None
    assert "thread" not in a_plan(keys=None).explain()
    assert dpf.plan(FRAME, n=dpf.count(), privacy_unit="row", epsilon=1)._blueprint.threads == 1


def test_the_frame_of_errors():
    errors = a_plan(mechanism="laplace").error()
    assert errors.columns == ["query", "measure", "one", "groups", "all"]
    # Of what a query takes: the rows are two numbers together, whose noise is less than their bounds added up.
    drawn = a_plan(mechanism="laplace").to_frame()["error95"].to_list()
    values, missing, _ = a_plan(mechanism="laplace")._blueprint.parts
    both = joint_reach([*values.noises(1.0), *missing.noises(1.0)], 0.05)
    assert both < values.reach(0.025) + missing.reach(0.025)
    assert errors["one"].to_list() == [math.floor(both), drawn[2], drawn[0]]
    assert errors["groups"].to_list() == [3] * 3
    assert (errors["all"] > errors["one"]).all()
    private = a_plan(keys=None).error()
    assert private.schema == errors.schema
    assert private.select("groups", "all").null_count().row(0) == (3, 3)
    tight, wide = a_plan().error(0.5), a_plan().error(1e-9)
    assert (tight["one"] < wide["one"]).all()
    single = dpf.plan(FRAME, n=dpf.count(), privacy_unit="row", epsilon=1).error()
    assert single["one"].to_list() == single["all"].to_list()


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_errors_hold_for_one_and_for_all_at_once(mechanism):
    """400 releases of 200 empty groups: false failures below 1e-12 (binomial, 8 sigmas and more beyond the mean)."""
    keys = pl.DataFrame({"k": [str(key) for key in range(200)]})
    frame = FRAME.clear()
    alone = together = 0
    for _ in range(400):
        plan = dpf.plan(
            frame,
            "k",
            keys=keys,
            n=dpf.count(),
            privacy_unit="row",
            epsilon=0.05,
            delta=1e-6,
            mechanism=mechanism,
            dataset="d",
        )
        noise = plan.run(dpf.Ledger(epsilon=1, delta=1e-5)).frame["n"].abs()
        error = plan.error(0.1)
        alone += int((noise > error["one"].item()).sum())
        together += int(noise.max() > error["all"].item())
    # Discrete noise: at most alpha, and near it.
    assert 0.088 * 80_000 < alone < 0.1 * 80_000 + 8 * 85
    assert 2 < together < 40 + 8 * 6 + 1


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, float("nan"), None, "0.05", True, [0.05], 1e-13])
def test_bad_alphas(alpha):
    with pytest.raises(ParameterError, match=r"^alpha "):
        a_plan().error(alpha)


def test_an_alpha_too_small_for_so_many_groups():
    assert a_plan().error(4e-12).height == 3
    with pytest.raises(ParameterError, match=r"^alpha must be at least 3e-12 for 3 keys"):
        a_plan().error(2e-12)


WARNINGS = [
    ({}, []),
    ({"epsilon": 10}, []),
    ({"epsilon": 10.5}, ["epsilon 10.5 is above 10"]),
    ({"delta": 1e-5, "mechanism": "gaussian"}, []),
    ({"delta": 2e-5, "mechanism": "gaussian"}, ["delta 2e-05 is above 1e-05"]),
    # Laplace noise and public keys need no delta, and are charged none.
    ({"delta": 2e-5, "mechanism": "laplace"}, []),
    ({"delta": 2e-5, "mechanism": "laplace", "keys": None}, ["delta 2e-05 is above"]),
    ({"delta": 2e-5, "mechanism": "gaussian", "population": 10_000}, []),
    ({"delta": 1e-6, "mechanism": "gaussian", "population": 10**6}, ["delta 1e-06 is not below 1 / population"]),
    ({"delta": 1e-6, "mechanism": "gaussian", "population": np.int64(999_999)}, []),
    ({"epsilon": None, "delta": 0, "rho": 1}, []),
    ({"epsilon": None, "delta": 0, "rho": 2}, ["rho 2 is above 1"]),
    ({"m": dpf.mean("v", bounds=(np.float64(0), 4))}, ["the bounds of m are NumPy numbers"]),
    ({"m": dpf.sum("v", bounds=(0, np.int64(4)))}, ["the bounds of m are NumPy numbers"]),
]


@pytest.mark.parametrize(("given", "expected"), WARNINGS, ids=str)
def test_warnings(given, expected):
    """Row 2.3-8 among them: a delta that is not below 1 / population."""
    plan = a_plan(**given)
    assert len(plan.warnings) == len(expected)
    for warning, start in zip(plan.warnings, expected, strict=True):
        assert warning.startswith(start)
        assert f"  warning       {warning}" in plan.explain().splitlines()


def test_the_data_as_their_own_keys():
    frame = pl.DataFrame({"k": ["a", "b"]})
    plan = dpf.plan(frame, "k", keys=frame, n=dpf.count(), privacy_unit="row", epsilon=1)
    assert len(plan.warnings) == 1
    assert plan.warnings[0].startswith("keys is the data itself")
    assert dpf.plan(frame, "k", keys=frame.clone(), n=dpf.count(), privacy_unit="row", epsilon=1).warnings == ()


def test_computed_bounds_ask_the_same():
    plain, computed = dpf.sum("v", bounds=(0, 4)), dpf.sum("v", bounds=(np.float64(0), np.float64(4)))
    assert plain == computed
    assert repr(plain) == repr(computed)
    assert computed.computed
    assert not plain.computed


def test_warnings_depend_on_no_value():
    given = {"delta": 1e-3, "epsilon": 20, "keys": None}
    texts = {
        dpf.plan(data, "k", n=dpf.count(), **{"privacy_unit": "row", **given}).warnings
        for data in (FRAME, FRAME.clear(), FRAME.lazy())
    }
    assert len(texts) == 1
