"""Aggregate by Polars' own group_by, for keys that cannot be coded cheaply or are not known beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dpfast.aggregation.coding import code_bins
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.grouped_points import GroupedPoints, point_dtype
from dpfast.aggregation.keys import KeyColumn, PublicKeys
from dpfast.queries import Measure

__all__ = ["bin_keys", "find_keys", "group_natively", "join_to_keys", "match_rows", "read_measure"]


def group_natively(
    source: pl.DataFrame | pl.LazyFrame, keys: Sequence[pl.Expr], contributions: Sequence[Contribution]
) -> pl.DataFrame:
    """Return one row per key found (null is one): the keys, ``rows``, and ``measure0``, ``measure1``, ...

    These are Int64, or for points, choices and bins lists of them.

    Every expression is native, and sums are sums of Int64, so that neither the order of the rows nor the
    engine changes a figure.
    """
    measures = [
        _together(contribution.native, contribution.measure).alias(f"measure{i}")
        for i, contribution in enumerate(contributions)
        if contribution.native is not None
    ]
    grouped = source.lazy().group_by(list(keys)).agg(pl.len().cast(pl.Int64).alias("rows"), *measures)
    return grouped.collect(engine="streaming")


def bin_keys(
    source: pl.DataFrame | pl.LazyFrame, columns: Sequence[KeyColumn], contributions: Sequence[Contribution]
) -> tuple[pl.DataFrame | pl.LazyFrame, list[pl.Expr]]:
    """Return the source and the expressions of its keys, ``key0``, ``key1``, ...

    Where the data is in memory, bins are found by a kernel beforehand, much faster than by an expression.
    """
    exprs = [column.native.alias(f"key{i}") for i, column in enumerate(columns)]
    if isinstance(source, pl.LazyFrame) or all(column.bins is None for column in columns):
        return source, exprs
    binned = []
    for i, column in enumerate(columns):
        if column.bins is not None:
            name = f"{''.join(source.columns)}{i}"  # longer than any column's name
            edges = np.array(column.edges, np.float64)
            binned.append(code_bins(source.select(column.values).to_series(), edges).alias(name))
            exprs[i] = pl.col(name).alias(f"key{i}")
    return source.with_columns(binned), exprs


def join_to_keys(grouped: pl.DataFrame, keys: PublicKeys) -> pl.DataFrame:
    """Return the aggregates of the public keys in their order, 0 where a key was not found (Soundness rule 19)."""
    joined = keys.native.join(grouped, on=keys.native.columns, how="left", nulls_equal=True, maintain_order="left")
    numbers = [name for name in grouped.columns[keys.native.width :] if grouped.schema[name].is_integer()]
    return joined.with_columns(pl.col(numbers).fill_null(0))


def _together(native: pl.Expr, measure: Measure) -> pl.Expr:
    """Return a group's sum, or the list of its points, candidates or bins."""
    if measure.kind == "distinct":
        return native.filter(native != 0).n_unique().cast(pl.Int64)
    if not measure.has_cells:
        return native.sum()
    dtype = point_dtype(measure.points)
    return native.filter(native != 0).cast(pl.Int32 if dtype is np.int32 else pl.Int64)


def read_measure(column: pl.Series, measure: Measure) -> np.ndarray | GroupedPoints:
    """Return a column of `group_natively` as an array, or as points by group; null is none of them."""
    if column.dtype.is_integer():
        return column.to_numpy()
    lengths = column.list.len().fill_null(0).cast(pl.Int64).to_numpy()
    stops = np.cumsum(lengths)
    points = column.filter(pl.Series(lengths > 0)).explode().to_numpy(writable=True)
    if measure.kind == "bins":
        cells = np.repeat(np.arange(lengths.size), lengths) * measure.points + points.astype(np.int64) - 1
        return np.bincount(cells, minlength=lengths.size * measure.points).reshape(lengths.size, measure.points)
    return GroupedPoints(points, stops - lengths, stops)


def find_keys(source: pl.DataFrame | pl.LazyFrame, keys: Sequence[pl.Expr]) -> pl.DataFrame:
    """Return the keys found in the data, once each."""
    return source.lazy().select(keys).unique().collect(engine="streaming")


def match_rows(frame: pl.DataFrame, keys: PublicKeys, out: np.ndarray) -> None:
    """Write the row of each row's key among the keys (int32), -1 if its key is none of them."""
    matched = frame.select(keys.native.columns).join(
        keys.native.with_row_index("place"),
        on=keys.native.columns,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    out[:] = matched["place"].cast(pl.Int32).fill_null(-1).to_numpy()
