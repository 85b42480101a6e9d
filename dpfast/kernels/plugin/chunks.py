"""A chunk of rows with noise, whichever engine it came from: drawn, finished by Python where undecided, nulls zero."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.noise.joining import zero_missing
from dpfast.kernels.noise.laplace import LARGEST_SHORT_SCALE, UNDECIDED
from dpfast.kernels.noise.narrow_laplace import WORK_WORDS
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.drawing import SCRATCH_ARRAYS
from dpfast.kernels.plugin.exchange import clear, released_bytes
from dpfast.kernels.plugin.layout import LAPLACE
from dpfast.kernels.plugin.memory import (
    draw_multiples,
    draw_ones,
    draw_powers,
    f32_array,
    f64_array,
    fresh_bytes,
    i32_array,
    i64_array,
    load,
    load_byte,
    refine,
    store,
    u8_array,
)

__all__ = ["SCRATCH_BESIDE", "SCRATCH_BYTES", "ask_python", "draw_chunk", "has_short_words", "make_key"]

SCRATCH_BYTES = 8 * SCRATCH_ARRAYS + 8 + 4 + 1
"""How much memory `draw_chunk` needs for each row, beside SCRATCH_BESIDE."""

SCRATCH_BESIDE = 256 + 8 * WORK_WORDS

_SHORT_GAUSSIAN, _ONES_BELOW = 2.0**7, 2.0**25


@kernel
def has_short_words(operation, form, largest):
    """Return 1 where words of 32 bits are enough for the largest scale, else 0."""
    return 1 if form < 3 and largest <= (LARGEST_SHORT_SCALE if operation == LAPLACE else _SHORT_GAUSSIAN) else 0


@kernel
def _mark_missing(bits, start, missing):
    """Set ``missing`` to whether each row from ``start`` on (a multiple of 8) has no validity bit."""
    for i in range(missing.size):
        missing[i] = np.uint8(1 - ((load_byte(bits + ((start + i) >> 3)) >> (i & 7)) & 1))


@kernel
def _zero_missing(form, missing, released):
    rows = missing.size
    if form == 1:
        zero_missing(missing, i32_array(released, rows))
    elif form == 3:
        zero_missing(missing, f64_array(released, rows))
    elif form == 4:
        zero_missing(missing, f32_array(released, rows))
    else:
        zero_missing(missing, i64_array(released, rows))


@kernel
def _list_undecided(form, values, noise, missing, rows_of):
    """List the undecided rows that are not missing; return how many, -1 if the value of one is not finite."""
    count = 0
    for row in range(noise.size):
        if noise[row] != UNDECIDED or (missing.size > 0 and missing[row] != 0):
            continue
        if form == 3 and not np.isfinite(f64_array(values, noise.size)[row]):
            return -1
        if form == 4 and not np.isfinite(f32_array(values, noise.size)[row]):
            return -1
        rows_of[count] = row
        count += 1
    return count


@kernel
def ask_python(job):
    """Have a job done by Python; return 0, or the number of an error."""
    store(job + 8 * layout.JOB_FINISHED, 0)
    returned = refine(job)
    if returned == layout.FINISHED and load(job + 8 * layout.JOB_FINISHED) == layout.FINISHED:
        return layout.OK
    return layout.NO_CALLBACK if returned == layout.NO_CALLBACK else layout.NOT_REFINED


@kernel
def draw_chunk(job, largest, words, scratch, block, start, size, values, bits, released):
    """Release some rows; return 0, or the number of an error.

    Parameters
    ----------
    job
        The address of a job, in which the operation, the format, the key, the word of the column's first row, the
        scales and their number stand already.
    largest
        The largest scale.
    words
        The address of the random words.
    scratch, block
        Memory for so many rows.
    start, size
        The number of the first row, a multiple of 8, and how many there are.
    values, released
        The addresses of their values, and of what becomes of them.
    bits
        The address of the validity of all rows, 0 where none is null.

    """
    operation, form = load(job + 8 * layout.JOB_OPERATION), load(job + 8 * layout.JOB_FORMAT)
    rowwise, freed = load(job + 8 * layout.JOB_PER_ROW), released_bytes(form)
    noise_at = scratch + -scratch % 64
    missing_at = noise_at + 4 * block
    own = missing_at + block
    own += -own % 64 + 8 * WORK_WORDS
    listed = own + 8 * SCRATCH_ARRAYS * block + 64
    scales = load(job + 8 * layout.JOB_SCALES) + 8 * start * rowwise
    short = has_short_words(operation, form, largest)
    chunk_of = operation, short, words, size, form, values, scales, rowwise, own, noise_at, released
    if form > 2:
        undecided = draw_powers(*chunk_of)
    elif largest >= _ONES_BELOW:
        undecided = draw_multiples(*chunk_of)
    else:
        undecided = draw_ones(*chunk_of)
    missing = u8_array(missing_at, size if bits != 0 else 0)
    if bits != 0:
        _mark_missing(bits, start, missing)
    if undecided != 0:
        count = _list_undecided(form, values, i32_array(noise_at, size), missing, i64_array(listed, size))
        if count < 0:
            return layout.NOT_FINITE
        if count > 0:
            for i in range(count):
                clear(released + freed * load(listed + 8 * i), freed)
            store(job + 8 * layout.JOB_WORDS_AT, words)
            store(job + 8 * layout.JOB_ROWS, size)
            store(job + 8 * layout.JOB_START, start)
            store(job + 8 * layout.JOB_VALUES, values)
            store(job + 8 * layout.JOB_UNDECIDED, listed)
            store(job + 8 * layout.JOB_COUNT, count)
            store(job + 8 * layout.JOB_RELEASED, released)
            status = ask_python(job)
            if status != layout.OK:
                return status
    if bits != 0:
        _zero_missing(form, missing, released)
    return layout.OK


@kernel
def make_key(key):
    """Write 32 fresh bytes from the operating system; return whether there are."""
    written, tries = 0, 0
    # So few bytes come whole once the generator is ready; before, the call waits, and a signal may interrupt it.
    while written != 32 and tries < 1000:
        written = fresh_bytes(key, 32, np.int32(0))
        tries += 1
    return written == 32


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
