"""Private selection: one kernel call over all candidates, and ball arithmetic where it does not decide.

The way of a call: scores and keystream, chunk by chunk -> winners, and the candidates left open in other rows -> the
parts of a row compared with each other -> the contenders of a row that is still open, in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import borrow_scale, dimensions
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import round_down
from dpfast.kernels.selection.argmax import BLOCK, compare_groups, select_chunk, select_row
from dpfast.mechanisms.parameters import MONOTONIC
from dpfast.mechanisms.selection.candidates import CHUNK, Candidates, borrow_candidates
from dpfast.mechanisms.selection.exact_argmax import exact_winner
from dpfast.mechanisms.selection.winners import give_places, read_values
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail, random_source
from dpfast.threads import share, thread_count

__all__ = ["CHUNK", "Candidates", "borrow_candidates", "one_slope", "select", "select_rows", "slopes"]

_REST, _REST_BITS = 0x7FFFFFFF, 31
#: How many more bits of a word are read before balls are.
_MORE_BITS = np.uint64(17)
_LOWEST_EPSILON, _HIGHEST_EPSILON = 1e-18, 1e6
_SCALARS = (int, float, Decimal, Fraction, np.generic, complex, str, bytes, type(None))

Slope: TypeAlias = "float | NDArray[np.float64]"

#: Candidates left open, counted over all rows, and their words.
Opened: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.uint32]]"
Draw: TypeAlias = "Callable[[Candidates, Slope, int, RandomSource, object], NDArray[np.int64]]"
ChunkKernel: TypeAlias = Callable[[NDArray[Any], NDArray[np.uint32], int, int], Opened]

NONE_OPEN: Opened = (np.empty(0, np.int64), np.empty(0, np.uint32))


def slopes(epsilon: Any, sensitivity: Any, monotonic: object, rows: int, parts: int = 1) -> Slope:
    """Return what scores are multiplied by, a = epsilon / (2 sensitivity parts), rounded down (Soundness rule 8).

    Parameters
    ----------
    epsilon, sensitivity
        A number, or a column with one for each row.
    monotonic
        Whether a = epsilon / (sensitivity parts).
    rows
        The number of rows.
    parts
        How many selections share epsilon.

    Raises
    ------
    ParameterError
        One of them is not allowed.

    Examples
    --------
    >>> slopes(1, 2.0, False, 1)
    0.25
    >>> import math
    >>> slope = one_slope(0.1, 1, True)
    >>> slope <= Fraction(1, 10) < Fraction(math.nextafter(slope, 1))
    True

    """
    factor = parts if MONOTONIC.read("monotonic", monotonic) else 2 * parts
    if type(epsilon) is float and type(sensitivity) in (float, int):
        return _slope_of_numbers(epsilon, sensitivity, factor)
    width = borrow_scale(sensitivity, rows, "sensitivity")
    if isinstance(epsilon, np.ndarray) and epsilon.ndim == 0 and not isinstance(epsilon, np.ma.MaskedArray):
        epsilon = epsilon[()]
    if isinstance(epsilon, _SCALARS):
        exact = Fraction(budget_units(epsilon, "epsilon"), UNITS_PER_ONE)
        if isinstance(width, float):
            return round_down(exact / (factor * Fraction(width)))
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
    # The quotient rounds up by u at most, in relative terms, the divisor down by as much, and a float lies above the
    # decimal that it was written as by u at most; each step down is u at least.
    quotient = np.broadcast_to(share / (factor * width), (rows,))
    for _ in range(3):
        quotient = np.nextafter(quotient, 0.0)
    return quotient


def one_slope(epsilon: Any, sensitivity: Any, monotonic: object) -> float:
    """Return what `slopes` returns for one selection, whose epsilon and sensitivity are one number each."""
    for argument, given in (("epsilon", epsilon), ("sensitivity", sensitivity)):
        if not isinstance(given, _SCALARS) and dimensions(given) != 0:
            raise ParameterError(argument, given, "one number", f"write for example {argument}=0.5")
    slope = slopes(epsilon, sensitivity, monotonic, 1)
    assert isinstance(slope, float)
    return slope


# Exact fractions take ten times as long as all else in a short call.
@lru_cache(maxsize=64, typed=True)
def _slope_of_numbers(epsilon: float, sensitivity: float, factor: int) -> float:
    width = borrow_scale(sensitivity, 1, "sensitivity")
    assert isinstance(width, float)
    return round_down(Fraction(budget_units(epsilon, "epsilon"), UNITS_PER_ONE) / (factor * Fraction(width)))


def select(
    scores: Any,  # these are read below, each by its own function
    epsilon: Any,
    sensitivity: Any,
    monotonic: object,
    kind: int,
    random: object,
    candidates: Any = None,
    offsets: Any = None,
    groups: Any = None,
    threads: object = None,
    *,
    draw: Draw | None = None,
) -> Any:
    """Return the winner of a column, or of every row; see `exponential` for the parameters.

    ``draw`` takes the place of `select_rows` where there is a faster way.
    """
    borrowed = borrow_candidates(scores, offsets, groups)
    values = None if candidates is None else read_values(candidates, borrowed)
    borrowed.refuse_few(1, None if values is None else values.has_nulls)
    slope = slopes(epsilon, sensitivity, monotonic, borrowed.rows)
    winners = (draw or select_rows)(borrowed, slope, kind, random_source(random), threads)
    return give_places(borrowed, winners) if values is None else values.take(borrowed, winners)


def select_rows(
    candidates: Candidates,
    slope: Slope,
    kind: int,
    source: RandomSource,
    threads: object = None,
    *,
    refine_all: bool = False,
) -> NDArray[np.int64]:
    """Return every row's winner, counted over all rows, and -1 for rows without candidates.

    Parameters
    ----------
    candidates
        The scores.
    slope
        What they are multiplied by, one number or one for each row.
    kind
        The noise: GUMBEL, EXPONENTIAL or LAPLACE of dpfast.kernels.selection.argmax.
    source
        Where the call's key comes from.
    threads
        How many threads share the chunks, or None. The result does not depend on it.
    refine_all
        Treat every candidate as a contender: the slow, exact path, which must agree with the fast one.

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """
    keystream = Keystream(source.key())
    if candidates.rows == 1 and 0 < candidates.size <= CHUNK and isinstance(slope, float) and not refine_all:
        thread_count(threads, candidates.size)
        words = all_words(keystream, candidates.size)
        winner = select_row(candidates.block(0, candidates.size), words, slope, kind)
        if winner >= 0:
            return np.array([winner], np.int64)
    winners = np.empty(candidates.rows, np.int64)
    winners.fill(-1)
    offsets = candidates.offsets

    def chunk_kernel(buffer: int) -> ChunkKernel:
        block = min(buffer, BLOCK)
        keys, halves, slopes = np.empty(block, np.int64), np.empty(block), np.empty(block)
        scratch = keys, halves, slopes, np.empty(buffer, np.int64), np.empty(buffer)
        index, word = np.empty(buffer, np.int64), np.empty(buffer, np.uint32)

        def select_one(scores: NDArray[Any], words: NDArray[np.uint32], first: int, row: int) -> Opened:
            layout = first, offsets, row
            count, broken = select_chunk(scores, words, slope, kind, *layout, *scratch, winners, index, word)
            if broken:
                raise candidates.refuse_not_finite(first, scores)
            return (index[:count].copy(), word[:count].copy()) if count else NONE_OPEN

        return select_one

    index, words = read_chunks(candidates, keystream, every_candidate if refine_all else chunk_kernel, threads)
    if index.size:
        _settle(candidates, slope, kind, keystream, winners, index, words, None if refine_all else compare_groups)
    # Of one winner NumPy's minimum takes as long as the kernel.
    if (winners[0] if winners.size == 1 else winners.min(initial=0)) < 0:
        assert (np.diff(offsets)[winners < 0] == 0).all(), "every row with candidates has a winner"
    return winners


def every_candidate(buffer: int) -> ChunkKernel:
    """Leave all candidates open: the slow, exact path."""
    return lambda scores, words, first, row: (np.arange(first, first + words.size), words.copy())


def read_chunks(
    candidates: Candidates, keystream: Keystream, chunk_kernel: Callable[[int], ChunkKernel], threads: object
) -> Opened:
    """Run a kernel over all chunks; return the candidates that they leave open, in order, and their words.

    Word j belongs to candidate j, counted over all rows, whatever the scores are: chunk j // CHUNK of the
    keystream, word j % CHUNK.

    Parameters
    ----------
    candidates, keystream
        The scores, and the words of this call.
    chunk_kernel
        From the size of the largest chunk to a function of its scores, its words, its first candidate and the row
        of that one: called once in each thread, for scratch memory of its own.
    threads
        How many threads share the chunks, or None.

    """
    size, chunk_size = candidates.size, CHUNK
    if 0 < size <= chunk_size:
        thread_count(threads, size)
        words = all_words(keystream, size)
        row = 0 if candidates.rows == 1 else int(candidates.offsets.searchsorted(0, "right")) - 1
        return chunk_kernel(size)(candidates.block(0, size), words, 0, row)
    chunks = -(-size // chunk_size)
    opened: list[Opened] = [NONE_OPEN] * chunks

    def work(numbers: Iterator[int]) -> None:
        reader, buffer = keystream.words(Purpose.NOISE), min(size, chunk_size)
        words, kernel = np.empty(buffer, np.uint32), chunk_kernel(buffer)
        for chunk in numbers:
            start = chunk * chunk_size
            stop = min(start + chunk_size, size)
            drawn = words[: stop - start]
            reader.fill(chunk, drawn)
            row = int(candidates.offsets.searchsorted(start, "right")) - 1
            opened[chunk] = kernel(candidates.block(start, stop), drawn, start, row)

    share(work, chunks, thread_count(threads, size))
    if not opened:
        return NONE_OPEN
    return np.concatenate([index for index, _ in opened]), np.concatenate([words for _, words in opened])


def all_words(keystream: Keystream, size: int) -> NDArray[np.uint32]:
    """Return the words of all candidates of a call, those of `read_chunks`."""
    words, reader = np.empty(size, np.uint32), keystream.words(Purpose.NOISE)
    for chunk, start in enumerate(range(0, size, CHUNK)):
        reader.fill(chunk, words[start : start + CHUNK])
    return words


def open_rows(candidates: Candidates, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that have open candidates, and where those of each row begin; at last, where they end."""
    if candidates.rows < index.size:
        starts = np.searchsorted(index, candidates.offsets)
        some = np.flatnonzero(np.diff(starts))
        return some, np.append(starts[some], index.size)
    rows = np.searchsorted(candidates.offsets, index, side="right") - 1
    starts = np.flatnonzero(np.diff(rows, prepend=-1, append=candidates.rows))
    return rows[starts[:-1]], starts


