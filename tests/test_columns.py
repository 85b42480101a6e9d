"""Columns in and out: every kind round-trips, is borrowed without a copy, and leaks nothing."""

from __future__ import annotations

import doctest
import io
import math
import struct
import subprocess
import sys
from collections import OrderedDict
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast.columns.column
import dpfast.columns.kinds
import dpfast.columns.scale
from dpfast.columns import BLOCK_ROWS, Column, borrow, borrow_scale, fresh
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ColumnError, DataError, DpfastError, ParameterError

DTYPES = ["int64", "int32", "uint32", "float64", "float32"]


class ArrayExport:
    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


class StreamExport:
    def __init__(self, chunks: pa.ChunkedArray) -> None:
        self.chunks = chunks

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.chunks.__arrow_c_stream__(requested_schema)


class BrokenExport:
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        raise RuntimeError("several\nlines")


def kernel(column: Column, dtype: Any = None) -> np.ndarray:
    """Stand in for a noise kernel: adds 1 block by block and writes zeros under nulls."""
    out = np.empty(column.length, dtype or column.dtype)
    for start in range(0, column.length, 5):
        stop = min(start + 5, column.length)
        noised = column.block(start, stop).astype(out.dtype) + 1
        missing = column.missing(start, stop)
        if missing is not None:
            noised[missing] = 0
        out[start:stop] = noised
    return out


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


# --- every kind round-trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_arrays_keep_shape_and_positions(dtype: str, shape: tuple[int, ...], order: str) -> None:
    values = np.arange(math.prod(shape), dtype=dtype).reshape(shape)
    values = np.asarray(values, order=order)
    column = borrow(values)
    assert (column.length, column.dtype, column.null_count) == (values.size, np.dtype(dtype), 0)
    result = column.rebuild(kernel(column))
    assert type(result) is np.ndarray
    assert result.dtype == dtype
    assert result.shape == shape
    np.testing.assert_array_equal(result, values + 1)
    assert not np.shares_memory(result, values)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(10)[::-1],
        np.arange(20)[::2],
        np.arange(24).reshape(2, 3, 4)[:, ::-1, 1:3],
        np.broadcast_to(np.float64(2.5), (3, 2)),
        np.arange(5, dtype=">i8"),
        np.arange(5, dtype=">f4"),
        np.arange(5, dtype="<i8"),
        np.arange(5, dtype=np.longlong),
        np.frombuffer(bytes(range(1, 42)), np.int64, 5, 1),
        np.array([(1, 2.5), (2, 3.5)], dtype=[("pad", "i1"), ("x", "f8")])["x"],
        np.array([[1, 2], [3, 4]]).view(np.matrix),
    ],
    ids=[
        "reversed",
        "strided",
        "3-D",
        "broadcast",
        "big-endian",
        "big-float",
        "little",
        "longlong",
        "unaligned",
        "field",
        "matrix",
    ],
)
def test_numpy_layouts_become_native_blocks(values: np.ndarray) -> None:
    before = values.copy()
    column = borrow(values)
    block = column.block(0, column.length)
    assert block.flags.c_contiguous
    assert block.flags.aligned
    assert block.dtype.isnative
    assert not block.flags.writeable
    result = column.rebuild(kernel(column))
    np.testing.assert_array_equal(result, np.asarray(values) + 1)
    np.testing.assert_array_equal(values, before)


def test_blocks_are_read_only_and_the_given_array_stays_writable() -> None:
    values = np.arange(10)
    block = borrow(values).block(2, 5)
    with pytest.raises(ValueError, match="read-only"):
        block[0] = 1
    values[2] = 99
    assert block[0] == 99


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        (1.5, 2.5),
        [[1, 2], [3, 4]],
        [1, 2.5],
        [2**53 + 2, 0.5],
        [],
        [np.int64(3), 4],
        [np.float32(1.5)],
    ],
)
def test_lists_and_tuples_give_numpy_arrays(values: Any) -> None:
    column = borrow(values)
    result = column.rebuild(kernel(column))
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, np.asarray(values) + 1)


