"""A workload held as a matrix: the plain oracle of the others."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpfast.workloads import Workload
from dpfast.workloads.histograms import checked_histogram


class Dense(Workload):
    """The rows of a matrix."""

    def __init__(self, matrix, shape=None):
        self.matrix = np.asarray(matrix)
        self.shape = (self.matrix.shape[1],) if shape is None else tuple(shape)

    def __len__(self):
        return len(self.matrix)

    def answer(self, histogram):
        return self.matrix @ checked_histogram(histogram, self.shape)

    def transposed(self, coefficients):
        return (self.matrix.T @ np.asarray(coefficients, np.float64)).reshape(self.shape)

    def rows(self, start, stop):
        return self.matrix[start:stop]

    @property
    def range(self):
        return float(self.matrix.min()), float(self.matrix.max())

    @property
    def binary(self):
        return self.matrix.dtype.kind in "iub" and bool(np.isin(self.matrix, (0, 1)).all())

    def frame(self):
        return pl.DataFrame({"query": np.arange(len(self))})
