"""Tables in memory as Polars frames; the errors show names and types alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import polars as pl

from dpfast.errors import ColumnError

__all__ = ["frame_of_table", "null_beyond_milliseconds", "refuse_same_names", "rows_alone"]

#: So many seconds are the most that int64 holds as milliseconds, which Polars makes of them.
_MOST_SECONDS = (2**63 - 1) // 1000


def frame_of_table(table: Any) -> pl.DataFrame:
    """Return a PyArrow table or record batch, or a pandas frame, as a Polars frame that shares its memory.

    Raises
    ------
    ColumnError
        Two columns have one name, or a column cannot become one of Polars.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame_of_table(pa.table({"a": [1, 2]})).rows()
    [(1,), (2,)]

    """
    kind = type(table).__name__
    # Columns of pandas are attributes: a column called column_names would be taken for the names.
    refuse_same_names(table.column_names if hasattr(type(table), "column_names") else list(table.columns), kind)
    try:
        return pl.DataFrame(_null_beyond(table))
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException):
        pass
    # Out here no traceback holds the engine's error, which may quote values.
    raise ColumnError(f"the {kind} has columns that Polars cannot take over; cast them")


def rows_alone(number: int) -> pl.DataFrame:
    """Return a frame of so many rows without a column; ``DataFrame(height=...)`` is not in all supported versions.

    Examples
    --------
    >>> rows_alone(3).shape
    (3, 0)

    """
    return pl.DataFrame([{}] * number)


def refuse_same_names(names: Iterable[object], kind: str) -> None:
    """Raise ColumnError if two columns of a table, which is of this kind, have one name."""
    twice = [str(name)[:60] for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ColumnError(f"the {kind} has more than one column of the name {twice[0]!r}; rename or drop all but one")


def null_beyond_milliseconds(table: Any) -> Any:
    """Return a PyArrow table with null for the moments and durations in seconds that Polars would wrap into others.

    Two units or keys that become one by wrapping would move figures by what both contribute.

    Examples
    --------
    >>> import pyarrow as pa
    >>> seconds = pa.array([0, 2**62], pa.timestamp("s"))
    >>> null_beyond_milliseconds(pa.table({"t": seconds}))["t"].null_count
    1

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if (pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)) and field.type.unit == "s":
            column = table.column(place)
            seconds = column.cast(pa.int64())
            held = pc.and_(pc.less_equal(seconds, _MOST_SECONDS), pc.greater_equal(seconds, -_MOST_SECONDS))
            table = table.set_column(place, field.name, pc.if_else(held, column, pa.scalar(None, field.type)))
    return table


def _null_beyond(table: Any) -> Any:
    """Return a table of PyArrow or pandas without moments and durations that would wrap."""
    if hasattr(type(table), "schema"):
        return null_beyond_milliseconds(_as_table(table))
    for name, dtype in zip(table.columns, table.dtypes, strict=True):
        kind, named = getattr(dtype, "kind", ""), str(dtype).partition("[")[2][:-1]
        unit = getattr(getattr(dtype, "pyarrow_dtype", dtype), "unit", named)
        if kind in ("M", "m") and unit == "s":
            held = table[name].astype("int64").between(-_MOST_SECONDS, _MOST_SECONDS)
            table = table.assign(**{str(name): table[name].where(held)})
    return table


def _as_table(table: Any) -> Any:
    """Return a table, or a record batch as one: of a batch's decimals of 32 and 64 bits Polars reads other memory."""
    import pyarrow as pa

    return pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
