"""From key columns to slots, and from slots to exact counts and sums.

A slot is a place in a table that holds one number per public key; the last place of every table is the trash,
where rows of unknown keys go. Each kernel that writes into a table bounds the slot itself, whatever it is
given, so that no row can write outside.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.intrinsics import bits_of_f64, f64_from_bits
from dpfast.kernels.parameters import is_marked

__all__ = [
    "UNKNOWN",
    "add_key_codes",
    "add_to_slots",
    "clip_integers",
    "count_choices",
    "count_codes_at_once",
    "count_slots",
    "count_within",
    "drop_groups",
    "drop_slots",
    "find_bins",
    "find_values",
    "is_counting",
    "look_up_slots",
    "mark_within",
    "narrow_slots",
    "number_floats",
    "round_floats",
    "round_integers",
    "saturate_wide",
    "scale_integers",
]

UNKNOWN = np.uint64(1 << 63)
"""The bit that marks a code of no public key."""

_ZERO = np.uint64(0)
#: Four tables of so many numbers stay in the cache beside the rows.
_MOST_IN_TURNS = 1 << 12
_FRACTION_BITS = np.uint64(52)
_FAR = 4611686018427387904.0  # 2**62: what lies beyond is beyond every bound, and fits into int64


@kernel
def add_key_codes(values, valid, lowest, size, stride, null_code, codes):
    """Add one column's part of the mixed-radix code: ``(value - lowest) * stride``, or the null's part.

    ``values`` int64 (the bits of an unsigned value, if it is one), ``valid`` uint8, ``codes`` uint64 in and
    out. A value outside ``lowest .. lowest + size - 1`` sets the bit ``UNKNOWN``; it then stays set, since
    the parts of all columns together stay below 2**63.
    """
    for i in range(len(codes)):
        offset = np.uint64(values[i]) - lowest
        part = offset * stride if offset < size else UNKNOWN
        part = part if valid[i] != 0 else null_code
        mark = part & UNKNOWN
        codes[i] = (codes[i] + (part ^ mark)) | mark


@kernel
def count_slots(slots, table):
    """Add 1 to ``table[slot]`` for each row; every slot from ``len(table) - 1`` on is the trash."""
    trash = np.uint64(len(table) - 1)
    for i in range(len(slots)):
        table[min(np.uint64(slots[i]), trash)] += 1


@kernel
def count_codes_at_once(values, valid, seen, lowest, size, null_slot, table):
    """Add 1 to ``table[value - lowest]`` for each row: what `add_key_codes` and `count_slots` do, in one pass.

    ``values`` int64, ``lowest`` and ``size`` uint64; a null row has ``null_slot``, one that is not in range or not
    ``seen`` (uint8) the trash, which is the last entry. ``valid`` (uint8) is None where no row is null, ``seen`` where
    all are.

    A small table is counted as four, in turns, which are added up at the end: a row that adds to the number that the
    row before it has just written waits for that. So would rows that are not seen if all of them went to the trash at
    once: each adds 0 to its own slot.
    """
    trash = np.uint64(len(table) - 1)
    null_slot = min(null_slot, trash)
    if len(table) > _MOST_IN_TURNS:
        for i in range(len(values)):
            slot = _slot_of(values[i], is_marked(valid, i), lowest, size, null_slot, trash)
            table[slot if is_marked(seen, i) else trash] += 1
        return
    turns = np.zeros((len(table), 4), np.int64)
    for i in range(len(values)):
        slot = _slot_of(values[i], is_marked(valid, i), lowest, size, null_slot, trash)
        turns[slot, i & 3] += np.int64(is_marked(seen, i))
    unseen = len(values)
    for slot in range(len(table)):
        found = turns[slot].sum()
        table[slot] += found
        unseen -= found
    table[trash] += unseen


@inlined
def _slot_of(value, is_valid, lowest, size, null_slot, trash):
    """Return the slot of a key: ``value - lowest`` below ``size``, else the trash; that of null where it is null."""
    offset = np.uint64(value) - lowest
    slot = offset if offset < size else trash
    return slot if is_valid else null_slot


@kernel
def is_counting(codes):
    """Return whether codes (uint64) are 0, 1, 2, and so on."""
    i = 0
    while i < len(codes) and codes[i] == np.uint64(i):
        i += 1
    return i == len(codes)


@kernel
def mark_within(values, valid, least, most, marks):
    """Take the mark (uint8) of rows whose value is null, NaN, or not from ``least`` to ``most``.

    ``valid`` (uint8) is None where no row is null.
    """
    for i in range(len(marks)):
        x = values[i]
        marks[i] &= np.uint8(is_marked(valid, i) & (x >= least) & (x <= most))


@kernel
def count_within(values, valid, least, most):
    """Return how many values `mark_within` would leave their mark."""
    found = np.int64(0)
    for i in range(len(values)):
        x = values[i]
        found += np.int64(is_marked(valid, i) & (x >= least) & (x <= most))
    return found


@kernel
def drop_slots(seen, slots):
    """Put rows that are not ``seen`` (uint8) into the largest slot (uint64), which is beyond all tables."""
    for i in range(len(slots)):
        slots[i] = slots[i] if seen[i] != 0 else np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def drop_groups(seen, groups):
    """Take the group (int32) of rows that are not ``seen`` (uint8)."""
    for i in range(len(groups)):
        groups[i] = groups[i] if seen[i] != 0 else np.int32(-1)


@kernel
def count_choices(slots, choices, width, table):
    """Add 1 to ``table[slot * width + choice - 1]`` for each row; the last entry of the table is the trash.

    ``choices`` are int64 from 1 to ``width`` (uint64); rows of others, and of slots past the last, are trash.
    """
    trash = np.uint64(len(table) - 1)
    known = trash // width
    for i in range(len(choices)):
        slot, choice = np.uint64(slots[i]), np.uint64(choices[i] - 1)
        table[slot * width + choice if slot < known and choice < width else trash] += 1


@kernel
def add_to_slots(slots, contributions, table):
    """Add each row's contribution (int64) to ``table[slot]``; every slot past the last is the trash."""
    trash = np.uint64(len(table) - 1)
    for i in range(len(slots)):
        table[min(np.uint64(slots[i]), trash)] += contributions[i]


