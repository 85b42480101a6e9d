"""What a DuckDB function does when DuckDB calls it: noise on a vector of 2,048 rows, or answers for one."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.blocks import JOB, KEY, ROWS, SCRATCH, WORDS, forget_block, put, reserve, take
from dpfast.kernels.plugin.chunks import draw_chunk, has_short_words
from dpfast.kernels.plugin.exchange import clear, copy_bytes
from dpfast.kernels.plugin.layout import GAUSSIAN, RESPONSE
from dpfast.kernels.plugin.memory import ask, i64_array, load, of_duckdb, store
from dpfast.kernels.plugin.parameters import largest_scale
from dpfast.kernels.plugin.responses import answer_rows

__all__ = ["draw_vector"]

_LARGEST_INTEGER = 2.0**60


@kernel
def _all_valid(bits, rows):
    words = i64_array(bits, rows // 64)
    missing = np.int64(0)
    for i in range(words.size):
        missing |= ~words[i]
    if rows % 64 != 0:
        missing |= ~load(bits + rows // 64 * 8) & ((np.int64(1) << (rows % 64)) - 1)
    return missing == 0


@kernel
def _differ(numbers, rows):
    """Return 1 where not all numbers are the same, bit for bit."""
    given = i64_array(numbers, rows)
    different = np.int64(0)
    for i in range(rows):
        different |= given[i] ^ given[0]
    return 1 if different != 0 else 0


@kernel
def _draw(function, block, operation, form, rows, values, bits, scales, released):
    """Release all rows with a block's words; return 0, or the number of an error."""
    job, words, scratch = block + JOB, block + WORDS, block + SCRATCH
    for start in range(0, rows, ROWS):
        size, scale_at, released_at = min(ROWS, rows - start), scales + 8 * start, released + 8 * start
        per_row = _differ(scale_at, size)
        largest = largest_scale(scale_at, size if per_row != 0 else 1)
        if largest < 0.0 or (form == 0 and largest > _LARGEST_INTEGER):
            return layout.SCALE_RANGE
        word = 4 if has_short_words(operation, form, largest) != 0 else 6
        drawn = word * (size + (size % 2 if operation == GAUSSIAN else 0))
        status, first = reserve(function, block, drawn)
        if status != layout.OK:
            return status
        store(job + 8 * layout.JOB_OPERATION, operation)
        store(job + 8 * layout.JOB_FORMAT, form)
        store(job + 8 * layout.JOB_KEY, block + KEY)
        store(job + 8 * layout.JOB_FIRST, first)
        store(job + 8 * layout.JOB_SCALES, scale_at)
        store(job + 8 * layout.JOB_LENGTH, size)
        store(job + 8 * layout.JOB_PER_ROW, per_row)
        own = bits + start // 8 if bits != 0 else 0
        status = draw_chunk(job, largest, words + first, scratch, ROWS, 0, size, values + 8 * start, own, released_at)
        if status != layout.OK:
            return status
        clear(words + first, drawn)
        clear(scratch, 4 * size)
    return layout.OK


@kernel
def _is_one(vector, rows):
    """Return whether all rows of a vector have the same number."""
    duckdb = of_duckdb()
    bits = ask(load(duckdb + 8 * layout.DUCKDB_VALIDITY), vector, 0)
    if bits != 0 and not _all_valid(bits, rows):
        return False
    return _differ(ask(load(duckdb + 8 * layout.DUCKDB_DATA), vector, 0), rows) == 0


@kernel
def draw_vector(operation, form, info, chunk, result):
    """Do what a DuckDB function does; return 0, or the number of an error.

    Parameters
    ----------
    operation, form
        What to draw, and the number of the format of values and result (layout.py).
    info, chunk, result
        As DuckDB hands them over.

    """
    duckdb = of_duckdb()
    rows = ask(load(duckdb + 8 * layout.DUCKDB_SIZE), chunk, 0)
    if rows == 0:
        return layout.OK
    vector, data = load(duckdb + 8 * layout.DUCKDB_VECTOR), load(duckdb + 8 * layout.DUCKDB_DATA)
    validity = load(duckdb + 8 * layout.DUCKDB_VALIDITY)
    values, second, third = ask(vector, chunk, 0), ask(vector, chunk, 1), np.int64(0)
    bits, second_bits = ask(validity, values, 0), ask(validity, second, 0)
    if operation == RESPONSE:
        third = ask(vector, chunk, 2)
        if not _is_one(second, rows):
            return layout.CATEGORIES
        if not _is_one(third, rows):
            return layout.EPSILON
    else:
        if second_bits != 0 and not _all_valid(second_bits, rows):
            return layout.SCALE_NULL
        if bits != 0:
            ask(load(duckdb + 8 * layout.DUCKDB_WRITABLE), result, 0)
            copy_bytes(bits, ask(validity, result, 0), (rows + 63) // 64 * 8)
    function = ask(load(duckdb + 8 * layout.DUCKDB_FUNCTION), info, 0)
    block = take(function)
    if block == 0:
        return layout.NO_MEMORY
    value_at, second_at, released = ask(data, values, 0), ask(data, second, 0), ask(data, result, 0)
    if operation == RESPONSE:
        epsilon = load(ask(data, third, 0))
        status = answer_rows(function, block, rows, value_at, bits, load(second_at), epsilon, released)
    else:
        status = _draw(function, block, operation, form, rows, value_at, bits, second_at, released)
    # What fails is not used again.
    if status == layout.OK:
        put(function, block)
    else:
        forget_block(block)
    return status


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
