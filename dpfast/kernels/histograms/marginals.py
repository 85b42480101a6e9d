"""Marginal tables of a histogram, many at once, and their coefficients spread back over its cells.

A step sums a table of (outer, size, inner) numbers along its middle axis: attributes that stand beside each other are
summed out together, by addresses alone. The steps of many marginals form a tree: a table that several of them take is
made once, of the smallest table that there is. Transposed, the steps are gone through backwards, and each adds what
its result has got to every place that it was summed from.

**Rounding.** Numbers are added to each other plainly along rows, and in runs of RUN by eight sums with a rest between
runs (`dpfast.kernels.histograms.prefixes`): with u = 2**-53 a step errs by less than min(size, RUN) u, or size u where
inner is above 1, times the sum of the magnitudes.
"""

from __future__ import annotations

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.histograms.prefixes import two_sum

__all__ = ["spread_marginals", "sum_marginals"]

RUN = 1024
"""Numbers that are summed without a rest."""

COLUMNS = 1024
"""Sums that are kept in the cache at a time: 8 kB."""

_LANES = 8


@inlined
def sum_run(values, start, stop):
    """Return the sum of values[start:stop], by eight sums side by side."""
    zero = values.dtype.type(0)
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = zero
    whole = start + (stop - start) // _LANES * _LANES
    for i in range(start, whole, _LANES):
        a0 += values[i]
        a1 += values[i + 1]
        a2 += values[i + 2]
        a3 += values[i + 3]
        a4 += values[i + 4]
        a5 += values[i + 5]
        a6 += values[i + 6]
        a7 += values[i + 7]
    total = ((a0 + a4) + (a1 + a5)) + ((a2 + a6) + (a3 + a7))
    for i in range(whole, stop):
        total += values[i]
    return total


@kernel
def sum_middle(values, outer, size, inner, out):
    """Sum a table of (outer, size, inner) along its middle axis: ``out`` has (outer, inner) numbers."""
    if inner == 1:
        for row in range(outer):
            total = rest = values.dtype.type(0)
            for start in range(row * size, (row + 1) * size, RUN):
                run = sum_run(values, start, min(start + RUN, (row + 1) * size))
                total, rest = two_sum(total, run + rest)
            out[row] = total + rest
        return
    for row in range(outer):
        for column in range(0, inner, COLUMNS):
            width = min(COLUMNS, inner - column)
            first = row * size * inner + column
            sums = out[row * inner + column : row * inner + column + width]
            sums[:] = values[first : first + width]
            for i in range(1, size):
                own = values[first + i * inner : first + i * inner + width]
                for j in range(width):
                    sums[j] += own[j]


@kernel
def spread_middle(sums, outer, size, inner, out):
    """Add each of (outer, inner) numbers to all ``size`` numbers that `sum_middle` makes it of."""
    if inner == 1:
        for row in range(outer):
            for i in range(row * size, (row + 1) * size):
                out[i] += sums[row]
        return
    for row in range(outer):
        own = sums[row * inner : (row + 1) * inner]
        for i in range(size):
            place = (row * size + i) * inner
            target = out[place : place + inner]
            for j in range(inner):
                target[j] += own[j]


@kernel
def sum_marginals(histogram, steps, tables):
    """Fill the tables, step by step.

    Parameters
    ----------
    histogram
        int64 or float64, in one dimension.
    steps
        int64, five numbers each: where the table to be summed begins among the tables, -1 for the histogram; where the
        sums go; outer, size and inner. A table is summed after it was made.
    tables
        Of the histogram's type, in one dimension.

    """
    for step in range(len(steps)):
        source, target, outer, size, inner = steps[step]
        out = tables[target : target + outer * inner]
        if source < 0:
            sum_middle(histogram, outer, size, inner, out)
        else:
            sum_middle(tables[source : source + outer * size * inner], outer, size, inner, out)


@kernel
def spread_marginals(steps, tables, out):
    """Add what the tables hold to the cells that they are sums of; the tables are overwritten.

    Parameters
    ----------
    steps
        As for `sum_marginals`.
    tables
        float64: the coefficients of the marginals where their sums would go, and zeros elsewhere.
    out
        One float64 for each cell.

    """
    for step in range(len(steps) - 1, -1, -1):
        source, target, outer, size, inner = steps[step]
        sums = tables[target : target + outer * inner]
        if source < 0:
            spread_middle(sums, outer, size, inner, out)
        else:
            spread_middle(sums, outer, size, inner, tables[source : source + outer * size * inner])


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
