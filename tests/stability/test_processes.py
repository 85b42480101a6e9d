"""Calls in processes of their own: whatever a function does on a block is a value of that block."""

from __future__ import annotations

import time

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.stability import worker
from dpfast.stability.processes import prepare_calls

from . import functions

WORKERS = pytest.mark.parametrize("workers", [0, 1, 2])


def calls(function, *, workers=2, seconds=3600.0, **given):
    return prepare_calls(function, timeout=seconds, workers=workers, progress=None, **given)


def blocks_of(*first):
    return lambda place: (np.array([first[place], 99]),)


def numbers(answers):
    return [np.frombuffer(answer, np.float64).item() if answer else None for answer in answers]


@WORKERS
def test_bad_calls_are_values_of_their_blocks(workers, capfd):
    """Row 7-1: errors, exits, kills, texts, lists, NaN, infinities, interrupts, complex numbers, None, long texts."""
    bad = (1, 4, 5, 6, 7, 8, 10, 11, 12, 14, *(() if workers == 0 else (2, 3, 9, 13)))
    first = [0, *(one for what in bad for one in (what, 0))]
    answers = calls(functions.misbehave, workers=workers).run(blocks_of(*first), len(first))
    assert numbers(answers) == [None if what else 7.0 for what in first]
    if workers:
        assert capfd.readouterr().out == ""


@pytest.mark.parametrize("numeric", [True, False])
def test_long_answers_are_none(numeric):
    assert calls(functions.misbehave, numeric=numeric).run(blocks_of(12), 1) == [b""]


def test_a_block_that_hangs_is_given_up():
    """Row 7-1: the others are not, and the process that hung is replaced."""
    made = calls(functions.sleep_if_odd, seconds=8.0)
    answers = made.run(blocks_of(0, 1, 2, 4, 3, 6), 6)
    assert numbers(answers) == [7.0, None, 7.0, 7.0, None, 7.0]


def test_fixed_time_takes_as_long_as_all_timeouts():
    made = calls(functions.mean, seconds=0.4, fixed_time=True)
    started = time.monotonic()
    made.run(blocks_of(1, 2, 3, 4, 5, 6), 6)
    assert time.monotonic() - started >= 3 * 0.4


@pytest.mark.skipif(not worker.FORKS, reason="a process for each block is started anew here")
def test_nothing_is_kept_from_one_block_to_the_next():
    """Row 7-1: an answer depends on the rows of its block alone."""
    answers = numbers(calls(functions.remember, workers=1).run(blocks_of(*range(5)), 5))
    assert answers == [1.0] * 5
    assert len({*numbers(calls(functions.seeded, workers=1).run(blocks_of(*range(5)), 5))}) == 5


@WORKERS
def test_functions_without_a_module(workers):
    """A function defined within another goes by value."""
    ten = 10
    made = calls(lambda rows: ten * rows[0], workers=workers)
    assert numbers(made.run(blocks_of(1, 2), 2)) == [10.0, 20.0]


class Unsendable:
    def __call__(self, rows):
        return 1.0

    def __reduce__(self):
        message = "no"
        raise TypeError(message)


class Unloadable(Unsendable):
    def __reduce__(self):
        return int, ("no number",)


@pytest.mark.parametrize("function", [Unsendable(), Unloadable()])
def test_what_cannot_be_sent_is_refused_before_the_charge(function):
    """The function is loaded in a process without data first."""
    ledger = dpf.Ledger(epsilon=1)
    given = {"blocks": 4, "bounds": (0, 9), "epsilon": 1.0, "ledger": ledger}
    with pytest.raises(ParameterError, match="function must be a function that can be sent to another process"):
        dpf.subsample_and_aggregate([1, 2, 3], function, **given)
    assert ledger.history().is_empty()
    assert dpf.subsample_and_aggregate([1, 2, 3], function, workers=0, **given).entry == 1


def test_the_charge_comes_before_the_first_call():
    ledger, seen = dpf.Ledger(epsilon=1), []

    def spy(rows):
        seen.append(ledger.spent.epsilon)
        return 1.0

    given = {"blocks": 3, "bounds": (0, 9), "workers": 0, "ledger": ledger}
    dpf.subsample_and_aggregate([1, 2, 3], spy, epsilon=1.0, **given)
    assert seen == [1.0] * 3
    with pytest.raises(dpf.errors.BudgetExceededError):
        dpf.subsample_and_aggregate([1, 2, 3], spy, epsilon=1.0, **given)
    assert len(seen) == 3


def test_progress_and_its_errors():
    told = []
    dpf.subsample_and_aggregate([1, 2], functions.mean, blocks=5, bounds=(0, 9), epsilon=1, progress=told.append)
    assert told == [1, 2, 3, 4, 5]

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dpf.subsample_and_aggregate([1, 2], functions.mean, blocks=5, bounds=(0, 9), epsilon=1, progress=stop)


def test_labels():
    """Equal values share a label; what is no plain value has none."""
    same = [1, 1.0, np.int32(1), np.float32(1), np.array(1)]
    assert {worker.label_of(one) for one in same} == {"1"}
    assert worker.label_of(True) == worker.label_of(np.bool_(True)) == "True"
    assert worker.label_of([1, "a", (2.5, b"x")]) == worker.label_of((1, "a", [2.5, b"x"])) == "(1, 'a', (2.5, b'x'))"
    for none in (None, object(), {}, {1}, float("nan"), [1, None], 1j, np.array([np.inf]), np.datetime64("NaT"), len):
        assert worker.label_of(none) is None
    for none in ("1", b"1", [1.0], np.ones(1), None, 1j, np.complex128(1), float("nan"), np.inf):
        try:
            assert worker.number_of(none) is None
        except TypeError:
            assert none is None
    assert [worker.number_of(one) for one in (1, True, np.float32(0.5), np.array(2.0))] == [1.0, 1.0, 0.5, 2.0]
