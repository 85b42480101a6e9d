"""Several workloads over the same histogram as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.errors import ParameterError, Words
from dpfast.workloads.shapes import check_size, checked_coefficients
from dpfast.workloads.workload import Workload, checked_histogram

__all__ = ["Union"]


class Union(Workload):
    """The queries of several workloads, one after the other: what ``a + b`` makes.

    Parameters
    ----------
    parts
        Workloads of one shape, at least one.

    """

    def __init__(self, *parts: Workload) -> None:
        if not parts or not all(isinstance(part, Workload) for part in parts):
            raise ParameterError("workloads", parts, "one workload or more", "write prefix(8) + total(8)")
        self.parts: tuple[Workload, ...] = ()
        for part in parts:
            self.parts += part.parts if isinstance(part, Union) else (part,)
        self.shape = self.parts[0].shape
        for part in self.parts:
            if part.shape != self.shape:
                raise ParameterError(
                    "workloads", Words(f"over {self.shape} and {part.shape}"), "over histograms of one shape"
                )
        self.offsets = np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]).astype(np.int64)
        check_size(len(self), "workloads", "queries")

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def answer(self, histogram: Any) -> NDArray[Any]:
        """Return the answers of all parts: float64 if those of one are."""
        cells = checked_histogram(histogram, self.shape)
        return np.concatenate([part.answer(cells) for part in self.parts])

    def transposed(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all parts."""
        given = checked_coefficients(coefficients, len(self))
        out = np.zeros(self.shape)
        for part, start, stop in zip(self.parts, self.offsets, self.offsets[1:], strict=False):
            out += part.transposed(given[start:stop])
        return out

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows of the parts."""
        blocks = [
            part.rows(max(start - first, 0), min(stop, last) - first)
            for part, first, last in zip(self.parts, self.offsets.tolist(), self.offsets[1:].tolist(), strict=False)
            if start < last and first < stop
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, self.cells), np.uint8)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest coefficient of all parts."""
        ranges = [part.range for part in self.parts]
        return min(least for least, _ in ranges), max(largest for _, largest in ranges)

    @property
    def binary(self) -> bool:
        """Whether all parts are."""
        return all(part.binary for part in self.parts)

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The groups of the parts, one after the other."""
        groups = [part.groups for part in self.parts]
        if all(group is None for group in groups):
            return None
        starts = [
            first + (np.arange(len(part)) if group is None else group[:-1])
            for part, group, first in zip(self.parts, groups, self.offsets, strict=False)
        ]
        return np.concatenate([*starts, self.offsets[-1:]])

    def frame(self) -> pl.DataFrame:
        """Return the parts' frames below each other, after a column ``part`` with the part's number."""
        frames = [
            part.frame().select(pl.lit(number).cast(pl.Int64).alias("part"), pl.all())
            for number, part in enumerate(self.parts)
        ]
        together: pl.DataFrame = pl.concat(frames, how="diagonal")
        return together

    def _gram(self) -> NDArray[np.float64]:
        out = np.zeros((self.cells, self.cells))
        for part in self.parts:
            out += part.gram()
        return out

    def energy(self, edges: NDArray[np.int64]) -> float:
        """Return the sum of the parts' energies."""
        return sum(part.energy(edges) for part in self.parts)
