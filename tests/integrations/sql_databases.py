"""The same rows in three databases, and what of them a bounding must keep, written from its description alone."""

from __future__ import annotations

import hashlib
import math
import random
import sqlite3
from contextlib import ExitStack
from fractions import Fraction
from functools import cached_property

import duckdb
import polars as pl
import psycopg

import dpfast as dpf
from dpfast.queries import Bins, Measure, matches_measure, product_measure
from tests.rows.filters import passes

NAMES = ("DuckDB", "PostgreSQL", "SQLite")
_TYPES = {
    pl.Int64: ("BIGINT", "bigint", "INTEGER"),
    pl.Int16: ("SMALLINT", "smallint", "INTEGER"),
    pl.Float64: ("DOUBLE", "double precision", "REAL"),
    pl.Float32: ("FLOAT", "real", "REAL"),
    pl.String: ("VARCHAR", "text", "TEXT"),
    pl.Boolean: ("BOOLEAN", "boolean", "BOOLEAN"),
    pl.Date: ("DATE", "date", None),
    pl.Datetime: ("TIMESTAMP", "timestamp", None),
    pl.Decimal: ("DECIMAL(9, 2)", "numeric(9, 2)", None),
}


class _Connections(dict):
    def __missing__(self, name):
        assert name == "PostgreSQL"
        return self.missing()


class Databases(ExitStack):
    """Connections of a test's own; in PostgreSQL a schema that is dropped."""

    def __init__(self, url):
        super().__init__()
        self._url = url
        self.duckdb = self.enter_context(duckdb.connect())
        self.sqlite = sqlite3.connect(":memory:")
        self.callback(self.sqlite.close)
        self.connections = _Connections(DuckDB=self.duckdb, SQLite=self.sqlite)
        self.connections.missing = lambda: self.postgresql

    @cached_property
    def name(self):
        """The schema in PostgreSQL."""
        return f"test_{random.SystemRandom().randrange(2**40)}"

    @cached_property
    def postgresql(self):
        """A connection to the server, which is started by the first test that needs it."""
        connection = self.enter_context(psycopg.connect(self._url(), autocommit=True))
        connection.execute(f"CREATE SCHEMA {self.name}")
        connection.execute(f"SET search_path TO {self.name}")
        self.callback(lambda: connection.execute(f"DROP SCHEMA {self.name} CASCADE"))
        return connection

    def fill(self, name, frame, table="rides"):
        """Write a frame into a table."""
        connection = self.connections[name]
        place = NAMES.index(name)
        columns = ", ".join(
            f'"{column}" {_TYPES[dtype if isinstance(dtype, type) else type(dtype)][place]}'
            for column, dtype in frame.schema.items()
        )
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')
        connection.execute(f'CREATE TABLE "{table}" ({columns})')
        if name == "DuckDB":
            connection.register("given", frame.to_arrow())
            connection.execute(f'INSERT INTO "{table}" SELECT * FROM given')
            connection.unregister("given")
        elif name == "SQLite":
            marks = ", ".join("?" * frame.width)
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', frame.rows())
        else:
            with connection.cursor().copy(f'COPY "{table}" FROM STDIN') as copy:
                for row in frame.iter_rows():
                    copy.write_row(row)

    def of(self, name, frame, query="rides"):
        """Return a database that holds the frame."""
        self.fill(name, frame)
        return dpf.sql(self.connections[name], query)


NAN, INF = float("nan"), float("inf")
FLOATS = (0.5, 1.5, 2.5, -0.5, -2.5, 0.25, 2.5000000000000004, 0.49999999999999994, -0.0, 5e-324, 2e-308, 1e308, -1e308)
FLOATS += (INF, -INF, NAN, None, 3.7, -11.25, 1e15)
INTEGERS = (0, 1, -1, 3, 5, 6, -6, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), None)
STRINGS = (
    "a",
    "A",
    "a ",
    "",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "01",
    "1",
    "%s",
    "$1",
    "?",
    "'; DROP TABLE rides; --",
    '"',
    None,
)


def adversarial(rows, seed, *, strings=STRINGS, units=("p", "P", "p ", "é", "", "'", None)):
    """Return rows of what databases disagree about."""
    generator = random.Random(seed)
    return pl.DataFrame(
        {
            "u": [generator.choice(units) for _ in range(rows)],
            "n": [generator.choice([*range(12), None]) for _ in range(rows)],
            "k": [generator.choice(strings) for _ in range(rows)],
            "j": [generator.choice(INTEGERS) for _ in range(rows)],
            "i": [generator.choice(INTEGERS) for _ in range(rows)],
            "x": [generator.choice(FLOATS) for _ in range(rows)],
            "f": [generator.choice([0.1, 2.5, -1.5, None]) for _ in range(rows)],
            "b": [generator.choice([True, False, None]) for _ in range(rows)],
        },
        schema={
            "u": pl.String,
            "n": pl.Int64,
            "k": pl.String,
            "j": pl.Int64,
            "i": pl.Int64,
            "x": pl.Float64,
            "f": pl.Float32,
            "b": pl.Boolean,
        },
    )


