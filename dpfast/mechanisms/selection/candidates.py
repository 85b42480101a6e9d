"""The candidates of private selections: a vector, an array of rows, a column of lists, or a flat column in groups.

Whatever was given, a kernel sees the scores of all rows one after the other, without the nulls, and where each row
begins. A place is where a candidate stands in what was given, nulls counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import Column, borrow, dimensions
from dpfast.columns.lists import Lists, borrow_lists, library_of
from dpfast.columns.saturating import borrow_saturating
from dpfast.columns.widening import widen
from dpfast.errors import ColumnError, DataError, ParameterError, Words
from dpfast.kernels.grouping.ordering import count_rows, order_rows

__all__ = ["CHUNK", "Candidates", "borrow_candidates"]

#: Candidates whose words are drawn at a time: their scores and words stay in the second-level cache.
CHUNK = 65_536

_NO_CANDIDATE = "scores must hold at least one candidate"


class Candidates:
    """Borrowed scores, row by row, without the nulls.

    Attributes
    ----------
    shape
        "vector" (one selection), "rows" (an array of 2 dimensions), "lists" or "flat" (with offsets or groups).
    rows, size
        The number of selections, and of candidates in all of them.
    offsets
        Where each row's candidates begin, and where the last row's end (int64).
    given
        The scores as they were given.
    nulls
        How many candidates are null, and so are none.

    """

    __slots__ = ("_column", "_kept", "_own", "_starts", "given", "nulls", "offsets", "rows", "shape", "size")

    def __init__(
        self,
        given: Any,
        column: Column,
        shape: str,
        starts: NDArray[np.int64],
        *,
        order: NDArray[np.int64] | None = None,
        missing: NDArray[np.bool_] | None = None,
    ) -> None:
        self.given, self._column, self.shape = given, column, shape
        self._starts = self.offsets = starts
        self._kept = order
        self._own: NDArray[Any] | None = None
        self.rows, self.size, self.nulls = starts.size - 1, column.length, 0
        if column.null_count:
            null = column.missing(0, column.length)
            assert null is not None
            missing = null if missing is None else missing | null
        if missing is not None:
            if order is not None:
                missing = missing[order]
            valid = np.flatnonzero(~missing)
            self._kept = valid if order is None else order[valid]
            self.nulls, self.size = column.length - valid.size, valid.size
            self.offsets = np.searchsorted(valid, starts)
        if self._kept is not None:
            self._own = column.block(0, column.length)[self._kept]
            self._own.setflags(write=False)

    def block(self, start: int, stop: int) -> NDArray[Any]:
        """Return the scores of some candidates, counted over all rows: int64 or float64, read-only."""
        return widen(self._column.block(start, stop) if self._own is None else self._own[start:stop])

    def take(self, candidates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the scores of chosen candidates, in ascending order of their number."""
        if candidates.size and int(candidates[-1] - candidates[0]) == candidates.size - 1:
            return self.block(int(candidates[0]), int(candidates[-1]) + 1)
        return widen(self._column.take(candidates) if self._own is None else self._own[candidates])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many candidates each row has, nulls among them."""
        return np.diff(self._starts)

    @property
    def longest(self) -> int:
        """The largest of `lengths`, 0 for no rows."""
        return self._column.length if self.shape == "vector" else int(self.lengths.max(initial=0))

    @property
    def has_nulls(self) -> bool:
        """Whether a row without a winner is null in the result: columns of Polars and PyArrow have nulls."""
        return self.shape in ("lists", "flat") and library_of(self.given) in ("polars", "pyarrow")

    def refuse_few(self, needed: int, nulls: bool | None = None) -> None:
        """Raise if a row has fewer candidates than needed and the result has no nulls to show it.

        ``nulls`` says whether the result has nulls, where it is not in the kind of the scores.
        """
        if self.shape == "vector" and self.size >= needed:
            return
        if self.shape == "rows" and self.rows and self.offsets[1] >= needed:
            return
        sizes = np.diff(self.offsets)
        ragged = self.has_nulls if nulls is None else nulls and self.shape in ("lists", "flat")
        if ragged or not self.rows or sizes.min() >= needed:
            return
        row = int(np.argmax(sizes < needed))
        if needed > 1:
            where = "" if self.shape == "vector" else f" in every row, but row {row}"
            message = f"scores must hold at least {needed} candidates{where or ', but'} had {sizes[row]}"
            raise DataError(f"{message}; a null is no candidate")
        if self.nulls and self.shape == "vector":
            raise DataError(f"{_NO_CANDIDATE}, but all were null; a null is no candidate")
        where = ", but had none" if self.shape == "vector" else f" in every row, but row {row} had none"
        raise DataError(f"{_NO_CANDIDATE}{where}; a selection needs one to select")

    def refuse_not_finite(self, start: int, scores: NDArray[Any]) -> DataError:
        """Return the error for a chunk of scores one of which is NaN or infinite."""
        candidate = start + int(np.argmin(np.isfinite(scores)))
        place = candidate if self._kept is None else int(self._kept[candidate])
        where = f"candidate {place}"
        if self.shape in ("rows", "lists"):
            row = int(np.searchsorted(self._starts, place, side="right")) - 1
            where = f"row {row}, candidate {place - int(self._starts[row])}"
        return DataError(f"scores must be finite, but {where} is NaN or infinite; leave it out or replace it first")

    def places(self, winners: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where winners stand: in their row for rows and lists, else in the column; -1 for none.

        Parameters
        ----------
        winners
            Candidates counted over all rows, one for each row, or an array of them; -1 for none.

        """
        if self.shape == "vector" and self._kept is None:
            return winners
        some_none = self.rows > 0 and int(winners.min()) < 0
        places = winners
        if self._kept is not None:
            # -1 takes some candidate, which is replaced below.
            places = self._kept[winners] if self._kept.size else winners
        if self.shape in ("rows", "lists"):
            starts = self._starts[:-1]
            places = places - (starts if winners.ndim == 1 else starts[:, None])
        if some_none:
            places = np.where(winners < 0, -1, places)
        return places


