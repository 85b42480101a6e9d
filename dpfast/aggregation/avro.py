"""Avro files as a lazy scan: Polars' reader takes whole files, so that it is given a few blocks of one at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import polars as pl

from dpfast.aggregation.reading_rows import frame_of_blocks

__all__ = ["scan_avro"]

_MAGIC, _SYNC = b"Obj\x01", 16
_SCHEMA, _CODEC = b"avro.schema", b"avro.codec"
#: What Polars decompresses.
_CODECS = (b"null", b"deflate", b"snappy")
#: No schema is so long, and no block.
_MOST_BYTES = 1 << 30
#: So many bytes of a file are read together, and one block more.
_PIECE = 1 << 23


def scan_avro(paths: str | Sequence[str]) -> pl.LazyFrame:
    """Return a frame of the rows of Avro files of one schema, of which only the header of the first is read here.

    Raises
    ------
    OSError
        If there is no whole header, or what follows it is compressed in a way that Polars does not know.
    polars.exceptions.ComputeError
        If it has a schema that Polars does not know.

    """
    files = [paths] if isinstance(paths, str) else list(paths)
    with open(files[0], "rb") as first:
        schema = pl.read_avro(BytesIO(_Header.read(first).written(b"null"))).schema

    def blocks(columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        for path in files:
            with open(path, "rb") as opened:
                header = _Header.read(opened)
                for piece in _read_pieces(opened, header.sync):
                    content = BytesIO(header.written(header.codec) + piece)
                    yield pl.read_avro(content, columns=list(columns)).select(columns)

    return frame_of_blocks(blocks, schema)


@dataclass(frozen=True)
class _Header:
    """What stands in an Avro file before its rows.

    Attributes
    ----------
    schema
        The schema as JSON.
    codec
        How blocks are compressed.
    sync
        What stands behind every block.

    """

    schema: bytes
    codec: bytes
    sync: bytes

    @classmethod
    def read(cls, opened: BinaryIO) -> _Header:
        """Read the header from the beginning of a file, and go to its end."""
        entries = {}
        opened.seek(len(_MAGIC))
        while count := _read_number(opened):
            if count < 0:  # then the length of all these pairs follows
                _read_number(opened)
            for _ in range(abs(count)):
                name = _read_bytes(opened, _read_number(opened))
                entries[name] = _read_bytes(opened, _read_number(opened))
        header = cls(entries.get(_SCHEMA, b""), entries.get(_CODEC, b"null"), _read_bytes(opened, _SYNC))
        if not header.schema:
            raise OSError("its header has no schema")
        if header.codec not in _CODECS:
            shown = header.codec[:20].decode(errors="replace")
            raise OSError(f"its compression is {shown!r}, and Polars reads deflate and snappy")
        return header

    def written(self, codec: bytes) -> bytes:
        """Return the header of a file of this schema, with another compression."""
        parts = b"".join(_written_number(len(part)) + part for part in (_SCHEMA, self.schema, _CODEC, codec))
        return _MAGIC + _written_number(2) + parts + _written_number(0) + self.sync


def _read_pieces(opened: BinaryIO, sync: bytes) -> Iterator[bytes]:
    """Yield the blocks of a file after its header, some together; those without a row, on which Polars fails, not."""
    waiting, end = bytearray(), os.fstat(opened.fileno()).st_size
    while opened.tell() < end:
        rows, length = _read_number(opened), _read_number(opened)
        content = _read_bytes(opened, length)
        if _read_bytes(opened, _SYNC) != sync:
            raise OSError("a block does not end where it should")
        if rows:
            waiting += _written_number(rows) + _written_number(length) + content + sync
        if len(waiting) >= _PIECE:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def _read_number(opened: BinaryIO) -> int:
    """Read an integer: seven bits a byte, the lowest first, the sign in the lowest of all."""
    number = 0
    for shift in range(0, 70, 7):
        byte = opened.read(1)
        if not byte:
            break
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
    raise OSError("it is cut short or damaged")


def _written_number(number: int) -> bytes:
    """Write an integer of at least 0 in the same way."""
    number, written = 2 * number, bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _read_bytes(opened: BinaryIO, length: int) -> bytes:
    content = opened.read(length) if 0 <= length <= _MOST_BYTES else b""
    if len(content) != length:
        raise OSError("it is cut short or damaged")
    return content
