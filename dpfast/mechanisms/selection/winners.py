"""What a selection gives back: places or the candidates' values, in the kind of column that was given."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.lists import library_of, list_elements
from dpfast.errors import ColumnError, ParameterError
from dpfast.mechanisms.selection.candidates import Candidates

__all__ = ["Values", "give_column", "give_places", "give_rankings", "read_values"]


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


def give_rankings(candidates: Candidates, winners: NDArray[np.int64]) -> Any:
    """Return the places of several winners of each row, in order: a column for one row, else a list or row for each."""
    places = candidates.places(winners)
    if candidates.shape == "vector":
        return give_column(candidates, places[0], winners[0] >= 0)
    if not candidates.has_nulls:
        return places
    import pyarrow as pa

    return _give_lists(candidates.given, pa.array(places[winners >= 0]), (winners >= 0).sum(1))


def _give_lists(like: Any, elements: Any, lengths: NDArray[np.int64]) -> Any:
    """Return a column of lists of these lengths, of Polars or PyArrow as another column is."""
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if library_of(like) != "polars":
        lists = pa.LargeListArray.from_arrays(offsets, elements)
        return pa.chunked_array([lists]) if isinstance(like, pa.ChunkedArray) else lists
    import polars as pl

    # Polars before 2.0 misreads large lists of text that PyArrow made, and would end the process.
    kind = pa.ListArray if offsets[-1] < 2**31 else pa.LargeListArray
    return pl.Series(like.name, kind.from_arrays(offsets, elements))


class Values:
    """The values of candidates, from which those of the winners are taken; made by `read_values`."""

    __slots__ = ("_given", "_starts", "_values")

    def __init__(self, given: Any, values: Any, starts: NDArray[np.int64] | None) -> None:
        self._given, self._values, self._starts = given, values, starts

    @property
    def has_nulls(self) -> bool:
        """Whether they are of Polars or PyArrow, so that a row without a winner can be null."""
        return library_of(self._given) in ("polars", "pyarrow")

    def take(self, candidates: Candidates, winners: NDArray[np.int64]) -> Any:
        """Return the winners' values, in the kind that the values were given in."""
        places = self._places(candidates, winners)
        if candidates.shape == "vector":
            # A pandas Series looks a number up in its index.
            positions = self._values.iloc if library_of(self._values) == "pandas" else self._values
            value = positions[int(places[0])]
            return value.as_py() if library_of(value) == "pyarrow" else value
        return _take(self._values, places)

    def take_rankings(self, candidates: Candidates, winners: NDArray[np.int64]) -> Any:
        """Return the values of several winners of each row, in order, as `give_rankings` does places."""
        places = self._places(candidates, winners)
        if candidates.shape == "vector":
            return _take(self._values, places[0])
        if library_of(self._values) not in ("polars", "pyarrow"):
            if library_of(self._values) == "numpy":
                return self._values[places]
            return [list(_take(self._values, row)) for row in places]
        elements = _take(self._values, places[winners >= 0])
        return _give_lists(self._values, _one_array(elements), (winners >= 0).sum(1))

    def _places(self, candidates: Candidates, winners: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the winners stand among all values, -1 for none."""
        places = candidates.places(winners)
        if self._starts is None:
            return places
        starts = self._starts[:-1]
        return np.where(winners < 0, -1, places + (starts if winners.ndim == 1 else starts[:, None]))


def _one_array(elements: Any) -> Any:
    """Return a column of Polars or PyArrow as one PyArrow array."""
    array = elements.to_arrow() if library_of(elements) == "polars" else elements
    return array.combine_chunks() if hasattr(array, "combine_chunks") else array


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
                raise ParameterError("candidates", None, "as many in each row as scores", "give one for each score")
            return Values(values, flat, starts)
        longest = int(candidates.lengths.max(initial=0))
        if _length(values) < longest:
            allowed = f"at least {longest}, the candidates of the longest row"
            raise ParameterError("the length of candidates", _length(values), allowed, "give one for each place")
        return Values(values, values, None)
    expected = int(candidates.lengths.sum())
    if _length(values) != expected:
        allowed = f"{expected}, as the scores'"
        raise ParameterError("the length of candidates", _length(values), allowed, "give one for each score")
    return Values(values, values, None)


def _length(values: Any) -> int:
    sized = hasattr(values, "__len__") and not isinstance(values, (str, bytes, dict, set, frozenset))
    if not sized or (library_of(values) == "" and not isinstance(values, (list, tuple))):
        message = f"candidates must be a column or a list of values, but was a {type(values).__name__}"
        raise ColumnError(f"{message}; pass one value for each score")
    if type(values).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch"):
        message = f"candidates must be a column or a list of values, but was a {type(values).__name__}"
        raise ColumnError(f'{message}; pass one column, such as frame["name"]')
    return len(values)


def _elements(values: Any) -> tuple[Any, NDArray[np.int64]] | None:
    """Return the elements of lists, or of an array of rows, and where rows begin; None for a plain column."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        rows, width = values.shape
        return values.reshape(-1), np.arange(rows + 1, dtype=np.int64) * width
    if isinstance(values, (list, tuple)) and values and all(isinstance(row, list) for row in values):
        return list(chain.from_iterable(values)), np.cumsum([0, *map(len, values)])
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
