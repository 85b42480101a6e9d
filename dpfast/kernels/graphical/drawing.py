"""Records drawn from tables: each cell of a table gets its share of the records, rounded down or up.

Of k records and cells with shares that add up to 1, the record j takes the cell in which (u + j) / k falls, u uniform
on [0, 1): systematic sampling (Madow 1949). A cell's number of records is its expected one, rounded down or up, and is
right on average. A random order within the records makes what they get independent of what they are.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import high_product

__all__ = ["draw_conditionally", "order_by_code"]


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
def draw_conditionally(table, starts, order, words, drawn):
    """Draw a column for each record from the table's row that its code names.

    Parameters
    ----------
    table
        float64, a row for each code: weights of the columns, not negative.
    starts, order
        The records by code, as `order_by_code` sets them; ``order`` is shuffled within each code.
    words
        uint64, random: one for each record, and one for each code after them.
    drawn
        Out, int64: each record's column.

    """
    columns = table.shape[1]
    for code in range(starts.size - 1):
        start, stop = starts[code], starts[code + 1]
        count = stop - start
        if count == 0:
            continue
        for i in range(count - 1, 0, -1):
            other = np.int64(high_product(words[start + i], np.uint64(i + 1)))
            order[start + i], order[start + other] = order[start + other], order[start + i]
        total, last = 0.0, 0
        for column in range(columns):
            if table[code, column] > 0.0:
                total += table[code, column]
                last = column
        offset = np.float64(words[drawn.size + code] >> np.uint64(11)) * 2.0**-53
        column, reached = 0, table[code, 0]
        for i in range(count):
            # What rounding leaves at the end falls into the last column that has a weight.
            aim = (offset + i) / count * total
            while column < last and reached <= aim:
                column += 1
                reached += table[code, column]
            drawn[order[start + i]] = column


# Stamp of all kernel sources (scripts/stamp_kernels.py): 9ce2d34c21dbfc36
