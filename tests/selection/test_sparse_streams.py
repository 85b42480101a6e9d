"""Streams that cannot be doubled, kinds of columns, numeric answers, bad input of the sparse vector technique.

Frequencies are held to exact binomial tails (noise/goodness.py): each test fails by chance with probability at most
1e-12.
"""

from __future__ import annotations

import copy
import math
import os
import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.accounting.events import Pure
from dpfast.errors import DataError, LedgerError, ParameterError
from dpfast.mechanisms.thresholds.runs import Runs, calibrate
from dpfast.testing import SeededRandom

from .sparse_oracles import events, transcripts, variant_of


def test_a_stream_in_pieces_is_the_column(seed):
    """The answers of many small tests have the probabilities of one run. False-failure rate 1e-12."""
    values, count, draws = [1.0, -1.0, 0.5], 2, 20_000
    counts = dict.fromkeys(transcripts(3, count), 0)
    random = SeededRandom(seed)
    for i in range(draws):
        stream = dpf.SparseVector(0, 2.0, count=count, random=random)
        answers = (
            [stream.test(value) for value in values] if i % 2 else [*stream.test(values[:2]), *stream.test(values[2:])]
        )
        counts[tuple(bool(answer) for answer in answers[: stream.tested])] += 1
    variant = variant_of(calibrate(2.0, 1.0, False, count, None))
    assert not rejects(events(counts, variant, values))


def test_a_stream_stops():
    stream = dpf.SparseVector(100, 10.0, count=2, monotonic=True)
    assert stream.event == Pure(10.0)
    assert stream.test([0, 500, 0, 0]).tolist() == [False, True, False, False]
    assert (stream.remaining, stream.tested) == (1, 4)
    assert stream.test(pl.Series([0, None, 900, 900])).tolist() == [False, False, True]
    assert (stream.remaining, stream.tested) == (0, 6)
    assert stream.test([900, 900]).tolist() == []
    assert stream.test(900) is False
    assert (stream.remaining, stream.tested) == (0, 6)


def test_a_stream_with_numbers():
    stream = dpf.SparseVector(100.0, 100.0, count=3, numeric=0.5)
    above, answers = stream.test(np.array([0.0, 500.0, 900.0]))
    assert above.tolist() == [False, True, True]
    assert np.abs(answers - [500, 900]).max() < 10
    assert stream.test(0) == (False, None)
    above, answer = stream.test(700)
    assert above is True
    assert isinstance(answer, int)
    assert abs(answer - 700) < 10
    above, answers = stream.test([900])
    assert above.size == answers.size == 0


def test_a_stream_refuses_to_be_two():
    stream = dpf.SparseVector(100, 1.0)
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="cannot be pickled or copied"):
            double(stream)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("same_pid", [False, True])
