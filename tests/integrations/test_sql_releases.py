"""Releases of databases: rows or figures, from every connection, with what the check and the charge do."""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
from decimal import Decimal

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate
from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import ColumnError, DpfastError, LedgerError, ParameterError
from dpfast.integrations.sql import checking
from dpfast.queries import Measure

from .sql_databases import NAMES, adversarial

ROWS = pl.DataFrame({"u": ["p", "q", "q", "r", None] * 40, "k": ["a", "b", None, "a", "b"] * 40, "x": [1.0, 2.5] * 100})
KEYS = pl.DataFrame({"k": ["a", None, "z"]})
QUERIES = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 3)), "m": dpf.mean("x", bounds=(0, 3))}
UNIT = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 2}


def a_ledger():
    return dpf.Ledger(epsilon=1e6, delta=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["auto", "sql"])
def test_releases(databases, name, engine):
    database = databases.of(name, ROWS)
    asked = {"by": "k", "keys": KEYS, "epsilon": 9e5, **QUERIES, "engine": engine}
    released = dpf.release(database, ledger=a_ledger(), **{"privacy_unit": "row", **asked}).frame
    # A budget without bounds, almost: the noise rounds away.
    assert released["n"].to_list() == [80, 40, 0]
    assert [round(value, 3) for value in released["s"]] == [140.0, 70.0, 0.0]
    selected = dpf.release(database, "k", epsilon=0.5, delta=1e-9, ledger=a_ledger(), engine=engine, **QUERIES, **UNIT)
    assert selected.frame.height == 0  # three units are too few
    unit = dpf.release(database, ledger=a_ledger(), **asked, **UNIT).frame
    assert unit["n"].sum() in (4, 5, 6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT u, k, x FROM rides;",
        "  select * from rides -- all of them ;\n ; ",
        "/* a */ WITH a AS (SELECT * FROM rides) SELECT a.* FROM a WHERE 1 = 1",
        "(SELECT * FROM rides)",
        '"rides"',
        "a view",
        'SELECT x AS "; --", k, u, x FROM rides',
    ],
)
def test_names_and_queries(databases, name, query):
    databases.fill(name, ROWS)
    databases.connections[name].execute('CREATE VIEW "a view" AS SELECT * FROM rides')
    database = dpf.sql(databases.connections[name], query)
    frame = dpf.release(
        database, "k", keys=KEYS, epsilon=9e5, ledger=a_ledger(), engine="sql", **{"privacy_unit": "row", **QUERIES}
    ).frame
    assert frame["n"].to_list() == [80, 40, 0]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_would_be_statements(databases, name):
    hostile = ['"; DROP TABLE rides; --', "%s", "$1", "?", ":p1", "{0}", "é ü", "select", "a.b"]
    columns = [*hostile, "k0", "m0", "n", "v0", "u"]
    connection = databases.connections[name]
    table = 'rides"; DROP TABLE rides; --%s'
    for place, column in enumerate(columns):
        alias = column.replace('"', '""')
        stored = f'"{table.replace(chr(34), chr(34) * 2)}{place}"'
        connection.execute(f"CREATE TABLE {stored} AS SELECT CAST('a' AS TEXT) AS \"{alias}\"")
        keys = pl.DataFrame({column: ["a", "'; DROP TABLE rides; --", '"', "\\", "%s", "$1", "x\0y"]})
        asked = {"by": column, "keys": keys, "c": dpf.count(), "epsilon": 9e5, "engine": "sql"}
        unit = {"privacy_unit": column, "max_groups": 1, "max_rows_per_group": 1}
        for bounds in ({}, unit):
            released = dpf.release(
                dpf.sql(connection, stored), ledger=a_ledger(), **{"privacy_unit": "row", **asked, **bounds}
            )
            assert released.frame["c"].to_list() == [1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "query", ["nothing", "SELECT nothing FROM rides", "SELECT ? AS x", "SELECT $1 AS x", "SELECT 1; SELECT 2"]
)
def test_what_the_database_refuses_is_refused_before_the_charge(databases, name, query):
    databases.fill(name, ROWS)
    ledger = a_ledger()
    with pytest.raises(DpfastError, match=name):
        dpf.release(
            dpf.sql(databases.connections[name], query),
            n=dpf.count(),
            privacy_unit="row",
            epsilon=1.0,
            ledger=ledger,
            engine="sql",
        )
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("query", ["", " ", "a..b", ".a", "a.", 'a"b', "a\0b", '"a', "x" * 64])
def test_what_is_no_name_is_refused(databases, query):
    with pytest.raises(ParameterError):
        dpf.sql(databases.postgresql, query)
    with pytest.raises(ParameterError):
        dpf.sql(object(), "rides")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_that_are_one(databases, name):
    query = "SELECT x AS a, x AS a FROM rides" if name == "PostgreSQL" else "SELECT x AS a, x AS A FROM rides"
    database, ledger = databases.of(name, ROWS, query), a_ledger()
    # DuckDB and SQLite rename the second one.
    for column in ("a", "A") if name == "PostgreSQL" else ("A",):
        with pytest.raises(DpfastError, match=r"name|lacks|refuses"):
            dpf.release(
                database, s=dpf.sum(column, bounds=(0, 1)), privacy_unit="row", epsilon=1.0, ledger=ledger, engine="sql"
            )
    assert ledger.spent.epsilon == 0


