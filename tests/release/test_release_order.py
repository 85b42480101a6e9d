"""Budget first, noise once: charge, aggregate, draw, remember; whatever fails in between (Soundness rule 12)."""

from __future__ import annotations

import copy
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.exact import Aggregation
from dpfast.errors import BudgetExceededError, DpfastError, LedgerError, ParameterError
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.randomness import SystemRandom, Words
from dpfast.testing import SeededRandom

DRAWING = import_module("dpfast.releases.drawing")

FRAME = pl.DataFrame({"k": ["a", "b"] * 300, "u": list(range(300)) * 2, "v": [1.0, 2.0] * 300})
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})


def a_plan(data=FRAME, **changed):
    arguments = {"keys": KEYS, "n": dpf.count(), "s": dpf.sum("v", bounds=(0, 2)), "epsilon": 0.5, "dataset": "d"}
    return dpf.plan(data, "k", **{"privacy_unit": "row", **arguments, **changed})


def spent(ledger):
    return ledger.spent.epsilon, ledger.spent.delta, ledger.history().height


@pytest.fixture
def events(monkeypatch):
    """Record charge, aggregation and every draw in their order."""
    seen = []
    charge, run = dpf.Ledger._record, Aggregation.run

    def spied_charge(self, *arguments, **named):
        entries = charge(self, *arguments, **named)
        seen.append("charge")
        return entries

    def spied_run(self, words):
        seen.append("aggregate")
        return run(self, words)

    monkeypatch.setattr(dpf.Ledger, "_record", spied_charge)
    monkeypatch.setattr(Aggregation, "run", spied_run)
    select_keys, add = DRAWING.select_keys, IntegerNoise.add

    def spied_select(*given):
        seen.append("select_keys")
        return select_keys(*given)

    def spied_add(self, *given, **named):
        seen.append(self.mechanism)
        return add(self, *given, **named)

    monkeypatch.setattr(DRAWING, "select_keys", spied_select)
    monkeypatch.setattr(IntegerNoise, "add", spied_add)
    return seen


def test_first_the_charge_then_the_data_then_the_noise(events):
    stages = []
    chosen = {"keys": None, "delta": 1e-6, "mechanism": "gaussian"}
    a_plan(**chosen, key_selection="optimal").run(dpf.Ledger(1, 1e-5), progress=stages.append)
    assert events == ["charge", "aggregate", "select_keys", "gaussian", "gaussian"]
    del events[:]
    # The count that decides which keys are shown is drawn once.
    a_plan(**chosen, key_selection="count").run(dpf.Ledger(1, 1e-5))
    assert events == ["charge", "aggregate", "gaussian", "gaussian"]
    assert stages == ["charging the ledger", "reading and aggregating", "drawing the noise"]


