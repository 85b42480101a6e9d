"""What a strategy is: a matrix of whole numbers that is measured exactly, and the way back to the cells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Special, Threads, Whole
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ParameterError, Words
from dpfast.exact.balls import round_up
from dpfast.mechanisms.noise.calibration import round_up_root
from dpfast.showing import Facts, Shown
from dpfast.workloads.histograms import Counts, checked_histogram
from dpfast.workloads.workload import Union, Workload

__all__ = [
    "LARGEST_DENSE",
    "LARGEST_TOTAL",
    "ORDER",
    "LineStrategy",
    "Order",
    "Strategy",
    "Weights",
    "by_blocks",
    "integer_histogram",
    "read_weights",
]

#: Measurements stay at or below this magnitude, whatever the histogram: the sums in int64 never wrap.
LARGEST_TOTAL = 2**62

#: The most cells for which matrices of cells by cells are formed and inverted: 2**11 take 32 MB and half a second.
LARGEST_DENSE = 2**11

_WEIGHT = Whole(1, 2**20)
#: How much each part counts.
Weights: TypeAlias = Annotated[
    Iterable[int] | None,
    Special(
        lambda: (5, True, "1", b"1", [], [0], [1.5], ["1"], [None], [2**20 + 1], [1] * 99, object(), {}), optional=True
    ),
]
#: Of a norm.
ORDER = Whole(1, 2, mend="write 1 for Laplace noise or 2 for Gaussian noise")
Order: TypeAlias = Annotated[Literal[1, 2], ORDER]


class Strategy(Shown, ABC):
    """Whole-number queries A that are measured of a histogram h, with noise, and least squares back to its cells.

    What is measured is A h, exactly, in int64 columns; noise goes onto every number of them, of one scale for all.
    `reconstruct` returns the histogram x that makes the sum of squares of A x - (A h + noise) least: without bias, and
    of all unbiased linear ways the one with the least error in every query (Gauss and Markov).

    A subclass of one's own is taken at its word: if `l1`, `l2_squared` or `inner` are not those of what `measure`
    returns, or `measure` is not linear within `largest_count`, what is released is not as private as it says. Nothing
    here can find that out; hold it against the matrix written out, column by column, as the tests of dpfast do.

    Attributes
    ----------
    shape
        How many cells the histogram has along each attribute.
    name
        What the strategy is called in an explanation.
    l1, l2_squared
        The largest sum of magnitudes, and of squares, in any column of A: how far one count moves A h. Exact, of the
        matrix as it is measured (Soundness rule 25).
    inner
        At most the inner product of any two columns.
    row
        The largest sum of magnitudes in any row.

    """

    shape: tuple[int, ...]
    name: str
    l1: int
    l2_squared: int
    row: int

    @property
    def cells(self) -> int:
        """How many cells the histogram has."""
        return math.prod(self.shape)

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of measurements, the rows of A."""

    @property
    def inner(self) -> int:
        """A lower bound of the inner product of any two columns."""
        return -self.l2_squared

    @property
    def levels(self) -> list[tuple[int, int]] | None:
        """The cells of a block and the weight of each level, if A is made of weighted sums over blocks, else None.

        The blocks of a level are disjoint and have at most so many cells.
        """
        return None

    @abstractmethod
    def measure(self, histogram: Counts, *, threads: Threads = None) -> list[NDArray[np.int64]]:
        """Return A h, exactly, in one or more int64 columns.

        Counts of a magnitude above ``largest_count`` are moved to that, so that no sum leaves int64 whatever the data:
        neighbours are no further apart for it. ``threads`` share the work where a strategy can; the result does not
        depend on them.
        """

    @abstractmethod
    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """Return the least-squares histogram, float64 of `shape`, for columns like those of `measure` with noise."""

    def error(self, workload: Workload) -> float:
        """Return the sum of the variances of all answers to a workload where each measurement has variance 1.

        That is the trace of W'W (A'A)^-1; where a strategy's closed form only bounds it, it is a bound from above.
        """
        return float((workload.gram() * self.covariance()).sum())

    def variances(self, workload: Workload) -> NDArray[np.float64]:
        """Return the variance of every answer to a workload where each measurement has variance 1.

        Known wherever `error` is: what is charged for can be read.

        Raises
        ------
        ParameterError
            There is no closed form, and more than `LARGEST_DENSE` cells.

        """
        if isinstance(workload, Union):
            return np.concatenate([self.variances(part) for part in workload.parts])
        covariance = self.covariance()
        return by_blocks(workload, lambda rows: np.einsum("qi,qi->q", rows @ covariance, rows))

    def covariance(self) -> NDArray[np.float64]:
        """Return (A'A)^-1, the covariance of the cells where each measurement has variance 1, cells by cells.

        Raises
        ------
        ParameterError
            There are more than `LARGEST_DENSE` cells.

        """
        self.check_dense()
        columns = np.eye(self.cells, dtype=np.int64)
        matrix = np.array([np.concatenate(self.measure(column)) for column in columns], np.float64)
        return np.asarray(np.linalg.inv(matrix @ matrix.T), np.float64)

    def check_dense(self) -> None:
        """Refuse to write out a matrix of too many cells by cells."""
        if self.cells > LARGEST_DENSE:
            allowed = f"one over at most {LARGEST_DENSE:,} cells, for queries that {self.name} has no closed form for"
            raise ParameterError("workload", Words(f"one over {self.cells:,} cells"), allowed, "use a hierarchy")

    @property
    def largest_count(self) -> int:
        """The largest magnitude of a count that is measured as it is; public, as it depends on the matrix alone."""
        return LARGEST_TOTAL // self.row

    def norm(self, order: Order) -> float:
        """Return the largest L1 or L2 norm of a column, rounded up."""
        ORDER.read("order", order)
        return round_up(Fraction(self.l1)) if order == 1 else round_up_root(Fraction(self.l2_squared))

    def sensitivity(self, unit: PrivacyUnit) -> Sensitivity:
        """Return how far A h can move between neighbours, exactly or bounded from above.

        Notes
        -----
        G groups of R rows a unit. Adding a unit moves A h by a sum of G R columns of A at most, R times each of G
        different ones, so by the triangle inequality L1 = G R l1 and L2 = G R sqrt(l2_squared). Replacing one takes
        such a sum away and adds another: the L1 doubles; in L2 the two are paired column by column, and two columns
        differ by at most sqrt(2 l2_squared - 2 inner). A row may also leave all cells or come from outside:
        sqrt(l2_squared).

        More is known where `levels` are. Rows in G different cells move a level of blocks of s cells most, in L2, where
        they fill as few blocks as they can: floor(G / s) whole ones and one in part. No coefficient being negative,
        what is taken away and what is added are at most orthogonal. A single row that moves leaves a level of one
        block as it is.

        """
        groups, rows = min(unit.max_groups, self.cells), unit.max_rows_per_group
        l1, l2_squared = self._moved(groups, unit.neighbors)
        times = f"{rows} rows x " * (rows > 1)
        moved = "a row" if groups == 1 else f"a row in each of {groups} cells"
        moved += ", taken away and put elsewhere" * (unit.neighbors == "replace")
        reasons = f"{times}{l1} for {moved}", f"{times}sqrt({l2_squared}) for {moved}"
        return Sensitivity(rows * l1, rows**2 * l2_squared, *reasons)

    def _moved(self, groups: int, neighbors: str) -> tuple[int, int]:
        """Return the L1 and the squared L2 by which units of one row in each of so many groups move A h."""
        levels = self.levels
        l1, l2_squared = groups * self.l1, groups**2 * self.l2_squared
        if levels is not None:
            filled = ((groups // size) * size**2 + (groups % size) ** 2 for size, _ in levels)
            l2_squared = sum(weight**2 * most for (_, weight), most in zip(levels, filled, strict=True))
        if neighbors == "add_remove":
            return l1, l2_squared
        if levels is not None and groups > 1:
            return 2 * l1, 2 * l2_squared
        shared = sum(weight for size, weight in levels or () if size >= self.cells)
        pair = max(2 * self.l2_squared - 2 * self.inner, self.l2_squared)
        return max(2 * (l1 - shared), l1), groups**2 * pair

    def _facts(self) -> Facts:
        return [("strategy", self.name), ("shape", self.shape), ("measurements", len(self))]

    def __repr__(self) -> str:
        """Show the name and the shape."""
        return f"{self.name} over {' x '.join(map(str, self.shape))} cells"


class LineStrategy(Strategy):
    """A strategy over one attribute, which a product applies along an axis of many."""

    @abstractmethod
    def measure_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return A h for every row h of a matrix, as rows; the caller knows that the sums fit."""

    @abstractmethod
    def reconstruct_rows(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least-squares histogram for every row, as rows."""

    def measure(self, histogram: Counts, *, threads: Threads = None) -> list[NDArray[np.int64]]:
        """See `Strategy.measure`."""
        counts = integer_histogram(histogram, self)
        return [self.measure_rows(counts.reshape(1, -1)).reshape(-1)]

    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """See `Strategy.reconstruct`."""
        rows = np.concatenate(noisy, dtype=np.float64).reshape(1, -1)
        return self.reconstruct_rows(rows).reshape(self.shape)


def by_blocks(
    workload: Workload, variances: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return a number for each query, from a function of queries as rows of a matrix of a few megabytes."""
    return np.concatenate([variances(block.astype(np.float64)) for block in workload.blocks()])


def read_weights(weights: Iterable[int], count: int, of: str) -> tuple[int, ...]:
    """Return whole weights, one for each part of a strategy, or refuse them."""
    try:
        listed = tuple(weights)
    except TypeError:
        listed = ()
    if len(listed) != count or not all(map(_WEIGHT.accepts, listed)):
        raise ParameterError("weights", weights, f"{count} whole numbers from 1 to 2**20, one for each {of}")
    return tuple(map(int, listed))


def integer_histogram(histogram: Any, strategy: Strategy, *, clipped: bool = True) -> NDArray[np.int64]:
    """Return a histogram of integers in one dimension, moved into the range that the strategy measures.

    Raises
    ------
    ParameterError
        It is of floats, or has another number of cells.

    """
    counts = checked_histogram(histogram, strategy.shape)
    if counts.dtype != np.int64:
        raise ParameterError("histogram", Words(f"of type {counts.dtype}"), "of integers", "count in int64")
    if not clipped or strategy.largest_count >= 2**62:
        return counts
    limit = strategy.largest_count
    return np.clip(counts, -limit, limit, out=fresh_array(counts.size, counts.dtype))
