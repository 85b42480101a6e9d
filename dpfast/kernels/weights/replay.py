"""Measurements fitted again and again: multiplicative updates that take every measured sum towards its noisy value.

The estimate p is the minimum over positive p of

    sum over x of (p_x ln(p_x / p0_x) - p_x + p0_x) + sum over measurements i of (m_i - <q_i, p>)**2 / (2 c_i)

with the start p0, the noisy values m_i, and c_i > 0, the softness of measurement i. At the minimum p_x = p0_x exp(sum
of t_i q_i(x)) with duals t_i = (m_i - <q_i, p>) / c_i, which are found one after the other: for a query of zeros and
ones with the mass s = <q, p>, to move t by d multiplies the mass by e**d, so that s e**d + c (t + d) = m is to be
solved. With w = s e**d / c this is w + ln w = L, L = ln(s / c) + m / c - t; the new mass is c w, and the new dual
m / c - w. Each such step maximises the concave dual along one coordinate, so that sweeps converge (Dudik, Phillips,
Schapire 2007). c = 0 fits exactly: iterative proportional fitting.

For other queries the mass does not grow as e**d; with r the mass of abs(q), abs(q) <= 1, it moves by at most
r (e**abs(d) - 1), and the step that solves the equation with this in its place never overshoots.

Nothing here decides a private outcome: noisy values go in, and floats in any order of summation do.
"""

from __future__ import annotations

import math

from dpfast.kernels.compilation import inlined, kernel
from dpfast.kernels.weights.cells import total_of

__all__ = [
    "fit_mass",
    "fit_masses",
    "project",
    "replay_marginals",
    "replay_real_rows",
    "replay_rows",
    "root",
    "spread",
    "sum_marginals",
]

LEAST_DUAL = -30.0
"""A mass shrinks to exp(-30) of what the other measurements make it, and no further: it can grow again."""

_EXACT = 1e12


@inlined
def root(level):
    """Return w > 0 with w + ln(w) = level, for levels above -700 up to a relative 1e-13."""
    w = level - math.log(level) if level > 2.0 else math.exp(level) / (1.0 + 0.6 * math.exp(level))
    for _ in range(5):
        w = w * (1.0 + level - math.log(w)) / (1.0 + w)
    return w


@kernel
def fit_mass(mass, dual, value, softness):
    """Return the factor for a query of zeros and ones, and its new dual.

    Parameters
    ----------
    mass, dual
        The query's mass now, and its dual.
    value, softness
        m and c above.

    """
    if not mass > 0.0:
        return 1.0, dual
    if softness * _EXACT <= value or softness == 0.0:
        return max(value, 0.0) / mass, dual
    target = value / softness
    level = math.log(mass / softness) + target - dual
    w = root(level) if level > -600.0 else 0.0
    moved = target - w
    if moved < LEAST_DUAL or w == 0.0:
        return math.exp(LEAST_DUAL - dual), LEAST_DUAL
    return softness * w / mass, moved


@kernel
def fit_masses(masses, duals, values, softness):
    """Fit disjoint queries of zeros and ones: set each mass to its factor, and move its dual.

    Parameters
    ----------
    masses
        In: the queries' masses. Out: what to multiply them by.
    duals, values
        Of each query.
    softness
        Of each query.

    Returns
    -------
    float
        The sum of all moves of masses, as a part of the sum of all masses.

    """
    before, moved = 0.0, 0.0
    for i in range(masses.size):
        mass = masses[i]
        factor, duals[i] = fit_mass(mass, duals[i], values[i], softness[i])
        masses[i] = factor
        before += mass
        moved += abs(factor - 1.0) * mass
    return moved / before if before > 0.0 else 0.0


@kernel
def project(table, left, right, wide, scratch, sums):
    """Set sums[left[i] * wide + right[j]] to the sum of table[i, j] over all such i and j.

    Parameters
    ----------
    table
        float64, rows by columns.
    left, right
        A code for every row, and one for every column, below ``wide``.
    wide
        How many codes columns have.
    scratch
        float64: as many rows as there are codes of rows, as many columns as the table has; used if wide > 1.
    sums
        Codes of rows times ``wide``.

    """
    sums[:] = 0.0
    rows, columns = table.shape
    if wide == 1:
        for i in range(rows):
            sums[left[i]] += total_of(table[i])
        return
    codes = sums.size // wide
    for a in range(codes):
        for j in range(columns):
            scratch[a, j] = 0.0
    for i in range(rows):
        a = left[i]
        for j in range(columns):
            scratch[a, j] += table[i, j]
    for a in range(codes):
        for j in range(columns):
            sums[a * wide + right[j]] += scratch[a, j]


