"""Multiplicative weights with a factor for each cell of a marginal: the table is read, never spread over the cells.

Attributes next to each other that are all kept, or all summed over, count as one, so that kept and summed axes take
turns. An axis has a size and a step: how far the marginal's index moves when the axis's does, 0 where it is summed
over. Cells are walked in runs of the last axis: with step 1 a run meets consecutive cells of the marginal, with step
0 only one. Runs that are too short for whole vectors are walked together with the axes before them by a list of the
marginal's indices, ``pattern``, as it repeats.
"""

from __future__ import annotations

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import add_in_any_order
from dpfast.kernels.weights.cells import total_of
from dpfast.kernels.weights.slabs import add_to_run, multiply_run

__all__ = ["ALIKE", "CONSECUTIVE", "LISTED", "add_marginal", "multiply_marginal", "sum_marginal"]

ALIKE, CONSECUTIVE, LISTED = 0, 1, 2
"""What cells of the marginal a run meets: one alone, one after the other, or those that a pattern lists."""


@kernel
def _place(sizes, steps, number):
    """Return the marginal's index where the axes stand at this number."""
    place = 0
    for axis in range(sizes.size - 1, -1, -1):
        place += number % sizes[axis] * steps[axis]
        number //= sizes[axis]
    return place


@kernel
def _multiply_each(weights, factors):
    total = 0.0
    for i in range(weights.size):
        weight = weights[i] * factors[i]
        weights[i] = weight
        total = add_in_any_order(total, weight)
    return total


@kernel
def _spread(cells, pattern, spread):
    """Set what belongs to each cell of a run, from a run's cells of the marginal."""
    for i in range(spread.size):
        spread[i] = cells[pattern[i]]


@kernel
def _gather(spread, pattern, cells):
    """Add what was summed over runs to their cells of the marginal, and begin again at 0."""
    for i in range(spread.size):
        cells[pattern[i]] += spread[i]
        spread[i] = 0.0


@kernel
def _add_each(cells, terms):
    for i in range(cells.size):
        cells[i] += terms[i]


@kernel
def multiply_marginal(weights, sizes, steps, length, form, pattern, spread, factors):
    """Multiply every weight by its cell's factor in the marginal, in place; return the sum of the new weights.

    Parameters
    ----------
    weights
        All cells, float64.
    sizes, steps
        An int64 for each axis that is not within a run.
    length, form, pattern
        The cells of a run; ALIKE, CONSECUTIVE or LISTED; for LISTED the index of each cell of a run in the marginal,
        seen from the run's first, int32.
    spread
        Scratch memory for LISTED, a float64 for each cell of a run.
    factors
        A float64 for each cell of the marginal.

    """
    total, last = 0.0, -1
    for number in range(weights.size // length):
        run = weights[number * length : (number + 1) * length]
        place = _place(sizes, steps, number)
        if form == ALIKE:
            total += factors[place] * multiply_run(run, factors[place])
        elif form == CONSECUTIVE:
            total += _multiply_each(run, factors[place : place + length])
        else:
            # Runs that follow each other mostly meet the same cells of the marginal.
            if place != last:
                _spread(factors[place:], pattern, spread)
                last = place
            total += _multiply_each(run, spread)
    return total


@kernel
def sum_marginal(weights, sizes, steps, length, form, pattern, spread, table):
    """Add every weight to its cell of the marginal."""
    last = -1
    spread[:] = 0.0
    for number in range(weights.size // length):
        run = weights[number * length : (number + 1) * length]
        place = _place(sizes, steps, number)
        if form == ALIKE:
            table[place] += total_of(run)
        elif form == CONSECUTIVE:
            _add_each(table[place : place + length], run)
        else:
            if place != last and last >= 0:
                _gather(spread, pattern, table[last:])
            last = place
            _add_each(spread, run)
    if last >= 0:
        _gather(spread, pattern, table[last:])


@kernel
def add_marginal(logarithms, sizes, steps, length, form, pattern, spread, terms):
    """Add to every weight's logarithm its cell's term in the marginal, in place."""
    last = -1
    for number in range(logarithms.size // length):
        run = logarithms[number * length : (number + 1) * length]
        place = _place(sizes, steps, number)
        if form == ALIKE:
            add_to_run(run, terms[place])
        elif form == CONSECUTIVE:
            _add_each(run, terms[place : place + length])
        else:
            if place != last:
                _spread(terms[place:], pattern, spread)
                last = place
            _add_each(run, spread)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
