"""Batches of outputs: the form that all outputs of one share, and what two of them have in common."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.leaves import as_float, frame_columns, is_missing

__all__ = ["form_of_batch", "of_one_form", "rows_of_batch"]


def form_of_batch(batch: Any) -> str:
    """Return the type of a batch, and the dtypes and names that all its outputs share."""
    kind = f"{type(batch).__module__}.{type(batch).__qualname__}"
    columns = frame_columns(batch)
    if columns is not None:
        return f"{kind} of " + ", ".join(f"{name}: {column.dtype}" for name, column in columns.items())
    kinds = [str(getattr(batch, name)) for name in ("dtype", "type") if hasattr(batch, name)]
    shape = getattr(batch, "shape", (0,))[1:]
    return " of ".join([kind, *kinds[:1], *([f"shape {shape}"] if shape else [])])


def rows_of_batch(batch: Any) -> list[Any]:
    """Return the outputs of a batch one by one.

    Of an array they are numbers of Python: its type is that of all of them together, and is no property of each.
    """
    if isinstance(batch, np.ndarray) and batch.dtype.kind in "biufc":
        return list(batch.tolist())
    columns = frame_columns(batch)
    if columns is not None:
        lists = [column.to_list() if hasattr(column, "to_list") else list(column) for column in columns.values()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
    for name in ("to_list", "to_pylist"):  # columns of Polars and pandas, of PyArrow
        if hasattr(batch, name):
            return list(getattr(batch, name)())
    return list(batch)


def of_one_form(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two batches; where their forms differ, what both have: columns of the same names, numbers of one type.

    One output that is no integer, or that is missing, makes floats of all integers of a batch, and the widest or rarest
    one its shape and its names. Said of each output, the form would refute what is private.
    """
    if form_of_batch(first) == form_of_batch(second):
        return first, second
    parts = [frame_columns(batch) for batch in (first, second)]
    one, other = ({"": batch} if part is None else part for batch, part in zip((first, second), parts, strict=True))
    pairs = {name: _of_one_type(one[name], other[name]) for name in one if name in other}
    if list(pairs) == [""]:
        return pairs[""]
    left, right = (
        [{name: pair[side][row] for name, pair in pairs.items()} for row in range(len(first))] for side in (0, 1)
    )
    return left, right


def _of_one_type(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two columns as arrays of one type and width, or as lists in which all numbers are floats."""
    columns = first, second
    if all(type(column) is np.ndarray for column in columns) and "U" in (first.dtype.kind, second.dtype.kind):
        # One text among numbers makes texts of all.
        return first.astype(str).tolist(), second.astype(str).tolist()
    arrays = [_as_array(column) for column in columns]
    if any(array is None for array in arrays):
        return tuple([_plain(value) for value in rows_of_batch(column)] for column in columns)  # type: ignore[return-value]
    if any(array.ndim > 1 for array in arrays):
        flat = [array.reshape(len(array), -1) for array in arrays]
        arrays = [array[:, : min(each.shape[1] for each in flat)] for array in flat]
    types = [array.dtype for array in arrays]
    floats = [dtype for dtype in types if dtype.kind == "f"]
    # The wider one of two floats would show by its bits from which of them a number comes.
    common = min(floats, key=lambda dtype: dtype.itemsize) if floats else np.promote_types(*types)
    with np.errstate(all="ignore"):
        return tuple(array.astype(common) for array in arrays)


def _as_array(column: Any) -> Any:
    """Return a column of numbers as an array, NaN for nulls; None of any other one."""
    array: NDArray[Any] | None = None
    if isinstance(column, np.ndarray):
        array = None if isinstance(column, np.ma.MaskedArray) else column
    elif hasattr(column, "to_numpy"):
        arrow = type(column).__module__.startswith("pyarrow")
        array = np.asarray(column.to_numpy(zero_copy_only=False) if arrow else column.to_numpy())
        array = array if array.ndim == 1 else None  # of records or lists
    return array if array is not None and array.dtype.kind in "biuf" else None


def _plain(value: Any) -> Any:
    """Return a number as a float, and whatever is missing as None; of a record, what is there."""
    if is_missing(value) or value is np.ma.masked:
        return None
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):  # a column of records gives each the fields of all
        parts = {name: _plain(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, complex) and value.imag == 0:
        return _plain(value.real)
    if isinstance(value, (bool, int, float, Decimal, np.bool_, np.integer, np.floating)):
        number = as_float(value)  # type: ignore[arg-type]
        return None if math.isnan(number) else number
    return value
