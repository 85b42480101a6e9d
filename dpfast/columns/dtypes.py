"""What errors call a dtype: never with the values that some dtypes carry in themselves."""

from __future__ import annotations

import polars as pl

__all__ = ["dtype_name"]


def dtype_name(dtype: pl.DataType) -> str:
    """Return a dtype's name as an error shows it.

    Guarantee
        It is the same whatever the values are. An enum's list of categories is left out: it is often made of the
        data, and `str` shows all of it.

    Examples
    --------
    >>> dtype_name(pl.Enum(["a private value"])), dtype_name(pl.List(pl.Int8())), dtype_name(pl.Date())
    ('Enum', 'List(Int8)', 'Date')

    """
    if isinstance(dtype, pl.Enum):
        return "Enum"
    if isinstance(dtype, (pl.List, pl.Array)):
        inner = dtype.inner
        return f"{type(dtype).__name__}({dtype_name(inner if isinstance(inner, pl.DataType) else inner())})"
    return "Struct" if isinstance(dtype, pl.Struct) else str(dtype)
