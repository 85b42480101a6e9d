"""Rows about projections of noisy answers."""

from __future__ import annotations

import itertools
import math

import numpy as np

import dpfast as dpf

from .prepared import Prepared

_SEED = 20_261_127
_RECORDS, _NOISE, _TOLERANCE = 100_000, 200.0, 60.0


class _Marginals:
    """Two-way marginals in NumPy: sums over the other axes, transposed by broadcasting, columns by their numbers."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._pairs = list(itertools.combinations(range(len(shape)), 2))
        sizes = [shape[a] * shape[b] for a, b in self._pairs]
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])

    def transposed(self, coefficients: np.ndarray) -> np.ndarray:
        total = np.zeros(self._shape)
        for pair, start, stop in zip(self._pairs, self._offsets, self._offsets[1:], strict=False):
            along = [size if axis in pair else 1 for axis, size in enumerate(self._shape)]
            total += coefficients[start:stop].reshape(along)
        return total.ravel()

    def column(self, cell: int) -> np.ndarray:
        values = np.unravel_index(cell, self._shape)
        column = np.zeros(self._offsets[-1])
        for (a, b), start in zip(self._pairs, self._offsets, strict=False):
            column[start + values[a] * self._shape[b] + values[b]] = 1.0
        return column


def _frank_wolfe(queries: _Marginals, target: np.ndarray, total: float, goal: float) -> np.ndarray:
    """Frank and Wolfe's method with pairwise steps, up to a duality gap."""
    first = int(queries.transposed(-target).argmin())
    weights, columns = {first: total}, {first: queries.column(first)}
    residual = total * columns[first] - target
    while True:
        slopes = queries.transposed(residual)
        best = int(slopes.argmin())
        cells = np.array(list(weights))
        if np.array(list(weights.values())) @ slopes[cells] - total * slopes[best] <= goal:
            return residual + target
        worst = int(cells[slopes[cells].argmax()])
        if best not in columns:
            columns[best] = queries.column(best)
        direction = columns[best] - columns[worst]
        step = min((slopes[worst] - slopes[best]) / (direction @ direction), weights[worst])
        weights[best] = weights.get(best, 0.0) + step
        weights[worst] -= step
        if weights[worst] <= 0.0:
            del weights[worst]
        residual += step * direction


def marginals(size: int) -> Prepared:
    """Noisy two-way marginals of attributes of ten values, ``size`` cells, projected to the same duality gap."""
    generator = np.random.default_rng(_SEED)
    shape = (10,) * max(2, round(math.log10(size)))
    common = generator.integers(0, 3, _RECORDS)
    values = [np.minimum(9, generator.geometric(0.5, _RECORDS) - 1 + common * (axis % 2)) for axis in range(len(shape))]
    counts = np.bincount(np.ravel_multi_index(values, shape), minlength=math.prod(shape))
    workload = dpf.workloads.marginals(shape, k=2)
    noisy = workload.answer(counts) + generator.normal(0.0, _NOISE, len(workload))
    goal = len(workload) * _TOLERANCE**2 / 2

    def agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
        # Each is certainly within the tolerance of the exact projection.
        return bool(np.square(mine - theirs).mean() <= (2 * _TOLERANCE) ** 2)

    return Prepared(
        lambda: dpf.project_answers(noisy, workload, total=_RECORDS, tolerance=_TOLERANCE).answers,
        lambda: _frank_wolfe(_Marginals(shape), noisy, float(_RECORDS), goal),
        agree=agree,
    )
