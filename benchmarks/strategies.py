"""Rows about strategies: measured with noise, and made consistent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dpfast as dpf

from .prepared import Prepared

_SEED = 20_261_127


def _counts(size: int) -> np.ndarray:
    return np.random.default_rng(_SEED).integers(0, 1000, size)


def hierarchy(branching: int, *, threads: int = 1) -> Callable[[int], Prepared]:
    """A release from a hierarchy, by least squares, beside `dpf.laplace` alone on the cells with the same noise."""

    def prepare(size: int) -> Prepared:
        counts, workload = _counts(size), dpf.workloads.prefix(size)
        strategy = dpf.strategies.hierarchy(size, branching)
        scale = float(strategy.l1)

        def ours() -> np.ndarray:
            keywords = {"strategy": strategy, "threads": threads}
            return dpf.matrix_mechanism(counts, workload, epsilon=1, **keywords).histogram

        def agree(mine: np.ndarray, noisy: np.ndarray) -> bool:
            # Consistent cells err no more than noisy ones, and long sums much less.
            ends = [abs(cells.cumsum() - counts.cumsum())[size // 2 :].mean() for cells in (mine, noisy)]
            return bool((mine - counts).std() < 1.02 * (noisy - counts).std() and ends[0] < ends[1])

        return Prepared(ours, lambda: dpf.laplace(counts, scale, threads=threads), agree=agree)

    return prepare


def least_squares(size: int) -> Prepared:
    """The two passes of least squares over H16 beside the same in NumPy, vectorised level by level."""
    strategy = dpf.strategies.hierarchy(size, 16, root=True)
    noisy = [column.astype(np.int64) for column in strategy.measure(_counts(size))]
    noisy = dpf.laplace(np.concatenate(noisy), 5.0)
    columns = np.split(noisy, np.cumsum(strategy.counts)[:-1])

    def theirs() -> np.ndarray:
        fan_outs = [larger // size for size, larger in zip(strategy.sizes, strategy.sizes[1:], strict=False)]
        estimates = [(columns[0].astype(float), np.ones(columns[0].size))]
        for column, fan_out in zip(columns[1:], fan_outs, strict=True):
            below, precision = estimates[-1]
            starts = np.arange(0, below.size, fan_out)
            inverse = 1 / np.add.reduceat(1 / precision, starts)
            total = 1 + inverse
            estimates.append(((column + inverse * np.add.reduceat(below, starts)) / total, total))
        settled = estimates[-1][0]
        for (below, precision), fan_out in zip(estimates[-2::-1], fan_outs[::-1], strict=True):
            starts = np.arange(0, below.size, fan_out)
            lacking = (settled - np.add.reduceat(below, starts)) / np.add.reduceat(1 / precision, starts)
            settled = below + np.repeat(lacking, fan_out)[: below.size] / precision
        return settled

    return Prepared(
        lambda: strategy.reconstruct(columns, threads=1),
        theirs,
        agree=lambda mine, other: bool(np.allclose(mine, other, rtol=0, atol=1e-6)),
    )


def square_root(size: int) -> Prepared:
    """The square root of prefix sums measured exactly, beside NumPy's rounded convolution of floats by transforms."""
    counts, strategy = _counts(size), dpf.strategies.square_root(size)
    coefficients = strategy.coefficients.astype(float)

    def theirs() -> np.ndarray:
        padded = 1 << (2 * size - 1).bit_length()
        product = np.fft.rfft(counts.astype(float), padded) * np.fft.rfft(coefficients, padded)
        return np.fft.irfft(product, padded)[:size]

    return Prepared(
        lambda: strategy.measure(counts)[0],
        theirs,
        agree=lambda mine, other: bool(np.allclose(mine, other, rtol=1e-9)),
    )
