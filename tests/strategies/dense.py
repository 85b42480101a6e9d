"""Matrices written out: the slow truth that strategies are held against. Nothing here comes from the package's code."""

from __future__ import annotations

import math

import numpy as np

from dpfast.workloads.workload import Workload


class Dense(Workload):
    """Queries given by their Gram matrix (and by the matrix itself, where it is small)."""

    def __init__(self, shape, gram, queries, matrix=None):
        self.shape = shape
        self._gram = np.asarray(gram, dtype=float)
        self._queries = queries
        self._matrix = matrix
        self._sums = np.zeros((self.cells + 1, self.cells + 1))
        self._sums[1:, 1:] = self._gram.cumsum(0).cumsum(1)

    def __len__(self):
        return self._queries

    def answer(self, histogram):
        return self._matrix @ np.asarray(histogram).reshape(-1)

    def transposed(self, coefficients):
        return (self._matrix.T @ coefficients).reshape(self.shape)

    def rows(self, start, stop):
        return self._matrix[start:stop]

    @property
    def range(self):
        return 0.0, 1.0

    def frame(self):
        raise NotImplementedError

    def gram(self):
        return self._gram

    def energy(self, edges):
        left, right = edges[:-1], edges[1:]
        sums = self._sums
        return math.fsum(sums[right, right] - sums[left, right] - sums[right, left] + sums[left, left])


def of_matrix(matrix, shape=None):
    matrix = np.asarray(matrix)
    return Dense(shape or (matrix.shape[1],), matrix.T @ matrix, len(matrix), matrix)


def prefixes(n):
    cell = np.arange(n)
    matrix = np.tril(np.ones((n, n), np.int64)) if n <= 2048 else None
    return Dense((n,), n - np.maximum.outer(cell, cell), n, matrix)


def all_ranges(n):
    cell = np.arange(n)
    return Dense((n,), (np.minimum.outer(cell, cell) + 1.0) * (n - np.maximum.outer(cell, cell)), n * (n + 1) // 2)


def matrix_of(strategy):
    """Return A, column by column, from what the strategy measures of single counts."""
    columns = []
    for cell in range(strategy.cells):
        histogram = np.zeros(strategy.cells, np.int64)
        histogram[cell] = 1
        columns.append(np.concatenate(strategy.measure(histogram.reshape(strategy.shape))))
    return np.array(columns).T


def parts_like(strategy, numbers):
    """Return numbers as columns of the lengths that the strategy measures."""
    lengths = [len(part) for part in strategy.measure(np.zeros(strategy.shape, np.int64))]
    return np.split(numbers, np.cumsum(lengths)[:-1])


def rmse(strategy, workload, order):
    """Root mean squared error of continuous noise, sigma 1 or epsilon 1."""
    deviation = strategy.norm(order) * (math.sqrt(2) if order == 1 else 1.0)
    return deviation * math.sqrt(strategy.error(workload) / len(workload))
