"""Exact marginals -> noisy residuals in whole numbers -> estimates of them, and marginals made of these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.randomness import RandomSource
from dpfast.synthesis.residuals.planning import ResidualPlan

__all__ = ["marginal_of", "measure_residuals"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: More records in a cell count as so many.
_LARGEST_COUNT = 2**36


def measure_residuals(
    plan: ResidualPlan, exact: Mapping[Attributes, NDArray[np.int64]], source: RandomSource
) -> dict[Attributes, Floats]:
    """Return an estimate of each residual, an axis for each attribute: what a marginal has beyond its parts.

    Guarantee
        That of the plan. A row is in one cell of each exact marginal at most; a residual is made of one of them, in
        whole numbers, and the noise is certified Gaussian or Laplace noise on these.

    Parameters
    ----------
    plan
        The noise.
    exact
        The counts of each marginal that is asked, in one dimension: private.
    source
        Where keys come from.

    """
    sizes, homes = plan.sizes, _homes(plan)
    found = {}
    for space, noise in plan.noises.items():
        home = homes[space]
        # What has no noise is the number of rows, which is public. The sum of counts in range is not: of neighbours one
        # may have a count that is out of range by one more than the other's.
        table = np.minimum(exact[home], _LARGEST_COUNT) if noise else exact[home]
        table = table.reshape([sizes[a] for a in home])
        table = table.sum(axis=tuple(place for place, a in enumerate(home) if a not in space))
        for axis, a in enumerate(space):
            table = plan.contrasts[a].measure(table, axis)
        residual = np.ascontiguousarray(table).reshape(-1)
        noisy = noise.add(residual, source) if noise else residual
        estimate = noisy.astype(np.float64).reshape([plan.contrasts[a].rows for a in space])
        # Noise outside of the residual's space is no part of it.
        for axis, a in enumerate(space):
            estimate = plan.contrasts[a].estimate(estimate, axis)
        found[space] = estimate
    return found


def _homes(plan: ResidualPlan) -> dict[Attributes, Attributes]:
    """Return, for each space, the smallest marginal asked that it lies within."""
    homes: dict[Attributes, Attributes] = {}
    for held in sorted(plan.asked, key=lambda held: math.prod(plan.sizes[a] for a in held)):
        for space in plan.spaces_of(held):
            homes.setdefault(space, held)
    return homes


def marginal_of(plan: ResidualPlan, residuals: Mapping[Attributes, Floats], attributes: Sequence[int]) -> Floats:
    """Return the marginal over ascending attributes, an axis for each: the residuals within it, spread evenly."""
    sizes = plan.sizes
    table = np.zeros([sizes[a] for a in attributes])
    for space in plan.spaces_of(tuple(attributes)):
        own = residuals[space].reshape([sizes[a] if a in space else 1 for a in attributes])
        table += own / math.prod(sizes[a] for a in attributes if a not in space)
    return table
