"""Tables of numbers as learners read them: block by block, in float64, NaN where anything is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Special, is_numeric, no_numbers
from dpfast.columns.declarations import Numbers, Table, TypedColumn
from dpfast.columns.grid import check_bounds
from dpfast.errors import ColumnError, ParameterError, Words

__all__ = ["FeatureBounds", "Features", "Rows", "Target", "read_bounds", "read_features", "read_target"]

#: So many numbers are read at once.
_BLOCK = 2**17


def _no_features() -> Iterator[object]:
    import polars as pl  # not at the top: it takes long to import

    yield from (1, 0.5, True, "0", b"0", object(), len, {0: 1}, {0, 1}, [], [0.5] * 17, np.zeros(17), np.zeros((2, 0)))
    yield from (["a"], [["a"]], [[0.5], [0.5, 0.5]], [[None]], [[1j]], np.zeros((2, 2, 2)), np.ma.ones((2, 2)))
    yield from (pl.Series([1.0]), pl.DataFrame({"a": ["b"]}), pl.LazyFrame({"a": [1.0]}), pl.DataFrame())


def _no_targets() -> Iterator[object]:
    import polars as pl

    yield from (1, 0.5, True, "0", b"0", object(), len, {0: 1}, {0, 1}, ["a"], [[0.5, 0.5]], [1j], np.zeros((2, 2)))
    yield from ([0.5] * 17, np.zeros(17), pl.Series(["a"]), pl.LazyFrame({"a": [1.0]}), np.ma.ones(2))


def _no_bounds() -> Iterator[object]:
    yield from (5, True, "01", b"01", object(), (), [], (1,), (5, 5), (9, 0), {})
    yield from ((0, other) for other in (*no_numbers(), None, 1e301))
    yield from ([(9, 0)], [(0, 1), (1, 0)], {"a": (1, 0)}, {"a": 1}, {1: (0, 1)}, np.zeros((2, 3)))


#: A row for each example, a column for each feature.
Features: TypeAlias = Annotated[TypedColumn | Table | Sequence[Sequence[Numeric]], Special(_no_features)]
Target: TypeAlias = Annotated[Numbers, Special(_no_targets)]
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
    elif isinstance(given, tuple) and len(given) == 2 and all(map(is_numeric, given)):
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


def read_features(given: Features, names: tuple[str, ...] | None = None, argument: str = "X") -> Rows:
    """Return features as rows; of a frame, these columns in this order, or all.

    Raises
    ------
    ColumnError
        They are no table of numbers, or a column is missing.
    ParameterError
        An array has another number of dimensions.

    """
    frame = _as_frame(given)
    if frame is None:
        if names is not None:
            message = f"{argument} must be a frame where features are named; give bounds in the order of the columns"
            raise ColumnError(message)
        return _rows_of_array(_as_array(given, argument, 2), None)
    import polars as pl

    chosen = tuple(frame.columns) if names is None else names
    for name in chosen:
        if name not in frame.columns:
            raise ColumnError(f"{argument} has no column {name[:60]!r}, for which bounds are declared")
        if not (frame.schema[name].is_numeric() or frame.schema[name] == pl.Boolean):
            raise ColumnError(f"the column {name[:60]!r} of {argument} must be of numbers; cast it or leave it out")
    if not chosen:
        raise ColumnError(f"{argument} must have a column at least")
    floats = [pl.col(name).cast(pl.Float64, strict=False) for name in chosen]

    def read(start: int, stop: int) -> NDArray[np.float64]:
        block: NDArray[np.float64] = frame.slice(start, stop - start).select(floats).to_numpy()
        return block

    return Rows(frame.height, len(chosen), chosen, read)


def read_target(given: Target, argument: str = "y") -> Rows:
    """Return a column of numbers as rows of one.

    Raises
    ------
    ColumnError
        It is no column of numbers.
    ParameterError
        An array has another number of dimensions.

    """
    if hasattr(given, "__array__") and not hasattr(given, "__arrow_c_stream__"):
        array = _as_array(given, argument, 1)
        return _rows_of_array(array.reshape(-1, 1), None)
    if isinstance(given, (list, tuple)):
        return _rows_of_array(_as_array(given, argument, 1).reshape(-1, 1), None)
    import polars as pl

    values: Any = given
    try:
        column = pl.Series("y", values)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException):
        column = pl.Series("y", ["none"])
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise ColumnError(f"{argument} must be a column of numbers, with one for each row of X; cast it")

    def read(start: int, stop: int) -> NDArray[np.float64]:
        block = column.slice(start, stop - start).cast(pl.Float64, strict=False)
        return block.to_numpy().reshape(-1, 1)

    return Rows(len(column), 1, None, read)


def _as_frame(given: Any) -> Any:
    """Return a frame of Polars, or None of what is no frame."""
    if not hasattr(given, "columns") or isinstance(given, np.ndarray):
        return None
    import polars as pl

    from dpfast.columns.tables import frame_of_table

    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        raise ColumnError("X must be a frame in memory, not a LazyFrame; collect it")
    return frame_of_table(given)


def _as_array(given: Any, argument: str, dimensions: int) -> NDArray[Any]:
    """Return numbers as an array of so many dimensions; one column alone may come with two."""
    kind = f"a table of numbers, such as a frame or an array with {dimensions} dimensions"
    wanted = kind if dimensions == 2 else "a column of numbers, with one for each row of X"
    try:
        array = None if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    except Exception:  # whatever an object that is no array raises
        array = None
    if array is None or array.dtype.kind not in "biuf":
        raise ColumnError(f"{argument} must be {wanted}")
    flat = dimensions == 1 and array.ndim == 2 and array.shape[1] == 1
    if (array.ndim != dimensions and not flat) or (dimensions == 2 and not array.shape[1]):
        # The number of rows is private.
        shown = Words(f"of {array.ndim} dimensions and {array.shape[1:]} in a row")
        raise ParameterError(argument, shown, wanted, "Reshape your data")
    return array


def _rows_of_array(array: NDArray[Any], names: tuple[str, ...] | None) -> Rows:
    return Rows(len(array), array.shape[1], names, lambda start, stop: array[start:stop].astype(np.float64))