def test_no_block_of_keystream_serves_twice(monkeypatch):
    """Soundness rule 1: a fresh key for bounding, selection and every measure; under each, disjoint counters."""
    keys, blocks = [], []
    fresh = SystemRandom.key
    fill = Words.fill
    start = Words.__init__

    def spied_key(self):
        keys.append(fresh(self))
        return keys[-1]

    def spied_start(self, key, purpose):
        start(self, key, purpose)
        spied[id(self)] = (self, key, int(purpose))

    def spied_fill(self, chunk, buffer):
        _, key, purpose = spied[id(self)]
        blocks.append((key, (purpose << 96) + (chunk << 32), -(-buffer.nbytes // 16)))
        fill(self, chunk, buffer)

    spied = {}
    monkeypatch.setattr(SystemRandom, "key", spied_key)
    monkeypatch.setattr(Words, "__init__", spied_start)
    monkeypatch.setattr(Words, "fill", spied_fill)
    data = pl.DataFrame({"k": np.arange(200_000), "u": np.arange(200_000), "v": np.ones(200_000)})
    queries = {"n": dpf.count(), "s": dpf.sum("v", bounds=(0, 1)), "m": dpf.mean("v", bounds=(0, 1))}
    for mechanism in ("laplace", "gaussian"):
        dpf.release(
            data, "k", ledger=dpf.Ledger(1, 0.9), epsilon=0.5, delta=0.8, mechanism=mechanism,
            privacy_unit="u", max_groups=1, max_rows_per_group=1, **queries,
        )  # fmt: skip
    assert len(set(keys)) == len(keys)
    # One for each of the four measures, of which the count selects, at least one for bounding; twice.
    assert len(keys) >= 10
    assert {key for key, _, _ in blocks} == set(keys)
    blocks.sort()
    for (key, first, length), (other, following, _) in pairwise(blocks):
        assert key != other or first + length <= following


def test_explain_says_what_the_guarantee_is_about():
    """Soundness rule 9: the rows as given; and whose presence, which bounds, which charge."""
    text = a_plan(privacy_unit="u", max_groups=3, max_rows_per_group=11, neighbors="replace").explain()
    for part in ("joins", "u: at most 3 groups and 11 rows", "replace", "epsilon 0.5", "3 public keys"):
        assert part in text
    assert "one row" in a_plan().explain()


def test_the_charge_is_on_the_disk_before_the_data_is_read(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    seen = []
    run = Aggregation.run
    monkeypatch.setattr(
        Aggregation, "run", lambda self, words: seen.append(dpf.Ledger.open(path).spent.epsilon) or run(self, words)
    )
    a_plan().run(dpf.Ledger.open(path, epsilon=1))
    assert seen == [0.5]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}])
@pytest.mark.parametrize("keys", [None, KEYS])
def test_an_empty_frame_is_charged_and_released_like_any_other(lazy, unit, keys):
    """Soundness rule 12."""
    released = {}
    for name, frame in {"full": FRAME, "empty": FRAME.clear(), "null": FRAME.with_columns(u=None, v=None)}.items():
        ledger = dpf.Ledger(epsilon=1, delta=1e-5)
        plan = a_plan(frame.lazy() if lazy else frame, keys=keys, delta=1e-6, m=dpf.mean("v", bounds=(0, 2)), **unit)
        release = plan.run(ledger)
        released[name] = (plan.explain(), spent(ledger), release.frame.schema)
        if keys is not None:
            assert release.frame["k"].to_list() == ["a", "b", "c"]
    assert released["full"] == released["empty"]
    # A column of nulls alone has another dtype, and is charged the same.
    assert released["null"][1] == released["full"][1]


def test_a_plan_releases_once_and_charges_once():
    ledger, other = dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1)
    plan = a_plan()
    release = plan.run(ledger)
    assert plan.run(ledger) is release
    with pytest.raises(LedgerError, match="another ledger"):
        plan.run(other)
    assert spent(ledger) == (0.5, 0.0, 2)
    assert spent(other) == (0.0, 0.0, 0)
    assert release.entry == 1
    assert (release.spent.epsilon, release.spent.delta) == (0.5, 0.0)


def test_two_plans_draw_apart_and_charge_apart():
    ledger = dpf.Ledger(epsilon=1)
    drawn = [a_plan(epsilon=0.01).run(ledger).frame["s"].to_list() for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert ledger.spent.epsilon == 0.02


def test_eight_threads_share_one_charge_and_one_release(events):
    ledger = dpf.Ledger(epsilon=1)
    plan = a_plan()
    barrier = threading.Barrier(8)

    def run(_):
        barrier.wait()
        return plan.run(ledger)

    with ThreadPoolExecutor(8) as pool:
        releases = set(map(id, pool.map(run, range(8))))
    assert len(releases) == 1
    assert spent(ledger) == (0.5, 0.0, 2)
    assert events == ["charge", "aggregate", "laplace", "laplace"]


class BrokenError(Exception):
    pass


def break_aggregation(monkeypatch):
    def fail(*_):
        raise BrokenError

    monkeypatch.setattr(Aggregation, "run", fail)


def break_selection(monkeypatch):
    def fail(*_):
        raise BrokenError

    monkeypatch.setattr(DRAWING, "select_keys", fail)


def break_second_draw(monkeypatch):
    calls = []

    def fail(*given, **named):
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*given, **named)

    original = IntegerNoise.add
    monkeypatch.setattr(IntegerNoise, "add", fail)


@pytest.mark.parametrize("fault", [break_aggregation, break_selection, break_second_draw])
def test_a_failure_after_the_charge_leaves_a_dead_plan_and_its_charge(fault, monkeypatch):
    """Nothing is refunded, and nothing is drawn again for a charge that has been used."""
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    plan = a_plan(keys=None, delta=1e-7, mechanism="laplace", key_selection="optimal")
    with monkeypatch.context() as patched:
        fault(patched)
        with pytest.raises((BrokenError, KeyboardInterrupt)):
            plan.run(ledger)
    assert spent(ledger) == (0.5, 1e-7, 3)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"entry 1.*new plan"):
            plan.run(ledger)
    assert spent(ledger) == (0.5, 1e-7, 3)


@pytest.mark.parametrize("stage", range(3))
def test_a_failing_progress_callback_kills_the_plan_once_it_is_charged(stage):
    ledger = dpf.Ledger(epsilon=1)
    plan = a_plan()
    stages = []

    def interrupt(name):
        stages.append(name)
        if len(stages) == stage + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.run(ledger, progress=interrupt)
    if stage == 0:
        assert spent(ledger) == (0.0, 0.0, 0)
        plan.run(ledger)
    else:
        with pytest.raises(LedgerError):
            plan.run(ledger)
    assert spent(ledger) == (0.5, 0.0, 2)


