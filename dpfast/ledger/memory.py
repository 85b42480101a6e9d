"""A ledger in the memory of one process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from dpfast.errors import LedgerError
from dpfast.ledger.account import MAIN, Account, AnyItem, Entry, Identity, already_allotted, no_allotment
from dpfast.ledger.charges import Item
from dpfast.ledger.filters import Filter
from dpfast.ledger.turns import Turns
from dpfast.randomness import process_mark

__all__ = ["MemoryStore"]


class MemoryStore:
    """Accounts that live as long as their process, and serve no other.

    A forked child holds a copy that knows nothing of what its parent spends, so it may neither spend nor
    report.
    """

    def __init__(self, account: Account) -> None:
        self._process = process_mark()
        self._turns = Turns()
        # Accounts and the number of entries change together, by one assignment: whatever interrupts a charge,
        # that decides whether it was made. Entries beyond the number are of charges that were not.
        self._state: tuple[dict[str, Account], int] = ({MAIN: account}, 0)
        self._entries: list[Entry] = []

    def _refuse_after_fork(self) -> None:
        if process_mark() != self._process:
            raise LedgerError(
                "an in-memory ledger does not outlive a fork: parent and child would each spend the whole "
                "budget; share a durable one, Ledger.open(path), between processes"
            )

    def account(self, name: str) -> Account:
        """Return the present state of an account."""
        self._refuse_after_fork()
        return _of(self._state[0], name)

    def accounts(self) -> Sequence[str]:
        """Return the names of all accounts."""
        self._refuse_after_fork()
        return tuple(self._state[0])

    def append(self, name: str, items: Sequence[AnyItem], identity: Identity) -> Account:
        """Record all charges or none."""

        def work() -> Account:
            accounts, lines = self._state
            after, entries = _of(accounts, name).charged(items, identity, name, time.time_ns() // 1000)
            self._keep({**accounts, name: after}, after, lines, entries)
            return after

        self._refuse_after_fork()  # before the lock: a thread lost in the fork may have held it
        return self._turns.take(work)

    def allot(self, name: str, rule: Filter, charges: Sequence[Item], first: Sequence[AnyItem] = ()) -> None:
        """Open an account and charge the main one for it."""

        def work() -> None:
            accounts, lines = self._state
            if name in accounts:
                raise already_allotted(name)
            moment = time.time_ns() // 1000
            main, entries = accounts[MAIN].charged(charges, Identity(), MAIN, moment)
            opened = replace(Account.new(rule, main.identity), entries=main.entries)
            if first:
                opened, more = opened.charged(first, Identity(), name, moment)
                entries += more
            self._keep({**accounts, MAIN: main, name: opened}, opened, lines, entries)

        self._refuse_after_fork()
        self._turns.take(work)

    def _keep(self, changed: dict[str, Account], last: Account, lines: int, entries: Sequence[Entry]) -> None:
        del self._entries[lines:]
        self._entries.extend(entries)
        self._refuse_after_fork()
        if len(changed) > 1:
            for other, account in changed.items():
                changed[other] = replace(account, entries=last.entries, identity=last.identity)
        self._state = (changed, lines + len(entries))

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers."""
        self._refuse_after_fork()
        return self._entries[: self._state[1]]

    def close(self) -> None:
        """Keep everything: a closed ledger refuses by itself."""


def _of(accounts: dict[str, Account], name: str) -> Account:
    try:
        return accounts[name]
    except KeyError:
        raise no_allotment(name) from None
