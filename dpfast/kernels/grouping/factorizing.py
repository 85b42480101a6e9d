"""Hash tables from 64-bit codes to dense numbers: open addressing, linear probing, at most half full."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel

__all__ = [
    "EMPTY",
    "INLINE",
    "LONG",
    "clean_views",
    "factorize_values",
    "factorize_views",
    "find_codes",
    "find_views",
    "insert_codes",
    "offset_values",
    "reinsert_values",
    "reinsert_views",
]

# The finalizer of MurmurHash3 (Appleby, public domain): every input bit reaches every output bit.
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)
_ONE = np.uint64(1)
_MARK = np.uint64(1 << 63)

EMPTY = np.uint64(2**64 - 1)
"""An empty place in a table of codes, all of which are below 2**63."""

LONG = np.uint64(2**32 - 1)
"""The length that stands in the view of a string of more than ``INLINE`` bytes, whose number follows."""

INLINE = 12
_LENGTH = np.uint64(2**32 - 1)
# An Arrow string view is 16 bytes: the length as int32, then the string itself if it has at most 12 bytes.
_FIRST_BYTES = np.array([2 ** (32 + 8 * min(k, 4)) - 1 for k in range(13)], dtype=np.uint64)
_SECOND_BYTES = np.array([2 ** (8 * max(k - 4, 0)) - 1 for k in range(13)], dtype=np.uint64)


@inlined
def _mix(code):
    """Return a well-mixed 64-bit hash of a 64-bit code."""
    code = (code ^ (code >> _SHIFT)) * _FIRST
    code = (code ^ (code >> _SHIFT)) * _SECOND
    return code ^ (code >> _SHIFT)


@kernel
def insert_codes(codes, table, places):
    """Insert codes (uint64) into a table of ``EMPTY`` places and write where each one went (int64).

    The table's length is a power of two, at least twice the number of codes; no code is ``EMPTY``. Return False
    at the first code met twice, else True.
    """
    mask = np.uint64(len(table) - 1)
    for i in range(len(codes)):
        place = _mix(codes[i]) & mask
        while table[place] != EMPTY:
            if table[place] == codes[i]:
                return False
            place = (place + _ONE) & mask
        table[place] = codes[i]
        places[i] = place
    return True


@kernel
def find_codes(codes, table, out):
    """Write each code's place in the table, ``EMPTY`` if it is not there (uint64; not ``codes`` itself).

    The first pass has no branches, so that many look-ups are under way at once; most codes end there.
    """
    mask = np.uint64(len(table) - 1)
    for i in range(len(out)):
        place = _mix(codes[i]) & mask
        out[i] = place if table[place] == codes[i] else EMPTY
    for i in range(len(out)):
        if out[i] == EMPTY and codes[i] < _MARK:
            place = _mix(codes[i]) & mask
            while table[place] != EMPTY and table[place] != codes[i]:
                place = (place + _ONE) & mask
            out[i] = place if table[place] != EMPTY else EMPTY


@kernel
def factorize_values(values, valid, known, table_values, table_numbers, out):
    """Give distinct int64 values numbers as they are met, from ``known`` on; -1 where null (int32).

    Stop when the table is half full. Return (rows done, values known): the caller doubles the table
    (``reinsert_values``) and goes on from there.
    """
    mask = np.uint64(len(table_numbers) - 1)
    room = len(table_numbers) // 2
    for i in range(len(values)):
        if valid[i] == 0:
            out[i] = -1
            continue
        value = values[i]
        place = _mix(np.uint64(value)) & mask
        while table_numbers[place] >= 0 and table_values[place] != value:
            place = (place + _ONE) & mask
        if table_numbers[place] < 0:
            if known >= room:
                return i, known
            table_values[place] = value
            table_numbers[place] = known
            known += 1
        out[i] = table_numbers[place]
    return len(values), known


@kernel
def reinsert_values(old_values, old_numbers, table_values, table_numbers):
    """Copy a table into a larger empty one."""
    mask = np.uint64(len(table_numbers) - 1)
    for i in range(len(old_numbers)):
        if old_numbers[i] >= 0:
            place = _mix(np.uint64(old_values[i])) & mask
            while table_numbers[place] >= 0:
                place = (place + _ONE) & mask
            table_values[place] = old_values[i]
            table_numbers[place] = old_numbers[i]


@kernel
def offset_values(values, valid, lowest, out):
    """Write ``value - lowest`` (int32; the caller knows that it fits), -1 where null."""
    for i in range(len(out)):
        out[i] = np.int32(values[i] - lowest) if valid[i] != 0 else np.int32(-1)


@kernel
def clean_views(views):
    """Zero what stands behind the end of short strings in string views (uint64, n x 2); count the long ones.

    After that two short strings are equal just when their views are, whichever library made them.
    """
    long = 0
    for i in range(len(views)):
        length = views[i, 0] & _LENGTH
        if length <= np.uint64(INLINE):
            views[i, 0] &= _FIRST_BYTES[length]
            views[i, 1] &= _SECOND_BYTES[length]
        else:
            long += 1
    return long


@kernel
def factorize_views(views, valid, known, table, out):
    """Give distinct views numbers as ``factorize_values`` does for values; -1 where null (int64).

    ``table`` (uint64, n x 3) holds a view's two words and its number plus 1, 0 where a place is empty.
    """
    mask = np.uint64(len(table) - 1)
    room = len(table) // 2
    for i in range(len(views)):
        if valid[i] == 0:
            out[i] = -1
            continue
        first, second = views[i, 0], views[i, 1]
        place = _mix(first ^ _mix(second)) & mask
        while table[place, 2] != 0 and (table[place, 0] != first or table[place, 1] != second):
            place = (place + _ONE) & mask
        if table[place, 2] == 0:
            if known >= room:
                return i, known
            known += 1
            table[place, 0] = first
            table[place, 1] = second
            table[place, 2] = known
        out[i] = np.int64(table[place, 2]) - 1
    return len(views), known


@kernel
def find_views(views, valid, table, out):
    """Write the number of each view in the table, -1 where it is not there or null (int64)."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(out)):
        number = np.int64(-1)
        if valid[i] != 0:
            first, second = views[i, 0], views[i, 1]
            place = _mix(first ^ _mix(second)) & mask
            while table[place, 2] != 0 and (table[place, 0] != first or table[place, 1] != second):
                place = (place + _ONE) & mask
            number = np.int64(table[place, 2]) - 1
        out[i] = number


@kernel
def reinsert_views(old, table):
    """Copy a table of views into a larger empty one."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(old)):
        if old[i, 2] != 0:
            place = _mix(old[i, 0] ^ _mix(old[i, 1])) & mask
            while table[place, 2] != 0:
                place = (place + _ONE) & mask
            table[place] = old[i]


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
