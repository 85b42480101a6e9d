"""What strategies over marginals share: the spaces of what depends on some attributes and on no fewer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.strategies.axes import terms_of
from dpfast.strategies.identity import squares_of
from dpfast.strategies.nested import details_of, energy_of
from dpfast.strategies.strategy import LARGEST_DENSE, LARGEST_TOTAL, Strategy, integer_histogram
from dpfast.workloads.cells import Identity, Total
from dpfast.workloads.histograms import Counts
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.workload import Workload

__all__ = ["Attributes", "MarginalSpaces", "asked_marginals", "energies_of", "outside", "parts_of"]

#: A set of attributes, in ascending order.
Attributes: TypeAlias = tuple[int, ...]


class MarginalSpaces(Strategy):
    """A strategy that treats all values of an attribute alike.

    With n_i values of attribute i, V_T is the space of what depends on the attributes of T and adds up to 0 along each
    of them; its projection P_T is a product over i of I - J / n_i for i in T and of J / n_i for the others, J being all
    ones. These are the eigenspaces of A'A.

    If no measurement depends on all attributes, some histograms have the same measurements. The reconstruction is then
    the least-squares one of least norm. It answers marginals of attributes that were measured together without bias;
    for other queries `error` is infinite.

    Attributes
    ----------
    spaces
        The sets T whose spaces are measured.
    eigenvalues
        Of A'A in each.
    weights
        A whole number for each marginal that is measured, which it is multiplied by.

    """

    spaces: list[Attributes]
    eigenvalues: NDArray[np.float64]

    def __init__(self, shape: tuple[int, ...], attributes: Sequence[Attributes], weights: Sequence[int]) -> None:
        self.shape = shape
        self.weights = tuple(weights)
        self._asked = Marginals(shape, attributes=attributes)

    def __len__(self) -> int:
        """Return the number of entries of all tables."""
        return len(self._asked)

    def measure(self, histogram: Counts, *, threads: Threads = None) -> list[NDArray[np.int64]]:
        """See `Strategy.measure`: a column for each table."""
        tables = self._asked.split(self._asked.answer(integer_histogram(histogram, self)))
        return [
            weight * self.measured_of(table).reshape(-1) for weight, table in zip(self.weights, tables, strict=True)
        ]

    def measured_of(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return what is measured of a marginal."""
        return table

    @property
    def largest_count(self) -> int:
        """See `Strategy.largest_count`; the sum of all cells fits too, which is checked where tables are summed."""
        return min(super().largest_count, LARGEST_TOTAL // self.cells)

    def error(self, workload: Workload) -> float:
        """See `Strategy.error`: in closed form for unions of products; infinite for queries that are not measured."""
        terms = terms_of(workload)
        if terms is not None:
            return math.fsum(self._error_of(term) for term in terms)
        if self.cells > LARGEST_DENSE or not self._determines_all:
            return math.inf
        return super().error(workload)

    def variances(self, workload: Workload) -> NDArray[np.float64]:
        """See `Strategy.variances`: in closed form where `error` is, and infinite where that is."""
        terms = terms_of(workload)
        if terms is not None:
            return np.concatenate([self._variances_of(term) for term in terms])
        if not self._determines_all:
            return np.full(len(workload), np.inf)
        return super().variances(workload)

    @property
    def _determines_all(self) -> bool:
        return tuple(range(len(self.shape))) in self.spaces

    def _error_of(self, term: Sequence[Workload]) -> float:
        """Return the error of a product of workloads, one for each axis."""
        energy = energies_of(term, self.spaces)
        # What the spaces leave over of the product's energy lies in directions that are not measured.
        whole = math.prod(energy_of(axis, 1) for axis in term)
        return float((energy / self.eigenvalues).sum()) if energy.sum() > (1 - 1e-9) * whole else math.inf

    def _variances_of(self, term: Sequence[Workload]) -> NDArray[np.float64]:
        """Return the variances of a product of workloads: along an axis a query is its mean, and the rest."""
        if not math.isfinite(self._error_of(term)):
            return np.full(math.prod(map(len, term)), np.inf)
        means = [np.square(axis.answer(np.ones(axis.cells))) / axis.cells for axis in term]
        rests = [np.maximum(squares_of(axis) - mean, 0.0) for axis, mean in zip(term, means, strict=True)]
        variances = np.zeros(math.prod(map(len, term)))
        for space, eigenvalue in zip(self.spaces, self.eigenvalues, strict=True):
            own = [rests[axis] if axis in space else means[axis] for axis in range(len(term))]
            variances += reduce(np.multiply.outer, own).reshape(-1) / eigenvalue
        return variances

    def _kept_shape(self, kept: Attributes) -> list[int]:
        """Return the shape of a table over some attributes, with one entry along all others."""
        return [size if axis in kept else 1 for axis, size in enumerate(self.shape)]


def asked_marginals(workload: Workload) -> list[Attributes] | None:
    """Return the sets of attributes whose marginals a workload asks; None if it asks anything else."""
    terms = terms_of(workload)
    if terms is None or not all(isinstance(axis, (Identity, Total)) for term in terms for axis in term):
        return None
    # The identity over a single value is the total.
    return [tuple(axis for axis, part in enumerate(term) if isinstance(part, Identity)) for term in terms]


def outside(shape: tuple[int, ...], kept: Attributes) -> int:
    """Return how many cells an entry of a marginal counts."""
    return math.prod(size for axis, size in enumerate(shape) if axis not in kept)


def parts_of(sets: Iterable[Attributes]) -> list[Attributes]:
    """Return all sets that are a part of one of those given, the smaller first.

    Examples
    --------
    >>> parts_of([(0, 2), (1,)])
    [(), (0,), (1,), (2,), (0, 2)]

    """
    parts = {part for one in sets for size in range(len(one) + 1) for part in combinations(one, size)}
    return sorted(parts, key=lambda part: (len(part), part))


def energies_of(term: Sequence[Workload], spaces: Sequence[Attributes]) -> NDArray[np.float64]:
    """Return a product's energy in each space: of what varies along the attributes in it, and of means along others."""
    details = [details_of(axis, (1, axis.cells)) if axis.cells > 1 else [0.0, energy_of(axis, 1)] for axis in term]
    energies = [
        math.prod(varies if axis in space else means for axis, (varies, means) in enumerate(details))
        for space in spaces
    ]
    return np.array(energies, np.float64)
