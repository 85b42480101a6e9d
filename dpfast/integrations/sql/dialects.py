"""How four engines write the same thing: the words in which their SQL differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

__all__ = ["DIALECTS", "DUCKDB", "POSTGRESQL", "SPARK", "SQLITE", "Dialect", "Kind", "kind_of"]

Kind: TypeAlias = Literal["integer", "unsigned", "boolean", "decimal", "float", "string", "date", "timestamp"]
"""What a column holds: ``"unsigned"`` is an integer that may lie beyond int64, ``"decimal"`` has at most 18 digits."""

_MOST_DIGITS = 18


def kind_of(dtype: pl.DataType) -> Kind | None:
    """Return what a column of this dtype holds, or None if SQL has no use for it."""
    if dtype == pl.UInt64:
        return "unsigned"
    if dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128):
        return "integer"
    if dtype in (pl.Float32, pl.Float64):
        return "float"
    if isinstance(dtype, pl.Decimal):
        return "decimal" if dtype.precision is not None and dtype.precision <= _MOST_DIGITS else None
    if isinstance(dtype, pl.Datetime):
        return "timestamp" if dtype.time_unit == "us" else None
    kinds: dict[type[pl.DataType], Kind] = {pl.Boolean: "boolean", pl.String: "string", pl.Date: "date"}
    return kinds.get(type(dtype))


@dataclass(frozen=True)
class Dialect:
    """One engine's words; in each, ``{0}`` stands for what they are about.

    Attributes
    ----------
    name
        The engine's name.
    marker
        A bound parameter, by its number from 1.
    quote
        The character around an identifier, doubled inside.
    joins
        What follows SELECT where rows are joined to the public keys, in the table ``dpf_public``.
    by_unit
        What follows SELECT where rows that have a unit are read, with a place for the number of partitions.
    bigint, double, text
        The names of int64, float64 and of strings.
    values
        From a column to the value that is grouped, compared and computed with, by the column's kind: integers,
        Booleans, dates (days since 1970), timestamps (microseconds since 1970) and decimals (last places, ``{2}`` after
        the point, of which ``{1}`` are 1) as int64, floats as float64, strings as what is compared by its bytes alone,
        whatever the column's collation.
    decoded
        From such a string to text that can be joined to other text.
    length
        The number of bytes of such a string.
    shown
        From such a string to what the result holds.
    empty
        Such a string without bytes.
    constant
        From hexadecimal digits to the string whose UTF-8 they are.
    folds_case
        Whether names of columns that differ by case alone are one name.
    is_nan
        Whether a float64 is NaN; empty where NaN is null.
    floor
        The largest int64 that is not above a float64 within 2**53.
    divided
        ``{0}`` divided by ``{1}``, both int64, without a rest.
    hashed
        From text to the first 60 bits of its md5 as int64.
    materialized
        What makes a common table expression be evaluated once; empty if nothing does, and then none is used twice.
    public
        Which form public keys are passed in: one array a column, or one JSON text.

    """

    name: str
    marker: str
    bigint: str
    double: str
    text: str
    values: dict[Kind, str]
    decoded: str
    length: str
    shown: str
    empty: str
    constant: str
    is_nan: str
    floor: str
    divided: str
    hashed: str
    materialized: str
    public: Literal["duckdb", "postgresql", "sqlite", "spark"]
    folds_case: bool = True
    quote: str = '"'
    joins: str = ""
    by_unit: str = ""

    def identifier(self, name: str) -> str:
        """Return a quoted identifier."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote


# Infinity is the largest number, as it is where DuckDB hands over rows; the least int64 is no literal.
_MOST_DAYS, _MOST_MICROSECONDS = 2**31 - 1, 2**63 - 1
_INFINITE = f"WHEN {{0}} = 'infinity' THEN {_MOST_MICROSECONDS} WHEN {{0}} = '-infinity' THEN -{_MOST_MICROSECONDS}"
_INFINITE_DAYS = f"WHEN {{0}} = 'infinity' THEN {_MOST_DAYS} WHEN {{0}} = '-infinity' THEN -{_MOST_DAYS}"
# PostgreSQL's LEAST leaves out what is null.
_MICROSECONDS = f"LEAST(EXTRACT(EPOCH FROM {{0}}) * 1000000, {_MOST_MICROSECONDS})"

