"""Columns that Polars hands over, and the column that goes back: Arrow's C data interface in compiled code."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.memory import (
    allocate,
    call,
    free,
    free_large,
    load,
    load_byte,
    of_release_array,
    of_release_field,
    of_release_series,
    store,
    u8_array,
)

__all__ = [
    "clear",
    "copy",
    "copy_bits",
    "copy_bytes",
    "count_rows",
    "format_of",
    "gather_bits",
    "gather_values",
    "item_bytes",
    "null_count",
    "release_array",
    "release_field",
    "release_inputs",
    "release_series",
    "released_bytes",
    "return_column",
    "return_field",
]

_L, _I, _U, _G, _F = (ord(letter) for _, letter in layout.FORMATS)


@kernel
def format_of(schema):
    """Return the number of a field's format, -1 for one that is not taken: of other numbers, or by a dictionary."""
    text = load(schema + layout.SCHEMA_FORMAT)
    if text == 0 or load(schema + layout.SCHEMA_DICTIONARY) != 0:
        return -1
    if load_byte(text) == 0 or load_byte(text + 1) != 0:
        return -1
    letter = load_byte(text)
    if letter == _L:
        return 0
    if letter == _I:
        return 1
    if letter == _U:
        return 2
    if letter == _G:
        return 3
    return 4 if letter == _F else -1


@kernel
def item_bytes(form):
    """Return how many bytes a number of a format takes."""
    return 8 if form == 0 or form == 3 else 4


@kernel
def released_bytes(form):
    """Return how many bytes a number takes once it has noise: uint32 becomes int64."""
    return 4 if form == 1 or form == 4 else 8


@inlined
def copy(given, taken):
    """Copy an array to another one, element by element: an assignment of slices could raise."""
    for i in range(taken.size):
        taken[i] = given[i]


@kernel
def clear(address, size):
    """Set bytes to zero."""
    taken = u8_array(address, size)
    for i in range(size):
        taken[i] = np.uint8(0)


@kernel
def copy_bytes(source, target, size):
    """Copy bytes from one address to another."""
    given, taken = u8_array(source, size), u8_array(target, size)
    for i in range(size):
        taken[i] = given[i]


