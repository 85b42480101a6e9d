"""Hadamard response: codes of rows, counts of reports, and the fast transform.

A value v has a block, v >> r, and a column x of the 2**r by 2**r Hadamard matrix, the last r bits of v. A row draws a
row number j of the matrix; its code is 2 * block + s, where s = 1 if j and x have an odd number of ones in common. With
2 B codes a report is j * 2 B + (what randomized response answers for the code).
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_xor, choose, low_product, shift_right

__all__ = ["count_reports", "join_reports", "sign_codes", "transform"]

_ONE = np.uint64(1)
_NO_CODE = np.int32(-1)
_FOLDS = (np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1))


@kernel
def sign_codes(words, values, domain, rank, codes):
    """Store each row's code (int32), -1 for what is not from 0 to ``domain`` - 1; words hold j in their last bits."""
    last = np.uint64((1 << rank) - 1)
    for i in range(codes.size):
        v = np.uint64(values[i])
        common = bit_and(bit_and(np.uint64(words[i]), v), last)
        for fold in _FOLDS:
            common = bit_xor(common, shift_right(common, fold))
        code = np.int32(2 * (v >> np.uint64(rank)) + bit_and(common, _ONE))
        codes[i] = choose(v < domain, code, _NO_CODE)


@kernel
def join_reports(words, answers, rank, codes, released):
    """Store j * ``codes`` + answer, with j the last ``rank`` bits of each word; ``codes`` is 2 B."""
    last = np.uint64((1 << rank) - 1)
    for i in range(released.size):
        released[i] = low_product(bit_and(np.uint64(words[i]), last), codes) + np.uint64(answers[i])


@kernel
def count_reports(reports, tables):
    """Count reports into four tables (uint32, of one length), taken in turns; return how many are no place in them.

    Turns keep one addition from waiting for the one before it where many reports are equal.
    """
    length = np.uint64(tables.shape[1])
    outside = 0
    whole = reports.size >> 2 << 2
    for i in range(0, whole, 4):
        a, b = np.uint64(reports[i]), np.uint64(reports[i + 1])
        c, d = np.uint64(reports[i + 2]), np.uint64(reports[i + 3])
        if max(max(a, b), max(c, d)) < length:
            tables[0, a] += np.uint32(1)
            tables[1, b] += np.uint32(1)
            tables[2, c] += np.uint32(1)
            tables[3, d] += np.uint32(1)
        else:
            for report in (a, b, c, d):
                if report < length:
                    tables[0, report] += np.uint32(1)
                else:
                    outside += 1
    for i in range(whole, reports.size):
        report = np.uint64(reports[i])
        if report < length:
            tables[0, report] += np.uint32(1)
        else:
            outside += 1
    return outside


@kernel
def transform(values):
    """Multiply by the Hadamard matrix, in place: int64, as many as a power of two."""
    half = 1
    while half < values.size:
        for start in range(0, values.size, 2 * half):
            for i in range(start, start + half):
                x, y = values[i], values[i + half]
                values[i], values[i + half] = x + y, x - y
        half *= 2


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
