"""Bounds of ranges and rectangles: checked, drawn at random, and counted by the cells that they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError, Words
from dpfast.randomness import Keystream, Purpose
from dpfast.testing import SeededRandom

__all__ = ["check_bounds", "count_both", "draw_bounds"]

_HALF_WORD = np.uint64(32)


def check_bounds(lower: NDArray[np.int64], upper: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    """Refuse bounds (queries by axes) that are not 0 <= lower <= upper <= size, and say the first of them."""
    if len(lower) == 0:
        raise ParameterError("lower", Words("no query"), "at least one query")
    wrong = ((lower < 0) | (lower > upper) | (upper > np.array(shape))).any(axis=1)
    if wrong.any():
        query = int(wrong.argmax())
        raise ParameterError(
            "lower and upper",
            Words(f"{lower[query].tolist()} and {upper[query].tolist()} in query {query}"),
            f"bounds with 0 <= lower <= upper <= {list(shape)}",
            "upper is the first cell that is not counted",
        )


def draw_bounds(shape: tuple[int, ...], count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return bounds (count by axes) with lower < upper: along every axis any of all n(n+1)/2 ranges is as likely.

    Of the n + 1 places between cells two different ones are drawn, from 32 bits each: up to n / 2**32 exactly.
    """
    words = np.empty((2, count, len(shape)), np.uint64)
    Keystream(SeededRandom(seed).key()).words(Purpose.NOISE).fill(0, words.reshape(-1))
    sizes = np.array(shape, np.uint64)
    halves = words >> _HALF_WORD
    one = ((halves[0] * (sizes + np.uint64(1))) >> _HALF_WORD).astype(np.int64)
    other = ((halves[1] * sizes) >> _HALF_WORD).astype(np.int64)
    other += other >= one
    return np.minimum(one, other), np.maximum(one, other)


def count_both(
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    shape: tuple[int, ...],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return for each two cells how many rectangles hold both, or the sum of the weights of those that do.

    They are those whose first corner is at most the smaller place along every axis, and whose last corner at least the
    larger: a sum over a table of (first corner, last corner).
    """
    axes = len(shape)
    filled = (upper > lower).all(axis=1)
    corners = [tuple((bound[filled] - past).T) for bound, past in ((lower, 0), (upper, 1))]
    table = np.zeros((*shape, *shape))
    np.add.at(table, corners[0] + corners[1], 1.0 if weights is None else weights[filled])
    for axis in range(axes):
        np.cumsum(table, axis=axis, out=table)
        turned = np.flip(table, axes + axis)
        np.cumsum(turned, axis=axes + axis, out=turned)
    places = np.indices(shape).reshape(axes, -1)
    smaller = tuple(np.minimum(place[:, None], place) for place in places)
    larger = tuple(np.maximum(place[:, None], place) for place in places)
    both: NDArray[np.float64] = table[smaller + larger]
    return both
