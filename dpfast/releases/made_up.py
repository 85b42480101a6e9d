"""Made-up rows for a plan: of its schema, in groups of given sizes, with no word of randomness in them.

Group i of a Zipf distribution has a share in proportion to 1 / i. Values are spread evenly over the bounds of what is
asked of their column, and units over the rows, by multiples of the golden ratio, which never cluster.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.calendars import calendar_key
from dpfast.aggregation.keys import KeyEntry
from dpfast.columns.values import LARGEST_TICK, Decimals, Moments
from dpfast.queries import Bins, Measure, ModeQuery, Query
from dpfast.rows.calendars import Calendar
from dpfast.rows.filters import Comparison, Test

__all__ = ["made_up", "zipf_sizes"]

_GOLDEN = 0.6180339887498949
_SILVER = 0.4142135623730951


def zipf_sizes(rows: int, groups: int) -> list[int]:
    """Return group sizes in proportion to 1, 1/2, 1/3 and so on, that add up to the rows.

    Examples
    --------
    >>> zipf_sizes(100, 4)
    [48, 24, 16, 12]

    """
    weights = 1.0 / np.arange(1, groups + 1)
    ends = np.rint(np.cumsum(weights) / weights.sum() * rows).astype(np.int64)
    sizes: list[int] = np.diff(ends, prepend=0).tolist()
    return sizes


def made_up(
    schema: Mapping[str, pl.DataType],
    by: Sequence[KeyEntry],
    keys: pl.DataFrame | None,
    unit: str | None,
    queries: Iterable[tuple[Query, Sequence[Measure]]],
    sizes: Sequence[int],
    units: int,
) -> pl.DataFrame:
    """Return rows of a schema: group i has as many as ``sizes[i]``, of one of so many units each.

    Parameters
    ----------
    schema
        The names and dtypes of the columns.
    by, keys, unit
        What rows are grouped by, its public values, and whose rows they are.
    queries
        What is asked, with its measures: its columns hold values that count.
    sizes
        Of every group, in the order of the keys.
    units
        How many there are.

    """
    group = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.arange(group.size)
    columns = {name: _column(dtype, rows % 10) for name, dtype in schema.items() if not dtype.is_nested()}
    rows_per_unit = max(rows.size / max(units, 1), 1.0)
    for place, (query, measures) in enumerate(queries):
        for measure in measures:
            for one in (measure, *measure.factors):
                if one.column in columns:
                    spread = (rows * _GOLDEN + place * _SILVER) % 1.0
                    if measure.kind == "unit_sum":
                        spread = _shared(spread, query, rows_per_unit)
                    columns[one.column] = _values(query, one, schema[one.column], spread, columns[one.column])
    for entry in by:
        if isinstance(entry, Calendar):
            columns[entry.column] = _moments(entry, schema[entry.column], keys, len(sizes)).gather(group)
            continue
        name = entry.column if isinstance(entry, Bins) else entry
        if isinstance(entry, Bins):
            # A bin's name is its left edge, which lies in it.
            labels = list(entry.labels)
            of = (None if keys is None else keys[name].to_list()) or labels
            columns[name] = pl.Series([of[i % len(of)] for i in range(len(sizes))]).gather(group)
        elif keys is not None:
            columns[name] = keys[name].gather(group)
        else:
            columns[name] = _column(schema[name], np.arange(len(sizes))).gather(group)
    if unit is not None:
        columns[unit] = _column(schema[unit], (rows * _SILVER % 1.0 * units).astype(np.int64))
    return pl.DataFrame(
        {name: _cast(column, schema[name]) for name, column in columns.items()}, schema_overrides=dict(schema)
    ).select(name for name in schema if name in columns)


def _column(dtype: pl.DataType, numbers: NDArray[np.int64]) -> pl.Series:
    """Return a value of the dtype for every number, another one for another number as far as there are such."""
    series = pl.Series(numbers)
    if isinstance(dtype, pl.Enum):
        categories = dtype.categories
        return categories.gather(numbers % max(len(categories), 1)).cast(dtype)
    if dtype == pl.String or isinstance(dtype, pl.Categorical) or dtype == pl.Binary:
        return pl.select(pl.format("made up {}", series)).to_series()
    if dtype == pl.Boolean:
        return series % 2 == 1
    return series


def _moments(entry: Calendar, dtype: pl.DataType, keys: pl.DataFrame | None, groups: int) -> pl.Series:
    """Return for every group a moment of its key, the first since 1990, and null where there is none until 2040."""
    hours = pl.datetime_range(datetime.datetime(1990, 1, 1), datetime.datetime(2039, 12, 31, 23), "1h", eager=True)
    known = pl.DataFrame({entry.column: hours.cast(dtype, strict=False)})
    known = known.with_columns(calendar_key(entry, dtype)[0].alias("\0part")).unique("\0part", maintain_order=True)
    if keys is None:
        return known[entry.column].gather(np.arange(groups) % known.height)
    parts = keys.select(pl.col(entry.name).cast(known["\0part"].dtype).alias("\0part"))
    return parts.join(known, on="\0part", how="left", maintain_order="left")[entry.column]


def _shared(spread: NDArray[np.floating[Any]], query: Query, rows: float) -> NDArray[np.floating[Any]]:
    """Return where in the bounds of a unit's sum the values of so many rows lie that they make it together."""
    low, high = map(float, query.limits())
    shared: NDArray[np.floating[Any]] = ((low + spread * (high - low)) / rows - low) / (high - low)
    return shared


