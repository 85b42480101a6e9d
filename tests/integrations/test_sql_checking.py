"""A database that computes otherwise is found by the public table, whatever it is that it does."""

from __future__ import annotations

import dataclasses
import re

import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import DpfastError
from dpfast.integrations.sql import checking, duckdb_sessions, postgresql_sessions, sqlite_sessions

from .sql_databases import NAMES, bound

MODULES = {"DuckDB": duckdb_sessions, "PostgreSQL": postgresql_sessions, "SQLite": sqlite_sessions}
TABLE = pl.DataFrame({"k": ["a"], "x": [1.0]})

#: By what each mutant changes: the names of the databases, and the statement's text, by a pattern.
TEXTS = {
    "sums of distinct rows": (NAMES, r"SUM\(m0\)", "SUM(DISTINCT m0)"),
    "sums of distinct rows of units": (NAMES, r"CAST\(SUM\(m0\)", "CAST(SUM(DISTINCT m0)"),
    "sums of distinct units": (NAMES, r", SUM\(m0\) AS m0\n  FROM \(", r", SUM(DISTINCT m0) AS m0\n  FROM ("),
    "null joins the empty string": (NAMES, r" AND \w+\.q0 = \(\w+\.k0 IS NULL\)", ""),
    "null joins nothing": (NAMES, r"(\w+\.p0 = )COALESCE\((\w+\.k0), [^)]*\)+", r"\1\2"),
    "public keys are not looked at": (NAMES, r"JOIN (\w+public) ON .*", r"JOIN (SELECT 1) AS \1 ON 1 = 1"),
    "null comes last": (NAMES, "NULLS FIRST", "NULLS LAST"),
    "places begin at 1": (NAMES, r" - 1 AS place", " AS place"),
    "strings lose blanks": (("DuckDB",), r"encode\((\w+\.\"k\")\)", r"encode(rtrim(\1))"),
}
#: The value of a kind, by what stands for it.
VALUES = {
    "dates are a day late": (("DuckDB", "PostgreSQL"), "date", lambda old: f"({old} + 1)"),
    "old dates are null": (("DuckDB", "PostgreSQL"), "date", lambda old: f"NULLIF(GREATEST({old}, -140000), -140000)"),
    "late dates are null": (("DuckDB", "PostgreSQL"), "date", lambda old: f"NULLIF(LEAST({old}, 2900000), 2900000)"),
    "late timestamps are null": (
        ("DuckDB", "PostgreSQL"),
        "timestamp",
        lambda old: f"CASE WHEN {old} < 253402214400000000 THEN {old} END",
    ),
    "timestamps lose microseconds": (
        ("DuckDB", "PostgreSQL"),
        "timestamp",
        lambda old: f"CAST(({old}) / 1000 AS BIGINT) * 1000",
    ),
    "timestamps are late": (("DuckDB", "PostgreSQL"), "timestamp", lambda old: f"({old} + 3600000000)"),
    "Booleans are inverted": (("DuckDB", "PostgreSQL"), "boolean", lambda old: f"(1 - {old})"),
    "missing Booleans are false": (("DuckDB", "PostgreSQL"), "boolean", lambda old: f"COALESCE({old}, 0)"),
    "unsigned integers lose a bit": (("DuckDB",), "unsigned", lambda old: f"({old} // 2 * 2)"),
    "unsigned integers end": (("DuckDB",), "unsigned", lambda old: f"LEAST({old}, 9223372036854775807::UBIGINT)"),
    "unsigned integers are null": (
        ("DuckDB",),
        "unsigned",
        lambda old: f"NULLIF({old}, 18446744073709551615::UBIGINT)",
    ),
}


def refused(databases, name):
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(DpfastError, match=r"otherwise than dpfast|refuses the query: a public table"):
        dpf.release(
            databases.of(name, TABLE), n=dpf.count(), privacy_unit="row", epsilon=1.0, ledger=ledger, engine="sql"
        )
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(("name", "mutant"), [(name, label) for label, mutant in TEXTS.items() for name in mutant[0]])
def test_statements_that_do_something_else(databases, name, mutant, monkeypatch):
    _, pattern, new = TEXTS[mutant]
    session = MODULES[name]._Session
    fetch, hits = session.fetch, []

    def changed(self, statement):
        sql, count = re.subn(pattern, new, statement.sql)
        hits.append(count)
        return fetch(self, dataclasses.replace(statement, sql=sql))

    monkeypatch.setattr(session, "fetch", changed)
    refused(databases, name)
    assert any(hits)


@pytest.mark.parametrize(("name", "mutant"), [(name, label) for label, mutant in VALUES.items() for name in mutant[0]])
def test_values_that_are_others(databases, name, mutant, monkeypatch):
    _, kind, change = VALUES[mutant]
    dialect = MODULES[name]._Session.dialect
    values = {**dialect.values, kind: change(dialect.values[kind])}
    assert values != dialect.values
    monkeypatch.setattr(MODULES[name]._Session, "dialect", dataclasses.replace(dialect, values=values))
    refused(databases, name)


def test_the_figures_are_those_of_the_description():
    rows = [(unit, *held) for unit in checking._PEOPLE for held in checking._HELD]
    people = pl.DataFrame(rows, schema=["u", "k", "i"], orient="row")
    for query, figures in checking._BOUNDED:
        assert {key: row for (key,), row in bound(people, query).items()} == figures


@pytest.mark.parametrize("name", NAMES)
def test_a_right_database_is_not_refused(databases, name):
    ledger = dpf.Ledger(epsilon=1.0)
    dpf.release(databases.of(name, TABLE), n=dpf.count(), privacy_unit="row", epsilon=1.0, ledger=ledger, engine="sql")