@pytest.mark.parametrize("value", [3, -(2**63), 2.5, np.int64(3), np.int32(4), np.uint32(5), np.float32(0.5)])
def test_numbers_give_python_numbers(value: Any) -> None:
    column = borrow(value)
    assert column.length == 1
    result = column.rebuild(kernel(column))
    assert result == value + 1
    assert type(result) is (int if isinstance(value, (int, np.integer)) else float)
    assert type(column.rebuild(np.array([1.0]))) is float


def test_a_subclass_of_int_is_a_number() -> None:
    assert borrow(IntEnum("Level", "LOW HIGH").HIGH).block(0, 1).tolist() == [2]


@pytest.mark.parametrize("dtype", ["Int64", "Int32", "UInt32", "Float64", "Float32"])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("cut", ["whole", "sliced", "chunks", "sliced chunks", "empty"])
def test_polars_series(dtype: str, nulls: bool, cut: str) -> None:
    rows = [None if nulls and row % 3 == 0 else row for row in range(40)]
    series = pl.Series("delay", rows, dtype=getattr(pl, dtype))
    if "chunks" in cut:
        series = pl.concat([series, series[:0], series[5:18], series[3:4]], rechunk=False)
        assert series.n_chunks() > 1
    if "sliced" in cut:
        series = series[3:-2]
    if cut == "empty":
        series = series[:0]
    chunks = series.n_chunks()
    column = borrow(series)
    assert (column.length, column.dtype.name, column.null_count) == (
        len(series),
        dtype.lower(),
        series.null_count(),
    )
    result = column.rebuild(kernel(column))
    assert type(result) is pl.Series
    assert series.n_chunks() == chunks
    expected = [None if row is None else row + 1 for row in series]
    assert result.equals(pl.Series("delay", expected, dtype=series.dtype), check_dtypes=True, check_names=True)
    for output in ("int64", "float64"):
        assert str(column.rebuild(kernel(column, output)).dtype).lower() == output


ARROW = pa.array([None if row % 3 == 0 else row for row in range(40)], pa.int64())


@pytest.mark.parametrize("arrow_type", DTYPES)
@pytest.mark.parametrize(
    "array",
    [ARROW, ARROW[3:], ARROW[1:2], ARROW[3:4], ARROW[9:9], ARROW[8:30], ARROW.drop_null(), ARROW[:0]],
    ids=["whole", "sliced", "value", "null", "none", "byte", "full", "empty"],
)
def test_arrow_arrays(arrow_type: str, array: pa.Array) -> None:
    array = array.cast(arrow_type.replace("float64", "double").replace("float32", "float"))
    for values in (array, ArrayExport(array)):
        column = borrow(values)
        assert (column.length, column.dtype, column.null_count) == (len(array), arrow_type, array.null_count)
        result = column.rebuild(kernel(column))
        assert isinstance(result, pa.Array)
        result.validate(full=True)
        assert result.type == array.type
        assert result.to_pylist() == [None if row is None else row + 1 for row in array.to_pylist()]
        assert column.rebuild(kernel(column, "int64")).type == pa.int64()


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [ARROW[:0]],
        [ARROW],
        [ARROW[:0], ARROW[3:9], ARROW[:0], ARROW[1:2], ARROW.drop_null()[2:], ARROW[:0]],
    ],
    ids=["zero", "empty", "one", "many"],
)
def test_arrow_chunked_arrays(chunks: list[pa.Array]) -> None:
    chunked = pa.chunked_array(chunks, pa.int64())
    for values in (chunked, StreamExport(chunked)):
        column = borrow(values)
        result = column.rebuild(kernel(column))
        assert isinstance(result, pa.ChunkedArray)
        result.validate(full=True)
        assert result.type == pa.int64()
        assert result.to_pylist() == [None if row is None else row + 1 for row in chunked.to_pylist()]


def test_a_nullable_arrow_array_with_validity_but_no_nulls_in_the_slice() -> None:
    column = borrow(ARROW[1:3])
    assert column.null_count == 0
    assert column.missing(0, 2) is None
    assert column.rebuild(kernel(column)).buffers()[0] is None


