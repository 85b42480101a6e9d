"""Run in a process of its own: forks children that charge a durable ledger and die, or run out of disk.

Every child acknowledges a charge on a pipe once it has returned; its parent then looks into the file.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from torn import flipped, found, journal_of

from dpfast.errors import LedgerError
from dpfast.ledger import Charge, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
CHARGE = Charge.of(0.001, 1e-9, "a charge with a description of some length" * 10)


def in_child(work):
    """Fork a child that does the work with a function to acknowledge by; return its process and the pipe."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reading)
            work(lambda: os.write(writing, b"."))
        finally:
            os._exit(0)
    os.close(writing)
    return process, reading


def acknowledged(process, reading):
    count = 0
    while got := os.read(reading, 65536):
        count += len(got)
    os.close(reading)
    os.waitpid(process, 0)
    return count


def entries(path):
    ledger = Ledger.open(path)
    account = ledger._store.account("")
    assert account.spent[0] == account.entries * CHARGE.epsilon_units <= account.filter.epsilon_units
    return account.entries


def connections_that(on_statement, ledger=None):
    """Call a function before and after every statement of every connection, of the ledger's next one too."""

    class Connection(sqlite3.Connection):
        def execute(self, *arguments):
            on_statement()
            cursor = super().execute(*arguments)
            on_statement()
            return cursor

        def executemany(self, *arguments):
            on_statement()
            cursor = super().executemany(*arguments)
            on_statement()
            return cursor

        def close(self):
            on_statement()
            super().close()
            on_statement()

    connect = sqlite3.connect
    if ledger is not None:
        ledger._store.close()
    sqlite3.connect = lambda *args, **options: connect(*args, factory=Connection, **options)


def killed_at_every_statement(path, charges):
    point = 0
    while True:
        point += 1
        before = entries(path)

        def work(acknowledge, point=point):
            seen = 0

            def on_statement():
                nonlocal seen
                seen += 1
                if seen == point:
                    os.kill(os.getpid(), signal.SIGKILL)

            ledger = Ledger.open(path)
            connections_that(on_statement, ledger)
            ledger.charge_many([replace(CHARGE, description=f"{n}" * 20) for n in range(charges)], **ABOUT)
            acknowledge()

        done = acknowledged(*in_child(work))
        made = entries(path) - before
        assert made in (0, charges), made
        assert made >= done * charges
        if done:
            return point


def killed_in_creation(path):
    point = 0
    while not path.exists():
        point += 1

        def work(acknowledge, point=point):
            seen = 0

            def on_statement():
                nonlocal seen
                seen += 1
                if seen == point:
                    os.kill(os.getpid(), signal.SIGKILL)

            connections_that(on_statement)
            Ledger.open(path, epsilon=1)

        acknowledged(*in_child(work))
    entries(path)
    return point


def killed_at_random(path, rounds):
    generator = random.Random(1)
    total = entries(path)
    for _ in range(rounds):

        def work(acknowledge):
            ledger = Ledger.open(path)
            while True:
                ledger.charge(CHARGE, **ABOUT)
                acknowledge()

        process, reading = in_child(work)
        # Mostly after the first charge, whenever a busy machine comes to it.
        first = len(os.read(reading, 1)) if generator.random() < 0.7 else 0
        time.sleep(generator.uniform(0.002, 0.03))
        os.kill(process, signal.SIGKILL)
        done = first + acknowledged(process, reading)
        now = entries(path)
        assert total + done <= now <= total + done + 1
        total = now
    return total


def killed_and_damaged(path, rounds):
    """Kill a child in mid-charge, then flip, cut, remove and exchange what it left: nothing acknowledged is lost.

    Returns how often a hot journal was left, and how often what was damaged was refused.
    """
    generator = random.Random(rounds)
    copy = path.with_name("copy.db")
    seen = {"hot": 0, "refused": 0}
    for number in range(rounds):
        if number % 20 == 0:
            path, total = path.with_name(f"{number}.db"), 0
            Ledger.open(path, epsilon=1000, delta=0.5).close()
            stale = []

        def work(acknowledge, path=path):
            ledger = Ledger.open(path)
            while True:
                ledger.charge(CHARGE, **ABOUT)
                acknowledge()

        before = path.read_bytes()
        process, reading = in_child(work)
        first = len(os.read(reading, 1)) if generator.random() < 0.7 else 0
        time.sleep(generator.uniform(0.002, 0.03))
        os.kill(process, signal.SIGKILL)
        least = total + first + acknowledged(process, reading)
        main, journal = path.read_bytes(), journal_of(path).read_bytes() if journal_of(path).exists() else None
        damaged = [(main, journal), (main, None), (main[: generator.randrange(len(main))], journal)]
        damaged += [(flipped(main, generator.randrange(len(main)), generator.randrange(8)), journal) for _ in range(3)]
        damaged += [(main, one) for one in stale]
        if journal:
            damaged += [(main, flipped(journal, generator.randrange(end))) for end in (28, 4096, len(journal))]
            damaged.append((main, journal[: generator.randrange(len(journal))]))
        if journal and any(journal[:8]):
            seen["hot"] += 1
            stale = [*stale[-1:], journal]
            if least > total + 1:  # an older copy, which the journal tells
                damaged.append((before, journal))
        for one, other in damaged:
            count = found(copy, one, other)
            seen["refused"] += count is None
            assert count is None or least <= count <= least + 1, (number, count, least)
        total = entries(path)
        assert least <= total <= least + 1
    return "{hot} {refused}".format(**seen)