def test_types_that_are_to_be_cast(databases):
    for name, query in (
        ("DuckDB", "SELECT 1.5::DECIMAL(19, 1) AS a, 'x'::UUID AS b WHERE false"),
        ("PostgreSQL", "SELECT 1.5 AS a, NULL::uuid AS b"),
        ("SQLite", "SELECT 1 + 1 AS a, x'00' AS b"),
    ):
        for column in ("a", "b"):
            with pytest.raises((ColumnError, DpfastError), match=r"cast|lacks|query"):
                dpf.plan(
                    dpf.sql(databases.connections[name], query),
                    keys=None,
                    s=dpf.sum(column, bounds=(0, 1)),
                    privacy_unit="row",
                    epsilon=1.0,
                    engine="sql",
                ).run(a_ledger())


def test_too_many_public_keys(databases, monkeypatch):
    monkeypatch.setattr("dpfast.integrations.sql.encoding.MOST_PUBLIC_KEYS", 2)
    for name in NAMES:
        ledger = a_ledger()
        asked = {"by": "k", "keys": KEYS, "n": dpf.count(), "epsilon": 1.0, "ledger": ledger, "engine": "sql", **UNIT}
        with pytest.raises(ParameterError, match=r'at most 2 keys.*engine="rows"'):
            dpf.release(databases.of(name, ROWS), **asked)
        assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change",
    [
        {"floor": "CAST({0} + 0.5 AS INTEGER)"},
        {"hashed": "length({0})"},
        {"double": "FLOAT"},
        {"is_nan": "1 = 0"},
    ],
    ids=str,
)
def test_a_database_that_differs_is_refused_before_the_charge(databases, name, change, monkeypatch):
    from dpfast.integrations.sql import duckdb_sessions, postgresql_sessions, sqlite_sessions

    if name == "SQLite" and change.keys() & {"double", "is_nan"}:
        pytest.skip("has neither NaN nor single precision")
    if name == "PostgreSQL" and "double" in change:
        change = {"double": "real"}
    module, session = {
        "DuckDB": (duckdb_sessions, "_Session"),
        "PostgreSQL": (postgresql_sessions, "_Session"),
        "SQLite": (sqlite_sessions, "_Session"),
    }[name]
    dialect = getattr(module, session).dialect
    monkeypatch.setattr(getattr(module, session), "dialect", dataclasses.replace(dialect, **change))
    ledger = a_ledger()
    with pytest.raises(DpfastError, match=r"otherwise than dpfast|refuses"):
        dpf.release(
            databases.of(name, ROWS), n=dpf.count(), privacy_unit="row", epsilon=1.0, ledger=ledger, engine="sql"
        )
    assert ledger.spent.epsilon == 0


