"""Rows of many privacy units, dealt out to parts in a file, so that all rows of a unit are in one part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from dpfast.aggregation.spilling import SpillFile
from dpfast.randomness import SystemRandom

__all__ = ["Part", "Parts"]

_PARTS = 128
_FLUSHES = 8
_ROW_BYTES = 96
"""What a row of a part takes at most beside its values: unit, group, both sorted, and the tables of units."""


@dataclass
class Part:
    """Rows of some units, all rows of each: where they are, and what they take."""

    blocks: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    #: The one unit of all rows so far, in a frame of one row; None before the first and with the second.
    unit: Any = None
    is_lone: bool = True

    @property
    def need(self) -> int:
        """How much memory it takes to bound the rows at once."""
        return _ROW_BYTES * self.rows + 2 * self.bytes

    def read(self, file: SpillFile) -> Iterator[pl.DataFrame]:
        """Yield the rows, block by block."""
        for place in self.blocks:
            yield file.read(place)

    def note(self, frame: pl.DataFrame) -> None:
        """Count rows that are added."""
        self.rows += frame.height
        self.bytes += int(frame.estimated_size())
        if self.is_lone:
            unit = frame["unit"]
            self.unit = unit[0] if self.unit is None else self.unit
            self.is_lone = bool((unit == self.unit).all())


class Parts:
    """Rows dealt out by a hash of their unit.

    The hash has a fresh seed, so that data cannot be made to crowd a part, and its last value is for ``crowding``,
    a unit that was seen to have very many rows.
    """

    def __init__(self, file: SpillFile, room: int, crowding: Any = None) -> None:
        self._file = file
        self._flush_bytes = room // _FLUSHES
        self._crowding = crowding
        self._seed = int.from_bytes(SystemRandom().key()[:8], "little")
        self._parts = [Part() for _ in range(_PARTS + 1)]
        self._waiting: list[pl.DataFrame] = []
        self._bytes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows of the columns ``unit``, ``group`` and values; written down when enough are together."""
        if frame.height:
            self._waiting.append(frame)
            self._bytes += int(frame.estimated_size())
        if self._bytes > self._flush_bytes:
            self._flush()

    def finish(self) -> list[Part]:
        """Return the parts that have rows; nothing can be added afterwards."""
        self._flush()
        parts, self._parts = self._parts, []
        return [part for part in parts if part.rows]

    def _flush(self) -> None:
        if not self._waiting:
            return
        frame = pl.concat(self._waiting)
        self._waiting, self._bytes = [], 0
        part = pl.col("unit").hash(self._seed) % _PARTS
        if self._crowding is not None:
            part = pl.when(pl.col("unit") == self._crowding).then(_PARTS).otherwise(part)
        frame = frame.with_columns(part.cast(pl.UInt8).alias("part"))
        for piece in frame.partition_by("part", maintain_order=True):
            place = self._parts[piece["part"][0]]
            piece = piece.drop("part")
            place.note(piece)
            place.blocks.append(self._file.write(piece))
