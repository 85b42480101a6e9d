"""SQLite files: their layout, how they are opened, and what their errors mean."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpfast.errors import LedgerError

__all__ = ["APPLICATION_ID", "FORMAT", "connected", "ledger_errors", "synchronise_directory"]

APPLICATION_ID = 0x64706C67  # "dplg"; its meaning and that of a format number never change
FORMAT = 3
_PATIENCE_SECONDS = 30.0


def connected(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection that waits for the disk wherever a loss of power could undo something."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=_PATIENCE_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # With less, a loss of power could undo an acknowledged charge. EXTRA is for journals that SQLite removes, after
        # it has played one back: their name is gone from the disk before anything else happens.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        # The file changes only once the journal is complete, its first page included (rollback_journal.py).
        connection.execute("PRAGMA cache_spill = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


_REASONS = {
    sqlite3.SQLITE_BUSY: f"is held by another process for over {_PATIENCE_SECONDS:.0f} s; try again",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; make room and try again",
    sqlite3.SQLITE_READONLY: "cannot be written; give this user the right to write it and its folder",
    sqlite3.SQLITE_PERM: "cannot be opened; give this user the right to read and write it and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; see whether it is still there and may be read and written",
    sqlite3.SQLITE_IOERR: "cannot be read or written; see whether its disk has room and is in order",
    sqlite3.SQLITE_NOTADB: "is not a dpfast ledger, or is damaged; give another path or restore a copy",
}


@contextmanager
def ledger_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ledger errors.

    Where a commit fails, the charge is not acknowledged; the entries show whether it was recorded.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from messages that quote damage
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        reason = _REASONS.get(code, f"is damaged ({error}); restore its newest copy")
        raise LedgerError(f"the ledger {str(path)!r} {reason}") from error
    except OSError as error:
        raise LedgerError(f"the ledger {str(path)!r} cannot be read or written ({error.strerror})") from error


def synchronise_directory(directory: Path) -> None:
    """Wait until the names in a directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
