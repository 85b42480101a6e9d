"""Releases of frames at once: of threads, processes, forks and event loops, on one ledger."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numba
import numpy as np
import polars as pl
import pytest

import dpfast as dpf
import dpfast.integrations.polars
from dpfast.errors import BudgetExceededError, DpfastError
from dpfast.kernels.grouping.counting import count_slots

ROWS = pl.LazyFrame({"k": np.arange(3000) % 50, "x": np.ones(3000)})
ASKED = {
    "by": "k",
    "keys": pl.DataFrame({"k": np.arange(50)}),
    "n": dpf.count(),
    "s": pl.col("x").dpf.sum(bounds=(0, 1)),
    "epsilon": 0.01,
}


@pytest.fixture
def path(tmp_path):
    """Room for exactly 25 releases."""
    path = tmp_path / "ledger.db"
    dpf.Ledger.open(path, epsilon=0.25).close()
    return path


def releases(path, number):
    """Return how many of a number of releases were drawn, and the entries that paid for them."""
    entries = []
    with dpf.Ledger.open(path) as ledger:
        for _ in range(number):
            with suppress(BudgetExceededError):
                entries.append(ROWS.dpf.release(**{"privacy_unit": "row", **ASKED}, ledger=ledger).entry)
    return entries


def check_all(path, entries):
    """25 releases of two charges each, and all others refused."""
    assert sorted(entries) == list(range(1, 51, 2))
    with dpf.Ledger.open(path) as ledger:
        assert ledger.remaining.epsilon == 0
        assert ledger.history().height == 50


def test_eight_threads_on_one_ledger(path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: releases(path, 5), range(8)))
    check_all(path, [entry for part in found for entry in part])


def test_eight_threads_on_one_ledger_object():
    ledger = dpf.Ledger(epsilon=0.25)

    def release(_):
        try:
            return ROWS.dpf.release(**{"privacy_unit": "row", **ASKED}, ledger=ledger).entry
        except BudgetExceededError:
            return None

    with ThreadPoolExecutor(8) as pool:
        entries = [entry for entry in pool.map(release, range(40)) if entry is not None]
    assert sorted(entries) == list(range(1, 51, 2))
    assert ledger.remaining.epsilon == 0


def test_four_processes_on_one_ledger(path):
    """They come from one process that has imported what they need and run nothing: four imports took ten seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dpfast.integrations.polars", "psycopg", "pytest"])
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        found = list(pool.map(releases, [path] * 8, [5] * 8))
    check_all(path, [entry for part in found for entry in part])


def test_one_plan_by_eight_threads_is_charged_once():
    for way in ("run", "lazy"):
        ledger, start = dpf.Ledger(epsilon=1), threading.Barrier(8)
        plan = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED})
        lazy = plan.lazy(ledger)

        def figures(place, plan=plan, lazy=lazy, ledger=ledger, start=start, way=way):
            start.wait()
            if way == "run" or place % 2:
                return plan.run(ledger).frame
            return lazy.collect(engine="streaming" if place % 4 else "in-memory")

        with ThreadPoolExecutor(8) as pool:
            first, *others = pool.map(figures, range(8))
        assert all(other.equals(first) for other in others)
        assert ledger.spent.epsilon == 0.01
        assert ledger.history().height == 2


def test_many_lazy_plans_in_one_query_are_charged_once_each():
    ledger = dpf.Ledger(epsilon=1)
    plans = [
        ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED}).lazy(ledger).filter(pl.col("k") > place) for place in range(8)
    ]
    whole = pl.concat(plans)
    assert ledger.spent.epsilon == 0
    first, second = pl.collect_all([whole, whole.select("k", "n")])
    third = whole.collect(engine="in-memory")
    assert first.select("k", "n").equals(second)
    assert first.equals(third)
    assert ledger.spent.epsilon == float(8 * Fraction("0.01"))


def test_releases_of_an_event_loop_charge_their_sum():
    async def all_of(ledger):
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(4)
        plan = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED})
        lazy = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED}).lazy(ledger)
        apart = [asyncio.to_thread(ROWS.dpf.release, privacy_unit="row", **ASKED, ledger=ledger) for _ in range(8)]
        once = [loop.run_in_executor(pool, plan.run, ledger) for _ in range(8)]
        collected = [lazy.collect_async() for _ in range(4)]
        with pool:
            return await asyncio.gather(*apart), await asyncio.gather(*once), await asyncio.gather(*collected)

    ledger = dpf.Ledger(epsilon=1)
    apart, once, collected = asyncio.run(all_of(ledger))
    assert ledger.spent.epsilon == 0.1
    assert ledger.history().height == 20
    assert len({release.entry for release in apart}) == 8
    assert len({id(release) for release in once}) == 1
    assert all(frame.equals(collected[0]) for frame in collected)
    assert not once[0].frame.equals(apart[0].frame)


def test_a_cancelled_wait_does_not_charge_again():
    """Whoever stops waiting for a release leaves its thread to end; a later run has the same figures."""
    begun, held = threading.Event(), threading.Event()

    def hold(stage):
        if stage.startswith("reading"):
            begun.set()
            held.wait(timeout=1200)

    async def cancelled(plan, ledger):
        task = asyncio.ensure_future(asyncio.to_thread(plan.run, ledger, progress=hold))
        await asyncio.to_thread(begun.wait, 1200)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.set()
        return await asyncio.to_thread(plan.run, ledger)

    ledger = dpf.Ledger(epsilon=1)
    plan = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED})
    release = asyncio.run(cancelled(plan, ledger))
    assert plan.run(ledger) is release
    assert ledger.spent.epsilon == 0.01


