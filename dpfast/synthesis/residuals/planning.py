"""Which noise each residual of the marginals gets: the least weighted sum of variances that a budget allows.

The residual of a set T of attributes is what its marginal says that no smaller set's does: C_T x_T, where C_T is the
product of n I - J along each attribute of n values, in whole numbers, and x_T the marginal. Independent Gaussian noise
of deviation s_T on each of its cells leaves, of the residual's mean form P_T x_T = C_T x_T / product of n, an estimate
C_T y_T / product of n**2 whose noise has the covariance v_T P_T, v_T = s_T**2 / product of n**2. The marginal over B is
the sum over T within B of these estimates, spread evenly over the other attributes of B. So a cell of it has the
variance

    sum over T within B of v_T * product over T of (n - 1) / n * product over B without T of 1 / n**2.

One record more or less moves C_T x_T by a column of C_T, whose squares add up to c_T = product of n (n - 1). The noises
together are one Gaussian noise whose squared sensitivity is the sum of c_T / s_T**2: at a given sum, a weighted sum of
all variances is least where each term's share of the cost is in proportion to the root of cost times weight (Xiao, He,
Zhang, Kifer 2023, theorem 5; their base mechanisms have the same covariances and the same costs).

Where epsilon has no delta beside it, the noise is Laplace noise: a column's magnitudes add up to a_T = product of
2 (n - 1), the epsilons a_T / b_T add up, and the least sum has b_T**3 in proportion to a_T over what b_T**2 counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Event
from dpfast.accounting.privacy_unit import Neighbors, moved_cells
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.noise.integer_noise import (
    IntegerNoise,
    gaussian_of_delta,
    gaussian_of_rho,
    gaussian_of_scale,
    laplace_of_epsilon,
    scale_within,
)
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.synthesis.shares import positive_share

__all__ = ["ResidualPlan", "plan_residuals", "squared_change"]

Attributes = tuple[int, ...]

#: Shares of the cost are whole multiples of a part of it that is about as small.
_FINE = 2**50


def squared_change(sizes: Sequence[int], space: Attributes, neighbors: Neighbors) -> int | Fraction:
    """Return by how much a residual in whole numbers moves at most between neighbours, squared.

    Of a replaced record it is twice a column's squares less twice the product of two columns, which is least where the
    records differ in the attribute of fewest values alone, n: product of n (n - 1) over T, times -1 / (n - 1). How many
    records there are does not change.
    """
    own = math.prod(sizes[a] * (sizes[a] - 1) for a in space)
    if neighbors == "add_remove":
        return own
    fewest = min((sizes[a] for a in space), default=0)
    return Fraction(2 * own * fewest, fewest - 1) if space else 0


@dataclass(frozen=True)
class ResidualPlan:
    """The noise of all residuals.

    Guarantee
        All of it together costs at most the budget. Gaussian noises are one, of the least scale that the budget allows
        at sensitivity 1: the costs' shares add up to 1, and each scale is rounded up (`scale_within`). Epsilons of
        Laplace noises are rounded down, and add up to the budget's at most.

    Attributes
    ----------
    sizes
        How many values each attribute has.
    asked
        The marginals, ascending.
    noises
        For each space that is measured, the noise of its whole numbers; None for a public number of records.
    events
        What is done to the data.

    """

    sizes: tuple[int, ...]
    asked: tuple[Attributes, ...]
    noises: Mapping[Attributes, IntegerNoise | None]
    events: tuple[Event, ...]

    @cached_property
    def variances(self) -> dict[Attributes, float]:
        """Of each residual: v_T above, with what rounding to whole numbers adds."""
        return {
            space: (noise.deviation / math.prod(self.sizes[a] for a in space)) ** 2 if noise else 0.0
            for space, noise in self.noises.items()
        }

    def spaces_of(self, attributes: Attributes) -> list[Attributes]:
        """Return the spaces that a marginal consists of."""
        return parts_of([tuple(a for a in attributes if self.sizes[a] > 1)])

    def variance(self, attributes: Attributes) -> float:
        """Return the variance of the noise of one cell of a marginal within one that is asked; all cells have it."""
        return math.fsum(
            self.variances[space] * _share(self.sizes, attributes, space) for space in self.spaces_of(attributes)
        )


def _share(sizes: Sequence[int], attributes: Attributes, space: Attributes) -> float:
    """Return what a residual's variance is multiplied by in one cell of a marginal."""
    within = math.prod((sizes[a] - 1) / sizes[a] for a in space)
    return within * math.prod(1.0 / sizes[a] ** 2 for a in attributes if a not in space)


