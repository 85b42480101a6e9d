"""What can be written down: released figures, which are public. Plans, ledgers and what holds them are refused."""

from __future__ import annotations

import copy
import io
import pickle
from functools import partial
from importlib import import_module

import polars as pl
import pytest

import dpfast as dpf
import dpfast.integrations.polars
from dpfast.errors import LedgerError

#: 50 keys of one row each are not selected, and must not be in what is written down.
ROWS = pl.LazyFrame({"k": [f"hidden {number}" for number in range(50)] + ["shown"] * 5000})
ASKED = {"by": "k", "n": dpf.count(), "epsilon": 1.0, "delta": 1e-9}


def joblib_dumps(thing):
    written = io.BytesIO()
    import_module("joblib").dump(thing, written)
    return written.getvalue()


def dumps_of(package):
    if package == "joblib":
        return joblib_dumps
    return lambda thing: import_module(package).dumps(thing)


@pytest.fixture(params=["pickle", "cloudpickle", "dill", "joblib"])
def dumps(request):
    pytest.importorskip(request.param)
    return dumps_of(request.param)


@pytest.fixture
def ledger():
    return dpf.Ledger(epsilon=10, delta=0.1)


def test_plans_and_ledgers_are_refused_with_words(dumps, ledger):
    plan = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED})
    for thing in (plan, ledger, [plan], {"ledger": ledger}, plan.run, partial(plan.run, ledger)):
        with pytest.raises(LedgerError, match="pickled"):
            dumps(thing)
    for duplicate in (copy.copy, copy.deepcopy):
        for thing in (plan, ledger):
            with pytest.raises(LedgerError, match="cop"):
                duplicate(thing)


def holders(ledger):
    """Return LazyFrames that hold a plan and its ledger."""
    plan = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED}).lazy(ledger)
    other = ROWS.dpf.release(**{"privacy_unit": "row", **ASKED}, ledger=ledger).lazy()
    return [plan, plan.filter(pl.col("n") > 0), other.join(plan, on="k"), pl.concat([plan, plan]), plan.cache()]


def test_lazy_frames_of_plans_are_refused(dumps, ledger):
    for lazy in holders(ledger):
        for write in (dumps, pl.LazyFrame.serialize):
            with pytest.raises(pl.exceptions.ComputeError, match="serialization failed") as raised:
                write(lazy)
            assert "hidden" not in str(raised.value)
    assert ledger.spent.epsilon == 1.0  # of the one release


def test_the_refusal_says_why(ledger):
    """Polars itself refuses without cloudpickle, whatever the function."""
    pytest.importorskip("cloudpickle")
    for lazy in holders(ledger):
        with pytest.raises(pl.exceptions.ComputeError, match="each copy would draw noise for the same charge"):
            lazy.serialize()


def test_a_clone_of_a_lazy_frame_is_the_same_release(ledger):
    lazy = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED}).lazy(ledger)
    frames = [one.collect() for one in (lazy, lazy.clone(), copy.copy(lazy), copy.deepcopy(lazy))]
    assert all(frame.equals(frames[0]) for frame in frames)
    assert ledger.spent.epsilon == 1.0


def test_a_release_is_public_and_no_byte_of_a_hidden_key_is_in_it(dumps, ledger):
    """Soundness rule 20."""
    release = ROWS.dpf.release(**{"privacy_unit": "row", **ASKED}, ledger=ledger)
    written = dumps(release)
    assert b"hidden" not in written
    assert b"shown" in written
    if dumps is not joblib_dumps:
        assert pickle.loads(written).frame.equals(release.frame)
    assert release.frame["k"].to_list() == ["shown"]


def test_the_lazy_frame_of_a_release_can_be_sent(ledger):
    pytest.importorskip("cloudpickle")
    release = ROWS.dpf.release(**{"privacy_unit": "row", **ASKED}, ledger=ledger)
    lazy = release.lazy().filter(pl.col("k") == "shown").select("n", "n_scale")
    for written in (lazy.serialize(), pickle.dumps(lazy)):
        assert b"hidden" not in written
    again = pl.LazyFrame.deserialize(io.BytesIO(lazy.serialize()))
    assert again.collect().equals(lazy.collect())
    assert again.collect().equals(release.frame.select("n", "n_scale"))
    assert pickle.loads(pickle.dumps(lazy)).collect(engine="streaming").equals(lazy.collect())
    assert ledger.spent.epsilon == 1.0
