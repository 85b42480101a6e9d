"""Random bits of any probability for many rows, and randomized response of rows that are bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.fresh import fresh_array
from dpfast.exact.balls import ball
from dpfast.kernels.noise.random_bits import align_bits, compare_planes, respond_bits, respond_numbers, settle_ties
from dpfast.mechanisms.noise.exact import Bits, decided, is_less, uniform_ball, unique_floor
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail, Words
from dpfast.threads import share, thread_count

__all__ = ["BitDraws", "Chance", "answer_bits", "answer_flags", "answer_packed", "lie_chance", "masks_of"]

_PLANES = 8
#: One row in 256 needs a further word, so that this leaves rows to the exact path less often than once in 2**60.
_FURTHER = BLOCK_ROWS // 128


@dataclass(frozen=True)
class Chance:
    """A probability as kernels compare with it: its first 8 bits, each a mask, and the 64 after them.

    Attributes
    ----------
    is_above
        Whether it is above a U in [0, 1) with these bits; reads as many bits as decide it.
    leading, following
        uint64 masks, and the next 64 bits.

    """

    is_above: Callable[[Bits], bool]
    leading: NDArray[np.uint64]
    following: int

    @property
    def first(self) -> int:
        """The first 8 bits as a number."""
        return int("".join("1" if mask else "0" for mask in self.leading), 2)


@lru_cache(maxsize=256)
def lie_chance(epsilon: Fraction) -> Chance:
    """Return 1 / (exp(epsilon) + 1), exactly.

    Examples
    --------
    >>> chance = lie_chance(Fraction(1))
    >>> chance.first, round(chance.first / 256 + chance.following / 2**72, 12)
    (68, 0.26894142137)

    """

    def is_above(bits: Bits) -> bool:
        return decided(lambda count: is_less(uniform_ball(bits.leading(count), count), _lie(epsilon)), bits.known)

    whole = decided(lambda _: unique_floor(_lie(epsilon) * 2**72), 72 + 2 * int(epsilon))
    return Chance(is_above, masks_of(whole >> 64), whole & (2**64 - 1))


def _lie(epsilon: Fraction) -> Any:
    return 1 / (ball(epsilon).exp() + 1)


def masks_of(first: int) -> NDArray[np.uint64]:
    """Return the 8 bits of a number as masks, all ones or zero each."""
    return np.array([2**64 - 1 if first >> (_PLANES - 1 - place) & 1 else 0 for place in range(_PLANES)], np.uint64)


class BitDraws:
    """Packed bits that are 1 with one probability, block by block; one object for each thread.

    Attributes
    ----------
    ones
        uint64, of the block that `fill` was last called for.
    fair
        uint64, bits that are 1 with probability 1/2. Of a row, use its bit in ``ones`` or in here, never both.

    """

    __slots__ = ("_chance", "_keystream", "_left", "_ties", "_words", "fair", "ones")

    def __init__(self, keystream: Keystream, chance: Chance) -> None:
        self._keystream = keystream
        self._words: Words = keystream.words(Purpose.NOISE)
        self._chance = chance
        self._ties = np.empty(0, np.uint64)
        self._left = np.empty(2 * BLOCK_ROWS, np.int64)
        self.ones = self.fair = np.empty(0, np.uint64)

    def fill(self, block: int, rows: int) -> None:
        """Draw the bits of a block's first rows; the block's number is where its words lie in the keystream."""
        size = -(-rows // 64)
        if size != self.ones.size:
            self.ones, self._ties = np.empty(size, np.uint64), np.empty(size, np.uint64)
        buffer = np.empty(_PLANES * size + _FURTHER, np.uint64)
        self._words.fill(block, buffer)
        planes, further = buffer[: _PLANES * size], buffer[_PLANES * size :]
        self.fair = planes[:size]
        compare_planes(planes, self._chance.leading, self.ones, self._ties)
        left = settle_ties(self.ones, self._ties, further, np.uint64(self._chance.following), self._left)
        for row, word in self._left[: 2 * left].reshape(-1, 2).tolist():
            leading, known = self._chance.first, _PLANES
            if word >= 0:
                leading, known = leading << 64 | int(further[word]), _PLANES + 64
            if self._chance.is_above(Tail(self._keystream, block * BLOCK_ROWS + row, leading, known)):
                self.ones[row >> 6] |= np.uint64(1 << (row & 63))


def answer_bits(column: Column, epsilon: Fraction, source: RandomSource, threads: object = None) -> NDArray[Any]:
    """Return an answer of 0 or 1 for every row of a borrowed column of whole numbers; a null is neither."""
    length = column.length
    released = fresh_array(length, column.dtype)
    outside = np.array(2).astype(column.dtype)

    def answer(draws: BitDraws, start: int, stop: int) -> None:
        values = column.block(start, stop)
        missing = column.missing(start, stop) if column.null_count else None
        if missing is not None:
            values = np.where(missing, outside, values)
            values.setflags(write=False)
        respond_numbers(values, draws.ones, draws.fair, released[start:stop])

    _by_block(length, lie_chance(epsilon), source, threads, answer)
    return released


def answer_flags(
    values: NDArray[np.bool_], epsilon: Fraction, source: RandomSource, threads: object = None
) -> NDArray[np.bool_]:
    """Return answers for the rows of a contiguous array of bool."""
    rows = values.view(np.uint8)
    rows.setflags(write=False)
    released = fresh_array(len(values), np.dtype(np.uint8))

    def answer(draws: BitDraws, start: int, stop: int) -> None:
        respond_numbers(rows[start:stop], draws.ones, draws.fair, released[start:stop])

    _by_block(len(values), lie_chance(epsilon), source, threads, answer)
    return released.view(np.bool_)


def answer_packed(
    values: NDArray[np.uint8],
    first: int,
    length: int,
    valid: NDArray[np.uint8] | None,
    epsilon: Fraction,
    source: RandomSource,
    threads: object = None,
) -> NDArray[np.uint8]:
    """Return answers for rows that are packed bits, packed from bit 0 on; the bits past the last row are zero.

    Parameters
    ----------
    values, first, length
        Bytes that hold bits as Arrow does, the first row's bit, and how many rows there are.
    valid
        Bytes of which the bits from ``first`` on say where a row is no null, or None where all are.
    epsilon, source, threads
        As for `answer_bits`.

    """
    released = fresh_array(-(-length // 8), np.dtype(np.uint8))
    every = np.full(BLOCK_ROWS // 8, 255, np.uint8)

    def answer(draws: BitDraws, start: int, stop: int) -> None:
        size = -(-(stop - start) // 8)
        parts = [every[:size], every[:size]]
        for place, bits in enumerate((values, valid)):
            if bits is not None:
                begin = (first + start) // 8
                parts[place] = np.empty(size, np.uint8)
                align_bits(bits[begin : begin + size + 1], (first + start) % 8, parts[place])
        flips, fair = draws.ones.view(np.uint8)[:size], draws.fair.view(np.uint8)[:size]
        respond_bits(parts[0], parts[1], flips, fair, released[start // 8 : start // 8 + size])

    _by_block(length, lie_chance(epsilon), source, threads, answer)
    if length % 8:
        released[-1] &= (1 << length % 8) - 1
    return released


def _by_block(
    length: int,
    chance: Chance,
    source: RandomSource,
    threads: object,
    answer: Callable[[BitDraws, int, int], None],
) -> None:
    keystream = Keystream(source.key())

    def work(numbers: Iterator[int]) -> None:
        draws = BitDraws(keystream, chance)
        for block in numbers:
            start = block * BLOCK_ROWS
            stop = min(start + BLOCK_ROWS, length)
            draws.fill(block, stop - start)
            answer(draws, start, stop)

    share(work, -(-length // BLOCK_ROWS), thread_count(threads, length))
