"""What is paid once and spent over several calls: between threads, over a fork, within a fork, in a signal handler."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import BudgetExceededError, DpfastError, LedgerError
from dpfast.turns import Turns

ROWS = np.arange(200.0)
PACKAGE = Path(dpf.__file__).parent
#: What is made, a call that spends, and how many of these calls were paid for.
SPENT: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], int]] = {
    "counter": (lambda: dpf.continual_count(1, epsilon=1.0), lambda it: it.step(3), 1),
    "density": (lambda: dpf.PanPrivateDensity(100, 1.0), lambda it: it.release(), 1),
    "experts": (lambda: dpf.RandomizedWeightedMajority(3, 2, eta=0.5), lambda it: it.play(), 2),
    "oracle": (
        lambda: dpf.StatisticalQueryOracle(ROWS, queries=2, epsilon=1.0),
        lambda it: it.ask(lambda rows: rows > 5),
        2,
    ),
    "local oracle": (
        lambda: dpf.LocalOracle(["a", "b"], 2.0),
        lambda it: it.ask(dpf.RandomizedResponse(["a", "b"], 1.0)),
        2,
    ),
    "local queries": (
        lambda: dpf.LocalStatisticalQueries(ROWS, 1.0, queries=2),
        lambda it: it.answer(lambda rows: rows > 5),
        2,
    ),
    "sparse vector": (lambda: dpf.SparseVector(0.0, 1.0, 1), lambda it: it.test([1e9]).tolist() or _nothing(), 1),
    "weights": (
        lambda: dpf.PrivateMultiplicativeWeights([9, 1], updates=1, epsilon=1.0, neighbors="replace"),
        lambda it: it.answer([1.0, 0.0]),
        10**9,
    ),
}


def _nothing() -> None:
    raise BudgetExceededError("nothing was tested")


def at_every_line(frame: Any, event: str, argument: object) -> Any:
    """Let other threads go on before every line of the rooms that keep what is spent."""
    path = Path(frame.f_code.co_filename)
    if (
        path.parent.name not in {"streaming", "learning", "local", "thresholds", "fitted"}
        or PACKAGE not in path.parents
    ):
        return None

    def line(frame: Any, event: str, argument: object) -> Any:
        time.sleep(0)
        return line

    return line


@pytest.mark.parametrize("name", SPENT)
def test_threads_spend_no_more_than_was_paid(name):
    make, call, paid = SPENT[name]
    call(make())  # what is compiled or imported first would keep threads apart
    for _ in range(5):
        it, got, gate = make(), [], threading.Barrier(4)

        def spend(it=it, got=got, gate=gate):
            gate.wait()
            sys.settrace(at_every_line)
            try:
                got.append(call(it))
            except (BudgetExceededError, LedgerError):
                pass
            finally:
                sys.settrace(None)

        others = [threading.Thread(target=spend) for _ in range(4)]
        for other in others:
            other.start()
        for other in others:
            other.join()
        assert len(got) == min(paid, 4)


def in_both(work: Callable[[], Any]) -> list[str]:
    """Return what this process and its forks get: "value", or an error's words."""
    reading, writing = os.pipe()
    own = os.getpid()
    try:
        work()
        said = "value"
    except DpfastError as error:
        said = str(error)
    except BaseException as error:  # else a fork would go on with the tests
        said = repr(error)
    os.write(writing, f"{said}\n".encode())
    if os.getpid() != own:
        os._exit(0)
    _, status = os.wait()
    os.close(writing)
    with open(reading) as lines:
        heard = sorted(lines.read().splitlines())
    assert len(heard) == 2, f"{heard} were heard; a process ended with {os.waitstatus_to_exitcode(status)}"
    return heard


def forks_once() -> Callable[..., None]:
    """Return a function that forks when it is first called in earnest, as a user's might."""
    children: list[int] = []

    def fork(*given: Any) -> None:
        if not children and all(np.size(one) for one in given):
            children.append(os.fork())

    return fork


@pytest.mark.parametrize("name", SPENT)
def test_a_fork_spends_nothing(name):
    make, call, _ = SPENT[name]
    it, fork = make(), forks_once()

    def work() -> None:
        fork()
        call(it)

    refused, value = in_both(work)
    assert value == "value"
    assert "fork" in refused


def asked_by(fork: Callable[..., None]) -> Callable[[Any], Any]:
    """Return a query that forks."""

    def query(rows: Any) -> Any:
        fork(rows)
        return rows > 5

    return query


def mean_by(fork: Callable[..., None]) -> Callable[[Any], float]:
    """Return a function of a block that forks."""

    def mean(rows: Any) -> float:
        fork(rows)
        return float(np.mean(rows))

    return mean


