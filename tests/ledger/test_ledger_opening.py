"""What is verified when a ledger is opened, and what only when all of it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from torn import PAGE, flipped

import dpfast.ledger.durable
from dpfast.errors import LedgerError
from dpfast.ledger import Charge, Identity, Ledger, chain
from dpfast.ledger.encoding import seal

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
CHARGES = 60
NEWEST = 8


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(dpfast.ledger.durable, "_NEWEST", NEWEST)
    monkeypatch.setattr(dpfast.ledger.durable, "_PORTION", 7)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A ledger with many more entries than opening reads, an allotment among them."""
    path = tmp_path_factory.mktemp("opening") / "ledger.db"
    with Ledger.open(path, epsilon=1) as ledger:
        for number in range(CHARGES // 2):
            ledger.charge(Charge.of(0.01, 0, f"charge {number} " * 20), **ABOUT)
        team = ledger.allot("team", epsilon=0.3)
        for number in range(CHARGES // 2 - 1):
            team.charge(Charge.of(0.01, 0, f"charge {number} " * 20), **ABOUT)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path, content):
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    return path


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_opening_reads_the_newest_entries(path, monkeypatch):
    """However many entries there are: opening a ledger holds a few against their seals."""
    held = []
    monkeypatch.setattr(chain, "seal", lambda *parts: held.append(parts) or seal(*parts))
    ledger = Ledger.open(path)
    assert len(held) < NEWEST
    assert ledger.spent.epsilon == 0.6
    assert len(held) < NEWEST
    ledger.verify()
    assert len(held) >= CHARGES
    assert ledger.history().height == CHARGES
    assert len(held) >= 2 * CHARGES


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET epsilon = '1' WHERE number = 20",
        "UPDATE entry SET description = 'x' WHERE number = 1",
        "UPDATE entry SET account = 'other' WHERE number = 35",
        "UPDATE entry SET seal = 'x' WHERE number = 20",
        "DELETE FROM entry WHERE number = 20",
        "DELETE FROM entry WHERE number <= 20",
        "UPDATE entry SET number = 700 WHERE number = 20",
        'UPDATE entry SET cost = \'["0", "0"]\' WHERE number = 2',
    ],
)
def test_old_entries(path, statement):
    """Damage to an old entry changes no budget; verifying, the history and the report find it."""
    change(path, statement)
    try:
        ledger = Ledger.open(path)
        assert (ledger.spent.epsilon, ledger.allotment("team").spent.epsilon) == (0.6, 0.29)
    except LedgerError:
        return
    for use in (ledger.verify, ledger.history, ledger.report):
        with pytest.raises(LedgerError, match="damaged"):
            use()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry WHERE number = 60",
        "UPDATE entry SET description = 'x' WHERE number = 55",
        "UPDATE entry SET number = 61 WHERE number = 60",
        "UPDATE head SET entries = 59",
        "DELETE FROM account WHERE name = 'team'",
    ],
)
def test_what_opening_finds(path, statement):
    """The newest entries, the head and every account are verified by all who open a ledger."""
    change(path, statement)
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)


def test_accounts_of_another_time(path):
    """Soundness rule 11: an account as it stood before, with its own seal, is not taken for today's."""
    with closing(sqlite3.connect(path)) as connection:
        (earlier,) = connection.execute("SELECT * FROM account WHERE name = ''").fetchall()
    with Ledger.open(path) as ledger:
        ledger.charge(Charge.of(0.1), **ABOUT)
        for _ in range(NEWEST):  # so that the entries alone would not tell
            ledger.allotment("team").charge(Charge.of(0.001), **ABOUT)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE account SET spent = ?, seal = ? WHERE name = ''", earlier[3:])
        with pytest.raises(LedgerError, match="accounts is not as it was sealed"):
            ledger.charge(Charge.of(0.1), **ABOUT)
    with pytest.raises(LedgerError, match="accounts is not as it was sealed"):
        Ledger.open(path)


def test_flips(path, content):
    """Soundness rule 11: a flip anywhere is found, by opening or by verifying, or stands where nothing does."""
    found = 0
    for number, place in enumerate(range(0, len(content), 613)):
        path.write_bytes(flipped(content, place, number % 8))
        try:
            with Ledger.open(path) as ledger:
                assert (ledger.spent.epsilon, ledger.total.epsilon, ledger.identity) == (0.6, 1.0, Identity(**ABOUT))
                assert ledger.allotment("team").spent.epsilon == 0.29
                ledger.verify()
            assert not any(content[place : place + 1]) or place < PAGE
        except LedgerError:
            found += 1
    assert found > len(content) / 613 / 2


def test_verified_while_others_charge(path, monkeypatch):
    """Verifying takes turns with charges, and reads to the end that it began with."""
    ledger, other = Ledger.open(path), Ledger.open(path)
    walked = type(ledger._store)._walked

    def charging(self, *arguments):
        yield from walked(self, *arguments)
        charging.charges += 1

    charging.charges = 0
    monkeypatch.setattr(type(ledger._store), "_walked", charging)
    transact = ledger._store._transact

    def between(work, **options):
        result = transact(work, **options)
        other.charge(Charge.of(0.001), **ABOUT)
        return result

    monkeypatch.setattr(ledger._store, "_transact", between)
    ledger.verify()
    assert charging.charges >= CHARGES // 7
    monkeypatch.undo()
    assert Ledger.open(path).history().height > CHARGES
