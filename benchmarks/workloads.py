"""Rows about linear queries over histograms."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

from .census import SIZES, make_records
from .prepared import Prepared

_SEED = 20_261_127


def _close(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether float results are those of another order of summation, or integers the same."""
    if mine.dtype == np.int64:
        return bool((mine == theirs).all())
    return bool(np.allclose(mine, theirs, rtol=1e-10, atol=1e-8))


def _counts(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.random.default_rng(_SEED).integers(0, 100, shape).astype(dtype)


def prefixes(dtype: type) -> Callable[[int], Prepared]:
    """All prefix sums of ``size`` cells."""

    def prepare(size: int) -> Prepared:
        counts, workload = _counts((size,), dtype), dpf.workloads.prefix(size)
        return Prepared(lambda: workload.answer(counts), lambda: np.cumsum(counts), agree=_close)

    return prepare


def ranges(size: int) -> Prepared:
    """A range for every ten of ``size`` cells."""
    counts, workload = _counts((size,), np.int64), dpf.workloads.random_ranges(size, size // 10, _SEED)

    def by_numpy() -> np.ndarray:
        sums = np.concatenate([[0], np.cumsum(counts)])
        return sums[workload.upper] - sums[workload.lower]

    return Prepared(lambda: workload.answer(counts), by_numpy, agree=_close)


def all_ranges(*, transposed: bool) -> Callable[[int], Prepared]:
    """About ``size`` ranges: all of as many cells as make them; their answers, or their sum with coefficients."""

    def prepare(size: int) -> Prepared:
        workload = dpf.workloads.all_range(math.isqrt(2 * size))
        counts, (lower, upper) = _counts(workload.shape, np.float64), workload.bounds()
        coefficients = np.random.default_rng(_SEED).normal(size=len(workload))

        def answers() -> np.ndarray:
            sums = np.concatenate([[0], np.cumsum(counts)])
            return sums[upper] - sums[lower]

        def spread() -> np.ndarray:
            differences = np.zeros(workload.cells + 1)
            np.add.at(differences, lower, coefficients)
            np.subtract.at(differences, upper, coefficients)
            return np.cumsum(differences)[:-1]

        if transposed:
            return Prepared(lambda: workload.transposed(coefficients), spread, agree=_close)
        return Prepared(lambda: workload.answer(counts), answers, agree=_close)

    return prepare


def rectangles(size: int) -> Prepared:
    """Rectangles of a square of ``size`` cells, one for every 90 of them."""
    side = math.isqrt(size)
    counts = _counts((side, side), np.float64)
    workload = dpf.workloads.random_rectangles((side, side), size // 90, _SEED)
    (low, left), (high, right) = workload.lower.T, workload.upper.T

    def by_numpy() -> np.ndarray:
        sums = np.zeros((side + 1, side + 1))
        sums[1:, 1:] = counts.cumsum(0).cumsum(1)
        return sums[high, right] - sums[low, right] - sums[high, left] + sums[low, left]

    return Prepared(lambda: workload.answer(counts), by_numpy, agree=_close)


def marginals(*, transposed: bool) -> Callable[[int], Prepared]:
    """All pairs of 15 attributes of two to eight values that have up to ``size`` cells together."""

    def prepare(size: int) -> Prepared:
        doublings = max(0, size.bit_length() - 16)
        shape = tuple(2 ** (1 + doublings // 15 + (place * 7 % 15 < doublings % 15)) for place in range(15))
        workload = dpf.workloads.marginals(shape, k=2)
        counts = _counts(shape, np.float64)
        coefficients = np.random.default_rng(_SEED).normal(size=len(workload))
        others = [tuple(set(range(15)) - set(pair)) for pair in workload.attributes]
        spaces = [[size if axis in pair else 1 for axis, size in enumerate(shape)] for pair in workload.attributes]

        def sums() -> np.ndarray:
            return np.concatenate([counts.sum(axis=axes).reshape(-1) for axes in others])

        def spread() -> np.ndarray:
            out = np.zeros(shape)
            for space, table in zip(spaces, workload.split(coefficients), strict=True):
                out += table.reshape(space)
            return out

        if transposed:
            return Prepared(lambda: workload.transposed(coefficients), spread, agree=_close)
        return Prepared(lambda: workload.answer(counts), sums, agree=_close)

    return prepare


def masks(size: int) -> Prepared:
    """500 queries, a byte for each cell, over histograms of ``size`` / 500 cells."""
    bits = np.random.default_rng(_SEED).integers(0, 2, (500, size // 500)).astype(np.uint8)
    counts, workload = _counts((size // 500,), np.int64), dpf.workloads.matrix(bits)
    return Prepared(lambda: workload.answer(counts), lambda: bits @ counts, agree=_close)


def records(*, grouped: bool) -> Callable[[int], Prepared]:
    """``size`` records of seven columns of codes, counted into a quarter of a million cells."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        shape = (16, 7, 15, 6, 5, 2, 2)
        frame = pl.DataFrame({f"column {place}": generator.integers(0, n, size) for place, n in enumerate(shape)})
        domain = dpf.Domain(dict(zip(frame.columns, shape, strict=True)))

        def bincount() -> np.ndarray:
            cells = np.ravel_multi_index([column.to_numpy() for column in frame.get_columns()], shape)
            return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

        def agree(mine: np.ndarray, theirs: Any) -> bool:
            if grouped:
                places = tuple(column.to_numpy() for column in theirs.get_columns()[:-1])
                return int(mine.sum()) == size and bool((mine[places] == theirs["len"].to_numpy()).all())
            return _close(mine, theirs)

        group_by = lambda: frame.group_by(frame.columns).len()  # noqa: E731
        return Prepared(lambda: domain.count(frame, threads=1), group_by if grouped else bincount, agree=agree)

    return prepare


def pairs_of_records(size: int) -> Prepared:
    """``size`` records of a census's shape, in a Parquet file, counted into all pairs of 14 columns."""
    codes = make_records(size)
    frame = pl.DataFrame({f"column {place}": column for place, column in enumerate(codes)})
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "records.parquet"
    frame.write_parquet(path)
    domain = dpf.Domain(dict(zip(frame.columns, SIZES, strict=True)))
    pairs = list(itertools.combinations(range(len(SIZES)), 2))

    def ours() -> list[np.ndarray]:
        assert folder.name
        return domain.open(path).count_marginals(pairs)

    def agree(mine: list[np.ndarray], theirs: pl.DataFrame) -> bool:
        columns = [column.to_numpy().astype(np.int64) for column in theirs.get_columns()]
        return all(
            bool((counts == np.bincount(columns[a] * SIZES[b] + columns[b], minlength=SIZES[a] * SIZES[b])).all())
            for (a, b), counts in zip(pairs, mine, strict=True)
        )

    return Prepared(ours, lambda: pl.read_parquet(path), agree=agree)