def test_settings_of_collation(databases):
    """A default collation that merges keys: DuckDB compares bytes nevertheless."""
    databases.duckdb.execute("PRAGMA default_collation = NOCASE")
    databases.duckdb.execute("CREATE TABLE folded AS SELECT unnest(['a', 'A', 'a ']) AS k")
    databases.sqlite.execute("CREATE TABLE folded (k TEXT COLLATE NOCASE)")
    databases.sqlite.executemany("INSERT INTO folded VALUES (?)", [("a",), ("A",), ("a ",)])
    databases.postgresql.execute("CREATE TABLE folded (k text)")
    databases.postgresql.execute("INSERT INTO folded VALUES ('a'), ('A'), ('a ')")
    keys = pl.DataFrame({"k": ["a", "A", "a ", "A "]})
    for connection in databases.connections.values():
        for unit in ({}, {"privacy_unit": "k", "max_groups": 1, "max_rows_per_group": 1}):
            asked = {"by": "k", "keys": keys, "n": dpf.count(), "epsilon": 9e5, "engine": "sql"}
            released = dpf.release(
                dpf.sql(connection, "folded"), ledger=a_ledger(), **{"privacy_unit": "row", **asked, **unit}
            )
            assert released.frame["n"].to_list() == [1, 1, 1, 0]


