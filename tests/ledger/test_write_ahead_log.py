"""What an earlier dpfast left in SQLite's write-ahead mode is converted, or refused where charges are missing."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest
from torn import ABOUT, CHARGE, PAGE, flipped

from dpfast.accounting.budget import Amounts
from dpfast.errors import LedgerError
from dpfast.ledger import Identity, Ledger
from dpfast.ledger.account import Entry
from dpfast.ledger.encoding import row_of
from dpfast.ledger.head import Head, account_row

CHARGES = 6
FRAME = 24 + PAGE


@dataclass
class Left:
    """The files that a crash of the earlier dpfast left."""

    main: bytes
    log: bytes
    index: bytes
    early_main: bytes
    early_log: bytes
    early_index: bytes


def write_as_before(connection, ledger, number, last_seal, account):
    """Charge once, in the earlier format: the head does not seal the accounts."""
    after, (entry,) = account.charged((CHARGE,), Identity(**ABOUT), "", 1_700_000_000_000_000 + number)
    assert isinstance(entry, Entry)
    row = row_of(entry, last_seal)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"INSERT INTO entry VALUES ({', '.join('?' * len(row))})", row)
    connection.execute(
        "UPDATE account SET (name, accountant, terms, spent, seal) = (?,?,?,?,?)", account_row(ledger, "", after)
    )
    Head(ledger, after.identity, number, row[-1], None).write(connection)
    connection.execute("COMMIT")
    return row[-1], after


def an_earlier_crash(path, epsilon) -> Left:
    """Four charges in the file, then a log that was begun anew, with two; frames from before follow.

    Earlier: no charge in the file, and a log with three.
    """
    with Ledger.open(path, epsilon=epsilon, delta=1e-3, **ABOUT) as opened:
        account = opened._store.account("")
        ledger = opened.head
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        last_seal = ledger
        files = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
        for number in range(1, CHARGES + 1):
            if number == 4:
                early = [file.read_bytes() for file in files]
            if number == 5:
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
            last_seal, account = write_as_before(connection, ledger, number, last_seal, account)
        return Left(*(file.read_bytes() for file in files), *early)


@pytest.fixture(scope="module")
def left(tmp_path_factory) -> Left:
    return an_earlier_crash(tmp_path_factory.mktemp("earlier") / "ledger.db", epsilon=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def put(path, main, log, index):
    for suffix, content in (("", main), ("-wal", log), ("-shm", index), ("-journal", None)):
        file = path.with_name(path.name + suffix)
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)


def found(path, *files):
    """Return how many charges these files have, or None where they are refused."""
    put(path, *files)
    try:
        with Ledger.open(path) as ledger:
            ledger.verify()
            spent = ledger.spent
            number = ledger.charge(CHARGE, **ABOUT)
    except LedgerError:
        return None
    assert spent.epsilon == (number - 1) / 1000
    return number - 1


def test_converted(path, left):
    """Soundness rule 11: what stands in the log is brought into the file, which leaves write-ahead mode for good."""
    put(path, left.main, left.log, left.index)
    with Ledger.open(path) as ledger:
        assert ledger.spent == Amounts(0.006, 6e-9)
        assert ledger.charge(CHARGE, **ABOUT) == CHARGES + 1
    assert path.read_bytes()[18:20] == b"\1\1"
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.db-journal"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert Ledger.open(path).history().height == CHARGES + 1


def test_converted_without_a_log(path, left):
    """One that was closed in order has no log; nor has one whose whole log is in the file."""
    put(path, left.main, left.log, left.index)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db"]
    assert found(path, path.read_bytes(), None, None) == CHARGES


def test_damaged_log(path, left):
    """Soundness rule 11: a log that is flipped anywhere, cut anywhere or missing: refused, never a larger budget."""
    generator = random.Random(1)
    assert found(path, left.main, left.log, left.index) == CHARGES
    assert found(path, left.main, left.log, None) == CHARGES
    frames = range(32, len(left.log), FRAME)
    live = [place for place in frames if left.log[place + 8 : place + 16] == left.log[16:24]]
    places = [*range(32), *(place + offset for place in live for offset in (0, 5, 8, 11, 12, 15, 16, 20, 24, 4000))]
    places += [generator.randrange(32, live[-1] + FRAME) for _ in range(20)]
    for place in places:
        count = found(
            path, left.main, flipped(left.log, place, generator.randrange(8)), generator.choice((left.index, None))
        )
        assert count in (None, CHARGES), place
    lengths = {0, 1, 31, 32, *(place + more for place in live for more in (0, 7, 24, 900))}
    for length in sorted(lengths):
        assert found(path, left.main, left.log[:length], left.index) is None, length
    assert found(path, left.main, None, left.index) is None


def test_log_of_another_time(path, left):
    """Soundness rule 11: a log from before what stands in the file would take charges away, all seals in order."""
    put(path, left.main, left.log, left.index)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    newest = path.read_bytes()
    for main, log, index in ((newest, left.early_log, left.early_index), (left.main, left.early_log, None)):
        assert found(path, left.early_main, log, index) == 3
        for _ in range(2):  # nor does closing bring it into the file
            put(path, main, log, index)
            for _ in range(2):
                with pytest.raises(LedgerError, match="older than the file"):
                    Ledger.open(path)
            assert path.read_bytes() == main


def test_log_of_another_ledger(path, left, tmp_path):
    """Soundness rule 11: a log may hold all pages of a ledger with a larger budget."""
    other = an_earlier_crash(tmp_path / "other.db", epsilon=100)
    assert found(path, other.main, other.log, other.index) == CHARGES
    for main, log in ((left.main, other.log), (left.early_main, other.early_log)):
        put(path, main, log, None)
        for _ in range(2):
            with pytest.raises(LedgerError, match="another ledger"):
                Ledger.open(path)
        assert path.read_bytes() == main


def test_cut_within_a_charge(path, left):
    """Without the index too, a log that ends in the middle of a charge is refused."""
    frames = range(32, len(left.log), FRAME)
    commits = [number for number, place in enumerate(frames) if any(left.log[place + 4 : place + 8])]
    assert len(commits) >= 2
    for number, place in enumerate(frames):
        if number - 1 not in commits and number and left.log[place + 8 : place + 16] == left.log[16:24]:
            assert found(path, left.main, left.log[:place], None) is None


def test_log_beside_a_ledger_that_has_none(path, left):
    """Soundness rule 11: SQLite would read a log that somebody put beside the file, and older charges with it."""
    put(path, left.main, left.log, left.index)
    ledger = Ledger.open(path)
    ledger.charge(CHARGE, **ABOUT)
    path.with_name("ledger.db-wal").write_bytes(left.log)
    for use in (lambda: ledger.spent, lambda: ledger.charge(CHARGE, **ABOUT), lambda: Ledger.open(path)):
        with pytest.raises(LedgerError, match="write-ahead log"):
            use()
    path.with_name("ledger.db-wal").unlink()
    assert ledger.charge(CHARGE, **ABOUT) == CHARGES + 2


def test_in_use_by_an_earlier_dpfast(path, left, monkeypatch):
    """A file is not converted under a process that works on it in write-ahead mode."""
    monkeypatch.setattr("dpfast.ledger.sqlite_files._PATIENCE_SECONDS", 0.05)
    put(path, left.main, left.log, left.index)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM entry").fetchone() == (CHARGES,)
        with pytest.raises(LedgerError, match=r"held by another|earlier dpfast"):
            Ledger.open(path)
        assert connection.execute("SELECT count(*) FROM entry").fetchone() == (CHARGES,)
    assert Ledger.open(path).spent.epsilon == 0.006


def test_killed_in_conversion(path, left, monkeypatch):
    """Cut off after any statement, a conversion is done by whoever opens the ledger next."""
    connect = sqlite3.connect
    point = 0
    done = False
    while not done:
        point += 2
        left_to_do = point

        class Connection(sqlite3.Connection):
            def execute(self, *arguments):
                nonlocal left_to_do
                left_to_do -= 1
                if left_to_do == 0:
                    raise KeyboardInterrupt
                return super().execute(*arguments)

        put(path, left.main, left.log, left.index)
        with monkeypatch.context() as patch:
            patch.setattr(
                sqlite3, "connect", lambda *args, c=Connection, **options: connect(*args, factory=c, **options)
            )
            try:
                Ledger.open(path).close()
                done = True
            except KeyboardInterrupt:
                pass
        assert Ledger.open(path).charge(CHARGE, **ABOUT) == CHARGES + 1
    assert point > 20
