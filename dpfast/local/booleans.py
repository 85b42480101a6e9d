"""Columns of Booleans as the bits that they are: packed in Arrow's memory and in Polars's, bytes in NumPy's."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.lists import library_of
from dpfast.local.bits import answer_flags, answer_packed
from dpfast.randomness import RandomSource

__all__ = ["answer_booleans", "is_boolean_column"]


def is_boolean_column(values: Any, categories: int | tuple[Any, ...]) -> bool:
    """Return whether rows are Booleans of a kind that `answer_booleans` takes, and the categories are both."""
    if categories not in ((False, True), (True, False)) or any(type(value) is not bool for value in categories):
        return False
    library = library_of(values)
    if library == "polars":
        return isinstance(values, pl.Series) and values.dtype == pl.Boolean
    if library == "pyarrow":
        import pyarrow as pa

        return isinstance(values, (pa.Array, pa.ChunkedArray)) and bool(pa.types.is_boolean(values.type))
    return isinstance(values, np.ndarray) and type(values) is np.ndarray and values.dtype == np.dtype(np.bool_)


def answer_booleans(values: Any, epsilon: Fraction, source: RandomSource, threads: object = None) -> Any:
    """Return a column of the same kind in which every row answers True or False; a null is neither."""
    if isinstance(values, np.ndarray):
        flat = np.ascontiguousarray(values).reshape(-1)
        return answer_flags(flat, epsilon, source, threads).reshape(values.shape)
    import pyarrow as pa

    array = values.to_arrow() if isinstance(values, pl.Series) else values
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if len(array) else pa.array([], pa.bool_())
    validity, bits = array.buffers()
    valid = _bytes(validity) if array.null_count else None
    released = answer_packed(_bytes(bits), array.offset, len(array), valid, epsilon, source, threads)
    answers = pa.Array.from_buffers(pa.bool_(), len(array), [None, pa.py_buffer(released)], 0)
    if isinstance(values, pl.Series):
        return pl.Series(values.name, answers, dtype=pl.Boolean)
    return pa.chunked_array([answers]) if isinstance(values, pa.ChunkedArray) else answers


def _bytes(buffer: Any) -> NDArray[np.uint8]:
    read = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.empty(0, np.uint8)
    read.setflags(write=False)
    return read