def test_blanks_and_collations_of_postgresql(databases):
    connection = databases.postgresql
    connection.execute("CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    connection.execute("CREATE TABLE odd (c character(3), f text COLLATE folding, v varchar(5))")
    connection.execute("INSERT INTO odd VALUES ('a', 'a', 'a'), ('a ', 'A', 'a '), ('b', NULL, NULL)")
    for column, given in (("c", ["a  ", "a", "b  "]), ("f", ["a", "A", None]), ("v", ["a", "a ", None])):
        asked = {"by": column, "keys": pl.DataFrame({column: given}), "n": dpf.count(), "epsilon": 9e5, "engine": "sql"}
        expected = [2, 0, 1] if column == "c" else [1, 1, 1]
        for unit in ({}, {"privacy_unit": "c", "max_groups": 3, "max_rows_per_group": 3}):
            released = dpf.release(
                dpf.sql(connection, "odd"), ledger=a_ledger(), **{"privacy_unit": "row", **asked, **unit}
            )
            assert released.frame["n"].to_list() == expected


def test_values_of_another_kind_in_sqlite(databases):
    connection = databases.sqlite
    connection.execute("CREATE TABLE loose (i INTEGER, x REAL, s TEXT, u)")
    connection.executemany(
        "INSERT INTO loose VALUES (?, ?, ?, 1)",
        [
            (1, 1, "a"),
            ("text", "text", b"a"),
            (2.5, 2.5, None),
            (b"\x01", b"\x01", "a\0b"),
            (None, 1e999, "a"),
            (2**62, -2, 7),
        ],
    )
    connection.execute("INSERT INTO loose VALUES (1, 1, CAST(x'ff' AS TEXT), 1)")
    asked = {"i": dpf.sum("i", bounds=(0, 1000)), "x": dpf.sum("x", bounds=(-8, 8)), "n": dpf.count()}
    released = dpf.release(
        dpf.sql(connection, "loose"), epsilon=9e5, ledger=a_ledger(), engine="sql", **{"privacy_unit": "row", **asked}
    ).frame
    assert [round(float(value), 1) for value in released.select("i", "x", "n").row(0)] == [1002, 10.5, 7]
    keys = pl.DataFrame({"s": ["a", "a\0b", None, "7", "\ufffd"]})
    for unit in ({}, {"privacy_unit": "i", "max_groups": 3, "max_rows_per_group": 3}):
        asked = {"by": "s", "keys": keys, "n": dpf.count(), "epsilon": 9e5, "engine": "sql", **unit}
        found = dpf.release(dpf.sql(connection, "loose"), ledger=a_ledger(), **{"privacy_unit": "row", **asked}).frame
        # 2.5 is no whole number, and names no unit; a blob is no string, and 7 in a column of text is the text.
        assert found["n"].to_list() == ([2, 1, 2, 1, 0] if not unit else [1, 0, 0, 1, 0])
    with pytest.raises(ColumnError, match="u"):
        dpf.plan(dpf.sql(connection, "loose"), s=dpf.sum("u", bounds=(0, 1)), privacy_unit="row", epsilon=1.0)
    declared = dpf.sql(connection, "SELECT u + 1 AS v FROM loose", schema={"v": pl.Int64})
    total = (
        dpf.release(declared, s=dpf.sum("v", bounds=(0, 9)), privacy_unit="row", epsilon=9e5, ledger=a_ledger())
        .frame["s"]
        .item()
    )
    assert total == 14
    with pytest.raises(ParameterError, match="schema"):
        dpf.plan(
            dpf.sql(connection, "loose", schema={"none": pl.Int64}), n=dpf.count(), privacy_unit="row", epsilon=1.0
        )
    with pytest.raises(ParameterError, match="schema"):
        dpf.sql(connection, "loose", schema={"u": pl.Date})
    connection.row_factory = sqlite3.Row
    assert (
        dpf.release(declared, n=dpf.count(), privacy_unit="row", epsilon=9e5, ledger=a_ledger()).frame["n"].item() == 7
    )
    connection.text_factory = bytes
    with pytest.raises(ParameterError, match="text_factory"):
        dpf.plan(declared, n=dpf.count(), privacy_unit="row", epsilon=1.0)


def test_the_check_is_of_the_state_of_a_connection(databases, postgresql):
    import psycopg

    databases.fill("PostgreSQL", ROWS)
    ledger = a_ledger()
    with psycopg.connect(postgresql.url) as connection:
        connection.execute(f"SET search_path TO {databases.name}")
        plan = dpf.plan(dpf.sql(connection, "rides"), n=dpf.count(), privacy_unit="row", epsilon=1.0)
        with pytest.raises(psycopg.Error):
            connection.execute("nonsense")
        with pytest.raises(ParameterError, match=r"rollback"):
            plan.run(ledger)
        connection.rollback()
        connection.execute(f"SET search_path TO {databases.name}")
        connection.commit()
        plan.run(ledger)
        # What the release did is finished: nothing waits for a commit.
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        connection.read_only = True
        dpf.release(dpf.sql(connection, "rides"), n=dpf.count(), privacy_unit="row", epsilon=1.0, ledger=ledger)
        spent = ledger.spent.epsilon
        other = dpf.plan(dpf.sql(connection, "rides"), n=dpf.count(), privacy_unit="row", epsilon=1.0)
        databases.postgresql.execute("ALTER TABLE rides ADD COLUMN y integer")
        with pytest.raises(ParameterError, match="plan again"):
            other.run(ledger)
    with pytest.raises(ParameterError, match="closed"):
        plan = dpf.plan(dpf.sql(connection, "rides"), n=dpf.count(), privacy_unit="row", epsilon=1.0)
    assert ledger.spent.epsilon == spent


@pytest.mark.parametrize("name", ["DuckDB", "SQLite"])
def test_a_closed_connection(databases, name):
    plan = dpf.plan(databases.of(name, ROWS), n=dpf.count(), privacy_unit="row", epsilon=1.0, engine="sql")
    databases.connections[name].close()
    ledger = a_ledger()
    with pytest.raises(DpfastError, match=name):
        plan.run(ledger)
    assert ledger.spent.epsilon == 0


def test_a_statement_that_fails_after_the_charge_shows_no_value(databases):
    databases.fill("PostgreSQL", pl.DataFrame({"k": ["secret"], "x": [1.0]}))
    databases.postgresql.execute("CREATE VIEW failing AS SELECT k, CAST(k AS integer) AS x FROM rides")
    plan = dpf.plan(
        dpf.sql(databases.postgresql, "failing"), s=dpf.sum("x", bounds=(0, 1)), privacy_unit="row", epsilon=1.0
    )
    ledger = a_ledger()
    with pytest.raises(DpfastError) as caught:
        plan.run(ledger)
    error = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or error.__context__
    assert ledger.spent.epsilon == 1.0
    with pytest.raises(LedgerError):
        plan.run(ledger)
    # The connection is as it was.
    assert databases.postgresql.execute("SELECT 1").fetchone() == (1,)


def test_a_relation_of_duckdb(databases):
    databases.fill("DuckDB", ROWS)
    arrow = ROWS.to_arrow()
    for relation in (databases.duckdb.sql("SELECT * FROM rides"), databases.duckdb.from_arrow(arrow)):
        for engine in ("auto", "sql"):
            asked = {"by": "k", "keys": KEYS, "epsilon": 9e5, "engine": engine, **QUERIES}
            released = dpf.release(relation, ledger=a_ledger(), **{"privacy_unit": "row", **asked})
            assert released.frame["n"].to_list() == [80, 40, 0]
            dpf.release(relation, ledger=a_ledger(), **asked, **UNIT)
    frame = adversarial(50, 3)
    keys = frame.select("k").unique()
    relation = databases.duckdb.from_arrow(frame.to_arrow())
    asked = {"by": "k", "keys": keys, "n": dpf.count(), "epsilon": 9e5, "engine": "sql"}
    unit = {"privacy_unit": "n", "max_groups": 50, "max_rows_per_group": 50}
    released = dpf.release(relation, ledger=a_ledger(), **asked, **unit).frame
    counted = frame.filter(pl.col("n").is_not_null()).group_by("k").len()
    assert dict(released.select("k", "n").rows()) == dict.fromkeys(keys["k"], 0) | dict(counted.rows())


def test_tables_of_ibis(databases):
    ibis = pytest.importorskip("ibis")
    databases.fill("DuckDB", ROWS)
    databases.fill("SQLite", ROWS)
    for connection in (ibis.duckdb.from_connection(databases.duckdb), ibis.sqlite.from_connection(databases.sqlite)):
        rides = connection.table("rides")
        table = rides.filter(rides.x > 0).mutate(y=rides.x * 2)
        asked = {"keys": KEYS, "epsilon": 9e5, "s": dpf.sum("y", bounds=(0, 6)), "engine": "sql"}
        released = dpf.release(table, "k", ledger=a_ledger(), **{"privacy_unit": "row", **asked}).frame
        assert [round(value) for value in released["s"]] == [280, 140, 0]
    with pytest.raises(ParameterError, match="backend"):
        dpf.plan(ibis.table({"a": "int64"}, name="t"), n=dpf.count(), privacy_unit="row", epsilon=1.0)


def test_rows_by_adbc(databases, postgresql):
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    databases.fill("PostgreSQL", ROWS)
    with adbc.connect(postgresql.url) as connection:
        database = dpf.sql(connection, f"{databases.name}.rides")
        for unit in ({}, UNIT):
            released = dpf.release(
                database,
                "k",
                keys=KEYS,
                n=dpf.count(),
                epsilon=9e5,
                ledger=a_ledger(),
                **{"privacy_unit": "row", **unit},
            )
            assert unit or released.frame["n"].to_list() == [80, 40, 0]
        with pytest.raises(DpfastError, match="refuses"):
            dpf.plan(dpf.sql(connection, "none"), n=dpf.count(), privacy_unit="row", epsilon=1.0)
        with pytest.raises(ParameterError, match="engine"):
            dpf.plan(database, n=dpf.count(), privacy_unit="row", epsilon=1.0, engine="sql")


def test_releases_in_threads_that_share_a_connection(databases):
    frame = pl.DataFrame({"k": [i % 7 for i in range(300_000)]})
    databases.duckdb.register("many", frame.to_arrow())
    keys = pl.DataFrame({"k": list(range(7))})
    expected = frame.group_by("k").len().sort("k")["len"].to_list()
    found, errors = [], []

    def work(engine):
        try:
            asked = {"by": "k", "keys": keys, "n": dpf.count(), "epsilon": 9e5, "engine": engine}
            found.append(
                dpf.release(dpf.sql(databases.duckdb, "many"), ledger=a_ledger(), **{"privacy_unit": "row", **asked})
                .frame["n"]
                .to_list()
            )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(engine,)) for engine in ("rows", "sql") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert found == [expected] * 8


