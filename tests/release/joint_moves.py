"""How much of a plan's events neighbouring data can use, by trying all units: plain loops over what a row may hold."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from dpfast.accounting.events import Gaussian, Pure
from dpfast.exact.balls import as_written

from . import oracles


def added(measure, row):
    """Return what a row, a value or None for each column, adds to a measure, by its documented formula."""
    if measure.kind == "rows":
        return 1
    value = row[measure.column]
    if measure.kind in ("values", "missing"):
        return int((value is None) == (measure.kind == "missing"))
    if measure.kind == "matches":
        # Half more, or half less, for what is above the limit or not; in halves.
        return 0 if value is None else 1 if value > measure.condition.value else -1
    if measure.kind == "product":
        one, other = (added(factor, row) for factor in measure.factors)
        missing = any(row[factor.column] is None for factor in measure.factors)
        half = (1 << measure.shift) >> 1
        return 0 if missing else ((one * other + half) >> measure.shift) - measure.centre
    return oracles.contribution(value, measure.step_exponent, measure.lower, measure.upper, measure.centre)


def contents(measures, values, most):
    """Return all that a unit of so many rows at most can add to a group's figures, one vector a row."""
    rows = [dict(zip(values, row, strict=True)) for row in product(*values.values())]
    singles = sorted({tuple(added(measure, row) for measure in measures) for row in rows})
    found = {tuple([0] * len(measures))}
    for number in range(1, most + 1):
        for some in combinations_with_replacement(singles, number):
            found.add(tuple(map(sum, zip(*some, strict=True))))
    return np.array(sorted(found), np.int64)


def by_charge(parts):
    """Return the noisy measures of each charge."""
    found = {}
    for part in parts:
        found.setdefault(id(part.charge), []).append(part)
    return list(found.values())


def power(some):
    """Return 1 for an event of L1 moves, 2 for one of squared distances."""
    return 2 if isinstance(some[0].charge.event, Gaussian) else 1


def allowed(some):
    """Return what the moves of measures of one charge, each divided by its scale, may add up to: exactly."""
    event = some[0].charge.event
    if isinstance(event, Pure):
        return as_written(event.epsilon)
    return (Fraction(event.sensitivity) / Fraction(event.scale)) ** power(some)


def used(some, move):
    """Return what one group's moves use of their charge's event, exactly."""
    return sum(
        ((abs(Fraction(int(x))) / Fraction(part.scale)) ** power(some) for part, x in zip(some, move, strict=True)),
        Fraction(0),
    )


def most_used(some, moves):
    """Return the most that one group's moves use, exactly: of those that are largest in floats."""
    scales = np.array([part.scale for part in some])
    floats = ((np.abs(moves).astype(float) / scales) ** power(some)).sum(axis=1)
    largest = moves[floats >= floats.max() * (1 - 1e-12)]
    return max(used(some, move) for move in {tuple(move) for move in largest})


def worst(some, values, unit):
    """Return the most that a pair of neighbours uses of a charge's event.

    What is used adds up over groups. Replaced, two units may share each of their groups, or none: anything between is
    between.
    """
    own = contents([part.measure for part in some], values, unit.max_rows_per_group)
    alone = most_used(some, own)
    if unit.neighbors == "add_remove":
        return unit.max_groups * alone
    apart = (own[:, None, :] - own[None, :, :]).reshape(-1, own.shape[1])
    return unit.max_groups * max(2 * alone, most_used(some, apart))


def check(parts, values, unit):
    """Fail where neighbours can use more of an event than it says; return how much of each they use, at most."""
    told = []
    for some in by_charge(parts):
        share = worst(some, values, unit) / allowed(some)
        assert share <= 1, (float(share), [part.measure for part in some], unit)
        told.append(float(share))
    return told
