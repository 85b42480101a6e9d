"""Records are the same whatever the threads, the first error is raised, and nobody waits for ever."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import DpfastError
from dpfast.graphical import drawing
from dpfast.graphical.drawing import TreeRecords
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_weights import TreeWeights
from dpfast.synthesis.graphical.estimate import ModelEstimate
from dpfast.testing import SeededRandom

SETS = {
    "a chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "a star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "one clique": [(0, 1, 2, 3, 4)],
    "no clique of two": [(0,), (1,), (2,), (3,), (4,)],
}
SIZES = (3, 4, 2, 5, 3)


def some_weights(name):
    weights = TreeWeights(JunctionTree.holding(SIZES, SETS[name]), 1000.0, [])
    generator = np.random.default_rng(3)
    for table in weights.tables:
        table *= generator.gamma(0.5, 1.0, table.size)
    return weights


@pytest.fixture
def every_thread(monkeypatch):
    """Have as many threads as are asked for, however few records there are."""
    monkeypatch.setattr(drawing, "thread_count", lambda threads, items: threads or 1)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("records", "most"), [(0, 5), (1, 1), (1000, 1000), (1000, 7), (5001, 500)])
def test_threads_change_no_record(name, records, most, every_thread):
    weights = some_weights(name)
    drawn = [
        list(TreeRecords(weights, records, SeededRandom(1)).parts(most, threads)) for threads in (None, 1, 2, 3, 8)
    ]
    for parts in drawn[1:]:
        assert len(parts) == len(drawn[0])
        assert all((one == other).all() for one, other in zip(drawn[0], parts, strict=True))


def test_parts_and_cliques_have_words_of_their_own(monkeypatch):
    """No chunk of the keystream serves twice, in which every part and clique reads the first words."""
    chunks = []
    fill = drawing.Keystream(bytes(32)).words(drawing.Purpose.NOISE).__class__.fill

    def noted(words, chunk, buffer):
        chunks.append(chunk)
        fill(words, chunk, buffer)

    weights = some_weights("a chain")
    records = TreeRecords(weights, 100, SeededRandom(1))
    monkeypatch.setattr("dpfast.randomness.Words.fill", noted)
    assert len(list(records.parts(30))) == 4
    assert sorted(chunks) == list(range(4 * len(weights.tables)))


@pytest.mark.parametrize("failing", [0, 3, 9, 17])
def test_an_error_in_a_thread_is_raised_and_ends_all_of_them(failing, every_thread, monkeypatch):
    draw, calls = drawing.draw_conditionally, itertools.count()

    def fail(*arguments):
        if next(calls) == failing:
            raise MemoryError
        draw(*arguments)

    monkeypatch.setattr(drawing, "draw_conditionally", fail)
    before = threading.active_count()
    with pytest.raises(MemoryError):
        list(TreeRecords(some_weights("a chain"), 1000, SeededRandom(1)).parts(100, 3))
    assert threading.active_count() == before


def test_who_stops_early_leaves_no_thread_behind(every_thread):
    before = threading.active_count()
    parts = TreeRecords(some_weights("a star"), 10_000, SeededRandom(1)).parts(100, 4)
    next(parts)
    parts.close()
    assert threading.active_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("then", "is_refused"), [(list, True), (next, True), (lambda parts: parts.close(), False)])
def test_a_fork_goes_on_with_no_records_and_waits_for_no_thread(threads, then, is_refused, every_thread):
    """Its parent draws from the same words, and the threads are its parent's."""
    parts = TreeRecords(some_weights("a chain"), 1000, SeededRandom(1)).parts(100, threads)
    first = next(parts)
    child = os.fork()
    if not child:
        told = 1
        try:
            signal.alarm(30)  # who waits for a thread that is not there waits for ever
            with pytest.raises(DpfastError, match="forked") if is_refused else nullcontext():
                then(parts)
            told = 0
        finally:
            os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(part.shape[1] for part in [first, *parts]) == 1000


def test_records_of_a_model_do_not_depend_on_threads(every_thread):
    """Also where bins and rare values take words in between: these are taken part by part, by one thread."""
    rows = pl.DataFrame({"a": np.arange(3000) % 90, "b": np.arange(3000) % 7, "c": np.repeat([0, 1], 1500)})
    domain = dpf.Domain({"a": 200, "b": dpf.bins("b", [0.0, 2.0, 8.0]), "c": 2})
    ledger = dpf.Ledger(epsilon=5.0, delta=1e-9)
    made = dpf.synthesize(rows, domain, epsilon=5.0, delta=1e-9, rounds=2, ledger=ledger)
    assert isinstance(made.estimate, ModelEstimate)
    records = 2**18 + 10_000
    one, two = (domain.records(made, records, random=SeededRandom(1), threads=threads) for threads in (1, 2))
    assert one.equals(two)
    first, second = (made.estimate.draw_codes(records, random=SeededRandom(2), threads=threads) for threads in (1, 3))
    assert (first == second).all()
