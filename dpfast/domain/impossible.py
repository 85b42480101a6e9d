"""Combinations of values that no record has: declared in public, and read as the cells of a few attributes.

A combination is said by a filter of rows, as ``where=`` takes it, or by a table of values, one combination a row. What
it says of a record must follow from the cells that the record is in: a filter may not cut a bin in two.

Which cells are impossible is public, as the domain is. Whether a record lies in one is a function of that record alone,
so that to leave such records out changes no sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.filtering import native_filter
from dpfast.aggregation.sources import missing_column
from dpfast.arguments import Special
from dpfast.columns.comparable import comparable
from dpfast.columns.edges import are_times
from dpfast.domain.attributes import Attribute
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.queries import Bins
from dpfast.rows.filters import Column, Comparison, Every, Filter, Missing, Not, OneOf, Some, Test, read_filter

__all__ = ["OwnImpossible", "Possible", "read_impossible"]

Flags: TypeAlias = NDArray[np.bool_]

_ASKER = "impossible"
_MEND = 'write for example (dpf.column("married") == "yes") & (dpf.column("age") < 14)'


def _wrong() -> Iterator[object]:
    yield from (5, "age < 14", b"a", object(), {"a": 1}, [], [5], ["a"], Filter, [[]], pl.col("a") > 1)


#: Combinations that no record has.
OwnImpossible: TypeAlias = Annotated[
    Filter | Column | pl.DataFrame | Sequence[Filter | Column | pl.DataFrame] | None, Special(_wrong, optional=True)
]


@dataclass(frozen=True, eq=False)
class Possible:
    """Which cells of some attributes records can be in.

    Attributes
    ----------
    attributes
        Their places in the domain, ascending.
    flags
        In one dimension, the last attribute running fastest.

    """

    attributes: tuple[int, ...]
    flags: Flags


def read_impossible(
    given: object, attributes: Sequence[Attribute], most_cells: float, enlarge: str
) -> tuple[Possible, ...]:
    """Return which cells records can be in, for each set of attributes of which some cells are impossible.

    Parameters
    ----------
    given
        A filter, a table of values, or a list of these; None for nothing.
    attributes
        The domain's.
    most_cells, enlarge
        How many cells a set of attributes may have, and how more are allowed.

    Raises
    ------
    ParameterError
        What is given is neither, cuts a bin, names a value that was not declared, or needs more cells.
    ColumnError
        A column is not in the domain, or is compared with a value of another kind.

    """
    if given is None:
        return ()
    reader = _Reader(attributes, most_cells, enlarge)
    found: dict[tuple[int, ...], Flags] = {}
    for one in _listed(given):
        for places, flags in reader.read(one):
            found[places] = found[places] & flags if places in found else flags
    return tuple(Possible(places, flags.reshape(-1)) for places, flags in found.items() if not flags.all())


def _listed(given: object) -> list[Filter | pl.DataFrame]:
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    filters: list[Filter | pl.DataFrame] = []
    for one in listed:
        if not isinstance(one, (Filter, Column, pl.DataFrame)):
            raise ParameterError(_ASKER, one, "filters of dpf.column(...), or Polars DataFrames of values", _MEND)
        filters.append(one if isinstance(one, pl.DataFrame) else read_filter(one, _ASKER))
    if not filters:
        raise ParameterError(_ASKER, given, "one filter or table at least, or left out", _MEND)
    return filters


class _Reader:
    """Reads what is impossible by the cells of a domain."""

    def __init__(self, attributes: Sequence[Attribute], most_cells: float, enlarge: str) -> None:
        self._attributes = {attribute.name: attribute for attribute in attributes}
        self._places = {attribute.name: place for place, attribute in enumerate(attributes)}
        self._most, self._enlarge = most_cells, enlarge

    def read(self, given: Filter | pl.DataFrame) -> Iterator[tuple[tuple[int, ...], Flags]]:
        """Yield sets of attributes, and which of their cells are possible, an axis for each attribute."""
        if isinstance(given, pl.DataFrame):
            yield self._table(given)
        elif isinstance(given, Some):
            # Each part by itself: it has fewer attributes.
            for part in given.parts:
                yield from self.read(part)
        else:
            names = self._ordered(given.columns)
            shape = self._shape(names)
            axes = {name: axis for axis, name in enumerate(names)}
            flags = _joined(given, lambda test: self._asked(test, axes[test.column], len(names)))
            yield self._placed(names), ~np.broadcast_to(flags, shape)

    def _placed(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self._places[name] for name in names)

    def _ordered(self, names: Sequence[str]) -> list[str]:
        """Return columns in the order of the domain's axes."""
        for name in names:
            if name not in self._places:
                raise missing_column(name, list(self._places), _ASKER, "domain")
        return sorted(names, key=self._places.__getitem__)

    def _shape(self, names: Sequence[str]) -> list[int]:
        shape = [self._attributes[name].size for name in names]
        cells = reduce(int.__mul__, shape, 1)
        if cells > self._most:
            given = Words(f"over {', '.join(names)} ({cells:,} cells)")
            allowed = f"over columns of at most {int(self._most):,} cells together"
            raise ParameterError(_ASKER, given, allowed, f"{self._enlarge}, or say it of fewer columns")
        return shape

    def _table(self, table: pl.DataFrame) -> tuple[tuple[int, ...], Flags]:
        """Return what a table of combinations leaves possible."""
        if not table.width:
            raise ParameterError(_ASKER, Words("a table without columns"), "of some of the domain's columns")
        names = self._ordered(table.columns)
        flags = np.ones(self._shape(names), np.bool_)
        flags[tuple(self._codes(name, table[name]) for name in names)] = False
        return self._placed(names), flags

    def _codes(self, name: str, values: pl.Series) -> NDArray[np.int64]:
        """Return the place of each value of a table along its axis; bins are called by their left edges."""
        labels = self._attributes[name].labels
        if not _are_comparable(values.dtype, labels.dtype):
            raise ColumnError(
                f"impossible: the column {name!r} of dtype {values.dtype} must hold values of the domain's, of dtype "
                f"{labels.dtype}; cast it"
            )
        asked = values.cast(labels.dtype, strict=False)
        # A value that the domain's dtype does not hold, 1.9 of integers, is none that was declared.
        held = asked.cast(values.dtype, strict=False).eq_missing(values)
        known = pl.DataFrame({"value": labels, "place": np.arange(len(labels))})
        joined = pl.DataFrame({"value": asked}).join(
            known, on="value", how="left", nulls_equal=True, maintain_order="left"
        )
        strays = values.filter(joined["place"].is_null() | ~held)
        if len(strays):
            mend = "bins are called by their left edges" if self._attributes[name].bins else "leave the row out"
            raise ParameterError(f"{_ASKER}[{name!r}]", strays[0], "a value that the domain declares", mend)
        return joined["place"].to_numpy().astype(np.int64)

    def _asked(self, test: Test, axis: int, axes: int) -> Flags:
        """Return of which cells of one attribute a test is true, along one of several axes."""
        flags = _true_of(test, self._attributes[test.column])
        return flags.reshape([-1 if own == axis else 1 for own in range(axes)])


