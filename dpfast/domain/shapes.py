"""Shapes of histograms, and sizes of what is made of them: checked before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.arguments import Argument, Whole
from dpfast.errors import ParameterError, Words

__all__ = ["ANY_SHAPE", "CELLS", "LARGEST_ARRAY", "SHAPE", "AnyShape", "Cells", "OwnShape", "Shape", "check_size"]

#: The most cells of a histogram, and the most answers of a workload: 2**30 take 8 GiB.
LARGEST_ARRAY = 2**30
#: More are not written out.
_MOST_SHOWN = 10**30

#: How many cells there are along one attribute.
CELLS = Whole(1)
Cells: TypeAlias = Annotated[int, CELLS]


@dataclass(frozen=True)
class _Sizes(Argument[tuple[int, ...]]):
    """A tuple of positive integers; one integer stands for one dimension.

    Attributes
    ----------
    fits
        Whether an array of the shape must have a place in memory; else one along each attribute must.

    """

    fits: bool = True

    @property
    def allowed(self) -> str:
        return "a whole number of at least 1 for each attribute"

    def accepts(self, given: Any) -> bool:
        sizes = _listed(given)
        return sizes is not None and len(sizes) > 0 and all(CELLS.accepts(size) for size in sizes)

    def convert(self, given: Any) -> tuple[int, ...]:
        return tuple(int(size) for size in _listed(given) or ())

    def read(self, name: str, given: object) -> tuple[int, ...]:
        sizes = super().read(name, given)
        check_size(math.prod(sizes) if self.fits else max(sizes), name, "cells")
        return sizes

    def wrong(self) -> Iterator[object]:
        yield from (
            0,
            -1,
            True,
            2.5,
            np.float64(4),
            np.nan,
            1j,
            10**400,
            10**5000,
            "44",
            "",
            b"4",
            object(),
            {4: 3},
            {4},
        )
        yield from ((), [], (4, 0), (2, 2.5), (4, -3), (True, 2), (4, None), (4, "3"), ((2, 2), 3))
        if self.fits:
            yield (2,) * 31
        yield from (np.ones(2), np.ones((2, 2), np.int64), np.array(["4"]), np.empty(0, np.int64), pl.Series([2.5]))


SHAPE = _Sizes(mend="write for example (4, 3)")
#: How many cells there are along each attribute; one number stands for one attribute.
Shape: TypeAlias = Annotated[int | Sequence[int], SHAPE]
#: The same, of any number of cells: of what never holds them all.
ANY_SHAPE = _Sizes(fits=False, mend="write for example (4, 3)")
AnyShape: TypeAlias = Annotated[int | Sequence[int], ANY_SHAPE]
OwnShape: TypeAlias = Annotated[int | Sequence[int] | None, replace(SHAPE, optional=True)]


def _listed(shape: Any) -> list[Any] | None:
    """Return sizes one by one; None for what holds none."""
    if isinstance(shape, (str, bytes)) or getattr(shape, "ndim", 1) > 1:
        return None
    return list(shape) if isinstance(shape, (Sequence, np.ndarray, pl.Series)) else [shape]


def check_size(numbers: int, argument: str, what: str) -> None:
    """Refuse what needs an array of more than LARGEST_ARRAY numbers, and say the bytes that it takes."""
    if numbers > LARGEST_ARRAY:
        raise ParameterError(
            argument,
            Words(f"{numbers:,} {what} ({8 * numbers:,} bytes)" if numbers < _MOST_SHOWN else f"10**30 {what} or more"),
            f"of at most {LARGEST_ARRAY:,} {what}",
            "use coarser cells, fewer attributes or fewer queries",
        )
