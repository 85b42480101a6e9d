"""Exact groups in Spark's own operators."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpfast.aggregation.protocols import GroupQuery
from dpfast.integrations.spark.queries import place_columns

__all__ = ["exact_groups"]


def exact_groups(frame: Any, query: GroupQuery, public: pl.DataFrame | None) -> Any:
    """Return a Spark frame with a row for every group, as `GroupQuery` says; nothing is computed yet.

    Of public keys there is a row for each, of zeros where no row has it.
    """
    placed, query = place_columns(frame, query)
    groups = _grouped(placed, query)
    if query.keys and public is None:
        return groups
    return _complete(groups, query, public)


def _grouped(placed: Any, query: GroupQuery) -> Any:
    from pyspark.sql import functions as F
    def m(x):
        return F.count(F.lit(1)) if x.kind=="rows" else F.sum((F.col(x.column)*2**-x.step_exponent).cast("bigint")-x.centre)
    return placed.groupBy(*[F.col(k).alias(f"key{i}") for i,k in enumerate(query.keys)]).agg(F.count(F.lit(1)).alias("units"), *[m(x).alias(f"measure{i}") for i,x in enumerate(query.measures)])


def _complete(groups: Any, query: GroupQuery, public: pl.DataFrame | None) -> Any:
    """Return the groups of public keys alone, and all of them.

    By a union with rows of zeros and not by a join, which might send all groups through the driver to broadcast them.
    """
    from pyspark.sql import functions

    keys = [f"key{place}" for place in range(len(query.keys))]
    figures = ["units", *(f"measure{place}" for place in range(len(query.measures)))]
    session = groups.sparkSession
    zeros = [functions.lit(0).cast("bigint").alias(name) for name in figures]
    if keys:
        assert public is not None
        given = session.createDataFrame(public.to_arrow(compat_level=pl.CompatLevel.oldest()))
        kinds = {field.name: field.dataType for field in groups.schema.fields}
        given = given.select(*(given[name].cast(kinds[name]) for name in keys), *zeros)
    else:
        given = session.range(1).select(*zeros)
    is_given, was_given = functions.lit(1).alias("given"), functions.lit(0).alias("given")
    both = groups.select(*keys, *figures, was_given).unionByName(given.select("*", is_given))
    added = both.groupBy(*keys).agg(
        *(functions.coalesce(functions.sum(name), functions.lit(0)).cast("bigint").alias(name) for name in figures),
        functions.max("given").alias("given"),
    )
    return added.where("given = 1").select(*keys, *figures)
