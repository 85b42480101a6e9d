"""Randomized response on a vector of DuckDB's."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.noise.randomized_response import respond_long, respond_short
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.blocks import JOB, KEY, PARAMETERS, ROWS, SCRATCH, WORDS, reserve
from dpfast.kernels.plugin.chunks import ask_python
from dpfast.kernels.plugin.exchange import clear
from dpfast.kernels.plugin.memory import i64_array, load, load_byte, store, u32_array, u64_array

__all__ = ["answer_rows"]

#: Of a block's parameters: k and the bits of epsilon as a double; w, s, whether w bounds W, and the bits of a word (see
#: kernels/noise/randomized_response.py). Behind them stand epsilon's units of 1e-18.
_CATEGORIES, _EPSILON, _WEIGHT, _SHIFT, _CERTAIN, _BITS = range(PARAMETERS, PARAMETERS + 48, 8)


@kernel
def _find_weights(block, categories, epsilon):
    """Have Python prove parameters that are not those of the call before; return 0, or the number of an error."""
    if load(block + _BITS) > 0 and load(block + _CATEGORIES) == categories and load(block + _EPSILON) == epsilon:
        return layout.OK
    job = block + JOB
    store(block + _CATEGORIES, categories)
    store(block + _EPSILON, epsilon)
    store(block + _BITS, 0)
    store(job + 8 * layout.JOB_OPERATION, layout.WEIGHTS)
    store(job + 8 * layout.JOB_SCALES, block + PARAMETERS)
    status = ask_python(job)
    if status != layout.OK:
        return status
    found = load(block + _BITS)
    return layout.OK if found > 0 else -found


@kernel
def _mark_missing(values, bits, start, codes):
    """Copy values, with -1, which is no category, where there is none."""
    for i in range(codes.size):
        valid = (load_byte(bits + ((start + i) >> 3)) >> (i & 7)) & 1
        codes[i] = values[i] if valid != 0 else -1


@kernel
def _respond(block, words, codes, answers):
    """Answer rows by words at an address; return how many are undecided, and list them."""
    categories, weight = np.uint64(load(block + _CATEGORIES)), np.uint64(load(block + _WEIGHT))
    shift, certain, rows = np.uint64(load(block + _SHIFT)), load(block + _CERTAIN) != 0, answers.size
    if load(block + _BITS) == 32:
        undecided = respond_short(u32_array(words, rows), codes, categories, weight, shift, certain, answers)
    else:
        undecided = respond_long(u64_array(words, rows), codes, categories, weight, shift, certain, answers)
    listed, count = i64_array(block + SCRATCH + 8 * ROWS, rows), 0
    if undecided != 0:
        for i in range(rows):
            if answers[i] == -1:
                answers[i] = 0
                listed[count] = i
                count += 1
    return count


@kernel
def answer_rows(function, block, rows, values, bits, categories, epsilon, released):
    """Answer for rows at ``values`` with a block's words; return 0, or the number of an error."""
    status = _find_weights(block, categories, epsilon)
    if status != layout.OK:
        return status
    job = block + JOB
    for start in range(0, rows, ROWS):
        size = min(ROWS, rows - start)
        drawn = load(block + _BITS) // 8 * size
        status, first = reserve(function, block, drawn)
        if status != layout.OK:
            return status
        words, codes_at = block + WORDS + first, values + 8 * start
        if bits != 0:
            codes_at = block + SCRATCH
            _mark_missing(i64_array(values + 8 * start, size), bits, start, i64_array(codes_at, size))
        count = _respond(block, words, i64_array(codes_at, size), i64_array(released + 8 * start, size))
        if count > 0:
            store(job + 8 * layout.JOB_OPERATION, layout.RESPONSE)
            store(job + 8 * layout.JOB_KEY, block + KEY)
            store(job + 8 * layout.JOB_FIRST, first)
            store(job + 8 * layout.JOB_WORDS_AT, words)
            store(job + 8 * layout.JOB_ROWS, size)
            store(job + 8 * layout.JOB_VALUES, codes_at)
            store(job + 8 * layout.JOB_SCALES, block + PARAMETERS)
            store(job + 8 * layout.JOB_UNDECIDED, block + SCRATCH + 8 * ROWS)
            store(job + 8 * layout.JOB_COUNT, count)
            store(job + 8 * layout.JOB_RELEASED, released + 8 * start)
            status = ask_python(job)
            if status != layout.OK:
                return status
        clear(words, drawn)
    return layout.OK


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
