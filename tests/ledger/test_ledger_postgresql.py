"""A ledger in PostgreSQL: racing machines, lost connections, restarts, forks, damage, and passwords."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace

import polars as pl
import pytest
from click.testing import CliRunner
from racing import ABOUT, race_of_eight

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'dpfast[postgresql]'")

from dpfast.accounting.budget import Amounts  # noqa: E402
from dpfast.cli import main  # noqa: E402
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError  # noqa: E402
from dpfast.ledger import Charge, Identity, Ledger, postgresql_server  # noqa: E402
from dpfast.ledger.postgresql_server import Server, Session  # noqa: E402

CHARGE = Charge.of(0.001, 0, "a count")
SECRET = "not-to-be-shown"
SETTINGS = ("synchronous_commit", "transaction_isolation")


@pytest.fixture
def about(postgresql):
    """What opens a ledger of the test's own."""
    return {"path": postgresql.url, "name": next(postgresql.names)}


def server_does(about, *statements):
    """Run statements as the administrator, within the ledger's schema."""
    with psycopg.connect(about["path"], autocommit=True) as connection:
        connection.execute(f"SET search_path TO dpfast_{about['name']}")
        return [connection.execute(statement) for statement in statements]


def in_child(work):
    """Fork a child that acknowledges on a pipe; return its process and the reading end."""
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


def entries(about):
    with Ledger.open(**about) as ledger:
        account = ledger._store.account("")
        assert account.spent[0] == account.entries * CHARGE.epsilon_units
        return account.entries


def test_kept(about):
    first = Ledger.open(**about, epsilon=1.0, delta=1e-6, accountant="basic")
    assert first.charge(Charge.of(0.1, 1e-7, r"back\slash \0 and 0"), **ABOUT) == 1
    second = Ledger.open(**about, expect_head=first.head)
    assert second.spent == first.spent == Amounts(0.1, 1e-7)
    assert second.identity == Identity(**ABOUT)
    assert second.history().equals(first.history())
    assert second.history()["description"].to_list() == [r"back\slash \0 and 0"]
    second.charge(Charge.of(0.9), **ABOUT)
    with pytest.raises(BudgetExceededError):
        first.charge(Charge(1, 0, ""), **ABOUT)
    for other in ({"epsilon": 2}, {"delta": 0}, {"accountant": "zcdp"}, {"expect_head": "0" * 64}):
        with pytest.raises(LedgerError, match=r"cannot be changed|has never had the head"):
            Ledger.open(**about, **other)


def test_identity_is_settled_once(about):
    """Soundness rule 9: what the ledger leaves open is fixed by whoever first says it; any text is kept."""
    Ledger.open(**about, epsilon=1)
    Ledger.open(**about, dataset="a\0b\\0")
    assert Ledger.open(**about).identity == Identity("a\0b\\0")
    with pytest.raises(LedgerError, match="dataset is"):
        Ledger.open(**about, dataset="taxis")


def test_allotments(about):
    ledger = Ledger.open(**about, epsilon=1)
    ledger.allot("team \0", epsilon=0.3).charge(Charge.of(0.2), **ABOUT)
    assert Ledger.open(**about).allotment("team \0").remaining.epsilon == 0.1
    with pytest.raises(LedgerError, match="already"):
        ledger.allot("team \0", epsilon=0.3)
    with pytest.raises(LedgerError, match="no allotment"):
        ledger.allotment("other")


def test_names(about, postgresql, tmp_path):
    """Ledgers of one database know nothing of each other; main is what is meant without a name."""
    Ledger.open(postgresql.url, epsilon=1).charge(Charge.of(0.5), **ABOUT)
    Ledger.open(**about, epsilon=2)
    assert Ledger.open(postgresql.url.replace("postgresql:", "postgres:"), name="main").spent.epsilon == 0.5
    assert Ledger.open(**about).spent.epsilon == 0
    for bad in ("", "Main", "a;b", "a" * 41, "1a", "a b", 'a"', "é", "a\n", 1, b"a"):
        with pytest.raises(ParameterError, match="name must be"):
            Ledger.open(postgresql.url, epsilon=1, name=bad)
    with pytest.raises(ParameterError, match="left out"):
        Ledger.open(tmp_path / "ledger.db", epsilon=1, name="main")
    with pytest.raises(LedgerError, match="give epsilon to create it"):
        Ledger.open(postgresql.url, name="nothing_there")


