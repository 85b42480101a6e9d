"""Reports of any kind of column: numbers and bitsets given back as they came, and read again."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns import Column, borrow
from dpfast.columns.elements import flatten
from dpfast.columns.lists import library_of
from dpfast.errors import ColumnError
from dpfast.local.plain_values import is_plain

__all__ = ["codes_of", "give_reports", "read_bitsets", "read_bools", "read_numbers"]


def codes_of(column: Column, start: int, stop: int) -> NDArray[Any]:
    """Return rows of a column of categories' numbers, read-only, with a number of no category in place of nulls."""
    values = column.block(start, stop)
    missing = column.missing(start, stop) if column.null_count else None
    if missing is not None:
        values = np.where(missing, np.array(-1).astype(column.dtype), values)
        values.setflags(write=False)
    return values


def give_reports(values: Any, reports: NDArray[Any]) -> Any:
    """Return reports, one a row of ``values`` (numbers, bools, or rows of bytes), as the kind of column that it is."""
    if is_plain(values):
        return reports[0] if reports.ndim > 1 else reports[0].item()
    library = library_of(values)
    if library == "numpy" or isinstance(values, (list, tuple)):
        shape = flatten(values)[1] if isinstance(values, (list, tuple)) else values.shape
        return reports.reshape((*shape, *reports.shape[1:]))
    if library == "polars" and reports.ndim == 1:
        return pl.Series(values.name, reports)
    if library == "pandas" and reports.ndim == 1:
        return sys.modules["pandas"].Series(reports, index=values.index, name=values.name)
    import pyarrow as pa

    if reports.ndim == 1:
        array = pa.array(reports)
    else:
        array = pa.FixedSizeListArray.from_arrays(pa.array(reports.reshape(-1)), reports.shape[1])
    if library == "polars":
        return pl.Series(values.name, array)
    if library == "pandas":
        pandas: Any = sys.modules["pandas"]
        held = pandas.ArrowDtype(array.type).__from_arrow__(array)
        return pandas.Series(held, index=values.index, name=values.name)
    return pa.chunked_array([array]) if hasattr(values, "chunks") else array


def read_numbers(reports: Any) -> Column:
    """Return a column of whole numbers without nulls, or a single one.

    Raises
    ------
    ColumnError
        It is of another type, or has nulls.

    """
    column = borrow(reports, "reports")
    if column.dtype.kind == "f":
        raise ColumnError("reports must be whole numbers as randomize returns them, but were floats")
    _refuse_nulls(column.null_count)
    return column


def read_bools(reports: Any) -> NDArray[np.bool_]:
    """Return Booleans of any kind as an array of one dimension.

    Raises
    ------
    ColumnError
        They are of another type, or have nulls.

    """
    if isinstance(reports, (bool, np.bool_)):
        return np.array([reports])
    read = _as_array(reports)
    if read.size and read.dtype != np.dtype(np.bool_):
        raise ColumnError("reports must be a column of Booleans as randomize returns them; pass such a column")
    bools: NDArray[np.bool_] = read.reshape(-1).astype(np.bool_)
    return bools


def read_bitsets(reports: Any, width: int) -> NDArray[np.uint8]:
    """Return reports of ``width`` bytes each as a contiguous array of two dimensions.

    Raises
    ------
    ColumnError
        They are of another type or width, or have nulls.

    """
    read: Any = np.atleast_1d(_as_array(reports))
    if read.dtype == np.dtype(object) and read.size:
        with suppress(ValueError):
            read = np.stack([np.asarray(row) for row in read.tolist()])
    if len(read) == 0:
        return np.zeros((0, width), np.uint8)
    if read.dtype != np.dtype(np.uint8) or read.shape[-1] != width:
        raise ColumnError(
            f"reports must be rows of {width} bytes (uint8) as randomize returns them; pass such a column"
        )
    bitsets: NDArray[np.uint8] = np.ascontiguousarray(read.reshape(-1, width))
    bitsets.setflags(write=False)
    return bitsets


def _as_array(reports: Any) -> Any:
    """Return a column of Booleans, or of lists of one length, as an array."""
    library = library_of(reports)
    if library == "numpy" and isinstance(reports, np.ndarray) and not isinstance(reports, np.ma.MaskedArray):
        return reports
    if isinstance(reports, (list, tuple)):
        try:
            return np.asarray(reports)
        except Exception:
            return np.empty((1, 0), np.bool_)
    if library == "pandas" and type(reports).__name__ == "Series":
        _refuse_nulls(int(reports.isna().sum()))
        if isinstance(reports.dtype, np.dtype):
            return reports.to_numpy()
    elif library == "polars" and isinstance(reports, pl.Series):
        _refuse_nulls(reports.null_count())
        return _read(reports)
    elif library != "pyarrow" and not hasattr(reports, "__arrow_c_array__"):
        kind = f"{library} {type(reports).__name__}".strip()
        raise ColumnError(f"reports must be a column as randomize returns it, but was {kind}; pass such a column")
    import pyarrow as pa

    try:
        array = reports if isinstance(reports, (pa.Array, pa.ChunkedArray)) else pa.array(reports)
        series = pl.Series("reports", array)
    except Exception:
        raise ColumnError("reports must be a column as randomize returns it; pass such a column") from None
    _refuse_nulls(series.null_count())
    return _read(series)


def _read(series: pl.Series) -> NDArray[Any]:
    """Return a column as an array; refuse types that NumPy does not have, of 128 bits for example."""
    try:
        return series.to_numpy()
    except Exception:  # whatever Polars raises
        pass
    raise ColumnError("reports must be a column as randomize returns it; pass such a column")


def _refuse_nulls(nulls: int) -> None:
    if nulls:
        raise ColumnError(f"reports must have no nulls, but has {nulls}; randomize gives every row one: drop_nulls()")
