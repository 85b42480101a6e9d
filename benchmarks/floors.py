"""What no way of adding noise can leave out: to make random words, read the values and write the result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpfast.columns import BLOCK_ROWS
from dpfast.columns.fresh import fresh_array
from dpfast.randomness import Keystream, Purpose, random_source
from dpfast.threads import share

from .prepared import Run


def words_and_bytes(values: np.ndarray, word_bytes: int, threads: int = 1) -> Run:
    """Return what makes so many bytes of words a value and copies the values, chunk by chunk, as noise is added."""

    def run() -> np.ndarray:
        keystream, released = Keystream(random_source(None).key()), fresh_array(values.size, values.dtype)

        def work(chunks: Iterator[int]) -> None:
            words, buffer = keystream.words(Purpose.NOISE), np.empty(BLOCK_ROWS * word_bytes, np.uint8)
            for chunk in chunks:
                rows = slice(chunk * BLOCK_ROWS, (chunk + 1) * BLOCK_ROWS)
                words.fill(chunk, buffer[: values[rows].size * word_bytes])
                released[rows] = values[rows]

        share(work, -(-values.size // BLOCK_ROWS), threads)
        return released

    return run