def test_eight_processes(about):
    """Soundness rule 11: eight processes create one ledger, race for 25 + 15 charges; exactly 25 succeed."""
    assert race_of_eight(about) == ([*range(1, 26)], 15)
    assert Ledger.open(**about).remaining.epsilon == 0.0


def at_step(monkeypatch, number, action):
    """Run an action before and after every step of a session's, at the n-th of these moments."""
    moments = 0

    def stepped(step):
        def run(*arguments, **options):
            moment()
            result = step(*arguments, **options)
            moment()
            return result

        return run

    def moment():
        nonlocal moments
        moments += 1
        if moments == number:
            action()

    for name in ("begin", "execute", "executemany", "commit"):
        monkeypatch.setattr(Session, name, stepped(getattr(Session, name)))


def test_killed_at_every_step(about, monkeypatch):
    """Soundness rule 11: kill -9 in mid-transaction: whatever was acknowledged is there, and nothing by halves."""
    Ledger.open(**about, epsilon=10)
    point = done = 0
    while not done:
        point += 1
        before = entries(about)

        def work(acknowledge, point=point):
            at_step(monkeypatch, point, lambda: os.kill(os.getpid(), signal.SIGKILL))
            Ledger.open(**about).charge_many([CHARGE, Charge.of(0.001, 0, "a mean")], **ABOUT)
            acknowledge()

        done = acknowledged(*in_child(work))
        made = entries(about) - before
        assert made in (0, 2)
        assert made >= 2 * done
    assert point > 20


def test_killed_in_creation(about, monkeypatch):
    """No half-made ledger ever has the ledger's name."""
    point = done = 0
    while not done:
        point += 1

        def work(acknowledge, point=point):
            at_step(monkeypatch, point, lambda: os.kill(os.getpid(), signal.SIGKILL))
            Ledger.open(**about, epsilon=1)
            acknowledge()

        done = acknowledged(*in_child(work))
    assert (entries(about), point > 10) == (0, True)


def test_restarts(about, postgresql):
    """A server that crashes under load loses nothing that was acknowledged, and the ledger goes on after it."""
    ledger = Ledger.open(**about, epsilon=1000)
    made, uncertain = [], []
    stop = threading.Event()

    def spend():
        while not stop.is_set():
            try:
                made.append(ledger.charge(CHARGE, **ABOUT))
            except LedgerError as error:
                uncertain.append("may or may not" in str(error))
                time.sleep(0.02)

    thread = threading.Thread(target=spend)
    thread.start()
    for restarts in range(3):
        # However busy the machine is: some charges before each restart, and some after the last.
        before, last = len(made), time.monotonic() + 1200
        while len(made) < before + 3 and time.monotonic() < last:
            time.sleep(0.02)
        if restarts < 2:
            postgresql.restart()
    stop.set()
    thread.join()
    assert len(made) <= entries(about) <= len(made) + sum(uncertain)
    assert len(set(made)) == len(made) > 2
    assert ledger.charge(CHARGE, **ABOUT) == entries(about)


def lose_connection(about):
    server_does(about, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_lost_between_charges(about):
    """A connection that dies while nothing is asked of it is replaced without a word."""
    ledger = Ledger.open(**about, epsilon=1)
    lose_connection(about)
    assert ledger.charge(CHARGE, **ABOUT) == 1
    lose_connection(about)
    assert ledger.spent.epsilon == 0.001


def test_lost_in_mid_charge(about, monkeypatch):
    """A connection lost anywhere in a charge: an error that says what is known, and it is true."""
    ledger = Ledger.open(**about, epsilon=10)
    charged, said = 0, []
    for point in range(1, 20):
        error = ""
        with monkeypatch.context() as patch:
            at_step(patch, point, lambda: lose_connection(about))
            try:
                ledger.charge(CHARGE, **ABOUT)
            except LedgerError as caught:
                error = str(caught)
        before, charged = charged, entries(about)
        certain = [charged == before + 1, charged == before, True]
        said.append(0 if not error else 1 if "nothing was charged" in error else 2)
        assert certain[said[-1]], error
        assert said[-1] < 2 or "may or may not be recorded" in error
        assert ledger.spent.epsilon == charged / 1000
    assert set(said) == {0, 1, 2}


def test_acknowledgement_lost(about, monkeypatch):
    """The commit arrives, its answer does not: the error says how to see, and nothing is charged again."""
    ledger = Ledger.open(**about, epsilon=1)
    commit = Session.commit

    def lost(self):
        commit(self)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "commit", lost)
        with pytest.raises(LedgerError, match=r"may or may not be recorded; see the end of ledger\.history\(\)"):
            ledger.charge(CHARGE, **ABOUT)
    assert ledger.history().height == 1


