"""What a plugin function does when Polars calls it: read columns, draw under a fresh key, give a column back."""

from __future__ import annotations

from dpfast.kernels.compilation import kernel
from dpfast.kernels.encryption import BATCH_BYTES, SCHEDULE_BYTES
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.chunks import SCRATCH_BESIDE, SCRATCH_BYTES, draw_chunk, has_short_words, make_key
from dpfast.kernels.plugin.exchange import (
    clear,
    copy_bytes,
    count_rows,
    format_of,
    gather_bits,
    gather_values,
    item_bytes,
    null_count,
    release_inputs,
    released_bytes,
    return_column,
    return_field,
)
from dpfast.kernels.plugin.layout import GAUSSIAN
from dpfast.kernels.plugin.memory import (
    allocate,
    allocate_large,
    fill_words,
    free,
    free_large,
    load,
    load_byte,
    prepare_key,
    store,
)
from dpfast.kernels.plugin.parameters import find_parameters, largest_scale, read_scales, spread_value

__all__ = ["BLOCK_ROWS", "field_of", "run"]

BLOCK_ROWS = 131_072
"""As in dpfast.columns: a chunk of words is for so many rows."""

_LARGEST_INTEGER = 2.0**60


@kernel
def field_of(fields, count, result):
    """Fill the schema of a result; return 0, or the number of an error."""
    if count < 1 or count > 2:
        return layout.PROTOCOL
    form = format_of(fields)
    if form < 0:
        return layout.VALUES_TYPE
    if count == 2 and format_of(fields + layout.SCHEMA_BYTES) < 0:
        return layout.SCALE_TYPE
    if not return_field(result, load(fields + layout.SCHEMA_NAME), form):
        return layout.NO_MEMORY
    return layout.OK