@pytest.mark.parametrize(
    "ledger",
    [
        dpf.Ledger(epsilon=0.49),
        dpf.Ledger(epsilon=1, privacy_unit="column:u"),
        dpf.Ledger(epsilon=1, neighbors="replace"),
        dpf.Ledger(epsilon=1, dataset="another"),
    ],
    ids=["budget", "unit", "neighbours", "dataset"],
)
def test_a_refused_charge_reads_nothing(ledger, events):
    """Soundness rules 9 and 12."""
    plan = a_plan()
    with pytest.raises(LedgerError) as refused:
        plan.run(ledger)
    assert isinstance(refused.value, BudgetExceededError) == (ledger.total.epsilon < 0.5)
    assert events == []
    assert spent(ledger) == (0.0, 0.0, 0)
    # The plan is not used up: a ledger that has room may still run it.
    assert plan.run(dpf.Ledger(epsilon=0.5)).frame.height == 3


def test_planning_reads_nothing(monkeypatch):
    """Soundness rule 12: schema alone; a plan can be made of a source whose data cannot even be read."""
    read = []
    source = pl.LazyFrame({"k": ["a"], "v": [1.0]}).map_batches(
        lambda frame: read.append(1) or frame, schema={"k": pl.String, "v": pl.Float64}
    )
    plan = a_plan(source)
    plan.explain()
    assert not read
    plan.run(dpf.Ledger(epsilon=1))
    assert read


def test_an_error_of_the_source_comes_after_the_charge_and_quotes_no_value():
    """Soundness rules 3 and 12: what the engine says of a value that cannot be cast does not get out."""
    frame = pl.DataFrame({"k": ["a", "b"], "t": ["SECRET-VALUE", "2"]})
    for keys in (KEYS, None):
        for unit in ({}, {"privacy_unit": "k", "max_groups": 1, "max_rows_per_group": 1}):
            ledger = dpf.Ledger(epsilon=1, delta=1e-5)
            source = frame.lazy().with_columns(v=pl.col("t").cast(pl.Float64))
            plan = a_plan(source, keys=keys, delta=1e-6, **unit)
            with pytest.raises(DpfastError) as failed:
                plan.run(ledger)
            assert ledger.spent.epsilon == 0.5
            error = failed.value
            assert "SECRET" not in str(error)
            assert error.__cause__ is None
            assert error.__context__ is None


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_a_plan_cannot_be_copied(attempt):
    plan, ledger = a_plan(), dpf.Ledger(epsilon=1)
    for _ in range(2):
        with pytest.raises(LedgerError, match="copied"):
            attempt(plan)
        plan.run(ledger)


def test_a_plan_cannot_run_itself():
    plan, ledger = a_plan(), dpf.Ledger(epsilon=1)
    with pytest.raises(LedgerError, match="being run"):
        plan.run(ledger, progress=lambda stage: plan.run(ledger))
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("random", [SeededRandom(1), SystemRandom(), np.random.default_rng(1), 7])
def test_no_other_randomness_is_accepted(random):
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(ParameterError, match=r"^random "):
        a_plan().run(ledger, random=random)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("ledger", [None, 1.0, object(), dpf.Ledger])
def test_a_ledger_is_needed(ledger):
    with pytest.raises(ParameterError, match=r"^ledger "):
        a_plan().run(ledger)


def test_nothing_of_the_exact_figures_is_kept():
    """A release and its plan hold no aggregates; with a tiny budget exact figures would stand out."""
    plan = a_plan(pl.DataFrame({"k": ["a"] * 7919, "v": [1.0] * 7919}), epsilon=1e-6)
    release = plan.run(dpf.Ledger(epsilon=1))
    for holder in (release, plan):
        state = {name: value for name, value in vars(holder).items() if name not in ("_blueprint", "_release")}
        assert "7919" not in repr(state)
    assert not {"measures", "units"} & set(vars(plan._blueprint.aggregation))