def test_new_connection_waits_for_a_commit_in_flight(about):
    """What is read after a connection was lost is what the server made of the lost one's commit."""
    ledger = Ledger.open(**about, epsilon=1)
    store = ledger._store
    session = store._begun(True)
    store._append(session, "", (CHARGE,), Identity(**ABOUT))
    store._session = None  # lost, while the server is still at it
    found = []
    reader = threading.Thread(target=lambda: found.append(ledger.spent.epsilon))
    reader.start()
    time.sleep(0.2)
    assert not found
    session.commit()
    reader.join()
    assert found == [0.001]


def test_busy(about, monkeypatch):
    """A lock held too long is an error; nothing is charged."""
    ledger = Ledger.open(**about, epsilon=1)
    monkeypatch.setattr(postgresql_server, "PATIENCE_SECONDS", 0.1)
    with psycopg.connect(about["path"]) as connection:
        connection.execute(f"SELECT FROM dpfast_{about['name']}.head FOR UPDATE")
        assert ledger.spent.epsilon == 0  # who only reads waits for nobody
        with pytest.raises(LedgerError, match=r"held by another process.*nothing was charged"):
            ledger.charge(CHARGE, **ABOUT)
    assert ledger.charge(CHARGE, **ABOUT) == 1


def wait_for_fsync(about, setting):
    """Wait until the server has read its settings anew, which it does when it comes to it."""
    last = time.monotonic() + 1200
    with psycopg.connect(about["path"], autocommit=True) as connection:
        while connection.execute("SHOW fsync").fetchone() != (setting,):
            assert time.monotonic() < last
            time.sleep(0.02)


def test_waits_for_the_disk(about, postgresql):
    """Soundness rule 11: no setting of user, database or URL makes a charge less durable; no fsync is refused."""
    lax = about["path"] + "&options=-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable"
    ledger = Ledger.open(lax, name=about["name"], epsilon=1)
    shown = []
    ledger._store._transact(
        lambda session: shown.extend(session.execute(f"SHOW {name}").fetchone()[0] for name in SETTINGS), writing=True
    )
    assert shown == ["on", "read committed"]
    try:
        server_does(about, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        wait_for_fsync(about, "off")
        with pytest.raises(LedgerError, match="fsync is off"):
            Ledger.open(**about)
    finally:
        server_does(about, "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
        wait_for_fsync(about, "on")
    server_does(about, "ALTER TABLE entry SET UNLOGGED")
    with pytest.raises(LedgerError, match="SET LOGGED"):
        Ledger.open(**about)


def test_forks(about):
    """A child has a connection of its own, though its parent's threads are in mid-charge; the parent's stays."""
    ledger = Ledger.open(**about, epsilon=10)
    mine, stop = [], threading.Event()

    def spend():
        while not stop.is_set():
            mine.append(ledger.charge(CHARGE, **ABOUT))

    def work(acknowledge):
        for _ in range(3):
            ledger.charge(CHARGE, **ABOUT)
            acknowledge()
        ledger.close()

    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads:
        thread.start()
    process_before = ledger._store._session.connection.info.backend_pid
    theirs = sum(acknowledged(*in_child(work)) for _ in range(4))
    stop.set()
    for thread in threads:
        thread.join()
    assert (theirs, entries(about)) == (12, 12 + len(mine))
    assert ledger._store._session.connection.info.backend_pid == process_before


@pytest.mark.parametrize("point", range(1, 13))
def test_forked_in_own_charge(about, monkeypatch, point):
    """One charge never serves two processes."""
    ledger = Ledger.open(**about, epsilon=1)
    ledger.charge(CHARGE, **ABOUT)
    parent, forks = os.getpid(), []
    at_step(monkeypatch, point, lambda: forks.append(os.fork()))
    refused = ""
    try:
        ledger.charge(CHARGE, **ABOUT)
    except Exception as error:
        refused = repr(error)
    if os.getpid() != parent:
        os._exit(7 if "forked in the middle" in refused else print(refused, flush=True) or 1)
    assert not refused
    assert os.waitstatus_to_exitcode(os.waitpid(forks[0], 0)[1]) == 7
    assert entries(about) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry WHERE number = 3",
        "UPDATE entry SET epsilon = '1' WHERE number = 2",
        "UPDATE entry SET number = 7 WHERE number = 3",
        "UPDATE entry SET payload = '\\x00' WHERE number = 3",
        'UPDATE account SET spent = \'["0", "0"]\'',
        "UPDATE head SET dataset = NULL",
        "INSERT INTO head SELECT * FROM head",
        "DROP TABLE entry",
        "ALTER TABLE head ADD COLUMN more TEXT",
        "UPDATE about SET format = 3",
    ],
)
def test_edited(about, statement):
    """Entries are added up again at every opening, and held against the running total."""
    with Ledger.open(**about, epsilon=1, dataset="flights") as ledger:
        for amount in (0.1, 0.2, 0.3):
            ledger.charge(Charge.of(amount), **ABOUT)
    server_does(about, statement)
    with pytest.raises(LedgerError):
        Ledger.open(**about)


