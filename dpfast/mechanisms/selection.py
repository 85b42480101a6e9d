"""Private selection: one kernel call over all candidates, and ball arithmetic where it does not decide.

The way of a call: scores and keystream, chunk by chunk -> winners, and the candidates left open in other rows -> the
parts of a row compared with each other -> the contenders of a row that is still open, in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.amounts import UNITS_PER_ONE, budget_units
from dpfast.columns import Column, borrow, borrow_scale
from dpfast.errors import ColumnError, DataError, ParameterError
from dpfast.kernels.selection import BLOCK, compare_groups, select_chunk
from dpfast.mechanisms.additive import Tail, random_source
from dpfast.mechanisms.exact_selection import exact_winner
from dpfast.randomness import Keystream, Purpose, RandomSource

__all__ = ["Candidates", "borrow_candidates", "select", "select_rows", "slopes"]

#: Candidates whose words are drawn at a time: their scores and words stay in the second-level cache.
CHUNK = 65_536

_REST, _REST_BITS = 0x7FFFFFFF, 31
_LOWEST_EPSILON, _HIGHEST_EPSILON = 1e-18, 1e6
_SCALARS = (int, float, Decimal, Fraction, np.generic, complex, str, bytes, type(None))

Winner: TypeAlias = "int | NDArray[np.int64]"


class Candidates:
    """Borrowed scores, row by row, without the nulls.

    Attributes
    ----------
    rows, width
        The number of selections, and of candidates in each.
    single
        Whether a column was given and not an array of rows.
    nulls
        How many rows of the column are null, and so no candidates.

    """

    __slots__ = ("_column", "_dense", "_places", "nulls", "rows", "single", "width")

    def __init__(self, column: Column, rows: int, width: int, *, single: bool) -> None:
        self._column = column
        self._dense: NDArray[Any] | None = None
        self._places: NDArray[np.int64] | None = None
        self.rows, self.width, self.single, self.nulls = rows, width, single, column.null_count
        if column.null_count:
            missing = column.missing(0, column.length)
            assert missing is not None
            self._places = np.flatnonzero(~missing)
            self._dense = column.block(0, column.length)[self._places]
            self.width = self._dense.size

    def block(self, start: int, stop: int) -> NDArray[Any]:
        """Return the scores of some candidates, counted over all rows."""
        if self._dense is None:
            return self._column.block(start, stop)
        dense = self._dense[start:stop]
        dense.setflags(write=False)
        return dense

    def place(self, candidate: int) -> int:
        """Return where in the column a candidate stands, nulls included."""
        return candidate if self._places is None else int(self._places[candidate])

    def places(self, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where in the column candidates stand, nulls included."""
        return candidates if self._places is None else self._places[candidates]

    def take(self, candidates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the scores of chosen candidates, in ascending order of their number."""
        taken = np.empty(candidates.size, self._column.dtype)
        starts = np.flatnonzero(np.diff(candidates // CHUNK, prepend=-1))
        for low, high in zip(starts, [*starts[1:], candidates.size], strict=True):
            first = int(candidates[low])
            taken[low:high] = self.block(first, int(candidates[high - 1]) + 1)[candidates[low:high] - first]
        return taken

    def refuse_not_finite(self, start: int, scores: NDArray[Any]) -> DataError:
        """Return the error for a chunk of scores one of which is NaN or infinite."""
        place = self.place(start + int(np.argmin(np.isfinite(scores))))
        where = f"candidate {place}" if self.single else f"row {place // self.width}, candidate {place % self.width}"
        return DataError(f"scores must be finite, but {where} is NaN or infinite; leave it out or replace it first")


def borrow_candidates(scores: Any) -> Candidates:
    """Borrow a column of scores, or an array of rows of scores.

    Raises
    ------
    ColumnError
        ``scores`` is neither, or its type is not one of those of `borrow`.
    DataError
        There is no candidate to select.

    """
    column = borrow(scores, "scores")
    shape = np.shape(scores) if isinstance(scores, (np.ndarray, list, tuple)) else (column.length,)
    if isinstance(scores, (int, float, np.generic)) or len(shape) not in (1, 2):
        given = f"an array of {len(shape)} dimensions" if isinstance(scores, np.ndarray) else f"a {_kind(scores)}"
        message = f"scores must be a column, or an array of 2 dimensions with one selection a row, but was {given}"
        raise ColumnError(f"{message}; reshape it")
    single = len(shape) == 1
    rows, width = (1, shape[0]) if single else shape
    if rows and not width:
        raise DataError("scores must hold at least one candidate, but had none; a selection needs one to select")
    if rows and column.null_count == column.length:
        raise DataError("scores must hold at least one candidate, but all were null; a null is no candidate")
    return Candidates(column, rows, width, single=single)


def _kind(scores: Any) -> str:
    return "number" if isinstance(scores, (int, float, np.generic)) else "list nested more than twice"


def slopes(epsilon: Any, sensitivity: Any, monotonic: object, rows: int) -> float | NDArray[np.float64]:
    """Return what scores are multiplied by, a = epsilon / (2 sensitivity), rounded down (Soundness rule 8).

    Parameters
    ----------
    epsilon, sensitivity
        A number, or a column with one for each row.
    monotonic
        Whether a = epsilon / sensitivity.
    rows
        The number of rows.

    Raises
    ------
    ParameterError
        One of them is not allowed.

    Examples
    --------
    >>> slopes(1, 2.0, False, 1)
    0.25
    >>> slopes(0.1, 1, True, 1) <= Fraction(1, 10) < Fraction(math.nextafter(slopes(0.1, 1, True, 1), 1))
    True

    """
    if not isinstance(monotonic, (bool, np.bool_)):
        raise ParameterError("monotonic", monotonic, "True or False", "True only if no score can fall as another rises")
    width = borrow_scale(sensitivity, rows, "sensitivity")
    factor = 1 if monotonic else 2
    if isinstance(epsilon, np.ndarray) and epsilon.ndim == 0 and not isinstance(epsilon, np.ma.MaskedArray):
        epsilon = epsilon[()]
    if isinstance(epsilon, _SCALARS):
        exact = Fraction(budget_units(epsilon, "epsilon"), UNITS_PER_ONE)
        if isinstance(width, float):
            return _round_down(exact / (factor * Fraction(width)))
        share: float | NDArray[np.float64] = float(exact)
    else:
        share = borrow_scale(epsilon, rows, "epsilon")
        if isinstance(share, float):
            share = np.full(rows, share)
        low, high = share.min(initial=1.0), share.max(initial=1.0)
        if not (low >= _LOWEST_EPSILON and high <= _HIGHEST_EPSILON):
            row = int(np.argmin((share >= _LOWEST_EPSILON) & (share <= _HIGHEST_EPSILON)))
            error = ParameterError(f"epsilon[{row}]", share[row].item(), "a number from 1e-18 to 1e6")
            error.argument = "epsilon"
            raise error
    # The quotient rounds up by u at most, in relative terms, and a float lies above the decimal that it was written as
    # by u at most; each step down is u at least.
    quotient = np.broadcast_to(share / (factor * width), (rows,))
    for _ in range(2):
        quotient = np.nextafter(quotient, 0.0)
    return quotient


def _round_down(x: Fraction) -> float:
    """Return the largest float that is not above a positive rational number."""
    nearest = float(x)
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, 0.0)


def select(
    scores: Any, epsilon: Any, sensitivity: Any, monotonic: object, kind: int, random: object
) -> int | NDArray[np.int64]:
    """Return the winner of a column, or of every row of an array; see `exponential` for the parameters."""
    candidates = borrow_candidates(scores)
    slope = slopes(epsilon, sensitivity, monotonic, candidates.rows)
    winners = select_rows(candidates, slope, kind, random_source(random))
    return candidates.place(int(winners[0])) if candidates.single else winners


def select_rows(
    candidates: Candidates,
    slope: float | NDArray[np.float64],
    kind: int,
    source: RandomSource,
    *,
    refine_all: bool = False,
) -> NDArray[np.int64]:
    """Return the place of every row's winner among its candidates that are not null.

    Parameters
    ----------
    candidates
        The scores.
    slope
        What they are multiplied by, one number or one for each row.
    kind
        The noise: GUMBEL, EXPONENTIAL or LAPLACE of dpfast.kernels.selection.
    source
        Where the call's key comes from.
    refine_all
        Treat every candidate as a contender: the slow, exact path, which must agree with the fast one.

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """
    keystream = Keystream(source.key())
    winners = np.full(candidates.rows, -1, np.int64)
    index, words = _first_pass(candidates, slope, kind, keystream, winners, refine_all)
    if index.size:
        _settle(candidates, slope, kind, keystream, winners, index, words, None if refine_all else compare_groups)
    assert winners.size == 0 or winners.min() >= 0, "every row has a winner"
    return winners


def _first_pass(
    candidates: Candidates,
    slope: float | NDArray[np.float64],
    kind: int,
    keystream: Keystream,
    winners: NDArray[np.int64],
    refine_all: bool,
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Set the winners that a chunk alone decides; return the candidates left open elsewhere, and their words.

    Word j belongs to candidate j, counted over all rows, whatever the scores are: chunk j // CHUNK of the
    keystream, word j % CHUNK.
    """
    size, width = candidates.rows * candidates.width, candidates.width
    reader = keystream.words(Purpose.NOISE)
    buffer = min(size, CHUNK)
    words, places, highs = np.empty(buffer, np.uint32), np.empty(buffer, np.int64), np.empty(buffer)
    open_index, open_word = np.empty(buffer, np.int64), np.empty(buffer, np.uint32)
    keys = np.empty(BLOCK, np.int64)
    indices: list[NDArray[np.int64]] = []
    opened: list[NDArray[np.uint32]] = []
    for chunk, start in enumerate(range(0, size, CHUNK)):
        stop = min(start + CHUNK, size)
        drawn = words[: stop - start]
        reader.fill(chunk, drawn)
        scores = candidates.block(start, stop)
        own = slope if isinstance(slope, float) else slope[np.arange(start, stop) // width]
        count, broken = select_chunk(
            scores, drawn, own, kind, start, width, keys, places, highs, winners, open_index, open_word
        )
        if broken:
            raise candidates.refuse_not_finite(start, scores)
        if refine_all:
            indices.append(np.arange(start, stop))
            opened.append(drawn.copy())
        elif count:
            indices.append(open_index[:count].copy())
            opened.append(open_word[:count].copy())
    if not indices:
        return np.empty(0, np.int64), np.empty(0, np.uint32)
    return np.concatenate(indices), np.concatenate(opened)


def _settle(
    candidates: Candidates,
    slope: float | NDArray[np.float64],
    kind: int,
    keystream: Keystream,
    winners: NDArray[np.int64],
    index: NDArray[np.int64],
    words: NDArray[np.uint32],
    compare: Callable[..., None] | None,
) -> None:
    """Set the winners of rows of which these candidates, in order, are left open."""
    width = candidates.width
    scores = candidates.take(index)
    rows = index // width
    starts = np.flatnonzero(np.diff(rows, prepend=-1, append=candidates.rows))
    places, contenders = np.arange(index.size), np.diff(starts)
    if compare is not None:
        own = slope if isinstance(slope, float) else slope[rows]
        compare(scores, words, own, kind, starts, places, np.empty(index.size), contenders)
    alone = contenders == 1
    first = index[places[starts[:-1][alone]]]
    winners[first // width] = first % width
    for start, count in zip(starts[:-1][~alone].tolist(), contenders[~alone].tolist(), strict=True):
        chosen = places[start : start + count]
        row = int(rows[start])
        a = Fraction(slope if isinstance(slope, float) else float(slope[row]))
        exact = [Fraction(score) for score in scores[chosen].tolist()]
        highest = max(exact)
        own_words = words[chosen].tolist()
        won = exact_winner(
            kind,
            [a * (score - highest) for score in exact],
            [word > _REST for word in own_words],
            [
                Tail(keystream, word_index, word & _REST, _REST_BITS)
                for word_index, word in zip(index[chosen].tolist(), own_words, strict=True)
            ],
        )
        winners[row] = int(index[chosen[won]]) % width