DUCKDB = Dialect(
    name="DuckDB",
    marker="${0}",
    bigint="BIGINT",
    double="DOUBLE",
    text="VARCHAR",
    values={
        "integer": "CAST({0} AS BIGINT)",
        "unsigned": "CAST({0} AS UBIGINT)",
        "boolean": "CAST({0} AS BIGINT)",
        # A product of 18 digits would overflow.
        "decimal": "CAST(CAST({0} AS DECIMAL(38, {2})) * {1} AS BIGINT)",
        "float": "CAST({0} AS DOUBLE)",
        "string": "encode({0})",
        # Of infinities these are 2**31 - 1 and -(2**31 - 1).
        "date": "CAST({0} - DATE '1970-01-01' AS BIGINT)",
        "timestamp": f"CASE {_INFINITE} ELSE epoch_us({{0}}) END",
    },
    decoded="decode({0})",
    length="octet_length({0})",
    shown="decode({0})",
    empty="encode('')",
    constant="decode(unhex('{0}'))",
    is_nan="isnan({0})",
    floor="CAST(floor({0}) AS BIGINT)",
    divided="({0}) // ({1})",
    hashed="CAST('0x' || substr(md5({0}), 1, 15) AS BIGINT)",
    materialized=" MATERIALIZED",
    public="duckdb",
)

POSTGRESQL = Dialect(
    name="PostgreSQL",
    marker="${0}",
    bigint="bigint",
    double="double precision",
    text="text",
    values={
        "integer": "CAST({0} AS bigint)",
        "boolean": "CAST(CAST({0} AS integer) AS bigint)",
        # A cast of NaN raises.
        "decimal": "CASE WHEN {0} <> CAST('NaN' AS numeric) THEN CAST({0} * {1} AS bigint) END",
        "float": "CAST({0} AS double precision)",
        # concat keeps the blanks of character(n), which a cast drops, and makes '' of null.
        "string": 'CASE WHEN {0} IS NOT NULL THEN concat({0}) COLLATE "C" END',
        # Arithmetic on infinity raises, and the last timestamps lie beyond int64: they are like infinity.
        "date": f"CAST(CASE {_INFINITE_DAYS} ELSE {{0}} - DATE '1970-01-01' END AS bigint)",
        "timestamp": f"CASE {_INFINITE} WHEN {{0}} IS NOT NULL THEN CAST({_MICROSECONDS} AS bigint) END",
    },
    decoded="{0}",
    length="octet_length({0})",
    shown="{0}",
    empty="''",
    constant="convert_from(decode('{0}', 'hex'), 'UTF8')",
    is_nan="{0} = CAST('NaN' AS double precision)",
    floor="CAST(floor({0}) AS bigint)",
    divided="({0}) / ({1})",
    hashed="CAST(CAST('x0' || substr(md5({0}), 1, 15) AS bit(64)) AS bigint)",
    materialized=" MATERIALIZED",
    public="postgresql",
    folds_case=False,
)

SQLITE = Dialect(
    name="SQLite",
    marker="?{0}",
    bigint="INTEGER",
    double="REAL",
    text="TEXT",
    # A column may hold values of any kind: those of another one than declared are null.
    values={
        "integer": "CASE WHEN typeof({0}) = 'integer' THEN {0} END",
        "boolean": "CASE WHEN typeof({0}) = 'integer' THEN {0} END",
        "float": "CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) END",
        "string": "CASE WHEN typeof({0}) = 'text' THEN CAST({0} AS BLOB) END",
    },
    decoded="{0}",
    length="length({0})",
    shown="{0}",
    empty="x''",
    constant="CAST(x'{0}' AS TEXT)",
    is_nan="",
    floor="(CAST({0} AS INTEGER) - ({0} < CAST({0} AS INTEGER)))",
    divided="({0}) / ({1})",
    hashed="dpfast_md5(CAST({0} AS BLOB))",
    materialized=" MATERIALIZED",
    public="sqlite",
)

SPARK = Dialect(
    name="Spark",
    marker=":p{0}",
    bigint="BIGINT",
    double="DOUBLE",
    text="STRING",
    values={
        "integer": "CAST({0} AS BIGINT)",
        "boolean": "CAST(CAST({0} AS INT) AS BIGINT)",
        "decimal": "CAST({0} * CAST({1} AS DECIMAL(19, 0)) AS BIGINT)",
        "float": "CAST({0} AS DOUBLE)",
        "string": "CAST({0} AS BINARY)",
        "date": "CAST(datediff({0}, DATE '1970-01-01') AS BIGINT)",
        "timestamp": "unix_micros({0})",
    },
    decoded="CAST({0} AS STRING)",
    length="octet_length({0})",
    shown="{0}",
    empty="X''",
    constant="CAST(unhex('{0}') AS STRING)",
    is_nan="isnan({0})",
    floor="CAST(floor({0}) AS BIGINT)",
    divided="({0}) div ({1})",
    hashed="CAST(conv(substr(md5(CAST({0} AS BINARY)), 1, 15), 16, 10) AS BIGINT)",
    materialized="",
    public="spark",
    quote="`",
    # Else the rows might be collected by the driver, to be sent to all.
    joins=" /*+ BROADCAST(dpf_public) */",
    # One shuffle serves all that follows until groups are summed, since that counts and orders within a unit.
    by_unit=" /*+ REPARTITION({0}, u) */",
)

DIALECTS = (DUCKDB, POSTGRESQL, SQLITE, SPARK)
