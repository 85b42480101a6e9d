"""Exact figures of every pair of a privacy unit and a group, for mechanisms that bound units as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.private import Private
from dpfast.aggregation.scatter import Scatter
from dpfast.aggregation.unit_orders import NumberedRows
from dpfast.kernels.grouping.pairing import number_pairs

__all__ = ["UnitSums", "sum_pairs"]


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
    numbered: NumberedRows, keys: int, values: pl.DataFrame, contributions: Sequence[Contribution]
) -> UnitSums:
    """Return the figures of all pairs.

    Parameters
    ----------
    numbered, keys
        Each row's unit and group, which is below ``keys``; rows without one of them are left out.
    values, contributions
        What rows add, and the columns that this is read from.

    """
    # A row without a pair has the number -1, as uint64 beyond all others: the trash of a scatter.
    pairs = np.full(len(numbered.units), -1, np.int64)
    pair_units, pair_groups, rows = _number(numbered, keys, pairs)

    def slots_of(block: Block) -> np.ndarray:
        return pairs[block.start : block.stop].view(np.uint64)

    figures = [rows for _ in contributions]
    # Of rows alone there is nothing to read; of none, a scatter has no tables.
    if pairs.size and any(contribution.way != "rows" for contribution in contributions):
        scatter = Scatter(rows.size, slots_of, contributions)
        scatter.add(values)
        figures = [np.asarray(table)[: rows.size] for table in scatter.tables()]
    return UnitSums(pair_units, pair_groups, figures, int(pair_units.max(initial=-1)) + 1)


def _number(
    numbered: NumberedRows, keys: int, pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return every pair's unit and group, unit by unit, and how many rows it has; ``pairs`` gets each row's pair."""
    order = numbered.take_order(rows=True)
    kept = order.groups.size
    last_unit, last_pair = np.full(keys, -1, np.int32), np.empty(keys, np.int64)
    pair_units, pair_groups, rows = np.empty(kept, np.int32), np.empty(kept, np.int32), np.empty(kept, np.int64)
    found = number_pairs(
        order.starts, order.groups, order.rows, last_unit, last_pair, pairs, pair_units, pair_groups, rows
    )
    return pair_units[:found], pair_groups[:found], rows[:found]
