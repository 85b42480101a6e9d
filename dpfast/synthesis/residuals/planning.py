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
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, gaussian_of_scale, scale_within
from dpfast.strategies.marginal_spaces import parts_of

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
        All of it together is one Gaussian noise, of the ``noise`` that the budget buys at sensitivity 1: the costs'
        shares add up to 1, and each scale is rounded up (`scale_within`).

    Attributes
    ----------
    sizes
        How many values each attribute has.
    asked
        The marginals, ascending.
    scales
        For each space that is measured, the deviation of its noise in whole numbers; 0 for a public number of records.
    noise
        What is done to the data.

    """

    sizes: tuple[int, ...]
    asked: tuple[Attributes, ...]
    scales: Mapping[Attributes, float]
    noise: IntegerNoise

    @cached_property
    def variances(self) -> dict[Attributes, float]:
        """Of each residual: v_T above, with what rounding to whole numbers adds."""
        found = {}
        for space, scale in self.scales.items():
            deviation = gaussian_of_scale(scale, 1).deviation if scale else 0.0
            found[space] = (deviation / math.prod(self.sizes[a] for a in space)) ** 2
        return found

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
    noise: IntegerNoise,
    neighbors: Neighbors,
    argument: str,
    amount: Fraction,
) -> ResidualPlan:
    """Return the plan of the least weighted sum of all cells' variances.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    asked, weights
        The marginals, and a positive weight for each, of every cell's variance.
    noise
        Gaussian noise for a vector that moves by 1.
    neighbors
        Which data are neighbours.
    argument, amount
        The budget's name and amount, for an error about noise that is too wide.

    """
    varying = [tuple(a for a in held if sizes[a] > 1) for held in asked]
    gains: dict[Attributes, float] = dict.fromkeys(parts_of(varying), 0.0)
    for held, weight in zip(varying, weights, strict=True):
        cells = math.prod(sizes[a] for a in held)
        for space in parts_of([held]):
            gains[space] += weight * cells * _share(sizes, held, space)
    changes = {space: squared_change(sizes, space, neighbors) for space in gains}
    costs = {
        space: float(change) / math.prod(sizes[a] ** 2 for a in space) for space, change in changes.items() if change
    }
    roots = {space: math.sqrt(cost * gains[space]) for space, cost in costs.items()}
    whole = math.fsum(roots.values())
    counts = {space: max(round(root / whole * _FINE), 1) for space, root in roots.items()}
    together = sum(counts.values())
    scales = dict.fromkeys(gains, 0.0)
    for space, count in counts.items():
        part = Fraction(count, together)
        scales[space] = scale_within(noise, changes[space], part, argument, amount)
    return ResidualPlan(sizes, tuple(asked), scales, noise)
