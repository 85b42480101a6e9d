"""What a mode costs, by brute force over neighbours: the exact probabilities of all groups' answers together."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp

import dpfast as dpf
from dpfast.accounting.accountants import zcdp
from dpfast.mechanisms.selection.modes import count_slope

GROUPS, CANDIDATES = 3, 2
#: Counts of the other units in a group: few, many for one candidate, many for all.
BASES = list(itertools.product([0, 1, 7, 60], repeat=CANDIDATES))


def a_plan(neighbors, max_groups, rows, **budget):
    """Return a plan of modes for public groups, by units of so many groups and rows."""
    data = pl.DataFrame(schema={"g": pl.Int64, "x": pl.Int64, "u": pl.Int64})
    return dpf.plan(
        data,
        "g",
        keys=pl.DataFrame({"g": range(GROUPS)}),
        m=dpf.mode("x", candidates=list(range(CANDIDATES))),
        privacy_unit="u",
        max_groups=max_groups,
        max_rows_per_group=rows,
        neighbors=neighbors,
        **budget,
    )


def contents(rows):
    """Return what a unit can hold in a group: rows by candidate, some of them of none."""
    return [c for c in itertools.product(range(rows + 1), repeat=CANDIDATES) if sum(c) <= rows]


def units(max_groups, rows):
    """Return every unit after bounding: what it holds in each group, nothing outside max_groups of them."""
    nothing = (0,) * CANDIDATES
    everything = itertools.product(contents(rows), repeat=GROUPS)
    return [unit for unit in everything if sum(c != nothing for c in unit) <= max_groups]


def probabilities(counts, slope):
    weights = np.exp(slope * (np.array(counts, float) - max(counts)))
    return weights / weights.sum()


def divergence(p, q, alpha):
    """Return the Rényi divergence of order alpha, or the largest log ratio for alpha = inf."""
    if alpha == math.inf:
        return float(np.log(p / q).max())
    return float(logsumexp(alpha * np.log(p) + (1 - alpha) * np.log(q)) / (alpha - 1))


def largest_loss(neighbors, max_groups, rows, slope, alpha=math.inf):
    """Return the largest divergence of all groups' answers over all neighbours, either way.

    Groups are independent, and so divergences add up; each group's other units are chosen to be the worst.
    """
    worst = {
        (one, other): max(
            divergence(probabilities(np.add(base, one), slope), probabilities(np.add(base, other), slope), alpha)
            for base in BASES
        )
        for one in contents(rows)
        for other in contents(rows)
    }
    present = units(max_groups, rows)
    others = [((0,) * CANDIDATES,) * GROUPS] if neighbors == "add_remove" else present
    pairs = [(one, other) for one in present for other in others]
    return max(
        sum(worst[pair] for pair in zip(one, other, strict=True))
        for first, second in pairs
        for one, other in ((first, second), (second, first))
    )


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("max_groups", "rows"), [(1, 1), (1, 2), (2, 1), (3, 1), (2, 2)])
def test_the_loss_is_at_most_epsilon(neighbors, max_groups, rows):
    """And comes near it, for both relations: nothing is paid for twice."""
    plan = a_plan(neighbors, max_groups, rows, epsilon=1)
    (part,) = plan._blueprint.parts
    assert part.epsilon * part.charge.count <= 1
    loss = largest_loss(neighbors, max_groups, rows, part.slope)
    print(f"largest loss {loss:.4f} of {part.epsilon * part.charge.count}")
    assert 0.97 < loss <= 1 + 1e-12


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("max_groups", "rows"), [(1, 1), (2, 1), (2, 2)])
def test_rho_bounds_every_renyi_divergence(neighbors, max_groups, rows):
    """The bounded range of so many draws holds for replaced units, whose groups are left and entered in pairs."""
    plan = a_plan(neighbors, max_groups, rows, rho=0.5)
    (part,) = plan._blueprint.parts
    rho = zcdp.cost(part.charge.fact.times(part.charge.count))[0] / 1e18
    assert rho <= 0.5
    losses = [largest_loss(neighbors, max_groups, rows, part.slope, alpha) / alpha for alpha in (1.01, 1.5, 2, 4, 16)]
    print([f"{loss:.4f}" for loss in losses], rho)
    assert max(losses) <= rho + 1e-12


def test_wrong_slopes_are_caught():
    """Mutants: epsilon / R for replaced units, one row's sensitivity for two, a group's price for units of two."""
    assert largest_loss("replace", 1, 1, count_slope(1.0, 1, "add_remove")) > 1.9
    assert largest_loss("replace", 2, 1, count_slope(0.5, 1, "add_remove")) > 1.9
    assert largest_loss("add_remove", 1, 2, count_slope(1.0, 1, "add_remove")) > 1.9
    assert largest_loss("add_remove", 2, 1, count_slope(1.0, 1, "add_remove")) > 1.9
    assert largest_loss("replace", 2, 1, count_slope(1.0, 1, "replace")) > 1.9
