"""Ledgers that the dpfast before format 3 wrote open again, with every accountant, and go on within their budgets.

`earlier/write.py` says how they were made.
"""

from __future__ import annotations

import ast
import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dpfast.accounting.budget import Amounts
from dpfast.accounting.events import Laplace
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.ledger import Charge, Identity, Ledger
from dpfast.ledger.head import Head

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
FILES = {file.stem: file.read_text() for file in sorted((Path(__file__).parent / "earlier").glob("*.sql"))}
OPENED = sorted(FILES.keys() - {"odometer_beyond"})


@pytest.fixture
def put(tmp_path):
    """A function that puts a ledger of the earlier format under a path."""

    def make(name):
        path = tmp_path / f"{name}.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(FILES[name])
        assert path.read_bytes()[18:20] == b"\2\2"
        return path

    return make


@pytest.fixture
def made(put, request, tmp_path):
    """A function that puts such a ledger into a file or a database, and returns how to open it."""

    def make(name, kind):
        path = put(name)
        if kind == "file":
            return {"path": path}
        server = request.getfixturevalue("postgresql")
        place = {"path": server.url, "name": next(server.names)}
        return copied(path, place)

    return make


def copied(path, place):
    """Put the rows of a file into a database: an earlier format of the same tables."""
    import psycopg

    Ledger.open(**place, epsilon=1).close()
    with closing(sqlite3.connect(path)) as source, psycopg.connect(place["path"]) as target:
        target.execute(f"SET search_path TO dpfast_{place['name']}")
        for table in ("account", "entry", "head"):
            rows = source.execute(f"SELECT * FROM {table}").fetchall()
            target.execute(f"DELETE FROM {table}")
            for row in rows:
                target.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
        target.execute("UPDATE about SET format = format - 1")
    return place


def kept(path):
    """What a file says of its accounts and its entries."""
    with closing(sqlite3.connect(path)) as connection:
        accounts = connection.execute("SELECT name, terms, spent FROM account").fetchall()
        return {name: [json.loads(text) for text in texts] for name, *texts in accounts}, connection.execute(
            "SELECT * FROM entry"
        ).fetchall()


@pytest.mark.parametrize("kind", ["file", "postgresql"])
@pytest.mark.parametrize("name", OPENED)
def test_opens_charges_and_verifies(made, name, kind):
    """Opened, read, charged, opened again: the earlier entries are as they were sealed, and all adds up."""
    place = made(name, kind)
    with Ledger.open(**place) as ledger:
        assert ledger.accountant == name.partition("_")[0]
        before, history, head = ledger.spent, ledger.history(), ledger.head
        assert history.is_empty() == name.endswith("_empty")
        ledger.verify()
        assert set(ledger.report()["accountant"][:1]) == {"budget"}
        number = ledger.charge(Charge.of(0.2, event=Laplace(5.0)), **ABOUT)
        assert number == history["count"].sum() + 1
        assert ledger.spent != before
    with Ledger.open(**place, expect_head=head) as ledger:
        assert ledger.history()[:-1].equals(history)
        ledger.verify()
        for part in ("ours",) if name.endswith("_parts") else ():
            with ledger.allotment(part) as allotment:
                allotment.charge(Charge.of(0.01, event=Laplace(100.0)), **ABOUT)
        ledger.verify()


@pytest.mark.parametrize("name", OPENED)
def test_terms_and_entries_are_as_they_were(put, name):
    """Budgets and sums stay as they were fixed and counted; what an entry says is not rewritten."""
    path = put(name)
    before, entries = kept(path)
    Ledger.open(path).close()
    after, same = kept(path)
    assert same == entries
    for account, (terms, spent) in before.items():
        more, sums = after[account]
        assert [term for term in terms if term not in more] == []
        assert sums[: len(spent)] == spent


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_delta_of_events_is_what_it_was(put, accountant):
    """Delta less the conversion's, 6e-7, of which 3e-7 and little more, or what allotments took, is spent."""
    for name in (file for file in OPENED if file.startswith(accountant)):
        with Ledger.open(put(name), conversion_delta=4e-7) as ledger:
            left = ledger.remaining.delta
            assert ledger.total == Amounts(2.0, 1e-6)
            assert left + ledger.spent.delta == pytest.approx(6e-7, rel=1e-9)
            with pytest.raises(BudgetExceededError):
                ledger.charge(Charge.of(1e-3, left + 1e-12), **ABOUT)
            ledger.charge(Charge.of(1e-3, left - 1e-12), **ABOUT)


def fits(ledger, charge):
    try:
        ledger.charge(charge, **ABOUT)
    except BudgetExceededError:
        return False
    return True


