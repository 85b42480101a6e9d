"""CSV text that comes once, as through a pipe: rows that are read a few records at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import chain
from typing import Any, BinaryIO

import polars as pl

from dpfast.aggregation.csv_fields import CsvFields, Declared
from dpfast.aggregation.private import Private
from dpfast.errors import ParameterError, Words

__all__ = ["CsvStream"]

#: So many bytes are read and parsed together.
_PIECE = 1 << 24
_QUOTE, _LINE_END = b'"', b"\n"
_COMPRESSED = {b"\x1f\x8b": "gzip -dc", b"\x28\xb5\x2f\xfd": "zstd -dc"}


class CsvStream(Private):
    """The rows of CSV text, of which only the first record, which names the columns, is read here.

    Guarantee: as of a CSV file, no field can change another row's value or dtype, or raise an error, if the quoting is
    whole; see `dpfast.aggregation.sources.open_source`.

    Parameters
    ----------
    opened
        What is read, once.
    schema
        The dtypes of the columns, by name. Columns that it does not name cannot be used.
    name
        What errors call it.

    Raises
    ------
    ColumnError
        If there is no schema, or it names a column that the first record does not.
    ParameterError
        If there is no record, or the text is compressed.

    """

    repeatable = False
    refused: Mapping[str, str] = {}

    def __init__(self, opened: BinaryIO, schema: Declared | None, name: str = "standard input") -> None:
        self._fields, self._name = CsvFields.of(schema), name
        self._pieces: Iterator[bytes] | None = _pieces(opened)
        first = next(self._pieces, b"")
        for magic, program in _COMPRESSED.items():
            if first.startswith(magic):
                mend = f"decompress it before: {program} FILE | dpfast ..."
                raise ParameterError("data", Words("compressed"), f"CSV as plain text on {name}", mend)
        length = _first_end(first)
        self._header, self._rest = first[:length].rstrip(b"\r\n") + b"\n", first[length:]
        if not self._header.strip():
            raise ParameterError("data", Words("empty"), f"CSV on {name} that begins with the names of its columns")
        self._fields.check(self._scan(b"").collect_schema().names(), name)

    def schema(self) -> pl.Schema:
        """Return the declared columns."""
        return pl.Schema(self._fields.dtypes)

    def check(self) -> None:
        """Refuse text that was read."""
        if self._pieces is None:
            raise ParameterError("data", Words(f"{self._name}, which was read"), "rows that nobody has read")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows, once."""
        self.check()
        pieces, self._pieces = self._pieces, None
        first, self._rest = self._rest, b""
        for piece in chain([first], pieces or ()):
            frame = self._fields.parse(self._scan(piece)).select(columns).collect()
            yield from frame.to_arrow().to_batches()

    def _scan(self, records: bytes) -> pl.LazyFrame:
        return self._fields.scan(BytesIO(self._header + records))


def _pieces(opened: BinaryIO) -> Iterator[bytes]:
    """Yield whole records, as many as one reading brings; the last of all may lack its line end."""
    waiting: list[bytes] = []
    quoted = False
    while content := opened.read(_PIECE):
        length = _last_end(content, quoted=quoted)
        if length:
            yield b"".join([*waiting, content[:length]])
            waiting = []
        waiting.append(content[length:])
        quoted ^= content.count(_QUOTE) % 2 == 1
    if any(waiting):
        yield b"".join(waiting)


def _first_end(content: bytes) -> int:
    """Return where the first record ends."""
    start, quoted = 0, False
    while end := content.find(_LINE_END, start) + 1:
        quoted ^= content.count(_QUOTE, start, end) % 2 == 1
        if not quoted:
            return end
        start = end
    return len(content)


def _last_end(content: bytes, *, quoted: bool) -> int:
    """Return where the last record ends that does so here, or 0; ``quoted``: the text begins within quotes."""
    quoted ^= content.count(_QUOTE) % 2 == 1
    stop = len(content)
    while end := content.rfind(_LINE_END, 0, stop) + 1:
        quoted ^= content.count(_QUOTE, end, stop) % 2 == 1
        if not quoted:
            return end
        # Go on before this line end, which is no quote.
        stop = end - 1
    return 0
