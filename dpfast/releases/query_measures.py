"""Which exact figures a query is answered from: kind of query -> measures, and what each of them is to it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpfast.queries import (
    CovarianceQuery,
    DistributionQuery,
    FilteredCountQuery,
    Measure,
    ModeQuery,
    ProportionQuery,
    QuantileQuery,
    Query,
    bins_measure,
    choices_measure,
    matches_measure,
    points_measure,
    product_measure,
    sum_measure,
)
from dpfast.releases.distribution_answers import best_blocks

__all__ = ["explain_measure", "importance_of", "is_whole", "measures_of", "said_of"]


def measures_of(query: Query, columns: pl.Schema, *, gaussian: bool = False) -> list[Measure]:
    """Return the measures that a query is answered from, in the order in which its answer takes them.

    ``gaussian`` says that the noise is expected to be: what else is measured beside counts of bins depends on it.
    """
    if isinstance(query, DistributionQuery):
        own = query.kind == "histogram"
        blocks = ((1, 1),) if own else best_blocks(len(query.cells) - 1, gaussian=gaussian)
        return [bins_measure(str(query.column), query.cells, blocks)]
    if query.kind in ("units", "count_distinct"):
        return [Measure("units") if query.kind == "units" else Measure("distinct", query.column)]
    if query.kind == "count":
        return [Measure("rows") if query.column is None else Measure("values", query.column)]
    if isinstance(query, FilteredCountQuery):
        return [Measure("passes", query.column, condition=query.condition)]
    if isinstance(query, ProportionQuery):
        matches = matches_measure(query.condition)
        return [matches, Measure("values", matches.column, given=matches.given)]
    if isinstance(query, CovarianceQuery):
        return _joint_moments(query)
    if isinstance(query, ModeQuery):
        return [choices_measure(query)]
    if isinstance(query, QuantileQuery):
        return [points_measure(query, whole=is_whole(query, columns))]
    numerator = sum_measure(query, whole=is_whole(query, columns))
    if query.kind == "sum":
        return [numerator]
    moments = [numerator, Measure("values", query.column)]
    return moments if query.kind == "mean" else [*moments, product_measure(numerator, numerator)]


def _joint_moments(query: CovarianceQuery) -> list[Measure]:
    """Return the sums of both columns, the number of rows and the sum of products, of rows that have both values."""
    assert query.column is not None
    bounds = ((query.column, query.bounds), (query.other, query.other_bounds))
    first, second = (sum_measure(Query("mean", column, limits), whole=False) for column, limits in bounds)
    return [
        replace(first, given=(query.other,)),
        replace(second, given=(query.column,)),
        Measure("values", query.column, given=(query.other,)),
        product_measure(first, second),
    ]


def is_whole(query: Query, columns: pl.Schema) -> bool:
    """Return whether a query is of whole numbers: a count, or a column of integers or Booleans."""
    dtype = (
        pl.Int64()
        if query.kind in ("count", "filtered_count", "units", "count_distinct")
        else columns.get(str(query.column))
    )
    return dtype is not None and (dtype.is_integer() or dtype == pl.Boolean)


def said_of(query: Query, measure: Measure) -> str:
    """Return which of its query's measures one is, for its charge; nothing of an only one."""
    if query.kind in ("count", "sum") or measure.selects:
        return ""
    if isinstance(query, CovarianceQuery) and measure.kind == "sum":
        return f"sum of {measure.column}"
    squares = "sum of products" if isinstance(query, CovarianceQuery) else "sum of squares"
    return {
        "sum": "sum",
        "values": "number of values",
        "matches": "values that fulfil it",
        "product": squares,
    }.get(measure.kind, "")


def importance_of(query: Query, measure: Measure) -> Fraction:
    """Return by how much an error of a measure, squared, counts in the answer's, for the optimal split.

    What is divided by the number of values counts as the sum that it is made of, in its own unit: the error of a mean
    is, but for the number of values in a group, that of sum - (mean - middle) * count, and abs(mean - middle) is at
    most half the width of the bounds, which so weighs the count. A variance has the error of
    squares - 2 * (mean - middle) * sum - (square - middle of squares) * count, where half the width is what the first
    factor is at most where the mean lies in the middle half of the bounds, and half of its square what the second one
    is; a covariance that of products - (mean of a - middle) * (sum of b) and so on, with halves of widths for them.
    """
    if query.bounds is None or query.kind == "sum" or measure.selects:
        return Fraction(1)
    first, second = _half_width(query.bounds), _half_width(getattr(query, "other_bounds", query.bounds))
    if query.kind in ("mean", "proportion"):
        return first**2 if measure.kind == "values" else Fraction(1)
    if measure.kind == "values":
        return (first * second) ** 2 / (1 if isinstance(query, CovarianceQuery) else 4)
    if measure.kind == "product":
        return Fraction(1)
    return (first if measure.column != query.column else second) ** 2


def _half_width(bounds: tuple[float, float]) -> Fraction:
    return (Fraction(bounds[1]) - Fraction(bounds[0])) / 2


def explain_measure(measure: Measure) -> str:
    """Return in words what a measure with noise adds up."""
    if measure.kind == "matches":
        return "half of the values that fulfil it, less half of those that do not"
    if measure.kind == "passes":
        return f"rows where {measure.condition.described()}" if measure.condition is not None else ""
    if measure.kind == "product":
        first, second = measure.factors
        return (
            f"squares of {_difference(first)}" if first == second else f"{_difference(first)} x {_difference(second)}"
        )
    beside = "".join(f", where {name} is not missing" for name in measure.given)
    if measure.kind == "sum":
        return (f"sum of {_difference(measure)}" if measure.centre else "sum") + beside
    if measure.kind == "bins":
        blocks = ", ".join(f"{size}" for size, _ in measure.blocks)
        beside = f", and of blocks of {blocks.partition(', ')[2]}" if len(measure.blocks) > 1 else ""
        return f"values in {measure.points} intervals{beside}"
    return {
        "rows": "rows",
        "units": "privacy units",
        "distinct": "different values",
        "values": "values that are not missing",
        "missing": "missing values",
    }[measure.kind] + beside


def _difference(measure: Measure) -> str:
    return f"differences to {measure.centre * 2.0**measure.step_exponent:g}"