@kernel
def spread(factors, left, right, wide, scratch, table):
    """Multiply table[i, j] by factors[left[i] * wide + right[j]], for arrays as in `project`."""
    rows, columns = table.shape
    if wide == 1:
        for i in range(rows):
            factor = factors[left[i]]
            for j in range(columns):
                table[i, j] *= factor
        return
    for a in range(factors.size // wide):
        for j in range(columns):
            scratch[a, j] = factors[a * wide + right[j]]
    for i in range(rows):
        a = left[i]
        for j in range(columns):
            table[i, j] *= scratch[a, j]


@kernel
def replay_marginals(order, lefts, rights, wides, offsets, values, softness, scratch, factors, duals, table):
    """Fit each marginal of a table once, in the order given; return the furthest that a factor was from 1.

    Parameters
    ----------
    order
        Which marginals.
    lefts, rights, wides
        For every marginal the codes of `project`, a row each.
    offsets
        Marginal g has the entries offsets[g] to offsets[g + 1] of what follows.
    values, softness
        The noisy masses, and how soft they are.
    scratch, factors
        Scratch memory: as for `project`, and the entries of the largest marginal.
    duals, table
        What is moved.

    """
    moved = 0.0
    for place in range(order.size):
        g = order[place]
        start, stop = offsets[g], offsets[g + 1]
        own = factors[: stop - start]
        project(table, lefts[g], rights[g], wides[g], scratch, own)
        for c in range(start, stop):
            own[c - start], duals[c] = fit_mass(own[c - start], duals[c], values[c], softness[c])
            moved = max(moved, abs(own[c - start] - 1.0))
        spread(own, lefts[g], rights[g], wides[g], scratch, table)
    return moved


@kernel
def sum_marginals(which, table, lefts, rights, wides, offsets, scratch, sums):
    """Set the entries of ``sums`` that belong to the marginals ``which`` of a table (see `replay_marginals`)."""
    for place in range(which.size):
        g = which[place]
        project(table, lefts[g], rights[g], wides[g], scratch, sums[offsets[g] : offsets[g + 1]])


@kernel
def replay_rows(queries, values, softness, sweeps, tolerance, duals, weights):
    """Fit measured queries of zeros and ones, the first one last, up to ``sweeps`` times; return how often.

    Parameters
    ----------
    queries
        A row for each measured query, uint8.
    values, softness
        The noisy answers, and how soft they are.
    sweeps, tolerance
        How often at most; and it ends with a sweep in which no factor was further than this from 1.
    duals, weights
        What is moved.

    """
    for sweep in range(sweeps):
        moved = 0.0
        for place in range(values.size):
            i = (place + 1) % values.size
            mass = 0.0
            for x in range(weights.size):
                mass += queries[i, x] * weights[x]
            factor, duals[i] = fit_mass(mass, duals[i], values[i], softness[i])
            step = factor - 1.0
            moved = max(moved, abs(step))
            for x in range(weights.size):
                weights[x] += queries[i, x] * (step * weights[x])
        if moved <= tolerance:
            return sweep + 1
    return sweeps


@kernel
def replay_real_rows(queries, values, softness, sweeps, tolerance, duals, weights):
    """Fit measured queries with coefficients from -1 to 1 (float64), arrays as in `replay_rows`."""
    for sweep in range(sweeps):
        moved = 0.0
        for place in range(values.size):
            i = (place + 1) % values.size
            answer, mass = 0.0, 0.0
            for x in range(weights.size):
                answer += queries[i, x] * weights[x]
                mass += abs(queries[i, x]) * weights[x]
            missing = values[i] - answer - softness[i] * duals[i]
            sign = 1.0 if missing > 0.0 else -1.0
            # The mass in the place of the answer, seen from the side that it moves to.
            factor, _ = fit_mass(mass, 0.0, mass + abs(missing), softness[i])
            step = sign * math.log(max(factor, 1.0))
            duals[i] += step
            moved = max(moved, abs(step))
            for x in range(weights.size):
                weights[x] *= math.exp(step * queries[i, x])
        if moved <= tolerance:
            return sweep + 1
    return sweeps


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
