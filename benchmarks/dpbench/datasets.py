"""Datasets by name: how likely each cell is, at the sizes that a dataset has; and which are held out.

A third of the made-up families is held out: nothing may be tuned on it, so that the last table shows what was not seen
before. The name decides (`is_held_out`), not we. Shapes with published names (`shapes.py`) were tuned on, and are never
held out; real data and those of a user's folder are nobody's to tune on, and stand in tables of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError

from .folder import files_of, read_counts
from .made_lines import MADE_LINES
from .made_planes import MADE_PLANES
from .made_tables import MADE_TABLES, SHAPES
from .real import REAL, real_counts
from .shapes import LINES, PLANES, coarsened, histogram

__all__ = ["KINDS", "Dataset", "digest", "folder_datasets", "is_held_out", "known", "named", "number_of"]

#: Where datasets come from.
KINDS = ("made", "held out", "published shape", "real", "folder")
_MANY = 64
_PUBLISHED = {shape.name: shape for shape in (*LINES, *PLANES)}


@dataclass(frozen=True)
class Dataset:
    """A histogram by name.

    Attributes
    ----------
    name, kind
        What it is called, and one of `KINDS`.
    axes
        1, 2, or those of a table of one shape.
    shares
        From a shape to how likely each cell is: float64 of that shape, of sum 1.
    finest
        The shape that the data have, and the largest there is; None if there is none.

    """

    name: str
    kind: str
    axes: int
    shares: Callable[[tuple[int, ...]], NDArray[np.float64]]
    finest: tuple[int, ...] | None = None

    def shapes(self, sides: Iterable[int]) -> list[tuple[int, ...]]:
        """Return the shapes with so many cells a side that this dataset has, or the one that it has anyway."""
        asked = [(side,) * self.axes for side in sides]
        if self.finest is None:
            return asked
        coarse = [shape for shape in asked if all(new <= old for new, old in zip(shape, self.finest, strict=True))]
        return coarse or [self.finest]


def number_of(*parts: object) -> int:
    """Return a number below 2**128 that the parts alone decide: a seed that no other trial has."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:16])


def is_held_out(family: str) -> bool:
    """Whether a made-up family is kept for the final table: a third of all names, by their hash."""
    return int.from_bytes(hashlib.sha256(family.encode()).digest()) % 3 == 0


def digest(shares: NDArray[np.float64]) -> str:
    """Return eight letters that change when the data do."""
    return hashlib.sha256(shares.tobytes()).hexdigest()[:8]


def _normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    result = np.asarray(weights, np.float64)
    result = result / result.sum()
    result.setflags(write=False)
    return result


@lru_cache(_MANY)
def _made(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    generator = np.random.default_rng(number_of(name, shape))
    if len(shape) == 1:
        return _normalised(MADE_LINES[name](generator, shape[0]))
    return _normalised(MADE_PLANES[name](generator, shape[0]))


@lru_cache(_MANY)
def _made_table(family: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return _normalised(MADE_TABLES[family](np.random.default_rng(number_of(family, shape)), shape))


def _coarse(counts: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    return _normalised(coarsened(counts, shape[0]) if counts.shape != shape else counts)


@lru_cache(_MANY)
def _published(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return _coarse(histogram(_PUBLISHED[name]), shape)


@lru_cache(_MANY)
def _real(name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return _coarse(real_counts(name), shape)


@lru_cache(_MANY)
def _from_file(path: Path, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return _coarse(read_counts(path), shape)


def _kind(family: str) -> str:
    return "held out" if is_held_out(family) else "made"


def known() -> dict[str, Dataset]:
    """Return all made-up, published and real datasets by name; real ones where their packages are installed."""
    found = [
        Dataset(name, _kind(name), axes, partial(_made, name))
        for axes, families in ((1, MADE_LINES), (2, MADE_PLANES))
        for name in families
    ]
    found += [
        Dataset(f"{name}, {len(shape)} axes", _kind(name), len(shape), partial(_made_table, name), shape)
        for name in MADE_TABLES
        for shape in SHAPES
    ]
    found += [
        Dataset(name, "published shape", len(shape.shape), partial(_published, name), shape.shape)
        for name, shape in _PUBLISHED.items()
    ]
    found += [
        Dataset(name, "real", len(column.shape), partial(_real, name), column.shape)
        for name, column in REAL.items()
        if column.installed
    ]
    return {dataset.name: dataset for dataset in found}


def folder_datasets(folder: Path) -> dict[str, Dataset]:
    """Return the datasets of a folder's files by the files' names; each file is read, and refused if it is wrong."""
    found = {}
    for path in files_of(folder):
        shape = read_counts(path).shape
        found[path.stem] = Dataset(path.stem, "folder", len(shape), partial(_from_file, path), shape)
    return found


def named(names: Iterable[str], *, held_out: bool) -> list[Dataset]:
    """Return datasets by name; those that are held out only if that is said.

    Raises
    ------
    ParameterError
        There is none of this name, or it is held out.

    """
    every, found = known(), []
    for name in names:
        if name not in every:
            raise ParameterError("datasets", name, "a name that --list shows, or a folder")
        if every[name].kind == "held out" and not held_out:
            raise ParameterError("datasets", name, "one that is not held out", "--held-out measures the final table")
        found.append(every[name])
    return found
