"""A ledger in the memory of one process."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from dpfast.errors import LedgerError
from dpfast.ledger.account import Account, Charge, Entry, Identity
from dpfast.ledger.turns import Turns

__all__ = ["MemoryStore"]


class MemoryStore:
    """An account that lives as long as its process, and serves no other.

    A forked child holds a copy that knows nothing of what its parent spends, so it may neither spend nor
    report.
    """

    def __init__(self, account: Account) -> None:
        self._process = os.getpid()
        self._turns = Turns()
        self._account = account
        self._entries: list[Entry] = []

    def _refuse_after_fork(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "an in-memory ledger does not outlive a fork: parent and child would each spend the whole "
                "budget; share a durable one, Ledger.open(path), between processes"
            )

    def account(self) -> Account:
        """Return the present state."""
        self._refuse_after_fork()
        return self._account

    def append(self, charges: Sequence[Charge], identity: Identity) -> Account:
        """Record all charges or none."""
        self._refuse_after_fork()  # before the lock: a thread lost in the fork may have held it
        return self._turns.take(lambda: self._append(charges, identity))

    def _append(self, charges: Sequence[Charge], identity: Identity) -> Account:
        before = self._account
        after = before.charged(charges, identity)
        now = time.time_ns() // 1000
        # Whatever interrupts this, the one assignment at the end decides whether anything was charged.
        del self._entries[before.entries :]
        self._entries.extend(
            Entry(number, now, charge.epsilon_units, charge.delta_units, charge.description)
            for number, charge in enumerate(charges, before.entries + 1)
        )
        self._refuse_after_fork()
        self._account = after
        return after

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers."""
        self._refuse_after_fork()
        return self._entries[: self._account.entries]
