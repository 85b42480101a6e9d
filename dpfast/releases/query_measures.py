"""Which exact figures a query is answered from: kind of query -> measures, and what each of them is to it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpfast.columns.values import ValueKind, values_of
from dpfast.queries import (
    Measure,
    ModeQuery,
    QuantileQuery,
    Query,
    choices_measure,
    points_measure,
    sum_measure,
)

__all__ = ["importance_of", "measures_of", "of_column", "said_of"]


def of_column(query: Query, dtype: pl.DataType | None) -> Query:
    """Return a query of a column whose dtype is known: how its values are measured and shown.

    Raises
    ------
    ColumnError
        There is no sum of such values.
    ParameterError
        The bounds are of another kind than the values.

    """
    if query.kind == "count":
        return replace(query, values=ValueKind(whole=True))
    if query.bounds is None:
        return query
    if dtype is None:
        # Refused with the names of columns that are there, once its other parameters are read.
        return replace(query, bounds=(0.0, 1.0))
    known = replace(query, values=values_of(dtype))
    if query.kind == "sum":
        known.values.refuse_sum(str(query.column))
    if isinstance(query, QuantileQuery):
        known.values.refuse_grid(query.grid, str(query.column))
    return known


def measures_of(query: Query) -> list[Measure]:
    """Return the measures that a query is answered from, in the order in which its answer takes them."""
    if query.kind == "count":
        return [Measure("rows") if query.column is None else Measure("values", query.column)]
    if isinstance(query, ModeQuery):
        return [choices_measure(query)]
    if isinstance(query, QuantileQuery):
        return [points_measure(query)]
    numerator = sum_measure(query)
    return [numerator] if query.kind == "sum" else [numerator, Measure("values", query.column)]


def said_of(query: Query, measure: Measure) -> str:
    """Return which of its query's measures one is, for its charge; nothing of an only one."""
    if query.kind == "mean":
        return "sum" if measure.kind == "sum" else "number of values"
    return ""


def importance_of(query: Query, measure: Measure) -> Fraction:
    """Return by how much an error of a measure, squared, counts in the answer's, for the optimal split.

    A mean counts as the sum that it is made of, in the column's unit: its error is, but for the number of values in a
    group, that of sum - (mean - middle) * count, and abs(mean - middle) is at most half the width of the bounds, which
    so weighs the count.
    """
    if query.kind == "mean" and measure.kind == "values":
        lower, upper = query.limits
        return ((upper - lower) * query.values.tick / 2) ** 2
    return Fraction(1)