@pytest.mark.parametrize(
    "dtype", ["int64", "float32", "Int64", "UInt32", "Float64", "int64[pyarrow]", "float[pyarrow]"]
)
def test_pandas_series(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    rows: list[Any] = [1, 2, 3, 4, 5]
    if dtype not in ("int64", "float32"):
        rows[2] = None
    values = pandas.Series(rows, index=list("abcde"), name="delay", dtype=dtype)
    for given_rows in (values, values[1:], values[::-1], values[:0]):
        column = borrow(given_rows)
        assert column.null_count == given_rows.isna().sum()
        result = column.rebuild(kernel(column))
        assert type(result) is pandas.Series
        pandas.testing.assert_series_equal(result, given_rows + 1)
        assert column.rebuild(kernel(column, "float64")).dtype == {
            "int64": "float64",
            "float32": "float64",
        }.get(dtype, "double[pyarrow]" if "pyarrow" in dtype else "Float64")


def test_pandas_nan_is_a_value() -> None:
    pandas = pytest.importorskip("pandas")
    column = borrow(pandas.Series([1.0, np.nan]))
    assert column.null_count == 0
    assert np.isnan(column.block(1, 2)).all()


def test_pandas_is_never_imported() -> None:
    code = (
        "import sys, polars as pl, numpy as np; from dpfast.columns import borrow\n"
        "borrow(np.arange(3)).rebuild(np.arange(3)); borrow(pl.Series([1, None])).rebuild(np.arange(2))\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


# --- nothing is copied on the way in ------------------------------------------------------------------------


def test_numpy_is_borrowed() -> None:
    values = np.arange(100.0).reshape(10, 10)
    column = borrow(values)
    assert address(column.block(0, 100)) == address(values)
    assert address(column.block(10, 20)) == address(values) + 80


@pytest.mark.parametrize("nulls", [False, True])
def test_polars_is_borrowed_chunk_by_chunk(nulls: bool) -> None:
    first = pl.Series("a", [None if nulls and row % 2 else row for row in range(100)])
    second = pl.Series("a", range(50))
    owners = [address(np.frombuffer(part.to_arrow().buffers()[1], np.int64)) for part in (first, second)]
    whole = borrow(first)
    assert address(whole.block(0, 100)) == owners[0]
    sliced = borrow(first[7:])
    assert address(sliced.block(1, 5)) == owners[0] + 8 * 8
    chunked = borrow(pl.concat([first[7:], second], rechunk=False))
    assert address(chunked.block(0, 93)) == owners[0] + 7 * 8
    assert address(chunked.block(93, 143)) == owners[1]
    crossing = chunked.block(90, 95)
    assert not crossing.flags.writeable
    assert crossing.base is None


@pytest.mark.parametrize("array", [ARROW, ARROW.drop_null()], ids=["nulls", "full"])
def test_arrow_is_borrowed(array: pa.Array) -> None:
    owner = array.buffers()[1].address
    assert address(borrow(array).block(0, 10)) == owner
    assert address(borrow(array[3:]).block(2, 10)) == owner + 5 * 8
    assert address(borrow(ArrayExport(array[3:])).block(2, 10)) == owner + 5 * 8
    chunked = pa.chunked_array([array[3:], array])
    assert address(borrow(chunked).block(0, 10)) == owner + 3 * 8
    assert address(borrow(StreamExport(chunked)).block(0, 10)) == owner + 3 * 8


def test_pandas_is_borrowed() -> None:
    pandas = pytest.importorskip("pandas")
    values = pandas.Series(np.arange(10))
    assert address(borrow(values).block(0, 10)) == address(values.to_numpy())


def test_unaligned_arrow_values_are_copied_into_alignment() -> None:
    shifted = pa.py_buffer(b"x" + struct.pack("<3q", 5, 6, 7)).slice(1)
    array = pa.Array.from_buffers(pa.int64(), 3, [None, shifted])
    for values in (array, pa.chunked_array([array, array])):
        block = borrow(values).block(0, 3)
        assert block.flags.aligned
        assert block.tolist() == [5, 6, 7]


def test_a_block_outlives_the_column_and_its_owner() -> None:
    block = borrow(pa.array(range(1000))[10:]).block(0, 5)
    pa.array(range(1000))
    assert block.tolist() == [10, 11, 12, 13, 14]


def test_rebuild_holds_the_fresh_buffer() -> None:
    """The buffer that a kernel wrote is the one that the user gets."""
    noised = np.arange(10)
    nulls = pl.Series("a", [None, *range(9)])
    assert borrow(np.arange(10)).rebuild(noised) is noised
    for values in (nulls, pl.Series("a", range(10))):
        assert borrow(values).rebuild(noised).to_arrow().buffers()[1].address == address(noised)
    assert borrow(nulls.to_arrow()).rebuild(noised).buffers()[1].address == address(noised)


@pytest.mark.parametrize(
    "noised",
    [
        np.arange(9),
        np.arange(11),
        np.arange(10).reshape(2, 5),
        np.arange(20)[::2],
        np.arange(10, dtype=">i8"),
    ],
)
def test_rebuild_refuses_a_buffer_that_does_not_fit(noised: np.ndarray) -> None:
    with pytest.raises(ValueError, match="10 rows"):
        borrow(ARROW[:10]).rebuild(noised)


# --- any chunking, any blocks -------------------------------------------------------------------------------


@st.composite
def chunked_rows(draw: st.DrawFn) -> tuple[list[int | None], list[pa.Array], list[int]]:
    """Rows, the same rows in chunks cut out of larger parents, and where to cut blocks."""
    rows = draw(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=60))
    chunk_cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    chunks = []
    for low, high in zip([0, *chunk_cuts], [*chunk_cuts, len(rows)], strict=True):
        before = draw(st.lists(st.none() | st.just(-1), max_size=11))
        parent = pa.array([*before, *rows[low:high], None, -2], pa.int64())
        chunks.append(parent.slice(len(before), high - low))
    block_cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    return rows, chunks, [0, *block_cuts, len(rows)]


@given(chunked_rows(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_blocks_put_together_are_the_column(
    drawn: tuple[list[int | None], list[pa.Array], list[int]], polars: bool
) -> None:
    rows, chunks, cuts = drawn
    values: Any = pa.chunked_array(chunks, pa.int64())
    if polars:
        values = pl.concat([pl.Series("a", chunk) for chunk in chunks], rechunk=False)
    column = borrow(values)
    assert column.null_count == rows.count(None)
    seen: list[int | None] = []
    for low, high in pairwise(cuts):
        block, missing = column.block(low, high), column.missing(low, high)
        assert block.shape == (high - low,)
        assert missing is None or missing.any()
        flags = [False] * (high - low) if missing is None else missing.tolist()
        seen += [None if null else row for row, null in zip(block.tolist(), flags, strict=True)]
    assert seen == rows
    out = np.array([0 if row is None else row for row in rows], np.int64)
    result = column.rebuild(out)
    assert (result.to_list() if polars else result.to_pylist()) == rows


def test_validity_over_several_blocks_of_bits() -> None:
    rows = np.arange(3 * BLOCK_ROWS + 13)
    valid = (rows % 7 != 0) | ((rows > BLOCK_ROWS) & (rows < 2 * BLOCK_ROWS + 50))
    array = pa.array(rows, mask=~valid)
    result = borrow(pa.chunked_array([array[:1001], array[1001:]])).rebuild(np.where(valid, rows, 0))
    assert result.combine_chunks().equals(array)


# --- nothing leaks on the way out ---------------------------------------------------------------------------

MARKER = -0x123456789ABCDEF1
MARKER_BYTES = struct.pack("<q", MARKER)


def marked_array() -> pa.Array:
    """A slice whose parent, and whose own null slots, hold the marker."""
    valid = np.arange(77) % 5 != 0
    memory = np.where(valid, np.arange(77), MARKER)
    memory[:13] = MARKER
    memory[70:] = MARKER
    buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")), pa.py_buffer(memory)]
    return pa.Array.from_buffers(pa.int64(), 77, buffers)[13:70]


def buffers_of(result: Any) -> list[pa.Buffer]:
    if isinstance(result, pl.Series):
        arrays = [chunk.to_arrow() for chunk in result.get_chunks()]
    elif isinstance(result, pa.ChunkedArray):
        arrays = result.chunks
    else:
        arrays = [result]
    return [buffer for array in arrays for buffer in array.buffers() if buffer is not None]


def marked_columns() -> dict[str, Any]:
    array = marked_array()
    full = pa.Array.from_buffers(pa.int64(), 20, [None, array.buffers()[1]], offset=14).drop_null()
    return {
        "arrow": array,
        "arrow without nulls": full[1:1],
        "chunked": pa.chunked_array([array[:8], array[8:]]),
        "polars": pl.Series("a", array),
        "polars chunks": pl.concat([pl.Series("a", array), pl.Series("a", array)[3:]], rechunk=False),
        "array capsule": ArrayExport(array),
        "stream capsule": StreamExport(pa.chunked_array([array])),
    }


@pytest.mark.parametrize("kind", list(marked_columns()))
def test_no_masked_or_parent_byte_leaves(kind: str) -> None:
    """Soundness rule 20: no byte under a null, of a slice's parent or of the input column leaves."""
    values = marked_columns()[kind]
    column = borrow(values)
    result = column.rebuild(kernel(column))
    source = marked_array().buffers()
    for buffer in buffers_of(result):
        assert MARKER_BYTES not in buffer.to_pybytes()
        assert len(buffer) <= 8 * column.length
        assert not any(old.address <= buffer.address < old.address + old.size for old in source)
    file = io.BytesIO()
    if isinstance(result, pl.Series):
        result.to_frame().write_ipc(file)
    else:
        table = pa.table({"a": result})
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert MARKER_BYTES not in file.getvalue()


def test_the_marker_is_found_where_it_does_leak() -> None:
    """A control for the test above: the input itself, in its buffers and in a file of it."""
    array = marked_array()
    assert MARKER_BYTES in array.buffers()[1].to_pybytes()
    file = io.BytesIO()
    pl.Series("a", array).to_frame().write_ipc(file)
    assert MARKER_BYTES in file.getvalue()


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]"])
def test_no_masked_byte_leaves_through_pandas(dtype: str) -> None:
    """Soundness rule 20, for the nullable columns of pandas."""
    pandas = pytest.importorskip("pandas")
    values = pandas.Series(pandas.Int64Dtype().__from_arrow__(marked_array()))
    if "pyarrow" in dtype:
        values = pandas.Series(pandas.ArrowDtype(pa.int64()).__from_arrow__(marked_array()))
    column = borrow(values)
    result = column.rebuild(kernel(column))
    for buffer in buffers_of(pa.chunked_array([pa.array(result.array)])):
        assert MARKER_BYTES not in buffer.to_pybytes()
    if dtype == "Int64":
        assert MARKER_BYTES not in result.array._data.tobytes()


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 13])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 50])
@pytest.mark.parametrize("polars", [False, True])
def test_validity_bits_are_fresh(offset: int, length: int, polars: bool) -> None:
    """Soundness rule 20: a slice's validity starts at bit 0 and ends in zeros, not in its parent's bits."""
    valid = np.ones(80, bool)
    valid[offset] = False
    array = pa.array(np.arange(80), mask=~valid)[offset : offset + length]
    result = borrow(pl.Series("a", array) if polars else array).rebuild(np.zeros(length, np.int64))
    if polars:
        result = result.to_arrow()
    assert result.offset == 0
    bits = result.buffers()[0].to_pybytes()
    assert bits == np.packbits(valid[offset : offset + length], bitorder="little").tobytes()