@kernel
def _draw(job, rows, values, largest, bits, schedule, scratch, released):
    """Release all rows, chunk by chunk; return 0, or the number of an error."""
    operation, form = load(job + 8 * layout.JOB_OPERATION), load(job + 8 * layout.JOB_FORMAT)
    word = 4 if has_short_words(operation, form, largest) != 0 else 6
    item, freed = item_bytes(form), released_bytes(form)
    block = min(rows, BLOCK_ROWS)
    own = scratch + 6 * (block + 1) + BATCH_BYTES
    for start in range(0, rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, rows - start)
        drawn = size + (size % 2 if operation == GAUSSIAN else 0)
        fill_words(schedule, start // BLOCK_ROWS << 32, scratch, -(-word * drawn // BATCH_BYTES))
        value_at, released_at = values + item * start, released + freed * start
        status = draw_chunk(job, largest, scratch, own, block, start, size, value_at, bits, released_at)
        if status != layout.OK:
            return status
    return layout.OK


@kernel
def _run_on(operation, form, name, rows, values, scales, per_row, largest, bits, given, result):
    """Draw for gathered columns and give the result back; return 0, or the number of an error."""
    block = min(rows, BLOCK_ROWS)
    beside = 32 + SCHEDULE_BYTES + 8 * layout.JOB_WORDS + 256
    used = beside + 2 * BATCH_BYTES + 256 + SCRATCH_BESIDE + block * (SCRATCH_BYTES + 6)
    size = max(rows * released_bytes(form), 64)
    scratch, released = allocate_large(used), allocate_large(size)
    if scratch == 0 or released == 0:
        free_large(scratch, used)
        free_large(released, size)
        free(bits)
        return layout.NO_MEMORY
    key, job = scratch, scratch + 32
    schedule = job + 8 * layout.JOB_WORDS
    own = scratch + beside
    own += -own % 64
    status = layout.OK
    if rows > 0:
        # A test gives a key.
        if given != 0:
            copy_bytes(given, key, 32)
        if given != 0 or make_key(key):
            prepare_key(key, schedule)
            store(job + 8 * layout.JOB_OPERATION, operation)
            store(job + 8 * layout.JOB_FORMAT, form)
            store(job + 8 * layout.JOB_KEY, key)
            store(job + 8 * layout.JOB_FIRST, 0)
            store(job + 8 * layout.JOB_LENGTH, rows)
            store(job + 8 * layout.JOB_SCALES, scales)
            store(job + 8 * layout.JOB_PER_ROW, 1 if per_row else 0)
            status = _draw(job, rows, values, largest, bits, schedule, own, released)
        else:
            status = layout.NO_KEY
    clear(scratch, beside)
    free_large(scratch, used)
    nulls = 0
    if bits != 0:
        for row in range(rows):
            nulls += 1 - ((load_byte(bits + (row >> 3)) >> (row & 7)) & 1)
    if status == layout.OK and not return_column(result, name, form, rows, nulls, bits, released, size):
        status = layout.NO_MEMORY
    if status != layout.OK:
        free_large(released, size)
        free(bits)
    return status


@kernel
def _run_noise(operation, form, inputs, count, rows, values, bits, arguments, size, given, result):
    """Read the scales and go on; owns ``bits``."""
    name = load(load(inputs + layout.SERIES_FIELD) + layout.SCHEMA_NAME)
    status, scales, held, per_row, taller = layout.OK, 0, 0, False, rows
    one = allocate(64)
    if one == 0:
        free(bits)
        return layout.NO_MEMORY
    if count == 1:
        scales = find_parameters(arguments, size)
        status = layout.PROTOCOL if scales == 0 else layout.OK
        if scales != 0:
            store(one, load(scales))
            scales = one
    else:
        series = inputs + layout.SERIES_BYTES
        scale_form = format_of(load(series + layout.SERIES_FIELD))
        scale_rows = count_rows(series)
        if scale_form < 0 or scale_rows < 0:
            status = layout.SCALE_TYPE
        elif scale_rows != rows and scale_rows != 1 and rows != 1:
            status = layout.LENGTHS
        elif null_count(series) > 0:
            status = layout.SCALE_NULL
        else:
            per_row = scale_rows != 1
            taller = scale_rows if rows == 1 else rows
            scales, held = gather_values(series, item_bytes(scale_form))
            if scales == 0 and scale_rows > 0:
                status = layout.NO_MEMORY
            elif scale_form != 3 and scale_rows > 0:
                source = scales
                scales = allocate(max(8 * scale_rows, 64))
                status = layout.NO_MEMORY if scales == 0 else read_scales(scale_form, source, scale_rows, scales)
                free(held)
                held = scales
    spread, spread_bits = 0, 0
    if status == layout.OK:
        known = rows if per_row else 1
        if taller != rows:
            known = taller
            spread, spread_bits = spread_value(form, values, bits, taller)
            status = layout.NO_MEMORY if spread == 0 else layout.OK
        largest = largest_scale(scales, known) if known > 0 else 0.0
        if status == layout.OK and largest < 0.0:
            status = layout.SCALE_RANGE
        elif status == layout.OK and form < 3 and largest > _LARGEST_INTEGER:
            status = layout.SCALE_LARGE
        elif status == layout.OK:
            if spread != 0:
                free(bits)
                bits, values = spread_bits, spread
                spread_bits = 0
            status = _run_on(operation, form, name, taller, values, scales, per_row, largest, bits, given, result)
            bits = 0
    free(bits)
    free(spread)
    free(spread_bits)
    free(held)
    free(one)
    return status


@kernel
def _run(operation, inputs, count, arguments, size, given, result):
    if count < 1 or count > 2:
        return layout.PROTOCOL
    field = load(inputs + layout.SERIES_FIELD)
    form, rows = format_of(field), count_rows(inputs)
    if form < 0 or rows < 0:
        return layout.VALUES_TYPE
    bits = 0
    if null_count(inputs) > 0:
        bits = gather_bits(inputs, rows)
        if bits == 0:
            return layout.NO_MEMORY
    values, held = gather_values(inputs, item_bytes(form))
    if values == 0 and rows > 0:
        free(bits)
        return layout.NO_MEMORY
    status = _run_noise(operation, form, inputs, count, rows, values, bits, arguments, size, given, result)
    free(held)
    return status


@kernel
def run(operation, inputs, count, arguments, size, result, given):
    """Do what a plugin function does, and release the inputs; return 0, or the number of an error.

    ``given`` is the address of a key for tests, or 0.
    """
    status = _run(operation, inputs, count, arguments, size, given, result)
    release_inputs(inputs, count)
    return status


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
