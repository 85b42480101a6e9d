"""The file of a durable ledger: opening, keeping, damage, and what can go wrong around it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import dpfast.ledger.sqlite
from dpfast.accounting.budget import Amounts
from dpfast.errors import BudgetExceededError, LedgerError
from dpfast.ledger import Charge, Identity, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def content(path):
    """The bytes of a small ledger with three entries."""
    with Ledger.open(path, epsilon=1, delta=1e-6, dataset="flights") as ledger:
        for amount in (0.1, 0.2, 0.3):
            ledger.charge(Charge.of(amount, 1e-7, f"a mean for {amount}"), **ABOUT)
    return path.read_bytes()


def change(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_kept(path):
    """Spending, identity and history outlive the object."""
    first = Ledger.open(path, epsilon=1.0, delta=1e-6)
    first.charge(Charge.of(0.1, 1e-7, "count"), **ABOUT)
    second = Ledger.open(path)
    assert second.spent == first.spent == Amounts(0.1, 1e-7)
    assert second.identity == Identity(**ABOUT)
    second.charge(Charge.of(0.9), **ABOUT)
    with pytest.raises(BudgetExceededError):
        first.charge(Charge(1, 0, ""), **ABOUT)
    assert first.history().equals(second.history())


def test_synchronous():
    """Soundness rule 11: EXTRA (3) waits for the disk at every step, and for the folder where a journal is removed."""
    with closing(dpfast.ledger.sqlite.connected(Path("/nowhere/x"), "memory")) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)


def test_rollback_journal(path, content):
    """Soundness rule 11: what was acknowledged stands in the file itself; no log beside it has any of it."""
    ledger = Ledger.open(path)
    ledger.charge(Charge.of(0.1), **ABOUT)
    assert ledger._store._connection.execute("PRAGMA journal_mode").fetchone() == ("persist",)
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.db-journal"]
    alone = path.with_name("copy.db")
    alone.write_bytes(path.read_bytes())
    assert Ledger.open(alone).spent.epsilon == 0.7


def test_immediate(path, monkeypatch):
    """Soundness rule 11: a charge begins as a writer: no other comes between its reading and writing."""
    ledger = Ledger.open(path, epsilon=1)
    statements = []
    connected = dpfast.ledger.sqlite.connected

    def traced(*arguments):
        connection = connected(*arguments)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(dpfast.ledger.sqlite, "connected", traced)
    ledger._store.close()
    ledger.charge(Charge.of(0.1), **ABOUT)
    assert next(statement for statement in statements if not statement.startswith("PRAGMA")) == "BEGIN IMMEDIATE"
    assert statements[-1] == "COMMIT"


def test_budget_cannot_be_raised(path):
    Ledger.open(path, epsilon=0.3, delta=1e-6)
    assert Ledger.open(path, epsilon=0.3).total == Amounts(0.3, 1e-6)
    assert Ledger.open(path, delta=1e-6).total == Amounts(0.3, 1e-6)
    for other in ({"epsilon": 0.5}, {"epsilon": 0.2}, {"epsilon": 0.3, "delta": 0}, {"delta": 1e-5}):
        with pytest.raises(LedgerError, match="cannot be changed"):
            Ledger.open(path, **other)


def test_conversion_cannot_be_changed(tmp_path):
    """The part of delta that converts is a part of the budget."""
    path = tmp_path / "zcdp.db"
    Ledger.open(path, 1.0, 1e-6, accountant="zcdp", conversion_delta=1e-7).close()
    Ledger.open(path, conversion_delta=1e-7).close()
    with pytest.raises(LedgerError, match="conversion_delta"):
        Ledger.open(path, conversion_delta=9e-7)
    path = tmp_path / "basic.db"
    Ledger.open(path, 1.0, 1e-6).close()
    with pytest.raises(LedgerError, match="conversion_delta"):
        Ledger.open(path, conversion_delta=9e-7)


def test_identity_is_settled_once(path):
    """Soundness rule 9: what a file leaves open is fixed by whoever first says it, for good."""
    Ledger.open(path, epsilon=1)
    Ledger.open(path, privacy_unit="row")
    Ledger.open(path, dataset="flights")
    assert Ledger.open(path).identity == Identity("flights", "row")
    with pytest.raises(LedgerError, match="privacy unit is 'row'"):
        Ledger.open(path, privacy_unit="column:tailnum")
    with pytest.raises(LedgerError, match="nothing was charged"):
        Ledger.open(path).charge(Charge.of(0.1), **(ABOUT | {"dataset": "taxis"}))


def test_odd_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "a?mode=memory#b%20 é", "file:x", os.fsdecode(b"\xff")):
        Ledger.open(name, epsilon=1).charge(Charge.of(0.1), **ABOUT)
        assert (tmp_path / name).is_file()
    ledger = Ledger.open("relative.db", epsilon=1)
    monkeypatch.chdir("/")
    ledger.charge(Charge.of(0.1), **ABOUT)
    assert Ledger.open(tmp_path / "relative.db").spent.epsilon == 0.1


def test_nothing_there(path):
    with pytest.raises(LedgerError, match="give epsilon to create it"):
        Ledger.open(path)
    assert not path.exists()
    with pytest.raises(LedgerError, match="no folder"):
        Ledger.open(path / "ledger.db", epsilon=1)
    with pytest.raises(LedgerError, match="not a file"):
        Ledger.open(path.parent, epsilon=1)


def test_place_without_files():
    with pytest.raises(LedgerError, match="cannot be"):
        Ledger.open("/proc/ledger.db", epsilon=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only(path, content):
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        ledger = Ledger.open(path)
        assert ledger.spent.epsilon == 0.6
        with pytest.raises(LedgerError, match="cannot be written"):
            ledger.charge(Charge.of(0.1), **ABOUT)
        with pytest.raises(LedgerError, match="cannot be"):
            Ledger.open(path.with_name("new.db"), epsilon=1)
    finally:
        path.parent.chmod(0o700)


@pytest.mark.parametrize("other", [b"", b"x", b"a ledger\n" * 1000, b"SQLite format 3\0", bytes(4096)])
def test_other_files(path, other):
    """An empty file too is no ledger: it might be what is left of one."""
    path.write_bytes(other)
    with pytest.raises(LedgerError):
        Ledger.open(path, epsilon=1)
    assert path.read_bytes() == other


def test_other_database(path):
    change(path, "CREATE TABLE account (x)")
    with pytest.raises(LedgerError, match="not a dpfast ledger"):
        Ledger.open(path, epsilon=1)


def test_newer_format(path, content):
    change(path, "PRAGMA user_version = 4")
    with pytest.raises(LedgerError, match="upgrade dpfast"):
        Ledger.open(path)


def test_truncated(path, content):
    for length in {*range(0, len(content), 512), *range(0, 200, 7), len(content) - 1}:
        path.write_bytes(content[:length])
        with pytest.raises(LedgerError):
            Ledger.open(path, epsilon=1)


def test_flipped_bytes(path, content):
    """A damaged file is refused, or the damage is where nothing stands: it never means more budget."""
    path.write_bytes(content)
    history = Ledger.open(path).history()
    written = [place for place, byte in enumerate(content) if byte]
    refused = 0
    for number, place in enumerate(written[::2] + list(range(0, len(content), 97))):
        damaged = bytearray(content)
        damaged[place] ^= (0xFF, 0x01, 0x80)[number % 3]
        path.write_bytes(damaged)
        try:
            ledger = Ledger.open(path)
            assert ledger.spent == Amounts(0.6, 3e-7)
            assert ledger.total == Amounts(1.0, 1e-6)
            assert ledger.identity == Identity(**ABOUT)
            assert ledger.history().equals(history)
        except LedgerError:
            refused += 1
    assert refused > len(written) / 4


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry WHERE number = 3",
        "DELETE FROM entry",
        "UPDATE entry SET epsilon = '1' WHERE number = 2",
        "UPDATE entry SET epsilon = '²' WHERE number = 2",
        "UPDATE entry SET epsilon = x'31' WHERE number = 2",
        "UPDATE entry SET description = 'x' WHERE number = 1",
        "UPDATE entry SET number = 7 WHERE number = 3",
        'UPDATE account SET spent = \'["0", "0"]\'',
        'UPDATE account SET terms = \'["2000000000000000000", "0"]\'',
        "UPDATE head SET dataset = NULL",
        "DELETE FROM account",
        "INSERT INTO head SELECT * FROM head",
        "DELETE FROM head",
        "INSERT INTO account SELECT 'team', accountant, terms, spent, seal FROM account",
        "UPDATE entry SET count = 2 WHERE number = 3",
        "UPDATE entry SET event = '{}' WHERE number = 3",
        "UPDATE entry SET cost = '[]' WHERE number = 3",
        "DROP TABLE entry",
        "ALTER TABLE head ADD COLUMN more",
        "ALTER TABLE account ADD COLUMN more",
        "UPDATE entry SET event = '" + "[" * 100_000 + "'",
        "PRAGMA user_version = 0",
    ],
)
def test_edited(path, content, statement):
    """Entries are added up again at every opening, and held against the running total."""
    change(path, statement)
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_restored_backup(path, content):
    """A process that has seen later charges refuses an older copy, however many follow in it."""
    ledger = Ledger.open(path)
    ledger.charge(Charge.of(0.1), **ABOUT)
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerError, match="older copy"):
            ledger.charge(Charge.of(0.1), **ABOUT)
        with pytest.raises(LedgerError, match="older copy"):
            _ = ledger.remaining
        Ledger.open(path).charge(Charge.of(0.2), **ABOUT)


def test_restored_backup_in_use(path, content):
    """Whoever writes an older copy over a file in use is found out by the process that has seen more."""
    ledger = Ledger.open(path)
    ledger.charge(Charge.of(0.1), **ABOUT)
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerError, match="older copy"):
            _ = ledger.spent


def test_expected_head(path, content):
    """Whoever wrote a head down finds out that an older copy was restored, even in a new process."""
    with Ledger.open(path) as ledger:
        before = ledger.head
        ledger.charge(Charge.of(0.1), **ABOUT)
        after = ledger.head
    assert Ledger.open(path, expect_head=before).head == after
    with pytest.raises(LedgerError, match="has never had the head"):
        Ledger.open(path, expect_head="0" * 64)
    path.write_bytes(content)
    assert Ledger.open(path, expect_head=before).head == before
    with pytest.raises(LedgerError, match="older copy"):
        Ledger.open(path, expect_head=after)


def test_replaced(path, content):
    ledger = Ledger.open(path)
    path.unlink()
    with pytest.raises(LedgerError, match="cannot be opened"):
        ledger.charge(Charge.of(0.1), **ABOUT)
    assert not path.exists()
    for left in path.parent.glob("ledger.db-*"):
        left.unlink()
    Ledger.open(path, epsilon=1)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.charge(Charge.of(0.1), **ABOUT)


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_lone_journal(path, content, suffix):
    """A lost ledger's journal must not be played back into a new one."""
    path.rename(path.with_name(f"ledger.db{suffix}"))
    path.with_name("ledger.db-journal").touch()
    with pytest.raises(LedgerError, match="journal"):
        Ledger.open(path, epsilon=1)
    assert not path.exists()


def test_busy(path, content, monkeypatch):
    """Another process that holds the file too long is an error; nothing is charged."""
    monkeypatch.setattr(dpfast.ledger.file_lock, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(dpfast.ledger.sqlite_files, "_PATIENCE_SECONDS", 0.05)
    ledger = Ledger.open(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:  # another tool
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="held by another"):
            ledger.charge(Charge.of(0.1), **ABOUT)
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for use in (lambda: ledger.charge(Charge.of(0.1), **ABOUT), lambda: ledger.spent, lambda: Ledger.open(path)):
            with pytest.raises(LedgerError, match="held by another"):
                use()
    assert ledger.spent.epsilon == 0.6
    assert ledger.charge(Charge.of(0.1), **ABOUT) == 4


def test_file_is_small(path, content):
    assert len(content) <= 5 * 4096
