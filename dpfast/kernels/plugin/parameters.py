"""The parameters of a call: what is packed into its arguments, and scales that are a column."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.exchange import clear, copy, item_bytes
from dpfast.kernels.plugin.layout import MAGIC
from dpfast.kernels.plugin.memory import (
    allocate,
    f32_array,
    f64_array,
    free,
    i32_array,
    i64_array,
    load,
    load_byte,
    u8_array,
    u32_array,
)

__all__ = ["find_parameters", "largest_scale", "read_scales", "spread_value"]

_LOWEST, _HIGHEST = 2.0**-960, 2.0**960
_MAGIC = np.frombuffer(MAGIC, np.uint64)[0].astype(np.int64)


@kernel
def find_parameters(arguments, size):
    """Return the address of what stands behind the magic word in pickled arguments, 0 where it is not there."""
    for place in range(size - 7):
        if load(arguments + place) == _MAGIC:
            return arguments + place + 8
    return 0


@kernel
def read_scales(form, source, rows, scales):
    """Write a column's scales as float64 at an address; return 0, or the number of an error."""
    wide = f64_array(scales, rows)
    if form == 0:
        given = i64_array(source, rows)
        for i in range(rows):
            wide[i] = np.float64(given[i])
            # 2**63 itself is what integers just below it round to; cast back, it would not fit.
            if not (abs(wide[i]) < 2.0**63 and np.int64(wide[i]) == given[i]):
                return layout.SCALE_INEXACT
    elif form == 1:
        copy(i32_array(source, rows), wide)
    elif form == 2:
        copy(u32_array(source, rows), wide)
    elif form == 3:
        copy(f64_array(source, rows), wide)
    else:
        copy(f32_array(source, rows), wide)
    return layout.OK


@kernel
def largest_scale(scales, rows):
    """Return the largest scale, -1 where one is out of range."""
    given = f64_array(scales, rows)
    largest, smallest = 0.0, 1.0
    for i in range(rows):
        if not (given[i] >= _LOWEST and given[i] <= _HIGHEST):
            smallest = 0.0
        largest = max(largest, given[i])
    return largest if smallest > 0.0 else -1.0


@kernel
def spread_value(form, values, bits, rows):
    """Return fresh memory with one value and its validity for each of so many rows: (values, bits), 0 for none."""
    item = item_bytes(form)
    wide = allocate(max(item * rows, 64))
    many = 0
    if bits != 0:
        many = allocate(max((rows + 7) // 8, 64))
        if many == 0:
            free(wide)
            wide = 0
    if wide == 0:
        free(many)
        return 0, 0
    for row in range(rows):
        for byte in range(item):
            u8_array(wide + item * row + byte, 1)[0] = np.uint8(load_byte(values + byte))
    if bits != 0:
        clear(many, max((rows + 7) // 8, 64))
        for row in range(rows):
            if load_byte(bits) & 1:
                byte = u8_array(many + (row >> 3), 1)
                byte[0] = np.uint8(np.int64(byte[0]) | (1 << (row & 7)))
    return wide, many


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
