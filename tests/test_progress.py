"""Callbacks of the user's in the middle of a release: they fork, they raise; and the line that a terminal shows."""

from __future__ import annotations

import io
import os
import re
import traceback

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast import progress
from dpfast.errors import LedgerError
from dpfast.progress import TerminalLine, forgetting

#: Counts that no other number in a frame is equal to.
PEOPLE = pl.DataFrame({"sex": ["f"] * 3731 + ["m"] * 2917, "age": [20] * 4111 + [50] * 2537})
TELLING = re.compile(r"\b(3731|2917|4111|2537|6648)\b")
COUNTS = np.repeat([0, 7319, 20], [400, 32, 592])
WORKLOAD = dpf.workloads.prefix(1024)


def domain():
    return dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 30, 60])})


def ledger():
    return dpf.Ledger(epsilon=1, delta=1e-6)


def planned(tell):
    keys = pl.DataFrame({"sex": ["f", "m"]})
    plan = dpf.plan(PEOPLE, by="sex", keys=keys, n=dpf.count(), privacy_unit="row", epsilon=1)
    return plan.run(ledger(), progress=tell)


def modelled(tell):
    return dpf.synthesize(PEOPLE, domain(), epsilon=1, delta=1e-6, ledger=ledger(), progress=tell)


#: Releases of rows, whose exact figures nobody but the library holds.
OF_ROWS = {
    "plan": planned,
    "release_marginals": lambda tell: dpf.release_marginals(
        PEOPLE, domain(), epsilon=1, ledger=ledger(), progress=tell
    ),
    "synthesize": lambda tell: dpf.synthesize(PEOPLE, domain(), epsilon=1, ledger=ledger(), progress=tell),
    "synthesize by a model": modelled,
}
#: And of histograms, which are the caller's.
OF_HISTOGRAMS = {
    "matrix_mechanism": lambda tell: dpf.matrix_mechanism(COUNTS, WORKLOAD, epsilon=1, progress=tell),
    "estimate_histogram": lambda tell: dpf.estimate_histogram(COUNTS, WORKLOAD, epsilon=1, progress=tell),
    "mwem": lambda tell: dpf.mwem(COUNTS, WORKLOAD, epsilon=1, rounds=2, progress=tell),
    "dawa": lambda tell: dpf.dawa(COUNTS, epsilon=1, progress=tell),
    "ahp": lambda tell: dpf.ahp(COUNTS, epsilon=1, progress=tell),
}


@pytest.mark.parametrize("name", [*OF_ROWS, *OF_HISTOGRAMS])
def test_only_one_process_gets_what_was_paid_for_once(name):
    """A fork in the callback: the first process ends its release, and the fork is refused it."""
    forked = []

    def fork(*_):
        if not forked:
            forked.append(os.fork())

    try:
        made = (OF_ROWS | OF_HISTOGRAMS)[name](fork)
    except LedgerError as error:
        os._exit(0 if "forked" in str(error) and forked == [0] else 1)
    except BaseException:
        os._exit(2)
    if forked == [0]:
        os._exit(3)  # it drew
    assert made is not None
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 0


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("chained", [False, True])
def test_no_frame_of_an_error_holds_exact_figures(name, chained):
    """The callback raises at the last stage, when rows were counted: what a log may show of the frames has no count."""
    stages = []
    OF_ROWS[name](stages.append)
    begun = []

    def fail(stage):
        begun.append(stage)
        if len(begun) == len(stages):
            try:
                1 / 0  # noqa: B018
            except ZeroDivisionError as error:
                raise RuntimeError("mine") from (error if chained else None)

    with pytest.raises(RuntimeError, match="mine") as raised:
        OF_ROWS[name](fail)
    assert len(begun) == len(stages)
    one = raised.value
    while one is not None:
        shown = [
            repr(value)
            for frame, _ in traceback.walk_tb(one.__traceback__)
            if f"{os.sep}dpfast{os.sep}" in frame.f_code.co_filename
            for value in frame.f_locals.values()
        ]
        assert [text for text in shown if TELLING.search(text)] == []
        one = one.__cause__ or one.__context__
    lines = "".join(traceback.format_exception(raised.value))
    assert "in fail" in lines  # the lines of the traceback stay


def test_an_error_that_was_handled_before_keeps_its_frames():
    def outer():
        kept = 3  # noqa: F841
        raise ValueError("before")

    try:
        outer()
    except ValueError as error:
        with pytest.raises(KeyError), forgetting():
            raise KeyError("within") from None
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        assert frames[-1].f_locals == {"kept": 3}


class Exact:
    """Stands for an exact figure."""


def _counted():
    exact = Exact()  # noqa: F841
    raise KeyError("deep")


def _with_a_cause_of_its_own():
    try:
        _counted()
    except KeyError:
        raise ValueError("above") from OSError("another")


def _in_a_group():
    errors = []
    try:
        _counted()
    except KeyError as error:
        errors.append(error)
    raise ExceptionGroup("together", errors)


def _because_of_a_group():
    try:
        _in_a_group()
    except ExceptionGroup as error:
        raise ValueError("above") from error


def _by_a_finally():
    try:
        _counted()
    finally:
        _in_a_group()


def _exact_figures(*errors):
    """How many frames hold one, of errors and all that stand behind them."""
    found = 0
    for error in errors:
        if error is not None:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            found += sum(isinstance(value, Exact) for frame in frames for value in frame.f_locals.values())
            found += _exact_figures(error.__cause__, error.__context__, *getattr(error, "exceptions", ()))
    return found


@pytest.mark.parametrize("fail", [_counted, _with_a_cause_of_its_own, _in_a_group, _because_of_a_group, _by_a_finally])
def test_whatever_stands_behind_an_error_is_let_go_of(fail):
    with pytest.raises(Exception) as before:  # noqa: PT011
        fail()
    assert _exact_figures(before.value)
    with pytest.raises(type(before.value)) as raised, forgetting():
        fail()
    assert _exact_figures(raised.value) == 0


def test_an_error_that_was_handled_before_and_is_raised_again_holds_nothing():
    """A callback may raise it: its traceback goes through our frames then."""
    earlier = ValueError("before")

    def again():
        exact = Exact()  # noqa: F841
        raise earlier

    try:
        raise earlier
    except ValueError:
        with pytest.raises(ValueError, match="before") as raised, forgetting():
            again()
    assert _exact_figures(raised.value) == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line_on_a_terminal_ends_when_the_work_does(monkeypatch):
    """By an error too: what is shown next has a line of its own."""
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(progress, "_QUIET", -1.0)

    def failing(*_):
        raise RuntimeError("mine")

    monkeypatch.setattr("dpfast.synthesis.residuals.marginals.measure_residuals", failing)
    with pytest.raises(RuntimeError):
        dpf.release_marginals(PEOPLE, domain(), epsilon=1, ledger=ledger())
    assert re.search(r"measuring *\n$", shown.getvalue())
    with TerminalLine():
        pass
    assert re.search(r"measuring *\n$", shown.getvalue())
