"""What users declare impossible, each constraint by itself: one that forbids nothing is a mistake, never paid for."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from dpfast.domain.domain import Domain, possible_cells
from dpfast.domain.impossible import Possible
from dpfast.errors import ParameterError, Words
from dpfast.rows.filters import Filter, Not, Some, Test, read_filter

__all__ = ["read_constraints"]


def read_constraints(domain: Domain, impossible: object, most_cells: float, enlarge: str) -> tuple[Possible, ...]:
    """Return which cells records can be in, as `possible_cells` does, or refuse what no combination of values is.

    Raises
    ------
    ParameterError
        A constraint is true of no combination of the domain's values, or cannot be read.
    ColumnError
        A column is not in the domain, or is compared with a value of another kind.

    """
    possible = possible_cells(domain, impossible, most_cells, enlarge)
    for one in _constraints(impossible):
        if not possible_cells(domain, one, most_cells, enlarge):
            raise _forbids_nothing(domain, one, most_cells, enlarge)
    return possible


def _constraints(impossible: object) -> Iterator[Filter | pl.DataFrame]:
    """Yield tables and filters; those joined by "or" are several."""
    for one in impossible if isinstance(impossible, (list, tuple)) else () if impossible is None else (impossible,):
        if isinstance(one, pl.DataFrame):
            yield one
        else:
            where = read_filter(one)
            yield from _constraints(where.parts) if isinstance(where, Some) else (where,)


def _forbids_nothing(domain: Domain, one: Filter | pl.DataFrame, most_cells: float, enlarge: str) -> ParameterError:
    """Return the error about a constraint that is true of no combination."""
    allowed = "true of some combination of declared values"
    if isinstance(one, pl.DataFrame):
        return ParameterError("impossible", Words("a table without rows"), allowed, "add a row, or leave it out")
    mend = "mend it, or leave it out"
    for test in _needed(one):
        try:
            is_true_of_none = not possible_cells(domain, test, most_cells, enlarge)
        except ParameterError:  # it cuts a bin, which another test makes up for
            continue
        if is_true_of_none:
            mend = f"no declared value of {test.column} passes {test.described()}: {mend}"
            break
    return ParameterError("impossible", Words(one.described()), allowed, mend)


def _needed(where: Filter) -> Iterator[Test]:
    """Yield what is asked of single columns, but not what is denied."""
    if isinstance(where, Test):
        yield where
    elif not isinstance(where, Not):
        for part in where.parts:
            yield from _needed(part)
