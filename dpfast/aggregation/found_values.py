"""Values of a column that are found in the data, and how many rows each has in every group: private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.choices import CandidateCoder, native_choices
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.grouped_points import GroupedPoints, sorted_points
from dpfast.aggregation.private import Private

__all__ = ["FoundValues", "with_values"]


class FoundValues(Private):
    """How many rows each value has in every group.

    Attributes
    ----------
    values
        All values of the column, sorted.
    rows
        A row of numbers for each group, one for each value; or each row's value, as its place from 1 on, by group.

    """

    __slots__ = ("rows", "values")

    def __init__(self, values: pl.Series, rows: NDArray[np.int64] | GroupedPoints) -> None:
        self.values, self.rows = values, rows

    def __getitem__(self, chosen: Any) -> FoundValues:
        """Return chosen groups."""
        return FoundValues(self.values, self.rows[chosen])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        """Show nothing of the values."""
        return f"FoundValues({len(self)} groups, private)"

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs of a group and a value that have rows: both as places, and how many rows; sorted.

        Examples
        --------
        >>> rows = GroupedPoints(np.array([2, 1, 2, 1]), np.array([0, 3]), np.array([3, 4]))
        >>> [column.tolist() for column in FoundValues(pl.Series(["a", "b"]), rows).pairs()]
        [[0, 0, 1], [0, 1, 0], [1, 2, 1]]

        """
        if isinstance(self.rows, np.ndarray):
            groups, places = np.nonzero(self.rows)
            return groups, places, self.rows[groups, places]
        owners, points = sorted_points(self.rows)
        codes = owners * (len(self.values) + 1) + points
        firsts = np.flatnonzero(np.diff(codes, prepend=-1))
        found, rows = codes[firsts], np.diff(firsts, append=codes.size)
        return found // (len(self.values) + 1), found % (len(self.values) + 1) - 1, rows


def with_values(
    frame: pl.DataFrame | pl.LazyFrame, contributions: Sequence[Contribution]
) -> tuple[list[Contribution], dict[int, pl.Series]]:
    """Return contributions that know the values to be counted, and these values by the contribution's place.

    The data are read once for it; a value that is met later, and was not then, counts as none.
    """
    known, found = list(contributions), dict[int, pl.Series]()
    for place, contribution in enumerate(contributions):
        if contribution.measure.kind != "found":
            continue
        assert contribution.block is not None
        names = frame.lazy().select(contribution.block.alias("value").unique())
        found[place] = _sorted(names.collect(engine="streaming").to_series().drop_nulls())
        known[place] = _of_values(contribution, found[place])
    return known, found


def _sorted(values: pl.Series) -> pl.Series:
    """Return values in an order of their own; the codes of categoricals are numbered as the data happen to come."""
    if isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        return values[values.cast(pl.String).arg_sort()]
    return values.sort()


def _of_values(contribution: Contribution, values: pl.Series) -> Contribution:
    """Return how each row's value is found."""
    assert contribution.block is not None
    measure = replace(contribution.measure, upper=max(len(values), 1))
    if not len(values):
        nothing = contribution.block.is_null().cast(pl.Int64) * 0
        return Contribution(measure, nothing, nothing, "ready")
    native, coder = native_choices(values, contribution.block), CandidateCoder.of(values)
    if coder is None:
        return Contribution(measure, native, native, "ready")
    return Contribution(measure, native, contribution.block, "choices", coder)