def disk_full(path):
    before = entries(path)

    def work(acknowledge):
        ledger = Ledger.open(path)
        room = path.stat().st_size + 200_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            while True:
                ledger.charge(CHARGE, **ABOUT)
                acknowledge()
        except LedgerError:
            acknowledge()  # so that an error of another kind is missed in the count
        for _ in range(3):
            try:
                ledger.charge_many([replace(CHARGE, description=f"{n}" * 900) for n in range(100)], **ABOUT)
                acknowledge()
            except LedgerError:
                pass

    done = acknowledged(*in_child(work)) - 1
    assert done > 5
    assert entries(path) - before == done
    Ledger.open(path).charge(CHARGE, **ABOUT)
    return done


def forks_among_threads(path):
    """Children forked while other threads are in mid-charge charge too, and do not hang."""
    ledger = Ledger.open(path)
    before = entries(path)
    mine = []
    stop = threading.Event()

    def spend():
        while not stop.is_set():
            mine.append(ledger.charge(CHARGE, **ABOUT))
            time.sleep(0.001)  # lest SQLite's waiting children starve

    def work(acknowledge):
        for _ in range(3):
            ledger.charge(CHARGE, **ABOUT)
            acknowledge()

    threads = [threading.Thread(target=spend) for _ in range(3)]
    for thread in threads:
        thread.start()
    theirs = 0
    for _ in range(4):
        time.sleep(0.003)
        theirs += acknowledged(*in_child(work))
    stop.set()
    for thread in threads:
        thread.join()
    assert theirs == 12
    assert entries(path) - before == theirs + len(mine)
    return theirs


def forked_in_own_charge(path):
    """A child forked in the middle of its own charge has no charge, and leaves its parent's alone."""
    before = entries(path)
    ledger = Ledger.open(path)
    reading, writing = os.pipe()
    parent = os.getpid()
    forks = []

    def on_statement():
        on_statement.seen += 1
        if on_statement.seen == 15 and os.getpid() == parent:
            forks.append(os.fork())

    on_statement.seen = 0
    connections_that(on_statement, ledger)
    try:
        ledger.charge(CHARGE, **ABOUT)
        os.write(writing, b"charged ")
    except LedgerError as error:
        os.write(writing, b"refused " if "forked in the middle" in str(error) else b"failed ")
    if os.getpid() != parent:
        sys.exit(0)  # a full ending, which would close the connection
    os.waitpid(forks[0], 0)
    os.close(writing)
    outcomes = os.read(reading, 100).split()
    assert sorted(outcomes) == [b"charged", b"refused"], outcomes
    assert entries(path) == before + 1
    return 1


def memory_after_fork(_):
    ledger = Ledger(1, 0.5)
    ledger.charge(CHARGE, **ABOUT)

    def work(acknowledge):
        for use in (
            lambda: ledger.charge(CHARGE, **ABOUT),
            lambda: ledger.spent,
            lambda: ledger.remaining,
            lambda: ledger.history(),
        ):
            try:
                use()
            except LedgerError as error:
                if "fork" in str(error):
                    acknowledge()
        assert "fork" in repr(ledger)
        acknowledge()

    assert acknowledged(*in_child(work)) == 5
    assert ledger.charge(CHARGE, **ABOUT) == 2
    return 1


def memory_forked_in_own_charge(_):
    ledger = Ledger(1, 0.5)
    parent, now = os.getpid(), time.time_ns
    forks = []

    def forking_clock():
        forks.append(os.fork())
        return now()

    time.time_ns = forking_clock
    try:
        assert ledger.charge(CHARGE, **ABOUT) == 1
        refused = False
    except LedgerError:
        refused = True
    if os.getpid() != parent:
        os._exit(7 if refused else 1)
    assert not refused
    assert os.waitstatus_to_exitcode(os.waitpid(forks[0], 0)[1]) == 7
    return 1


if __name__ == "__main__":
    what, path, *numbers = sys.argv[1:]
    print(globals()[what](Path(path), *map(int, numbers)))
