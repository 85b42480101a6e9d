"""Columns of lists, borrowed without a copy: their elements as one column, and where each row begins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.column import Column

__all__ = ["Lists", "borrow_lists", "library_of", "library_of_kind", "list_elements"]


@dataclass(frozen=True)
class Lists:
    """A column of lists.

    Attributes
    ----------
    elements
        The elements of all rows, one after the other.
    offsets
        Where each row's begin, and where the last row's end (int64).
    under_nulls
        Where elements lie in lists that are null, None if nowhere: a null list may have memory of its own.

    """

    elements: Column
    offsets: NDArray[np.int64]
    under_nulls: NDArray[np.bool_] | None


def library_of(values: Any) -> str:
    """Return the name of the library that a column is of: "polars", "pyarrow", "numpy" and so on."""
    kind: Any = type(values)
    return library_of_kind(kind)


# The bound lets go of classes that a program makes as it runs.
@lru_cache(maxsize=64)
def library_of_kind(kind: type) -> str:
    """Return the name of the library that a class, or one that it derives from, is of; "" for another one."""
    names = {str(base.__module__).partition(".")[0] for base in kind.__mro__}
    return next((name for name in ("polars", "pyarrow", "pandas", "numpy") if name in names), "")


def borrow_lists(values: Any, argument: str) -> Lists | None:
    """Borrow a Polars Series of List or Array, or a PyArrow list array; return None for anything else.

    Guarantee
        Elements are read in place; as for `borrow`, nothing is written to them. Offsets are copied: eight bytes a
        row.

    Parameters
    ----------
    values
        The column; its lists hold numbers of the types of `borrow`. Rows may be null or empty, elements null.
    argument
        The name that an error gives to ``values``.

    Raises
    ------
    ColumnError
        The elements are of another type.

    Examples
    --------
    >>> import polars as pl
    >>> lists = borrow_lists(pl.Series([[1, 2], None, [3]]), "scores")
    >>> None if lists is None else (lists.offsets, lists.elements.block(0, 3))
    (array([0, 2, 2, 3]), array([1, 2, 3]))

    """
    split = list_elements(values)
    if split is None:
        return None
    from dpfast.columns.of_arrow import arrow_array, borrow_chunks

    pieces, offsets, under_nulls, element_type = split
    library = {"polars": "Polars", "pyarrow": "PyArrow"}[library_of(values)]
    kind = f"a {library} {type(values).__name__}"
    return Lists(borrow_chunks(pieces, element_type, argument, kind, arrow_array), offsets, under_nulls)


def list_elements(values: Any) -> tuple[list[Any], NDArray[np.int64], NDArray[np.bool_] | None, Any] | None:
    """Return a column's elements of any type, in Arrow chunks, with the offsets and mask of `Lists` and their type.

    None for anything but a Polars Series of List or Array, or a PyArrow list array.
    """
    library = library_of(values)
    if library not in ("polars", "pyarrow"):
        return None
    import pyarrow as pa

    if library == "polars":
        import polars as pl

        if not isinstance(values, pl.Series) or not isinstance(values.dtype, (pl.List, pl.Array)):
            return None
        values = pa.chunked_array(values)
    if not isinstance(values, (pa.Array, pa.ChunkedArray)) or not _is_list(values.type):
        return None
    pieces, offsets, masks = [], [np.zeros(1, np.int64)], []
    length = 0
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
        if len(chunk) == 0:
            continue
        starts = _starts(chunk)
        elements = chunk.values.slice(starts[0], starts[-1] - starts[0])
        starts -= starts[0]
        mask = np.zeros(0, np.bool_)
        if chunk.null_count:
            mask = np.repeat(chunk.is_null().to_numpy(zero_copy_only=False), np.diff(starts))
        masks.append((mask, len(elements)))
        pieces.append(elements)
        offsets.append(starts[1:] + length)
        length += len(elements)
    under_nulls = None
    if any(mask.any() for mask, _ in masks):
        under_nulls = np.concatenate([mask if mask.size else np.zeros(size, np.bool_) for mask, size in masks])
    return pieces, np.concatenate(offsets), under_nulls, values.type.value_type


def _is_list(arrow_type: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type))


def _starts(chunk: Any) -> NDArray[np.int64]:
    """Return where the rows of a chunk begin and the last one ends, counted in its elements, as a fresh array."""
    starts: NDArray[np.int64]
    if hasattr(chunk, "offsets"):
        starts = np.array(chunk.offsets, np.int64)
    else:
        starts = (np.arange(len(chunk) + 1, dtype=np.int64) + chunk.offset) * chunk.type.list_size
    return starts