# --- what is refused ----------------------------------------------------------------------------------------

POLARS_REFUSED = {
    "Boolean": pl.Series([True]),
    "Int8": pl.Series([1], dtype=pl.Int8),
    "Int16": pl.Series([1], dtype=pl.Int16),
    "UInt8": pl.Series([1], dtype=pl.UInt8),
    "UInt16": pl.Series([1], dtype=pl.UInt16),
    "UInt64": pl.Series([1], dtype=pl.UInt64),
    "Int128": pl.Series([1], dtype=pl.Int128),
    "Decimal": pl.Series([Decimal("1.50")]),
    "String": pl.Series(["1"]),
    "Null": pl.Series([None]),
    "Date": pl.Series([1], dtype=pl.Int32).cast(pl.Date),
    "Datetime": pl.Series([1]).cast(pl.Datetime),
    "Duration": pl.Series([1]).cast(pl.Duration),
    "Time": pl.Series([1]).cast(pl.Time),
}
ARROW_REFUSED = {
    "bool": pa.array([True]),
    **{name: pa.array([1], name) for name in ("int8", "int16", "uint8", "uint16", "uint64")},
    "halffloat": pa.array([np.float16(1)], pa.float16()),
    "decimal128": pa.array([Decimal("1.5")]),
    "decimal256": pa.array([Decimal("1.5")], pa.decimal256(5, 2)),
    "string": pa.array(["1"]),
    "large_string": pa.array(["1"], pa.large_string()),
    "null": pa.nulls(1),
    "date32": pa.array([1], pa.int32()).cast(pa.date32()),
    "date64": pa.array([86400000]).cast(pa.date64()),
    "time32": pa.array([1], pa.int32()).cast(pa.time32("s")),
    "time64": pa.array([1]).cast(pa.time64("ns")),
    "timestamp": pa.array([1]).cast(pa.timestamp("us", "UTC")),
    "duration": pa.array([1]).cast(pa.duration("s")),
    "dictionary": pa.array([1, 1]).dictionary_encode(),
    "extension": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "a", "b"), pa.array([1])),
}
NUMPY_REFUSED = {
    name: np.ones(2, name)
    for name in ("bool", "int8", "int16", "uint8", "uint16", "uint64", "float16", "longdouble", "complex64")
} | {
    "complex128": np.ones(2, complex),
    "object": np.array([1, 2.5], object),
    "str": np.array(["1", "2.5"]),
    "bytes": np.array([b"1"]),
    "datetime64": np.array([1], "M8[s]"),
    "timedelta64": np.array([1], "m8[s]"),
    "big-endian": np.ones(2, ">u2"),
}


