"""Records drawn from tables: each cell of a table gets its share of the records, rounded down or up.

Of k records and cells with shares that add up to 1, the record j takes the cell in which (u + j) / k falls, u uniform
on [0, 1): systematic sampling (Madow 1949). A cell's number of records is its expected one, rounded down or up, and is
right on average. Tables of whole numbers are made so, and records are taken out of them in the same way, part by part:
all parts together are what the tables held. A random order within a part makes what its records get independent of what
they are.
"""

from __future__ import annotations

import math

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import high_product

__all__ = ["draw_conditionally", "order_by_code", "share_records"]


@kernel
def order_by_code(codes, starts, order):
    """Sort records by their codes; ``starts`` (zeros, one more than there are codes) becomes where each code begins."""
    for i in range(codes.size):
        starts[codes[i] + 1] += 1
    for code in range(starts.size - 1):
        starts[code + 1] += starts[code]
    next_place = starts[:-1].copy()
    for i in range(codes.size):
        code = codes[i]
        order[next_place[code]] = i
        next_place[code] += 1


@kernel
def share_records(table, records, words, counts):
    """Give each column of a row its share of the row's records, rounded down or up.

    Parameters
    ----------
    table
        float64: weights of the columns, not negative, a row for each number of records.
    records
        int64, below 2**32: of each row.
    words
        uint64, random: one for each row.
    counts
        Out, uint32: of the table's shape; each row adds up to its records.

    """
    columns = table.shape[1]
    for row in range(records.size):
        count = records[row]
        counts[row] = 0
        if count == 0:
            continue
        total, last = 0.0, 0
        for column in range(columns):
            if table[row, column] > 0.0:
                total += table[row, column]
                last = column
        offset = np.float64(words[row] >> np.uint64(11)) * 2.0**-53
        reached, given = 0.0, np.int64(0)
        for column in range(last):
            if table[row, column] > 0.0:
                reached += table[row, column]
                upto = min(count, np.int64(math.ceil(reached / total * count - offset)))
                if upto > given:
                    counts[row, column] = np.uint32(upto - given)
                    given = upto
        # What rounding leaves at the end falls into the last column that has a weight.
        counts[row, last] = np.uint32(count - given)


@kernel
def draw_conditionally(counts, starts, order, words, drawn):
    """Take a column for each record out of the row that its code names.

    Of a row with n records left, k of which are taken, a column with c of them gives c k / n, rounded down or up, and
    so never more than it has.

    Parameters
    ----------
    counts
        uint32, in and out, a row for each code: how many records of each column are left, at least those taken.
    starts, order
        The records by code, as `order_by_code` sets them; ``order`` is shuffled within each code.
    words
        uint64, random: one for each record, and one for each code after them.
    drawn
        Out, int64: each record's column.

    """
    columns = counts.shape[1]
    for code in range(starts.size - 1):
        start, stop = starts[code], starts[code + 1]
        count = stop - start
        if count == 0:
            continue
        for i in range(count - 1, 0, -1):
            other = np.int64(high_product(words[start + i], np.uint64(i + 1)))
            order[start + i], order[start + other] = order[start + other], order[start + i]
        left = np.int64(0)
        for column in range(columns):
            left += np.int64(counts[code, column])
        # Of 0 to left - 1. Products of two numbers of records stay below 2**62.
        offset = np.int64(high_product(words[drawn.size + code], np.uint64(left)))
        reached, given = np.int64(0), np.int64(0)
        for column in range(columns):
            held = np.int64(counts[code, column])
            if held > 0:
                reached += held
                upto = (count * reached - offset + left - 1) // left
                counts[code, column] = np.uint32(held - (upto - given))
                while given < upto:
                    drawn[order[start + given]] = column
                    given += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
