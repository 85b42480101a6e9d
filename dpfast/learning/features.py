"""Tables of numbers as learners read them: block by block, in float64, NaN where anything is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Private, Special, is_numeric, no_numbers
from dpfast.columns.declarations import Numbers, Table, TypedColumn
from dpfast.columns.elements import as_floats
from dpfast.columns.grid import check_bounds
from dpfast.columns.private import numeric_array, numeric_frame
from dpfast.errors import ColumnError, ParameterError, Words

__all__ = ["FeatureBounds", "Features", "Rows", "Target", "is_one_pair", "read_bounds", "read_features", "read_target"]

#: So many numbers are read at once.
_BLOCK = 2**17


def _no_features() -> Iterator[object]:
    import polars as pl  # not at the top: it takes long to import

    yield from (1, 0.5, True, "0", b"0", object(), len, {0: 1}, {0, 1}, np.zeros(17), np.zeros((2, 0)))
    yield from (np.zeros((2, 2, 2)), np.ma.ones((2, 2)), np.zeros((2, 2), object))
    yield from (pl.Series([1.0]), pl.DataFrame({"a": ["b"]}), pl.LazyFrame({"a": [1.0]}), pl.DataFrame())


def _no_targets() -> Iterator[object]:
    import polars as pl

    yield from (1, 0.5, True, "0", b"0", object(), len, {0: 1}, {0, 1}, np.zeros((2, 2)), np.zeros(2, object))
    yield from ([0.5] * 17, np.zeros(17), pl.Series(["a"]), pl.LazyFrame({"a": [1.0]}), np.ma.ones(2))


def _no_bounds() -> Iterator[object]:
    yield from (5, True, "01", b"01", object(), (), [], (1,), (5, 5), (9, 0), {})
    yield from ((0, other) for other in (*no_numbers(), None, 1e301))
    yield from ([(9, 0)], [(0, 1), (1, 0)], {"a": (1, 0)}, {"a": 1}, {1: (0, 1)}, np.zeros((2, 3)))


#: A row for each example, a column for each feature.
Features: TypeAlias = Annotated[TypedColumn | Table | Sequence[Any], Private(_no_features)]
Target: TypeAlias = Annotated[Numbers | Sequence[Any], Private(_no_targets)]
Pair: TypeAlias = tuple[Numeric, Numeric]
#: One pair for all features, or one for each, in order or by name.
FeatureBounds: TypeAlias = Annotated[Pair | Sequence[Pair] | Mapping[str, Pair], Special(_no_bounds)]


@dataclass(frozen=True)
class Rows:
    """Rows of numbers, read block by block.

    Attributes
    ----------
    length, width
        How many rows and columns there are; the first may be private.
    names
        The columns' names, where they have any.
    read
        From the first row and the one after the last to a float64 array; NaN for what is missing.

    """

    length: int
    width: int
    names: tuple[str, ...] | None
    read: Callable[[int, int], NDArray[np.float64]]

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield where each block begins and ends."""
        step = max(1, _BLOCK // max(1, self.width))
        for start in range(0, self.length, step):
            yield start, min(start + step, self.length)


def is_one_pair(bounds: object) -> bool:
    """Return whether bounds are one pair for all features, which does not say how many there are."""
    return isinstance(bounds, tuple) and len(bounds) == 2 and all(map(is_numeric, bounds))


def read_bounds(bounds: FeatureBounds) -> tuple[list[tuple[float, float]], tuple[str, ...] | None]:
    """Return the pairs, and the names that they are given by; one pair alone is for all features.

    Raises
    ------
    ParameterError
        They are no pairs of finite numbers, the lower one first.

    """
    allowed = "a pair of numbers for all features, or a list or a dictionary with a pair for each"
    mend = 'write for example feature_bounds={"age": (0, 100)}'
    given: Any = bounds
    names = None
    if isinstance(given, Mapping):
        if not all(isinstance(name, str) for name in given):
            raise ParameterError("feature_bounds", Words("by other keys than names"), allowed, mend)
        names, given = tuple(given), list(given.values())
    elif is_one_pair(given):
        given = [given]
    if not isinstance(given, (list, tuple, np.ndarray)) or not len(given):
        raise ParameterError("feature_bounds", bounds, allowed, mend)
    pairs = []
    for pair in given:
        try:
            pairs.append(check_bounds(tuple(pair)))
        except (ParameterError, TypeError):
            raise ParameterError("feature_bounds", bounds, f"{allowed}, the lower number first", mend) from None
    return pairs, names


def read_features(
    given: Features, names: tuple[str, ...] | None = None, width: int | None = None, argument: str = "X"
) -> Rows:
    """Return features as rows; of a frame, these columns in this order, or all; of lists, so many in each, if declared.

    Raises
    ------
    ColumnError
        They are no table of numbers, or a column is missing.
    ParameterError
        An array has another number of dimensions.

    """
    if hasattr(type(given), "columns"):
        return _rows_of_frame(numeric_frame(given, argument, names))
    if names is not None:
        message = f"{argument} must be a frame where features are named; give bounds in the order of the columns"
        raise ColumnError(message)
    array = numeric_array(given, argument, 2, (width,))
    if not array.shape[1]:
        raise ColumnError(f"{argument} must have a column at least")
    return _rows_of_array(array)


def read_target(given: Target, argument: str = "y") -> Rows:
    """Return a column of numbers as rows of one.

    Raises
    ------
    ColumnError
        It is no column of numbers.
    ParameterError
        An array has another number of dimensions.

    """
    if isinstance(given, (list, tuple)):
        return _rows_of_array(numeric_array(given, argument, 1).reshape(-1, 1))
    if hasattr(given, "__array__") and not hasattr(given, "__arrow_c_stream__"):
        column = isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == 1
        return _rows_of_array(numeric_array(given, argument, 1 + column).reshape(-1, 1))
    if hasattr(type(given), "columns"):
        raise ColumnError(f"{argument} must be a column of numbers, with one for each row of X, but was a frame")
    return _rows_of_frame(numeric_frame(given, argument))


def _rows_of_frame(frame: Any) -> Rows:
    import polars as pl

    floats = pl.all().cast(pl.Float64, strict=False)

    def read(start: int, stop: int) -> NDArray[np.float64]:
        return as_floats(frame.slice(start, stop - start).select(floats).to_numpy())

    return Rows(frame.height, frame.width, tuple(frame.columns), read)


def _rows_of_array(array: NDArray[Any]) -> Rows:
    return Rows(len(array), array.shape[1], None, lambda start, stop: as_floats(array[start:stop]))
