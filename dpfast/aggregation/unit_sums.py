"""Exact figures of every pair of a privacy unit and a group, for mechanisms that bound units as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.private import Private

__all__ = ["UnitSums", "number_pairs"]


@dataclass(frozen=True, repr=False)
class UnitSums(Private):
    """What each unit adds to each group that it has rows in: exact and private.

    Attributes
    ----------
    units : int64, groups : int32
        One of each for every pair; no pair twice.
    figures : int64
        One array for each measure, in order.
    number
        All units are below this.

    """

    units: NDArray[np.int64]
    groups: NDArray[np.int32]
    figures: Sequence[NDArray[np.int64]]
    number: int


def number_pairs(pairs: pl.DataFrame, groups: NDArray[np.int32], measures: int) -> UnitSums:
    """Return the figures of pairs that have a group and a unit.

    Parameters
    ----------
    pairs
        The columns ``unit`` and ``measure0``, ``measure1``, and so on, a row a pair.
    groups
        Of each pair, -1 for none.
    measures
        How many there are.

    """
    figures = [f"measure{i}" for i in range(measures)]
    pairs = pairs.with_columns(group=pl.Series(groups)).filter(pl.col("unit").is_not_null() & (pl.col("group") >= 0))
    # Once more: two values of a key may have one public key. A pair that stood twice would seem shorter than it is.
    pairs = pairs.group_by("unit", "group").agg(pl.col(figures).sum())
    units = pairs["unit"].to_physical().rank("dense").cast(pl.Int64).to_numpy() - 1
    sums = [pairs[name].to_numpy() for name in figures]
    return UnitSums(units, pairs["group"].to_numpy(), sums, int(units.max(initial=-1)) + 1)
