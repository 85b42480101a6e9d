"""Where the values of privacy units lie: one value of each, counted between any edges, exactly, where it stands.

Rows that are units themselves are counted in the memory that they are in, as often as is asked; nothing is sorted or
copied. Of units with several rows one row is chosen at random, from all its rows whose group is shown. What cannot be
read again is kept as it was read.

The proof that one unit more or fewer changes one count by 1 at most, and a replaced one two: what is counted of a unit
is a function of its own rows and of words that no other unit reads; see `dpfast.aggregation.units`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block, share_blocks
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.private import Private
from dpfast.kernels.grouping.places import ALIKE, WAYS, count_between, order_distances

__all__ = ["PlaceKind", "Places"]

#: How values stand: as floats, as whole numbers, or as points that are numbered from 1, 0 for none.
PlaceKind: TypeAlias = Literal["floats", "wholes", "points"]
_KINDS: dict[str, PlaceKind] = {"numbers": "floats", "integers": "wholes"}

#: The cells of the first table: some 128 for each doubling of a distance, above and below; and of the others.
_FIRST_CELLS, _CELLS = 1 << 18, 1 << 8
#: Whole numbers beyond count as these, as on the axis where they are looked for: their differences fit into int64.
_WHOLE_ENDS: dict[PlaceKind, tuple[int, int]] = {"wholes": (-(2**62) + 1, 2**62 - 1), "points": (0, 2**63 - 2)}


class Places(Private):
    """Values of one column, at most one of each unit: exact and private.

    Parameters
    ----------
    values
        The column in a frame, whose memory is shared.
    kind
        How the values stand.
    seen
        1 for the rows that count (uint8), None for all.

    """

    def __init__(self, values: pl.Series, kind: PlaceKind, seen: NDArray[np.uint8] | None = None) -> None:
        self.kind = kind
        self._frame = values.alias("value").to_frame()
        self._seen = seen

    @classmethod
    def of(cls, contribution: Contribution, values: pl.Series, seen: NDArray[np.uint8] | None = None) -> Places:
        """Return the places of a measure's points, from the column that it is read from."""
        return cls(values, _KINDS.get(contribution.way, "points"), seen)

    def count(self, edges: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many values lie below the first edge, from each edge to the next, and from the last one on.

        Parameters
        ----------
        edges
            Increasing; float64 for floats, else int64.

        Examples
        --------
        >>> places = Places(pl.Series([0.5, 3.0, None, float("nan"), 9.0]), "floats")
        >>> places.count(np.array([1.0, 3.0])).tolist()
        [1, 0, 2]

        """
        assert edges.dtype == (np.float64 if self.kind == "floats" else np.int64)
        kind = edges.dtype.type
        # The edges that are drawn grow from one in their middle, or are evenly spaced.
        centre = edges[edges.size // 2] if edges.size else kind(0)
        tables = _tables(edges, centre)
        ends: tuple[float, float] = (-math.inf, math.inf) if self.kind == "floats" else _WHOLE_ENDS[self.kind]
        padded = np.append(edges, kind(math.nan if self.kind == "floats" else 2**63 - 1))
        found: list[NDArray[np.int64]] = []

        def add(block: Block, start: int, stop: int) -> None:
            counts = np.zeros(WAYS * padded.size, np.int64)
            for _ in block.walk(start, stop):
                values = block.view_floats("value") if self.kind == "floats" else block.view_integers("value")
                valid = self._valid(block, values)
                count_between(values, valid, kind(ends[0]), kind(ends[1]), centre, padded, *tables, counts)
            found.append(counts.reshape(WAYS, padded.size).sum(axis=0))

        share_blocks(self._frame, 64, add)
        total: NDArray[np.int64] = np.sum(found, axis=0, dtype=np.int64)
        return total

    def _valid(self, block: Block, values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return which rows of a block count."""
        valid: NDArray[np.uint8] = block.validity("value")
        seen = None if self._seen is None else self._seen[block.start : block.stop]
        if self.kind == "points":
            seen = (values != 0).view(np.uint8) if seen is None else seen & (values != 0)
        return valid if seen is None else np.bitwise_and(valid, seen, out=block.flags)


def _tables(
    edges: NDArray[Any], centre: Any
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int16]]:
    """Return the tables of `count_between`."""
    assert edges.size < 2**14
    places = np.empty(edges.size, np.uint64)
    order_distances(edges, centre, places)
    lows, shifts, lasts, firsts = list[int](), list[int](), list[int](), list[int]()
    cells: list[NDArray[np.int16]] = []
    waiting, taken = [(0, places)], 0
    for below, own in waiting:
        low = int(own[0]) if own.size else 0
        span = int(own[-1]) - low if own.size else 0
        lows.append(low)
        if lows[1:] and span == 0:
            shifts.append(int(ALIKE))
            lasts.append(0)
            firsts.append(below)
            continue
        shift = max(0, span.bit_length() - (_CELLS if shifts else _FIRST_CELLS).bit_length() + 1)
        last = span >> shift
        within = ((own - np.uint64(low)) >> np.uint64(shift)).astype(np.int64)
        # As many cells as from one edge to the next have the same number below.
        numbers = np.arange(below, below + own.size + 1, dtype=np.int16)
        table = np.repeat(numbers, np.diff(within, prepend=-1, append=last))
        several = np.flatnonzero(np.diff(within, prepend=-1, append=last + 1) > 0)
        for start, stop in pairwise(several.tolist()):
            if stop - start > 1:
                table[within[start]] = -1 - len(waiting)
                waiting.append((below + start, own[start:stop]))
        shifts.append(shift)
        lasts.append(last)
        firsts.append(taken)
        cells.append(table)
        taken += table.size
    whole = np.concatenate(cells)
    return (
        np.array(lows, np.uint64), np.array(shifts, np.uint64), np.array(lasts, np.uint64),
        np.array(firsts, np.uint64), whole,
    )  # fmt: skip
