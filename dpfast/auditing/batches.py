"""Batches of outputs: the form that all outputs of one share, and what two of them have in common."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.leaves import as_float, frame_columns, is_missing

__all__ = ["Halves", "form_of_batch", "joined", "rows_of_batch"]

#: The batches of one input: of the outputs that teach and choose, and of those that measure.
Halves: TypeAlias = tuple[Any, Any]


def form_of_batch(batch: Any) -> str:
    """Return the type of a batch, and the dtypes and names that all its outputs share."""
    kind = f"{type(batch).__module__}.{type(batch).__qualname__}"
    columns = frame_columns(batch)
    if columns is not None:
        return f"{kind} of " + ", ".join(f"{name}: {column.dtype}" for name, column in columns.items())
    kinds = [str(getattr(batch, name)) for name in ("dtype", "type") if hasattr(batch, name)]
    if isinstance(batch, np.ndarray) and batch.dtype.kind in "US":
        kinds = [batch.dtype.kind]  # its length is that of the longest text, and each text is read by itself
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


def joined(first: Halves, second: Halves) -> tuple[Any, Any] | None:
    """Return the outputs of two inputs, each half of which is a batch of its own, as one batch or list for each input.

    How outputs are read is decided by the forms of the halves that choose. Where one that measures has another form, it
    cannot be read so: None. So an output that measures is read by itself, or not at all, and the proof of
    `dpfast.audit` holds: to be in no event makes it no likelier that a claim is refuted.

    Where the forms of two inputs differ, the outputs are what both have: columns of the same names, numbers of one
    type. One output that is no integer, or that is missing, makes floats of all integers of a batch, and the widest or
    rarest one its shape and its names. Said of each output, the form would refute what is private.
    """
    if any(form_of_batch(choose) != form_of_batch(measure) for choose, measure in (first, second)):
        return None
    if form_of_batch(first[0]) == form_of_batch(second[0]):
        return _both(_end_to_end(*first), _end_to_end(*second))
    sides = [[frame_columns(half) or {"": half} for half in halves] for halves in (first, second)]
    columns = {}
    for name in sides[0][0]:
        if name in sides[1][0]:
            read = [_of_one_type(sides[0][part][name], sides[1][part][name]) for part in (0, 1)]
            pair = _both(*(_end_to_end(read[0][side], read[1][side]) for side in (0, 1)))
            if pair is None:
                return None
            columns[name] = pair
    if list(columns) == [""]:
        return columns[""]
    size = sum(map(_length, first))
    left, right = (
        [{name: pair[side][row] for name, pair in columns.items()} for row in range(size)] for side in (0, 1)
    )
    return left, right


def _both(first: Any, second: Any) -> tuple[Any, Any] | None:
    return None if first is None or second is None else (first, second)


def _length(batch: Any) -> int:
    return len(next(iter((frame_columns(batch) or {"": batch}).values()), ()))


def _end_to_end(choose: Any, measure: Any) -> Any:
    """Return the outputs of two batches of one form after each other, None if they were read in different ways."""
    plain = [isinstance(half, np.ndarray) and half.dtype.kind in "biuf" for half in (choose, measure)]
    if plain[0] != plain[1]:
        return None
    if plain[0] and not isinstance(choose, np.ma.MaskedArray):
        same = (choose.dtype, choose.shape[1:]) == (measure.dtype, measure.shape[1:])
        return np.concatenate([choose, measure]) if same else None
    if frame_columns(choose) is None:
        return [*rows_of_batch(choose), *rows_of_batch(measure)]
    if type(choose).__module__.startswith("pandas"):
        pandas: Any = sys.modules["pandas"]
        return pandas.concat([choose, measure], ignore_index=True)
    import polars as pl

    return pl.concat([pl.DataFrame(choose), pl.DataFrame(measure)])


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
        if array is not None and array.dtype.kind in "biu":
            array = array.astype(np.float64)  # as it is where one is missing
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
