"""Counts: of rows, of a column's values, of rows that pass a filter, and of privacy units."""

from __future__ import annotations

from dataclasses import dataclass

from dpfast.queries.basic import OwnName, Query
from dpfast.rows.filters import Filter, OwnFilter, read_filter
from dpfast.rows.values import NAME

__all__ = ["FilteredCountQuery", "count", "units"]


@dataclass(frozen=True, kw_only=True, repr=False)
class FilteredCountQuery(Query):
    """The number of rows that pass a filter, in every group: what `count` with ``where`` returns."""

    condition: Filter

    @property
    def in_words(self) -> str:
        """What is asked."""
        counted = "count" if self.column is None else f"count of {self.column}"
        return f"{counted} where {self.condition.described()}"


def count(column: OwnName = None, *, where: OwnFilter = None) -> Query:
    """Ask for the number of rows in every group, or of a column's values.

    Parameters
    ----------
    column
        A column of any dtype, whose nulls and NaN are not counted. None for all rows.
    where
        Which rows are counted (`dpfast.column`), beside other queries that are of all rows. What is kept of a privacy
        unit is chosen among all rows; the ``where`` of `dpfast.plan` drops rows before that, and keeps more of these.

    Examples
    --------
    >>> count()
    Query(kind='count')
    >>> count("dep_delay")
    Query(kind='count', column='dep_delay')
    >>> from dpfast import column
    >>> count(where=column("dep_delay") > 15).in_words
    'count where dep_delay > 15'

    """
    name = None if column is None else NAME.read("column", column)
    return (
        Query("count", name)
        if where is None
        else FilteredCountQuery("filtered_count", name, condition=read_filter(where))
    )


def units() -> Query:
    """Ask for the number of distinct privacy units in every group: of those that keep a row there.

    One unit adds at most 1 to each of its ``max_groups`` groups, however many rows it has, so that the noise is less
    than that of `count`, whose rows it may be. Where each row is a unit, it is the number of rows.

    Examples
    --------
    >>> units()
    Query(kind='units')

    """
    return Query("units")
