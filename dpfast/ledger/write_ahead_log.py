"""Ledgers that an earlier dpfast left in SQLite's write-ahead mode, and their way out of it.

In that mode acknowledged charges stand in a log beside the file. One flipped bit makes SQLite drop the rest of the
log, silently; a log that is shortened or missing drops them too. So before SQLite reads the log, it is read here, and
whatever shows that it once held more is refused:

- a header, or a whole frame, whose checksum is wrong although a half of its salt is this log's (frames from before the
  log was last begun anew have neither half);
- a log of another ledger, or of an earlier time than the file: the chain that it brings must have come through the
  head that stands in the file;
- fewer committed frames than the index beside the log (``-shm``), where a crash left it, says there are; where there
  is no index, a log that ends in the middle of a charge.

A log that was removed together with its index, after a crash, cannot be seen. SQLite's file format, "The Write-Ahead
Log" (https://www.sqlite.org/fileformat.html), and "WAL-mode File Format" (https://www.sqlite.org/walformat.html).
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dpfast.errors import LedgerError
from dpfast.ledger.account import damaged
from dpfast.ledger.sqlite_files import connected

__all__ = ["convert", "is_ahead", "log_of"]

_MAGIC = 0x377F0682  # one more: checksums of big-endian words
_HEADER = struct.Struct(">8I")  # magic, version, page size, checkpoints, salt twice, checksum twice
_FRAME = struct.Struct(">6I")  # page, pages after a commit or 0, salt twice, checksum twice
#: Of the index: whether it is in use, the last committed frame, the salts; then how far the file has them.
_INDEX = struct.Struct("=12xB3xI12x8s56xI")


def log_of(path: Path) -> Path:
    """Return the write-ahead log of a file."""
    return path.with_name(path.name + "-wal")


def is_ahead(page: bytes) -> bool:
    """Return whether a file is in write-ahead mode, from the beginning of its first page."""
    return page[18:20] == b"\2\2"


def convert(path: Path, verify: Callable[[sqlite3.Connection], object]) -> None:
    """Bring the log into the file, once both are in order, and leave write-ahead mode; to be called alone."""
    _check(path)
    with closing(connected(path, "ro&immutable=1")) as connection:  # without the log
        in_file = _head(path, connection)
    # Only to be read: SQLite would bring the log into the file upon closing, whatever was found.
    with closing(connected(path, "ro")) as connection:
        connection.execute("BEGIN")
        verify(connection)
        if not _comes_through(path, connection, *in_file):
            raise _damaged(path, "is of another ledger, or older than the file")
        connection.execute("COMMIT")
    with closing(connected(path, "rw")) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy or connection.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
            raise LedgerError(
                f"the ledger {str(path)!r} is in use by an earlier dpfast, in SQLite's write-ahead mode; end all "
                "processes that use it, and open it again"
            )


def _head(path: Path, connection: sqlite3.Connection) -> tuple[str, int, str]:
    row = connection.execute("SELECT ledger, entries, last_seal FROM head").fetchone()
    if row is None:
        raise _damaged(path, "stands beside a file without a head")
    ledger, entries, last_seal = row
    return ledger, entries, last_seal


def _comes_through(path: Path, connection: sqlite3.Connection, ledger: str, entries: int, last_seal: str) -> bool:
    """Return whether a verified ledger has once had this head."""
    newest = "SELECT seal FROM entry WHERE number <= ? ORDER BY number DESC LIMIT 1"
    found = connection.execute(newest, (entries,)).fetchone() or (ledger,)
    return (_head(path, connection)[0], found[0]) == (ledger, last_seal)


def _check(path: Path) -> None:
    try:
        content = log_of(path).read_bytes()
    except FileNotFoundError:
        content = b""
    committed, written, salt = _committed(path, content)
    try:
        index = path.with_name(path.name + "-shm").read_bytes()
    except FileNotFoundError:
        if written > committed:
            raise _damaged(path, "ends in the middle of a charge") from None
        return
    if len(index) >= _INDEX.size:
        in_use, last, salts, moved = _INDEX.unpack_from(index)
        if in_use and last > moved and (last > committed or salts != salt):
            raise _damaged(path, "is shorter than its index says")


def _committed(path: Path, content: bytes) -> tuple[int, int, bytes]:
    """Return how many frames are committed, how many are written, and the log's salt."""
    if not content:
        return 0, 0, b""
    if len(content) < _HEADER.size:
        raise _damaged(path, "is cut off")
    magic, _, size, _, first, second, *expected = _HEADER.unpack_from(content)
    order = ">" if magic & 1 else "<"
    sums = _summed(order, (0, 0), content[: _HEADER.size - 8])
    if magic & ~1 != _MAGIC or sums != tuple(expected) or not 512 <= size <= 65536:
        raise _damaged(path, "has another header")
    committed, written, broken = 0, 0, False
    for number, place in enumerate(range(_HEADER.size, len(content), _FRAME.size + size), 1):
        frame = content[place : place + _FRAME.size + size]
        if len(frame) < _FRAME.size:
            raise _damaged(path, "is cut off")
        _, pages, one, other, *expected = _FRAME.unpack_from(frame)
        if not broken and (one, other) == (first, second) and len(frame) == _FRAME.size + size:
            sums = _summed(order, _summed(order, sums, frame[:8]), frame[_FRAME.size :])
            if sums == tuple(expected):
                committed, written = number if pages else committed, number
                continue
        broken = True
        if one == first or other == second:
            raise _damaged(path, "is not as it was written")
    return committed, written, content[16:24]


def _summed(order: str, sums: tuple[int, int], content: bytes) -> tuple[int, int]:
    one, other = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for left, right in zip(words[::2], words[1::2], strict=True):
        one = (one + left + other) & 0xFFFFFFFF
        other = (other + right + one) & 0xFFFFFFFF
    return one, other


def _damaged(path: Path, what: str) -> LedgerError:
    return damaged(repr(str(path)), f"its write-ahead log {what}")
