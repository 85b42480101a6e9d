"""What type a column has when noise was added: that of what was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Special, Threads
from dpfast.columns.declarations import ArrowArray, ArrowStream, Numbers, Scale, TypedColumn, wrong_columns
from dpfast.randomness import Random

__all__ = ["Values", "same_kind"]

#: A column of any shape, or a number.
Values: TypeAlias = Annotated[Numbers | Numeric, Special(lambda: wrong_columns(least=0, most=32))]

_Dtype = TypeVar("_Dtype", np.int64, np.int32, np.float64, np.float32)
_Column = TypeVar("_Column", bound=TypedColumn)


class SameKind(Protocol):
    """A function that gives back the kind of column that it was given."""

    @overload
    def __call__(
        self, values: int | np.integer[Any], scale: Scale, *, random: Random = None, threads: Threads = None
    ) -> int: ...
    @overload
    def __call__(
        self, values: float | np.floating[Any], scale: Scale, *, random: Random = None, threads: Threads = None
    ) -> float: ...
    @overload
    def __call__(
        self, values: NDArray[_Dtype], scale: Scale, *, random: Random = None, threads: Threads = None
    ) -> NDArray[_Dtype]: ...
    # uint32 becomes int64.
    @overload
    def __call__(
        self,
        values: NDArray[Any] | Sequence[Numeric] | Sequence[Sequence[Numeric]],
        scale: Scale,
        *,
        random: Random = None,
        threads: Threads = None,
    ) -> NDArray[Any]: ...
    @overload
    def __call__(self, values: _Column, scale: Scale, *, random: Random = None, threads: Threads = None) -> _Column: ...
    # An Array or ChunkedArray of PyArrow, which has no types.
    @overload
    def __call__(
        self, values: ArrowArray | ArrowStream, scale: Scale, *, random: Random = None, threads: Threads = None
    ) -> Any: ...


def same_kind(function: SameKind) -> SameKind:
    """Return a function as it is, known to type checkers by `SameKind`."""
    return function
