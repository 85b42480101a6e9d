"""Where the values of privacy units lie: one value of each, counted between any edges, exactly, where it stands.

Rows that are units themselves are counted in the memory that they are in, as often as is asked; nothing is sorted or
copied. Of units with several rows one row is chosen at random, from all its rows whose group is shown. What cannot be
read again is kept as it was read.

The proof that one unit more or fewer changes one count by 1 at most, and a replaced one two: what is counted of a unit
is a function of its own rows and of words that no other unit reads; see `dpfast.aggregation.units`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.blocks import Block, share_blocks
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.private import Private
from dpfast.kernels.grouping.places import count_cells, find_cells, fold_cells, order_distances

__all__ = ["PlaceKind", "Places"]

#: How values stand: as floats, as whole numbers, or as points that are numbered from 1, 0 for none.
PlaceKind: TypeAlias = Literal["floats", "wholes", "points"]
_KINDS: dict[str, PlaceKind] = {"numbers": "floats", "integers": "wholes"}

#: Some 128 cells for each doubling of a distance, above and below.
_CELLS = 1 << 18


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
        # The edges that are drawn grow from one in their middle, or are evenly spaced.
        centre = np.float64(edges[edges.size // 2]) if edges.size else np.float64(0)
        low, shift, last, below = _cells_between(edges, centre)
        found: list[NDArray[np.int64]] = []

        def add(block: Block, start: int, stop: int) -> None:
            table, counts = np.zeros(below.size - 1, np.int64), np.zeros(edges.size + 1, np.int64)
            for _ in block.walk(start, stop):
                values = block.view_floats("value") if self.kind == "floats" else block.view_integers("value")
                cells = block.slots.view(np.uint32)[: block.rows]
                find_cells(values, self._valid(block, values), centre, low, shift, last, cells)
                count_cells(values, cells, edges, below, table, counts)
            fold_cells(below, table, counts)
            found.append(counts)

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


def _cells_between(
    edges: NDArray[Any], centre: np.float64
) -> tuple[np.uint64, np.uint64, np.uint64, NDArray[np.int16]]:
    """Return where cells begin, their width, the last one, and how many edges lie below each; see `find_cells`."""
    assert edges.size < 2**15
    places = np.empty(edges.size, np.uint64)
    order_distances(edges, centre, places)
    low = int(places[0]) if edges.size else 0
    span = int(places[-1]) - low if edges.size else 0
    shift = max(0, span.bit_length() - _CELLS.bit_length() + 1)
    last = span >> shift
    within = ((places - np.uint64(low)) >> np.uint64(shift)).astype(np.int64)
    # As many cells as from one edge to the next have the same number below. The first cell is that of no value.
    lengths = np.diff(within + 1, prepend=-1, append=last + 2)
    below = np.repeat(np.arange(edges.size + 1, dtype=np.int16), lengths)
    return np.uint64(low), np.uint64(shift), np.uint64(last), below
