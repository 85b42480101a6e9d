"""Columns whose type has no plain values are refused before a charge: their mode would be None, whatever they hold."""

from __future__ import annotations

from typing import Any

from dpfast.columns.lists import library_of
from dpfast.errors import ColumnError

__all__ = ["check_labels"]

#: In the names of types of Arrow, those within lists among them.
_UNPLAIN = ("struct", "duration", "map", "union", "interval")


def check_labels(data: Any) -> None:
    """Refuse a column by its type alone, where no value of it has a label.

    Raises
    ------
    ColumnError
        It holds structs, durations, intervals, complex numbers, or objects of Polars.

    """
    dtype = data.type if library_of(data) == "pyarrow" else getattr(data, "dtype", None)
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    name = str(getattr(dtype, "pyarrow_dtype", dtype)).lower()
    if library_of(data) == "polars":
        unplain = _is_unplain(dtype)
    elif library_of(data) == "pyarrow" or hasattr(dtype, "pyarrow_dtype"):
        unplain = any(word in name for word in _UNPLAIN)
    else:
        unplain = getattr(dtype, "kind", "") in ("c", "m", "V") or name.startswith(("interval", "period"))
    if unplain:
        raise ColumnError("data must be of strings, numbers, dates or lists of them for the mode; cast the column")


def _is_unplain(dtype: Any) -> bool:
    """Return whether a type of Polars has no plain values."""
    import polars as pl

    if isinstance(dtype, (pl.List, pl.Array)):
        return _is_unplain(dtype.inner)
    return bool(dtype in (pl.Duration, pl.Struct, pl.Object))