def plan_residuals(
    sizes: tuple[int, ...],
    asked: Sequence[Attributes],
    weights: Sequence[float],
    budget: Budget,
    neighbors: Neighbors,
) -> ResidualPlan:
    """Return the plan of the least weighted sum of all cells' variances.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    asked, weights
        The marginals, and a positive weight for each, of every cell's variance.
    budget
        Of all of them.
    neighbors
        Which data are neighbours.

    """
    varying = [tuple(a for a in held if sizes[a] > 1) for held in asked]
    gains: dict[Attributes, float] = dict.fromkeys(parts_of(varying), 0.0)
    for held, weight in zip(varying, weights, strict=True):
        cells = math.prod(sizes[a] for a in held)
        for space in parts_of([held]):
            own = math.prod(sizes[a] ** 2 for a in space)
            gains[space] += weight * cells * _share(sizes, held, space) / own
    if neighbors == "replace":
        del gains[()]
    draws = _laplace if budget.kind == "epsilon" and not budget.delta_units else _gaussian
    noises, events = draws(sizes, gains, budget, neighbors) if gains else ({}, ())
    public: dict[Attributes, IntegerNoise | None] = {(): None}
    return ResidualPlan(sizes, tuple(asked), {**public, **noises}, events)


Drawn: TypeAlias = tuple[dict[Attributes, IntegerNoise], tuple[Event, ...]]


def _gaussian(sizes: Sequence[int], gains: Mapping[Attributes, float], budget: Budget, neighbors: Neighbors) -> Drawn:
    """Return Gaussian noise for each space, which together are one event; ``gains`` is what a variance counts."""
    if budget.kind == "rho":
        noise = gaussian_of_rho(1, budget.units)
    else:
        noise = gaussian_of_delta(1, budget.units, budget.delta_units)
    changes = {space: squared_change(sizes, space, neighbors) for space in gains}
    roots = {space: math.sqrt(float(changes[space]) * gain) for space, gain in gains.items()}
    whole = math.fsum(roots.values())
    counts = {space: max(round(root / whole * _FINE), 1) for space, root in roots.items()}
    together, amount = sum(counts.values()), Fraction(budget.units, UNITS_PER_ONE)
    noises = {}
    for space, count in counts.items():
        scale = scale_within(noise, changes[space], Fraction(count, together), budget.kind, amount)
        noises[space] = gaussian_of_scale(scale, 1)
    return noises, (noise.event,)


def _laplace(sizes: Sequence[int], gains: Mapping[Attributes, float], budget: Budget, neighbors: Neighbors) -> Drawn:
    """Return Laplace noise for each space, an event each."""
    moved = moved_cells(neighbors)
    changes = {space: moved * math.prod(2 * (sizes[a] - 1) for a in space) for space in gains}
    roots = {space: (changes[space] ** 2 * gain) ** (1 / 3) for space, gain in gains.items()}
    whole = math.fsum(roots.values())
    noises = {}
    for space, root in roots.items():
        units = min(int(budget.units * (root / whole) * (1 - 2.0**-40)), budget.units)
        noises[space] = laplace_of_epsilon(changes[space], positive_share(units, budget, "ask fewer marginals"))
    return noises, tuple(noise.event for noise in noises.values())
