"""The budgets of many partitions: adding charges by code, and finding the first budget that is exceeded.

An amount is two int64 limbs, ``whole + part * 10**-18``. A charged whole is at most 10**6 and a call has fewer than
2**33 rows, so no sum of wholes comes near 2**63; parts below 2 * 10**18 are carried at every addition.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.amounts.calibrating import _units_of
from dpfast.kernels.compilation import kernel

__all__ = ["add_amounts", "first_above", "units_of_amounts"]

_ONE = np.int64(10**18)


@kernel
def units_of_amounts(amounts, largest, whole, part):
    """Set both limbs of amounts (float64), rounded up from what was written; return whether all are in range.

    In range are 0, and 1e-18 up to ``largest``, itself at most 10**6.
    """
    good = True
    for i in range(len(amounts)):
        x = amounts[i]
        good &= (x == 0.0) | ((x >= 1e-18) & (x <= largest))
        whole[i], part[i] = _units_of(x)
    return good


@kernel
def add_amounts(codes, whole, part, spent_whole, spent_part):
    """Add each row's amount to ``spent[code]``; return how many rows had a code of no partition.

    ``codes`` uint32, or empty: row i is partition i, and one amount is every partition's. ``whole`` and ``part``
    (int64, ``0 <= part < 2 * 10**18``) have a number a row, or one for all. ``spent_part`` is below 10**18, and so
    it remains. A code beyond the table is not written anywhere.
    """
    size = len(spent_whole)
    rows = len(codes) if len(codes) else size
    by_code = len(codes) > 0
    step = 1 if len(whole) > 1 else 0
    beyond = 0
    if len(whole) != len(part) or (step and len(whole) < rows):
        return rows
    for i in range(rows):
        code = np.int64(codes[i]) if by_code else i
        if code >= size:
            beyond += 1
            continue
        total = spent_part[code] + part[i * step]
        carry = total // _ONE
        spent_part[code] = total - carry * _ONE
        spent_whole[code] += whole[i * step] + carry
    return beyond


@kernel
def first_above(spent_whole, spent_part, cap_whole, cap_part):
    """Return the first index whose amount exceeds the cap, and how many do; -1 where none does."""
    first, count = -1, 0
    for i in range(len(spent_whole)):
        if spent_whole[i] > cap_whole or (spent_whole[i] == cap_whole and spent_part[i] > cap_part):
            count += 1
            if first < 0:
                first = i
    return first, count


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
