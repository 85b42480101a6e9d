"""What every durable store keeps, and how it is verified: a head, accounts, and a chain of sealed entries.

A store of one kind (:mod:`dpfast.ledger.sqlite`, :mod:`dpfast.ledger.postgresql`) adds how a transaction is begun
and ended, so that whatever is written in one is kept whole or not at all, and nobody else writes meanwhile. Its
connections take SQL with ``?`` for parameters; the tables ``head``, ``account`` and ``entry`` have the same columns
everywhere. Amounts are decimal text: 64 bits end at 9.22 in epsilon.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from dpfast.errors import DpfastError, LedgerError
from dpfast.ledger.account import MAIN, Account, AnyItem, Entry, Identity, already_allotted, damaged, no_allotment
from dpfast.ledger.chain import Walk
from dpfast.ledger.charges import Item
from dpfast.ledger.earlier import earlier_filter
from dpfast.ledger.encoding import COLUMNS, entry_of, row_of, seal
from dpfast.ledger.filters import Filter, filter_of
from dpfast.ledger.head import SEALS, Head, account_row, insert_account, units_of, write_account
from dpfast.ledger.partitioned import PARTITIONS, PartitionCharges, PartitionFilter, PartitionKeys, PartitionState

__all__ = ["DurableStore", "forked"]

Result = TypeVar("Result")
#: A connection of the standard library's kind (PEP 249), with ``execute`` and ``executemany`` of its own.
Connection = Any

_ENTRIES = f"SELECT {', '.join(COLUMNS)} FROM entry"
#: Each with the seal of the entry before it.
_LINKED = (
    f"SELECT {', '.join(COLUMNS)}, (SELECT seal FROM entry AS older WHERE older.number < entry.number "
    "ORDER BY older.number DESC LIMIT 1) FROM entry"
)
#: As many of the newest entries are read whenever a ledger is opened, unless they are larger than so many bytes.
_NEWEST, _NEWEST_BYTES = 10_000, 2**24
#: What is read in one transaction where everything is read: others charge in between.
_PORTION = 50_000


@dataclass(frozen=True, slots=True)
class _Known:
    """What partitions have spent after one entry, by its number and seal."""

    number: int
    seal: str
    state: PartitionState


class DurableStore(ABC):
    """Accounts that outlive their process."""

    #: What messages call this ledger; it holds no secret.
    place: str
    #: Today's format; in the one before, the head did not seal the accounts.
    _format: ClassVar[int]

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
    def _format_of(self, connection: Connection) -> int:
        """Return the format of what is stored; refuse what is no ledger."""

    @abstractmethod
    def _set_format(self, connection: Connection) -> None:
        """Write down that the format is today's."""

    @abstractmethod
    def _check_storage(self, connection: Connection, *, whole: bool) -> None:
        """Refuse a ledger whose storage is out of order, as far as its keeper can tell; slowly where the whole is."""

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
            self._now = replace(head, identity=head.identity.joined(identity))
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
            insert_account(connection, row)
            self._now = head.with_account(row)
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
        changed = account_row(head.ledger, name, after)
        write_account(connection, changed)
        head = head.with_account(changed, instead=account_row(head.ledger, name, before))
        self._now = replace(head, identity=after.identity, entries=after.entries, last_seal=last_seal)
        self._now.write(connection)
        self._known = {name: after}
        if after.partitions is not None:
            self._states[name] = _Known(entries[-1].number, last_seal, after.partitions)
        return after

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers, each held against its seal."""
        rows: list[Sequence[Any]] = []
        self._read_all(rows.append)
        return [self._entry_of(row) for row in reversed(rows)]

    def verify(self) -> None:
        """Read everything, hold every entry against its seal, and add the charges up again."""
        walk, accounts = self._read_all(self._entry_of)
        self._check_sums(walk, accounts)
        self._transact(lambda connection: self._check_storage(connection, whole=True))

    def _read_all(self, take: Callable[[Sequence[Any]], object]) -> tuple[Walk, dict[str, Account]]:
        """Read every row, newest first, in several transactions; return the walk, and the accounts at its beginning."""
        walk, accounts = self._transact(self._walk)

        def work(connection: Connection) -> None:
            for row in self._walked(connection, walk, _PORTION):
                take(row)

        while not walk.is_complete:
            self._transact(work)
        return walk, accounts

    def includes(self, digest: str) -> bool:
        """Return whether the chain has come through this seal."""

        def work(connection: Connection) -> bool:
            head = self._head(connection)
            if digest in (head.ledger, head.last_seal):
                return True
            newest_first = "SELECT 1 FROM entry WHERE seal = ? ORDER BY number DESC LIMIT 1"
            return connection.execute(newest_first, (digest,)).fetchone() is not None

        return self._transact(work)

    def _damaged(self, what: str) -> LedgerError:
        return damaged(self.place, what)

    def _head(self, connection: Connection) -> Head:
        """Return the head, read again if others wrote, once sure that it is this ledger's and not an older one."""
        version = self._version_of(connection)
        if version == self._version:
            return self._now
        self._version = None
        accounts = self._seals(connection) if self._check_format(connection) else None
        rows = connection.execute("SELECT * FROM head").fetchall()
        if len(rows) != 1 or len(rows[0]) != 7:
            raise self._damaged("its head is not as it was sealed")
        ledger, dataset, privacy_unit, neighbors, entries, last_seal, sealed = rows[0]
        try:
            head = Head(ledger, Identity(dataset, privacy_unit, neighbors), entries, last_seal, accounts)
        except DpfastError:
            head = None
        if head is None or head.row[-1] != sealed:
            raise self._damaged("its head or one of its accounts is not as it was sealed")
        last = connection.execute("SELECT number, count, seal FROM entry ORDER BY number DESC LIMIT 1").fetchone()
        if last is None:
            in_order = (entries, last_seal) == (0, ledger)
        else:
            number, count, digest = last
            numbers = type(number) is type(count) is int
            in_order = numbers and (number + count - 1, digest) == (entries, last_seal)
        if not in_order:
            raise self._damaged("its last entry is not that of its head")
        if head != self._seen:
            self._known = {}
            self._check_seen(connection, head)
        self._now, self._version = head, version
        return head

    def _check_format(self, connection: Connection) -> bool:
        """Refuse an unknown format; return whether it is today's."""
        stored, today = self._format_of(connection), self._format
        if stored not in (today, today - 1):
            known = "upgrade dpfast" if stored > today else "use the dpfast that made it"
            raise LedgerError(f"the ledger {self.place} has format {stored}, this dpfast knows format {today}; {known}")
        return stored == today

    def _seals(self, connection: Connection) -> int:
        """Return the sum of the seals of all accounts."""
        try:
            return sum(int(row[0], 16) for row in connection.execute("SELECT seal FROM account")) % SEALS
        except (TypeError, ValueError):
            raise self._damaged("an account has no seal") from None

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
        since = f"{_LINKED} WHERE account = ? AND number > ? ORDER BY number"
        for *row, before in self._rows(connection, since, (name, 0 if known is None else known.number)):
            if seal(before or self._now.ledger, *row[:-1]) != row[-1]:
                raise self._damaged(f"entry {row[0]} is not as it was sealed")
            entry = self._entry_of(row)
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
        name, accountant, terms, spent = row[0], row[1], units_of(row[2]), units_of(row[3])
        rule: Filter
        if accountant == PARTITIONS:
            rule = PartitionFilter(terms[0], terms[1], bool(terms[2]))
        elif head.accounts is None:
            rule = earlier_filter(self.place, name, accountant, terms, spent)
        else:
            rule = filter_of(accountant, terms)
        return Account(rule, spent, head.entries, head.identity)

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

    def _entry_of(self, row: Sequence[Any]) -> Entry:
        try:
            return entry_of(row)
        except (ValueError, KeyError, TypeError, RecursionError, MemoryError, DpfastError) as error:
            raise self._damaged(f"entry {row[0]}") from error

    def _open(self) -> None:
        """Verify what is stored, as far as opening does; all of it where it is brought from an earlier format."""
        self._transact(lambda connection: self._verify(connection, _NEWEST))
        if self._now.accounts is None:
            self._transact(lambda connection: self._verify(connection, None))
            try:
                self._transact(self._modernise, writing=True)
            except LedgerError as error:
                raise LedgerError(
                    f"the ledger {self.place} was made by an earlier dpfast; open it once as a user who may write it"
                ) from error

    def _modernise(self, connection: Connection) -> None:
        head = self._head(connection)
        if head.accounts is None:
            walk = self._verify(connection, None)
            for row in connection.execute("SELECT * FROM account").fetchall():
                account = self._account_of(head, row)
                spent = walk.spent.get(row[0], account.filter.nothing)
                write_account(connection, account_row(head.ledger, row[0], replace(account, spent=spent)))
            self._now = replace(head, accounts=self._seals(connection))
            self._now.write(connection)
            self._set_format(connection)
            self._known = {}

    def _verify(self, connection: Connection, most: int | None) -> Walk:
        """Read the head, the accounts and the newest entries; where these are all there are, add them up."""
        walk, accounts = self._walk(connection)
        size = 0
        for row in self._walked(connection, walk, most):
            size += len(row[-2] or b"")
            if most is not None and size > _NEWEST_BYTES:
                break
        if walk.is_complete:
            self._check_sums(walk, accounts)
        self._check_storage(connection, whole=walk.is_complete)
        return walk

    def _walk(self, connection: Connection) -> tuple[Walk, dict[str, Account]]:
        """Return the beginning of a walk, and the accounts at that moment."""
        head = self._head(connection)
        rows = connection.execute("SELECT * FROM account").fetchall()
        accounts = {row[0]: self._account_of(head, row) for row in rows}
        if MAIN not in accounts:
            raise self._damaged("its account is missing")
        lengths = {name: len(account.filter.nothing) for name, account in accounts.items()}
        return Walk(head.ledger, head.entries, head.last_seal, lengths), accounts

    def _walked(self, connection: Connection, walk: Walk, most: int | None) -> Iterator[Sequence[Any]]:
        """Yield so many older rows that are sure, or all."""
        select = _ENTRIES + " WHERE number < ? ORDER BY number DESC"
        limited = (walk.following,) if most is None else (walk.following, most)
        count = 0
        try:
            for row in self._rows(connection, select if most is None else f"{select} LIMIT ?", limited):
                count += 1
                sure = walk.read(row)
                if sure is not None:
                    yield sure
            if most is None or count < most:
                first = walk.end()
                if first is not None:
                    yield first
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damaged(f"{error} is not as it was sealed") from error

    def _check_sums(self, walk: Walk, accounts: dict[str, Account]) -> None:
        if not walk.spent.keys() <= accounts.keys():
            raise self._damaged("an entry is of an account that there is not")
        for name, account in accounts.items():
            # One of an earlier format has fewer sums.
            if walk.spent.get(name, account.filter.nothing)[: len(account.spent)] != account.spent:
                raise self._damaged("its entries do not add up to its accounts")


def forked() -> LedgerError:
    """Return the error for a process that finds itself in its parent's transaction."""
    return LedgerError("this process was forked in the middle of a charge of its parent")