@pytest.mark.parametrize(
    "values", [*POLARS_REFUSED.values(), *ARROW_REFUSED.values(), *NUMPY_REFUSED.values()], ids=str
)
def test_a_refused_type_names_a_cast_that_mends_it(values: Any) -> None:
    with pytest.raises(ColumnError, match=r"^values must have numbers of type int64") as refused:
        borrow(values)
    message = str(refused.value)
    assert "\n" not in message
    advice = message.split("; write ")[1]
    mended = borrow(eval(advice, {"values": values, "pl": pl}))
    assert mended.length == len(values)


@pytest.mark.filterwarnings("ignore:Warning. converting a masked element")
@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pl.Series([[1, 2]]), "pass one column of numbers"),
        (pl.Series([{"a": 1}]), "pass one column of numbers"),
        (pl.Series(["x"], dtype=pl.Enum(["x", "line\nbreak" * 30])), "Enum"),
        (pl.Series(["x"], dtype=pl.Categorical), "Categorical"),
        (pl.col("a"), "a Polars Expr; pass a column with its values"),
        (pl.DataFrame({"a": [1]}), "a Polars DataFrame; pass a column"),
        (pl.LazyFrame({"a": [1]}), "a Polars LazyFrame; pass a column"),
        (pa.table({"a": [1]}), "a PyArrow Table; pass one column"),
        (pa.record_batch({"a": [1]}), "a PyArrow RecordBatch; pass one column"),
        (pa.array([[1], [2]]), "list<item: int64>"),
        (pa.array([{"a\nb": 1}]), "struct<a b: int64>"),
        (pa.chunked_array([ARROW_REFUSED["dictionary"]]), "write values.cast(values.type.value_type)"),
        (pa.scalar(1), "write values.as_py()"),
        (StreamExport(pa.chunked_array([pa.array([True])])), "an object of type StreamExport of bool"),
        (ArrayExport(pa.array([{"a": 1}])), "ArrayExport of struct"),
        (BrokenExport(), "an object of type BrokenExport that could not be read as an Arrow column"),
        (np.ma.masked_array([1, 2], [True, False]), "a masked array; write values.filled(0)"),
        (np.ma.masked_array([1, 2]), "a masked array"),
        (np.zeros(2, [("a", "i4"), ("b", "f8")]), "void"),
        ([1, None], "holds None; pass a Polars Series or PyArrow Array to keep nulls"),
        ([1, True], "holds bool; write 1 or 0"),
        ([[1], [True]], "holds bool; write 1 or 0"),
        ([1, "2"], "holds str; pass [float(value) for value in values]"),
        ([1, 1j], "holds complex"),
        ([Decimal(1)], "holds Decimal"),
        ([np.ma.masked], "holds MaskedConstant"),
        ([pl.Series([1, None])], "holds Series"),
        ([[1], [1, 2]], "pass rows of equal length"),
        ([np.int8(1)], "a NumPy array of int8"),
        (True, "a bool; write 1 or 0"),
        (np.True_, "a NumPy scalar of bool; write int(values)"),
        (np.int8(3), "a NumPy scalar of int8"),
        (np.float16(3), "a NumPy scalar of float16"),
        (np.complex128(3), "a NumPy scalar of complex128"),
        (None, "was None; pass"),
        (1j, "type complex; pass"),
        ("1", "type str; pass"),
        (b"1", "type bytes; pass"),
        ({1: 2}, "type dict; pass"),
        (OrderedDict(), "OrderedDict; pass"),
        ({1}, "type set; pass"),
        (range(3), "type range; pass"),
        (Decimal(1), "type Decimal; pass"),
        (Fraction(1, 2), "type Fraction; pass"),
        (object(), "object; pass"),
    ],
)
def test_other_objects_are_refused(values: Any, says: str) -> None:
    with pytest.raises(ColumnError) as refused:
        borrow(values)
    message = str(refused.value)
    assert message.startswith("values must ")
    assert says in message
    assert "\n" not in message
    assert len(message) < 300
    with pytest.raises(ColumnError, match=r"^scores must "):
        borrow(values, "scores")