def exact_gaps(a: float, scores: NDArray[Any]) -> list[Fraction]:
    """Return a * (score - highest score) of some candidates, exactly."""
    exact = [Fraction(score) for score in scores.tolist()]
    highest = max(exact)
    return [Fraction(a) * (score - highest) for score in exact]


def tails(keystream: Keystream, index: NDArray[np.int64], words: NDArray[np.uint32]) -> tuple[list[bool], list[Tail]]:
    """Return the signs of candidates' words, and all the bits that follow."""
    signs = [word > _REST for word in words.tolist()]
    pairs = zip(index.tolist(), words.tolist(), strict=True)
    return signs, [Tail(keystream, place, word & _REST, _REST_BITS) for place, word in pairs]


def longer_words(keystream: Keystream, index: NDArray[np.int64], words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return candidates' words with 17 more bits of each, as `noise_of` reads them: a sign, and 48 for the number."""
    more = np.frombuffer(keystream.extension(index, 0), ">u8")[::2].astype(np.uint64)
    read = words.astype(np.uint64)
    number = (read & np.uint64(_REST)) << _MORE_BITS | more >> (np.uint64(64) - _MORE_BITS)
    longer: NDArray[np.uint64] = (read >> np.uint64(_REST_BITS)) << np.uint64(63) | number
    return longer


def slope_of(slope: Slope, row: int) -> float:
    """Return what the scores of a row are multiplied by."""
    return slope if isinstance(slope, float) else float(slope[row])


def _settle(
    candidates: Candidates,
    slope: Slope,
    kind: int,
    keystream: Keystream,
    winners: NDArray[np.int64],
    index: NDArray[np.int64],
    words: NDArray[np.uint32],
    compare: Callable[..., None] | None,
) -> None:
    """Set the winners of rows of which these candidates, in order, are left open."""
    scores = candidates.take(index)
    rows, starts = open_rows(candidates, index)
    places, contenders = np.arange(index.size), np.diff(starts)
    if compare is not None:
        own = slope if isinstance(slope, float) else slope[rows]
        compare(scores, words, own, kind, starts, places, np.empty(index.size), contenders)
    alone = contenders == 1
    winners[rows[alone]] = index[places[starts[:-1][alone]]]
    left = zip(rows[~alone].tolist(), starts[:-1][~alone].tolist(), contenders[~alone].tolist(), strict=True)
    for row, start, count in left:
        chosen = places[start : start + count]
        gaps = exact_gaps(slope_of(slope, row), scores[chosen])
        winners[row] = index[chosen[exact_winner(kind, gaps, *tails(keystream, index[chosen], words[chosen]))]]
