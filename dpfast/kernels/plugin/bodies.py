"""What a plugin function does when Polars calls it: read columns, draw under a fresh key, give a column back."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.noise.joining import zero_missing
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.drawing import SCRATCH_ARRAYS
from dpfast.kernels.plugin.encryption import BATCH_BYTES
from dpfast.kernels.plugin.exchange import (
    clear,
    copy,
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
from dpfast.kernels.plugin.layout import GAUSSIAN, LAPLACE, RESPONSE
from dpfast.kernels.plugin.memory import (
    allocate,
    allocate_large,
    answer_chunk,
    draw_multiples,
    draw_ones,
    draw_powers,
    f32_array,
    f64_array,
    fill_words,
    free,
    free_large,
    fresh_bytes,
    i32_array,
    i64_array,
    load,
    load_byte,
    prepare_key,
    refine,
    store,
    u8_array,
    u32_array,
)
from dpfast.kernels.plugin.parameters import find_parameters, largest_scale, read_scales, spread_value

__all__ = ["BLOCK_ROWS", "field_of", "run"]

BLOCK_ROWS = 131_072
"""As in dpfast.columns: a chunk of words is for so many rows."""

_SCHEDULE_BYTES = 15 * 64
_LARGEST_INTEGER = 2.0**60
_NARROW_LAPLACE, _NARROW_GAUSSIAN, _ONES_BELOW = 2.0**8, 2.0**7, 2.0**25


@kernel
def field_of(operation, fields, count, result):
    """Fill the schema of a result; return 0, or the number of an error."""
    if count < 1 or count > 2:
        return layout.PROTOCOL
    form = format_of(fields)
    if operation == RESPONSE:
        if form < 0 or form > 2:
            return layout.WHOLE_TYPE
    elif form < 0:
        return layout.VALUES_TYPE
    if count == 2 and format_of(fields + layout.SCHEMA_BYTES) < 0:
        return layout.SCALE_TYPE
    if operation == RESPONSE and form == 2:
        form = 5
    if not return_field(result, load(fields + layout.SCHEMA_NAME), form):
        return layout.NO_MEMORY
    return layout.OK


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
def _refine(job):
    """Have undecided rows finished in Python; return 0, or the number of an error."""
    store(job + 8 * layout.JOB_FINISHED, 0)
    returned = refine(job)
    if returned == layout.FINISHED and load(job + 8 * layout.JOB_FINISHED) == layout.FINISHED:
        return layout.OK
    return layout.NO_CALLBACK if returned == layout.NO_CALLBACK else layout.NOT_REFINED


@kernel
def _draw(operation, form, rows, values, scales, per_row, largest, bits, key, schedule, scratch, job, released):
    """Release all rows, chunk by chunk; return 0, or the number of an error."""
    short = 1 if form < 3 and largest <= (_NARROW_LAPLACE if operation == LAPLACE else _NARROW_GAUSSIAN) else 0
    word, item, freed = 4 if short != 0 else 6, item_bytes(form), released_bytes(form)
    block = min(rows, BLOCK_ROWS)
    words = scratch
    noise_at = words + 6 * (block + 1) + BATCH_BYTES
    noise_at += -noise_at % 64
    missing_at = noise_at + 4 * block
    own = missing_at + block
    own += -own % 64
    listed = own + 8 * SCRATCH_ARRAYS * block + 64
    rowwise = 1 if per_row else 0
    for start in range(0, rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, rows - start)
        drawn = size + (size % 2 if operation == GAUSSIAN else 0)
        fill_words(schedule, start // BLOCK_ROWS << 32, words, -(-word * drawn // BATCH_BYTES))
        value_at, released_at = values + item * start, released + freed * start
        scale_at = scales + (8 * start if per_row else 0)
        chunk_of = operation, short, words, size, form, value_at, scale_at, rowwise, own, noise_at, released_at
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
            count = _list_undecided(form, value_at, i32_array(noise_at, size), missing, i64_array(listed, size))
            if count < 0:
                return layout.NOT_FINITE
            if count > 0:
                for i in range(count):
                    clear(released_at + freed * load(listed + 8 * i), freed)
                store(job + 8 * layout.JOB_OPERATION, operation)
                store(job + 8 * layout.JOB_FORMAT, form)
                store(job + 8 * layout.JOB_KEY, key)
                store(job + 8 * layout.JOB_WORDS_AT, words)
                store(job + 8 * layout.JOB_ROWS, size)
                store(job + 8 * layout.JOB_START, start)
                store(job + 8 * layout.JOB_LENGTH, rows)
                store(job + 8 * layout.JOB_VALUES, value_at)
                store(job + 8 * layout.JOB_SCALES, scales)
                store(job + 8 * layout.JOB_PER_ROW, rowwise)
                store(job + 8 * layout.JOB_UNDECIDED, listed)
                store(job + 8 * layout.JOB_COUNT, count)
                store(job + 8 * layout.JOB_RELEASED, released_at)
                status = _refine(job)
                if status != layout.OK:
                    return status
        if bits != 0:
            _zero_missing(form, missing, released_at)
    return layout.OK


@kernel
def _answer(form, rows, values, parameters, bits, key, schedule, scratch, job, released):
    """Answer for all rows, chunk by chunk; return 0, or the number of an error."""
    word, item = load(parameters + 32) // 8, item_bytes(form)
    block = min(rows, BLOCK_ROWS)
    words = scratch
    own = words + 8 * block + BATCH_BYTES
    listed = own + 8 * block
    codes_at = listed + 8 * block
    for start in range(0, rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, rows - start)
        fill_words(schedule, start // BLOCK_ROWS << 32, words, -(-word * size // BATCH_BYTES))
        codes, kept = i64_array(own, size), i64_array(codes_at, size)
        value_at, released_at = values + item * start, released + item * start
        if form == 0:
            copy(i64_array(value_at, size), codes)
        elif form == 1:
            copy(i32_array(value_at, size), codes)
        else:
            copy(u32_array(value_at, size), codes)
        if bits != 0:
            for i in range(size):
                valid = (load_byte(bits + ((start + i) >> 3)) >> (i & 7)) & 1
                codes[i] = codes[i] if valid != 0 else -1
        copy(codes, kept)
        if answer_chunk(parameters, words, size, own) != 0:
            rows_of, count = i64_array(listed, size), 0
            for i in range(size):
                if codes[i] == -1:
                    rows_of[count] = i
                    codes[i] = 0
                    count += 1
            store(job + 8 * layout.JOB_OPERATION, RESPONSE)
            store(job + 8 * layout.JOB_KEY, key)
            store(job + 8 * layout.JOB_WORDS_AT, words)
            store(job + 8 * layout.JOB_ROWS, size)
            store(job + 8 * layout.JOB_START, start)
            store(job + 8 * layout.JOB_VALUES, codes_at)
            store(job + 8 * layout.JOB_UNDECIDED, listed)
            store(job + 8 * layout.JOB_COUNT, count)
            store(job + 8 * layout.JOB_RELEASED, own)
            store(job + 8 * layout.JOB_PARAMETERS, parameters)
            status = _refine(job)
            if status != layout.OK:
                return status
        if form == 0:
            copy(codes, i64_array(released_at, size))
        elif form == 1:
            copy(codes, i32_array(released_at, size))
        else:
            copy(codes, u32_array(released_at, size))
    return layout.OK


@kernel
def _make_key(given, key):
    """Write a fresh key from the operating system, or the one that a test gave; return whether there is one."""
    if given != 0:
        for word in range(0, 32, 8):
            store(key + word, load(given + word))
        return True
    written, tries = 0, 0
    # So few bytes come whole once the generator is ready; before, the call waits, and a signal may interrupt it.
    while written != 32 and tries < 1000:
        written = fresh_bytes(key, 32, np.int32(0))
        tries += 1
    return written == 32


@kernel
def _run_on(operation, form, name, rows, values, scales, per_row, largest, bits, parameters, given, result):
    """Draw for gathered columns and give the result back; return 0, or the number of an error."""
    block = min(rows, BLOCK_ROWS)
    beside = 32 + _SCHEDULE_BYTES + 8 * layout.JOB_WORDS + 256
    used = beside + 2 * BATCH_BYTES + 64 + block * (8 * SCRATCH_ARRAYS + 32)
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
        if _make_key(given, key):
            prepare_key(key, schedule)
            if operation == RESPONSE:
                status = _answer(form, rows, values, parameters, bits, key, schedule, own, job, released)
            else:
                status = _draw(
                    operation, form, rows, values, scales, per_row, largest, bits, key, schedule, own, job, released
                )
        else:
            status = layout.NO_KEY
    clear(scratch, beside)
    free_large(scratch, used)
    nulls = 0
    returned_bits = 0
    returned_form = form
    if operation == RESPONSE:
        returned_form = 5 if form == 2 else form
    elif bits != 0:
        returned_bits = bits
        for row in range(rows):
            nulls += 1 - ((load_byte(bits + (row >> 3)) >> (row & 7)) & 1)
    if status == layout.OK and not return_column(
        result, name, returned_form, rows, nulls, returned_bits, released, size
    ):
        status = layout.NO_MEMORY
    if status != layout.OK:
        free_large(released, size)
    if bits != 0 and (status != layout.OK or operation == RESPONSE):
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
            status = _run_on(operation, form, name, taller, values, scales, per_row, largest, bits, 0, given, result)
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
    if operation == RESPONSE and (form < 0 or form > 2 or rows < 0):
        return layout.WHOLE_TYPE
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
    if operation != RESPONSE:
        status = _run_noise(operation, form, inputs, count, rows, values, bits, arguments, size, given, result)
    else:
        parameters = find_parameters(arguments, size)
        if parameters == 0:
            free(bits)
            status = layout.PROTOCOL
        else:
            name = load(field + layout.SCHEMA_NAME)
            status = _run_on(operation, form, name, rows, values, 0, False, 0.0, bits, parameters, given, result)
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


# Stamp of all kernel sources (scripts/stamp_kernels.py): 50d7a273b52b8327
