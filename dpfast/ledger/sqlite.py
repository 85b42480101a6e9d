"""A ledger in one SQLite file, which outlives its process and is shared by many.

The file is in SQLite's write-ahead mode, synchronised in full: a charge is one transaction of a few kilobytes at
most, and one wait for the disk. A store keeps one connection, and closes it before a fork and whenever the file
under its name is another one. Amounts are decimal text: SQLite's integers end at 2⁶³ units, 9.22 in epsilon.

What an open connection has verified it need not verify again while nobody else has written (SQLite's
``data_version`` tells); everything is read again, and every sum taken again, when a store is opened.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dpfast.errors import DpfastError, LedgerError
from dpfast.ledger.account import MAIN, Account, Entry, Identity, already_allotted, no_allotment
from dpfast.ledger.charges import Item
from dpfast.ledger.encoding import COLUMNS, entry_of, row_of, seal
from dpfast.ledger.filters import Filter, filter_of
from dpfast.ledger.sqlite_files import APPLICATION_ID, FORMAT, SCHEMA, connected, synchronise_directory, told_plainly
from dpfast.ledger.turns import Turns

__all__ = ["SqliteStore"]

Result = TypeVar("Result")

# SQLite in one process keeps its own record of the file locks; a fork in the middle of another thread's
# transaction would leave the child with locks nobody holds, and so would a connection that merely stays open.
# So forks wait for the end of a transaction, and every connection is closed first.
_TURNS = Turns()
_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _before_fork() -> None:
    _TURNS.before_fork()
    if not _TURNS.taken:  # else this thread forks in the middle of its own charge
        for store in tuple(_STORES):
            store.disconnect()


os.register_at_fork(before=_before_fork, after_in_parent=_TURNS.after_fork, after_in_child=_TURNS.after_fork)


@dataclass(frozen=True, slots=True)
class _Head:
    """The one row that says which ledger this is, and how far its chain has come."""

    ledger: str
    identity: Identity
    entries: int
    last_seal: str

    @property
    def parts(self) -> tuple[object, ...]:
        who = self.identity
        return self.ledger, who.dataset, who.privacy_unit, who.neighbors, self.entries, self.last_seal

    def write(self, connection: sqlite3.Connection) -> None:
        row = (*self.parts, seal(*self.parts))
        connection.execute(
            "UPDATE head SET (ledger, dataset, privacy_unit, neighbors, entries, last_seal, seal) = (?,?,?,?,?,?,?)",
            row,
        )


def _account_row(ledger: str, name: str, account: Account) -> tuple[str, ...]:
    parts = (name, account.filter.accountant, _text(account.filter.terms), _text(account.spent))
    return (*parts, seal(ledger, *parts))


def _text(units: Sequence[int]) -> str:
    return json.dumps([str(unit) for unit in units])


def _units(text: str) -> tuple[int, ...]:
    return tuple(map(int, json.loads(text)))


class SqliteStore:
    """Accounts in a file; see the module for what is kept and how."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._file: object = None
        self._version: int | None = None
        self._seen: _Head | None = None  # as it was committed
        self._now: _Head  # as it is within a transaction
        self._known: dict[str, Account] = {}
        _STORES.add(self)
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
            with told_plainly(path), closing(connected(new, "rwc")) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute("INSERT INTO head VALUES ('', '', '', '', 0, '', '')")
                _Head(ledger, account.identity, 0, ledger).write(connection)
                row = _account_row(ledger, MAIN, account)
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

    def account(self, name: str) -> Account:
        """Return the present state of an account."""
        return self._transact("BEGIN", lambda connection: self._account(connection, name))

    def accounts(self) -> Sequence[str]:
        """Return the names of all accounts."""

        def work(connection: sqlite3.Connection) -> list[str]:
            self._head(connection)
            return [name for (name,) in connection.execute("SELECT name FROM account ORDER BY name")]

        return self._transact("BEGIN", work)

    @property
    def head(self) -> str:
        """The last seal of the chain, which stands for all entries."""
        return self._transact("BEGIN", self._head).last_seal

    def settle(self, identity: Identity) -> None:
        """Fix what the identity still leaves open; refuse a contradiction."""

        def work(connection: sqlite3.Connection) -> None:
            head = self._head(connection)
            self._now = _Head(head.ledger, head.identity.joined(identity), head.entries, head.last_seal)
            self._now.write(connection)
            self._known = {}

        self._transact("BEGIN IMMEDIATE", work)

    def append(self, name: str, items: Sequence[Item], identity: Identity) -> Account:
        """Record all charges or none; they are on the disk when this returns."""
        return self._transact("BEGIN IMMEDIATE", lambda connection: self._append(connection, name, items, identity))

    def allot(self, name: str, rule: Filter, charges: Sequence[Item]) -> None:
        """Open an account of its own and charge the main one for it."""

        def work(connection: sqlite3.Connection) -> Account:
            head = self._head(connection)
            if connection.execute("SELECT 1 FROM account WHERE name = ?", (name,)).fetchone():
                raise already_allotted(name)
            row = _account_row(head.ledger, name, Account.new(rule, Identity()))
            connection.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?)", row)
            return self._append(connection, MAIN, charges, Identity())

        self._transact("BEGIN IMMEDIATE", work)

    def _append(self, connection: sqlite3.Connection, name: str, items: Sequence[Item], identity: Identity) -> Account:
        before = self._account(connection, name)
        head = self._now
        after, entries = before.charged(items, identity, name, time.time_ns() // 1000)
        last_seal = head.last_seal
        rows = []
        for entry in entries:
            row = row_of(entry, last_seal)
            last_seal = row[-1]
            rows.append(row)
        connection.executemany(f"INSERT INTO entry VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        connection.execute(
            "UPDATE account SET accountant = ?, terms = ?, spent = ?, seal = ? WHERE name = ?",
            (*_account_row(head.ledger, name, after)[1:], name),
        )
        self._now = _Head(head.ledger, after.identity, after.entries, last_seal)
        self._now.write(connection)
        self._known = {name: after}
        return after

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers."""

        def work(connection: sqlite3.Connection) -> list[Entry]:
            self._head(connection)
            return [entry for entry, _ in self._stored_entries(connection)]

        return self._transact("BEGIN", work)

    def includes(self, digest: str) -> bool:
        """Return whether the chain has come through this seal."""

        def work(connection: sqlite3.Connection) -> bool:
            head = self._head(connection)
            found = connection.execute("SELECT 1 FROM entry WHERE seal = ?", (digest,)).fetchone()
            return found is not None or digest in (head.ledger, head.last_seal)

        return self._transact("BEGIN", work)

    def close(self) -> None:
        """Let go of the file."""
        _TURNS.take(self.disconnect)

    def disconnect(self) -> None:
        """Close the connection, in a turn of its owner's."""
        connection, self._connection, self._version = self._connection, None, None
        if connection is None:
            return
        if self._process == os.getpid():
            connection.close()
        else:
            # Forked in the middle of a transaction: it is the parent's, and closing the copy would undo it. So
            # the copy is kept for ever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def _transact(self, begin: str, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do some work in a transaction; kept whole or not at all."""

        def transaction() -> Result:
            process = os.getpid()
            try:
                connection = self._connect()
                connection.execute(begin)
                result = work(connection)
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
            file: object = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError:
            file = None
        if self._connection is None or self._process != os.getpid() or self._file != file or file is None:
            self.disconnect()
            self._connection = connected(self._path, "rw")
            self._process, self._file = os.getpid(), file
        return self._connection

    def _damaged(self, what: str) -> LedgerError:
        return LedgerError(
            f"the ledger {str(self._path)!r} is damaged ({what}); "
            "do not release anything on it: restore its newest copy and charge again what that copy lacks"
        )

    def _head(self, connection: sqlite3.Connection) -> _Head:
        """Return the head, read again if others wrote, once sure that it is this ledger's and not an older one."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return self._now
        self._version, self._known = None, {}
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise LedgerError(f"{str(self._path)!r} is not a dpfast ledger; give another path")
        (stored_format,) = connection.execute("PRAGMA user_version").fetchone()
        if stored_format != FORMAT:
            known = "upgrade dpfast" if stored_format > FORMAT else "use the dpfast that made it"
            raise LedgerError(
                f"the ledger {str(self._path)!r} has format {stored_format}, this dpfast knows format {FORMAT}; {known}"
            )
        rows = connection.execute("SELECT * FROM head").fetchall()
        if len(rows) != 1 or len(rows[0]) != 7 or seal(*rows[0][:-1]) != rows[0][-1]:
            raise self._damaged("its head is not as it was sealed")
        ledger, dataset, privacy_unit, neighbors, entries, last_seal, _ = rows[0]
        head = _Head(ledger, Identity(dataset, privacy_unit, neighbors), entries, last_seal)
        self._check_seen(connection, head)
        self._now, self._version = head, version
        return head

    def _account(self, connection: sqlite3.Connection, name: str) -> Account:
        """Return an account, read if it is not known as it stands."""
        head = self._head(connection)
        account = self._known.get(name)
        if account is None:
            row = connection.execute("SELECT * FROM account WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise no_allotment(name)
            account = self._known[name] = self._account_of(head, row)
        return account

    def _account_of(self, head: _Head, row: Sequence[Any]) -> Account:
        name, accountant, terms, spent, sealed = row
        if seal(head.ledger, *row[:-1]) != sealed:
            raise self._damaged(f"its account {name!r} is not as it was sealed")
        return Account(filter_of(accountant, _units(terms)), _units(spent), head.entries, head.identity)

    def _check_seen(self, connection: sqlite3.Connection, head: _Head) -> None:
        """Refuse a file that was exchanged for another ledger or for an older copy of this one."""
        seen = self._seen
        if seen is None:
            return
        found: object = seen.ledger
        if seen.entries:
            # The last entry that was seen begins at or before the last number.
            select = "SELECT seal FROM entry WHERE number <= ? ORDER BY number DESC LIMIT 1"
            row = connection.execute(select, (seen.entries,)).fetchone()
            found = row and row[0]
        if head.ledger != seen.ledger or found != seen.last_seal:
            raise LedgerError(
                f"the file {str(self._path)!r} lacks charges that this process has seen: "
                "it was replaced by another ledger or by an older copy; restore the newest one"
            )

    def _stored_entries(self, connection: sqlite3.Connection) -> Iterator[tuple[Entry, tuple[Any, ...]]]:
        for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM entry ORDER BY number"):
            try:
                yield entry_of(row), row
            except (ValueError, KeyError, TypeError, DpfastError) as error:
                raise self._damaged(f"entry {row[0]}") from error

    def _verify(self, connection: sqlite3.Connection) -> None:
        """Read the head, the accounts and every entry, and add the charges up again."""
        head = self._head(connection)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != ("ok",):
            raise self._damaged("its pages are not in order")
        accounts = {row[0]: self._account_of(head, row) for row in connection.execute("SELECT * FROM account")}
        if MAIN not in accounts:
            raise self._damaged("its account is missing")
        spent = {name: account.filter.nothing for name, account in accounts.items()}
        number, last_seal = 1, head.ledger
        for entry, row in self._stored_entries(connection):
            *parts, sealed = row
            if entry.number != number or seal(last_seal, *parts) != sealed or entry.account not in spent:
                raise self._damaged(f"entry {entry.number} is not as it was sealed")
            number, last_seal = number + entry.item.count, sealed
            before = spent[entry.account]
            if len(entry.cost) != len(before):
                raise self._damaged(f"entry {entry.number} is of another accountant")
            spent[entry.account] = tuple(map(sum, zip(before, entry.cost, strict=True)))
        if (number - 1, last_seal) != (head.entries, head.last_seal) or any(
            accounts[name].spent != units for name, units in spent.items()
        ):
            raise self._damaged("its entries do not add up to its accounts")
