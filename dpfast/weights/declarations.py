"""Arguments that queries and weights take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.arguments import Number, Numeric, Real, Special, Whole, no_numbers
from dpfast.columns.declarations import TypedColumn

__all__ = ["CELLS", "INTEGERS", "NO_NUMBERS", "PLACES", "SHAPE", "TOTAL", "Cells", "Eta", "Histogram", "Shape", "Total"]

CELLS, TOTAL = Whole(1, 2**48), Number(0, above=True)
Cells: TypeAlias = Annotated[int, CELLS]
Total: TypeAlias = Annotated[Real, TOTAL]


#: What no argument takes for an array of numbers.
NO_NUMBERS = ("01", b"01", object(), len, {0: 1}, ["a"], [None], [1j], [object()], np.zeros(2, "datetime64[s]"))
_NO_SIZES = ((), (2, 0), (2, 1.5), (2, "3"), (2, True), (2, None), (2, np.timedelta64(1, "D")), 10**30, np.ones(2))


#: A number of cells, or one along each attribute.
SHAPE = Special(lambda: [0, -1, 1.5, True, "4", b"4", object(), {}, len, *_NO_SIZES])
Shape: TypeAlias = Annotated[int | Sequence[int], SHAPE]
#: Attributes, by ascending places in the shape.
PLACES = Special(
    lambda: [-1, 99, 1.5, True, "0", b"0", object(), len, (-1,), (99,), (0, 0), (1, 0), (0.5,), ("0",), (None,)]
)
INTEGERS = Special(
    lambda: [*NO_NUMBERS, True, 0.5, [], [0.5], [[0, 1]], [[0], [1, 2]], np.zeros(3), [-1, -1], [99] * 17, [True]]
)
_NO_CELLS: tuple[object, ...] = ([], [[1.0], [1.0, 2.0]], [1.0] * 17, np.ones((7, 11)), np.zeros(2, "S1"))
_NO_WEIGHTS = ([-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0])
_HISTOGRAM = Special(lambda: [*NO_NUMBERS, True, *_NO_CELLS, *_NO_WEIGHTS], optional=True)
Histogram: TypeAlias = Annotated[TypedColumn | Sequence[Any] | None, _HISTOGRAM]
_ETA = Special(lambda: [*no_numbers(), ["a"], [None], [1j], [[1.0], [1.0, 2.0]], [math.nan], np.ones(17)])
#: One number; or one for each query of a table, or for each row.
Eta: TypeAlias = Annotated[Real | TypedColumn | Sequence[Numeric], _ETA]