@kernel
def copy_bits(source, first, target, start, count):
    """Set bits from ``start`` on to the bits from ``first`` on; the target's bytes are zero there."""
    if first % 8 == 0 and start % 8 == 0:
        whole = count // 8
        copy_bytes(source + first // 8, target + start // 8, whole)
        first, start, count = first + 8 * whole, start + 8 * whole, count - 8 * whole
    if count == 0:
        return
    given = u8_array(source, (first + count + 7) // 8)
    taken = u8_array(target, (start + count + 7) // 8)
    for i in range(count):
        bit = (np.int64(given[(first + i) >> 3]) >> ((first + i) & 7)) & 1
        taken[(start + i) >> 3] = np.uint8(np.int64(taken[(start + i) >> 3]) | (bit << ((start + i) & 7)))


@kernel
def count_rows(series):
    """Return how many rows a series has, -1 if its chunks are no arrays of numbers."""
    rows = 0
    arrays = load(series + layout.SERIES_ARRAYS)
    for chunk in range(load(series + layout.SERIES_LENGTH)):
        array = load(arrays + 8 * chunk)
        if load(array + layout.ARRAY_BUFFER_COUNT) != 2 or load(array + layout.ARRAY_DICTIONARY) != 0:
            return -1
        rows += load(array + layout.ARRAY_LENGTH)
    return rows


@kernel
def null_count(series):
    """Return how many rows have no value, counted where a chunk does not say."""
    nulls = 0
    arrays = load(series + layout.SERIES_ARRAYS)
    for chunk in range(load(series + layout.SERIES_LENGTH)):
        array = load(arrays + 8 * chunk)
        validity = load(load(array + layout.ARRAY_BUFFERS))
        if validity == 0:
            continue
        own, length = load(array + layout.ARRAY_NULLS), load(array + layout.ARRAY_LENGTH)
        if own < 0:
            own, first = 0, load(array + layout.ARRAY_OFFSET)
            for row in range(first, first + length):
                own += 1 - ((load_byte(validity + (row >> 3)) >> (row & 7)) & 1)
        nulls += own
    return nulls


@kernel
def gather_values(series, size):
    """Return (address of all values one after the other, what to free or 0): a chunk of its own is not copied."""
    chunks, arrays = load(series + layout.SERIES_LENGTH), load(series + layout.SERIES_ARRAYS)
    if chunks == 1:
        array = load(arrays)
        data = load(load(array + layout.ARRAY_BUFFERS) + 8)
        return data + size * load(array + layout.ARRAY_OFFSET), 0
    rows = count_rows(series)
    together = allocate(max(size * rows, 64))
    if together == 0:
        return 0, 0
    place = together
    for chunk in range(chunks):
        array = load(arrays + 8 * chunk)
        length = load(array + layout.ARRAY_LENGTH)
        if length > 0:
            data = load(load(array + layout.ARRAY_BUFFERS) + 8)
            copy_bytes(data + size * load(array + layout.ARRAY_OFFSET), place, size * length)
            place += size * length
    return together, together


@kernel
def gather_bits(series, rows):
    """Return the address of fresh validity bits of all rows, zeros after the last one; 0 without memory."""
    size = max((rows + 7) // 8, 64)
    bits = allocate(size)
    if bits == 0:
        return 0
    clear(bits, size)
    arrays = load(series + layout.SERIES_ARRAYS)
    start = 0
    for chunk in range(load(series + layout.SERIES_LENGTH)):
        array = load(arrays + 8 * chunk)
        length = load(array + layout.ARRAY_LENGTH)
        validity = load(load(array + layout.ARRAY_BUFFERS))
        if length > 0 and validity != 0:
            copy_bits(validity, load(array + layout.ARRAY_OFFSET), bits, start, length)
        elif length > 0:
            taken = u8_array(bits, size)
            for row in range(start, start + length):
                taken[row >> 3] = np.uint8(np.int64(taken[row >> 3]) | (1 << (row & 7)))
        start += length
    return bits


@kernel
def release_inputs(inputs, count):
    """Give back what a call was handed: every chunk, and then the export itself."""
    for one in range(count):
        series = inputs + layout.SERIES_BYTES * one
        arrays = load(series + layout.SERIES_ARRAYS)
        for chunk in range(load(series + layout.SERIES_LENGTH)):
            array = load(arrays + 8 * chunk)
            release = load(array + layout.ARRAY_RELEASE)
            if release != 0:
                call(release, array)
        release = load(series + layout.SERIES_RELEASE)
        if release != 0:
            call(release, series)
    return 0


@kernel
def return_field(schema, name, form):
    """Fill a schema with the name and format of a result of columns of a format; return whether there was memory.

    Noise makes int64 of uint32. The format stands behind the name in memory.
    """
    size = 0
    if name != 0:
        while load_byte(name + size) != 0:
            size += 1
    texts = allocate(size + 3)
    if texts == 0:
        return False
    taken = u8_array(texts, size + 3)
    for i in range(size):
        taken[i] = np.uint8(load_byte(name + i))
    taken[size] = np.uint8(0)
    letter = _L if form == 0 or form == 2 else _I if form == 1 else _G if form == 3 else _F
    taken[size + 1] = np.uint8(letter)
    taken[size + 2] = np.uint8(0)
    for word in range(0, layout.SCHEMA_BYTES, 8):
        store(schema + word, 0)
    store(schema + layout.SCHEMA_FORMAT, texts + size + 1)
    store(schema + layout.SCHEMA_NAME, texts)
    store(schema + layout.SCHEMA_FLAGS, layout.NULLABLE)
    store(schema + layout.SCHEMA_RELEASE, of_release_field())
    store(schema + layout.SCHEMA_PRIVATE, texts)
    return True


@kernel
def release_field(schema):
    """Free what `return_field` filled in."""
    free(load(schema + layout.SCHEMA_PRIVATE))
    store(schema + layout.SCHEMA_RELEASE, 0)
    return 0


@kernel
def return_column(result, name, form, rows, nulls, bits, values, size):
    """Fill an export with one chunk, which owns the memory at ``bits`` (0 for none) and ``values``.

    ``size`` is what `allocate_large` was asked for. Returns whether there was memory; without, nothing is owned.
    """
    schema, arrays = allocate(layout.SCHEMA_BYTES), allocate(8)
    array, buffers = allocate(layout.ARRAY_BYTES), allocate(24)
    if schema == 0 or arrays == 0 or array == 0 or buffers == 0 or not return_field(schema, name, form):
        free(schema)
        free(arrays)
        free(array)
        free(buffers)
        return False
    for word in range(0, layout.ARRAY_BYTES, 8):
        store(array + word, 0)
    store(buffers, bits)
    store(buffers + 8, values)
    store(buffers + 16, size)
    store(array + layout.ARRAY_LENGTH, rows)
    store(array + layout.ARRAY_NULLS, nulls)
    store(array + layout.ARRAY_BUFFER_COUNT, 2)
    store(array + layout.ARRAY_BUFFERS, buffers)
    store(array + layout.ARRAY_RELEASE, of_release_array())
    store(array + layout.ARRAY_PRIVATE, buffers)
    store(arrays, array)
    store(result + layout.SERIES_FIELD, schema)
    store(result + layout.SERIES_ARRAYS, arrays)
    store(result + layout.SERIES_LENGTH, 1)
    store(result + layout.SERIES_RELEASE, of_release_series())
    store(result + layout.SERIES_PRIVATE, arrays)
    return True


@kernel
def release_array(array):
    """Free a chunk's memory, when whoever took it over is done."""
    buffers = load(array + layout.ARRAY_PRIVATE)
    free(load(buffers))
    free_large(load(buffers + 8), load(buffers + 16))
    free(buffers)
    store(array + layout.ARRAY_RELEASE, 0)
    return 0


@kernel
def release_series(series):
    """Free an export, of which the chunks were taken over."""
    schema, arrays = load(series + layout.SERIES_FIELD), load(series + layout.SERIES_ARRAYS)
    if load(schema + layout.SCHEMA_RELEASE) != 0:
        release_field(schema)
    free(schema)
    free(load(arrays))
    free(arrays)
    store(series + layout.SERIES_RELEASE, 0)
    return 0


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
