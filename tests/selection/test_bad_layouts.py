"""Offsets, groups, values and lists that do not fit: one clear line that names the argument and shows no score."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError, DataError, DpfastError, ParameterError
from dpfast.mechanisms.selection.noisy_max import report_noisy_max


def without_address(value: object) -> str:
    """Name a case alike in every process, so that several may share the tests."""
    return repr(value).split(" at 0x")[0][:80]


def top_two(scores, epsilon, **options):
    return dpf.noisy_top_k(scores, 2, epsilon, **options)


every = pytest.mark.parametrize(
    "mechanism", [dpf.exponential, dpf.permute_and_flip, report_noisy_max, top_two, dpf.noisy_max_with_gap]
)
SCORES = np.array([77.25, 78.25, 79.25, 80.25])


def one_line(error) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert 10 < len(message) < 300
    assert "7.25" not in message
    return message


BAD_OFFSETS = {
    "none": [],
    "text": ["0", "4"],
    "floats": [0.0, 4.0],
    "number": 4,
    "rise": [0, 3, 2, 4],
    "first": [1, 4],
    "last": [0, 3],
    "beyond": [0, 5],
    "negative": [-1, 4],
    "nulls": pl.Series([0, None, 4]),
    "bools": [False, True],
    "2-D": np.zeros((2, 2)),
    "object": np.array([0, 4], object),
    "dict": {"a": 1},
    "uint64": np.array([0, 4], np.uint64),
}


@every
@pytest.mark.parametrize("offsets", BAD_OFFSETS.values(), ids=BAD_OFFSETS)
def test_bad_offsets(mechanism, offsets):
    with pytest.raises(DpfastError) as error:
        mechanism(SCORES, 1.0, offsets=offsets)
    assert "offsets" in one_line(error).split(" must")[0]


BAD_GROUPS = {
    "text": ["a", "a", "b", "b"],
    "floats": [0.0, 0.0, 1.0, 1.0],
    "number": 1,
    "short": [0, 0, 1],
    "long": [0, 0, 1, 1, 1],
    "empty": [],
    "nulls": pl.Series([0, None, 1, 1]),
    "bools": [True, False, True, False],
    "nan": [0, 0, 1, math.nan],
    "huge": [0, 0, 1, 2**70],
    "object": np.array([0, 0, 1, 1], object),
}


@every
@pytest.mark.parametrize("groups", BAD_GROUPS.values(), ids=BAD_GROUPS)
def test_bad_groups(mechanism, groups):
    with pytest.raises(DpfastError) as error:
        mechanism(SCORES, 1.0, groups=groups)
    assert "groups" in one_line(error).split(" must")[0]


@every
def test_offsets_or_groups_where_they_do_not_belong(mechanism):
    for scores in (SCORES.reshape(2, 2), pl.Series([[1.0, 2.0]])):
        for argument in ("offsets", "groups"):
            with pytest.raises(ParameterError, match=rf"^{argument} must be"):
                mechanism(scores, 1.0, **{argument: [0, 2]})
    with pytest.raises(ParameterError, match=r"^groups must be None where offsets are given"):
        mechanism(SCORES, 1.0, offsets=[0, 4], groups=[0, 0, 0, 0])


@every
@pytest.mark.parametrize("groups", [[-(2**63), 2**63 - 1] * 2, [2**63 - 1] * 4, [-(2**63)] * 4], ids=without_address)
def test_groups_at_the_ends_of_int64(mechanism, groups):
    won = mechanism(SCORES, 1.0, groups=groups)
    assert len(won[0] if mechanism is dpf.noisy_max_with_gap else won) == len(set(groups))


@every
@pytest.mark.parametrize(
    "values", [[1, 2, 3], [], 5, "abcd", None, {1, 2, 3, 4}, np.zeros(5), pl.col("a")], ids=without_address
)
def test_bad_candidates(mechanism, values):
    if values is None:
        return
    with pytest.raises(DpfastError) as error:
        mechanism(SCORES, 1.0, candidates=values)
    assert "candidates" in one_line(error).split(" must")[0]
    with pytest.raises(DpfastError, match="candidates"):
        mechanism(SCORES, 1.0, offsets=[0, 2, 4], candidates=values)


@every
def test_candidates_of_another_shape(mechanism):
    lists = pl.Series([[1.0, 2.0], [3.0, 4.0, 5.0]])
    for values in (
        pl.Series([["a", "b"]]),
        pl.Series([["a"], ["b", "c"]]),
        np.zeros((2, 2)),
        ["a", "b"],
        pl.DataFrame(),
    ):
        with pytest.raises(DpfastError) as error:
            mechanism(lists, 1.0, candidates=values)
        assert "candidates" in one_line(error).split(" must")[0]
    with pytest.raises(ColumnError, match='pass one column, such as frame\\["name"\\]'):
        mechanism(SCORES, 1.0, candidates=pl.DataFrame({"a": [1, 2, 3, 4]}))


@every
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite(mechanism, bad):
    """Soundness rule 5; the place counts nulls and is that in what was given."""
    lists = pl.Series([[1.0, 2.0], None, [1.0, None, bad, 4.0]])
    for given in (lists, lists.to_arrow()):
        with pytest.raises(DataError, match=r"^scores must be finite, but row 2, candidate 2 is NaN or infinite"):
            mechanism(given, 1.0)
    flat = pl.Series([1.0, 2.0, None, bad, 3.0, 4.0])
    for options in ({"offsets": [0, 2, 6]}, {"groups": [1, 0, 1, 1, 0, 1]}):
        with pytest.raises(DataError, match=r"but candidate 3 is NaN"):
            mechanism(flat, 1.0, **options)


def test_rows_without_candidates_where_the_result_has_no_nulls():
    for mechanism in (dpf.exponential, dpf.permute_and_flip, report_noisy_max):
        with pytest.raises(DataError, match=r"in every row, but row 1 had none"):
            mechanism(SCORES, 1.0, offsets=[0, 2, 2, 4])
        with pytest.raises(DataError, match=r"in every row, but row 1 had none"):
            mechanism(pl.Series([[1.0], None]), 1.0, candidates=["a", "b"])
        assert mechanism(pl.Series(SCORES), 9.0, offsets=[0, 2, 2, 4]).null_count() == 1


EMPTY = {
    "polars": pl.Series([], dtype=pl.List(pl.Float64)),
    "polars nulls": pl.Series([None, None], dtype=pl.List(pl.Float64)),
    "polars empty": pl.Series([[], []], dtype=pl.List(pl.Int64)),
    "arrow": pa.array([], pa.list_(pa.float64())),
    "no chunks": pa.chunked_array([], pa.large_list(pa.float64())),
    "fixed": pa.array([None], pa.list_(pa.float64(), 2)),
    "of none": pa.array([[], None], pa.list_(pa.float64(), 0)),
}


@every
@pytest.mark.parametrize("lists", EMPTY.values(), ids=EMPTY)
def test_lists_of_nothing(mechanism, lists):
    won = mechanism(lists, 1.0)
    won = won[0] if mechanism is dpf.noisy_max_with_gap else won
    assert len(won) == len(lists)
    entries = won.to_list() if isinstance(won, pl.Series) else won.to_pylist()
    assert all(not entry for entry in entries)
    assert mechanism(np.empty(0), 1.0, offsets=[0]) is not None


@every
def test_lists_of_another_type(mechanism):
    for lists, mend in (
        (pl.Series([["a"]]), "cast"),
        (pl.Series([[1, 2]], dtype=pl.List(pl.UInt8)), "cast"),
        (pl.Series([[[1.0]]]), "pass one column of numbers"),
        (pa.array([[True]]), "cast"),
        (pl.Series([{"a": 1.0}]), "pass one column"),
    ):
        with pytest.raises(ColumnError) as error:
            mechanism(lists, 1.0)
        message = one_line(error)
        assert message.startswith("scores must have numbers of type")
        assert mend in message
