"""A ledger in one SQLite file, which outlives its process and is shared by many.

The file is in SQLite's write-ahead mode, synchronised in full: a charge is one transaction of a few kilobytes at
most, and one wait for the disk. A store keeps one connection, and closes it before a fork and whenever the file
under its name is another one.

What an open connection has verified it need not verify again while nobody else has written (SQLite's
``data_version`` tells); everything is read again, and every sum taken again, when a store is opened.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from dpfast.errors import LedgerError
from dpfast.ledger.account import MAIN, Account
from dpfast.ledger.durable import DurableStore, Head, account_row
from dpfast.ledger.sqlite_files import APPLICATION_ID, FORMAT, SCHEMA, connected, synchronise_directory, told_plainly
from dpfast.ledger.turns import Turns

__all__ = ["SqliteStore"]

Result = TypeVar("Result")

# SQLite in one process keeps its own record of the file locks; a fork in the middle of another thread's
# transaction would leave the child with locks nobody holds, and so would a connection that merely stays open.
# So forks wait for the end of a transaction, and every connection is closed first.
_TURNS = Turns()
_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
#: Files whose index was removed while this process used them, by device and inode.
_LOST: set[tuple[int, ...]] = set()


def _before_fork() -> None:
    _TURNS.before_fork()
    if not _TURNS.taken:  # else this thread forks in the middle of its own charge
        for store in tuple(_STORES):
            store.disconnect()


os.register_at_fork(before=_before_fork, after_in_parent=_TURNS.after_fork, after_in_child=_TURNS.after_fork)


class SqliteStore(DurableStore):
    """Accounts in a file; see the module for what is kept and how."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.place = repr(str(path))
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._file: tuple[int, ...] | None = None
        self._index: tuple[int, ...] | None = None
        _STORES.add(self)
        self._transact(self._verify)

    @classmethod
    def create(cls, path: Path, account: Account) -> None:
        """Make the file complete under another name, then link it: it never exists half made.

        Whoever links first wins; the others leave the winner's file as it is.
        """
        # SQLite would play a lost ledger's journal back into the new file.
        journals = [path.with_name(path.name + suffix) for suffix in ("-journal", "-wal")]
        if any(map(os.path.exists, journals)) and not os.path.exists(path):
            raise LedgerError(
                f"the ledger {str(path)!r} is missing, but its journal is there; "
                "restore the file, or remove the journal"
            )
        new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        ledger = secrets.token_hex(16)
        try:
            with told_plainly(path), closing(connected(new, "rwc")) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in SCHEMA:
                    connection.execute(statement)
                head = Head(ledger, account.identity, 0, ledger)
                connection.execute("INSERT INTO head VALUES (?, ?, ?, ?, ?, ?, ?)", head.row)
                row = account_row(ledger, MAIN, account)
                connection.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?)", row)
                connection.execute("COMMIT")
            with suppress(FileExistsError):
                os.link(new, path)
            synchronise_directory(path.parent)
        except OSError as error:
            raise LedgerError(f"the ledger {str(path)!r} cannot be created: {error.strerror}") from error
        finally:
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    new.with_name(new.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        _TURNS.take(self.disconnect)

    def disconnect(self) -> None:
        """Close the connection, in a turn of its owner's."""
        connection, self._connection = self._connection, None
        index, self._index = self._index, None
        self._forget()
        if connection is None:
            return
        file = (self._file or ())[:2]
        if index is not None and self._index_found() != index:
            _LOST.add(file)
        if self._process == os.getpid() and file not in _LOST:
            connection.close()
        else:
            # Forked in the middle of a transaction: it is the parent's, and closing the copy would undo it. Or
            # others no longer see its locks, and closing it would write over what they wrote. So it is kept for ever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def _index_found(self) -> tuple[int, ...] | None:
        """Return which file is SQLite's index of the journal, which holds the locks."""
        try:
            found = os.stat(f"{self._path}-shm")
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _transact(self, work: Callable[[sqlite3.Connection], Result], *, writing: bool = False) -> Result:

        def transaction() -> Result:
            process = os.getpid()
            try:
                connection = self._connect()
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                result = work(connection)
                if self._index is None:
                    self._index = self._index_found()
                if os.getpid() == process:
                    connection.execute("COMMIT")
                    self._seen = self._now
                    return result
            except BaseException:
                self.disconnect()  # undoes what is not committed
                raise
            self.disconnect()
            raise LedgerError("this process was forked in the middle of a charge of its parent")

        with told_plainly(self._path):
            return _TURNS.take(transaction)

    def _connect(self) -> sqlite3.Connection:
        """Return the connection, a new one where there is none or the file is another."""
        # A checkpoint by anybody changes these too: then everything is read again, once in hundreds of charges.
        try:
            found = os.stat(self._path)
            file: tuple[int, ...] | None = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError:
            file = None
        if self._connection is not None and self._index is not None and self._index_found() != self._index:
            self.disconnect()
        if file is not None and file[:2] in _LOST:
            raise LedgerError(
                f"the index {str(self._path) + '-shm'!r} was removed while this process used it, so that others do not "
                "see its charges; end all processes, restore the newest copy and charge again what that lacks"
            )
        if self._connection is None or self._process != os.getpid() or self._file != file or file is None:
            self.disconnect()
            self._connection = connected(self._path, "rw")
            self._process, self._file = os.getpid(), file
        return self._connection

    def _version_of(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _check_format(self, connection: sqlite3.Connection) -> None:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise LedgerError(f"{self.place} is not a dpfast ledger; give another path")
        (stored_format,) = connection.execute("PRAGMA user_version").fetchone()
        if stored_format != FORMAT:
            known = "upgrade dpfast" if stored_format > FORMAT else "use the dpfast that made it"
            raise LedgerError(
                f"the ledger {self.place} has format {stored_format}, this dpfast knows format {FORMAT}; {known}"
            )

    def _check_storage(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise self._damaged("its pages are not in order")
