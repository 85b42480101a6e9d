"""One query for every engine: what each privacy unit contributes is bounded (`bounding`), then groups are summed.

Values never meet the statement's text: column names are quoted, and keys, floats and the salt are bound. Only integers
that are computed here from public parameters are written out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from dpfast.aggregation.keys import column_of
from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import ColumnError
from dpfast.integrations.sql.bounding import Bounding
from dpfast.integrations.sql.calendars import calendar_part, within_calendar
from dpfast.integrations.sql.contributions import bin_number, contribution
from dpfast.integrations.sql.dialects import Dialect, Kind, kind_of
from dpfast.integrations.sql.encoding import public_keys
from dpfast.integrations.sql.filters import passes
from dpfast.integrations.sql.parameters import Parameters
from dpfast.integrations.sql.unit_figures import UnitFigure
from dpfast.queries import Bins
from dpfast.rows.calendars import Calendar

__all__ = ["Statement", "kind_in", "write"]

#: Stands for the source, while the names of tables are not chosen.
_SOURCE = "dpf_values_of_source"
#: Measures that are counted in any case: their columns of groups.
_COUNTED = {"rows": "n", "units": "units"}


@dataclass(frozen=True)
class Statement:
    """A query with the values that are bound to it.

    Attributes
    ----------
    sql
        One statement. Its result has the columns ``key0``, ..., ``units``, ``measure0``, ...
    parameters
        What is bound, in the order of the markers' numbers.
    kinds
        What each key is: dates are days and timestamps microseconds since 1970, decimals last places, Booleans 0 and
        1, strings text or their UTF-8.
    figures
        How many columns follow the keys.

    """

    sql: str
    parameters: list[Any]
    kinds: tuple[Kind, ...]
    figures: int = 1

    def frame(self, rows: Sequence[tuple[Any, ...]], *, strings: pl.DataType) -> pl.DataFrame:
        """Return the rows of the result as a frame, strings being of this dtype."""
        columns = list(zip(*rows, strict=True)) or [() for _ in range(len(self.kinds) + self.figures)]
        dtypes = [strings if kind == "string" else pl.Int64() for kind in self.kinds] + [pl.Int64()] * self.figures
        names = [
            *(f"key{i}" for i in range(len(self.kinds))),
            "units",
            *(f"measure{i}" for i in range(self.figures - 1)),
        ]
        series = zip(names, columns, dtypes, strict=True)
        return pl.DataFrame([pl.Series(name, column, dtype=dtype) for name, column, dtype in series])


def write(
    dialect: Dialect,
    source: str,
    schema: Mapping[str, pl.DataType],
    query: GroupQuery,
    *,
    written: bool = False,
    partitions: int = 1,
) -> Statement:
    """Return the statement that computes a `GroupQuery`.

    Parameters
    ----------
    dialect
        The engine's words.
    source
        SQL that may follow FROM, without a name: a quoted table, or a query in parentheses.
    schema
        The dtypes of the source's columns, at least of those that the query names.
    query
        What is computed.
    written
        Whether values are written into the statement, and not bound to it; see `Parameters`.
    partitions
        Into how many parts a cluster deals out the units.

    Raises
    ------
    ColumnError
        If a column is missing or of a dtype that the engine cannot be asked about.
    ParameterError
        If there are too many public keys or edges.

    """
    parameters = Parameters(dialect, written=written)
    # From a column's name, and whether only what calendars show of it is wanted, to what stands for its values.
    values: dict[tuple[str, bool], str] = {}

    def use(name: str, *, shown: bool = False) -> tuple[str, Kind, pl.DataType]:
        """Return the column of values of this name, what it holds, and its dtype."""
        kind = kind_in(dialect, name, schema.get(name))
        return values.setdefault((name, shown), f"v{len(values)}"), kind, schema[name]

    columns, kinds, sums, figures = [], [], [], []
    for i, key in enumerate(query.keys):
        column, kind, dtype = use(column_of(key), shown=isinstance(key, Calendar))
        if isinstance(key, Bins):
            column, kind = bin_number(key, column, dtype, dialect, parameters), "integer"
        elif isinstance(key, Calendar):
            column, kind = calendar_part(key, column, kind, dtype, dialect)
        columns.append(f"{column} AS k{i}")
        kinds.append(kind)
    for i, measure in enumerate(query.measures):
        if measure.of_units:
            figures.append(UnitFigure(measure, f"m{i}", dialect))
            columns += figures[-1].of_rows(pl.Schema(schema), use, parameters)
        elif measure.kind not in _COUNTED:
            columns.append(f"{contribution(measure, pl.Schema(schema), use, dialect, parameters)} AS m{i}")
            sums.append(f"m{i}")
    if not query.keys:
        columns.append(f"CAST(0 AS {dialect.bigint}) AS k0")
        kinds.append("integer")
    unit_kind: Kind | None = None
    conditions = []
    if query.unit is not None:
        column, unit_kind, _ = use(query.unit)
        columns.append(f"{column} AS u")
        conditions.append(f"{column} IS NOT NULL")
    if query.where is not None:
        conditions.append(passes(query.where, pl.Schema(schema), use, dialect, parameters))
    condition = f"\n  WHERE {' AND '.join(conditions)}" if conditions else ""
    inner = [
        f"{_value(dialect, kind_in(dialect, name, schema[name]), name, schema[name], shown=shown)} AS {alias}"
        for (name, shown), alias in values.items()
    ]
    selected = ", ".join(inner) or "1 AS v0"
    values_of_source = f"(SELECT {selected}\n  FROM {source} AS dpf_source) AS dpf_values"
    dealt = "" if query.unit is None else dialect.by_unit.format(partitions)
    rows = f"  SELECT{dealt} {', '.join(columns)}\n  FROM {_SOURCE}{condition}"
    names = [f"k{i}" for i in range(len(kinds))]
    if query.unit is None or unit_kind is None:
        tables = [("dpf_rows", rows, False), ("dpf_groups", _group(names, sums), False)]
        return _finish(dialect, query, parameters, kinds, tables, values_of_source)
    salt = parameters.bind(query.salt.hex(), "text")
    limits = query.max_groups, query.max_rows_per_group
    bounding = Bounding(dialect, names, kinds, sums, unit_kind, salt, *limits, figures)
    public = None if query.public is None else public_keys(query.public, kinds, dialect, parameters)
    tables = [("dpf_rows", rows, bool(sums)), *bounding.tables(public)]
    return _finish(dialect, query, parameters, kinds, tables, values_of_source)


def kind_in(dialect: Dialect, name: str, dtype: pl.DataType | None) -> Kind:
    """Return what a column of this name and dtype holds.

    Raises
    ------
    ColumnError
        The engine cannot be asked about it.

    """
    kind = None if dtype is None else kind_of(dtype)
    if isinstance(dtype, pl.Decimal) and kind is None:
        raise ColumnError(
            f"{dialect.name} cannot be asked about the column {name!r} of decimals of more than 18 digits: cast it in "
            f"the query, to {dialect.double} to compute with it, and to {dialect.text} where it is a key or a unit"
        )
    if kind is None or kind not in dialect.values:
        raise ColumnError(
            f"{dialect.name} cannot be asked about the column {name!r}: cast it in the query to an integer, a double "
            "precision number, a decimal of up to 18 digits, a Boolean, text, a date or a timestamp of microseconds"
        )
    return kind


def _value(dialect: Dialect, kind: Kind, name: str, dtype: pl.DataType, *, shown: bool) -> str:
    """Return the value of a column that is computed with, or only what calendars show of it."""
    scale = dtype.scale if isinstance(dtype, pl.Decimal) else 0
    value = dialect.values[kind].format(f"dpf_source.{dialect.identifier(name)}", 10**scale, scale)
    return within_calendar(value, kind) if shown else value


def _group(keys: Sequence[str], sums: Sequence[str]) -> str:
    """Return the query of the groups where each row is a unit."""
    added = "".join(f", SUM({name}) AS {name}" for name in sums)
    shown = ", ".join(keys)
    return f"  SELECT {shown}, COUNT(*) AS units, COUNT(*) AS n{added} FROM dpf_rows GROUP BY {shown}"


def _finish(
    dialect: Dialect,
    query: GroupQuery,
    parameters: Parameters,
    kinds: Sequence[Kind],
    tables: Sequence[tuple[str, str, bool]],
    values_of_source: str,
) -> Statement:
    """Return the statement whose last table is that of the groups; its tables have names that the source has not."""
    written = ",\n".join(f"{name} AS{dialect.materialized if twice else ''} (\n{sql}\n)" for name, sql, twice in tables)
    shown = [
        f"{dialect.shown.format(f'k{i}') if kinds[i] == 'string' else f'k{i}'} AS key{i}"
        for i in range(len(query.keys))
    ]
    shown.append(f"CAST(units AS {dialect.bigint}) AS units")
    for i, measure in enumerate(query.measures):
        shown.append(f"CAST({_COUNTED.get(measure.kind, f'm{i}')} AS {dialect.bigint}) AS measure{i}")
    sql = f"WITH {written}\nSELECT {', '.join(shown)}\nFROM {tables[-1][0]}"
    prefix = _unused(values_of_source)
    sql = re.sub(r"\bdpf_(?=[a-z])", prefix, sql).replace(_SOURCE.replace("dpf_", prefix), values_of_source)
    return Statement(sql, parameters.values, tuple(kinds[: len(query.keys)]), 1 + len(query.measures))


def _unused(text: str) -> str:
    """Return what the names of tables begin with, so that none of them is in the text."""
    folded, number = text.casefold(), 0
    while f"dpf{number}_" in folded:
        number += 1
    return f"dpf{number}_"
