"""What a DuckDB function does when DuckDB calls it: noise on a vector of 2,048 rows, from words kept for several.

A key for each vector would cost more than its noise. So words are made at once for many vectors, in blocks of memory
(layout.py) that one thread uses at a time: a call takes one out of its function's slots, and puts it back. Used words
are overwritten, and the key that made them is let go at once; a second key, for further bits, stays with the block.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.chunks import SCRATCH_BYTES, ask_python, draw_chunk, has_short_words, make_key
from dpfast.kernels.plugin.encryption import BATCH_BYTES, SCHEDULE_BYTES
from dpfast.kernels.plugin.exchange import clear, copy_bytes
from dpfast.kernels.plugin.layout import GAUSSIAN
from dpfast.kernels.plugin.memory import (
    allocate,
    ask,
    fill_words,
    free,
    i64_array,
    load,
    of_duckdb,
    prepare_key,
    process_id,
    put_block,
    store,
    take_block,
)
from dpfast.kernels.plugin.parameters import largest_scale

__all__ = ["draw_vector", "forget_function", "make_function"]

_ROWS = 2048
_LARGEST_INTEGER = 2.0**60

# A block: where the memory begins, words used, what stood for this process, the further bits' key and the words' key,
# a job, a schedule, scratch memory, the words.
_BEGIN, _USED, _EPOCH, _PROCESS, _KEY, _WORDS_KEY, _JOB = 0, 8, 16, 24, 32, 64, 96
_SCHEDULE = _JOB + 8 * layout.JOB_WORDS
_SCRATCH = -(-(_SCHEDULE + SCHEDULE_BYTES) // 64) * 64
_WORDS = -(-(_SCRATCH + _ROWS * SCRATCH_BYTES + 256) // 64) * 64
_BLOCK_BYTES = _WORDS + layout.BYTES_OF_A_KEY


@kernel
def make_function(number):
    """Return the address of what DuckDB keeps for a function: its number in Python, and empty slots; 0 for none."""
    made = allocate(8 * (1 + layout.SLOTS))
    if made != 0:
        clear(made, 8 * (1 + layout.SLOTS))
        store(made, number)
    return made


@kernel
def _forget_block(block):
    begin = load(block + _BEGIN)
    clear(block, _BLOCK_BYTES)
    free(begin)


@kernel
def forget_function(made):
    """Free what DuckDB kept for a function, and wipe its words."""
    for slot in range(layout.SLOTS):
        block = take_block(made + 8 + 8 * slot)
        if block != 0:
            _forget_block(block)
    free(made)
    return 0


@kernel
def _take(function):
    """Return a block that no other call uses, 0 without memory."""
    for slot in range(layout.SLOTS):
        place = function + 8 + 8 * slot
        if load(place) != 0:
            block = take_block(place)
            if block != 0:
                return block
    begin = allocate(_BLOCK_BYTES + 64)
    if begin == 0:
        return 0
    block = begin + -begin % 64
    clear(block, _BLOCK_BYTES)
    store(block + _BEGIN, begin)
    store(block + _USED, layout.BYTES_OF_A_KEY)
    return block


@kernel
def _put(function, block):
    for slot in range(layout.SLOTS):
        place = function + 8 + 8 * slot
        if load(place) == 0 and put_block(place, block) != 0:
            return
    _forget_block(block)


@kernel
def _renew(function, block):
    """Fill a block with the words of a new key; return 0, or the number of an error."""
    job = block + _JOB
    if load(of_duckdb() + 8 * layout.DUCKDB_SEEDED) != 0:
        store(job + 8 * layout.JOB_OPERATION, layout.KEYS)
        store(job + 8 * layout.JOB_START, load(function))
        store(job + 8 * layout.JOB_RELEASED, block + _KEY)
        status = ask_python(job)
        if status != layout.OK:
            return status
    elif not (make_key(block + _WORDS_KEY) and make_key(block + _KEY)):
        return layout.NO_KEY
    prepare_key(block + _WORDS_KEY, block + _SCHEDULE)
    fill_words(block + _SCHEDULE, 0, block + _WORDS, layout.BYTES_OF_A_KEY // BATCH_BYTES)
    clear(block + _WORDS_KEY, 32)
    clear(block + _SCHEDULE, SCHEDULE_BYTES)
    store(block + _USED, 0)
    store(block + _EPOCH, load(of_duckdb() + 8 * layout.DUCKDB_EPOCH))
    store(block + _PROCESS, np.int64(process_id()))
    return layout.OK


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
def _differ(scales, rows):
    """Return 1 where not all scales are the same, bit for bit."""
    given = i64_array(scales, rows)
    different = np.int64(0)
    for i in range(rows):
        different |= given[i] ^ given[0]
    return 1 if different != 0 else 0


@kernel
def _draw(function, block, operation, form, rows, values, bits, scales, released):
    """Release all rows with a block's words; return 0, or the number of an error."""
    job, words, scratch = block + _JOB, block + _WORDS, block + _SCRATCH
    for start in range(0, rows, _ROWS):
        size, scale_at, released_at = min(_ROWS, rows - start), scales + 8 * start, released + 8 * start
        per_row = _differ(scale_at, size)
        largest = largest_scale(scale_at, size if per_row != 0 else 1)
        if largest < 0.0 or (form == 0 and largest > _LARGEST_INTEGER):
            return layout.SCALE_RANGE
        word = 4 if has_short_words(operation, form, largest) != 0 else 6
        drawn = word * (size + (size % 2 if operation == GAUSSIAN else 0))
        known = load(block + _EPOCH) == load(of_duckdb() + 8 * layout.DUCKDB_EPOCH)
        if not known or load(block + _PROCESS) != process_id() or load(block + _USED) + drawn > layout.BYTES_OF_A_KEY:
            status = _renew(function, block)
            if status != layout.OK:
                return status
        first = load(block + _USED)
        # Counted before they are used. A word has four bytes or six, so that no two of a key have one number.
        store(block + _USED, first + drawn + -drawn % 16)
        store(job + 8 * layout.JOB_OPERATION, operation)
        store(job + 8 * layout.JOB_FORMAT, form)
        store(job + 8 * layout.JOB_KEY, block + _KEY)
        store(job + 8 * layout.JOB_FIRST, first)
        store(job + 8 * layout.JOB_SCALES, scale_at)
        store(job + 8 * layout.JOB_LENGTH, size)
        store(job + 8 * layout.JOB_PER_ROW, per_row)
        own = bits + start // 8 if bits != 0 else 0
        status = draw_chunk(job, largest, words + first, scratch, _ROWS, 0, size, values + 8 * start, own, released_at)
        if status != layout.OK:
            return status
        clear(words + first, drawn)
        clear(scratch, 4 * size)
    return layout.OK


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
    values, scales = ask(vector, chunk, 0), ask(vector, chunk, 1)
    bits, scale_bits, scale_at = ask(validity, values, 0), ask(validity, scales, 0), ask(data, scales, 0)
    if scale_bits != 0 and not _all_valid(scale_bits, rows):
        return layout.SCALE_NULL
    if bits != 0:
        ask(load(duckdb + 8 * layout.DUCKDB_WRITABLE), result, 0)
        copy_bytes(bits, ask(validity, result, 0), (rows + 63) // 64 * 8)
    function = ask(load(duckdb + 8 * layout.DUCKDB_FUNCTION), info, 0)
    block = _take(function)
    if block == 0:
        return layout.NO_MEMORY
    value_at, released = ask(data, values, 0), ask(data, result, 0)
    status = _draw(function, block, operation, form, rows, value_at, bits, scale_at, released)
    # What fails is not used again.
    if status == layout.OK:
        _put(function, block)
    else:
        _forget_block(block)
    return status


# Stamp of all kernel sources (scripts/stamp_kernels.py): b070dc0b319c1cb4