FORK = """
import os, sys
import polars as pl
import dpfast as dpf
import dpfast.integrations.polars

path, before = sys.argv[1:]
frame, keys = {"k": [0, 1, 2, 3, 4, 5] * 50}, {"k": [0, 1, 2, 3, 4, 5]}
asked = {"by": "k", "n": dpf.count(), "epsilon": 0.01}
ledger = dpf.Ledger.open(path)
plan = None
if before == "used":
    plan = pl.LazyFrame(frame).dpf.plan(**asked, keys=pl.DataFrame(keys))
    pl.DataFrame(frame).sort("k")
for _ in range(4):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        told = []
        for release in (
            lambda: pl.LazyFrame(frame).dpf.release(**asked, keys=pl.DataFrame(keys), ledger=ledger),
            lambda: plan.run(ledger),
            lambda: plan.lazy(ledger).collect(),
        ):
            try:
                released = release()
                told.append(f"{released.entry} {released.frame['n'].to_list()}")
            except (dpf.errors.DpfastError, pl.exceptions.ComputeError) as error:
                told.append(str(error))
            if plan is None:
                break
        os.write(write, "\\n".join(told).encode())
        os._exit(0)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    print(os.read(read, 10_000).decode())
"""


def told_by_forks(path, before):
    """Return the lines of four forks of a process that has imported Polars, or also used it."""
    place = {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    command = [sys.executable, "-c", FORK, str(path), before]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200, env=os.environ | place)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_forks_after_the_import_release_for_themselves(path):
    """Four forks of one process: a charge for each, and noise of its own.

    That no two of the four have the same six figures fails with a probability below 6 * (epsilon / 2)**6 < 1e-12.
    """
    entries, figures = zip(*(line.split(" ", 1) for line in told_by_forks(path, "imported")), strict=True)
    assert entries == ("1", "2", "3", "4")
    assert len(set(figures)) == 4


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells which threads there are")
def test_forks_without_polars_threads_are_refused_before_the_charge(path):
    """They would wait for ever for threads that only their parent has."""
    lines = told_by_forks(path, "used")
    assert len(lines) == 4 * 3
    assert all("forked after Polars had started its threads" in line and "spawn" in line for line in lines)
    with dpf.Ledger.open(path) as ledger:
        assert ledger.history().height == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_lazy_plan_of_a_ledger_in_memory_is_refused_in_a_fork():
    """The parent's budget is not the child's to spend. Nothing of the engine is used before the refusal."""
    ledger = dpf.Ledger(epsilon=1)
    plan = ROWS.dpf.plan(**{"privacy_unit": "row", **ASKED})
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            plan.run(ledger)
        except DpfastError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert "fork" in os.read(read, 1000).decode()
    os.close(read)
    assert plan.lazy(ledger).collect().height == 50
    assert ledger.spent.epsilon == 0.01


BUSY = """
import os, threading
import polars as pl
import dpfast as dpf

keys = pl.DataFrame({"k": [0, 1, 2]})
plan = dpf.plan(pl.DataFrame({"k": [0, 1, 2]}), "k", keys=keys, n=dpf.count(), epsilon=0.1)
ledger = dpf.Ledger(epsilon=1)
begun, held = threading.Event(), threading.Event()

def hold(stage):
    begun.set()
    held.wait()

thread = threading.Thread(target=plan.run, args=(ledger,), kwargs={"progress": hold})
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    try:
        plan.run(ledger)
    except dpf.errors.LedgerError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
held.set()
thread.join()
assert plan.run(ledger).frame.height == 3
assert ledger.spent.epsilon == 0.1
"""


def test_a_fork_does_not_wait_for_a_thread_of_its_parent():
    """The thread that runs the plan, and holds its lock, is not in the fork."""
    place = {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    command = [sys.executable, "-c", BUSY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200, env=os.environ | place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("this plan is being run, or was when this process was forked")


def turns_of_another_thread(work):
    """Return whether another thread had a turn while ``work`` ran.

    Python does not take turns by itself meanwhile: the other thread runs where ``work`` releases the GIL, if at all.
    """
    seen, begin, end = [], threading.Event(), threading.Event()

    def wait():
        begin.wait()
        seen.append("a turn")
        end.wait()

    thread = threading.Thread(target=wait)
    interval = sys.getswitchinterval()
    thread.start()
    try:
        sys.setswitchinterval(1000.0)
        begin.set()
        work()
        had = bool(seen)
    finally:
        sys.setswitchinterval(interval)
        end.set()
        thread.join()
    return had


def test_another_thread_has_its_turn_while_a_kernel_runs():
    """A busy machine may give the other thread no processor meanwhile; it has two hundred chances.

    Compiled so that it holds the GIL, the same loop gives no turn: the test sees the difference.
    """
    slots, table = np.zeros(3_000_000, np.uint64), np.zeros(2, np.int64)
    holding = numba.njit(count_slots.py_func)
    for loop in (count_slots, holding):
        loop(slots, table)
    assert any(turns_of_another_thread(lambda: count_slots(slots, table)) for _ in range(200))
    assert not any(turns_of_another_thread(lambda: holding(slots, table)) for _ in range(5))
