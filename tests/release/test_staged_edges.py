"""Releases in two stages at their edges: killed in between, spilled, of many keys, of one huge unit, of no rows."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import memory
from dpfast.aggregation.remembering import Remembered

LIMITS = {"privacy_unit": "u", "max_groups": "auto", "max_rows_per_group": "auto", "mechanism": "laplace"}
GIVEN = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": 50}
BOTH = {**LIMITS, "m": dpf.mean("x", bounds="auto")}
BOUNDS = {**GIVEN, "m": dpf.mean("x", bounds="auto")}
#: By the noise of these budgets hardly anything is left to chance.
SURE = {"epsilon": 1e4}

KILLED = """
import os, signal, sys
import polars as pl, pyarrow as pa
import dpfast as dpf
from dpfast.aggregation import memory, reading_rows

memory.room_for_rows = reading_rows.room_for_rows = lambda: 50_000
rows = range(12_000)
frame = pl.DataFrame({"k": [i % 3 for i in rows], "u": [i // 6 for i in rows], "x": [float(i % 50) for i in rows]})
table = frame.to_arrow()
reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1000))
asked = dict(privacy_unit="u", max_groups="auto", max_rows_per_group="auto", mechanism="laplace")
plan = dpf.plan(reader, "k", keys=pl.DataFrame({"k": [0, 1, 2]}), epsilon=0.5, m=dpf.mean("x", bounds="auto"), **asked)

def kill(stage):
    print(stage, flush=True)
    if stage == sys.argv[2]:
        places = [os.path.realpath(f"/proc/self/fd/{one}") for one in range(64)]
        print("spilled", any(os.environ["TMPDIR"] in place for place in places), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

plan.run(dpf.Ledger.open(sys.argv[1], epsilon=1.0), progress=kill)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("stage", ["surveying units for bounds of x", "reading and aggregating"])
def test_a_process_killed_between_the_stages_leaves_its_charge_and_no_rows(stage, tmp_path):
    folder = tmp_path / "spilled"
    folder.mkdir()
    path = tmp_path / "ledger.db"
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(path), stage]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.splitlines()[-2:] == [stage, f"spilled {os.path.isdir('/proc/self/fd')}"]
    assert list(folder.iterdir()) == []
    assert dpf.Ledger.open(path).spent.epsilon == 0.5


def rows_of(units=400, groups=3, rows=4):
    each = groups * rows
    columns = {"u": np.repeat(np.arange(units), each), "k": np.tile(np.repeat(np.arange(groups), rows), units)}
    return pl.DataFrame({**columns, "x": np.repeat(np.arange(units) % 40 + 10.0, each)})


def run(data, keys, **asked):
    plan = dpf.plan(data, "k", keys=keys, **{**SURE, **({} if keys is not None else {"delta": 1e-6}), **asked})
    return plan.run(dpf.Ledger(epsilon=1e6, delta=0.1))


def in_pairs(**conditions):
    """Return what is asked with conditions and keys: all pairs of them, and with the marker ``long`` all three."""
    asked = {"both": BOTH, "bounds": BOUNDS, "limits": {**LIMITS, "n": dpf.count()}}
    keys = {"public": pl.DataFrame({"k": [0, 1, 2]}), "selected": None}
    return [
        pytest.param(
            asked[names[0]], conditions[names[1]], keys[names[2]],
            marks=() if place // 2 % 2 == place % 2 else pytest.mark.long,
            id="-".join(names),
        )
        for place, names in enumerate(itertools.product(asked, conditions, keys))
    ]  # fmt: skip


def test_all_pairs_meet():
    met = [one.id.split("-") for one in in_pairs(a=None, b=None, c=None) if not one.marks]
    assert len(met) == 9
    assert [len({(one[i], one[j]) for one in met}) for i, j in ((0, 1), (0, 2), (1, 2))] == [9, 6, 6]


@pytest.mark.parametrize(
    ("asked", "where", "keys"),
    in_pairs(all=None, range=dpf.column("x") < 1e9, either=(dpf.column("x") < 1e9) | (dpf.column("k") == 7)),
)
def test_rows_that_are_remembered_or_spilled_choose_and_show_the_same(asked, keys, where, monkeypatch):
    """In memory, of what the first stage found; from a lazy frame, read anew; and with each stage spilled to a disk."""
    data, found = rows_of(), []
    for source, room in ((data, None), (data.lazy(), None), (data.lazy(), 20_000), (data, 20_000)):
        if room is not None:
            monkeypatch.setattr(memory, "room_for_rows", lambda room=room: room)
        release = run(source, keys, where=where, **asked)
        found.append((release.chosen, release.frame.sort("k")))
    first, frame = found[0]
    for chosen, other in found[1:]:
        assert chosen.keys() == first.keys()
        for name, value in chosen.items():
            np.testing.assert_allclose(value, first[name], atol=2.0)
        for name in ("m", "n"):
            if name in frame.columns:
                np.testing.assert_allclose(other[name], frame[name], rtol=0.05)


@pytest.mark.parametrize("keys", [True, False], ids=["public", "selected"])
def test_a_hundred_thousand_keys(keys):
    """More than threads have tables for. Each key has 2 units, fewer than are shown without public keys."""
    number = 100_000
    data = pl.DataFrame({"u": np.arange(2 * number) // 4, "k": np.arange(2 * number) % number, "x": 5.0})
    public = pl.DataFrame({"k": np.arange(number)}) if keys else None
    release = run(data, public, **BOTH, n=dpf.count())
    assert release.frame.height == (number if keys else release.frame.height)
    assert set(release.chosen) == {"max_groups", "max_rows_per_group", "m"}
    if keys:
        assert release.frame["n"].mean() == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize("room", [None, 2_000_000], ids=["in memory", "spilled"])
def test_a_unit_of_a_million_rows(room, monkeypatch):
    """It counts once among the others: neither limits nor bounds follow it."""
    if room is not None:
        monkeypatch.setattr(memory, "room_for_rows", lambda: room)
    crowd = pl.DataFrame({"u": np.full(10**6, 7), "k": np.arange(10**6) % 3, "x": np.full(10**6, 1e6)})
    data = pl.concat([rows_of(3000), crowd.cast({"u": pl.Int64})])
    keys = pl.DataFrame({"k": [0, 1, 2]})
    release = run(data.lazy() if room else data, keys, epsilon=5.0, **BOTH, n=dpf.count())
    assert release.chosen["max_groups"] <= 4
    assert release.chosen["max_rows_per_group"] <= 100
    assert release.chosen["m"][1] < 1000


@pytest.mark.parametrize(
    ("asked", "where", "keys"), in_pairs(all=None, range=dpf.column("x") > 1e9, null=dpf.column("x").is_null())
)
def test_no_rows_are_charged_and_released_like_any(asked, where, keys):
    for data in (rows_of(0), rows_of(0).lazy(), rows_of(9), rows_of(9).lazy()):
        ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
        delta = {} if keys is not None else {"delta": 1e-6}
        plan = dpf.plan(data, "k", keys=keys, epsilon=1.0, where=where, **delta, **asked)
        release = plan.run(ledger)
        assert release.frame.schema == plan._blueprint.schema()
        assert ledger.remaining.epsilon == 0


def test_nothing_is_remembered_after_a_release(monkeypatch):
    """Neither after one that failed: what was found is of private rows."""
    made, init = [], Remembered.__init__

    def noted(self, sorts=None):
        init(self, sorts)
        made.append(self)

    monkeypatch.setattr(Remembered, "__init__", noted)
    run(rows_of(), pl.DataFrame({"k": [0, 1, 2]}), **BOTH)
    plan = dpf.plan(rows_of(), "k", keys=pl.DataFrame({"k": [0, 1, 2]}), epsilon=1.0, **BOTH)

    def fail(stage):
        if stage == "reading and aggregating":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.run(dpf.Ledger(epsilon=1.0), progress=fail)
    assert len(made) == 2
    assert not any(one._found for one in made)
