"""Products of strategies: one for each attribute."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special, Threads
from dpfast.errors import ParameterError
from dpfast.strategies.axes import axis_ranges, terms_of
from dpfast.strategies.identity import Identity
from dpfast.strategies.strategy import LineStrategy, Strategy, by_blocks, integer_histogram
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import Union, Workload

__all__ = ["Product", "product"]

#: A strategy over a single attribute.
FACTOR = Special(lambda: (5, True, "identity", [], [Identity((4,))], Identity((2, 2)), Identity, object()))
#: A product of more levels than that is taken to have none.
_MOST_LEVELS = 2**12
_LEAST_LARGEST_COUNT = 2**16


class Product(Strategy):
    """All products of a row of each factor: the Kronecker product of their matrices.

    A column of the product is one of each factor's, multiplied: norms multiply, and so do inner products. So do least
    squares and, for a product of workloads, errors.

    Attributes
    ----------
    factors
        A strategy for each axis.

    """

    def __init__(self, *factors: LineStrategy) -> None:
        self.factors = factors
        self.shape = tuple(factor.cells for factor in factors)
        self.name = " x ".join(factor.name for factor in factors)
        self.l1 = math.prod(factor.l1 for factor in factors)
        self.l2_squared = math.prod(factor.l2_squared for factor in factors)
        self.row = math.prod(factor.row for factor in factors)

    def __len__(self) -> int:
        """Return the product of the factors' numbers of measurements."""
        return math.prod(len(factor) for factor in self.factors)

    @property
    def inner(self) -> int:
        """The product of the factors', if all of them are 0 or more: a factor's two columns may be one and the same."""
        inner = [factor.inner for factor in self.factors]
        return math.prod(inner) if min(inner) >= 0 else -self.l2_squared

    @property
    def levels(self) -> list[tuple[int, int]] | None:
        """Blocks of each factor make blocks of the product, and weights multiply."""
        found = [(1, 1)]
        for factor in self.factors:
            own = factor.levels
            if own is None or len(found) * len(own) > _MOST_LEVELS:
                return None
            found = [(size * more, weight * other) for size, weight in found for more, other in own]
        return found

    def measure(self, histogram: Counts, *, threads: Threads = None) -> list[NDArray[np.int64]]:
        """See `Strategy.measure`: one column."""
        return [self._along(integer_histogram(histogram, self), [factor.measure_rows for factor in self.factors])]

    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """See `Strategy.reconstruct`."""
        measured = noisy[0].astype(np.float64)
        lengths = [len(factor) for factor in self.factors]
        return self._along(measured, [factor.reconstruct_rows for factor in self.factors], lengths).reshape(self.shape)

    def error(self, workload: Workload) -> float:
        """See `Strategy.error`: in closed form for unions of products, else the sum of all variances."""
        terms = terms_of(workload)
        if terms is not None:
            return math.fsum(
                math.prod(factor.error(axis) for factor, axis in zip(self.factors, term, strict=True)) for term in terms
            )
        return float(self.variances(workload).sum())

    def variances(self, workload: Workload) -> NDArray[np.float64]:
        """See `Strategy.variances`: of products and rectangles from the axes', else from the axes' covariances."""
        terms, ranges = terms_of(workload), axis_ranges(workload)
        if terms is not None:
            return np.concatenate([reduce(np.multiply.outer, self._of_axes(term)).reshape(-1) for term in terms])
        if ranges is not None:
            return np.asarray(np.prod(self._of_axes(ranges), axis=0), np.float64)
        if isinstance(workload, Union):
            return super().variances(workload)
        covariances = [factor.covariance() for factor in self.factors]
        return by_blocks(workload, lambda rows: np.einsum("qi,qi->q", self._spread(rows, covariances), rows))

    def _spread(self, rows: NDArray[np.float64], covariances: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return queries times the product of symmetric matrices, one for each axis."""
        table = rows.reshape(-1, *self.shape)
        for axis, covariance in enumerate(covariances, start=1):
            table = np.moveaxis(np.tensordot(table, covariance, axes=(axis, 0)), -1, axis)
        return table.reshape(rows.shape)

    def _of_axes(self, axes: Sequence[Workload]) -> list[NDArray[np.float64]]:
        return [factor.variances(axis) for factor, axis in zip(self.factors, axes, strict=True)]

    def _along(
        self,
        numbers: NDArray[Any],
        change: Sequence[Callable[[NDArray[Any]], NDArray[Any]]],
        lengths: Sequence[int] | None = None,
    ) -> NDArray[Any]:
        """Return a table with every axis changed by its factor, in one dimension."""
        lengths = self.shape if lengths is None else lengths
        # The last axis is changed and becomes the first of the rest: after all of them the order is as it was.
        for length, rows_changed in zip(reversed(lengths), reversed(change), strict=True):
            changed = rows_changed(np.ascontiguousarray(numbers.reshape(-1, length)))
            numbers = np.ascontiguousarray(changed.T).reshape(-1)
        return numbers


def product(*factors: Annotated[Strategy, FACTOR]) -> Product:
    """Measure all products of a row of each factor, each of an attribute of its own.

    Parameters
    ----------
    factors
        Strategies over one attribute each, at least one, in the order of the histogram's axes.

    Raises
    ------
    ParameterError
        A factor is none, or counts of 2**16 would leave int64 (square roots have factors of 2**20, for one).

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi (2015); McKenna, Miklau, Hay, Machanavajjhala (2018).

    Examples
    --------
    >>> from dpfast.strategies import hierarchy, identity
    >>> both = product(hierarchy(24, 4), identity(7))
    >>> both, len(both), both.l1
    (H4 x identity over 24 x 7 cells, 273, 3)

    """
    if not factors or not all(isinstance(factor, LineStrategy) and len(factor.shape) == 1 for factor in factors):
        raise ParameterError("factors", factors, "one strategy over a single attribute or more")
    made = Product(*factors)  # type: ignore[arg-type]
    if made.largest_count < _LEAST_LARGEST_COUNT:
        allowed = f"of such small numbers that counts up to {_LEAST_LARGEST_COUNT:,} fit into their sums in int64"
        raise ParameterError("factors", factors, allowed, "use hierarchies, or fewer square roots")
    return made
