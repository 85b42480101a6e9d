"""Three ways to draw from the exponential mechanism, all with exactly the same distribution, and which is taken when.

    keys    a * score + Gumbel noise, the largest: one word a candidate       dpfast/mechanisms/selection/argmax.py
    sums    the inverse of the distribution function: one word a draw         dpfast/mechanisms/selection/inversion.py
    alias   an alias table: one word a draw, once the table is made           dpfast/mechanisms/selection/alias_table.py

The choice depends on public facts alone, the number of candidates and of draws:

- one selection: keys below LONG candidates, and for every array of rows; sums from there on;
- many draws from one column: alias if there are at most CANDIDATES_PER_DRAW candidates for every draw, else sums.

Measured, on one core: sums take a long column 1.4 to 1.7 times as fast as keys, and of a short one they cost more
before they begin. A draw by sums weighs one block again, 2048 candidates, which takes as long as the share of 256
candidates in making an alias table.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ColumnError
from dpfast.mechanisms.selection.alias_table import AliasTable
from dpfast.mechanisms.selection.argmax import Slope, select_rows, slope_of, slopes
from dpfast.mechanisms.selection.candidates import Candidates, borrow_candidates
from dpfast.mechanisms.selection.inversion import draw_from_sums
from dpfast.randomness import RandomSource, random_source
from dpfast.threads import thread_count

__all__ = ["LONG", "draw_many", "route", "select_one"]

LONG = 131_072
CANDIDATES_PER_DRAW = 256

Route = Literal["keys", "sums", "alias"]


def route(candidates: int, draws: int | None = None) -> Route:
    """Return the way that is taken for so many candidates and draws; None for the one selection of `exponential`.

    Examples
    --------
    >>> route(1000), route(10_000_000), route(1000, draws=10), route(10_000_000, draws=10)
    ('keys', 'sums', 'alias', 'sums')

    """
    if draws is None:
        return "keys" if candidates < LONG else "sums"
    return "alias" if candidates <= CANDIDATES_PER_DRAW * draws else "sums"


def select_one(
    candidates: Candidates, slope: Slope, kind: int, source: RandomSource, threads: object = None
) -> NDArray[np.int64]:
    """Return the winner of every row, as `dpfast.mechanisms.selection.argmax.select_rows` does, by the faster way."""
    if candidates.shape == "vector" and route(candidates.size) == "sums":
        thread_count(threads, 1)
        return draw_from_sums(candidates, slope_of(slope, 0), 1, source)
    return select_rows(candidates, slope, kind, source, threads)


def draw_many(
    scores: Any, epsilon: Any, draws: int, sensitivity: Any, monotonic: object, threads: object, random: object
) -> NDArray[np.int64]:
    """Return the places of independent draws from one column; see `exponential_draws` for the parameters."""
    candidates = borrow_candidates(scores)
    if candidates.shape != "vector":
        raise ColumnError("scores must be one column, but had several rows; call exponential_draws once for each row")
    candidates.refuse_few(1)
    a = slope_of(slopes(epsilon, sensitivity, monotonic, 1), 0)
    source = random_source(random)
    thread_count(threads, 1)
    if route(candidates.size, draws) == "alias":
        return candidates.places(AliasTable(candidates, a).draw(draws, source, threads))
    return candidates.places(draw_from_sums(candidates, a, draws, source))
