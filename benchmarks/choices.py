"""Rows about private selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