X, K = dpf.column("x"), dpf.column("k")
MEASURES = (
    Measure("rows"),
    Measure("values", "x"),
    Measure("values", "k"),
    Measure("sum", "x", 0, -10, 10, 0),
    Measure("sum", "x", -3, -10, 100, 20),
    Measure("sum", "x", -40, 0, 2**24 - 1, 0),
    Measure("sum", "x", 1001, -(2**22), 2**22, 0),
    Measure("sum", "f", -20, -(2**22), 2**22, 0),
    Measure("sum", "i", 0, -5, 5, 0),
    Measure("sum", "i", 1, -5, 5, 1),
    Measure("sum", "i", 40, -(2**23), 2**23, 0),
    Measure("sum", "i", 62, -5, 5, 0),
    Measure("sum", "i", 63, -5, 5, 1),
    Measure("sum", "i", 64, -5, 5, 0),
    Measure("sum", "i", -2, -5, 7, 0),
    Measure("sum", "i", -70, 0, 7, 0),
    Measure("sum", "b", 0, 0, 1, 0),
    Measure("units"),
    Measure("sum", "x", -3, -10, 100, 20, given=("i", "k")),
    Measure("values", "b", given=("x",)),
    matches_measure(dpf.proportion("x", above=0.25).condition),
    matches_measure(dpf.proportion("x", above=1e308).condition),
    matches_measure(dpf.proportion("i", at_least=-1.5, below=2**62).condition),
    matches_measure(dpf.proportion("i", above=2**63 - 1).condition),
    matches_measure(dpf.proportion("i", at_least=-(2**63), at_most=3).condition),
    matches_measure(dpf.proportion("f", at_most=2.5).condition),
    matches_measure(dpf.proportion("i", among=[3, -(2**63), 2**63 - 1, 4]).condition),
    matches_measure(dpf.proportion("k", among=["a", "é", "", "'; DROP TABLE rides; --", "no\0ne"]).condition),
    matches_measure((X > 0.25) & ~K.is_in(["a", "no\0ne"]) | (dpf.column("i") != 3) & ~dpf.column("b").is_null()),
    Measure("passes", condition=~(X > 0.25) | (K < "b\0") & ~(K <= "a\0a") | K.is_null()),
    Measure("passes", "i", condition=(X != 0.25) | (K != "a\0")),
    *(
        product_measure(Measure("sum", *one), Measure("sum", *other))
        for one, other in [
            (("x", -20, -(2**22), 2**22, 5), ("x", -20, -(2**22), 2**22, 5)),
            (("i", 0, -3, 9, 3), ("i", 0, -3, 9, 3)),
            (("i", -20, -(2**23), 2**23, 0), ("x", -3, -10, 100, 20)),
            (("f", -21, -(2**23), 2**22, 7), ("i", 40, -(2**23), 2**23, 0)),
        ]
    ),
)


#: What units contribute, of values that cancel, that their sums leave int64 by, and far beyond the bounds.
UNIT_MEASURES = (
    Measure("unit_sum", "x", 0, -10, 10, factors=(Measure("addend", "x", -11, -(2**47), 2**47),)),
    Measure("unit_sum", "x", -3, 2, 2**24 - 1, factors=(Measure("addend", "x", -14, -(2**47), 2**47),)),
    Measure("unit_sum", "i", 0, -5, 5, factors=(Measure("addend", "i", 0, -(2**47), 2**47),)),
    Measure("unit_sum", "i", 40, -(2**23), 2**23, factors=(Measure("addend", "i", 29, -(2**47), 2**47),)),
    Measure("unit_sum", "f", -20, -(2**22), 2**22, factors=(Measure("addend", "f", -31, -(2**47), 2**47),)),
    Measure("unit_mean", "x", -3, -10, 100, 20, factors=(Measure("sum", "x", -3, -10, 100, 20),)),
    Measure("unit_mean", "i", 0, -5, 5, -5, factors=(Measure("sum", "i", 0, -5, 5, -5),)),
    Measure("unit_mean", "f", -20, -(2**22), 2**22, 0, factors=(Measure("sum", "f", -20, -(2**22), 2**22),)),
    Measure("unit_values", "x"),
    Measure("unit_values", "k"),
)


def is_missing(value):
    return value is None or value != value


SCHEMA = pl.Schema({"x": pl.Float64, "f": pl.Float32, "i": pl.Int64, "k": pl.String, "b": pl.Boolean})


