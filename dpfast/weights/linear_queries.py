"""Linear queries over the cells of a histogram, as multiplicative weights read them: in place, whatever their form.

A query gives each cell a coefficient from 0 to 1; its answer is the sum of the cells, each times its coefficient.
What touches every cell is here; what touches a few, in `dpfast.weights.slab_queries`; many queries that are
updated at once, in `dpfast.weights.query_tables`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Special
from dpfast.columns.declarations import TypedColumn, as_array
from dpfast.errors import ParameterError, Words
from dpfast.kernels.weights import cells as kernels
from dpfast.kernels.weights import logarithms as logarithm_kernels
from dpfast.kernels.weights.cells import BLOCK, WORD
from dpfast.showing import Facts, Shown
from dpfast.threads import in_parts
from dpfast.weights.declarations import CELLS, NO_NUMBERS, Cells

__all__ = [
    "LARGEST_ETA",
    "OTHER_INTEGERS",
    "BitQuery",
    "DenseQuery",
    "LevelQuery",
    "LinearQuery",
    "blocks_of",
    "refuse_coefficients",
    "sum_of",
    "total_of",
]

#: The largest eta either way: exp(500) leaves as much room again before a float64 overflows.
LARGEST_ETA = 500.0

Weights = NDArray[np.float64]


class LinearQuery(Shown, ABC):
    """One linear query, or a table of several, over the cells of a histogram.

    The methods take weights as one float64 array of all cells, last attribute fastest.
    """

    #: Whether an update touches few cells, so that the sum of the others is taken over from before.
    is_sparse = False

    @property
    def table(self) -> tuple[int, ...] | None:
        """The shape of a table of queries, of its answers and of its etas; None for a single query."""
        return None

    @abstractmethod
    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse a histogram of a shape that the query is not over."""

    @abstractmethod
    def answer(self, weights: Weights, workers: int = 1) -> Any:
        """Return the sum of the weights, each times its coefficient."""

    @abstractmethod
    def multiply(self, weights: Weights, total: float, eta: Any, workers: int = 1) -> float:
        """Multiply every weight by exp(eta * coefficient), in place; return the new sum.

        ``total`` is the old sum. Where all cells are touched they are divided by it at once.
        """

    @abstractmethod
    def add(self, logarithms: Weights, eta: Any, workers: int = 1) -> None:
        """Add eta * coefficient to every cell, in place."""

    def multiply_and_answer(
        self, weights: Weights, total: float, eta: Any, following: LinearQuery, workers: int = 1
    ) -> tuple[float, Any]:
        """Do what `multiply` does; return the new sum and the answer of another query to the new weights."""
        return self.multiply(weights, total, eta, workers), following.answer(weights, workers)

    @abstractmethod
    def coefficients(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the coefficients as an array of the shape, those of a table in front of it."""

    def _set(self, **attributes: object) -> None:
        """Set attributes of a query, which is frozen, while it is made."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def blocks_of(cells: int) -> int:
    """Return how many blocks so many cells make."""
    return -(-cells // BLOCK)


def total_of(sums: NDArray[np.float64]) -> float:
    """Return what the sums of blocks add up to, in their order."""
    return float(sums[0]) if sums.size == 1 else float(sums.sum())


def sum_blocks(work: Callable[[Weights, slice, Weights], object], weights: Weights, workers: int) -> float:
    """Return the sum of what ``work(weights, blocks, sums)`` sets for every block, whatever the workers."""
    sums = np.empty(blocks_of(weights.size))

    def work_on(first: int, last: int) -> None:
        work(weights[first * BLOCK : last * BLOCK], slice(first, last), sums[first:last])

    in_parts(work_on, sums.size, workers)
    return total_of(sums)


def sum_of(weights: Weights, workers: int = 1) -> float:
    """Return the sum of all weights; it does not depend on the workers."""
    return sum_blocks(lambda own, _, sums: kernels.sum_blocks(own, sums), weights, workers)


class _EveryCell(LinearQuery):
    """A query whose coefficients are read cell by cell, from an array that a kernel takes."""

    #: What the kernel reads, and how many cells an entry of it is for.
    _data: NDArray[Any]
    _cells_per_entry = 1
    #: The coefficients of levels, the unit of numbers, or None for coefficients of 0 and 1.
    _values: Any = None
    _shape: tuple[int, ...]

    def _factors(self, eta: float, scale: float) -> Any:
        """Return what the kernel multiplies by."""
        return scale, scale * math.exp(eta)

    def _terms(self, eta: float) -> Any:
        """Return what the kernel adds to logarithms."""
        return eta

    def _part(self, blocks: slice) -> NDArray[Any]:
        step = BLOCK // self._cells_per_entry
        return self._data[blocks.start * step : blocks.stop * step]

    def check(self, shape: tuple[int, ...]) -> None:
        if self._shape not in ((math.prod(shape),), shape):
            raise ParameterError(
                "query",
                Words(f"of shape {self._shape}"),
                f"of shape {shape}, or of {math.prod(shape)} cells in one dimension",
                "give a coefficient for each cell",
            )

    def answer(self, weights: Weights, workers: int = 1) -> float:
        def work(own: Weights, blocks: slice, dots: Weights) -> None:
            kernels.dot_blocks(own, self._part(blocks), self._values, dots)

        return sum_blocks(work, weights, workers)

    def multiply(self, weights: Weights, total: float, eta: Any, workers: int = 1) -> float:
        factors = self._factors(eta, 1.0 / total)

        def work(own: Weights, blocks: slice, sums: Weights) -> None:
            kernels.multiply_blocks(own, self._part(blocks), factors, sums)

        return sum_blocks(work, weights, workers)

    def multiply_and_answer(
        self, weights: Weights, total: float, eta: Any, following: LinearQuery, workers: int = 1
    ) -> tuple[float, Any]:
        # Other pairs would each be compiled for seconds.
        if type(following) is not type(self) or following._data.dtype != self._data.dtype:
            return super().multiply_and_answer(weights, total, eta, following, workers)
        factors = self._factors(eta, 1.0 / total)
        dots = np.empty(blocks_of(weights.size))

        def work(own: Weights, blocks: slice, sums: Weights) -> None:
            second = following._part(blocks), following._values
            kernels.multiply_and_dot(own, self._part(blocks), factors, *second, sums, dots[blocks])

        return sum_blocks(work, weights, workers), total_of(dots)

    def add(self, logarithms: Weights, eta: Any, workers: int = 1) -> None:
        terms = self._terms(eta)

        def work(first: int, last: int) -> None:
            own = logarithms[first * BLOCK : last * BLOCK]
            logarithm_kernels.add_blocks(own, self._part(slice(first, last)), terms)

        in_parts(work, blocks_of(logarithms.size), workers)

    def coefficients(self, shape: tuple[int, ...]) -> NDArray[Any]:
        self.check(shape)
        return self._each().reshape(shape)

    def _each(self) -> NDArray[Any]:
        """Return the coefficients in one dimension."""
        return self._data

    def _facts(self) -> Facts:
        return [("shape", self._shape)]


_NO_COEFFICIENTS = Special(
    lambda: [*NO_NUMBERS, [[1.0], [0.5, 1.0]], [2, 0], [-1, 0], [1.5], [-0.5], [math.nan], np.zeros(2, np.longdouble)]
)
_NO_BYTES = Special(lambda: [*NO_NUMBERS, 5, True, [0, 1], [[0], [1, 2]], np.zeros(3)])
_NO_VALUES = Special(lambda: [*NO_NUMBERS, [True], [[0.5]], [], [0.5] * 257, [2.0], [-1.0], [math.nan]], optional=True)


#: What is said of integers.
OTHER_INTEGERS = "an array of integers other than 0 and 1"


def refuse_coefficients(given: str) -> ParameterError:
    """Return the error for coefficients, which says what was given."""
    return ParameterError("query", Words(given), "made of coefficients from 0 to 1", "divide them by the largest")


@dataclass(frozen=True, eq=False, repr=False)
class DenseQuery(_EveryCell):
    """A coefficient for each cell: an array of bool, of integers 0 and 1, or of float64 or float32 from 0 to 1.

    It is checked once, here, and read as it is at every update: do not write to the array meanwhile. Integers other
    than uint8 are copied to bytes.

    Examples
    --------
    >>> DenseQuery([0.0, 0.5, 1.0]).answer(np.array([8.0, 4.0, 1.0]))
    3.0

    """

    query: Annotated[TypedColumn | Sequence[Any], _NO_COEFFICIENTS]
    _shape: tuple[int, ...] = field(init=False)
    _data: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        given = as_array(self.query, "query")
        if given.dtype.kind not in "biuf" or given.dtype == np.longdouble:
            raise ParameterError("query", Words(f"of type {given.dtype}"), "of bool, integers or floats")
        if given.dtype.kind == "f":
            data = given if given.dtype in (np.float64, np.float32) else given.astype(np.float64)
            data = np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("=")).reshape(-1)
            if kernels.check_coefficients(data):
                raise refuse_coefficients("an array with one below 0, above 1 or NaN")
        else:
            if given.dtype.kind != "b" and given.size and not (given.min() >= 0 and given.max() <= 1):
                raise refuse_coefficients(OTHER_INTEGERS)
            data = np.ascontiguousarray(given if given.dtype.itemsize == 1 else given.astype(np.uint8))
            data = data.reshape(-1).view(np.uint8)
        self._set(_values=1.0 if given.dtype.kind == "f" else None, _data=data, _shape=given.shape)

    def _factors(self, eta: float, scale: float) -> Any:
        return super()._factors(eta, scale) if self._values is None else (eta, scale, self._values)


@dataclass(frozen=True, eq=False, repr=False)
class BitQuery(_EveryCell):
    """One bit for each cell, 8 cells a byte, the first in the lowest bit: ``np.packbits(cells, bitorder="little")``.

    Examples
    --------
    >>> BitQuery(np.packbits([0, 1, 1], bitorder="little"), cells=3).answer(np.array([8.0, 4.0, 1.0]))
    5.0

    """

    packed: Annotated[TypedColumn, _NO_BYTES]
    cells: Cells
    _shape: tuple[int, ...] = field(init=False)
    _data: NDArray[Any] = field(init=False)
    _cells_per_entry = WORD

    def __post_init__(self) -> None:
        cells = CELLS.read("cells", self.cells)
        packed = np.ascontiguousarray(as_array(self.packed, "packed"))
        if packed.dtype != np.uint8 or packed.ndim != 1 or packed.size != -(-cells // 8):
            raise ParameterError(
                "packed",
                Words(f"of {packed.size} entries of type {packed.dtype}"),
                f"of {-(-cells // 8)} bytes for {cells} cells",
                'write np.packbits(cells, bitorder="little")',
            )
        words = -(-packed.size // 8)
        # The kernel reads whole words, at addresses that are multiples of 8.
        if packed.size % 8 or packed.ctypes.data % 8:
            padded = np.zeros(8 * words, np.uint8)
            padded[: packed.size] = packed
            packed = padded
        self._set(_data=packed.view("<u8").astype(np.uint64, copy=False), _shape=(cells,))

    @property
    def words(self) -> NDArray[np.uint64]:
        """The bits of 64 cells a word, the first in the lowest."""
        return self._data

    def _each(self) -> NDArray[Any]:
        return np.unpackbits(self._data.astype("<u8", copy=False).view(np.uint8), count=self.cells, bitorder="little")


@dataclass(frozen=True, eq=False, repr=False)
class LevelQuery(_EveryCell):
    """A level from 0 to 255 for each cell, uint8; ``values`` are the coefficients of the levels, else level / 255.

    Examples
    --------
    >>> LevelQuery(np.array([0, 51, 255], np.uint8)).answer(np.array([8.0, 5.0, 1.0]))
    2.0

    """

    levels: Annotated[TypedColumn, _NO_BYTES]
    values: Annotated[TypedColumn | Sequence[Numeric] | None, _NO_VALUES] = None
    _shape: tuple[int, ...] = field(init=False)
    _data: NDArray[Any] = field(init=False)
    _table: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        levels = np.ascontiguousarray(as_array(self.levels, "levels"))
        if levels.dtype != np.uint8:
            raise ParameterError("levels", Words(f"of type {levels.dtype}"), "of type uint8")
        values = np.arange(256) / 255.0 if self.values is None else as_array(self.values, "values")
        if values.dtype.kind not in "iuf":
            raise ParameterError("values", Words(f"of type {values.dtype}"), "numbers from 0 to 1")
        values = values.astype(np.float64)
        if values.ndim != 1 or not 1 <= values.size <= 256:
            raise ParameterError("values", Words(f"of shape {values.shape}"), "one column of at most 256 numbers")
        if kernels.check_coefficients(values):
            raise ParameterError("values", Words("one below 0, above 1 or NaN"), "numbers from 0 to 1")
        if levels.size and values.size <= (largest := int(levels.max())):
            raise ParameterError("levels", Words(f"up to {largest}"), f"below {values.size}, the number of values")
        # The kernel looks up whatever byte it reads.
        table = np.zeros(256)
        table[: values.size] = values
        # Without values levels are numbers in a unit, and need no table.
        read = 1.0 / 255.0 if self.values is None else table
        self._set(_data=levels.reshape(-1), _shape=levels.shape, _table=table, _values=read)

    def _factors(self, eta: float, scale: float) -> Any:
        return (eta, scale, self._values) if self.values is None else scale * np.exp(eta * self._table)

    def _terms(self, eta: float) -> Any:
        return eta * self._table

    def _each(self) -> NDArray[Any]:
        coefficients: NDArray[np.float64] = self._table[self._data]
        return coefficients
