"""The groups that privacy units keep, in memory or in an encrypted file, to be gone through as often as needed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import polars as pl

from dpfast.aggregation import memory
from dpfast.aggregation.holdings import Holdings, sorted_units
from dpfast.aggregation.private import Private
from dpfast.aggregation.spilling import SpillFile
from dpfast.threads import in_stretches, thread_count

__all__ = ["KeptGroups"]

#: Where the stops and the groups of some units are in the file.
_Place: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

#: Blocks of all parts that are merged take this share of what rows may take, but a block this much.
_SHARE, _LEAST_BLOCK_BYTES = 4, 1 << 14


def _sorted_in_threads(part: Holdings, ranks: np.ndarray, singles: np.ndarray) -> list[Holdings]:
    """Return units sorted by `sorted_units` in as many runs as threads: their merge is the same whatever the shares."""

    def work(first: int, last: int) -> tuple[Holdings, np.ndarray]:
        start = int(part.stops[first - 1]) if first else 0
        stop = int(part.stops[last - 1]) if last else 0
        counts = np.zeros_like(singles)
        return sorted_units(Holdings(part.stops[first:last] - start, part.groups[start:stop]), ranks, counts), counts

    units = part.stops.size
    runs = in_stretches(work, units, min(thread_count(None, part.groups.size), units))
    for _, counts in runs:
        singles += counts
    return [run for run, _ in runs]


class KeptGroups(Private):
    """Parts of `Holdings`, each of other units: exact and private.

    Iterating gives them one by one, each time anew: those in a file are read again, so that one part at a time is in
    memory. `runs` gives them sorted, to be merged. The file goes with the last object that reads it.

    Parameters
    ----------
    folder
        A folder on a disk for a `SpillFile`; None keeps the parts in memory.

    """

    def __init__(self, folder: str | None) -> None:
        self._parts: list[Holdings] = []
        self._places: list[_Place] = []
        self._numbers: np.ndarray | None = None
        self._file = None if folder is None else SpillFile(folder)
        if self._file is not None:
            weakref.finalize(self._file, self._file.closer())

    def add(self, part: Holdings) -> None:
        """Add what further units keep."""
        if self._file is None:
            self._parts.append(part)
        else:
            self._places.append(self._write(part))

    def renumbered(self, numbers: np.ndarray) -> KeptGroups:
        """Return the same with group g called ``numbers[g]``; parts in the same file get theirs when they are read."""
        other = KeptGroups(None)
        other._parts = [part.renumbered(numbers) for part in self._parts]
        other._places, other._file, other._numbers = self._places, self._file, numbers
        return other

    def runs(self, ranks: np.ndarray, singles: np.ndarray) -> list[Iterator[Holdings]]:
        """Return each part's units in the canonical order of `sorted_units`, in blocks, to be gone through once.

        Parts in a file are sorted one by one, and written to it again.

        Parameters
        ----------
        ranks : int32
            The place of every key in the order of their values.
        singles : int64, one per key
            Units of one key are counted here, at the latest when the runs have been gone through.

        """
        if self._file is None:
            return [iter((run,)) for part in self._parts for run in _sorted_in_threads(part, ranks, singles)]
        most = max(memory.room_for_rows() // (_SHARE * max(len(self._places), 1)), _LEAST_BLOCK_BYTES)
        return [self._read_blocks(self._write_blocks(sorted_units(part, ranks, singles), most)) for part in self]

    def _write_blocks(self, part: Holdings, most: int) -> list[_Place]:
        """Write a part in blocks of at most so many bytes, or one unit, and return their places."""
        places, unit, start = [], 0, 0
        # 8 bytes a unit and 4 a group.
        sizes = 8 * np.arange(1, part.stops.size + 1) + 4 * part.stops
        while unit < part.stops.size:
            last = int(np.searchsorted(sizes, 8 * unit + 4 * start + most, side="right"))
            last = max(last, unit + 1)
            stop = int(part.stops[last - 1])
            places.append(self._write(Holdings(part.stops[unit:last] - start, part.groups[start:stop])))
            unit, start = last, stop
        return places

    def _read_blocks(self, places: list[_Place]) -> Iterator[Holdings]:
        for place in places:
            yield self._read(place)

    def __iter__(self) -> Iterator[Holdings]:
        yield from self._parts
        for place in self._places:
            part = self._read(place)
            yield part if self._numbers is None else part.renumbered(self._numbers)

    def _write(self, part: Holdings) -> _Place:
        assert self._file is not None
        stops, groups = (pl.DataFrame({"numbers": numbers}) for numbers in (part.stops, part.groups))
        return self._file.write(stops), self._file.write(groups)

    def _read(self, place: _Place) -> Holdings:
        assert self._file is not None
        # Writable, like those in memory: kernels would be compiled anew for others.
        stops, groups = (self._file.read(numbers)["numbers"].to_numpy(writable=True) for numbers in place)
        return Holdings(stops, groups)
