"""Rows about private selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

import dpfast as dpf
from benchmarks.prepared import Prepared


def exponential(candidates: int) -> Callable[[int], Prepared]:
    """The exponential mechanism on rows of ``candidates`` scores, ``size`` scores in all; 0: one row."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_123)
        columns = candidates or size
        scores = generator.normal(0.0, 3.0, (size // columns, columns))
        given = scores if candidates else scores[0]

        def numpy_gumbel() -> np.ndarray:
            return np.argmax(given * 0.5 + generator.gumbel(size=given.shape), axis=-1)

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            # The winners' mean scores differ by chance alone.
            rows = np.arange(len(scores))
            gap = scores[rows, mine].mean() - scores[rows, theirs].mean()
            return bool(abs(gap) < 60.0 / np.sqrt(len(scores)))

        return Prepared(lambda: dpf.exponential(given, epsilon=1.0), numpy_gumbel, agree=agree)

    return prepare


def quantiles(q: list[float], dtype: type) -> Callable[[int], Prepared]:
    """Private quantiles of ``size`` values in 1,000 public groups, as a release with its ledger."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_124)
        values = np.rint(generator.normal(10.0, 40.0, size)).astype(dtype)
        if dtype is np.float64:
            values += generator.uniform(-0.5, 0.5, size)
        frame = pl.DataFrame({"key": generator.integers(0, 1_000, size), "x": values})
        keys = pl.DataFrame({"key": np.arange(1_000)})
        query = dpf.quantile("x", q, bounds=(-200, 600))

        def ours() -> pl.DataFrame:
            return dpf.release(frame, "key", keys=keys, x=query, epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)).frame

        def theirs() -> pl.DataFrame:
            return frame.group_by("key").agg(
                pl.col("x").quantile(one).alias(label) for one, label in zip(q, query.labels, strict=True)
            )

        def agree(mine: pl.DataFrame, exact: pl.DataFrame) -> bool:
            # With 100 values a group a quantile strays by a few ranks, and by 50 with probability e**-10 or so: the
            # groups' mean distance is about 5.
            both = mine.join(exact, on="key")
            distances = [(both["x" + label] - both[label]).abs().mean() for label in query.labels]
            return all(distance is not None and float(distance) < 25.0 for distance in distances)  # type: ignore[arg-type]

        return Prepared(ours, theirs, agree=agree)

    return prepare


def above_threshold(columns: int) -> Callable[[int], Prepared]:
    """Sparse vector on rows of ``columns`` values, the last of each far above the threshold; 0: one row."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_124)
        width = columns or size
        values = generator.normal(0.0, 3.0, (size // width, width))
        values[:, -1] = 1e6
        given = values if columns else values[0]

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            return bool((mine.ravel() == theirs.ravel()).all() and (mine == width - 1).all())

        def numpy_laplace() -> np.ndarray:
            noisy = given + generator.laplace(0.0, 3.26, given.shape)
            return np.argmax(noisy >= 1000.0 + generator.laplace(0.0, 2.59, (*given.shape[:-1], 1)), axis=-1)

        return Prepared(lambda: dpf.above_threshold(given, 1000.0, epsilon=1.0), numpy_laplace, agree=agree)

    return prepare


def sparse_domain(size: int) -> Prepared:
    """The exponential mechanism over 10^12 candidates of which ``size`` have a score."""
    generator = np.random.default_rng(20_261_125)
    indices = np.unique(generator.integers(0, 10**12, size))
    scores = generator.exponential(3.0, indices.size)
    scores[indices.size // 2] = 1e6
    return Prepared(
        lambda: dpf.exponential_sparse(indices, scores, 10**12, epsilon=1.0),
        lambda: indices[np.argmax(scores * 0.5 + generator.gumbel(size=scores.size))],
        agree=lambda mine, theirs: bool(mine == theirs),
    )
