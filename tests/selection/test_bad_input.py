"""Bad parameters and bad scores: one clear line that names the argument and shows no score."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError, DataError, DpfastError, ParameterError
from dpfast.kernels.grouping.ordering import count_rows
from dpfast.mechanisms.selection import candidates
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.noisy_max import report_noisy_max


def without_address(value: object) -> str:
    """Name a case alike in every process, so that several may share the tests."""
    return repr(value).split(" at 0x")[0][:80]


every = pytest.mark.parametrize("mechanism", [dpf.exponential, dpf.permute_and_flip, report_noisy_max])


def one_line(error) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert 10 < len(message) < 300
    return message


@every
@pytest.mark.parametrize("epsilon", [2e6, 1e-19, 2.0**-80])
def test_epsilon_out_of_range(mechanism, epsilon):
    for given in (epsilon, [epsilon]):
        with pytest.raises(ParameterError, match="1e-18 to 1e6"):
            mechanism([1, 2, 3], given)


@every
@pytest.mark.parametrize("argument", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0, 5e-324, 1e308])
def test_one_bad_number_among_many(mechanism, argument, bad):
    column = np.ones(10_000)
    column[7_777] = bad
    given = {"epsilon": 1.0, argument: column}
    with pytest.raises(ParameterError) as error:
        mechanism(np.zeros((10_000, 2)), **given)
    assert f"{argument}[7777] must be" in one_line(error)
    assert error.value.argument == argument


@every
@pytest.mark.parametrize("argument", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("column", [[1.0, 2.0], [], [1.0] * 4, pl.Series([1.0]), np.ones((2, 1))], ids=without_address)
def test_columns_of_another_length(mechanism, argument, column):
    with pytest.raises(ParameterError) as error:
        mechanism(np.zeros((3, 2)), **{"epsilon": 1.0, argument: column})
    assert "length" in one_line(error)


@every
@pytest.mark.parametrize("argument", ["epsilon", "sensitivity"])
def test_columns_that_are_no_numbers(mechanism, argument):
    for column in (pl.Series([1.0, None, 2.0]), ["1", "2", "3"], [True] * 3, np.array([1, 2, 3], object), {"a": 1}):
        with pytest.raises(DpfastError) as error:
            mechanism(np.zeros((3, 2)), **{"epsilon": 1.0, argument: column})
        assert one_line(error).startswith(argument)


@every
@pytest.mark.parametrize("random", [1, "seed", np.random.default_rng(1)], ids=without_address)
def test_bad_source(mechanism, random):
    with pytest.raises(ParameterError, match=r"^random must be"):
        mechanism([1, 2, 3], 1.0, random=random)


EMPTY = {
    "list": [],
    "tuple": (),
    "array": np.empty(0),
    "integers": np.empty(0, np.int64),
    "rows of none": np.empty((3, 0)),
    "list of empty": [[], []],
    "polars": pl.Series([], dtype=pl.Float64),
    "arrow": pa.array([], pa.float64()),
    "no chunks": pa.chunked_array([], pa.float64()),
    "pandas": pd.Series([], dtype="float64"),
    "polars nulls": pl.Series([None, None], dtype=pl.Float64),
    "arrow nulls": pa.array([None], pa.int64()),
}


@every
@pytest.mark.parametrize("scores", EMPTY.values(), ids=EMPTY)
def test_no_candidates(mechanism, scores):
    with pytest.raises(DataError) as error:
        mechanism(scores, 1.0)
    assert one_line(error).startswith("scores must hold at least one candidate")


@every
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 65_535, 65_536, 149_999])
def test_scores_that_are_not_finite(mechanism, dtype, bad, place):
    """Soundness rule 5; the message names the place alone."""
    scores = np.full(150_000, 77.25, dtype)
    scores[place] = bad
    with pytest.raises(DataError) as error:
        mechanism(scores, 1.0)
    message = one_line(error)
    assert message.startswith(f"scores must be finite, but candidate {place} is NaN or infinite")
    assert "77.25" not in message
    with pytest.raises(DataError) as error:
        mechanism(scores.reshape(-1, 3), 1.0)
    assert f"row {place // 3}, candidate {place % 3} is" in one_line(error)


@every
def test_a_score_that_is_not_finite_beside_nulls(mechanism):
    with pytest.raises(DataError, match="candidate 2 is NaN"):
        mechanism(pl.Series([None, 1.0, math.nan, 2.0, None]), 1.0)


BAD_SCORES = {
    "None": None,
    "number": 5.0,
    "numpy number": np.float64(1),
    "0-d": np.array(1.0),
    "3-D": np.zeros((2, 2, 2)),
    "list of 3-D": [[[1.0]]],
    "text": "abc",
    "bool array": np.array([True, False]),
    "object array": np.array([1, 2, None], object),
    "complex": np.array([1j]),
    "float16": np.zeros(3, np.float16),
    "int8": np.zeros(3, np.int8),
    "uint64": np.zeros(3, np.uint64),
    "datetime64": np.zeros(3, "M8[s]"),
    "text array": np.array(["1", "2"]),
    "masked array": np.ma.array([1.0, 2.0], mask=[True, False]),
    "polars text": pl.Series(["a"]),
    "polars list of text": pl.Series([["a"], ["b"]]),
    "polars list of lists": pl.Series([[[1.0]], [[2.0]]]),
    "polars object": pl.Series([object()], dtype=pl.Object),
    "polars bool": pl.Series([True]),
    "polars frame": pl.DataFrame({"a": [1.0]}),
    "polars lazy": pl.LazyFrame({"a": [1.0]}),
    "polars expr": pl.col("a"),
    "arrow table": pa.table({"a": [1.0]}),
    "arrow list of bools": pa.array([[True, False]]),
    "arrow scalar": pa.scalar(1.0),
    "pandas object": pd.Series([1, "a"], dtype=object),
    "pandas frame": pd.DataFrame({"a": [1.0]}),
    "set": {1.0, 2.0},
    "ragged list": [[1.0], [1.0, 2.0]],
    "list with None": [1.0, None],
    "list of bools": [True, False],
}


@every
@pytest.mark.parametrize("scores", BAD_SCORES.values(), ids=BAD_SCORES)
def test_scores_of_a_wrong_kind(mechanism, scores):
    with pytest.raises(ColumnError) as error:
        mechanism(scores, 1.0)
    message = one_line(error)
    assert message.startswith("scores must")
    assert ";" in message, "how to mend it"


@every
def test_the_scores_are_left_alone(mechanism):
    scores = np.random.default_rng(0).standard_normal((50, 7))
    before = scores.copy()
    read_only = scores.copy()
    read_only.setflags(write=False)
    mechanism(scores, 1.0)
    mechanism(read_only, 1.0)
    assert scores.flags.writeable
    assert np.array_equal(scores, before)


def test_what_says_where_kernels_write_is_copied(monkeypatch):
    """Another thread may change a column during the call: what was checked must be what is used."""
    offsets = np.array([0, 2, 4])
    assert not np.shares_memory(borrow_candidates(np.ones(4), offsets).offsets, offsets)
    groups = np.array([1, 0, 1, 0])

    def changed_before(numbers, *others):
        groups[:] = 2**40
        assert numbers.max() == 1
        count_rows(numbers, *others)

    monkeypatch.setattr(candidates, "count_rows", changed_before)
    assert borrow_candidates(np.ones(4), groups=groups).offsets.tolist() == [0, 2, 4]