def test_the_table_of_constants_is_of_use():
    """The figures that a database must give are those that dpfast itself gives."""
    rows = [(place, x, None) for place, x in enumerate(checking._FLOATS)]
    rows += [(100 + place, None, i) for place, i in enumerate(checking._INTEGERS)]
    frame = pl.DataFrame(rows, schema={"row": pl.Int64, "x": pl.Float64, "i": pl.Int64}, orient="row")
    found = aggregate(frame, Grouping(("row",)), checking._NUMBERS, lambda number: None)
    places = found.keys["row"].to_list()
    for place, x, i in rows:
        ours = [int(measure[places.index(place)]) for measure in found.measures]
        assert ours == [checking._contribution(measure, x, i) for measure in checking._NUMBERS]


def test_connections_that_may_only_read(databases, tmp_path):
    import duckdb

    with duckdb.connect(tmp_path / "a.duckdb") as writing:
        writing.execute("CREATE TABLE rides AS SELECT 'a' AS k, 1.0::DOUBLE AS x")
    with sqlite3.connect(tmp_path / "a.sqlite") as writing:
        writing.execute("CREATE TABLE rides (k TEXT, x REAL)")
        writing.execute("INSERT INTO rides VALUES ('a', 1.0)")
    databases.fill("PostgreSQL", pl.DataFrame({"k": ["a"], "x": [1.0]}))
    databases.postgresql.execute("SET default_transaction_read_only = on")
    reading = duckdb.connect(tmp_path / "a.duckdb", read_only=True)
    asked = {"by": "k", "keys": KEYS, "n": dpf.count(), "epsilon": 9e5, "engine": "sql"}
    unit = {"privacy_unit": "x", "max_groups": 1, "max_rows_per_group": 1}
    for connection in (reading, sqlite3.connect(f"file:{tmp_path}/a.sqlite?mode=ro", uri=True), databases.postgresql):
        query = "SELECT k, CAST(x AS INTEGER) AS x FROM rides"
        schema = {"x": pl.Int64} if isinstance(connection, sqlite3.Connection) else None
        database = dpf.sql(connection, query, schema=schema)
        assert dpf.release(database, ledger=a_ledger(), **asked, **unit).frame["n"].to_list() == [1, 0, 0]
    reading.close()
    databases.postgresql.execute("SET default_transaction_read_only = off")


