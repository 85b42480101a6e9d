"""Private rankings: the best candidates of every row in order, certified; exact where the kernel does not decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.ranking import rank_chunk, rank_groups
from dpfast.kernels.selection import BLOCK
from dpfast.mechanisms.candidates import Candidates
from dpfast.mechanisms.exact_selection import exact_order
from dpfast.mechanisms.selection import (
    ChunkKernel,
    Opened,
    Slope,
    every_candidate,
    exact_gaps,
    open_rows,
    read_chunks,
    slope_of,
    tails,
)
from dpfast.randomness import Keystream

__all__ = ["rank_rows"]


def rank_rows(
    candidates: Candidates,
    slope: Slope,
    kind: int,
    count: int,
    keystream: Keystream,
    threads: object = None,
    *,
    refine_all: bool = False,
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

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """
    winners = np.full((candidates.rows, count), -1, np.int64)
    won = np.zeros((candidates.rows, count), np.uint32)
    offsets = candidates.offsets

    def chunk_kernel(buffer: int) -> ChunkKernel:
        keys, slopes = np.empty(BLOCK, np.int64), np.empty(BLOCK)
        heap, owners = np.empty(count, np.int64), np.zeros(count, np.int64)
        places, opened = np.empty(buffer, np.int64), np.empty(buffer, np.int64)
        lows, highs = np.empty(buffer), np.empty(buffer)

        def rank_one(scores: NDArray[Any], words: NDArray[np.uint32], first: int, row: int) -> Opened:
            left, broken = rank_chunk(
                scores,
                words,
                slope,
                kind,
                first,
                offsets,
                row,
                keys,
                slopes,
                heap,
                owners,
                places,
                lows,
                highs,
                winners,
                won,
                opened,
            )
            if broken:
                raise candidates.refuse_not_finite(first, scores)
            chosen = np.sort(opened[:left])
            return first + chosen, words[chosen]

        return rank_one

    index, words = read_chunks(candidates, keystream, every_candidate if refine_all else chunk_kernel, threads)
    if index.size == 0:
        return winners, won
    scores = candidates.take(index)
    rows, starts = open_rows(candidates, index)
    wanted = np.minimum(count, offsets[rows + 1] - offsets[rows])
    places, certain = np.arange(index.size), np.zeros(rows.size, np.bool_)
    lows, highs = np.full(index.size, -np.inf), np.full(index.size, np.inf)
    if not refine_all:
        own = slope if isinstance(slope, float) else slope[rows]
        rank_groups(scores, words, own, kind, starts, wanted, places, lows, highs, certain)
    for group, row in enumerate(rows.tolist()):
        group_of = slice(starts[group], starts[group + 1])
        chosen, count_of = places[group_of], int(wanted[group])
        if not certain[group]:
            for first, last in _open_runs(lows[group_of], highs[group_of], count_of):
                run = chosen[first:last]
                gaps = exact_gaps(slope_of(slope, row), scores[run])
                chosen[first:last] = run[exact_order(kind, gaps, *tails(keystream, index[run], words[run]))]
        best = chosen[:count_of]
        winners[row, :count_of], won[row, :count_of] = index[best], words[best]
    return winners, won


def _open_runs(lows: NDArray[np.float64], highs: NDArray[np.float64], wanted: int) -> list[tuple[int, int]]:
    """Return where runs of candidates begin and end whose order is open, of those that reach into the first ``wanted``.

    The candidates are sorted by their lower ends, the largest first: a run ends where the last lower end is above all
    the upper ends that follow.
    """
    largest_after = np.maximum.accumulate(highs[::-1])[::-1]
    ends = np.append(np.flatnonzero(lows[:-1] > largest_after[1:]) + 1, lows.size)
    firsts = np.append(0, ends[:-1])
    open_ones = (ends - firsts > 1) & (firsts < wanted)
    return list(zip(firsts[open_ones].tolist(), ends[open_ones].tolist(), strict=True))
