"""What every durable store keeps, and how it is verified: a head, accounts, and a chain of sealed entries.

A store of one kind (:mod:`dpfast.ledger.sqlite`, :mod:`dpfast.ledger.postgresql`) adds how a transaction is begun
and ended, so that whatever is written in one is kept whole or not at all, and nobody else writes meanwhile. Its
connections take SQL with ``?`` for parameters; the tables ``head``, ``account`` and ``entry`` have the same columns
everywhere. Amounts are decimal text: 64 bits end at 9.22 in epsilon.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dpfast.errors import DpfastError, LedgerError
from dpfast.ledger.account import MAIN, Account, AnyItem, Entry, Identity, already_allotted, no_allotment
from dpfast.ledger.charges import Item
from dpfast.ledger.encoding import COLUMNS, entry_of, row_of, seal
from dpfast.ledger.filters import Filter, filter_of
from dpfast.ledger.partitioned import PARTITIONS, PartitionCharges, PartitionFilter, PartitionKeys, PartitionState

__all__ = ["DurableStore", "Head", "account_row"]

Result = TypeVar("Result")
#: A connection of the standard library's kind (PEP 249), with ``execute`` and ``executemany`` of its own.
Connection = Any

_ENTRIES = f"SELECT {', '.join(COLUMNS)} FROM entry"


@dataclass(frozen=True, slots=True)
class _Known:
    """What partitions have spent after one entry, by its number and seal."""

    number: int
    seal: str
    state: PartitionState


@dataclass(frozen=True, slots=True)
class Head:
    """The one row that says which ledger this is, and how far its chain has come."""

    ledger: str
    identity: Identity
    entries: int
    last_seal: str

    @property
    def parts(self) -> tuple[object, ...]:
        """What the row holds, up to its seal."""
        who = self.identity
        return self.ledger, who.dataset, who.privacy_unit, who.neighbors, self.entries, self.last_seal

    @property
    def row(self) -> tuple[object, ...]:
        """The whole row."""
        return (*self.parts, seal(*self.parts))

    def write(self, connection: Connection) -> None:
        """Put this row in the place of the one that is there."""
        connection.execute(
            "UPDATE head SET (ledger, dataset, privacy_unit, neighbors, entries, last_seal, seal) = (?,?,?,?,?,?,?)",
            self.row,
        )


def account_row(ledger: str, name: str, account: Account) -> tuple[str, ...]:
    """Return the row of an account of a ledger, sealed."""
    parts = (name, account.filter.accountant, _text(account.filter.terms), _text(account.spent))
    return (*parts, seal(ledger, *parts))


def _text(units: Sequence[int]) -> str:
    return json.dumps([str(unit) for unit in units])


def _units(text: str) -> tuple[int, ...]:
    return tuple(map(int, json.loads(text)))


class DurableStore(ABC):
    """Accounts that outlive their process."""

    #: What messages call this ledger; it holds no secret.
    place: str

    def __init__(self) -> None:
        self._seen: Head | None = None  # as it was committed
        self._now: Head  # as it is within a transaction
        self._version: int | None = None
        self._known: dict[str, Account] = {}
        self._states: dict[str, _Known] = {}

    def _forget(self) -> None:
        """Trust nothing that was read or written in a transaction which was not committed."""
        self._version, self._known = None, {}

    @abstractmethod
    def _transact(self, work: Callable[[Connection], Result], *, writing: bool = False) -> Result:
        """Do some work in a transaction, kept whole or not at all; a writing one keeps all other writers out."""

    @abstractmethod
    def _version_of(self, connection: Connection) -> int:
        """Return a number that differs from `_version` where others may have written."""

    @abstractmethod
    def _check_format(self, connection: Connection) -> None:
        """Refuse what is no ledger, or one of another format."""

    @abstractmethod
    def _check_storage(self, connection: Connection) -> None:
        """Refuse a ledger whose storage is out of order, as far as its keeper can tell."""

    def _rows(self, connection: Connection, select: str, parameters: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Return the rows of a query one after the other."""
        yield from connection.execute(select, parameters)

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection; the next call takes a new one."""

    @property
    def head(self) -> str:
        """The last seal of the chain, which stands for all entries."""
        return self._transact(self._head).last_seal

    def account(self, name: str) -> Account:
        """Return the present state of an account."""
        return self._transact(lambda connection: self._account(connection, name))

    def accounts(self) -> Sequence[str]:
        """Return the names of all accounts."""

        def work(connection: Connection) -> list[str]:
            self._head(connection)
            return sorted(name for (name,) in connection.execute("SELECT name FROM account"))

        return self._transact(work)

    def settle(self, identity: Identity) -> None:
        """Fix what the identity still leaves open; refuse a contradiction."""

        def work(connection: Connection) -> None:
            head = self._head(connection)
            self._now = Head(head.ledger, head.identity.joined(identity), head.entries, head.last_seal)
            self._now.write(connection)
            self._known = {}

        self._transact(work, writing=True)

    def append(self, name: str, items: Sequence[AnyItem], identity: Identity) -> Account:
        """Record all charges or none; they are on the disk when this returns."""
        return self._transact(lambda connection: self._append(connection, name, items, identity), writing=True)

    def allot(self, name: str, rule: Filter, charges: Sequence[Item], first: Sequence[AnyItem] = ()) -> None:
        """Open an account of its own with its first entries, and charge the main one for it."""

        def work(connection: Connection) -> None:
            head = self._head(connection)
            if connection.execute("SELECT 1 FROM account WHERE name = ?", (name,)).fetchone():
                raise already_allotted(name)
            row = account_row(head.ledger, name, Account.new(rule, Identity()))
            connection.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?)", row)
            self._append(connection, MAIN, charges, Identity())
            if first:
                self._append(connection, name, first, Identity())

        self._transact(work, writing=True)

    def _append(self, connection: Connection, name: str, items: Sequence[AnyItem], identity: Identity) -> Account:
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
            (*account_row(head.ledger, name, after)[1:], name),
        )
        self._now = Head(head.ledger, after.identity, after.entries, last_seal)
        self._now.write(connection)
        self._known = {name: after}
        if after.partitions is not None:
            self._states[name] = _Known(entries[-1].number, last_seal, after.partitions)
        return after

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers."""

        def work(connection: Connection) -> list[Entry]:
            self._head(connection)
            return [entry for entry, _ in self._stored_entries(connection)]

        return self._transact(work)

    def includes(self, digest: str) -> bool:
        """Return whether the chain has come through this seal."""

        def work(connection: Connection) -> bool:
            head = self._head(connection)
            found = connection.execute("SELECT 1 FROM entry WHERE seal = ?", (digest,)).fetchone()
            return found is not None or digest in (head.ledger, head.last_seal)

        return self._transact(work)

    def _damaged(self, what: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self.place} is damaged ({what}); "
            "do not release anything on it: restore its newest copy and charge again what that copy lacks"
        )

    def _head(self, connection: Connection) -> Head:
        """Return the head, read again if others wrote, once sure that it is this ledger's and not an older one."""
        version = self._version_of(connection)
        if version == self._version:
            return self._now
        self._version = None
        self._check_format(connection)
        rows = connection.execute("SELECT * FROM head").fetchall()
        if len(rows) != 1 or len(rows[0]) != 7 or seal(*rows[0][:-1]) != rows[0][-1]:
            raise self._damaged("its head is not as it was sealed")
        ledger, dataset, privacy_unit, neighbors, entries, last_seal, _ = rows[0]
        head = Head(ledger, Identity(dataset, privacy_unit, neighbors), entries, last_seal)
        if head != self._seen:
            self._known = {}
            self._check_seen(connection, head)
        self._now, self._version = head, version
        return head

    def _account(self, connection: Connection, name: str) -> Account:
        """Return an account, read if it is not known as it stands."""
        head = self._head(connection)
        account = self._known.get(name)
        if account is None:
            row = connection.execute("SELECT * FROM account WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise no_allotment(name)
            account = self._account_of(head, row)
            if isinstance(account.filter, PartitionFilter):
                account = replace(account, partitions=self._partitions(connection, name, account))
            self._known[name] = account
        return account

    def _partitions(self, connection: Connection, name: str, account: Account) -> PartitionState | None:
        """Return what partitions have spent: what was known of them, and the entries since."""
        known = self._states.get(name)
        if known is not None:
            found = connection.execute("SELECT seal FROM entry WHERE number = ?", (known.number,)).fetchone()
            if found is None or found[0] != known.seal:  # of a transaction that was not committed
                known = None
        state = None if known is None else known.state.copy()
        since = " WHERE account = ? AND number > ? ORDER BY number"
        for entry, row in self._stored_entries(connection, since, (name, 0 if known is None else known.number)):
            state = self._replayed(state, entry)
            known = _Known(entry.number, row[-1], state)
        if known is None and account.spent == account.filter.nothing:
            return None  # just opened, and its first entry follows
        if known is None or known.state.total != account.spent:
            raise self._damaged(f"the entries of {name!r} do not add up to it")
        self._states[name] = known
        return known.state

    def _replayed(self, state: PartitionState | None, entry: Entry) -> PartitionState:
        """Return partitions after a stored entry; the state given is changed."""
        if state is None and isinstance(entry.item, PartitionKeys):
            return PartitionState.new(entry.item)
        if state is None or not isinstance(entry.item, PartitionCharges):
            raise self._damaged(f"entry {entry.number} is of another kind")
        state.add(entry.item)
        return state

    def _account_of(self, head: Head, row: Sequence[Any]) -> Account:
        if len(row) != 5 or seal(head.ledger, *row[:-1]) != row[-1]:
            raise self._damaged(f"its account {row[0]!r} is not as it was sealed")
        _, accountant, terms, spent, _ = row
        rule = PartitionFilter.of(_units(terms)) if accountant == PARTITIONS else filter_of(accountant, _units(terms))
        return Account(rule, _units(spent), head.entries, head.identity)

    def _check_seen(self, connection: Connection, head: Head) -> None:
        """Refuse a ledger that was exchanged for another one or for an older copy of itself."""
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
                f"the ledger {self.place} lacks charges that this process has seen: "
                "it was replaced by another ledger or by an older copy; restore the newest one"
            )

    def _stored_entries(
        self, connection: Connection, which: str = " ORDER BY number", parameters: Sequence[Any] = ()
    ) -> Iterator[tuple[Entry, Sequence[Any]]]:
        for row in self._rows(connection, _ENTRIES + which, parameters):
            yield self._entry_of(row), row

    def _entry_of(self, row: Sequence[Any]) -> Entry:
        try:
            return entry_of(row)
        except (ValueError, KeyError, TypeError, RecursionError, MemoryError, DpfastError) as error:
            raise self._damaged(f"entry {row[0]}") from error

    def _verify(self, connection: Connection) -> None:
        """Read the head, the accounts and every entry, and add the charges up again."""
        head = self._head(connection)
        self._check_storage(connection)
        rows = connection.execute("SELECT * FROM account").fetchall()
        accounts = {row[0]: self._account_of(head, row) for row in rows}
        if MAIN not in accounts:
            raise self._damaged("its account is missing")
        spent = {name: account.filter.nothing for name, account in accounts.items()}
        states: dict[str, _Known] = {}
        number, last_seal = 1, head.ledger
        for row in self._rows(connection, _ENTRIES + " ORDER BY number", ()):
            *parts, sealed = row
            if row[0] != number or seal(last_seal, *parts) != sealed:
                raise self._damaged(f"entry {row[0]} is not as it was sealed")
            entry = self._entry_of(row)
            if entry.account not in spent:
                raise self._damaged(f"entry {row[0]} is of an account that there is not")
            number, last_seal = number + entry.item.count, sealed
            before = spent[entry.account]
            if len(entry.cost) != len(before):
                raise self._damaged(f"entry {entry.number} is of another accountant")
            spent[entry.account] = tuple(map(sum, zip(before, entry.cost, strict=True)))
            if isinstance(accounts[entry.account].filter, PartitionFilter):
                known = states.get(entry.account)
                state = self._replayed(None if known is None else known.state, entry)
                states[entry.account] = _Known(entry.number, sealed, state)
        if (number - 1, last_seal) != (head.entries, head.last_seal) or any(
            accounts[name].spent != units for name, units in spent.items()
        ):
            raise self._damaged("its entries do not add up to its accounts")
        self._states = states
