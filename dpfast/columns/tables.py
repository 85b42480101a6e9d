"""Tables in memory as Polars frames; the errors show names and types alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from dpfast.errors import ColumnError

__all__ = ["frame_of_table"]


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
    names = getattr(table, "column_names", None)
    counted = Counter(list(table.columns) if names is None else names)
    twice = [str(name)[:60] for name, count in counted.items() if count > 1]
    if twice:
        raise ColumnError(f"the {kind} has more than one column of the name {twice[0]!r}; rename or drop all but one")
    try:
        return pl.DataFrame(table)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException):
        pass
    # Out here no traceback holds the engine's error, which may quote values.
    raise ColumnError(f"the {kind} has columns that Polars cannot take over; cast them")
