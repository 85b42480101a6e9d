"""What compiled code asks Python for: samples that the first bits do not decide, in ball arithmetic; keys, weights."""

from __future__ import annotations

import ctypes
import struct
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import DpfastError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.kernels.plugin import layout
from dpfast.local.categories import read_categories
from dpfast.local.responses import answer_exactly, weights_of
from dpfast.mechanisms.noise.gaussian import gaussian_words
from dpfast.mechanisms.noise.laplace import laplace_words
from dpfast.randomness import Keystream, RandomSource, SystemRandom, Tail

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
    """Do a job, as finishing the undecided samples of a chunk; return `layout.FINISHED`, or 0 where that failed.

    ``address`` is of a job (kernels/plugin/layout.py). Everything there belongs to the caller, which waits.
    """
    try:
        words = (_WORD * layout.JOB_WORDS).from_address(address)
        job = [int(word) for word in words]
        _WORK.get(job[layout.JOB_OPERATION], _draw)(job)
        words[layout.JOB_FINISHED] = layout.FINISHED
    except BaseException:  # there is nobody above to raise to, and a message could quote values
        return 0
    return layout.FINISHED


def _undecided(job: list[int]) -> NDArray[np.int64]:
    return _array(job[layout.JOB_UNDECIDED], job[layout.JOB_COUNT], np.dtype(np.int64))


def _keystream(job: list[int]) -> Keystream:
    return Keystream(ctypes.string_at(job[layout.JOB_KEY], _KEY_BYTES))


def _draw(job: list[int]) -> None:
    dtype, rows, start = _DTYPES[job[layout.JOB_FORMAT]], job[layout.JOB_ROWS], job[layout.JOB_START]
    per_row = job[layout.JOB_PER_ROW] != 0
    scales = _array(job[layout.JOB_SCALES], job[layout.JOB_LENGTH] if per_row else 1, np.dtype(np.float64))
    words_of = laplace_words if job[layout.JOB_OPERATION] == layout.LAPLACE else gaussian_words
    noise = words_of(dtype, scales if per_row else float(scales[0]), _keystream(job))
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


def _answer(job: list[int]) -> None:
    rows, whole, keystream = job[layout.JOB_ROWS], np.dtype(np.int64), _keystream(job)
    categories, _, _, _, _, bits, low, high = _array(job[layout.JOB_SCALES], 8, np.dtype(np.uint64)).tolist()
    words = _array(job[layout.JOB_WORDS_AT], rows, np.dtype(np.uint32 if bits == 32 else np.uint64))
    codes, answers = _array(job[layout.JOB_VALUES], rows, whole), _array(job[layout.JOB_RELEASED], rows, whole)
    epsilon = Fraction(high << 64 | low, UNITS_PER_ONE)
    for row in _undecided(job).tolist():
        tail = Tail(keystream, job[layout.JOB_FIRST] + row, int(words[row]), bits)
        answers[row] = answer_exactly(tail, int(codes[row]), epsilon, categories)


def _give_weights(job: list[int]) -> None:
    """Write the parameters of randomized response; in place of a word's bits, the number of an error below zero."""
    parameters = (_WORD * 8).from_address(job[layout.JOB_SCALES])
    error = layout.CATEGORIES
    try:
        categories = read_categories(parameters[0])
        error = layout.EPSILON
        units = budget_units(ctypes.c_double.from_address(ctypes.addressof(parameters) + 8).value, "epsilon")
    except DpfastError:
        parameters[5] = -error
        return
    assert isinstance(categories, int)
    weights = weights_of(Fraction(units, UNITS_PER_ONE), categories)
    given = weights.weight, weights.shift, weights.certain, weights.bits, units % 2**64, units >> 64
    ctypes.memmove(ctypes.addressof(parameters) + 16, struct.pack("<6Q", *given), 48)


_WORK = {layout.RESPONSE: _answer, layout.KEYS: _give_keys, layout.WEIGHTS: _give_weights}

#: As long as the process lives, which may call it to its end.
CALLBACK = ctypes.CFUNCTYPE(_WORD, _WORD)(finish)
