"""Exact counts of many marginals of the same records: codes are read once, and a few tables hold all marginals.

A column of codes may stand for several attributes of few values together, so that a table over two columns holds the
counts of all pairs of an attribute of one with an attribute of the other. There are far fewer tables than marginals,
and a record adds one to a cell of each. Marginals are summed from the tables at the end.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.grouping.counting import UNKNOWN
from dpfast.kernels.intrinsics import address_of

__all__ = ["BEYOND", "add_bytes", "add_cells", "add_codes", "add_sums", "count_tables", "keep_known"]

#: More than all cells of a domain: the part of a record that is in none.
BEYOND = np.uint64(1 << 40)

_NONE, _ONE, _SOME, _TOP = np.uint32(0), np.uint32(1), np.uint64(1), np.uint64(63)
#: A table is crowded where more than one record in so many has the cell of the one before.
_SELDOM = np.int64(8)
#: A word of 64 bits holds the cells of four records, 16 bits each.
_CELL = np.uint64(0xFFFF)
_SECOND, _THIRD, _FOURTH = np.uint64(16), np.uint64(32), np.uint64(48)


@kernel
def add_codes(values, valid, declared, other, factor, codes, known):
    """Add one attribute's code of each record to a column of codes, and take records out whose value has none.

    Parameters
    ----------
    values, valid
        int64, and uint8: 0 where null.
    declared
        uint64: codes from 0 to this, exclusive, are as they are.
    other
        uint64: the code of null, UNKNOWN for none.
    factor
        uint64: what the column's codes are multiplied by before; 0 for the first attribute of a column.
    codes
        In and out, of unsigned integers: the codes of known records fit.
    known
        uint8, in and out: 0 for records that are in no cell.

    """
    # Codes have at most 32 bits: products of 64, and flags by a comparison of 64, take AVX2 twice the time.
    shorter = np.uint32(factor)
    for i in range(codes.size):
        code = np.uint64(values[i])
        code = code if code < declared else UNKNOWN
        code = code if valid[i] != 0 else other
        known[i] &= np.uint8(_SOME ^ np.uint64(code >> _TOP))
        codes[i] = np.uint32(codes[i]) * shorter + np.uint32(code)


@kernel
def add_bytes(values, last, factor, codes, known):
    """Do as `add_codes` for a column of bytes without nulls, 16 or more records at a time.

    Parameters
    ----------
    values
        uint8.
    last
        uint8: the largest value that has a code. A value is its own code.
    factor
        uint8: as for `add_codes`.
    codes, known
        In and out, as for `add_codes`. Records that are taken out get any code.

    """
    for i in range(codes.size):
        known[i] &= np.uint8(values[i] <= last)
    for i in range(codes.size):
        codes[i] = codes[i] * factor + values[i]


@kernel
def add_cells(values, valid, declared, stride, other, cells):
    """Add one attribute's part of the cell of each record: its code times ``stride``, or a number beyond all cells.

    Parameters
    ----------
    values, valid
        int64, and uint8: 0 where null.
    declared
        uint64: codes from 0 to this, exclusive, are as they are.
    stride
        uint64: how far apart the attribute's codes are; its product with ``declared`` is at most 2**31.
    other
        uint64: the part of null, BEYOND for none.
    cells
        uint64, in and out: what is beyond in one attribute stays so, as the parts of all only add up.

    """
    for i in range(cells.size):
        code = np.uint64(values[i])
        # A product of 32 bits by 32, which AVX2 has; it has none of 64 bits.
        part = np.uint64(np.uint32(code)) * np.uint64(np.uint32(stride)) if code < declared else BEYOND
        cells[i] += part if valid[i] != 0 else other


@kernel
def keep_known(known, codes):
    """Move the codes of known records to the front, in their order, and return how many there are."""
    kept = 0
    for i in range(known.size):
        kept += np.int64(known[i])
    if kept < known.size:
        for column in range(codes.shape[0]):
            place = np.int64(0)
            # The place is never beyond the record that is read.
            for i in range(known.size):
                codes[column, place] = codes[column, i]
                place += np.int64(known[i])
    return kept


@kernel
def _is_crowded(cells):
    """Return whether so many records have the cell of the one before that counts wait for one another."""
    repeated = _NONE
    for i in range(1, cells.size):
        repeated += np.uint32(cells[i] == cells[i - 1])
    return np.int64(repeated) * _SELDOM > cells.size


@kernel
def _count_small(first, second, size, other, cells, words, table):
    """Add records to a small table of two columns, in a crowded one every second record by way of another table.

    Where the next record often has the same cell, its count is not written yet; else a second table only takes room in
    the nearest cache. Cells are read four at a time, as a processor does few loads and stores at once. Counts have 32
    bits: adding to 16 takes longer.
    """
    beside = table
    for start in range(0, first.size, cells.size):
        a, b = first[start : start + cells.size], second[start : start + cells.size]
        for i in range(a.size):
            cells[i] = np.uint16(a[i]) * size + np.uint16(b[i])
        if start == 0 and _is_crowded(cells[: a.size]):
            beside = other[: table.size]
            beside[:] = _NONE
        whole = a.size // 4
        for i in range(whole):
            word = words[i]
            table[word & _CELL] += _ONE
            beside[(word >> _SECOND) & _CELL] += _ONE
            table[(word >> _THIRD) & _CELL] += _ONE
            beside[word >> _FOURTH] += _ONE
        for i in range(4 * whole, a.size):
            table[np.uint64(cells[i])] += _ONE
    if address_of(beside) != address_of(table):
        for cell in range(table.size):
            table[cell] += beside[cell]


@kernel
def count_tables(codes, records, members, starts, sizes, offsets, tables, other, cells, words):
    """Add each record to its cell in each table.

    Parameters
    ----------
    codes
        Of unsigned integers, a row for each column, each code below the column's size.
    records
        How many there are.
    members, starts
        int64: table t is over the columns members[starts[t]:starts[t + 1]], the last one running fastest.
    sizes
        uint64: how many codes each column has.
    offsets
        int64: table t has the cells offsets[t] to offsets[t + 1] of ``tables``.
    tables
        uint32, in and out.
    other
        uint32: scratch, the second table of a small one; tables of more cells than it has are not small. At most 2**16.
    cells, words
        uint16, and the same memory as uint64: scratch.

    """
    for t in range(offsets.size - 1):
        table = tables[offsets[t] : offsets[t + 1]]
        place, last = starts[t], starts[t + 1]
        if last - place == 2 and table.size <= other.size:
            first, second = codes[members[place], :records], codes[members[place + 1], :records]
            _count_small(first, second, np.uint16(sizes[members[place + 1]]), other, cells, words, table)
            continue
        for i in range(records):
            cell = np.uint64(0)
            for at in range(place, last):
                column = members[at]
                cell = cell * sizes[column] + np.uint64(codes[column, i])
            table[cell] += _ONE


@kernel
def add_sums(table, sizes, strides, digits, out):
    """Add each cell of a table to the cell of a smaller one that it is part of.

    Parameters
    ----------
    table
        uint32.
    sizes
        int64, at least one: how many values each attribute of the table has, the last one running fastest.
    strides
        int64: how far apart an attribute's values are in the smaller table; 0 if it is not there.
    digits
        int64, zeros: scratch for the attributes' values.
    out
        int64, in and out: the smaller table.

    """
    last = sizes.size - 1
    inner, step = sizes[last], strides[last]
    place = np.int64(0)
    for start in range(0, table.size, inner):
        if step == 0:
            total = np.int64(0)
            for i in range(inner):
                total += np.int64(table[start + i])
            out[place] += total
        elif step == 1:
            for i in range(inner):
                out[place + i] += np.int64(table[start + i])
        else:
            for i in range(inner):
                out[place + i * step] += np.int64(table[start + i])
        for axis in range(last - 1, -1, -1):
            digits[axis] += 1
            place += strides[axis]
            if digits[axis] < sizes[axis]:
                break
            place -= strides[axis] * sizes[axis]
            digits[axis] = 0


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
