"""Which noise each residual of the marginals gets: the least weighted sum of variances that a budget allows.

The residual of a set T of attributes is what its marginal x_T says that no smaller set's does: R_T x_T, where R_T is a
product of contrasts R_i of each attribute, in whole numbers. Contrasts of an attribute of n values are n I - J where
its values are treated alike, and others where ranges of it are asked. Independent Gaussian noise of deviation s_T on
each number of R_T x_T leaves, by least squares, an estimate of the residual; a query's variance is a sum over all T of
s_T**2 times a number (`queries`). Of a cell of the marginal over B, where all contrasts are n I - J, it is

    sum over T within B of s_T**2 * product over T of (n - 1) / n**3 * product over B without T of 1 / n**2.

One record more or less moves R_T x_T by a column of R_T, whose squares add up to c_T at most, the product of those of
the R_i: n (n - 1) for n I - J. The noises together are one Gaussian noise whose squared sensitivity is the sum of
c_T / s_T**2 at most: at a given sum, a weighted sum of all variances is least where each term's share of the cost is in
proportion to the root of cost times weight (Xiao, He, Zhang, Kifer 2023, theorem 5; 2024, for contrasts of one's own).

Where epsilon has no delta beside it, the noise is Laplace noise: a column's magnitudes add up to a_T, a product, too,
the epsilons a_T / b_T add up, and the least sum has b_T**3 in proportion to a_T over what b_T**2 counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
from dpfast.progress import silent
from dpfast.strategies.contrasts import Contrasts
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.strategies.strategy import Order
from dpfast.synthesis.residuals.contrasts import find_contrasts, gains_of
from dpfast.synthesis.residuals.queries import Along, Block, blocks_of_marginals
from dpfast.synthesis.shares import positive_share

__all__ = ["ResidualPlan", "plan_queries", "plan_residuals", "squared_change"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: Shares of the cost are whole multiples of a part of it that is about as small.
_FINE = 2**50


def squared_change(contrasts: Sequence[Contrasts], space: Attributes, neighbors: Neighbors) -> int | Fraction:
    """Return by how much a residual in whole numbers moves at most between neighbours, squared.

    Of a replaced record it is at most twice a column's squares less twice the product of two columns. The latter is a
    product of inner products, each at most the squares in magnitude, so that it is least where one of them is its
    attribute's least, which is below 0, and all others are squares. How many records there are does not change.
    """
    own = math.prod(contrasts[a].squares for a in space)
    if neighbors == "add_remove":
        return own
    if not space:
        return 0
    return 2 * own * (1 + max(Fraction(-contrasts[a].inner, contrasts[a].squares) for a in space))


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
        The marginals that are measured, ascending.
    noises
        For each space that is measured, the noise of its whole numbers; None for a public number of records.
    events
        What is done to the data.
    contrasts
        Of each attribute: what its residuals are measured by.

    """

    sizes: tuple[int, ...]
    asked: tuple[Attributes, ...]
    noises: Mapping[Attributes, IntegerNoise | None]
    events: tuple[Event, ...]
    contrasts: tuple[Contrasts, ...]

    @cached_property
    def noise(self) -> dict[Attributes, float]:
        """The variance of the noise on each number of a residual, with what rounding to whole numbers adds."""
        return {space: noise.deviation**2 if noise else 0.0 for space, noise in self.noises.items()}

    @property
    def along(self) -> Along:
        """What queries of each attribute make of noise: anew for each use, as it keeps the queries that it is asked."""
        return Along(self.contrasts)

    def spaces_of(self, attributes: Attributes) -> list[Attributes]:
        """Return the spaces that a marginal consists of."""
        return parts_of([tuple(a for a in attributes if self.sizes[a] > 1)])

    def variance(self, attributes: Attributes) -> float:
        """Return the mean variance of the noise of the cells of a marginal within one that is asked.

        All cells have it where all contrasts are even.
        """
        return math.fsum(
            self.noise[space]
            * math.prod(self._of_cells[a] if a in space else 1.0 / self.sizes[a] ** 2 for a in attributes)
            for space in self.spaces_of(attributes)
        )

    def variances(self, block: Block) -> Floats:
        """Return the variance of each query about attributes that one of those asked has."""
        return block.variances({space: self.noise[space] for space in self.spaces_of(block.attributes)}, self.along)

    def mean_variance(self, block: Block) -> float:
        """Return the mean of `variances`, without a number for each query where they are products."""
        spaces = self.spaces_of(block.attributes)
        energies = block.energies(spaces, self.along)
        return math.fsum(self.noise[space] * one for space, one in zip(spaces, energies, strict=True)) / len(block)

    def residual_variance(self, space: Attributes) -> float:
        """Return the variance of the noise of a residual's estimate in each direction, of even contrasts."""
        return self.noise[space] / math.prod(self.sizes[a] ** 2 for a in space)

    @cached_property
    def _of_cells(self) -> list[float]:
        return [float(one.of_values.mean()) for one in self.contrasts]