BLOCKS = {"blocks": 10, "bounds": (0, 200), "epsilon": 1.0}
#: Calls of what a user gives, in which the process forks: two processes would have what one charge paid for.
FORKED: dict[str, Callable[[Any], Any]] = {
    "oracle": lambda fork: dpf.StatisticalQueryOracle(ROWS, queries=1, epsilon=1.0).ask(asked_by(fork)),
    "local queries": lambda fork: dpf.LocalStatisticalQueries(ROWS, 1.0, queries=1).answer(asked_by(fork)),
    "blocks": lambda fork: dpf.subsample_and_aggregate(ROWS, mean_by(fork), workers=0, **BLOCKS),
    "progress": lambda fork: dpf.subsample_and_aggregate(ROWS, np.mean, workers=2, progress=fork, **BLOCKS),
    "subsamples": lambda fork: dpf.release_if_subsamples_agree(ROWS, mean_by(fork), epsilon=1.0, delta=1e-6, workers=0),
    "stable": lambda fork: dpf.release_if_stable(ROWS, mean_by(fork), distance=len, epsilon=1.0, delta=1e-6, workers=0),
    "proposed": lambda fork: dpf.propose_test_release(
        ROWS, mean_by(fork), distance=len, bound=1, epsilon=1.0, delta=1e-6, workers=0
    ),
}


@pytest.mark.parametrize("name", FORKED)
def test_a_fork_within_a_call_is_handed_nothing(name):
    fork = forks_once()
    refused, value = in_both(lambda: FORKED[name](fork))
    assert value == "value"
    assert "fork" in refused


def test_a_fork_does_not_end_its_parents_workers():
    """A child that ends in the middle of a call used to kill them: blocks would have had no answers."""
    children: list[int] = []

    def progress(done: int) -> None:
        if done == 2:
            children.append(os.fork())
            if not children[0]:
                raise SystemExit

    own = os.getpid()
    try:
        given = {**BLOCKS, "epsilon": 1e5, "aggregator": "mean"}
        answer = dpf.subsample_and_aggregate(np.full(200, 90.0), np.mean, workers=1, progress=progress, **given)
    except SystemExit:
        if os.getpid() != own:
            os._exit(0)
        raise
    os.waitpid(children[0], 0)
    # A block without an answer stands at 100.
    assert abs(answer.value - 90) < 0.5


def test_a_signal_handler_neither_waits_nor_spends():
    turns, said = Turns("a fork"), []

    def handler(*_: object) -> None:
        try:
            with turns.turn():
                said.append("in")
        except LedgerError as error:
            said.append(str(error))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with turns.turn():
            os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(said) == 2
    assert "within another one" in said[0]
    assert said[1] == "in"


def test_an_interrupt_leaves_no_turn_taken():
    """A signal that raises every millisecond, at any line of taking and giving back turns."""
    turns, interrupts = Turns("a fork"), 0

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        while interrupts < 200:
            try:
                # Within, as a busy machine may take longer than the timer from one line to the next.
                signal.setitimer(signal.ITIMER_REAL, 1e-3)
                while True:
                    with turns.turn():
                        pass
            except KeyboardInterrupt:
                interrupts += 1
                assert not turns._lock._is_owned()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_counter_closed_within_a_step_stays_closed(tmp_path, monkeypatch):
    """The step is on the disk, its figures are handed out, and the file is free."""
    counter = dpf.continual_count(9, epsilon=1.0, path=tmp_path / "kept")
    advance = counter._state.advance

    def closing(*given: Any) -> Any:
        figures = advance(*given)
        counter._closed = True  # as `close` begins, before the file is written
        return figures

    monkeypatch.setattr(counter._state, "advance", closing)
    figure = counter.step(5)
    with pytest.raises(LedgerError, match="was closed"):
        counter.step(5)
    with dpf.restore_counter(tmp_path / "kept") as again:
        assert (again.steps, again.released) == (1, figure)


HANGS = {
    "oracle": lambda: dpf.HadamardResponse([0, 1, 2], 1.0).randomize(np.arange(1000) % 3),
    "blocks": lambda: dpf.subsample_and_aggregate(pl.Series(ROWS), len, workers=0, **BLOCKS),
}


@pytest.mark.parametrize("name", HANGS)
def test_a_fork_without_the_threads_of_polars_is_refused_and_does_not_hang(name):
    pl.DataFrame({"a": range(10)}).group_by("a").len()  # starts its threads
    fork = forks_once()

    def work() -> None:
        fork()
        HANGS[name]()

    value, refused = sorted(in_both(work), key=lambda said: said != "value")
    assert value == "value"
    assert "forked after Polars had started its threads" in refused
