"""Histograms in files: ``.npy``, ``.parquet`` and ``.csv``, in one dimension and in two."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.errors import ParameterError, Words

__all__ = ["SUFFIXES", "files_of", "read_counts"]

SUFFIXES = (".npy", ".parquet", ".csv")
_MOST_CELLS = 2**26
_COUNT = "count"


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that hold histograms, by name."""
    if not folder.is_dir():
        raise ParameterError("datasets", str(folder), "a folder, or names that --list shows")
    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    if not found:
        raise ParameterError("datasets", str(folder), "a folder with files that end in " + ", ".join(SUFFIXES))
    if len({path.stem for path in found}) < len(found):
        names = ", ".join(path.name for path in found)
        raise ParameterError("datasets", Words(names), "files whose names differ also without their ends")
    return found


@lru_cache(64)
def read_counts(path: Path) -> NDArray[np.int64]:
    """Return the histogram in a file.

    An array has the counts in one or two dimensions. A table has them in one column, a cell a row; or in a column
    ``count``, beside one or two columns with the numbers of the cell, from 0 on: cells without a row are empty.

    Raises
    ------
    ParameterError
        The file cannot be read, or does not hold that.

    """
    try:
        if path.suffix == ".npy":
            counts = np.load(path, allow_pickle=False)
        else:
            frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError("datasets", Words(f"{path.name}: {reason}"), "files that can be read") from None
    if path.suffix != ".npy":
        counts = _from_table(path.name, frame)
    return _checked(path.name, counts)


def _from_table(name: str, frame: pl.DataFrame) -> NDArray[np.generic]:
    if frame.width == 1:
        return _numbers(name, frame.to_series())
    if _COUNT not in frame.columns or frame.width > 3:
        given = Words(f"{name} with the columns {', '.join(frame.columns)}")
        raise ParameterError("datasets", given, "one column of counts, or one or two of cells and one named count")
    cells = [_whole(name, _numbers(name, column)) for column in frame.drop(_COUNT)]
    if not frame.height or min(column.min() for column in cells) < 0:
        raise ParameterError("datasets", Words(f"{name} with {frame.height} rows"), "cells from 0 on, at least one")
    shape = tuple(int(column.max()) + 1 for column in cells)
    if np.prod(shape, dtype=object) > _MOST_CELLS:
        raise ParameterError("datasets", Words(f"{name} of {shape} cells"), f"histograms of at most {_MOST_CELLS:,}")
    flat = np.ravel_multi_index(tuple(cells), shape)
    if np.unique(flat).size < flat.size:
        raise ParameterError("datasets", Words(f"{name} with two rows of one cell"), "a row for each cell")
    counts = np.zeros(shape, np.float64)
    counts.reshape(-1)[flat] = _numbers(name, frame[_COUNT])
    return counts


def _numbers(name: str, column: pl.Series) -> NDArray[np.generic]:
    if not column.dtype.is_numeric() or column.null_count():
        given = Words(f"{name}, whose column {column.name} is {column.dtype} with {column.null_count()} nulls")
        raise ParameterError("datasets", given, "numbers without nulls")
    return column.to_numpy()


def _whole(name: str, values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return whole numbers as int64, or refuse them."""
    if values.dtype.kind not in "iuf":
        raise ParameterError("datasets", Words(f"{name} of type {values.dtype}"), "whole numbers")
    numbers = values.astype(np.float64)
    right = np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2**53)
    if not right.all():
        raise ParameterError("datasets", Words(f"{name} with {values[~right].flat[0]}"), "whole numbers below 2**53")
    return values.astype(np.int64)


def _checked(name: str, values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return counts as int64, or refuse them."""
    if values.ndim not in (1, 2) or not 2 <= values.size <= _MOST_CELLS:
        given = Words(f"{name} of shape {values.shape}")
        raise ParameterError("datasets", given, f"one or two dimensions, of 2 to {_MOST_CELLS:,} cells together")
    counts = _whole(name, values)
    if counts.min() < 0 or not counts.any():
        given = Words(f"{name} with a least count of {counts.min()}, and a largest of {counts.max()}")
        raise ParameterError("datasets", given, "counts of 0 or more, not all 0")
    counts.setflags(write=False)
    return counts