def borrow_candidates(scores: Any, offsets: Any = None, groups: Any = None) -> Candidates:
    """Borrow scores of any shape.

    Parameters
    ----------
    scores
        A column, an array of 2 dimensions, or a column of lists.
    offsets
        For a column: where each selection's candidates begin, from 0 on, and where the last one's end.
    groups
        For a column: the number of each candidate's selection, in any order.

    Raises
    ------
    ColumnError
        ``scores`` is none of these, or its type is not one of those of `borrow`.
    DataError
        There is no candidate to select.
    ParameterError
        The offsets or groups do not fit.

    """
    if offsets is not None and groups is not None:
        raise ParameterError("groups", groups, "None where offsets are given", "leave one of them out")
    lists = None if type(scores) is np.ndarray else borrow_lists(scores, "scores")
    if lists is not None:
        for argument, value in (("offsets", offsets), ("groups", groups)):
            if value is not None:
                raise ParameterError(argument, value, "None for a column of lists", "leave it out")
        return _of_lists(scores, lists)
    column = borrow_saturating(scores, "scores")
    if isinstance(scores, np.ndarray):
        shape = scores.shape
    else:
        shape = np.shape(scores) if isinstance(scores, (list, tuple)) else (column.length,)
    if isinstance(scores, (int, float, np.generic)) or len(shape) not in (1, 2):
        given = f"an array of {len(shape)} dimensions" if isinstance(scores, np.ndarray) else f"a {_kind(scores)}"
        message = f"scores must be a column, or an array of 2 dimensions with one selection a row, but was {given}"
        raise ColumnError(f"{message}; reshape it")
    if offsets is not None or groups is not None:
        if len(shape) != 1:
            argument = "groups" if offsets is None else "offsets"
            raise ParameterError(argument, None, "left out for an array of 2 dimensions", "its rows are the groups")
        if offsets is not None:
            return Candidates(scores, column, "flat", _read_offsets(offsets, column.length))
        starts, order = _read_groups(groups, column.length)
        return Candidates(scores, column, "flat", starts, order=order)
    rows, width = (1, shape[0]) if len(shape) == 1 else shape
    if rows and not width:
        raise DataError(f"{_NO_CANDIDATE}, but had none; a selection needs one to select")
    starts = np.arange(0, rows * width + 1, max(width, 1), dtype=np.int64)
    return Candidates(scores, column, "vector" if len(shape) == 1 else "rows", starts)


def _of_lists(scores: Any, lists: Lists) -> Candidates:
    return Candidates(scores, lists.elements, "lists", lists.offsets, missing=lists.under_nulls)


def _kind(scores: Any) -> str:
    return "number" if isinstance(scores, (int, float, np.generic)) else "list nested more than twice"


def _whole_numbers(given: Any, argument: str) -> NDArray[Any]:
    """Return a public column of integers without nulls."""
    column = borrow(given, argument)
    if dimensions(given) != 1:
        raise ParameterError(argument, Words(f"of {dimensions(given)} dimensions"), "a column of integers")
    if column.dtype.kind == "f":
        kind = Words(f"one of {column.dtype}")
        raise ParameterError(argument, kind, "a column of integers", f'write {argument}.astype("int64")')
    if column.null_count:
        raise ParameterError(argument, None, "a column without nulls", "leave the rows out, or give them a group")
    return column.block(0, column.length)


def _read_offsets(given: Any, length: int) -> NDArray[np.int64]:
    # A copy: kernels write where it says, and another thread may write into what was given.
    offsets: NDArray[np.int64] = _whole_numbers(given, "offsets").astype(np.int64)
    allowed = f"integers that rise from 0 to {length}, the number of scores"
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != length:
        ends = [] if offsets.size == 0 else [offsets[0].item(), offsets[-1].item()]
        raise ParameterError("offsets", ends, allowed, "begin with 0 and end with the number of scores")
    fall = offsets[1:] < offsets[:-1]
    if fall.any():
        row = int(np.argmax(fall)) + 1
        error = ParameterError(f"offsets[{row}]", offsets[row].item(), f"at least {offsets[row - 1]}, the one before")
        error.argument = "offsets"
        raise error
    return offsets


def _read_groups(given: Any, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return where each group begins, in ascending order of their numbers, and the rows' order if not their own."""
    groups = _whole_numbers(given, "groups")
    if groups.size != length:
        raise ParameterError(
            "the length of groups", groups.size, f"{length}, as the scores'", "give one for each score"
        )
    rises = groups[1:] >= groups[:-1]
    if rises.all():
        changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        return np.concatenate([[0], changes, [length]] if length else [[0]]).astype(np.int64), None
    groups = groups.astype(np.int64)  # a copy, for the reason above
    lowest, highest = int(groups.min()), int(groups.max())
    if highest - lowest > 4 * length + 1024:
        distinct, groups = np.unique(groups, return_inverse=True)
        lowest, highest = 0, distinct.size - 1
        groups = groups.astype(np.int64, copy=False)
    groups.setflags(write=False)
    counts = np.zeros(highest - lowest + 1, np.int64)
    count_rows(groups, lowest, counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    order = np.empty(length, np.int64)
    order_rows(groups, lowest, starts[:-1].copy(), order)
    present = np.append(counts > 0, True)
    return starts[present], order
