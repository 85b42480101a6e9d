"""Columns whose type names values: what randomized response returns names the public list, whatever the data had."""

from __future__ import annotations

import io
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pytest

import dpfast as dpf

SECRET = "secret-hiv-of-a-row"
ROWS = ["yes", "no"] * 5 + [SECRET]
CODED = pa.array(ROWS).dictionary_encode()

NAMED = {
    "pandas inferred": pd.Series(ROWS).astype("category"),
    "pandas of objects": pd.Series(ROWS, dtype=object).astype("category"),
    "pandas of objects of two kinds": pd.Series([*ROWS, 5], dtype=object).astype("category"),
    "pandas ordered": pd.Series(pd.Categorical(ROWS, categories=[SECRET, "no", "yes"], ordered=True)),
    "pandas of strings": pd.Series(ROWS, dtype="string").astype("category"),
    "pandas without a listed one": pd.Series([SECRET, "no"] * 5).astype("category"),
    "pandas, index": pd.Series(ROWS, index=range(20, 31), name="answer").astype("category"),
    "pandas, Arrow": pd.Series(CODED.to_pylist(), dtype=pd.ArrowDtype(CODED.type)),
    "pandas, Arrow's chunks": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([CODED, CODED]))),
    "Polars Categorical": pl.Series(ROWS, dtype=pl.Categorical),
    "Polars Categorical of few": pl.Series(ROWS, dtype=pl.Categorical(pl.Categories("few", physical=pl.UInt8))),
    "Polars Enum": pl.Series(ROWS, dtype=pl.Enum([SECRET, "yes", "no"])),
    "Polars Enum without a listed one": pl.Series([SECRET], dtype=pl.Enum([SECRET, "yes"])),
    "Arrow dictionary": CODED,
    "Arrow dictionary of few": CODED.cast(pa.dictionary(pa.int8(), pa.large_string())),
    "Arrow slice": CODED[:4],
    "Arrow chunks": pa.chunked_array([CODED, CODED[10:]]),
}


def buffers(array):
    """Return all that an Arrow array would export, its dictionary too."""
    held = [bytes(buffer) for buffer in array.buffers() if buffer is not None]
    return held + (buffers(array.dictionary) if hasattr(array, "dictionary") else [])


def told(column):
    """Return all that a column tells: its type, its pickle, its Arrow buffers and its file."""
    found = [repr(getattr(column, "dtype", None)), repr(column), pickle.dumps(column)]
    if isinstance(column, pd.Series):
        if isinstance(column.dtype, pd.CategoricalDtype):
            found += [repr(list(column.cat.categories)), repr(list(column.dtype.categories))]
        column = pa.array(column)
    elif isinstance(column, pl.Series):
        file = io.BytesIO()
        column.rename("a").to_frame().write_ipc(file)
        found += [file.getvalue(), column.to_frame().serialize(), repr(getattr(column.dtype, "categories", None))]
        column = pa.chunked_array(column)
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        found += [repr(chunk.type), *buffers(chunk)]
        sink = io.BytesIO()
        batch = pa.record_batch({"a": chunk})
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        found.append(sink.getvalue())
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in found)


@pytest.mark.parametrize("kind", NAMED)
def test_no_value_of_the_data_is_named(kind):
    values = NAMED[kind]
    assert "two kinds" in kind or SECRET.encode() in told(values)
    noisy = dpf.randomized_response(values, ["yes", "no"], 0.1)
    assert type(noisy) is type(values)
    assert len(noisy) == len(values)
    assert set(noisy.to_pylist() if hasattr(noisy, "to_pylist") else noisy.to_list()) <= {"yes", "no"}
    assert b"secret" not in told(noisy)


@pytest.mark.parametrize("kind", NAMED)
def test_the_type_does_not_depend_on_the_data(kind):
    """Two columns that differ in their rows, and so in what their types name, give one type."""
    values = NAMED[kind]
    noisy = dpf.randomized_response(values, ["yes", "no", "perhaps"], 0.1)
    again = dpf.randomized_response(noisy, ["yes", "no", "perhaps"], 0.1)
    for column in (noisy, again):
        dtype = column.dtype if hasattr(column, "dtype") else column.type
        named = getattr(dtype, "categories", None)
        if isinstance(dtype, (pl.Enum, pd.CategoricalDtype)):
            assert list(named) == ["yes", "no", "perhaps"]


def test_a_pandas_index_and_name_leave_as_they_came():
    noisy = dpf.randomized_response(NAMED["pandas, index"], ["yes", "no"], 0.1)
    assert noisy.name == "answer"
    assert noisy.index.tolist() == list(range(20, 31))


def test_truths_stay_what_they_are():
    """With epsilon = 50 a listed value is kept but for once in 1e21 rows."""
    for kind, values in NAMED.items():
        noisy = dpf.randomized_response(values, ["yes", "no"], 50.0)
        before, after = (x.to_pylist() if hasattr(x, "to_pylist") else x.to_list() for x in (values, noisy))
        assert all(new == old for old, new in zip(before, after, strict=True) if old in ("yes", "no")), kind