def test_restored_backup(about):
    """A process that has seen later charges refuses an older copy; a new one does by the head written down."""
    ledger = Ledger.open(**about, epsilon=1)
    ledger.charge(CHARGE, **ABOUT)
    tables = ("head", "account", "entry")
    server_does(about, *(f"CREATE TABLE old_{table} AS TABLE {table}" for table in tables))
    ledger.charge(CHARGE, **ABOUT)
    head = ledger.head
    for table in tables:
        server_does(about, f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM old_{table}")
    for _ in range(2):
        with pytest.raises(LedgerError, match="older copy"):
            ledger.charge(CHARGE, **ABOUT)
        Ledger.open(**about).charge(CHARGE, **ABOUT)
    with pytest.raises(LedgerError, match="older copy"):
        Ledger.open(**about, expect_head=head)


@pytest.fixture
def role(about, postgresql):
    """A user of the server without any right; with_rights opens the ledger as that user."""
    name = f"reader_{about['name']}"
    Ledger.open(**about, epsilon=1, dataset="flights").charge(CHARGE, **ABOUT)
    server_does(about, f"CREATE ROLE {name} LOGIN")
    return {"path": about["path"].replace("tester:", f"{name}:"), "name": about["name"]}, name


def test_role_without_rights(about, role):
    """Rights that are missing are not called damage, whichever they are."""
    opened, name = role
    schema = f"dpfast_{about['name']}"
    for grant in ("SELECT 1", f"GRANT USAGE ON SCHEMA {schema} TO {name}", f"GRANT SELECT ON head TO {name}"):
        server_does(about, grant)
        with pytest.raises(LedgerError, match="grant it USAGE on the schema, SELECT on its tables") as caught:
            Ledger.open(**opened)
        assert "damaged" not in str(caught.value)
    server_does(about, f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {name}")
    assert Ledger.open(**opened).charge(CHARGE, **ABOUT) == 2
    server_does(about, f"REVOKE USAGE ON SCHEMA {schema} FROM {name}")
    with pytest.raises(LedgerError, match="grant it USAGE"):
        Ledger.open(**opened)


def test_role_that_may_only_read(about, role):
    """Whoever may only read opens a ledger and reads all of it, and is told what is missing when it charges."""
    opened, name = role
    schema = f"dpfast_{about['name']}"
    server_does(
        about, f"GRANT USAGE ON SCHEMA {schema} TO {name}", f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}"
    )
    with Ledger.open(**opened) as ledger:
        assert ledger.spent.epsilon == 0.001
        assert ledger.history().height == 1
        assert ledger.report().height > 1
        ledger.verify()
        with pytest.raises(LedgerError, match=r"INSERT and UPDATE to charge it; nothing was charged"):
            ledger.charge(CHARGE, **ABOUT)
        Ledger.open(**about).charge(CHARGE, **ABOUT)
        assert ledger.spent.epsilon == 0.002


def test_earlier_format(about):
    """A ledger of the format before is brought to today's, by whoever may write; its seals are checked first."""
    Ledger.open(**about, epsilon=1, dataset="flights").charge(CHARGE, **ABOUT)
    others = Ledger.open(**about)
    name = f"reader_{about['name']}"
    schema = f"dpfast_{about['name']}"
    store = others._store
    head = replace(store._now, accounts=None)
    for changed, fits in ((replace(head, entries=0), False), (head, True)):
        store._transact(lambda session, changed=changed: changed.write(session), writing=True)
        server_does(about, "UPDATE about SET format = 1")
        if not fits:
            with pytest.raises(LedgerError, match="damaged"):
                Ledger.open(**about)
        store.close()
    server_does(
        about,
        f"CREATE ROLE {name} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}",
    )
    with pytest.raises(LedgerError, match="open it once as a user who may write"):
        Ledger.open(about["path"].replace("tester:", f"{name}:"), name=about["name"])
    assert others.spent.epsilon == 0.001  # who opened it before goes on
    assert Ledger.open(**about).charge(CHARGE, **ABOUT) == 2
    assert others.charge(CHARGE, **ABOUT) == 3
    assert Ledger.open(**about).spent.epsilon == 0.003


def test_passwords_stay_secret(about, postgresql, monkeypatch):
    """Neither repr nor an error, nor what an error was raised from, tells the password."""
    ledger = Ledger.open(**about, epsilon=1)
    told = [repr(ledger), repr(ledger._store._server)]
    bad = [
        f"postgresql://tester:{SECRET}@/postgres?host=/nowhere",
        f"postgresql://tester:{SECRET}@127.0.0.1:1/postgres",
        f"postgresql://tester:{SECRET}@127.0.0.1:{SECRET}/postgres",
        f"postgresql://tester:{SECRET}@h/postgres?password={SECRET}&x{SECRET}=1",
        f"postgresql://tester:{SECRET}%zz@h/postgres",
        f"postgresql://nobody:{SECRET}@/postgres?host={postgresql.folder}",
        f"postgresql://tester:{SECRET}@/missing?host={postgresql.folder}",
    ]
    for url in bad:
        with pytest.raises((LedgerError, ParameterError)) as caught:
            Ledger.open(url, epsilon=1)
        told += ["".join(traceback.format_exception(caught.value)), repr(caught.value.__context__)]
    lose_connection(about)
    monkeypatch.setattr(Server, "connected", lambda self: psycopg.connect(self._settings + " port=1"))
    with pytest.raises(LedgerError) as caught:
        ledger.charge(CHARGE, **ABOUT)
    told += [str(caught.value), repr(caught.value.__context__)]
    assert not any(SECRET in text for text in told), told


def test_without_psycopg(about, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'dpfast\[postgresql\]'"):
        Ledger.open(**about, epsilon=1)


def test_commands_show_no_password(postgresql, tmp_path):
    """The commands name a ledger on a server without the password; create says so where there is one already."""
    runner = CliRunner()
    table = tmp_path / "queries.parquet"
    pl.DataFrame({"x": [1, 2]}).write_parquet(table)
    Ledger.open(postgresql.url, 1.0, accountant="basic").close()
    asked = ["--value", "x", "--epsilon", "0.1", "--ledger", postgresql.url, "--out", str(tmp_path / "out.parquet")]
    said = ""
    for code, command in (
        (4, ["ledger", "create", postgresql.url, "--epsilon", "1"]),
        (0, ["ledger", "show", postgresql.url]),
        (0, ["ledger", "verify", postgresql.url]),
        (0, ["answer", str(table), *asked]),
        (2, ["ledger", "show", "postgresql://tester:not-to-be-shown@[/"]),
        (4, ["ledger", "create", "postgresql://tester:not-to-be-shown@/nowhere?host=/nowhere", "--epsilon", "1"]),
    ):
        done = runner.invoke(main, command)
        assert done.exit_code == code, (command, done.output)
        said += done.output
    assert "exists" in said
    assert "is in order" in said
    assert SECRET not in said
