"""A ledger in one SQLite file, which outlives its process and is shared by many.

A charge is one transaction with a rollback journal, synchronised in full: once it is acknowledged, it stands in the
file itself. A transaction holds the lock of the file (:mod:`dpfast.ledger.file_lock`), so that its names, threads and
processes take turns, and what a crash left is put in order before SQLite sees it
(:mod:`dpfast.ledger.rollback_journal`).

A store keeps one connection, and closes it before a fork and whenever the file under its name was changed by others.
What a connection has read it need not read again while nobody else has written. When a store is opened, and whenever
others have written, the head is read again, which seals all accounts and the chain of entries.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from dpfast.errors import LedgerError
from dpfast.ledger.account import Account
from dpfast.ledger.durable import DurableStore, forked
from dpfast.ledger.file_lock import after_fork_in_child, check_place, hold
from dpfast.ledger.head import create_tables
from dpfast.ledger.rollback_journal import journal_of, recover, was_left
from dpfast.ledger.sqlite_files import APPLICATION_ID, FORMAT, connected, ledger_errors, synchronise_directory
from dpfast.ledger.write_ahead_log import convert, is_ahead, log_of
from dpfast.randomness import process_mark

__all__ = ["SqliteStore"]

Result = TypeVar("Result")

# A fork in the middle of another thread's transaction would leave the child with a half of it, and so would a
# connection that merely stays open. So forks wait for the end of transactions, and connections are closed first. They
# do not wait for a thread that waits for a lock.
_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_FORKING = threading.RLock()
_STOPPED: list[SqliteStore] = []


def _before_fork() -> None:
    _FORKING.acquire()
    for store in tuple(_STORES):
        store.working.acquire()
        _STOPPED.append(store)
        if not store.is_working:  # else this thread forks in the middle of its own charge
            store.disconnect()


def _after_fork() -> None:
    while _STOPPED:
        _STOPPED.pop().working.release()
    _FORKING.release()


def _after_fork_in_child() -> None:
    after_fork_in_child()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


class SqliteStore(DurableStore):
    """Accounts in a file; see the module for what is kept and how."""

    _format = FORMAT

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.place = repr(str(path))
        self._connection: sqlite3.Connection | None = None
        self._process = process_mark()
        self._file: tuple[int, ...] | None = None
        self.working = threading.RLock()
        self.is_working = False
        with _FORKING:  # a fork would not stop a store that comes while it goes through them
            _STORES.add(self)
        self._open()

    @classmethod
    def create(cls, path: Path, account: Account) -> None:
        """Make the file complete under another name, then link it: it never exists half made.

        The process that links first wins; the others leave its file as it is.
        """
        # A lost ledger's journal does not belong to the new file.
        if (was_left(path) or os.path.exists(log_of(path))) and not os.path.exists(path):
            raise LedgerError(
                f"the ledger {str(path)!r} is missing, but its journal is there; "
                "restore the file, or remove the journal"
            )
        new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            with ledger_errors(path), closing(connected(new, "rwc")) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                create_tables(connection, account, integer="INTEGER", binary="BLOB", layout="WITHOUT ROWID")
                connection.execute("COMMIT")
            with suppress(FileExistsError):
                os.link(new, path)
            synchronise_directory(path.parent)
        except OSError as error:
            raise LedgerError(f"the ledger {str(path)!r} cannot be created: {error.strerror}") from error
        finally:
            for left in (new, journal_of(new)):
                with suppress(OSError):
                    left.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        with self.working:
            if self.is_working:
                raise LedgerError("this thread is in the middle of a call to this ledger; close it after that")
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection, in a turn of its owner's."""
        connection, self._connection = self._connection, None
        self._forget()
        if connection is None:
            return
        if self._process == process_mark():
            connection.close()
        else:
            # Forked in the middle of a transaction: it is the parent's, and closing the copy would undo it. So the
            # copy is kept for ever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def _transact(self, work: Callable[[sqlite3.Connection], Result], *, writing: bool = False) -> Result:
        alone = writing
        while True:
            done = hold(self._path, lambda file, alone=alone: self._held(file, work, writing, alone), alone=alone)  # type: ignore[misc]
            if done is not None:
                return done[0]
            alone = True  # what was left beside the file is for one alone to put in order

    def _held(
        self, file: int, work: Callable[[sqlite3.Connection], Result], writing: bool, alone: bool
    ) -> tuple[Result] | None:
        """Do a transaction under the lock, or return None where it takes one alone."""
        with self.working, ledger_errors(self._path):
            process = process_mark()
            self.is_working = True
            try:
                connection = self._connect(file, alone)
                if connection is None:
                    return None
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                result = work(connection)
                if process_mark() == process:
                    connection.execute("COMMIT")
                    self._seen, self._file = self._now, _state_of(file)
                    return (result,)
            except BaseException as error:
                self.disconnect()  # undoes what is not committed
                if process_mark() != process and isinstance(error, Exception):
                    # What it read, its parent was writing: that says nothing of the file.
                    raise forked() from None
                raise
            finally:
                self.is_working = False
            self.disconnect()
            raise forked()

    def _connect(self, file: int, alone: bool) -> sqlite3.Connection | None:
        """Return the connection, a new one where others wrote, or None where the file is to be put in order first."""
        state = _state_of(file)
        left = was_left(self._path)
        if self._connection is None or self._process != process_mark() or self._file != state or left:
            self.disconnect()
            check_place(self._path, file)
        ahead = is_ahead(os.pread(file, 100, 0))
        if not ahead and os.path.lexists(log_of(self._path)):
            raise LedgerError(
                f"a write-ahead log, {str(log_of(self._path))!r}, stands beside a ledger that has none; it is of "
                "another copy: restore the newest one, or remove the log"
            )
        if left or ahead:
            if not alone:
                return None
            if left:
                recover(self._path, file, self._verified)
            if is_ahead(os.pread(file, 100, 0)):
                convert(self._path, self._verified)
            state = _state_of(file)
        if self._connection is None:
            self._connection = connected(self._path, "rw")
            self._connection.execute("PRAGMA journal_mode = PERSIST")  # see rollback_journal.py
            self._process, self._file = process_mark(), state
        return self._connection

    def _verified(self, connection: sqlite3.Connection) -> None:
        """Read the file in full by another connection than the store's own."""
        self._forget()
        try:
            self._verify(connection, None)
        finally:
            self._forget()

    def _version_of(self, connection: sqlite3.Connection) -> int:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _format_of(self, connection: sqlite3.Connection) -> int:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise LedgerError(f"{self.place} is not a dpfast ledger; give another path")
        (stored,) = connection.execute("PRAGMA user_version").fetchone()
        return int(stored)

    def _set_format(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _check_storage(self, connection: sqlite3.Connection, *, whole: bool) -> None:
        if whole and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise self._damaged("its pages are not in order")


def _state_of(file: int) -> tuple[int, ...]:
    """Return what changes whenever somebody writes to a file or puts another in its place."""
    status = os.fstat(file)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