def test_a_stream_refuses_to_go_on_in_a_fork(monkeypatch, same_pid):
    if same_pid:
        # As in a PID namespace of the child's own, or where the id is used again.
        monkeypatch.setattr(os, "getpid", lambda: 4711)
    stream = dpf.SparseVector(100, 1.0)
    child = os.fork()
    if not child:
        refused = False
        try:
            stream.test(0)
        except LedgerError as error:
            refused = "fork" in str(error)
        finally:
            os._exit(0 if refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stream.test(-(10**6)) is False


def test_an_interrupted_stream_ends(monkeypatch):
    stream = dpf.SparseVector(100, 1.0)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Runs, "scan", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.test([1, 2])
    with pytest.raises(LedgerError, match="interrupted"):
        stream.test([1, 2])


def test_numeric_answers(seed):
    """Fresh noise on the grid of `laplace`, of scale count * sensitivity / (numeric * epsilon). Rate 1e-12."""
    rows = np.full((100_000, 2), 1000)
    places, answers = dpf.above_threshold(rows, 0, 4.0, 2.0, count=2, numeric=0.25, random=SeededRandom(seed))
    assert places.tolist() == [[0, 1]] * len(rows)
    assert answers.dtype == np.int64
    noise = answers.ravel() - 1000
    q = math.exp(-1 / (2 * 2.0 / 1.0))
    tails = [(f"noise >= {k}", int((noise >= k).sum()), noise.size, q**k / (1 + q)) for k in (1, 2, 5, 12)]
    assert not rejects(tails)
    assert abs(np.corrcoef(noise[::2], noise[1::2])[0, 1]) < 0.05
    _, floats = dpf.above_threshold([5.0, 1e9], 1e6, 1.0, numeric=0.5)
    assert floats.dtype == np.float64
    assert floats[0] % 2.0**-19 == 0


@pytest.mark.parametrize("wrap", [pl.Series, pa.array, np.array, list, tuple])
def test_kinds_of_columns(wrap):
    places = dpf.above_threshold(wrap([0, 10**6, 0, 10**6]), 1000, 1.0, count=9)
    assert places.tolist() == [1, 3]
    assert places.dtype == np.int64


def test_nulls_are_passed_over():
    column = pl.Series([None, 0.0, None, 1e6, None])
    assert dpf.above_threshold(column, 1000, 1.0, count=2).tolist() == [3]
    places, answers = dpf.above_threshold(column, 1000, 1.0, count=2, numeric=0.5)
    assert places.tolist() == [3]
    assert abs(answers[0] - 1e6) < 1000
    assert dpf.above_threshold(pl.Series([None, None], dtype=pl.Int64), 0, 1.0).tolist() == []


def test_empty():
    assert dpf.above_threshold([], 0, 1.0).shape == (0,)
    assert dpf.above_threshold(np.zeros((0, 3)), 0, 1.0).shape == (0, 1)
    assert dpf.above_threshold(np.zeros((3, 0)), 0, 1.0).shape == (3, 0)
    assert dpf.SparseVector(0, 1.0).test([]).shape == (0,)
    places, answers = dpf.above_threshold(np.zeros(0, np.int64), 0, 1.0, numeric=0.5)
    assert places.shape == answers.shape == (0,)
    places, answers = dpf.above_threshold(np.full((3, 2), -1e9), 0, 1.0, numeric=0.5)
    assert (places == -1).all()
    assert (answers == 0).all()


def test_a_threshold_for_each_row():
    rows = np.array([[0, 50], [0, 50]])
    assert dpf.above_threshold(rows, pl.Series([-1000.0, 1000.0]), 10.0).tolist() == [[0], [-1]]
    with pytest.raises(ParameterError, match="the length of threshold must be 2"):
        dpf.above_threshold(rows, [1.0, 2.0, 3.0], 1.0)
    for bad in ([1.0, math.nan], pl.Series([1.0, None])):
        with pytest.raises(ParameterError, match=r"^threshold\[1\] must be a finite number"):
            dpf.above_threshold(rows, bad, 1.0)


def test_columns_longer_than_a_chunk():
    values = np.zeros(200_000, np.int64)
    values[[3, 70_000, 140_000, 199_999]] = 10**6
    places = dpf.above_threshold(values, 1000, 1.0, count=4)
    assert places.tolist() == [3, 70_000, 140_000, 199_999]
    places, answers = dpf.above_threshold(np.stack([values, values]), 1000, 1.0, count=3, numeric=0.5)
    assert places.tolist() == [[3, 70_000, 140_000]] * 2
    assert np.abs(answers - 10**6).max() < 1000


def test_bad_values():
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(DataError, match=r"^values must be finite, but value 2 is"):
            dpf.above_threshold(pl.Series([1.0, None, bad]), 0, 1.0)
        with pytest.raises(DataError, match=r"^values must be finite, but value 1 is"):
            dpf.SparseVector(0, 1.0).test([1.0, bad])


def test_numeric_scales_beyond_a_type_are_refused_before_anything_is_drawn():
    with pytest.raises(ParameterError, match=r"at most 2\*\*60"):
        dpf.above_threshold([1, 2], 0, 1e-12, 1e9, numeric=0.5)
    stream = dpf.SparseVector(0, 1e-12, 1e9, numeric=0.5)
    with pytest.raises(ParameterError, match=r"at most 2\*\*60"):
        stream.test([1, 2])
    assert stream.test([-1e30, -1e30])[0].tolist() == [False, False]


def test_a_call_ends_after_as_many_positives_as_it_may_report():
    values = np.where(np.arange(200) % 10 == 7, 10_000, -10_000)
    whole = dpf.SparseVector(0, 1.0, count=5, random=SeededRandom(4)).test(values)
    stream = dpf.SparseVector(0, 1.0, count=5, random=SeededRandom(4))
    parts, place = [], 0
    for left in (4, 3, 2, 1, 0):
        parts.append(stream.test(values[place:], most=1))
        place += parts[-1].size
        assert (parts[-1].sum(), bool(parts[-1][-1]), stream.remaining) == (1, True, left)
    assert np.array_equal(np.concatenate(parts), whole)
    assert (stream.tested, stream.test(values, most=1).size) == (48, 0)
