"""What is asked of Spark, with columns by their places: their names may be anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpfast.aggregation.keys import name_of
from dpfast.aggregation.protocols import GroupQuery
from dpfast.queries import Bins

__all__ = ["place_columns"]


def place_columns(frame: Any, query: GroupQuery) -> tuple[Any, GroupQuery]:
    """Return the columns that are used as ``c0``, ``c1``, ..., strings compared by their bytes, and the query of them.

    Spark takes names for equal that differ in case, and a string's collation may take values for equal.
    """
    from pyspark.sql import functions

    used = [*map(name_of, query.keys), *(measure.column for measure in query.measures), query.unit]
    places = {name: f"c{place}" for place, name in enumerate(dict.fromkeys(name for name in used if name is not None))}
    kinds = [field.dataType for field in frame.schema.fields]
    by_place = frame.toDF(*(f"_{place}" for place in range(len(kinds))))
    columns = []
    for name, place in places.items():
        number = frame.columns.index(name)
        column = by_place[f"_{number}"]
        if "collate" in kinds[number].simpleString():
            column = functions.collate(column, "UTF8_BINARY")
        columns.append(column.alias(place))
    keys = tuple(Bins(places[key.column], key.edges) if isinstance(key, Bins) else places[key] for key in query.keys)
    measures = tuple(
        measure if measure.column is None else replace(measure, column=places[measure.column])
        for measure in query.measures
    )
    unit = None if query.unit is None else places[query.unit]
    # A frame of no columns at all has rows nevertheless.
    columns = columns or [functions.lit(0).alias("c0")]
    return by_place.select(*columns), replace(query, keys=keys, measures=measures, unit=unit)
