"""Anything that exports an Arrow stream, as rows that are read once: readers of DuckDB and ADBC, cuDF, and others."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from dpfast.aggregation.paths import FilePin
from dpfast.aggregation.private import Private
from dpfast.columns.tables import refuse_same_names
from dpfast.errors import ColumnError, ParameterError, Words

__all__ = ["ArrowStream", "polars_schema"]

#: Readers that a release has begun to read, and what gave them; another one would find nothing, or the rest, in them.
_read: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()


class ArrowStream(Private):
    """The rows of an Arrow stream, which is opened here and of which no row is read before `batches`.

    Parameters
    ----------
    data
        A ``pyarrow.RecordBatchReader``, or an object with ``__arrow_c_stream__``.
    origin
        What gave this reader, if that can be read once only.

    Raises
    ------
    ColumnError
        If it cannot be opened, or has two columns of one name.

    """

    repeatable = False
    #: Of what it is read, nothing is known.
    pins: tuple[FilePin, ...] = ()

    def __init__(self, data: object, origin: object = None) -> None:
        import pyarrow as pa

        self._kind = type(data if origin is None else origin).__name__
        try:
            reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
            schema = reader.schema
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except Exception:
            schema = None
        if schema is None:
            # Out here no traceback holds the library's error, which may quote values.
            raise ColumnError(f"the {self._kind} cannot be opened as an Arrow stream of columns")
        self._reader: Any = reader
        # What has a length is a table, which gives a new reader each time.
        self._given = [reader, origin] if hasattr(type(data), "__len__") else [reader, origin, data]
        self._schema, self.refused = polars_schema(schema, self._kind)

    def schema(self) -> pl.Schema:
        """Return the columns that Polars can hold."""
        return self._schema

    def check(self) -> None:
        """Refuse a stream that a release has read."""
        if self._reader is None or any(given in _read for given in self._given):
            mend = "open a new one, or give a table"
            raise ParameterError("data", Words(f"a {self._kind} that was read"), "a stream that nobody has read", mend)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the batches, once."""
        with _lock:
            self.check()
            reader, self._reader = self._reader, None
            assert reader is not None
            for given in self._given:
                with suppress(TypeError):  # it cannot be remembered
                    _read.add(given)
        for batch in reader:
            yield batch.select(list(columns))


def polars_schema(schema: Any, kind: str) -> tuple[pl.Schema, dict[str, str]]:
    """Return the columns of an Arrow schema that Polars can hold, and a line for each of the others.

    Raises
    ------
    ColumnError
        If two columns have one name.

    """
    import pyarrow as pa

    refuse_same_names(schema.names, kind)
    held: dict[str, pl.DataType] = {}
    refused = {}
    for field in schema:
        try:
            if pa.types.is_interval(field.type):
                # Polars would write to the standard error why it cannot.
                raise TypeError
            dtype = pl.DataFrame(pa.schema([field]).empty_table()).schema[field.name]
            # Some dtypes come out of an empty table, and can hold no values.
            held |= pl.DataFrame(schema={field.name: dtype}).schema
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except (Exception, pl.exceptions.PanicException):
            refused[field.name] = (
                f"the column {field.name[:60]!r} of the {kind} is of the Arrow type {str(field.type)[:60]}, which "
                "Polars cannot take over; cast it first"
            )
    return pl.Schema(held), refused
