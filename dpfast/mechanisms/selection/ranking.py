"""Private rankings: the best candidates of every row in order, certified; exact where the kernel does not decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.widening import widen
from dpfast.kernels.selection.gaps import gap_chunk
from dpfast.kernels.selection.ranking import rank_again, rank_chunk, rank_groups, rank_row
from dpfast.mechanisms.selection import argmax as selection
from dpfast.mechanisms.selection.argmax import (
    NONE_OPEN,
    ChunkKernel,
    Opened,
    Slope,
    every_candidate,
    exact_gaps,
    longer_words,
    open_rows,
    read_chunks,
    slope_of,
    tails,
)
from dpfast.mechanisms.selection.candidates import Candidates
from dpfast.mechanisms.selection.exact_argmax import exact_order
from dpfast.randomness import Keystream

__all__ = ["rank_rows"]

#: Up to so many winners are kept in a heap.
_FEW = 48
#: Up to so many candidates, one row is looked at as a whole where more are wanted.
_WHOLE = 2**24
_DIGITS = 2048


def rank_rows(
    candidates: Candidates,
    slope: Slope,
    kind: int,
    count: int,
    keystream: Keystream,
    threads: object = None,
    *,
    refine_all: bool = False,
    gaps: tuple[Slope, NDArray[np.float64]] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the candidates with the largest keys of every row, in order, and their words.

    Parameters
    ----------
    candidates, slope, kind, threads, refine_all
        As for `select_rows`.
    count
        How many are wanted. A row of fewer has all of them in order, then -1.
    keystream
        The words of this call.
    gaps
        For two with EXPONENTIAL noise: a grid, one number or one for each row, and an array for the steps of each
        row's gap, which is set where a chunk decides it.

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """
    winners = np.empty((candidates.rows, count), np.int64)
    if gaps is None or refine_all or candidates.shape not in ("vector", "rows"):
        # Kernels of gaps set every row that has candidates.
        winners.fill(-1)
    won = np.zeros((candidates.rows, count), np.uint32)
    offsets = candidates.offsets

    def chunk_kernel(buffer: int) -> ChunkKernel:
        few = count if count <= _FEW else 0
        places, opened = np.empty(buffer, np.int64), np.empty(buffer, np.int64)
        bounding = np.empty(buffer, np.int64), np.empty(buffer), np.empty(buffer)
        heap = np.empty(few, np.int64), np.zeros(few, np.int64), np.empty(_DIGITS, np.int64)
        scratch = *heap, places, np.empty(buffer), np.empty(buffer)

        def rank_one(scores: NDArray[Any], words: NDArray[np.uint32], first: int, row: int) -> Opened:
            layout = first, offsets, row
            if gaps is None:
                found = winners, won, opened
                left, broken = rank_chunk(scores, words, slope, kind, layout, count, bounding, scratch, *found)
            else:
                grid, steps = gaps
                results = winners, won, steps, opened
                left, broken = gap_chunk(scores, words, slope, grid, layout, bounding, scratch, *results)
            if broken:
                raise candidates.refuse_not_finite(first, scores)
            if not left:
                return NONE_OPEN
            left_open = np.sort(opened[:left])
            return first + left_open, words[left_open]

        return rank_one

    several = count > _FEW and candidates.size <= _WHOLE
    if candidates.rows == 1 and (several or count > selection.CHUNK // 4) and not refine_all:
        # Chunks would each leave as many candidates open as are wanted.
        return _rank_one(candidates, slope_of(slope, 0), kind, count, keystream)
    index, words = read_chunks(candidates, keystream, every_candidate if refine_all else chunk_kernel, threads)
    if index.size == 0:
        return winners, won
    scores = candidates.take(index)
    rows, starts = open_rows(candidates, index)
    wanted = np.minimum(count, offsets[rows + 1] - offsets[rows])
    places, kept, certain = np.arange(index.size), np.diff(starts), np.zeros(rows.size, np.bool_)
    if refine_all:
        lows, highs = np.full(index.size, -np.inf), np.full(index.size, np.inf)
    else:
        lows, highs = np.empty(index.size), np.empty(index.size)
        own = slope if isinstance(slope, float) else slope[rows]
        rank_groups(scores, words, own, kind, starts, wanted, places, lows, highs, kept, certain)
    for group, row in enumerate(rows.tolist()):
        group_of, needed = slice(starts[group], starts[group] + kept[group]), int(wanted[group])
        chosen = places[group_of]
        if not certain[group]:
            runs = _open_runs(lows[group_of], highs[group_of], needed)
            left = scores, words, index, slope_of(slope, row), kind
            _rank_further(*left, runs, chosen, keystream, refine_all=refine_all)
        best = chosen[:needed]
        winners[row, :needed], won[row, :needed] = index[best], words[best]
    return winners, won


def _rank_one(
    candidates: Candidates, a: float, kind: int, count: int, keystream: Keystream
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the many best of one row in order, and their words, as `rank_rows` does."""
    size = candidates.size
    words = selection.all_words(keystream, size)
    scores = candidates.block(0, size)
    places, lows, highs = np.empty(size, np.int64), np.empty(size), np.empty(size)
    kept, certain, broken = rank_row(scores, words, a, kind, min(count, size), places, lows, highs)
    if broken:
        raise candidates.refuse_not_finite(0, scores)
    chosen = places[:kept]
    if not certain:
        runs = _open_runs(lows[:kept], highs[:kept], count)
        _rank_further(scores, words, None, a, kind, runs, chosen, keystream)
    winners, won = np.full((1, count), -1, np.int64), np.zeros((1, count), np.uint32)
    best = chosen[: min(count, size)]
    winners[0, : best.size], won[0, : best.size] = best, words[best]
    return winners, won


def _rank_further(
    scores: NDArray[Any],
    words: NDArray[np.uint32],
    index: NDArray[np.int64] | None,
    a: float,
    kind: int,
    runs: list[tuple[int, int]],
    chosen: NDArray[np.int64],
    keystream: Keystream,
    *,
    refine_all: bool = False,
) -> None:
    """Order runs of the chosen candidates of a row: by 17 more bits of their words, then in ball arithmetic.

    ``index`` counts candidates over all rows, None for one row; ``refine_all`` leaves the first step out.
    """
    if not refine_all:
        places = np.concatenate([chosen[first:last] for first, last in runs])
        ends = np.cumsum([0, *(last - first for first, last in runs)])
        longer = longer_words(keystream, places if index is None else index[places], words[places])
        order, certain = np.arange(places.size), np.zeros(len(runs), np.bool_)
        scratch = np.empty(places.size), np.empty(places.size)
        rank_again(widen(scores[places]), longer, a, kind, ends, order, *scratch, certain)
        for number in np.flatnonzero(certain).tolist():
            chosen[slice(*runs[number])] = places[order[ends[number] : ends[number + 1]]]
        runs = [run for run, decided in zip(runs, certain.tolist(), strict=True) if not decided]
    for first, last in runs:
        run = chosen[first:last]
        own = run if index is None else index[run]
        exact = exact_gaps(a, scores[run])
        chosen[first:last] = run[exact_order(kind, exact, *tails(keystream, own, words[run]))]


def _open_runs(lows: NDArray[np.float64], highs: NDArray[np.float64], wanted: int) -> list[tuple[int, int]]:
    """Return where runs of candidates in open order begin and end, if they begin among the first ``wanted``.

    The candidates are sorted by their lower ends, the largest first up to nearly equal ones: a run ends where all lower
    ends up to there are above all the upper ends that follow.
    """
    lows = np.minimum.accumulate(lows)
    largest_after = np.maximum.accumulate(highs[::-1])[::-1]
    ends = np.append(np.flatnonzero(lows[:-1] > largest_after[1:]) + 1, lows.size)
    firsts = np.append(0, ends[:-1])
    open_ones = (ends - firsts > 1) & (firsts < wanted)
    return list(zip(firsts[open_ones].tolist(), ends[open_ones].tolist(), strict=True))
