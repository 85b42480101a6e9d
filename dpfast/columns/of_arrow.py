"""PyArrow arrays, and every object that can export itself as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpfast.columns.column import NATIVE_DTYPES, Bitmap, Column, GiveBack
from dpfast.columns.refusal import casts, refuse_dtype, refuse_kind

__all__ = ["arrow_array", "borrow_arrow", "borrow_capsule", "borrow_chunks", "borrow_stream"]

_TYPES = {dtype: pa.from_numpy_dtype(dtype) for dtype in NATIVE_DTYPES.values()}
# Comparing the numbers of types is 30 times faster than comparing the types.
_DTYPES: dict[int, np.dtype[Any]] = {arrow_type.id: dtype for dtype, arrow_type in _TYPES.items()}

_MENDS = {
    **casts('.cast("{}")', int32="bool int8 int16 uint8 uint16 date32 time32"),
    **casts('.cast("{}")', int64="uint64 date64 time64 timestamp duration", float32="halffloat"),
    **casts('.cast("{}")', float64="decimal32 decimal64 decimal128 decimal256 string large_string string_view null"),
    "dictionary": ".cast({argument}.type.value_type)",
    "extension": ".cast({argument}.type.storage_type)",
}


def borrow_arrow(values: Any, argument: str) -> Column:
    """Borrow a PyArrow Array or ChunkedArray; the result is of the same class, in one chunk."""
    if isinstance(values, pa.Array):
        return borrow_chunks((values,), values.type, argument, "a PyArrow Array", arrow_array)
    if isinstance(values, pa.ChunkedArray):
        return borrow_chunks(values.chunks, values.type, argument, "a PyArrow ChunkedArray", _chunked_array)
    name = type(values).__name__
    if isinstance(values, pa.Scalar):
        raise refuse_kind(argument, f"a PyArrow {name}", f"write {argument}.as_py()")
    raise refuse_kind(argument, f"a PyArrow {name}", 'pass one column, such as table["name"]')


def borrow_capsule(values: Any, argument: str) -> Column:
    """Borrow an object that exports one Arrow array (the result is an Array) or a stream (a ChunkedArray)."""
    name = f"an object of type {type(values).__name__}"
    try:
        imported = pa.array(values) if hasattr(values, "__arrow_c_array__") else pa.chunked_array(values)
    except Exception as error:
        mend = "pass a Polars, PyArrow or NumPy column"
        raise refuse_kind(argument, f"{name} that could not be read as an Arrow column", mend) from error
    if isinstance(imported, pa.Array):
        return borrow_chunks((imported,), imported.type, argument, name, arrow_array)
    return borrow_chunks(imported.chunks, imported.type, argument, name, _chunked_array)


def borrow_stream(values: Any, argument: str, kind: str, give_back: GiveBack) -> Column:
    """Borrow an object that exports a stream of chunks; ``kind`` and ``give_back`` as in `borrow_chunks`."""
    chunked = pa.chunked_array(values)
    return borrow_chunks(chunked.chunks, chunked.type, argument, kind, give_back)


def borrow_chunks(arrays: Sequence[Any], arrow_type: Any, argument: str, kind: str, give_back: GiveBack) -> Column:
    """Borrow PyArrow arrays of one type that together are a column.

    Parameters
    ----------
    arrays
        The chunks, in order; empty ones are passed over.
    arrow_type
        Their type.
    argument, kind
        What an error calls the column.
    give_back
        What wraps the result.

    """
    dtype = _DTYPES.get(arrow_type.id)
    if dtype is None:
        name = "extension" if isinstance(arrow_type, pa.BaseExtensionType) else str(arrow_type)
        mends = {type_name: mend.format(argument=argument) for type_name, mend in _MENDS.items()}
        raise refuse_dtype(argument, kind, name, mends)
    chunks: list[NDArray[Any]] = []
    bitmaps: list[Bitmap | None] = []
    null_count = 0
    for array in arrays:
        length = len(array)
        if length == 0:
            continue
        validity, data = array.buffers()
        offset = array.offset
        chunks.append(np.frombuffer(data, dtype, length, offset * dtype.itemsize))
        nulls = array.null_count
        bitmaps.append((np.frombuffer(validity, np.uint8), offset) if nulls else None)
        null_count += nulls
    return Column(dtype, chunks, give_back, bitmaps, null_count)


def arrow_array(noised: NDArray[Any], validity: NDArray[np.uint8] | None, null_count: int) -> Any:
    """Return a PyArrow Array that holds these buffers, without a copy."""
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(noised)]
    return pa.Array.from_buffers(_TYPES[noised.dtype], len(noised), buffers, null_count)


def _chunked_array(noised: NDArray[Any], validity: NDArray[np.uint8] | None, null_count: int) -> Any:
    return pa.chunked_array([arrow_array(noised, validity, null_count)])
