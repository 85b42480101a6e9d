"""Several processes at one ledger: races, crashes, full disks and forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from racing import race_of_eight

import dpfast
from dpfast.errors import LedgerError
from dpfast.ledger import Ledger


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger.open(path, epsilon=1000, delta=0.5)
    return path


def crash(what, path, *numbers):
    """Run a function of crashing.py in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("crashing.py")), what, str(path), *map(str, numbers)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(dpfast.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_eight_processes(tmp_path):
    """Soundness rule 11: eight processes create one ledger, race for 25 + 15 charges; exactly 25 succeed."""
    path = tmp_path / "ledger.db"
    assert race_of_eight({"path": path}) == ([*range(1, 26)], 15)
    with Ledger.open(path) as ledger:
        assert ledger.remaining.epsilon == 0.0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.db", "ledger.db-journal"]
    assert not any((tmp_path / "ledger.db-journal").read_bytes()[:28])  # cleared: nothing to play back


def test_killed_at_every_statement(path):
    """Soundness rule 11: whatever was acknowledged is there, and nothing by halves."""
    assert int(crash("killed_at_every_statement", path, 1)) > 10


def test_killed_in_a_long_transaction(path):
    """As above where SQLite has written pages of an unfinished transaction into the file."""
    assert int(crash("killed_at_every_statement", path, 6000)) > 10


def test_killed_in_creation(tmp_path):
    """No half-made ledger ever has the ledger's name."""
    assert int(crash("killed_in_creation", tmp_path / "ledger.db")) > 10


def test_killed_at_random(path):
    """Soundness rule 11: as above at 25 random times."""
    assert int(crash("killed_at_random", path, 25)) > 0


@pytest.mark.parametrize("rounds", [8, pytest.param(300, marks=pytest.mark.long)])
def test_killed_and_damaged(tmp_path, rounds):
    """Soundness rule 11: flipped, cut, removed or exchanged after a kill: no acknowledged charge is lost."""
    hot, refused = map(int, crash("killed_and_damaged", tmp_path / "ledger.db", rounds).split())
    print(f"{rounds} kills: {hot} hot journals, {refused} refused")
    assert refused > 0
    assert hot > 0 or rounds < 100


def test_disk_full(path):
    """A full disk is an error; nothing acknowledged is lost, and the ledger goes on when there is room."""
    crash("disk_full", path)


def test_forks_among_threads(path):
    """Soundness rule 11: a durable ledger serves after a fork, even one in another thread's charge."""
    crash("forks_among_threads", path)


def test_forked_in_own_charge(path):
    """One charge never serves two processes."""
    crash("forked_in_own_charge", path)
    crash("memory_forked_in_own_charge", path)


def test_memory_after_fork(path):
    """Soundness rule 11: an in-memory ledger refuses after a fork."""
    crash("memory_after_fork", path)


def test_what_a_fork_reads_in_its_parents_charge_is_no_damage(path, monkeypatch):
    """A fork may find half-written pages: it is told of the fork, not to restore a ledger that is whole."""
    ledger = Ledger.open(path)
    real = os.getpid

    def work(connection):
        monkeypatch.setattr(os, "getpid", lambda: real() + 1)
        raise LedgerError("the ledger is damaged")

    with pytest.raises(LedgerError, match="forked in the middle"):
        ledger._store._transact(work, writing=True)
    monkeypatch.setattr(os, "getpid", real)
    assert Ledger.open(path).verify() is None
