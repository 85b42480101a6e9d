"""Streams of Arrow batches that are refused or fail: before a row is read where that can be, and in fixed words."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast.integrations.arrow as dpa
from dpfast.errors import ColumnError, DataError, DpfastError, ParameterError

from .streams import SECRET, masked, never, shown, table


@pytest.mark.parametrize("kind", ["int8", "uint64", "string", "bool", "date32[day]", "decimal"])
def test_noise_on_other_types_is_refused_before_a_row_is_read(kind):
    types = {"bool": pa.bool_(), "date32[day]": pa.date32(), "decimal": pa.decimal128(9, 2), "string": pa.string()}
    kind = types.get(kind) or getattr(pa, kind)()
    schema = pa.schema([("n", kind), ("m", pa.int64())])
    for noise in ({"n": dpa.laplace(1.0)}, {"m": dpa.laplace("n")}):
        with pytest.raises(ColumnError, match=r"noise needs columns of int64, .*, but 'n' is of another type; cast it"):
            dpa.noisy_stream(pa.RecordBatchReader.from_batches(schema, never()), noise)


NESTED = [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.int8(), pa.int8()), pa.list_(pa.int8(), 2)]
NESTED += [pa.run_end_encoded(pa.int32(), pa.int8()), pa.dictionary(pa.int8(), pa.list_(pa.int8())), pa.uuid()]
NESTED += [pa.dense_union([pa.field("a", pa.int8())]), pa.list_view(pa.int8())]


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_nested_public_columns_are_refused(kind):
    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64()), ("deep", kind)]), never())
    with pytest.raises(ColumnError, match="but 'deep' does not; take it apart"):
        dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, public=["deep"])


@pytest.mark.parametrize(
    ("noise", "public", "words"),
    [
        ({"none": dpa.laplace(1.0)}, [], "noise must be of columns that the reader has, but was 'none'"),
        ({"n": dpa.laplace("none")}, [], "noise must be of columns that the reader has, but was 'none'"),
        ({"n": dpa.laplace(1.0)}, ["none"], "public must be of columns that the reader has, but was 'none'"),
        ({"n": dpa.laplace(1.0)}, ["n"], "public must be without the columns that get noise, but was 'n'"),
        ({"twice": dpa.laplace(1.0)}, [], "noise must be of columns whose name no other column"),
        ({"n": dpa.laplace(1.0)}, ["twice"], "public must be of columns whose name no other column"),
        ({"n": dpa.laplace("twice")}, [], "noise must be of columns whose name no other column"),
        ({"n": dpa.laplace(2.0**61)}, [], "scale must be at most 2"),
        ({}, ["n"], "noise must be a dict of column names"),
    ],
)
def test_names_and_scales_are_checked_before_a_row_is_read(noise, public, words):
    schema = pa.schema([("n", pa.int64()), ("twice", pa.int64()), ("twice", pa.int64())])
    with pytest.raises(ParameterError, match=words):
        dpa.noisy_stream(pa.RecordBatchReader.from_batches(schema, never()), noise, public=public)


def test_a_reader_without_columns():
    with pytest.raises(ParameterError, match="noise must be of columns that the reader has"):
        dpa.noisy_stream(pa.RecordBatchReader.from_batches(pa.schema([]), []), {"n": dpa.laplace(1.0)})


def broken(at, error):
    for number in range(at):
        yield pa.record_batch({"n": np.arange(10 * number, 10 * number + 10)})
    raise error


UNREADABLE = "the stream cannot be read to its end: what it is read from failed"


@pytest.mark.parametrize(
    "error", [KeyError(SECRET), ValueError(SECRET), pa.ArrowInvalid(SECRET), GeneratorExit(SECRET)]
)
@pytest.mark.parametrize("through_c", [False, True])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_reader_that_fails_in_the_middle(error, through_c, at):
    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken(at, error))
    if through_c:
        reader = pa.RecordBatchReader.from_stream(reader)
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, block_rows=10)
    for _ in range(at):
        assert len(noisy.read_next_batch()) == 10
    for _ in range(3):
        with pytest.raises(DpfastError, match=UNREADABLE) as caught:
            noisy.read_next_batch()
        assert SECRET not in shown(caught.value)


def test_rows_before_a_failure_that_fill_no_block_are_not_released():
    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken(1, ValueError(SECRET)))
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, block_rows=100)
    with pytest.raises(DpfastError, match=UNREADABLE):
        noisy.read_all()


def test_what_a_failure_says_on_the_other_side_of_the_c_interface():
    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken(1, ValueError(SECRET)))
    # A stream that fails makes Polars before 2.0 panic.
    with pytest.raises((pl.exceptions.ComputeError, pl.exceptions.PanicException), match=UNREADABLE) as caught:
        pl.DataFrame(dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}))
    assert SECRET not in shown(caught.value)


def test_an_interrupt_ends_the_stream():
    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken(1, KeyboardInterrupt()))
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, block_rows=10)
    assert len(noisy.read_next_batch()) == 10
    with pytest.raises(KeyboardInterrupt):
        noisy.read_next_batch()
    with pytest.raises(DpfastError, match=UNREADABLE):
        noisy.read_next_batch()


def test_memory_that_runs_out():
    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken(0, MemoryError(SECRET)))
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)})
    with pytest.raises(MemoryError, match="not enough memory for a block of the stream; lower block_rows") as caught:
        noisy.read_next_batch()
    assert SECRET not in shown(caught.value)


def test_a_reader_that_gives_another_schema_than_its_own():
    other = pa.record_batch({"n": [SECRET]})
    for batch in (other, pa.record_batch({"m": [1]}), pa.record_batch({"n": [1], "m": [1]})):
        reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), [batch])
        with pytest.raises(DpfastError, match=UNREADABLE) as caught:
            dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}).read_all()
        assert SECRET not in shown(caught.value)


def test_a_reader_that_is_closed():
    reader = pa.RecordBatchReader.from_stream(table())
    reader.close()
    with pytest.raises(DpfastError):
        dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}).read_all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("draw", [dpa.laplace, dpa.gaussian])
def test_values_that_are_not_finite(value, draw):
    rows = pa.table({"x": [1.0, 2.0, 3.0, value, 31337.5]})
    noisy = dpa.noisy_stream(rows, {"x": draw(1.0)}, block_rows=2)
    assert len(noisy.read_next_batch()) == 2
    for _ in range(2):
        with pytest.raises(DataError, match="the column 'x' has a NaN or an infinity; replace it first") as caught:
            noisy.read_next_batch()
        assert "31337" not in shown(caught.value)
        assert "row" not in str(caught.value)


def test_a_nan_under_a_null_is_nothing():
    column = masked(pa.array([1.0, np.nan, 2.0]), np.array([True, False, True]))
    noisy = dpa.noisy_stream(pa.table({"x": column}), {"x": dpa.laplace(1.0)}).read_all()
    assert noisy["x"].null_count == 1


@pytest.mark.parametrize("scale", [0.0, -1.0, None, np.nan, np.inf, 1e-300, 1e300, 2.0**61])
def test_a_column_of_scales_that_are_none(scale):
    rows = pa.table({"n": [1, 2, 31337], "b": pa.array([1.0, 4242.5, scale])})
    noisy = dpa.noisy_stream(rows, {"n": dpa.laplace("b")}, block_rows=2)
    assert len(noisy.read_next_batch()) == 2
    with pytest.raises(DataError, match=r"the scales of 'n' must be numbers from .* in every row") as caught:
        noisy.read_next_batch()
    assert "31337" not in shown(caught.value)
    assert "4242" not in shown(caught.value)