FORK = """
import os, sys
import polars as pl
import dpfast as dpf
from dpfast.errors import LedgerError

stage, path = int(sys.argv[1]), sys.argv[2]
frame = pl.DataFrame({"k": ["a", "b"] * 50})
plan = dpf.plan(frame, "k", keys=pl.DataFrame({"k": ["a", "b"]}), n=dpf.count(), epsilon=0.01, dataset="d")
ledger = dpf.Ledger.open(path, epsilon=1) if path != "-" else dpf.Ledger(epsilon=1)
stages = []

def fork(name):
    stages.append(name)
    if len(stages) == stage:
        global child
        child = os.fork()

child = None
try:
    answer = plan.run(ledger, progress=fork).frame["n"].to_list()
except LedgerError as error:
    answer = type(error).__name__
if child:
    os.waitpid(child, 0)
print("child" if child == 0 else "parent", answer, flush=True)
"""


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("durable", [False, True])
def test_a_fork_during_a_run_never_draws_twice_for_one_charge(stage, durable, tmp_path):
    """As many releases come out as there are entries, and different ones."""
    path = tmp_path / "ledger.db"
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(stage), str(path) if durable else "-"],
        capture_output=True, text=True, timeout=1200, check=True,
    )  # fmt: skip
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(answers) == {"parent", "child"}
    released = [answer for answer in answers.values() if answer.startswith("[")]
    assert answers["parent"] in released
    assert len(released) <= (dpf.Ledger.open(path).history().height if durable else 1)
    if durable:  # a child that may keep no release pays for none, and does not enter the engine
        assert dpf.Ledger.open(path).history().height == 1


KILLED = """
import os, signal, sys, threading, time
import polars as pl
import dpfast as dpf
from dpfast.errors import LedgerError

path, stage, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
frame = pl.DataFrame({"k": ["a", "b"] * 200, "u": list(range(200)) * 2})
KEYS = pl.DataFrame({"k": ["a", "b"]})
dpf.plan(frame, "k", keys=KEYS, n=dpf.count(), epsilon=0.1, dataset="w",
         privacy_unit="u", max_groups=2, max_rows_per_group=1).run(dpf.Ledger(epsilon=1))
os.write(1, b"ready\\n")
if delay >= 0:
    def kill():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=kill, daemon=True).start()
for run in range(1000):
    stages = []
    def progress(name):
        stages.append(name)
        if delay < 0 and run == 3 and len(stages) == stage:
            os.kill(os.getpid(), signal.SIGKILL)
    ledger = dpf.Ledger.open(path)
    try:
        plan = dpf.plan(frame, "k", keys=KEYS, n=dpf.count(), epsilon=0.01, dataset="d",
                        privacy_unit="u", max_groups=2, max_rows_per_group=1)
        release = plan.run(ledger, progress=progress)
    except LedgerError as error:
        os.write(1, b"refused " + type(error).__name__.encode() + b"\\n")
        break
    os.write(1, b"seen %d %s\\n" % (release.entry, str(release.frame["n"].to_list()).encode()))
"""


def killed(path, stage, delay):
    """Release until killed; return the entries whose results were seen, and how it ended."""
    process = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(stage), str(delay)], capture_output=True, text=True, timeout=1200
    )
    lines = process.stdout.splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("seen")], process.returncode, lines[-1]


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_killed_release_never_loses_a_charge(tmp_path, seed, times):
    """kill -9 at every stage and at random moments: each result that was seen has its own entry, within the budget.

    A charge may be lost to a crash; it is never forgotten. 100 charges fit; the last process meets the end.
    """
    path = tmp_path / "ledger.db"
    dpf.Ledger.open(path, epsilon=1)
    generator = np.random.default_rng(seed)
    kills = [(stage, -1.0) for stage in (1, 2, 3)] + [(0, delay) for delay in generator.uniform(0, 0.03, times)]
    results = []
    for stage, delay in kills:
        before = dpf.Ledger.open(path).history().height
        seen, code, _ = killed(path, stage, delay)
        assert code == -signal.SIGKILL
        ledger = dpf.Ledger.open(path)
        entries = ledger.history().height
        assert ledger.spent.epsilon == pytest.approx(0.01 * entries)
        results += seen
        assert len(results) == len(set(results))
        assert max(results, default=0) <= entries
        if delay < 0:
            # Three whole releases, and the one that was killed: charged from the second stage on.
            assert len(seen) == 3
            assert entries - before == 3 + (stage > 1)
        else:
            assert 0 <= entries - before - len(seen) <= 1
    seen, code, last = killed(path, 0, 60.0)
    assert (code, last) == (0, "refused BudgetExceededError")
    ledger = dpf.Ledger.open(path)
    assert ledger.spent.epsilon == 1.0
    assert ledger.history().height == 100
    assert max(results + seen) == 100
    assert len(results + seen) == len(set(results + seen))


def test_releases_of_disjoint_groups_add_up():
    """Soundness rule 13: no parallel composition is granted where a unit may be in several partitions."""
    data = pl.DataFrame({"k": ["a", "b"] * 50, "u": range(100)})
    ledger = dpf.Ledger(epsilon=1)
    for key in ("a", "b"):
        keys = pl.DataFrame({"k": [key]})
        dpf.release(data, "k", keys=keys, n=dpf.count(), privacy_unit="row", epsilon=0.4, ledger=ledger)
    assert ledger.spent.epsilon == 0.8
