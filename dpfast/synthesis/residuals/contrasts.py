"""Which contrasts each attribute gets: the best for the ranges that are asked of it, or those that treat values alike.

They change the errors, and never what is promised: the noise of any contrasts is made for their own columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.progress import silent
from dpfast.strategies.best_contrasts import LARGEST_ATTRIBUTE, best_contrasts, rounded_contrasts
from dpfast.strategies.contrasts import Contrasts, EvenContrasts
from dpfast.strategies.halves import contrasts_of_halves
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.strategies.strategy import Order
from dpfast.synthesis.residuals.queries import Along, Block
from dpfast.workloads.cells import Identity, Total

__all__ = ["LARGEST_MARGINAL", "find_contrasts", "gains_of"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: Of so many cells a residual of 2**38 rows fits into int64: its coefficients are at most as large as...
LARGEST_MARGINAL = 1 << 22
#: ...that: a sum of 2**38 counts, each times a coefficient, is at most 2**62.
_LARGEST_COEFFICIENT = 1 << 24
#: Finer whole numbers change no error by a thousandth.
_FINEST = 1 << 12
#: What is hardly asked is measured all the same, for a share of the cost that no one notices.
_LEAST_GAIN = 1e-12


def gains_of(blocks: Sequence[Block], weights: Sequence[float], along: Along) -> dict[Attributes, float]:
    """Return what the variance of the noise on each residual counts in the weighted sum of all variances."""
    varying = [_varying(block, along.contrasts) for block in blocks]
    gains: dict[Attributes, float] = dict.fromkeys(parts_of(varying), 0.0)
    for block, held in zip(blocks, varying, strict=True):
        spaces = parts_of([held])
        for space, energy in zip(spaces, block.energies(spaces, along), strict=True):
            gains[space] += weights[block.part] * energy
    # Of some sets nothing may be asked: an empty range has no coefficient, and a whole one no rest.
    own = {space: math.prod(along.contrasts[a].squares for a in space) for space in gains}
    least = _LEAST_GAIN * max(gain * own[space] for space, gain in gains.items()) or 1.0
    return {space: max(gain, least / own[space]) for space, gain in gains.items()}


def find_contrasts(
    sizes: Sequence[int],
    blocks: Sequence[Block],
    weights: Sequence[float],
    order: Order,
    show: Callable[[int], object] = silent,
) -> tuple[Contrasts, ...]:
    """Return contrasts of each attribute for queries, for Laplace (1) or Gaussian noise (2): public.

    Where values of an attribute are all treated alike, its contrasts are even. For others the error is, the noise on
    all residuals being what it would be for even contrasts, a sum over the queries along the attribute: the best for
    that sum are found, for Gaussian noise those of the least error of all (`best_contrasts`), for Laplace noise
    those of halves (`contrasts_of_halves`), in whole numbers that leave room for counts of 2**38 rows. Attributes of
    which the same is asked share what is found. ``show`` is told each attribute before it is searched for.
    """
    found: list[Contrasts] = [EvenContrasts(size) for size in sizes]
    asked = [a for a in _with_ranges(blocks) if 2 < sizes[a] <= LARGEST_ATTRIBUTE]
    if not asked:
        return tuple(found)
    along = Along(tuple(found))
    gains = gains_of(blocks, weights, along)
    noise = {space: _variance(gain, space, found, order) for space, gain in gains.items()}
    room = _room(sizes, blocks, asked)
    searched = list[tuple[int, Floats, Contrasts]]()
    for a in asked:
        gram = np.zeros((sizes[a], sizes[a]))
        for block in blocks:
            if a in block.attributes:
                own = {space: noise[space] for space in parts_of([_varying(block, found)])}
                gram += weights[block.part] * block.gram(block.attributes.index(a), own, along)
        gram /= float(np.trace(gram)) or 1.0
        largest = max(room[a], sizes[a] - 1)
        alike = (made for most, of, made in searched if most == largest and _same(of, gram))
        made = next(alike, None)
        if made is None:
            show(a)
            made = _best(gram, order, largest)
            searched.append((largest, gram, made))
        found[a] = made
    return tuple(found)


def _same(one: Floats, other: Floats) -> bool:
    """Return whether two matrices are the same but for rounding."""
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=0.0)


def _best(gram: Floats, order: Order, largest: int) -> Contrasts:
    """Return the contrasts of the least error at a norm for queries of a Gram matrix, of those that are tried."""
    size = len(gram)
    even = EvenContrasts(size)
    least = _cost(even, order) * float(np.trace(gram) - gram.sum() / size) / size**2
    made = rounded_contrasts(best_contrasts(gram) if order == 2 else contrasts_of_halves(gram), largest)
    if made is None or _cost(made, order) * float((made.covariance * gram).sum()) >= least:
        return even
    return made


def _variance(gain: float, space: Attributes, contrasts: Sequence[Contrasts], order: Order) -> float:
    """Return the variance of the best noise on a residual, but for a factor that all have."""
    cost = math.prod(_cost(contrasts[a], order) for a in space)
    return math.sqrt(cost / gain) if order == 2 else (math.sqrt(cost) / gain) ** (2 / 3)


def _cost(contrasts: Contrasts, order: Order) -> float:
    """Return the squared norm of a column."""
    return float(contrasts.magnitudes) ** 2 if order == 1 else float(contrasts.squares)


def _varying(block: Block, contrasts: Sequence[Contrasts]) -> Attributes:
    """Return those attributes of some queries that have several values."""
    return tuple(a for a in block.attributes if contrasts[a].size > 1)


def _with_ranges(blocks: Sequence[Block]) -> list[int]:
    """Return the attributes of which anything is asked that treats values differently."""
    found = {
        a
        for block in blocks
        for a, axis in zip(block.attributes, block.axes, strict=True)
        if not isinstance(axis, (Identity, Total))
    }
    return sorted(found)


def _room(sizes: Sequence[int], blocks: Sequence[Block], asked: Sequence[int]) -> dict[int, int]:
    """Return how large coefficients of attributes may be: no product of them over a set passes the largest of all.

    Each may be as large as those of even contrasts, whose products stay below `LARGEST_MARGINAL`; what room is left in
    a set is shared by its attributes.
    """
    room = dict.fromkeys(asked, _FINEST)
    for block in blocks:
        ranged = [a for a in block.attributes if a in room]
        left = _LARGEST_COEFFICIENT / math.prod(sizes[a] for a in block.attributes)
        for a in ranged:
            room[a] = min(room[a], int(sizes[a] * left ** (1 / len(ranged))))
    return room