@pytest.mark.parametrize("dtype", ["boolean", "Int8", "UInt64", "category", "string", "bool", "int16", "bool[pyarrow]"])
def test_pandas_types_are_refused(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    values = pandas.Series([1, 0]).astype(dtype)
    with pytest.raises(ColumnError, match=r"^values must have .* pandas Series of .*; write values\.") as refused:
        borrow(values)
    if "pyarrow" not in dtype:
        assert borrow(eval(str(refused.value).split("; write ")[1], {"values": values})).length == 2
    with pytest.raises(ColumnError, match="pandas DataFrame; pass one column"):
        borrow(values.to_frame())


@pytest.mark.parametrize("values", [2**63, -(2**63) - 1, 10**400, [2**63], [2**64], [2**63, -1], [2**53 + 1, 0.5]])
def test_integers_that_fit_no_type_are_refused_unshown(values: Any) -> None:
    """A message shows nothing of the values."""
    with pytest.raises(DataError, match=r"^values ") as refused:
        borrow(values)
    message = str(refused.value)
    assert "\n" not in message
    assert "9223" not in message
    assert "9007" not in message


# --- scales -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale",
    [
        1,
        0.1,
        2**53 + 1,
        2**960,
        10**288 + 1,
        2.0**-960,
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(2, 3),
        Decimal("0.1"),
        Decimal("0.3"),
        Decimal("1e-288"),
        np.float32(0.1),
        np.float64(0.1),
        np.float16(0.1),
        np.longdouble(1) / 3,
        np.int64(2**53 + 1),
        np.uint64(2**64 - 1),
        np.int8(3),
        np.array(2.5),
        np.array(3),
    ],
    ids=repr,
)
def test_a_scale_is_the_smallest_float_not_below(scale: Any) -> None:
    """Soundness rule 10: a scale is never rounded down."""
    result = borrow_scale(scale, 5)
    assert type(result) is float
    given_number = scale.item() if isinstance(scale, (np.ndarray, np.generic)) else scale
    exact = Fraction(*given_number.as_integer_ratio())
    assert Fraction(result) >= exact
    assert Fraction(math.nextafter(result, 0)) < exact


