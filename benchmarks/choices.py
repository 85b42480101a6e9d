"""Rows about private selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dpfast as dpf
from benchmarks.prepared import Prepared


def _agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether the winners' mean scores differ by chance alone."""
    return bool(abs(mine.mean() - theirs.mean()) < 60.0 / np.sqrt(mine.size))


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
            rows = np.arange(len(scores))
            return _agree(scores[rows, mine], scores[rows, theirs])

        return Prepared(lambda: dpf.exponential(given, epsilon=1.0), numpy_gumbel, agree=agree)

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
            return _agree(scores[mine], scores[theirs])

        return Prepared(
            lambda: dpf.exponential_draws(scores, 1.0, size, threads=1),
            numpy_choice if by_choice else numpy_gumbel,
            agree=agree,
        )

    return prepare
