"""A histogram with noise, without most of it: what each cell is expected to hold, given all of the noisy ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.histograms.pieces import (
    judge_runs,
    learn_pieces,
    merge_runs,
    restore_cells,
    sum_empty,
    weigh_pieces,
)
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.synthesis.histograms.whole_numbers import expected_wholes, is_rare
from dpfast.threads import share, thread_count

__all__ = ["LARGEST_BITS", "denoised", "order_of_tree"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Trees of more places are looked at in parts, each by itself.
_PLACES = 2**16
LARGEST_BITS = 24
"""A tree of more than 2**24 places takes too much memory."""
#: Stretches of the flattened histogram have trees of their own then.
_STRETCH = 2**20
#: How often what is learned of pieces, of their kinds, is learned again; so many cells and more make do with less.
_ROUNDS, _SWEEPS, _SHIFTS = 3, 4, 4
_MANY, _MORE = 2**15, 2**17
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def order_of_tree(shape: tuple[int, ...]) -> tuple[Whole, Whole]:
    """Return the flat numbers of all cells in the order of the leaves of a binary tree, and its offsets.

    Sides are padded to powers of two, and a run of the tree is halved along its longest side. ``offsets[i]`` cells of
    the histogram stand before place i.
    """
    bits = [(side - 1).bit_length() for side in shape]
    left, place = list(bits), np.arange(2 ** sum(bits))
    corners = [np.zeros_like(place) for _ in shape]
    for rest in range(sum(bits) - 1, -1, -1):
        axis = int(np.argmax(left))
        left[axis] -= 1
        corners[axis] |= (place >> rest & 1) << left[axis]
    inside = np.logical_and.reduce([corner < side for corner, side in zip(corners, shape, strict=True)])
    cells = np.ravel_multi_index(tuple(corner[inside] for corner in corners), shape)
    return cells.astype(np.int64), np.concatenate([[0], np.cumsum(inside)])


class _Pieces:
    """What is learned of the pieces of a tree, from one look to the next."""

    def __init__(self, places: int, cells: int) -> None:
        self.splits = np.full(places.bit_length(), 0.5)
        self.kinds = np.array([0.4, 0.4, 0.2])
        self.spikes = 1.0 / cells

    def restore(self, cells: Floats, offsets: Whole, scale: float, gaussian: bool, rounds: int, sweeps: int) -> Floats:
        """Return what the cells are expected to hold; learn so often on the way."""
        places = offsets.size - 1
        counts, spreads, whole, least = np.empty((4, 2 * places))
        empty = np.empty(cells.size + 1)
        evidence, weights = np.empty((2 * places, 3)), np.empty((2 * places, 2))
        out, ordered = np.empty(cells.size), [cells]
        for level in range(1, places.bit_length()):
            ordered.append(np.empty(cells.size))
            merge_runs(ordered[-2], offsets, 2**level, ordered[-1])
        for last in range(rounds - 1, -1, -1):
            sum_empty(cells, scale, gaussian, self.spikes, empty)
            of_runs = scale, gaussian, self.spikes, counts, spreads, evidence, least
            for level, runs in enumerate(ordered):
                judge_runs(cells, runs, empty, offsets, 2**level, *of_runs)
            weigh_pieces(offsets, evidence, self.splits, self.kinds, whole, weights)
            for _ in range(sweeps):
                learn_pieces(offsets, evidence, weights, self.splits, self.kinds)
                weigh_pieces(offsets, evidence, self.splits, self.kinds, whole, weights)
            of_pieces = scale, gaussian, self.spikes, self.kinds, counts, spreads, evidence, weights
            found = restore_cells(cells, offsets, *of_pieces, out)
            if last:
                self.spikes = min(max(found, 1e-9), 0.2)
        return out


def denoised(
    noisy: NDArray[np.float64], noise: IntegerNoise, threads: int | None = None, weight: int = 1
) -> NDArray[np.float64]:
    """Return what each cell of a histogram is expected to hold, given all cells with noise: no less than 0.

    It is made of the noisy cells and the public noise alone, and so as private as they are. Every noisy cell has noise
    of its own, `noise`. The histogram is taken to consist of pieces, boxes of a binary tree, of which each is empty,
    even or uneven, but for some spikes: see `dpfast.kernels.histograms.pieces`. How likely splits, kinds and spikes are
    is learned from the noisy cells (expectation and maximization); then all trees are averaged by their probabilities,
    in two passes, and some shifts of the histogram against the tree. O(d log d) steps for d cells. Cells that were
    measured times a ``weight`` have that much less noise. Noise that changes few cells is told by how often each number
    is seen instead: `dpfast.synthesis.histograms.whole_numbers`.

    References
    ----------
    Willems, Shtarkov, Tjalkens (1995) for averages over all trees; Donoho (1997) for dyadic pieces; Coifman, Donoho
    (1995) for shifts; Rissanen (1983) for prices.

    """
    if is_rare(noise, weight):
        return expected_wholes(noisy, noise, weight)
    if sum((side - 1).bit_length() for side in noisy.shape) > LARGEST_BITS:
        line = noisy.reshape(-1)
        stretches = [line[first : first + _STRETCH] for first in range(0, line.size, _STRETCH)]
        return np.concatenate([denoised(one, noise, threads, weight) for one in stretches]).reshape(noisy.shape)
    gaussian = noise.mechanism == "gaussian"
    law = (noise.deviation if gaussian else noise.scale) / weight, gaussian
    order, offsets = order_of_tree(noisy.shape)
    shifts = _SHIFTS if noisy.size < _MANY else (2 if noisy.size < _MORE else 1)
    often = (_ROUNDS, _SWEEPS) if noisy.size < _MANY else (2, 1)
    places = min(offsets.size - 1, _PLACES)
    starts = [first for first in range(0, offsets.size - 1, places) if offsets[first] < offsets[first + places]]
    learned = [_Pieces(places, noisy.size) for _ in starts]
    axes, total = tuple(range(noisy.ndim)), np.zeros(noisy.shape)
    for shift in range(shifts):
        moved = [int(side * (shift * _GOLDEN % 1.0)) for side in noisy.shape]
        cells = np.roll(noisy, moved, axes).reshape(-1)[order]

        again = (1, 1) if shift else often

        def restore(numbers: Iterator[int], cells: Floats = cells, again: tuple[int, int] = again) -> None:
            for number in numbers:
                inside = offsets[starts[number] : starts[number] + places + 1]
                own = slice(inside[0], inside[-1])
                cells[own] = learned[number].restore(cells[own], inside - inside[0], *law, *again)

        share(restore, len(starts), thread_count(threads, noisy.size))
        placed = np.empty(cells.size)
        placed[order] = cells
        total += np.roll(placed.reshape(noisy.shape), [-step for step in moved], axes)
    return total / shifts