@pytest.mark.parametrize(
    "scale",
    [
        0,
        0.0,
        -0.0,
        -1,
        math.nan,
        math.inf,
        -math.inf,
        5e-324,
        1e-300,
        1e300,
        10**400,
        2**960 + 1,
        math.nextafter(2.0**-960, 0),
        Fraction(1, 2**960 + 1),
        Fraction(2**960 + 1),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1e999999"),
        Decimal("1e-999999"),
        Decimal(-1),
        np.float64("nan"),
        np.float32("inf"),
        np.longdouble("nan"),
        np.longdouble("inf"),
        np.float16(0),
        np.int64(-3),
        True,
        False,
        np.True_,
        np.array(True),
        1j,
        np.complex128(1),
        None,
        "1",
        "x" * 1000,
        b"1",
        np.datetime64(1, "s"),
        np.timedelta64(1, "s"),
    ],
    ids=lambda scale: repr(scale)[:20],
)
def test_a_scale_out_of_range_is_refused(scale: Any) -> None:
    with pytest.raises(ParameterError, match=r"^scale must be a number from 2\*\*-960 .* to 2\*\*960") as refused:
        borrow_scale(scale, 5)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 250
    with pytest.raises(ParameterError, match=r"^sigma must be"):
        borrow_scale(scale, 5, "sigma")


