"""The groups that privacy units keep, in memory or in an encrypted file, to be gone through as often as needed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import polars as pl

from dpfast.aggregation.spilling import SpillFile
from dpfast.errors import DpfastError
from dpfast.mechanisms.key_weights import Holdings

__all__ = ["KeptGroups"]


class KeptGroups:
    """Parts of `Holdings`, each of other units: exact and private.

    Iterating gives them one by one, each time anew: those in a file are read again, so that one part at a time is in
    memory. The file goes with the last object that reads it.

    Parameters
    ----------
    folder
        A folder on a disk for a `SpillFile`; None keeps the parts in memory.

    """

    def __init__(self, folder: str | None) -> None:
        self._parts: list[Holdings] = []
        self._places: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self._numbers: np.ndarray | None = None
        self._file = None if folder is None else SpillFile(folder)
        if self._file is not None:
            weakref.finalize(self._file, self._file.closer())

    def add(self, part: Holdings) -> None:
        """Add what further units keep."""
        if self._file is None:
            self._parts.append(part)
            return
        stops, groups = (pl.DataFrame({"numbers": numbers}) for numbers in (part.stops, part.groups))
        self._places.append((self._file.write(stops), self._file.write(groups)))

    def renumbered(self, numbers: np.ndarray) -> KeptGroups:
        """Return the same with group g called ``numbers[g]``; it reads the same file."""
        other = KeptGroups(None)
        other._parts, other._places, other._file, other._numbers = self._parts, self._places, self._file, numbers
        return other

    def __iter__(self) -> Iterator[Holdings]:
        for part in self._parts:
            yield self._renumber(part)
        for places in self._places:
            assert self._file is not None
            stops, groups = (self._file.read(place)["numbers"].to_numpy() for place in places)
            yield self._renumber(Holdings(stops, groups))

    def _renumber(self, part: Holdings) -> Holdings:
        return part if self._numbers is None else part.renumbered(self._numbers)

    def __repr__(self) -> str:
        return "KeptGroups(private)"

    def __reduce__(self) -> NoReturn:
        raise DpfastError("what units hold cannot be pickled or copied: it is private")
