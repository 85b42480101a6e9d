"""Arguments that queries and weights take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.arguments import Number, Numeric, Real, Special, Whole, no_numbers
from dpfast.columns.declarations import TypedColumn

__all__ = ["CELLS", "INTEGERS", "PLACES", "SHAPE", "TOTAL", "Cells", "Eta", "Histogram", "Shape", "Total"]

CELLS, TOTAL = Whole(1, 2**48), Number(0, above=True)
Cells: TypeAlias = Annotated[int, CELLS]
Total: TypeAlias = Annotated[Real, TOTAL]


def _no_shapes() -> Iterator[object]:
    yield from (0, -1, 1.5, True, "4", b"4", object(), (), {}, (2, 0), (2, 1.5), (2, "3"), (2, True), (2, None), 10**30)
    yield from ((2, np.timedelta64(1, "D")), np.ones(2), len)


def _no_places() -> Iterator[object]:
    yield from (-1, 99, 1.5, True, "0", b"0", object(), len, (-1,), (99,), (0, 0), (1, 0), (0.5,), ("0",), (None,))


def _no_integers() -> Iterator[object]:
    yield from (True, 0.5, "01", b"01", object(), len, [], [0.5], ["a"], [None], [[0, 1]], [[0], [1, 2]], np.zeros(3))
    yield from (np.zeros((2, 2), int), [-1, -1], [99] * 17, [True])


def _no_histograms() -> Iterator[object]:
    yield from (True, "1", b"1", object(), len, [], {1: 2}, ["a"], [None], [1j], [[1.0], [1.0, 2.0]], [1.0] * 17)
    yield from (np.ones((7, 11)), [-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0], np.zeros(2, "S1"))


def _no_etas() -> Iterator[object]:
    yield from (*no_numbers(), ["a"], [None], [1j], [[1.0], [1.0, 2.0]], [math.nan], np.ones(17), [1.0] * 17)


#: A number of cells, or one along each attribute.
SHAPE = Special(_no_shapes)
Shape: TypeAlias = Annotated[int | Sequence[int], SHAPE]
#: Attributes, by ascending places in the shape.
PLACES = Special(_no_places)
INTEGERS = Special(_no_integers)
Histogram: TypeAlias = Annotated[TypedColumn | Sequence[Any] | None, Special(_no_histograms, optional=True)]
#: One number; or one for each query of a table, or for each row.
Eta: TypeAlias = Annotated[Real | TypedColumn | Sequence[Numeric], Special(_no_etas)]
