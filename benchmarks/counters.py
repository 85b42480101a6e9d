"""Rows about counters of streams: a step of many of them, and all steps of one."""

from __future__ import annotations

import numpy as np

import dpfast as dpf

from .prepared import Prepared

_SEED = 20_261_128
#: A horizon for which four buffers are used.
_HORIZON = 2**16


def buffered(size: int) -> Prepared:
    """A step of buffered Toeplitz counters, beside drawing Gaussian noise for as many values."""
    increments = np.random.default_rng(_SEED).integers(0, 5, size)
    counter = dpf.continual_count(_HORIZON, rho=0.5, mechanism="blt", counters=size, threads=1)
    scale = counter.event.scale  # type: ignore[union-attr]

    def agree(figures: np.ndarray, noisy: np.ndarray) -> bool:
        errors = figures - increments * counter.steps
        return bool(abs(errors.std() / counter.error(counter.steps) - 1) < 0.05 and noisy.size == figures.size)

    return Prepared(lambda: counter.step(increments), lambda: dpf.gaussian(increments, scale, threads=1), agree=agree)


def tree(size: int) -> Prepared:
    """All steps of one counter by a binary tree, beside drawing noise of the same scale for as many values.

    Of 2.3 times the baseline its noise is 1.0, making the nodes of the increments .7, and sums of the noisy nodes .5.
    """
    increments = np.random.default_rng(_SEED).integers(0, 5, size)
    scale = dpf.continual_count(size, epsilon=1.0, mechanism="tree").event.scale  # type: ignore[union-attr]

    def ours() -> np.ndarray:
        counter = dpf.continual_count(size, epsilon=1.0, mechanism="tree", threads=1)
        figures: np.ndarray = counter.run(increments)
        return figures

    def agree(figures: np.ndarray, noisy: np.ndarray) -> bool:
        error = dpf.continual_count(size, epsilon=1.0, mechanism="tree").error()
        off = (figures - increments.cumsum()).std() / error
        return bool(0.3 < off < 2 and noisy.size == figures.size)

    return Prepared(ours, lambda: dpf.laplace(increments, scale, threads=1), agree=agree)
