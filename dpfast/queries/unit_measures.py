"""What privacy units are measured by as a whole: their sums in a group, clipped, and their means.

A unit that has a value in a group adds one number to it, a function of all its rows there. Of its groups it keeps at
most ``max_groups``, chosen at random, as for every query; of each of these all rows count, whatever
``max_rows_per_group`` says.

Proof of the sensitivities, which are those of `Measure.sensitivity` (Soundness rule 14) with R = 1. What a unit adds to
a group that it keeps is between ``lower - centre`` and ``upper - centre``, and it adds nothing to others:

- of a sum it is clipped, last of all. What is clipped is exact, and so does not depend on the order of rows: values are
  whole steps of at most 2**47 in magnitude, of which up to 2**38, the documented limit of rows, are added up in two
  numbers, of 24 bits each and of the rest;
- of a mean, floor(s / n + 1/2) lies between the bounds, as s / n does, and these are whole numbers. s stays below
  2**24 * 2**38 = 2**62;
- of the number of units it is 1.

So one unit more or fewer moves at most G groups, by M = max(abs(lower - centre), abs(upper - centre)) each. A unit that
is replaced may be in other groups before and after, by M each, or in the same: by S = max(high, 0) - min(low, 0) at
most, 0 being what it adds where it has no value. All these are reached.

Two numbers hold a sum: each row adds ``v >> 24``, at most 2**23 in magnitude, to the one, and the 24 bits that are left
to the other: both stay below 2**62.
"""

from __future__ import annotations

from dataclasses import replace

from dpfast.queries.basic import Query, UnitQuery
from dpfast.queries.measures import FINEST_EXPONENT, Measure, sum_measure

__all__ = ["adds_once", "unit_measures"]

#: Values are added up in steps that are finer by so many bits than what their sum is clipped in, and below so many.
_FINER, _LARGEST = 11, 2**47


def unit_measures(query: Query) -> list[Measure]:
    """Return the measures that a sum or a mean of units is answered from.

    Examples
    --------
    >>> from dpfast.queries.basic import sum
    >>> total, = unit_measures(sum("x", unit_bounds=(0, 1)))
    >>> total.extremes, total.step_exponent, total.factors[0].step_exponent, total.shift
    ((0, 8388608), -23, -34, 11)

    """
    by_row = sum_measure(query)
    if query.kind == "mean":
        counted = Measure("unit_values", query.column)
        return [replace(by_row, kind="unit_mean", factors=(by_row,)), counted]
    # Of whole numbers a step is 1 at least.
    finest = 0 if query.values.whole else FINEST_EXPONENT
    exponent = min(max(by_row.step_exponent - _FINER, finest), by_row.step_exponent)
    addend = Measure("addend", query.column, exponent, -_LARGEST, _LARGEST, tick=by_row.tick)
    return [replace(by_row, kind="unit_sum", factors=(addend,))]


def adds_once(query: object) -> bool:
    """Return whether a unit adds one number to each of its groups, whatever rows it has there: 1, or what it clips.

    Examples
    --------
    >>> from dpfast.queries import count, mean, units
    >>> [adds_once(query) for query in (units(), count(), mean("x", bounds=(0, 1), per="unit"))]
    [True, False, True]

    """
    return isinstance(query, UnitQuery) or (isinstance(query, Query) and query.kind == "units")
