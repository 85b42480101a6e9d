"""A durable ledger's tables, and the rows that decide its budget: its head, and its accounts."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpfast.ledger.account import MAIN, Account, Identity
from dpfast.ledger.encoding import seal

__all__ = ["SEALS", "Head", "account_row", "create_tables", "insert_account", "units_of", "write_account"]

#: A connection of the standard library's kind (PEP 249), with ``execute`` and ``executemany`` of its own.
Connection = Any

#: Sums of seals are taken modulo this.
SEALS = 2**256


@dataclass(frozen=True, slots=True)
class Head:
    """The one row that says which ledger this is, and how far its chain has come.

    Its seal also covers all accounts, by the sum of their seals: whatever decides the budget is of one moment. The
    heads of an earlier format do not (``accounts`` is None).
    """

    ledger: str
    identity: Identity
    entries: int
    last_seal: str
    accounts: int | None = 0

    @property
    def row(self) -> tuple[object, ...]:
        """The whole row."""
        who = self.identity
        parts = self.ledger, who.dataset, who.privacy_unit, who.neighbors, self.entries, self.last_seal
        beside = () if self.accounts is None else (f"{self.accounts:064x}",)
        return (*parts, seal(*parts, *beside))

    def with_account(self, row: Sequence[str], instead: Sequence[str] | None = None) -> Head:
        """Return the head over one more account, or over another state of one."""
        before = 0 if instead is None else int(instead[-1], 16)
        return replace(self, accounts=((self.accounts or 0) + int(row[-1], 16) - before) % SEALS)

    def write(self, connection: Connection) -> None:
        """Put this row in the place of the one that is there."""
        connection.execute(
            "UPDATE head SET (ledger, dataset, privacy_unit, neighbors, entries, last_seal, seal) = (?,?,?,?,?,?,?)",
            self.row,
        )


_TABLES = (
    """
    CREATE TABLE head (
        ledger TEXT NOT NULL,
        dataset TEXT, privacy_unit TEXT, neighbors TEXT,
        entries {integer} NOT NULL,
        last_seal TEXT NOT NULL,
        seal TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE account (
        name TEXT PRIMARY KEY,
        accountant TEXT NOT NULL, terms TEXT NOT NULL, spent TEXT NOT NULL,
        seal TEXT NOT NULL
    ) {layout}
    """,
    """
    CREATE TABLE entry (
        number {integer} PRIMARY KEY,
        count {integer} NOT NULL,
        call {integer} NOT NULL,
        time {integer} NOT NULL,
        account TEXT NOT NULL,
        epsilon TEXT NOT NULL, delta TEXT NOT NULL, cost TEXT NOT NULL,
        event TEXT NOT NULL, description TEXT NOT NULL,
        payload {binary},
        seal TEXT NOT NULL
    )
    """,
)


def create_tables(connection: Connection, account: Account, *, integer: str, binary: str, layout: str) -> None:
    """Make the tables of a new ledger, with the types of its database, and its first rows."""
    for statement in _TABLES:
        connection.execute(statement.format(integer=integer, binary=binary, layout=layout))
    ledger = secrets.token_hex(16)
    row = account_row(ledger, MAIN, account)
    insert_account(connection, row)
    head = Head(ledger, account.identity, 0, ledger).with_account(row)
    connection.execute("INSERT INTO head VALUES (?, ?, ?, ?, ?, ?, ?)", head.row)


def account_row(ledger: str, name: str, account: Account) -> tuple[str, ...]:
    """Return the row of an account of a ledger, sealed."""
    parts = (name, account.filter.accountant, _text(account.filter.terms), _text(account.spent))
    return (*parts, seal(ledger, *parts))


def insert_account(connection: Connection, row: Sequence[str]) -> None:
    """Add an account's row."""
    connection.execute("INSERT INTO account VALUES (?, ?, ?, ?, ?)", row)


def write_account(connection: Connection, row: Sequence[str]) -> None:
    """Put an account's row in the place of the one that is there."""
    connection.execute(
        "UPDATE account SET accountant = ?, terms = ?, spent = ?, seal = ? WHERE name = ?", (*row[1:], row[0])
    )


def _text(units: Sequence[int]) -> str:
    return json.dumps([str(unit) for unit in units])


def units_of(text: str) -> tuple[int, ...]:
    """Return the amounts that a row holds as text."""
    return tuple(map(int, json.loads(text)))
