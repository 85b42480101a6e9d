"""What compiled code asks Python for: samples that the first bits do not decide, in ball arithmetic; keys in tests."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.plugin import layout
from dpfast.mechanisms.noise.gaussian import gaussian_words
from dpfast.mechanisms.noise.laplace import laplace_words
from dpfast.randomness import Keystream, RandomSource, SystemRandom

__all__ = ["CALLBACK", "SOURCES", "finish"]

_WORD = ctypes.c_int64
_KEY_BYTES = 32
_DTYPES = [np.dtype(name) for name, _ in layout.FORMATS]

#: Where a DuckDB function's keys come from, by its number; from the operating system if nothing is said.
SOURCES: dict[int, RandomSource] = {}


def _array(address: int, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return memory of the plugin as an array, good as long as the call."""
    memory: Any = (ctypes.c_char * (rows * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)


def finish(address: int) -> int:
    """Finish the undecided samples of a chunk; return `layout.FINISHED`, or 0 where that failed.

    ``address`` is of a job (kernels/plugin/layout.py). Everything there belongs to the caller, which waits.
    """
    try:
        words = (_WORD * layout.JOB_WORDS).from_address(address)
        job = [int(word) for word in words]
        if job[layout.JOB_OPERATION] == layout.KEYS:
            _give_keys(job)
        else:
            _draw(job, Keystream(ctypes.string_at(job[layout.JOB_KEY], _KEY_BYTES)))
        words[layout.JOB_FINISHED] = layout.FINISHED
    except BaseException:  # there is nobody above to raise to, and a message could quote values
        return 0
    return layout.FINISHED


def _undecided(job: list[int]) -> NDArray[np.int64]:
    return _array(job[layout.JOB_UNDECIDED], job[layout.JOB_COUNT], np.dtype(np.int64))


def _draw(job: list[int], keystream: Keystream) -> None:
    dtype, rows, start = _DTYPES[job[layout.JOB_FORMAT]], job[layout.JOB_ROWS], job[layout.JOB_START]
    per_row = job[layout.JOB_PER_ROW] != 0
    scales = _array(job[layout.JOB_SCALES], job[layout.JOB_LENGTH] if per_row else 1, np.dtype(np.float64))
    words_of = laplace_words if job[layout.JOB_OPERATION] == layout.LAPLACE else gaussian_words
    noise = words_of(dtype, scales if per_row else float(scales[0]), keystream)
    noise.first_word = job[layout.JOB_FIRST]
    words = _array(job[layout.JOB_WORDS_AT], noise.word_bytes(rows), np.dtype(np.uint8))
    values = _array(job[layout.JOB_VALUES], rows, dtype)
    released = _array(job[layout.JOB_RELEASED], rows, noise.lattice.released)
    for row, exact in noise.refine(words, values, _undecided(job), start):
        released[row] = noise.lattice.place(values[row], start + row, exact)


def _give_keys(job: list[int]) -> None:
    """Write the key of further bits, and behind it the one of words, which is made first."""
    source = SOURCES.get(job[layout.JOB_START], SystemRandom())
    words, further = source.key(), source.key()
    ctypes.memmove(job[layout.JOB_RELEASED], further + words, 2 * _KEY_BYTES)


#: As long as the process lives, which may call it to its end.
CALLBACK = ctypes.CFUNCTYPE(_WORD, _WORD)(finish)
