"""Noise on many small columns, one after another, where a key for each would cost more than the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS
from dpfast.kernels.noise.narrow_laplace import NOISE_WORDS
from dpfast.mechanisms.noise.additive import Buffers, Noise, draw_rows
from dpfast.mechanisms.noise.gaussian import gaussian_words
from dpfast.mechanisms.noise.integer_noise import NoiseKind
from dpfast.mechanisms.noise.laplace import laplace_words
from dpfast.randomness import Keystream, Purpose, RandomSource, process_mark

__all__ = ["BYTES_OF_A_KEY", "Pieces"]

BYTES_OF_A_KEY = 1 << 17
"""How much keystream is made at a time, with a key of its own; a longer column gets as much as it needs."""

#: Bytes at which the words of a column begin.
_ALIGNMENT = 16
#: Noises of one scale that are kept prepared.
_PREPARED = 16


class Pieces:
    """Draws noise for small columns in whichever threads call it.

    Guarantee
        No random word serves twice (Soundness rule 1). A key is used by one thread at a time, in one process: a fork
        makes a new one. Its words go to one column after another, each to one alone, whatever becomes of the column,
        and are overwritten when they are used. The key that they are made with is let go as soon as they are made; the
        further bits of the few words that do not decide a draw come from a second key, which stays.

    Parameters
    ----------
    source
        Where keys come from.

    """

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        # What no call is using. Taking out and putting back are single steps, and a call within a call takes another.
        self._idle: list[_Words] = []

    def noisy(
        self,
        values: NDArray[Any],
        missing: NDArray[np.bool_] | None,
        kind: NoiseKind,
        scale: float | NDArray[np.float64],
    ) -> NDArray[Any]:
        """Return values with noise, zeros where they are missing.

        Parameters
        ----------
        values
            At most 131,072 numbers of a type that `dpfast.laplace` takes, read-only.
        missing
            Where they are null, None if nowhere.
        kind
            The noise.
        scale
            A number, or an array with one for each value, from 2**-960 to 2**960.

        Raises
        ------
        DataError, ParameterError
            As for `dpfast.laplace`.

        """
        if values.size > BLOCK_ROWS:
            message = f"a piece has at most {BLOCK_ROWS} rows"
            raise ValueError(message)
        try:
            words = self._idle.pop()
        except IndexError:
            words = _Words(self._source)
        # What fails is not put back.
        released = words.add_noise(values, missing, kind, scale)
        self._idle.append(words)
        return released


class _Words:
    """The words of a key that are not used yet, and scratch memory, for one call at a time."""

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        self._process = (0, 0)
        self._keystream: Keystream
        self._bytes = np.empty(0, np.uint8)
        self._used = 0
        self._scratch = Buffers(0)
        self._rows = 0
        self._prepared: dict[tuple[np.dtype[Any], NoiseKind, float], Noise] = {}

    def add_noise(
        self,
        values: NDArray[Any],
        missing: NDArray[np.bool_] | None,
        kind: NoiseKind,
        scale: float | NDArray[np.float64],
    ) -> NDArray[Any]:
        rows = values.size
        if rows > self._rows:
            self._scratch, self._rows = Buffers(rows), rows
        noise = self._noise(values.dtype, kind, scale)
        released = np.empty(rows, noise.lattice.released)
        words = self._take(noise.word_bytes(rows), noise)
        draw_rows(noise, words, values, missing, 0, self._scratch, released)
        words.fill(0)
        self._scratch("noise", np.int32)[:rows].fill(0)
        self._scratch.work(NOISE_WORDS).fill(0)
        return released

    def _take(self, size: int, noise: Noise) -> NDArray[np.uint8]:
        """Return bytes of the keystream that nothing else gets, and tell the noise where they begin."""
        begin = self._used
        if begin + size > self._bytes.size or self._process != process_mark():
            self._renew(size)
            begin = 0
        # Counted before they are used. A word has four bytes or six, so that no two of a key have one number.
        self._used = begin + -(-size // _ALIGNMENT) * _ALIGNMENT
        noise.keystream, noise.first_word = self._keystream, begin
        return self._bytes[begin : begin + size]

    def _renew(self, size: int) -> None:
        if self._bytes.size < size or not self._bytes.size:
            self._bytes = np.empty(max(size, BYTES_OF_A_KEY), np.uint8)
        Keystream(self._source.key()).words(Purpose.NOISE).fill(0, self._bytes)
        # Of further bits alone: the words cannot be made again.
        self._keystream = Keystream(self._source.key())
        self._process = process_mark()
        for noise in self._prepared.values():
            noise.keystream = self._keystream

    def _noise(self, dtype: np.dtype[Any], kind: NoiseKind, scale: float | NDArray[np.float64]) -> Noise:
        if isinstance(scale, float):
            noise = self._prepared.get((dtype, kind, scale))
            if noise is not None:
                return noise
        # The keystream is set when the noise takes words.
        made = (laplace_words if kind == "laplace" else gaussian_words)(dtype, scale, Keystream(bytes(32)))
        if isinstance(scale, float):
            if len(self._prepared) >= _PREPARED:
                self._prepared.clear()
            self._prepared[dtype, kind, scale] = made
        return made
