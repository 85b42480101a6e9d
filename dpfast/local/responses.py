"""Answers of randomized response for rows whose category is a number: certified draws, and exact ones for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.exact.balls import ball
from dpfast.kernels.noise.randomized_response import respond_long, respond_short
from dpfast.mechanisms.noise.exact import Bits, decided, uniform_ball, unique_floor, whole_number_below
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail
from dpfast.threads import share, thread_count

__all__ = ["LARGEST_CATEGORIES", "Weights", "answer_exactly", "answer_rows", "weights_of"]

LARGEST_CATEGORIES = 2**31
"""-1 in 32 bits is no category."""

#: Up to so many categories 32 bits leave fewer than one row in 2**17 undecided.
_SHORT_UP_TO = 2**12


@dataclass(frozen=True)
class Weights:
    """What a kernel takes for one number of categories and one epsilon; see kernels/noise/randomized_response.py.

    Attributes
    ----------
    epsilon, categories
        Epsilon, exactly, and k.
    bits
        How long words are: 32 or 64.
    weight, shift, certain
        w, s (less 64 for long words), and whether w bounds W from above too.

    """

    epsilon: Fraction
    categories: int
    bits: int
    weight: int
    shift: int
    certain: bool

    @property
    def arguments(self) -> tuple[np.uint64, np.uint64, np.uint64, bool]:
        """The kernels' parameters."""
        return np.uint64(self.categories), np.uint64(self.weight), np.uint64(self.shift), self.certain


def _total(epsilon: Fraction, categories: int) -> arb:
    """Return the ball of W = exp(epsilon) + k - 1."""
    return ball(epsilon).exp() + (categories - 1)


@lru_cache(maxsize=256)
def weights_of(epsilon: Fraction, categories: int) -> Weights:
    """Return the parameters of a number of categories and an epsilon, proved in ball arithmetic.

    Examples
    --------
    >>> weights = weights_of(Fraction(1), 2)
    >>> weights.bits, weights.shift, round(weights.weight / 2**30, 6)
    (32, 62, 3.718282)

    """
    bits = 32 if categories <= _SHORT_UP_TO else 64
    # Of the product's upper half alone, where words are long.
    most = 2 * bits - (64 if bits == 64 else 0)

    def found(_: int) -> tuple[int, int] | None:
        total = _total(epsilon, categories)
        whole = unique_floor(total)
        if whole is None:
            return None
        above = whole.bit_length()
        weight = unique_floor(total * arb(2) ** (bits - above)) if above < bits else 0
        return None if weight is None else (above, weight)

    # From epsilon = 64 on, W is above 2**64.
    above, weight = decided(found, 2 * bits) if epsilon < 64 else (bits, 0)
    if above < bits:
        return Weights(epsilon, categories, bits, weight, most - above, True)
    return Weights(epsilon, categories, bits, 1 << (bits - 1), most - bits, False)


def answer_exactly(bits: Bits, code: int, epsilon: Fraction, categories: int) -> int:
    """Return the answer of a row, reading as many bits of its U as decide it.

    Parameters
    ----------
    bits
        The bits of U.
    code
        The row's category; any number that is none stands for a value outside the list.
    epsilon, categories
        Epsilon, exactly, and k.

    """
    if not 0 <= code < categories:
        return whole_number_below(categories, bits)

    def answered(count: int) -> int | None:
        x = uniform_ball(bits.leading(count), count) * _total(epsilon, categories)
        if x >= categories - 1:
            return code
        other = unique_floor(x)
        # Only where it cannot be told yet does a floor reach k - 1, or a ball below zero reach -1.
        if other is None or not 0 <= other < categories - 1:
            return None
        return other + (other >= code)

    return decided(answered, bits.known)


def answer_rows(
    column: Column, weights: Weights, source: RandomSource, threads: object = None, *, refine_all: bool = False
) -> NDArray[Any]:
    """Return an answer for every row of a borrowed column of whole numbers; a null is no category.

    ``refine_all`` treats every row as undecided: the slow, exact path, which must agree with the fast one.
    """
    length = column.length
    keystream = Keystream(source.key())
    released = fresh_array(length, column.dtype)
    word = np.dtype(np.uint32 if weights.bits == 32 else np.uint64)
    respond = respond_short if weights.bits == 32 else respond_long
    undecided_mark = np.array(-1).astype(column.dtype)

    def work(numbers: Iterator[int]) -> None:
        words = keystream.words(Purpose.NOISE)
        buffer = np.empty(min(length, BLOCK_ROWS), word)
        for chunk in numbers:
            start = chunk * BLOCK_ROWS
            stop = min(start + BLOCK_ROWS, length)
            values = column.block(start, stop)
            missing = column.missing(start, stop) if column.null_count else None
            if missing is not None:
                values = np.where(missing, undecided_mark, values)
                values.setflags(write=False)
            drawn = buffer[: stop - start]
            words.fill(chunk, drawn)
            answers = released[start:stop]
            if respond(drawn, values, *weights.arguments, answers) or refine_all:
                if refine_all:
                    answers[:] = undecided_mark
                for row in np.flatnonzero(answers == undecided_mark).tolist():
                    tail = Tail(keystream, start + row, int(drawn[row]), weights.bits)
                    answers[row] = answer_exactly(tail, int(values[row]), weights.epsilon, weights.categories)

    share(work, -(-length // BLOCK_ROWS), thread_count(threads, length))
    return released
