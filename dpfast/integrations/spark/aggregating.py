"""Exact groups in Spark's own operators: the SQL of `dpfast.integrations.sql.template`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dpfast.aggregation.keys import column_of
from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import ParameterError
from dpfast.integrations.spark.schemas import empty_frame
from dpfast.integrations.sql.checking import check_figures
from dpfast.integrations.sql.dialects import SPARK, Kind
from dpfast.integrations.sql.encoding import MOST_PUBLIC_KEYS
from dpfast.integrations.sql.template import Statement, kind_in, write
from dpfast.randomness import SystemRandom

__all__ = ["check_session", "exact_groups"]

#: Into how many parts units are dealt out for each task that can run at a time, if the session's setting allows.
_PARTS_A_TASK = 32
#: Sessions, with their settings, that were seen to compute as dpfast does.
_CHECKED: set[int] = set()


def exact_groups(frame: Any, query: GroupQuery, public: pl.DataFrame | None) -> Any:
    """Return a Spark frame with a row for every group, as `GroupQuery` says; nothing is computed yet.

    Keys are as in the template: strings are binary, dates, timestamps and Booleans whole numbers. Of public keys there
    is a row for each, of zeros where no row has it.
    """
    if query.public is not None and query.public.height > MOST_PUBLIC_KEYS:
        allowed = f"of at most {MOST_PUBLIC_KEYS} keys where a privacy unit is bounded by Spark"
        raise ParameterError("keys", query.public, allowed, "let keys be selected, or release parts of them")
    schema = empty_frame(frame).schema
    placed, places = _place_columns(frame, query)
    asked = _renamed(query, places)
    view = f"dpf_{SystemRandom().key()[:8].hex()}"
    placed.createTempView(view)
    try:
        for name in places:
            kind_in(SPARK, name, schema[name])
        dtypes = {place: schema[name] for name, place in places.items()}
        statement = write(SPARK, view, dtypes, asked, partitions=_parts(frame.sparkSession))
        groups = _evaluated(frame.sparkSession, statement)
    finally:
        # What is planned holds the view's own plan.
        frame.sparkSession.catalog.dropTempView(view)
    if query.keys and public is None:
        return groups.where("units > 0")
    return _complete(groups, statement.kinds, len(query.measures), public)


def check_session(session: Any) -> None:
    """Refuse a session that computes otherwise than dpfast, on a table of constants: once for all its settings."""
    settings = hash((session.sparkContext.applicationId, tuple(sorted(session.conf.getAll.items()))))
    if settings in _CHECKED:
        return

    def ask(source: str, schema: pl.Schema, query: GroupQuery) -> pl.DataFrame:
        # One task, and not one for each row.
        together = f"(SELECT /*+ COALESCE(1) */ * FROM {source} AS dpf_constants)"
        found = pl.DataFrame(_evaluated(session, write(SPARK, together, schema, query)).toArrow())
        return found.with_columns(pl.col(pl.Binary).cast(pl.String))

    check_figures(SPARK, ask)
    _CHECKED.add(settings)


def _parts(session: Any) -> int:
    """Return into how many parts units are dealt out.

    Without a number, Spark makes a few large parts of small data, which are slow to sort; many parts each send all
    groups to all others. A part may be larger than memory: Spark sorts and adds up on disk then.
    """
    most = _PARTS_A_TASK * int(session.sparkContext.defaultParallelism)
    setting = str(session.conf.get("spark.sql.shuffle.partitions"))
    # Some services have a word there.
    return min(most, int(setting)) if setting.isdecimal() else most


def _evaluated(session: Any, statement: Statement) -> Any:
    """Return the frame of a statement, of which nothing is computed yet."""
    arguments = {f"p{number}": value for number, value in enumerate(statement.parameters, 1)}
    return session.sql(statement.sql, args=arguments)


def _place_columns(frame: Any, query: GroupQuery) -> tuple[Any, dict[str, str]]:
    """Return the columns that are used as ``c0``, ``c1``, ..., and their places by name.

    Spark takes names for equal that differ in case. What a string's collation takes for equal stays apart, as strings
    are compared by their bytes; in keys, bytes that are no UTF-8 become U+FFFD, since no other library could hold them.
    """
    from pyspark.sql import functions

    keys = [column_of(key) for key in query.keys]
    filtered = () if query.where is None else query.where.columns
    used = [*keys, *(name for measure in query.measures for name in measure.columns), query.unit, *filtered]
    names = list(dict.fromkeys(name for name in used if name is not None))
    kinds = [field.dataType for field in frame.schema.fields]
    by_place = frame.toDF(*(f"_{place}" for place in range(len(kinds))))
    columns = []
    for place, name in enumerate(names):
        number = frame.columns.index(name)
        column = by_place[f"_{number}"]
        if "string" in kinds[number].simpleString():
            column = functions.collate(column, "UTF8_BINARY")
            if name in keys:
                column = functions.make_valid_utf8(column)
        columns.append(column.alias(f"c{place}"))
    # A frame of no columns at all has rows nevertheless.
    columns = columns or [functions.lit(0).alias("c0")]
    return by_place.select(*columns), {name: f"c{place}" for place, name in enumerate(names)}


def _renamed(query: GroupQuery, places: dict[str, str]) -> GroupQuery:
    """Return the query of columns by their places."""
    keys = tuple(places[key] if isinstance(key, str) else replace(key, column=places[key.column]) for key in query.keys)
    measures = tuple(measure.renamed(places) for measure in query.measures)
    unit = None if query.unit is None else places[query.unit]
    where = None if query.where is None else query.where.renamed(places)
    return replace(query, keys=keys, measures=measures, unit=unit, where=where)


def _complete(groups: Any, kinds: Sequence[Kind], measures: int, public: pl.DataFrame | None) -> Any:
    """Return the groups of public keys alone, and all of them.

    By a union with rows of zeros and not by a join, which might send all groups through the driver to broadcast them.
    """
    from pyspark.sql import functions

    keys = [f"key{place}" for place in range(len(kinds))]
    figures = ["units", *(f"measure{place}" for place in range(measures))]
    session = groups.sparkSession
    if keys:
        assert public is not None
        plain = pl.DataFrame([_plain(public[name], kind) for name, kind in zip(keys, kinds, strict=True)])
        given = session.createDataFrame(plain.to_arrow(compat_level=pl.CompatLevel.oldest()))
    else:
        given = session.range(1).select()
    zeros = [functions.lit(0).cast("bigint").alias(name) for name in figures]
    is_given, was_given = functions.lit(1).alias("given"), functions.lit(0).alias("given")
    both = groups.select(*keys, *figures, was_given).union(given.select(*keys, *zeros, is_given))
    added = both.groupBy(*keys).agg(
        *(functions.sum(name).cast("bigint").alias(name) for name in figures),
        functions.max("given").alias("given"),
    )
    return added.where("given = 1").select(*keys, *figures)


def _plain(keys: pl.Series, kind: Kind) -> pl.Series:
    """Return public keys in the form of the template's."""
    if kind == "string":
        return keys.cast(pl.String).cast(pl.Binary)
    if kind == "timestamp":
        keys = keys.cast(pl.Datetime("us", getattr(keys.dtype, "time_zone", None)))
    return (keys if keys.dtype == pl.Boolean else keys.to_physical()).cast(pl.Int64)