@pytest.mark.parametrize("name", ["zcdp_parts", "rdp_charged"])
def test_plain_epsilons_are_unknown(put, name):
    """Earlier entries have none beside them, so rho, or some order, stays within its bound whatever is charged."""
    path = put(name)
    with Ledger.open(path) as ledger:
        admitted = [fits(ledger, Charge.of(0.1)) for _ in range(20)]
    assert True in admitted
    assert not admitted[-1]
    terms, spent = kept(path)[0][""]
    bounds = terms[3:4] if name.startswith("zcdp") else terms[4:]
    assert any(int(one) <= int(bound) for one, bound in zip(spent, bounds, strict=False))
    assert int(spent[-1]) > int(terms[0])


def test_an_allotment_has_no_plain_epsilon(put):
    """A part of a zCDP budget has its rho alone: the whole was charged no more for it."""
    with Ledger.open(put("zcdp_parts")) as ledger, ledger.allotment("ours") as ours:
        ours.charge(Charge.of(0.01, event=Laplace(100.0)), **ABOUT)
        with pytest.raises(BudgetExceededError):
            ours.charge(Charge.of(0.5), **ABOUT)


def test_an_empty_ledger_has_all_that_a_new_one_has(put, tmp_path):
    """Nothing was asked, so nothing stands against the filter of today."""
    for accountant in ("zcdp", "rdp", "odometer", "basic"):
        path = put(f"{accountant}_empty")
        Ledger.open(path).close()
        conversion = {} if accountant in ("basic", "odometer") else {"conversion_delta": 4e-7}
        epsilon = {} if accountant == "odometer" else {"epsilon": 2}
        new = tmp_path / "new.db"
        Ledger.open(new, accountant=accountant, delta=1e-6, **epsilon, **conversion).close()
        assert kept(path)[0] == kept(new)[0]
        new.unlink()


def test_odometer(put):
    """A half of its delta is for events from now on, and what it shows is no less than before."""
    with Ledger.open(put("odometer_charged"), conversion_delta=5e-7) as ledger:
        shown = ledger.spent
        assert shown.delta == 1e-6
        assert ledger.remaining.delta == pytest.approx(2e-7, rel=1e-9)
        assert math.isfinite(shown.epsilon)
        with pytest.raises(BudgetExceededError):
            ledger.charge(Charge.of(0.01, 3e-7), **ABOUT)
        ledger.charge(Charge.of(0.01, 1e-7), **ABOUT)
        assert ledger.spent.epsilon > shown.epsilon


def test_odometer_beyond(put):
    """Where events took more than that half, no delta is a bound: refused, and left as it was for its own dpfast."""
    path = put("odometer_beyond")
    content = path.read_bytes()
    with pytest.raises(LedgerError, match=r"half of its delta 1e-06.*the dpfast that made it.*new ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["basic_parts", "zcdp_parts", "rdp_charged", "odometer_charged"])
def test_events_that_cost_more_are_read(put, name):
    """An earlier dpfast took them; they are no damage. Where epsilons add up, a report claims nothing of them."""
    with Ledger.open(put(name)) as ledger:
        assert ledger.history().filter(description="less than it costs")["epsilon"].item() == 0.001
        report = ledger.report(0.5)
        budget = report.filter(accountant="budget").row(0, named=True)
        assert budget["holds"] is not name.startswith("basic")
        assert ("less than its event costs" in budget["note"]) is name.startswith("basic")
        assert "basic composition" not in report["accountant"].to_list()
        with pytest.raises(ParameterError, match="Laplace"):
            ledger.charge(Charge.of(0.001, event=Laplace(8.0)), **ABOUT)


@pytest.mark.parametrize("name", OPENED)
def test_damage_is_seen_before_it_is_converted(put, name):
    """A row of an account or of an entry that was changed is refused, as in today's format."""
    columns = [("account", "spent"), ("account", "terms"), ("head", "dataset"), ("entry", "cost")]
    for table, column in columns[: 3 if name.endswith("_empty") else 4]:
        path = put(name)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"UPDATE {table} SET {column} = replace(coalesce({column}, 'x'), '0', '1') || ' '")
            connection.commit()
        with pytest.raises(LedgerError, match="damaged"):
            Ledger.open(path)
        path.unlink()


def test_seal_of_an_earlier_head():
    """The earlier head's seal has no accounts in it: what was written then is held against the same seal."""
    rows = [line for line in FILES["zcdp_parts"].splitlines() if line.startswith('INSERT INTO "head"')]
    *parts, sealed = ast.literal_eval(rows[0].partition("VALUES")[2].rstrip(";"))
    assert Head(parts[0], Identity(*parts[1:4]), *parts[4:], None).row[-1] == sealed
