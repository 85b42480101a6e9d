"""Shapes and sizes of arguments and results, and sums that fit: checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special
from dpfast.domain.shapes import (
    ANY_SHAPE,
    CELLS,
    LARGEST_ARRAY,
    SHAPE,
    AnyShape,
    Cells,
    OwnShape,
    Shape,
    check_size,
)
from dpfast.errors import DataError, ParameterError, Words
from dpfast.kernels.histograms.prefixes import cover_magnitudes
from dpfast.workloads.histograms import array_of, no_arrays, numbers_of

__all__ = [
    "ANY_SHAPE",
    "CELLS",
    "LARGEST_ARRAY",
    "SHAPE",
    "AnyShape",
    "Bounds",
    "Cells",
    "Coefficients",
    "OwnShape",
    "Shape",
    "check_size",
    "check_sums",
    "checked_coefficients",
    "checked_indices",
    "read_only",
]


def _no_bounds() -> Iterator[object]:
    yield from no_arrays()
    yield from (3, [0.0], [True], np.array([0.0]), [-1], [10**30], [2**63], [2**40], [[[0]]])


#: Lower or upper bounds, one for each query.
Bounds: TypeAlias = Annotated[ArrayLike, Special(_no_bounds)]
#: A number for each query.
Coefficients: TypeAlias = Annotated[ArrayLike, Special(lambda: (*no_arrays(), 3.0, [1.0] * 99, [[1.0]]))]


def checked_indices(given: Any, argument: str, shape: tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return an int64 copy of an array of integers of a shape, None standing for any length."""
    array = array_of(given, argument)
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or (array.dtype.kind not in "iu" and array.size):
        wanted = " by ".join("queries" if length is None else f"{length}" for length in shape)
        raise ParameterError(
            argument, Words(f"of shape {array.shape} and type {array.dtype}"), f"an array of integers, {wanted}"
        )
    return array.astype(np.int64)


def checked_coefficients(coefficients: Any, queries: int) -> NDArray[np.float64]:
    """Return coefficients, one for each query, as contiguous float64."""
    array = numbers_of(coefficients, "coefficients", [(queries,)], f"{queries:,} numbers, one for each query")
    return np.ascontiguousarray(array, dtype=np.float64)


def check_sums(cells: NDArray[Any], largest: int = 1, covered: int | None = None) -> None:
    """Refuse a histogram of integers of which a query, with coefficients up to ``largest``, could pass int64.

    ``covered`` is what `cover_magnitudes` returns for it, if that is known.

    Raises
    ------
    DataError
        The magnitudes of all cells, times ``largest``, make 2**63 or more (or come within a billionth of it).

    """
    if cells.dtype.kind == "f":
        return
    if covered is None:
        covered = int(cover_magnitudes(read_only(cells)))
    if cells.size * largest << int(covered).bit_length() < 2**63:
        return
    # Pairwise summation of so many numbers is off by far less than a billionth.
    if float(np.abs(cells.astype(np.float64)).sum()) * largest * (1 + 1e-9) >= 2.0**63:
        raise DataError("histogram must have counts whose sum stays below 2**63; divide them, or pass floats")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels are compiled for such inputs alone, whatever users pass."""
    view = array.view()
    view.setflags(write=False)
    return view
