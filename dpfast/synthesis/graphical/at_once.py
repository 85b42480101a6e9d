"""All sets of columns measured at once, where one model holds them all: nothing is paid for selections.

The residuals of `dpfast.synthesis.residuals` measure them with the least sum of variances, and single columns with
them. How large the mean error of a set is follows from that and the number of records: where it is small, nothing that
is selected does better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.randomness import RandomSource
from dpfast.synthesis.graphical.softness import FIRMEST
from dpfast.synthesis.residuals.contrasts import LARGEST_MARGINAL
from dpfast.synthesis.residuals.measuring import marginal_of, measure_residuals
from dpfast.synthesis.residuals.planning import ResidualPlan, plan_residuals

__all__ = ["error_at_once", "fit_at_once", "measure_at_once", "noise_at_once", "plan_at_once"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: More sets, or larger ones, would take minutes.
_MOST_SETS, _MOST_COLUMNS = 2_000, 8
#: Walks along the tree: so many, or what takes so many steps; and when they end.
_WALKS, _MOST_STEPS, _TOLERANCE = 400, 1 << 33, 1e-5


def plan_at_once(
    sizes: tuple[int, ...],
    sets: Sequence[Attributes],
    together: Sequence[Attributes],
    most_cells: float,
    units: int,
    neighbors: Neighbors,
) -> ResidualPlan | None:
    """Return the plan to measure all sets for a rho, in units; None where no model of so many cells holds them.

    ``together`` are other attributes that the model holds together.
    """
    largest = max(math.prod(sizes[a] for a in held) for held in sets)
    if len(sets) > _MOST_SETS or max(map(len, sets)) > _MOST_COLUMNS or largest > min(most_cells, LARGEST_MARGINAL):
        return None
    held_by_sets = {a for held in sets for a in held}
    if any(size > 1 and a not in held_by_sets for a, size in enumerate(sizes)):
        return None  # other columns are measured by themselves
    if JunctionTree.holding(sizes, [*sets, *together]).cells > most_cells:
        return None
    return plan_residuals(sizes, sets, [1.0] * len(sets), Budget("rho", units), neighbors)


def noise_at_once(plan: ResidualPlan) -> list[float]:
    """Return what the deviations of the cells of each set add up to."""
    return [math.prod(plan.sizes[a] for a in held) * math.sqrt(plan.variance(held)) for held in plan.asked]


def error_at_once(each: Sequence[float], records: float) -> float:
    """Return the mean total variation distance that noise alone makes, by `noise_at_once`, of so many records."""
    return math.sqrt(2.0 / math.pi) * math.fsum(min(one / (2.0 * records), 1.0) for one in each) / len(each)


def measure_at_once(
    plan: ResidualPlan, exact: Mapping[Attributes, NDArray[np.int64]], source: RandomSource
) -> tuple[dict[Attributes, Measurement], Floats]:
    """Return a measurement of each set, and the number of records as measured.

    Guarantee
        That of `measure_residuals`: what neighbours change in all of it costs the plan's rho.

    """
    residuals = measure_residuals(plan, exact, source)
    found = {}
    for held in plan.asked:
        variance = plan.variance(held)
        values = marginal_of(plan, residuals, held).reshape(-1)
        largest = max(
            plan.residual_variance(space) / math.prod(plan.sizes[a] for a in held if a not in space)
            for space in plan.spaces_of(held)
        )
        found[held] = Measurement(held, values, variance, FIRMEST * math.sqrt(variance), largest)
    return found, residuals[()]


def fit_at_once(weights: TreeWeights, sets: int) -> None:
    """Fit weights to so many sets."""
    steps = 2 * sets * weights.tree.cells
    weights.fit(max(min(_WALKS, _MOST_STEPS // steps), 20), _TOLERANCE)
