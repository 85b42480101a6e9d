"""What a crash leaves beside a ledger's file, and how the ledger goes on from there.

SQLite writes the pages that a transaction will change into a journal and waits for the disk; then it writes the
journal's header and waits; then it changes the file and waits; then it clears the header and waits, which is the
commit. (The journal's file stays, since to make and remove one waits for the folder twice more: half of the time of a
charge.) So whatever was acknowledged stands in the file itself, and a journal with a header means a charge that was
never acknowledged. SQLite alone would then play the journal back, whatever it holds. A journal of an earlier charge,
put back by a backup or a hand, would take later charges away, and the seals would be in order. So this is done here,
under the lock, by this rule:

- The file as it stands is read in full. If it is in order, it stays, and the journal is removed. It holds every
  acknowledged charge, and perhaps the one that was cut off, which then counts.
- Otherwise the crash came in the middle of changing the file. The journal is played back if it is that of the last
  charge of this ledger. The change counter tells the one: SQLite raises it with each transaction, and the journal
  holds the page with the counter from before. The ledger's name in the journal's copy of the head tells the other,
  since a journal may hold all pages of a small ledger. Then everything is read again, and refused if it is not in
  order.
- A journal that is ahead of the file shows that the file is an older copy, which is refused.

What cannot be seen here is an older copy of the file that has no journal beside it, or the journal of its own time:
that is as if the later charges had never been. A head that was written down tells (`Ledger.open`, expect_head).

SQLite's file format, "The Rollback Journal" (https://www.sqlite.org/fileformat.html); "Atomic Commit in SQLite"
(https://www.sqlite.org/atomiccommit.html).
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from dpfast.errors import LedgerError
from dpfast.ledger.account import damaged
from dpfast.ledger.sqlite_files import connected, synchronise_directory

__all__ = ["journal_of", "recover", "was_left"]

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER = struct.Struct(">8s5I")  # magic, records, nonce, pages before, sector, page
_COUNTER = struct.Struct(">24xI")
_EVERY = 200  # SQLite's checksum adds up every 200th byte of a page, from its end
_COUNTERS = 2**32
#: The first page has the counter; the first table, the head, begins on the second (sqlite_files.SCHEMA).
_FIRST, _HEAD = 1, 2
_NAME = 32  # hexadecimal digits


def journal_of(path: Path) -> Path:
    """Return the journal of a file."""
    return path.with_name(path.name + "-journal")


def was_left(path: Path) -> bool:
    """Return whether there is a journal that begins with anything but zeros; to be asked under the lock."""
    try:
        with open(journal_of(path), "rb", buffering=0) as journal:
            return any(journal.read(len(_MAGIC)))
    except FileNotFoundError:
        return False


def recover(path: Path, descriptor: int, verify: Callable[[sqlite3.Connection], object]) -> None:
    """Bring a file in order that was left with a journal; to be called alone.

    Parameters
    ----------
    path, descriptor
        The file, and the same opened.
    verify
        Reads all of it by a connection, and raises where it is not in order.

    Raises
    ------
    LedgerError
        If it cannot be brought in order, or is an older copy.

    """
    pages = _pages_in(journal_of(path))
    now, before = _counter_of(os.pread(descriptor, 100, 0)), _counter_of(pages.get(_FIRST, b""))
    ahead = None if before is None or now is None else (before - now) % _COUNTERS
    if ahead is not None and 0 < ahead < _COUNTERS // 2:
        raise LedgerError(
            f"the ledger {str(path)!r} is an older copy than the journal beside it; "
            "restore the newest copy, or if this is the newest, remove the journal"
        )
    try:
        with closing(connected(path, "ro&immutable=1")) as connection:  # as it stands, without the journal
            verify(connection)
        in_order = True
    except (LedgerError, sqlite3.Error, UnicodeDecodeError):
        in_order = False
    if not in_order and ahead not in (0, _COUNTERS - 1):
        raise damaged(repr(str(path)), "the journal beside it is not that of its last charge")
    head = pages.get(_HEAD)
    if not in_order and head is not None and not _is_same(head, os.pread(descriptor, len(head), len(head))):
        raise damaged(repr(str(path)), "the journal beside it is of another ledger")
    if in_order:
        try:
            os.fsync(descriptor)
            os.unlink(journal_of(path))
            synchronise_directory(path.parent)
        except OSError as error:
            raise LedgerError(
                f"the ledger {str(path)!r} was left in the middle of a charge; open it once as a user who may "
                "write it and its folder"
            ) from error
        return
    with closing(connected(path, "rw")) as connection:
        connection.execute("BEGIN IMMEDIATE")  # plays the journal back
        verify(connection)
        connection.execute("ROLLBACK")


def _counter_of(page: bytes) -> int | None:
    """Return SQLite's change counter, from the beginning of the first page."""
    return int(_COUNTER.unpack_from(page)[0]) if len(page) >= _COUNTER.size else None


def _is_same(head: bytes, torn: bytes) -> bool:
    """Return whether the ledger's name, the first column of the only row of one page, stands in another one as well."""
    place = int.from_bytes(head[8:10])
    for _ in range(2):  # the row's length and number, in bytes of which the last one alone is below 128
        while head[place : place + 1] > b"\x7f":
            place += 1
        place += 1
    start = place + int.from_bytes(head[place : place + 1])
    name = head[start : start + _NAME]
    return len(name) == _NAME and name in torn


def _pages_in(journal: Path) -> dict[int, bytes]:
    """Return the pages with the counter and the head from before a journal's transaction, as far as it holds them."""
    with open(journal, "rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return {}
        magic, records, nonce, _, sector, size = _HEADER.unpack(header)
        if magic != _MAGIC or not 512 <= size <= 65536 or not 32 <= sector <= 65536:
            return {}
        file.seek(sector)
        # A header that was cut off before its last part says 0; pages are there all the same.
        return dict(_records_of(file, records or _COUNTERS, nonce, size))


def _records_of(file: BinaryIO, records: int, nonce: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the first page and the head's, up to the first record that is not in order."""
    for _ in range(records):
        record = file.read(size + 8)
        if len(record) < size + 8:
            break
        page = record[4:-4]
        check = (nonce + sum(page[size - _EVERY : 0 : -_EVERY])) % _COUNTERS
        if int.from_bytes(record[-4:]) != check:
            break
        number = int.from_bytes(record[:4])
        if number in (_FIRST, _HEAD):
            yield number, page