@kernel
def narrow_slots(slots, trash, out):
    """Write each slot (uint64) as uint32, those beyond the trash as the trash."""
    for i in range(len(out)):
        out[i] = np.uint32(min(slots[i], trash))


@kernel
def find_bins(values, valid, edges, bins, inside):
    """Write i where ``edges[i] <= value < edges[i + 1]`` (int64), and whether there is such an i (uint8).

    A binary search of as many steps for every row, step by step over all rows, so that the rows' look-ups
    overlap.
    """
    first, last = edges[0], edges[len(edges) - 1]
    for i in range(len(bins)):
        bins[i] = 0
        inside[i] = np.uint8((valid[i] != 0) & (values[i] >= first) & (values[i] < last))
    rest = len(edges)
    while rest > 1:
        half = rest >> 1
        for i in range(len(bins)):
            middle = bins[i] + half
            bins[i] = middle if edges[middle] <= values[i] else bins[i]
        rest -= half


@kernel
def look_up_slots(slots, rows, out):
    """Write ``rows[slot]`` for each row, -1 for slots beyond the table (int32)."""
    cells = np.uint64(len(rows))
    for i in range(len(slots)):
        out[i] = rows[slots[i]] if slots[i] < cells else np.int32(-1)


@kernel
def find_values(values, valid, out):
    """Write 1 where a float64 value is neither null nor NaN, else 0 (int64)."""
    for i in range(len(out)):
        out[i] = np.int64((valid[i] != 0) & (values[i] == values[i]))


