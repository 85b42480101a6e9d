"""Polars Series."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.column import Column, GiveBack
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.refusal import casts, refuse_dtype, refuse_kind

__all__ = ["borrow_polars"]

_DTYPES: dict[pl.DataType, np.dtype[Any]] = {
    kind(): np.dtype(kind.__name__.lower()) for kind in (pl.Int64, pl.Int32, pl.UInt32, pl.Float64, pl.Float32)
}

_MENDS = {
    **casts(".cast(pl.{})", Int32="Boolean Int8 Int16 UInt8 UInt16 Date"),
    **casts(".cast(pl.{})", Int64="UInt64 Int128 UInt128 Datetime Duration Time"),
    **casts(".cast(pl.{})", Float32="Float16", Float64="Decimal String Null"),
}


def borrow_polars(values: Any, argument: str) -> Column:
    """Borrow a Polars Series, chunk by chunk; the result is a Series of the same name in one chunk."""
    if not isinstance(values, pl.Series):
        kind = f"a Polars {type(values).__name__}"
        raise refuse_kind(argument, kind, 'pass a column with its values, such as frame["name"]')
    polars_type = values.dtype
    dtype = _DTYPES.get(polars_type)
    if dtype is None:
        raise refuse_dtype(argument, "a Polars Series", dtype_name(polars_type), _MENDS)
    name = values.name
    if values.n_chunks() == 1 and values.null_count() == 0:
        return Column(dtype, (values.to_numpy(allow_copy=False),), _series(name))
    # Arrow hands out each chunk's own buffers; Series.to_arrow would join the chunks, and to_numpy turns
    # integers with nulls into floats.
    from dpfast.columns.of_arrow import borrow_stream

    return borrow_stream(values, argument, "a Polars Series", _series(name))


def _series(name: str) -> GiveBack:
    def give_back(noised: NDArray[Any], validity: NDArray[np.uint8] | None, null_count: int) -> pl.Series:
        if validity is None:
            return pl.Series(name, noised)
        from dpfast.columns.of_arrow import arrow_array

        return pl.Series(name, arrow_array(noised, validity, null_count))

    return give_back