def plan_residuals(
    sizes: tuple[int, ...],
    asked: Sequence[Attributes],
    weights: Sequence[float],
    budget: Budget,
    neighbors: Neighbors,
) -> ResidualPlan:
    """Return the plan of the least weighted sum of the variances of all cells of marginals; see `plan_queries`."""
    return plan_queries(sizes, blocks_of_marginals(sizes, asked), weights, budget, neighbors)


def plan_queries(
    sizes: tuple[int, ...],
    blocks: Sequence[Block],
    weights: Sequence[float],
    budget: Budget,
    neighbors: Neighbors,
    show: Callable[[int], object] = silent,
) -> ResidualPlan:
    """Return the plan of the least weighted sum of the variances of all queries, of the contrasts that are found.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    blocks, weights
        The queries, and a positive weight for each part of the workload, of every query's variance.
    budget
        Of all of them.
    neighbors
        Which data are neighbours.
    show
        Called with the number of each attribute whose contrasts are searched for: of 1,024 values that takes seconds.

    """
    order: Order = 1 if budget.kind == "epsilon" and not budget.delta_units else 2
    contrasts = find_contrasts(sizes, blocks, weights, order, show)
    gains = gains_of(blocks, weights, Along(contrasts))
    if neighbors == "replace":
        del gains[()]
    draws = _laplace if order == 1 else _gaussian
    noises, events = draws(contrasts, gains, budget, neighbors) if gains else ({}, ())
    public: dict[Attributes, IntegerNoise | None] = {(): None}
    asked = tuple(block.attributes for block in blocks if block.attributes)
    return ResidualPlan(sizes, asked, {**public, **noises}, events, contrasts)


Drawn: TypeAlias = tuple[dict[Attributes, IntegerNoise], tuple[Event, ...]]


def _gaussian(
    contrasts: Sequence[Contrasts], gains: Mapping[Attributes, float], budget: Budget, neighbors: Neighbors
) -> Drawn:
    """Return Gaussian noise for each space, which together are one event; ``gains`` is what a variance counts."""
    if budget.kind == "rho":
        noise = gaussian_of_rho(1, budget.units)
    else:
        noise = gaussian_of_delta(1, budget.units, budget.delta_units)
    changes = {space: squared_change(contrasts, space, neighbors) for space in gains}
    roots = {space: math.sqrt(float(changes[space]) * gain) for space, gain in gains.items()}
    whole = math.fsum(roots.values())
    counts = {space: max(round(root / whole * _FINE), 1) for space, root in roots.items()}
    together, amount = sum(counts.values()), Fraction(budget.units, UNITS_PER_ONE)
    noises = {}
    for space, count in counts.items():
        scale = scale_within(noise, changes[space], Fraction(count, together), budget.kind, amount)
        noises[space] = gaussian_of_scale(scale, 1)
    return noises, (noise.event,)


def _laplace(
    contrasts: Sequence[Contrasts], gains: Mapping[Attributes, float], budget: Budget, neighbors: Neighbors
) -> Drawn:
    """Return Laplace noise for each space, an event each."""
    moved = moved_cells(neighbors)
    changes = {space: moved * math.prod(contrasts[a].magnitudes for a in space) for space in gains}
    roots = {space: (changes[space] ** 2 * gain) ** (1 / 3) for space, gain in gains.items()}
    whole = math.fsum(roots.values())
    noises = {}
    for space, root in roots.items():
        units = min(int(budget.units * (root / whole) * (1 - 2.0**-40)), budget.units)
        noises[space] = laplace_of_epsilon(changes[space], positive_share(units, budget, "ask fewer marginals"))
    return noises, tuple(noise.event for noise in noises.values())
