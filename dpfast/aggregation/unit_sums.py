"""Exact figures of every pair of a privacy unit and a group, for mechanisms that bound units as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.private import Private
from dpfast.aggregation.scatter import Scatter
from dpfast.kernels.grouping.bounding import count_unit_rows, sort_by_unit
from dpfast.kernels.grouping.pairing import number_pairs

__all__ = ["UnitSums", "count_pairs", "sum_pairs"]


@dataclass(frozen=True, repr=False)
class UnitSums(Private):
    """What each unit adds to each group that it has rows in: exact and private.

    Attributes
    ----------
    units, groups : int32
        One of each for every pair; no pair twice.
    figures : int64
        One array for each measure, in order.
    number
        All units are below this, and each of these has a pair: whoever counts units counts no one who is not there.

    """

    units: NDArray[np.int32]
    groups: NDArray[np.int32]
    figures: Sequence[NDArray[np.int64]]
    number: int


def sum_pairs(
    units: NDArray[np.int32],
    number: int,
    groups: NDArray[np.int32],
    keys: int,
    values: pl.DataFrame,
    contributions: Sequence[Contribution],
) -> UnitSums:
    """Return the figures of all pairs.

    Parameters
    ----------
    units, number, groups, keys
        Each row's unit, below ``number``, and group, below ``keys``; -1 for none: such rows are left out.
    values, contributions
        What rows add, and the columns that this is read from.

    """
    # A row without a pair has the number -1, as uint64 beyond all others: the trash of a scatter.
    pairs = np.full(len(units), -1, np.int64)
    pair_units, pair_groups, rows = _number(units, number, groups, keys, pairs)

    def slots_of(block: Block) -> np.ndarray:
        return pairs[block.start : block.stop].view(np.uint64)

    figures = [rows for _ in contributions]
    # Of rows alone there is nothing to read; of none, a scatter has no tables.
    if len(units) and any(contribution.way != "rows" for contribution in contributions):
        scatter = Scatter(rows.size, slots_of, contributions)
        scatter.add(values)
        figures = [np.asarray(table)[: rows.size] for table in scatter.tables()]
    return UnitSums(pair_units, pair_groups, figures, int(pair_units.max(initial=-1)) + 1)


def count_pairs(
    units: NDArray[np.int32], number: int, groups: NDArray[np.int32], keys: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the unit of every pair, unit by unit, and how many rows it has; parameters as of `sum_pairs`."""
    pair_units, _, rows = _number(units, number, groups, keys, None)
    return pair_units, rows


def _number(
    units: NDArray[np.int32],
    number: int,
    groups: NDArray[np.int32],
    keys: int,
    pairs: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return every pair's unit and group, unit by unit, and how many rows it has; ``pairs`` gets each row's pair."""
    starts = np.zeros(number + 1, np.int64)
    count_unit_rows(units, groups, starts)
    np.cumsum(starts, out=starts)
    kept = int(starts[-1])
    sorted_groups = np.empty(kept, np.int32)
    sorted_rows: NDArray[Any] | None = None if pairs is None else np.empty(kept, np.int64)
    sort_by_unit(units, groups, starts[:-1].copy(), sorted_groups, sorted_rows)
    if pairs is None or sorted_rows is None:
        # The groups stand for the rows: which pair a row belongs to is not wanted, only room to write it.
        pairs, sorted_rows = np.empty(keys, np.int64), sorted_groups
    last_unit, last_pair = np.full(keys, -1, np.int32), np.empty(keys, np.int64)
    pair_units, pair_groups, rows = np.empty(kept, np.int32), np.empty(kept, np.int32), np.empty(kept, np.int64)
    found = number_pairs(starts, sorted_groups, sorted_rows, last_unit, last_pair, pairs, pair_units, pair_groups, rows)
    return pair_units[:found], pair_groups[:found], rows[:found]