def contribution(measure, row):
    """Return what a row adds, in fractions."""
    if measure.kind == "rows":
        return 1
    if any(is_missing(row[name]) for name in measure.needed):
        return 0
    if measure.kind == "values":
        return 1
    if measure.condition is not None:
        return measure.extremes[passes(measure.condition, row, SCHEMA)]
    value = row[measure.column]
    if measure.kind == "product":
        one, other = (contribution(factor, row) for factor in measure.factors)
        half = Fraction(1, 2) if measure.shift else 0
        return math.floor(Fraction(one * other, 2**measure.shift) + half) - measure.centre
    if isinstance(value, float) and math.isinf(value):
        steps = measure.upper if value > 0 else measure.lower
    else:
        steps = round(Fraction(value) / Fraction(2) ** measure.step_exponent)
    return min(max(steps, measure.lower), measure.upper) - measure.centre


def unit_contribution(measure, rows):
    """Return what a unit adds to a group in which it has these rows, in fractions."""
    rows = [row for row in rows if not is_missing(row[measure.column])]
    if not rows or measure.kind == "unit_values":
        return int(bool(rows))
    (factor,) = measure.factors
    total = Fraction(sum(contribution(factor, row) for row in rows))
    half = Fraction(1, 2)
    if measure.kind == "unit_mean":
        return math.floor(total / len(rows) + half)
    shift = measure.step_exponent - factor.step_exponent
    return min(max(math.floor(total / 2**shift + (half if shift else 0)), measure.lower), measure.upper)


def encoded(value):
    if value is None:
        return b"n"
    if isinstance(value, str):
        return str(len(value.encode())).encode() + b":" + value.encode()
    return str(int(value)).encode() + b";"


def hashed(salt, label, *values):
    text = salt.hex().encode() + label + b"".join(map(encoded, values))
    return int(hashlib.md5(text).hexdigest()[:15], 16)


def key_of(entry, row):
    if not isinstance(entry, Bins):
        return row[entry]
    value = row[entry.column]
    if value is None or value != value:
        return None
    place = sum(edge <= float(value) for edge in entry.edges) - 1
    return place if 0 <= place < len(entry.labels) else None


class Contributions:
    """What each row of a frame adds to measures: worked out once for all queries, by far the most of their time."""

    def __init__(self, frame):
        self.rows = frame.rows(named=True)
        self._found = {}

    def of(self, measure):
        """Return what every row adds."""
        # By identity, which the measure beside it keeps: equal fractions of different types need not hash alike.
        if id(measure) not in self._found:
            none = measure.of_units or measure.kind == "units"
            self._found[id(measure)] = measure, [0 if none else contribution(measure, row) for row in self.rows]
        return self._found[id(measure)][1]


def bound(frame, query, contributions=None):
    """Return the groups of a `GroupQuery` with a unit, as a dict from keys to figures.

    Several queries of one frame may share its `Contributions`.
    """
    public = None if query.public is None else set(query.public.rows())
    pairs, whole = {}, {}
    contributions = contributions or Contributions(frame)
    all_added = list(zip(*map(contributions.of, query.measures), strict=True))
    for row, added in zip(contributions.rows, all_added, strict=True):
        unit, keys = row[query.unit], tuple(key_of(entry, row) for entry in query.keys)
        if unit is None or (public is not None and keys not in public):
            continue
        pairs.setdefault(unit, {}).setdefault(keys, []).append(added)
        whole.setdefault((unit, keys), []).append(row)
    groups = {}

    def order(keys):
        return [(key is not None, key.encode() if isinstance(key, str) else key or 0) for key in keys]

    def kept(items, most, offset):
        count = len(items)
        return [item for place, item in enumerate(items) if count <= most or (place * most + offset) % count < most]

    for unit, held in pairs.items():
        for keys in kept(sorted(held, key=order), query.max_groups, hashed(query.salt, b"g", unit)):
            offset = hashed(query.salt, b"r", unit, *(keys or (0,)))
            sums = [measure.kind not in ("rows", "units") and not measure.of_units for measure in query.measures]
            rows = sorted(held[keys], key=lambda row: [value for value, used in zip(row, sums, strict=True) if used])
            figures = groups.setdefault(keys, [0] * (1 + len(query.measures)))
            figures[0] += 1
            for place, measure in enumerate(query.measures):
                figures[1 + place] += measure.kind == "units"
                if measure.of_units:
                    figures[1 + place] += unit_contribution(measure, whole[unit, keys])
            for row in kept(rows, query.max_rows_per_group, offset):
                for place, value in enumerate(row):
                    figures[1 + place] += value
    return {keys: tuple(figures) for keys, figures in groups.items()}


def groups_of(table, query):
    """Return an engine's answer in the same form."""
    frame = pl.DataFrame(table)
    keys = [f"key{i}" for i in range(len(query.keys))]
    figures = ["units", *(f"measure{i}" for i in range(len(query.measures)))]
    rows = frame.select(*keys, *figures).rows()
    found = {row[: len(keys)]: row[len(keys) :] for row in rows}
    assert len(found) == len(rows)
    return found