@kernel
def round_floats(values, valid, first_factor, second_factor, lower, upper, centre, out):
    """Write ``clip(round_half_even(x * first_factor * second_factor), lower, upper) - centre`` (int64).

    The factors are powers of two: the products are exact, or so small that they round to 0, or infinite and
    clipped. Null and NaN contribute 0. Clipping at 2**62 first keeps the conversion to int64 defined.
    """
    for i in range(len(out)):
        x = values[i]
        present = (valid[i] != 0) & (x == x)
        steps = np.rint((x if present else 0.0) * first_factor * second_factor)
        steps = steps if steps < _FAR else _FAR
        steps = steps if steps > -_FAR else -_FAR
        contribution = min(max(np.int64(steps), lower), upper) - centre
        out[i] = contribution if present else np.int64(0)


@kernel
def number_floats(values, valid, mantissa, finest, doublings, lower, upper, centre, out):
    """Write ``clip(number of the nearest point, lower, upper) - centre`` (int64), 0 for null and NaN.

    The step is 2**finest, and doubles with each doubling of the magnitude from 2**(mantissa + 1 + finest) on, as often
    as ``doublings`` says; a point's number is how many points there are from zero on (`dpfast.columns.grid`). With j
    doublings it is ``rint(abs(x) / 2**(finest + j)) + j * 2**mantissa``: the quotient is exact, or so small that it
    rounds to 0, or infinite and clipped.
    """
    first = np.int64(1023 + mantissa + finest)
    for i in range(len(out)):
        x = values[i]
        present = (valid[i] != 0) & (x == x)
        size = abs(x) if present else 0.0
        exponent = np.int64(bits_of_f64(size) >> _FRACTION_BITS)
        doubled = min(max(exponent - first, np.int64(0)), doublings)
        power = f64_from_bits(np.uint64(np.int64(1023) - finest - doubled) << _FRACTION_BITS)
        steps = np.rint(size * power)
        steps = steps if steps < _FAR else _FAR
        number = np.int64(steps) + (doubled << np.int64(mantissa))
        number = -number if x < 0.0 else number
        out[i] = min(max(number, lower), upper) - centre if present else np.int64(0)


@kernel
def clip_integers(values, valid, lower, upper, centre, out):
    """Write ``clip(x, lower, upper) - centre`` for int64 values, 0 where null."""
    for i in range(len(out)):
        contribution = min(max(values[i], lower), upper) - centre
        out[i] = contribution if valid[i] != 0 else np.int64(0)


@kernel
def round_integers(values, valid, shift, lower, upper, centre, out):
    """Write ``clip(round_half_even(x / 2**shift), lower, upper) - centre`` for int64 values, 0 where null.

    ``shift`` is int64, from 1 to 62: the rest of a floor is then from 0 to 2**62 - 1, and 2**62 bounds the quotient.
    """
    half = np.int64(1) << (shift - np.int64(1))
    for i in range(len(out)):
        floor = values[i] >> shift
        rest = values[i] - (floor << shift)
        # One half itself is rounded up where the floor is odd.
        up = np.int64(rest + (floor & np.int64(1)) > half)
        contribution = min(max(floor + up, lower), upper) - centre
        out[i] = contribution if valid[i] != 0 else np.int64(0)


@kernel
def scale_integers(values, valid, shift, lower, upper, centre, out):
    """Write ``clip(x * 2**shift, lower, upper) - centre`` for int64 values, 0 where null.

    ``shift`` is int64, from 0 to 62. Products are clipped to 2**62 in magnitude, beyond which no bounds lie.
    """
    far = np.int64(1 << 62) >> shift
    for i in range(len(out)):
        contribution = min(max(min(max(values[i], -far), far) << shift, lower), upper) - centre
        out[i] = contribution if valid[i] != 0 else np.int64(0)


@kernel
def saturate_wide(halves, out):
    """Write integers of 128 bits, each its low and high int64, as the nearest int64."""
    for i in range(len(out)):
        low, high = halves[i, 0], halves[i, 1]
        end = np.int64(0x7FFFFFFFFFFFFFFF) ^ (high >> np.int64(63))
        out[i] = low if high == low >> np.int64(63) else end


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
