"""A ledger in one SQLite file, which outlives its process and is shared by many.

Every call opens a connection of its own and closes it, so that none is ever shared between threads or carried
through a fork. Amounts are decimal text: SQLite's integers end at 2⁶³ units, 9.22 in epsilon.

Seals (SHA-256) chain the entries and cover the account. They reveal damage and, to a process that has seen
later entries, a restored backup. They are no defence against somebody who may write the file.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dpfast.errors import LedgerError
from dpfast.ledger.account import Account, Charge, Entry, Identity
from dpfast.ledger.turns import Turns

__all__ = ["SqliteStore"]

Result = TypeVar("Result")

_APPLICATION_ID = 0x64706C67  # "dplg"; its meaning and that of a format number never change
_FORMAT = 1
_PATIENCE_SECONDS = 30.0

_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
    """
    CREATE TABLE account (
        ledger TEXT NOT NULL,
        total_epsilon TEXT NOT NULL, total_delta TEXT NOT NULL,
        spent_epsilon TEXT NOT NULL, spent_delta TEXT NOT NULL,
        entries INTEGER NOT NULL,
        dataset TEXT, privacy_unit TEXT, neighbors TEXT,
        last_seal TEXT NOT NULL,
        seal TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE entry (
        number INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        description TEXT NOT NULL,
        seal TEXT NOT NULL
    )
    """,
)

# SQLite in one process keeps its own record of the file locks; a fork in the middle of another thread's
# transaction would leave the child with locks nobody holds. So forks wait for the end of a transaction.
_TURNS = Turns()
os.register_at_fork(before=_TURNS.before_fork, after_in_parent=_TURNS.after_fork, after_in_child=_TURNS.after_fork)


def _seal(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def _entry_seal(before: str, entry: Entry) -> str:
    epsilon, delta = str(entry.epsilon_units), str(entry.delta_units)
    return _seal(before, entry.number, entry.time, epsilon, delta, entry.description)


@dataclass(frozen=True, slots=True)
class _Head:
    """The one row of the account: which ledger, its state, and the seal of its last entry."""

    ledger: str
    account: Account
    last_seal: str

    def row(self) -> tuple[object, ...]:
        account, identity = self.account, self.account.identity
        sealed = (
            self.ledger,
            str(account.total_epsilon),
            str(account.total_delta),
            str(account.spent_epsilon),
            str(account.spent_delta),
            account.entries,
            identity.dataset,
            identity.privacy_unit,
            identity.neighbors,
            self.last_seal,
        )
        return (*sealed, _seal(*sealed))

    def write(self, connection: sqlite3.Connection) -> None:
        row = self.row()
        connection.execute("DELETE FROM account")
        connection.execute(f"INSERT INTO account VALUES ({', '.join('?' * len(row))})", row)


class SqliteStore:
    """An account in a file; see the module for what is kept and how."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: _Head | None = None
        self._transact("BEGIN", self._verify)

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
            with _told_plainly(path), closing(_connected(new, "rwc")) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
                _Head(ledger, account, ledger).write(connection)
                connection.execute("COMMIT")
            with suppress(FileExistsError):
                os.link(new, path)
            _synchronise_directory(path.parent)
        except OSError as error:
            raise LedgerError(f"the ledger {str(path)!r} cannot be created: {error.strerror}") from error
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)

    def account(self) -> Account:
        """Return the present state."""
        return self._transact("BEGIN", self._head).account

    def settle(self, identity: Identity) -> None:
        """Fix what the identity still leaves open; refuse a contradiction."""

        def work(connection: sqlite3.Connection) -> None:
            head = self._head(connection)
            _Head(head.ledger, head.account.charged((), identity), head.last_seal).write(connection)

        self._transact("BEGIN IMMEDIATE", work)

    def append(self, charges: Sequence[Charge], identity: Identity) -> Account:
        """Record all charges or none; they are on the disk when this returns."""

        def work(connection: sqlite3.Connection) -> _Head:
            head = self._head(connection)
            after = head.account.charged(charges, identity)
            now = time.time_ns() // 1000
            seal = head.last_seal
            rows = []
            for number, charge in enumerate(charges, head.account.entries + 1):
                entry = Entry(number, now, charge.epsilon_units, charge.delta_units, charge.description)
                seal = _entry_seal(seal, entry)
                epsilon, delta = str(entry.epsilon_units), str(entry.delta_units)
                rows.append((number, now, epsilon, delta, entry.description, seal))
            connection.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", rows)
            written = _Head(head.ledger, after, seal)
            written.write(connection)
            return written

        self._seen = head = self._transact("BEGIN IMMEDIATE", work)
        return head.account

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers."""

        def work(connection: sqlite3.Connection) -> list[Entry]:
            self._head(connection)
            return [entry for entry, _ in self._stored_entries(connection)]

        return self._transact("BEGIN", work)

    def _transact(self, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do some work in a transaction of its own connection; kept whole or not at all."""

        def transaction() -> Result:
            process = os.getpid()
            connection = _connected(self._path, "rw")
            try:
                connection.execute(begin)
                result = work(connection)
                if os.getpid() == process:
                    connection.execute("COMMIT")
            finally:
                if os.getpid() == process:
                    connection.close()  # undoes what is not committed
                else:
                    # Forked in the middle of this: the transaction is the parent's, and closing the copy
                    # would undo it. So the copy is kept for ever.
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
                    raise LedgerError("this process was forked in the middle of a charge of its parent")
            return result

        with _told_plainly(self._path):
            return _TURNS.take(transaction)

    def _damaged(self, what: str) -> LedgerError:
        return LedgerError(
            f"the ledger {str(self._path)!r} is damaged ({what}); "
            "do not release anything on it: restore its newest copy and charge again what that copy lacks"
        )

    def _head(self, connection: sqlite3.Connection) -> _Head:
        """Read the account, once sure that it is this ledger's and as late as it was seen."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != _APPLICATION_ID:
            raise LedgerError(f"{str(self._path)!r} is not a dpfast ledger; give another path")
        (stored_format,) = connection.execute("PRAGMA user_version").fetchone()
        if stored_format > _FORMAT:
            raise LedgerError(
                f"the ledger {str(self._path)!r} has format {stored_format}, this dpfast knows formats up to "
                f"{_FORMAT}; upgrade dpfast"
            )
        rows = connection.execute("SELECT * FROM account").fetchall()
        if stored_format != _FORMAT or len(rows) != 1 or len(rows[0]) != 11 or _seal(*rows[0][:-1]) != rows[0][-1]:
            raise self._damaged("its account is not as it was sealed")
        ledger, *amounts, entries, dataset, privacy_unit, neighbors, last_seal, _ = rows[0]
        total_epsilon, total_delta, spent_epsilon, spent_delta = map(int, amounts)
        account = Account(
            total_epsilon=total_epsilon,
            total_delta=total_delta,
            spent_epsilon=spent_epsilon,
            spent_delta=spent_delta,
            entries=entries,
            identity=Identity(dataset, privacy_unit, neighbors),
        )
        head = _Head(ledger, account, last_seal)
        self._check_seen(connection, head)
        self._seen = head
        return head

    def _check_seen(self, connection: sqlite3.Connection, head: _Head) -> None:
        """Refuse a file that was exchanged for another ledger or for an older copy of this one."""
        seen = self._seen
        if seen is None:
            return
        found: object = seen.ledger
        if seen.account.entries:
            row = connection.execute("SELECT seal FROM entry WHERE number = ?", (seen.account.entries,)).fetchone()
            found = row and row[0]
        if head.ledger != seen.ledger or found != seen.last_seal:
            raise LedgerError(
                f"the file {str(self._path)!r} lacks charges that this process has seen: "
                "it was replaced by another ledger or by an older copy; restore the newest one"
            )

    def _stored_entries(self, connection: sqlite3.Connection) -> Iterator[tuple[Entry, str]]:
        select = "SELECT number, time, epsilon, delta, description, seal FROM entry ORDER BY number"
        for number, moment, epsilon, delta, description, seal in connection.execute(select):
            if not (type(epsilon) is str and type(delta) is str and epsilon.isdecimal() and delta.isdecimal()):
                raise self._damaged(f"entry {number}")
            yield Entry(number, moment, int(epsilon), int(delta), description), seal

    def _verify(self, connection: sqlite3.Connection) -> None:
        """Read the account and every entry, and add the charges up again."""
        head = self._head(connection)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != ("ok",):
            raise self._damaged("its pages are not in order")
        epsilon = delta = count = 0
        last_seal = head.ledger
        for entry, seal in self._stored_entries(connection):
            count += 1
            epsilon += entry.epsilon_units
            delta += entry.delta_units
            last_seal = _entry_seal(last_seal, entry)
            if entry.number != count or seal != last_seal:
                raise self._damaged(f"entry {count} is not as it was sealed")
        account = head.account
        if (epsilon, delta, count, last_seal) != (
            account.spent_epsilon,
            account.spent_delta,
            account.entries,
            head.last_seal,
        ):
            raise self._damaged("its entries do not add up to its account")


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None
    )
    try:
        # FULL synchronises journal and file. EXTRA also the directory once the journal is gone: with less, a
        # loss of power could bring the journal back and undo an acknowledged charge.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
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
def _told_plainly(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ledger errors.

    Where a commit fails, the charge is not acknowledged; whether it was recorded, the entries tell.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from messages that quote damage
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        reason = _REASONS.get(code, f"is damaged ({error}); restore its newest copy")
        raise LedgerError(f"the ledger {str(path)!r} {reason}") from error


def _synchronise_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
