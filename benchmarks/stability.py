"""Rows of the table about values that hardly a row changes."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpfast as dpf

from .prepared import Prepared


def median_of(rows: np.ndarray) -> float:
    return float(np.median(rows))


def scale(size: int) -> Prepared:
    """Both distances of Scale beside sorting the column, which they begin with."""
    values = np.random.default_rng(20_261_122).normal(0.0, 1000.0, size)

    def sort() -> np.ndarray:
        return np.sort(values)

    def agree(ours: Any, ordered: np.ndarray) -> bool:
        n = ordered.size
        width = ordered[3 * n // 4] - ordered[n // 4]
        # Half a bin on both sides of the width holds as many rows as those distances tell, nearly.
        return 1024 < width < 2048 and all(0 < distance < n for distance in ours)

    return Prepared(lambda: dpf.stability.scale_distances(values), sort, agree=agree)


def blocks(size: int) -> Prepared:
    """Subsample and aggregate over 200 blocks, each in a process of its own, beside the same calls in a loop."""
    values = np.random.default_rng(20_261_122).normal(0.0, 1.0, size)

    def ours() -> float:
        answer = dpf.subsample_and_aggregate(values, median_of, blocks=200, bounds=(-4, 4), epsilon=1.0)
        return float(answer.value)

    def loop() -> float:
        shuffled = np.random.default_rng(1).permutation(values)
        return float(np.median([median_of(block) for block in np.array_split(shuffled, 200)]))

    return Prepared(ours, loop, agree=lambda one, other: abs(one - other) < 4)
