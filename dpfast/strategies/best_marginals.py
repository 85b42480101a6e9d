"""The best strategies for marginals: weighted tables, and weighted residuals, the best of all under Gaussian noise."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpfast.strategies.axes import terms_of
from dpfast.strategies.marginal_spaces import (
    Attributes,
    MarginalSpaces,
    asked_marginals,
    energies_of,
    outside,
    parts_of,
)
from dpfast.strategies.marginals import MarginalTables, effect_of
from dpfast.strategies.residuals import MarginalResiduals
from dpfast.strategies.weighting import least_error_weights
from dpfast.workloads.workload import Workload

__all__ = ["best_marginals"]

#: More sets of attributes than that take seconds.
_LARGEST_CLOSURE = 1024
#: What weights of tables and residuals are rounded to: the error is flat around its least.
_ENOUGH, _LEAST_RESIDUAL = 255, 64
#: Counts up to 2**31 are to be measured as they are.
_ROOM = 2**31


def best_marginals(workload: Workload, order: Literal[1, 2]) -> list[MarginalSpaces]:
    """Return strategies of marginals with the least error for Laplace (1) or Gaussian noise (2).

    None for a workload that asks anything else than marginals, or too many.
    """
    asked, terms = asked_marginals(workload), terms_of(workload)
    if asked is None or terms is None or max(map(len, asked)) > 10 or len(set(asked)) > _LARGEST_CLOSURE:
        return []
    spaces = parts_of(asked)
    if len(spaces) > _LARGEST_CLOSURE:
        return []
    energy = np.sum([energies_of(term, spaces) for term in terms], axis=0)
    found: list[MarginalSpaces] = [_tables(workload.shape, asked, spaces, energy, order)]
    residuals = _residuals(workload.shape, spaces, energy, order)
    return [*found, residuals] if residuals.largest_count >= _ROOM else found


def _tables(
    shape: tuple[int, ...],
    asked: list[Attributes],
    spaces: list[Attributes],
    energy: NDArray[np.float64],
    order: Literal[1, 2],
) -> MarginalTables:
    weights = least_error_weights(np.maximum(energy, 1e-9 * energy.max()), effect_of(shape, spaces, spaces), order)
    whole = np.rint(weights * min(_ENOUGH, max(1, _ROOM // math.prod(shape)))).astype(int)
    # A marginal that is in no larger one is answered by no other table.
    needed = [not any(set(space) < set(other) for other in asked) for space in spaces]
    whole = np.where(needed, np.maximum(whole, 1), whole)
    divisor = int(np.gcd.reduce(whole))
    kept = [(space, int(weight) // divisor) for space, weight in zip(spaces, whole, strict=True) if weight > 0]
    return MarginalTables(shape, [space for space, _ in kept], [weight for _, weight in kept])


def _residuals(
    shape: tuple[int, ...], spaces: list[Attributes], energy: NDArray[np.float64], order: Literal[1, 2]
) -> MarginalResiduals:
    """Return the residuals with the best weights.

    With weights u_T the error is norm**2 * sum of E_T / (u_T**2 k_T), where the norm squared is the sum of u_T**2 c_T
    for order 2, c_T being the product of n (n - 1), and the norm the sum of u_T a_T for order 1, a_T being that of
    2 (n - 1). It is least at u_T = (E_T / (k_T c_T))**(1/4) and (E_T / (k_T a_T))**(1/3).
    """
    # Along an attribute of a single value nothing varies.
    varying = [place for place, space in enumerate(spaces) if all(shape[axis] > 1 for axis in space)]
    kept = [spaces[place] for place in varying]
    least = 1e-9 * energy.max()
    weights = []
    for space, place in zip(kept, varying, strict=True):
        value = math.prod(shape[axis] ** 2 for axis in space) * outside(shape, space)
        costs = (2 * (shape[axis] - 1) if order == 1 else shape[axis] * (shape[axis] - 1) for axis in space)
        weights.append((max(energy[place], least) / (value * math.prod(costs))) ** (1 / 3 if order == 1 else 1 / 4))
    # The finest whole numbers that leave room for counts, and no finer than pays.
    rows = [
        weight * math.prod(2 * (shape[axis] - 1) for axis in space) * outside(shape, space)
        for weight, space in zip(weights, kept, strict=True)
    ]
    unit = min(_LEAST_RESIDUAL / min(weights), 0.99 * _ROOM / max(rows))
    return MarginalResiduals(shape, kept, [max(1, round(weight * unit)) for weight in weights])
