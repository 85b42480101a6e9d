"""What a selection gives back: places or the candidates' values, in the kind of column that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.lists import library_of, list_elements
from dpfast.errors import ColumnError, ParameterError
from dpfast.mechanisms.candidates import Candidates

__all__ = ["Values", "give_column", "give_places", "read_values"]


def give_places(candidates: Candidates, winners: NDArray[np.int64]) -> Any:
    """Return the winners' places: an int for one selection, else a column in the kind that was given."""
    places = candidates.places(winners)
    if candidates.shape == "vector":
        return int(places[0])
    return give_column(candidates, places, winners >= 0)


def give_column(candidates: Candidates, numbers: NDArray[Any], valid: NDArray[np.bool_]) -> Any:
    """Return a number for each row as a Polars or PyArrow column if that was given, null where not valid."""
    given, library = candidates.given, library_of(candidates.given)
    if library not in ("polars", "pyarrow"):
        return numbers
    import pyarrow as pa

    array = pa.array(numbers, mask=None if valid.all() else ~valid)
    if library == "polars":
        import polars as pl

        return pl.Series(given.name, array)
    return pa.chunked_array([array]) if isinstance(given, pa.ChunkedArray) else array


class Values:
    """The values of candidates, from which those of the winners are taken; made by `read_values`."""

    __slots__ = ("_shared", "_starts", "_values")

    def __init__(self, values: Any, *, shared: bool, starts: NDArray[np.int64] | None) -> None:
        self._values, self._shared, self._starts = values, shared, starts

    def take(self, candidates: Candidates, winners: NDArray[np.int64]) -> Any:
        """Return the winners' values, in the kind that the values were given in."""
        places = candidates.places(winners)
        if candidates.shape == "vector":
            value = self._values[int(places[0])]
            return value.as_py() if library_of(value) == "pyarrow" else value
        if not self._shared and self._starts is not None:
            places = np.where(winners < 0, -1, places + self._starts[:-1])
        return _take(self._values, places)


def read_values(values: Any, candidates: Candidates) -> Values:
    """Read the values of candidates: one for each score, or one for each place in a row.

    Raises
    ------
    ParameterError
        There are not as many values as candidates.
    ColumnError
        ``values`` is no column.

    """
    if candidates.shape in ("rows", "lists"):
        elements = _elements(values)
        if elements is not None:
            flat, starts = elements
            same = starts.size == candidates.rows + 1 and np.array_equal(np.diff(starts), candidates.lengths)
            if not same:
                raise ParameterError("candidates", None, "as many a row as scores", "give one for each score")
            return Values(flat, shared=False, starts=starts)
        longest = int(candidates.lengths.max(initial=0))
        if _length(values) < longest:
            allowed = f"at least {longest}, the candidates of the longest row"
            raise ParameterError("the length of candidates", _length(values), allowed, "give one for each place")
        return Values(values, shared=True, starts=None)
    expected = int(candidates.lengths.sum())
    if _length(values) != expected:
        allowed = f"{expected}, as the scores'"
        raise ParameterError("the length of candidates", _length(values), allowed, "give one for each score")
    return Values(values, shared=True, starts=None)


def _length(values: Any) -> int:
    sized = hasattr(values, "__len__") and not isinstance(values, (str, bytes, dict, set, frozenset))
    if not sized or library_of(values) == "" and not isinstance(values, (list, tuple)):
        message = f"candidates must be a column or a list of values, but was a {type(values).__name__}"
        raise ColumnError(f"{message}; pass one value for each score")
    if type(values).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch"):
        message = f"candidates must be a column or a list of values, but was a {type(values).__name__}"
        raise ColumnError(f'{message}; pass one column, such as frame["name"]')
    return len(values)


def _elements(values: Any) -> tuple[Any, NDArray[np.int64]] | None:
    """Return the elements of a column of lists, or of an array of rows, and where rows begin; None for others."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        rows, width = values.shape
        return values.reshape(-1), np.arange(rows + 1, dtype=np.int64) * width
    split = list_elements(values)
    if split is None:
        return None
    import pyarrow as pa

    pieces, starts, _, element_type = split
    elements = pa.chunked_array(pieces, element_type)
    if library_of(values) != "polars":
        return elements, starts
    import polars as pl

    return pl.Series(values.name, elements, dtype=values.dtype.inner), starts


def _take(values: Any, places: NDArray[np.int64]) -> Any:
    """Return the values at places, null where a place is negative."""
    library = library_of(values)
    none = places < 0
    if library in ("polars", "pyarrow"):
        import pyarrow as pa

        chosen = pa.array(places, mask=none if none.any() else None)
        if library == "pyarrow":
            return values.take(chosen)
        import polars as pl

        return values.gather(pl.Series(chosen).cast(pl.UInt32 if len(values) < 2**32 else pl.UInt64))
    if none.any():
        return [None if place < 0 else values[place] for place in places.tolist()]
    if library == "pandas":
        return values.iloc[places]
    return values[places] if library == "numpy" else [values[place] for place in places.tolist()]