def test_integers_beyond_int64_and_enumerations_of_duckdb(databases):
    databases.duckdb.execute(
        "CREATE TABLE wide AS SELECT unnest([0, 18446744073709551615, 9223372036854775808, NULL]::UBIGINT[]) AS a, "
        "unnest(['x', 'y', 'x', NULL]::ENUM('x', 'y')[]) AS e, 1::HUGEINT AS h, 1.5 AS d"
    )
    given = pl.Series([0, 2**64 - 1, 2**63, None], dtype=pl.UInt64)
    for engine in ("sql", "rows"):
        database = dpf.sql(databases.duckdb, "wide")
        asked = {"n": dpf.count(), "epsilon": 9e5, "engine": engine}
        for unit in ({}, {"privacy_unit": "a", "max_groups": 2, "max_rows_per_group": 2}):
            frame = dpf.release(
                database,
                "a",
                keys=pl.DataFrame({"a": given}),
                ledger=a_ledger(),
                **{"privacy_unit": "row", **asked, **unit},
            ).frame
            assert frame["n"].to_list() == [1, 1, 1, 0 if unit else 1]
        keys = pl.DataFrame({"e": ["x", "y", None]})
        by_row = {"privacy_unit": "row", **asked}
        assert dpf.release(database, "e", keys=keys, ledger=a_ledger(), **by_row).frame["n"].to_list() == [2, 1, 1]
        by_row.pop("n")
        summed = dpf.plan(database, s=dpf.sum("d", bounds=(0, 2)), **by_row)
        assert summed.run(a_ledger()).frame["s"].to_list() == [Decimal(6)]
        wide, ledger = dpf.plan(database, s=dpf.sum("h", bounds=(0, 1)), **by_row), a_ledger()
        if engine == "sql":
            with pytest.raises(ColumnError, match="cast it"):
                wide.run(ledger)
            assert ledger.spent.epsilon == 0
        else:
            assert wide.run(ledger).frame.schema["s"] == pl.Decimal(38, 0)
    measures = tuple(Measure("sum", "a", shift, 0, 2**23, 1) for shift in (-3, 0, 1, 41, 62, 63, 64, 65, 66))
    frame = pl.DataFrame({"a": given})
    ours = aggregate(frame, Grouping(()), measures, lambda number: None).measures
    query = GroupQuery((), measures)
    theirs = pl.DataFrame(dpf.sql(databases.duckdb, "wide").engine().aggregate(query)).select(
        pl.selectors.starts_with("m")
    )
    assert [int(one[0]) for one in ours] == list(theirs.row(0))
