"""Rows about private selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import dpfast as dpf

from .contestants import imported
from .prepared import Prepared, Run

_SEED = 20_261_123


def _opendp(scores: np.ndarray) -> dict[str, tuple[Run, int]]:
    """Return OpenDP's selection with the same noise, row by row, on a few rows."""
    if (dp := imported("opendp.prelude")) is None:
        return {}
    dp.enable_features("contrib", "floating-point")
    rows = scores[: max(1, 5_000 // scores.shape[1]), :5_000].tolist()
    domain, metric = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
    measurement = dp.m.make_noisy_max(domain, metric, dp.zero_concentrated_divergence(), scale=2.0)
    return {"OpenDP": (lambda: [measurement(row) for row in rows], len(rows) * len(rows[0]))}


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether winners' mean scores differ as by chance alone."""
    return bool(abs(one.mean() - other.mean()) < 60.0 / np.sqrt(min(one.size, other.size)))


def exponential(candidates: int) -> Callable[[int], Prepared]:
    """The exponential mechanism on rows of ``candidates`` scores, ``size`` scores in all; 0: one row."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        columns = candidates or size
        scores = generator.normal(0.0, 3.0, (size // columns, columns))
        given = scores if candidates else scores[0]

        def numpy_gumbel() -> np.ndarray:
            return np.argmax(given * 0.5 + generator.gumbel(size=given.shape), axis=-1)

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            rows = np.arange(len(scores))
            return _alike(scores[rows, mine], scores[rows, theirs])

        ours = lambda: dpf.exponential(given, epsilon=1.0, threads=1)  # noqa: E731
        return Prepared(ours, numpy_gumbel, _opendp(scores), agree=agree)

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
            return dpf.release(
                frame, "key", keys=keys, x=query, privacy_unit="row", epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)
            ).frame

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


def modes(candidates: int) -> Callable[[int], Prepared]:
    """The most common of so many strings among ``size`` in 1,000 public groups, as a release with its ledger."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_126)
        names = [f"candidate {place}" for place in range(candidates)]
        # A common one for each group, in three rows of four.
        groups, others = generator.integers(0, 1_000, size), generator.integers(0, candidates, size)
        chosen = np.where(generator.random(size) < 0.75, groups % candidates, others)
        frame = pl.DataFrame({"key": groups, "x": pl.Series(names).gather(chosen)})
        keys = pl.DataFrame({"key": np.arange(1_000)})
        query = dpf.mode("x", candidates=names)

        def ours() -> pl.DataFrame:
            return dpf.release(
                frame, "key", keys=keys, x=query, privacy_unit="row", epsilon=10.0, ledger=dpf.Ledger(epsilon=10.0)
            ).frame

        def agree(mine: pl.DataFrame, exact: pl.DataFrame) -> bool:
            # In groups of 100 rows the next candidate lies some 70 rows below, and is drawn with probability e**-700.
            both = mine.join(exact, on="key", suffix="_exact")
            return both["x"].equals(both["x_exact"])

        return Prepared(ours, lambda: frame.group_by("key").agg(pl.col("x").mode().first()), agree=agree)

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


def lists(shortest: int, longest: int) -> Callable[[int], Prepared]:
    """The exponential mechanism on a Polars column of lists, beside an array of as many rows and candidates.

    In rows of 2 to 10 their lengths cannot be foretold: 1.2 of the processor's time, and more beside another process.
    """

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        width = (shortest + longest) // 2
        dense = generator.normal(0.0, 3.0, (size // width, width))
        lengths = generator.integers(shortest, longest + 1, size // width)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        scores = generator.normal(0.0, 3.0, offsets[-1])
        ragged = pl.Series(pa.LargeListArray.from_arrays(offsets, scores))

        def agree(mine: pl.Series, theirs: np.ndarray) -> bool:
            # Rows of random lengths have other scores: it is the winner's share of those below it that is alike.
            won = scores[offsets[:-1] + mine.to_numpy()]
            rest = np.add.reduceat(scores, offsets[:-1]) / lengths
            return _alike(won - rest, dense[np.arange(len(dense)), theirs] - dense.mean(1))

        ours = lambda: dpf.exponential(ragged, epsilon=1.0, threads=1)  # noqa: E731
        return Prepared(ours, lambda: dpf.exponential(dense, epsilon=1.0, threads=1), agree=agree)

    return prepare


def two_threads(size: int) -> Prepared:
    """The exponential mechanism on rows of 100 scores, on two threads and on one."""
    scores = np.random.default_rng(_SEED).normal(0.0, 3.0, (size // 100, 100))

    def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
        rows = np.arange(len(scores))
        return _alike(scores[rows, mine], scores[rows, theirs])

    return Prepared(
        lambda: dpf.exponential(scores, epsilon=1.0, threads=2),
        lambda: dpf.exponential(scores, epsilon=1.0, threads=1),
        agree=agree,
    )


def _best_by_numpy(keys: np.ndarray, k: int) -> np.ndarray:
    """Return the places of the k largest keys of each row, in order."""
    largest = np.argpartition(-keys, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(keys, largest, 1), axis=1)
    return np.take_along_axis(largest, order, 1)


def top_k(k: int, columns: int = 100) -> Callable[[int], Prepared]:
    """The best k of rows of ``columns`` scores in order; 0: one row."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        width = columns or size
        scores = generator.normal(0.0, 3.0, (size // width, width))
        given = scores if columns else scores[0]
        most = min(k, width)

        def numpy_gumbel() -> np.ndarray:
            return _best_by_numpy(scores * (0.5 / most) + generator.gumbel(size=scores.shape), most)

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            won = [np.take_along_axis(scores, np.atleast_2d(places), 1) for places in (mine, theirs)]
            return all(
                _alike(*(each[:, j : j + max(most // 8, 1)].ravel() for each in won)) for j in range(min(most, 8))
            )

        return Prepared(lambda: dpf.noisy_top_k(given, most, epsilon=1.0, threads=1), numpy_gumbel, agree=agree)

    return prepare


def gap(columns: int) -> Callable[[int], Prepared]:
    """The winner of rows of ``columns`` scores, and its gap to the runner-up."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        scores = generator.normal(0.0, 3.0, (size // columns, columns))

        def numpy_exponential() -> tuple[np.ndarray, np.ndarray]:
            keys = scores + generator.exponential(2.0, scores.shape)
            best = _best_by_numpy(keys, 2)
            first, second = (np.take_along_axis(keys, best[:, [j]], 1)[:, 0] for j in (0, 1))
            return best[:, 0], first - second

        def agree(mine: Any, theirs: Any) -> bool:
            rows = np.arange(len(scores))
            return _alike(scores[rows, mine[0]], scores[rows, theirs[0]]) and _alike(mine[1], theirs[1])

        ours = lambda: dpf.noisy_max_with_gap(scores, epsilon=1.0, threads=1)  # noqa: E731
        return Prepared(ours, numpy_exponential, agree=agree)

    return prepare


def calls(candidates: int) -> Callable[[int], Prepared]:
    """So many calls of the exponential mechanism, on one column of ``candidates`` scores each.

    A cipher of OpenSSL's for each key took 1.6 of NumPy's time for 5 candidates, before anything was drawn; a compiled
    one takes .2.
    """

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(_SEED)
        scores = generator.normal(0.0, 3.0, candidates)

        def ours() -> np.ndarray:
            return np.array([dpf.exponential(scores, epsilon=1.0) for _ in range(size)])

        def numpy_gumbel() -> np.ndarray:
            return np.array([np.argmax(scores * 0.5 + generator.gumbel(size=candidates)) for _ in range(size)])

        return Prepared(ours, numpy_gumbel, agree=lambda mine, theirs: _alike(scores[mine], scores[theirs]))

    return prepare


#: Selections of rows of 100 integers, for the rows on large scores.
_OF_INTEGERS: dict[str, Callable[[np.ndarray], Any]] = {
    "exponential": lambda scores: dpf.exponential(scores, epsilon=1.0, threads=1),
    "top 3": lambda scores: dpf.noisy_top_k(scores, 3, epsilon=1.0, threads=1),
    "gap": lambda scores: dpf.noisy_max_with_gap(scores, epsilon=1.0, threads=1)[0],
}


def large_scores(selection: str, columns: int = 100) -> Callable[[int], Prepared]:
    """A selection of rows of integers near 2**62, beside the same of small ones; 0: one row."""

    def prepare(size: int) -> Prepared:
        width = columns or size
        small = np.random.default_rng(_SEED).normal(0.0, 3.0, (size // width, width)).round().astype(np.int64)
        small = small if columns else small[0]
        large, select = small + 2**62, _OF_INTEGERS[selection]

        def agree(mine: Any, theirs: Any) -> bool:
            rows = np.atleast_2d(small)
            one, other = (np.atleast_1d(won) for won in (mine, theirs))
            one, other = (won.reshape(len(rows), -1)[:, 0] for won in (one, other))
            return _alike(rows[np.arange(len(rows)), one], rows[np.arange(len(rows)), other])

        return Prepared(lambda: select(large), lambda: select(small), agree=agree)

    return prepare


def draws(*, by_choice: bool) -> Callable[[int], Prepared]:
    """``size`` draws from one column of 1,000 scores, beside NumPy's Gumbel noise or its ``choice``."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_124)
        scores = generator.normal(0.0, 3.0, 1000)

        def numpy_gumbel() -> np.ndarray:
            # 100 draws at a time stay in a cache.
            noise = (generator.gumbel(size=(min(100, size - start), 1000)) for start in range(0, size, 100))
            return np.concatenate([np.argmax(scores * 0.5 + each, axis=1) for each in noise])

        def numpy_choice() -> np.ndarray:
            weights = np.exp(0.5 * (scores - scores.max()))
            return generator.choice(scores.size, size, p=weights / weights.sum())

        def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
            return _alike(scores[mine], scores[theirs])

        return Prepared(
            lambda: dpf.exponential_draws(scores, 1.0, size, threads=1),
            numpy_choice if by_choice else numpy_gumbel,
            agree=agree,
        )

    return prepare