def _are_comparable(given: pl.DataType, labels: pl.DataType) -> bool:
    """Return whether a table's values may be the domain's: numbers all, as bins may begin at fractions."""
    if pl.Null in (given, labels):
        return True
    return (given.is_numeric() and labels.is_numeric()) or comparable(given) == comparable(labels) is not None


def _joined(where: Filter, asked: Callable[[Test], Flags]) -> Flags:
    if isinstance(where, Test):
        return asked(where)
    parts = [_joined(part, asked) for part in where.parts]
    if isinstance(where, Not):
        return np.logical_not(parts[0])
    assert isinstance(where, (Every, Some))
    joined: Flags = reduce(np.logical_and if isinstance(where, Every) else np.logical_or, parts)
    return joined


def _true_of(test: Test, attribute: Attribute) -> Flags:
    """Return in which cells of an attribute a test is true of every value.

    Raises
    ------
    ParameterError
        It is true of some values of a bin and false of others.

    """
    first, last = _ends(attribute)
    if attribute.bins is None or isinstance(test, Missing):
        return _holds(test, first)
    if isinstance(test, Comparison) and test.operator not in ("==", "!="):
        some, all_of = _holds(test, first), _holds(test, last)
        _check_cut(test, attribute, some ^ all_of)
        return some
    values = test.values if isinstance(test, OneOf) else (test.value,)  # type: ignore[attr-defined]
    among = OneOf(test.column, values)
    some = np.zeros(len(first), np.bool_)
    for value in values:
        # The bin begins at the value or before, and ends at it or beyond.
        begun, ended = (Comparison(test.column, operator, value) for operator in ("<=", ">="))
        some |= _holds(begun, first) & _holds(ended, last)
    alone: Flags = _holds(among, first) & (first == last).fill_null(value=False).to_numpy()
    _check_cut(test, attribute, some & ~alone)
    if isinstance(test, Comparison) and test.operator == "!=":
        others: Flags = np.logical_not(alone | first.is_null().to_numpy())
        return others
    return alone


def _holds(test: Test, values: pl.Series) -> Flags:
    """Return of which values a test is true."""
    frame = pl.DataFrame({test.column: values})
    asked = native_filter(test, frame.schema, _ASKER).fill_null(value=False)
    flags: Flags = frame.select(held=pl.lit(value=True) & asked).to_series().to_numpy()
    # A constant has one row.
    return np.broadcast_to(flags, (len(values),)).copy()


def _ends(attribute: Attribute) -> tuple[pl.Series, pl.Series]:
    """Return the least and the greatest value that a record of each cell can have; null for what was not declared."""
    labels = attribute.labels
    if attribute.bins is None:
        return labels, labels
    edges = attribute.bins.edges
    if are_times(edges):
        upper = pl.Series(edges[1:])
        last = (upper.to_physical() - 1).cast(upper.to_physical().dtype).cast(upper.dtype)
    elif isinstance(edges[0], int):
        last = pl.Series(np.array(edges[1:], np.int64) - 1)
    else:
        last = pl.Series(np.nextafter(np.array(edges[1:], np.float64), -np.inf))
    return labels, last.extend_constant(None, len(labels) - len(last))


def _check_cut(test: Test, attribute: Attribute, cut: Flags) -> None:
    """Refuse a test that is true of some values of a bin only."""
    if cut.any():
        bins: Bins | None = attribute.bins
        assert bins is not None
        place = int(np.argmax(cut))
        given = Words(f"{test}, which cuts the bin from {bins.edges[place]} to {bins.edges[place + 1]}")
        raise ParameterError(_ASKER, given, "true or false of whole bins", "compare with an edge, or add one")