@pytest.mark.parametrize(
    "scale",
    [
        np.array([1.0, 2.0, 4.0]),
        np.array([1.0, 2.0, 4.0], "float32"),
        np.array([1, 2, 4], "int32"),
        np.array([1, 2, 4]),
        np.array([[1, 2, 4]], "uint32"),
        [1, 2, 4],
        (1.0, 2, 4),
        pl.Series([1.0, 2.0, 4.0]),
        pl.concat([pl.Series([1.0]), pl.Series([2.0, 4.0])], rechunk=False),
        pa.array([1, 2, 4]),
        pa.chunked_array([[1.0], [2.0, 4.0]]),
    ],
)
def test_a_column_of_scales(scale: Any) -> None:
    result = borrow_scale(scale, 3)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    assert not result.flags.writeable
    assert result.tolist() == [1.0, 2.0, 4.0]


def test_a_float64_column_of_scales_is_borrowed_and_stays_writable() -> None:
    scale = np.ones(100_000)
    result = borrow_scale(scale, 100_000)
    assert isinstance(result, np.ndarray)
    assert address(result) == address(scale)
    assert scale.flags.writeable


def test_large_integer_scales_are_exact() -> None:
    assert borrow_scale(np.array([2**62, 2**53, 3]), 3).tolist() == [2.0**62, 2.0**53, 3.0]
    for inexact in (2**53 + 1, 2**63 - 1):
        with pytest.raises(ParameterError, match=rf"^scale\[1\] must be an integer .* was {inexact}; round it up"):
            borrow_scale(np.array([1, inexact]), 2)


def test_no_scales_for_no_rows() -> None:
    assert len(borrow_scale(np.array([]), 0)) == 0


@pytest.mark.parametrize("row", [0, 7, BLOCK_ROWS - 1, BLOCK_ROWS, 2 * BLOCK_ROWS - 1])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e300, 1e-300])
def test_the_first_bad_scale_is_named(row: int, bad: float) -> None:
    scale = np.ones(2 * BLOCK_ROWS)
    scale[row] = bad
    scale[row + 1 :: 3] = -5.0
    with pytest.raises(ParameterError) as refused:
        borrow_scale(scale, 2 * BLOCK_ROWS)
    message = str(refused.value)
    assert message.startswith(f"scale[{row}] must be a number from 2**-960")
    assert message.endswith(f"but was {bad!r}")
    assert refused.value.argument == "scale"


def test_columns_of_scales_that_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"^the length of scale must be 4, as the column's, but was 3"):
        borrow_scale([1, 2, 3], 4)
    with pytest.raises(ParameterError, match=r"^scale\[1\] must be a number .* but was None$"):
        borrow_scale(pl.Series([1.0, None, None]), 3)
    for scale in ([True, False], np.ones(2, "int8"), {1: 2}, pl.col("a"), np.ma.masked_array([1.0, 2.0])):
        with pytest.raises(ColumnError, match=r"^scale must "):
            borrow_scale(scale, 2)


def test_the_errors_are_of_one_family() -> None:
    for error in (ColumnError, DataError, ParameterError):
        assert issubclass(error, DpfastError)


@pytest.mark.parametrize("module", [dpfast.columns.column, dpfast.columns.kinds, dpfast.columns.scale])
def test_the_examples_run(module: Any) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("rows", [0, 1, 262_143, 262_144, 300_001, 2_000_000])
def test_memory_for_results(rows):
    """Large results come in large pages where there are some; all of it can be written, and none is given twice."""
    arrays = [fresh_array(rows, np.dtype(np.int64)) for _ in range(2)]
    for value, array in enumerate(arrays):
        assert (array.shape, array.dtype, array.flags.writeable) == ((rows,), np.int64, True)
        array[:] = value
    assert not arrays[0].any()
    assert arrays[1].all()


def test_memory_without_advice(monkeypatch):
    """Systems without large pages give memory all the same."""
    monkeypatch.setattr(fresh, "_madvise", lambda: None)
    assert fresh_array(1_000_000, np.dtype(np.int64)).size == 1_000_000
