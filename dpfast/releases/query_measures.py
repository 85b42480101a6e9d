"""Which exact figures a query is answered from: kind of query -> measures, and what each of them is to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpfast.columns.values import ValueKind, values_of
from dpfast.queries import (
    CovarianceQuery,
    DistributionQuery,
    FilteredCountQuery,
    Measure,
    ModeQuery,
    ProportionQuery,
    QuantileQuery,
    Query,
    RankedQuery,
    UnitQuery,
    bins_measure,
    choices_measure,
    matches_measure,
    points_measure,
    product_measure,
    ranked_measure,
    sum_measure,
    unit_measures,
)
from dpfast.queries.moments import half_widths
from dpfast.releases.distribution_answers import best_blocks
from dpfast.showing import number_of

__all__ = ["explain_measure", "importance_of", "measures_of", "of_columns", "said_of"]

#: Of rows, units or different values, whatever the column holds.
_COUNTS = ("count", "filtered_count", "units", "count_distinct")


def of_columns(query: Query, columns: Mapping[str, pl.DataType]) -> Query:
    """Return a query of columns whose dtypes are known: how their values are measured and shown.

    Raises
    ------
    ColumnError
        There is no sum, or no product, of such values.
    ParameterError
        Bounds or edges are of another kind than the values.

    """
    if query.kind in _COUNTS:
        return replace(query, values=ValueKind(whole=True))
    if isinstance(query, (ModeQuery, ProportionQuery)) or query.column is None:
        return query
    dtype = columns.get(query.column)
    if isinstance(query, RankedQuery):
        return replace(query, dtype=dtype)
    if isinstance(query, CovarianceQuery):
        other = columns.get(query.other)
        if dtype is None or other is None:
            return replace(query, bounds=(0.0, 1.0), other_bounds=(0.0, 1.0))
        joint = replace(query, values=values_of(dtype), other_values=values_of(other))
        for values, name in ((joint.values, query.column), (joint.other_values, query.other)):
            values.refuse_product(name)
        return joint
    if dtype is None:
        # Refused with the names of columns that are there, once its other parameters are read.
        if isinstance(query, DistributionQuery):
            return replace(query, edges=(0, 1))
        return query if query.bounds is None else replace(query, bounds=(0.0, 1.0))
    known = replace(query, values=values_of(dtype))
    if query.kind == "sum":
        known.values.refuse_sum(query.column)
    if query.kind == "variance":
        known.values.refuse_product(query.column)
    if isinstance(query, QuantileQuery):
        known.values.refuse_grid(query.grid, query.column)
    return known


def measures_of(query: Query, *, gaussian: bool = False, of_rows: bool = False) -> list[Measure]:
    """Return the measures that a query is answered from, in the order in which its answer takes them.

    ``gaussian`` says that the noise is expected to be: what else is measured beside counts of bins depends on it.
    ``of_rows`` says that each row is a privacy unit: then what a unit adds is what its row adds.
    """
    if isinstance(query, UnitQuery) and not of_rows:
        return unit_measures(query)
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
    if isinstance(query, RankedQuery):
        return [ranked_measure(query)]
    if isinstance(query, QuantileQuery):
        return [points_measure(query)]
    numerator = sum_measure(query)
    if query.kind == "sum":
        return [numerator]
    moments = [numerator, Measure("values", query.column)]
    return moments if query.kind == "mean" else [*moments, product_measure(numerator, numerator)]


def _joint_moments(query: CovarianceQuery) -> list[Measure]:
    """Return the sums of both columns, the number of rows and the sum of products, of rows that have both values."""
    assert query.column is not None
    first = sum_measure(Query("mean", query.column, query.bounds, values=query.values))
    second = sum_measure(Query("mean", query.other, query.other_bounds, values=query.other_values))
    return [
        replace(first, given=(query.other,)),
        replace(second, given=(query.column,)),
        Measure("values", query.column, given=(query.other,)),
        product_measure(first, second),
    ]


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
        "unit_mean": "sum of the units' means",
        "unit_values": "number of units",
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
    first, second = half_widths(query)
    if query.kind in ("mean", "proportion"):
        return first**2 if measure.kind in ("values", "unit_values") else Fraction(1)
    if measure.kind == "values":
        return (first * second) ** 2 / (1 if isinstance(query, CovarianceQuery) else 4)
    if measure.kind == "product":
        return Fraction(1)
    return (first if measure.column != query.column else second) ** 2


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
    if measure.kind == "unit_mean":
        return f"sum of units' means of {_difference(measure)}"
    if measure.kind == "bins":
        blocks = ", ".join(f"{size}" for size, _ in measure.blocks)
        beside = f", and of blocks of {blocks.partition(', ')[2]}" if len(measure.blocks) > 1 else ""
        return f"values in {number_of(measure.points, 'interval')}{beside}"
    return {
        "rows": "rows",
        "units": "privacy units",
        "distinct": "different values",
        "values": "values that are not missing",
        "missing": "missing values",
        "found": "rows of each value",
        "unit_sum": "sum of units' clipped sums",
        "unit_values": "privacy units with a value",
        "choices": f"rows of each of {number_of(measure.points, 'candidate')}",
    }[measure.kind] + beside


def _difference(measure: Measure) -> str:
    # Of times it would be a number of seconds since 1970.
    middle = f"{measure.centre * float(measure.step):g}" if measure.tick == 1 else "the middle of the bounds"
    return f"differences to {middle}"