def _values(
    query: Query, measure: Measure, dtype: pl.DataType, spread: NDArray[np.floating[Any]], column: pl.Series
) -> pl.Series:
    """Return values that a measure counts, between the least and the largest of them; else the column as it is."""
    if isinstance(query, ModeQuery):
        places = (spread**2 * len(query.candidates)).astype(np.int64)
        return pl.Series(query.candidates).gather(places)
    if measure.condition is not None:
        return _around([test for test in measure.condition.tests() if test.column == measure.column], spread, column)
    if isinstance(query.values, (Decimals, Moments)):
        # In last places, or in what times are held as.
        edges = [Fraction(edge) for edge in measure.edges if abs(edge) < LARGEST_TICK]
        low, high = (edges[0], edges[-1]) if edges else query.limits()
        ticks = np.rint(float(low) + spread * float(high - low)).astype(np.int64)
        return pl.Series(query.values.sums(ticks, 0))
    ends: Sequence[Any] = [edge for edge in measure.edges if np.isfinite(edge)] or query.bounds or ()
    if len(ends) == 1:
        ends = (ends[0] - 1, ends[0] + 1)
    if not ends or not (dtype.is_numeric() or dtype == pl.Boolean):
        return column
    if measure.column != query.column and hasattr(query, "other_bounds"):
        ends = query.other_bounds
    first, last = float(ends[0]), float(ends[-1])
    numbers: Any = first + spread * (last - first)
    if dtype == pl.Boolean:
        return pl.Series(numbers > (first + last) / 2)
    return pl.Series(np.rint(numbers) if dtype.is_integer() else numbers)


def _around(tests: Sequence[Test], spread: NDArray[np.floating[Any]], column: pl.Series) -> pl.Series:
    """Return the values that tests compare with, and of numbers the next ones; else the column as it is."""
    values: list[Any] = []
    for test in tests:
        for value in (test.value,) if isinstance(test, Comparison) else getattr(test, "values", ()):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                values += [value - 1, value, value + 1]
            else:
                values.append(value)
    if not values:
        return column
    return pl.Series([*values, None], strict=False).gather((spread * (len(values) + 1)).astype(np.int64))


def _cast(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    return column if column.dtype == dtype else column.cast(dtype, strict=False)
