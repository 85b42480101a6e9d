"""Exact counts of many marginals of the same records: their codes are read once, and each table is filled in turn."""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.grouping.counting import UNKNOWN

__all__ = ["count_marginals", "mark_known"]


@kernel
def mark_known(values, valid, declared, other, codes, known):
    """Store one attribute's code for each record, and take records out whose value has none.

    Parameters
    ----------
    values, valid
        int64, and uint8: 0 where null.
    declared
        uint64: codes from 0 to this, exclusive, are as they are.
    other
        uint64: the code of null, UNKNOWN for none.
    codes
        Out, uint32.
    known
        uint8, in and out: 0 for records that are in no cell.

    """
    for i in range(codes.size):
        code = np.uint64(values[i])
        code = code if code < declared else UNKNOWN
        code = code if valid[i] != 0 else other
        known[i] = known[i] if code < UNKNOWN else np.uint8(0)
        codes[i] = np.uint32(code)


@kernel
def count_marginals(codes, known, members, starts, sizes, offsets, tables):
    """Add each known record to its cell in each marginal.

    Parameters
    ----------
    codes
        uint32, a row for each attribute, each below the attribute's size where the record is known.
    known
        uint8, one for each record.
    members, starts
        int64: marginal m is over the attributes members[starts[m]:starts[m + 1]].
    sizes
        int64: the values of each attribute.
    offsets
        int64: marginal m has the cells offsets[m] to offsets[m + 1] of ``tables``; the last one is for the others.
    tables
        int64, in and out.

    """
    trash = tables.size - 1
    for m in range(offsets.size - 1):
        first, last = starts[m], starts[m + 1]
        base, stop = offsets[m], offsets[m + 1]
        for i in range(known.size):
            cell = np.int64(0)
            for place in range(first, last):
                cell = cell * sizes[members[place]] + np.int64(codes[members[place], i])
            cell += base
            inside = (known[i] != 0) & (cell < stop)
            tables[cell if inside else trash] += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 9ce2d34c21dbfc36
