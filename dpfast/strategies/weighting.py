"""How much each level of a hierarchy should count for a workload: weights that make the error least."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_weights", "ladder", "largest_weight"]

_ROUNDS = 300
#: Counts up to 2**31 are to be measured as they are (`Strategy.largest_count`), and that many bits are left.
_ROOM = 2.0**31
#: Whole weights up to this are as good as real ones, since the error is flat around its least.
_ENOUGH = 255


def largest_weight(shape: tuple[int, ...]) -> int:
    """Return the largest weight for the levels of each axis, such that sums of weighted counts fit into int64.

    Examples
    --------
    >>> largest_weight((4096,)), largest_weight((16, 16, 16, 16))
    (255, 13)

    """
    return max(1, min(_ENOUGH, int((_ROOM / math.prod(shape)) ** (1 / len(shape)))))


def best_weights(
    details: list[float], sizes: tuple[int, ...], order: Literal[1, 2], largest: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and whole-number weights of levels that make a workload's error least; useless levels are left out.

    Parameters
    ----------
    details
        The workload's energy E_l in the details of each level, from the cells up (`Energies.details`).
    sizes
        The levels' block sizes s_l.
    order
        1 for Laplace noise, where the norm is the sum of the weights w; 2 for Gaussian noise, where it is the root of
        the sum of their squares.
    largest
        The largest weight.

    Notes
    -----
    The error norm**2 * sum of E_l / lambda_l, lambda_l = sum of w_j**2 s_j over j <= l, is lowered step by step: with
    the shares a = w_j**2 s_j / lambda_l of the present weights, E_l / lambda_l is at most the sum of a**2 E_l /
    (v_j**2 s_j) for any other weights v (Jensen), with equality at v = w. That bound is sum of C_j / v_j**2 with C_j =
    w_j**4 s_j * sum of E_l / lambda_l**2 over l >= j, and least at v_j = C_j**(1/3) for order 1, C_j**(1/4) for order
    2. For order 2 the problem is convex in the squares, so that the steps lead to its one minimum; for order 1 to a
    local one.

    """
    energy, size = np.array(details), np.array(sizes, dtype=float)
    power = 1 / 3 if order == 1 else 1 / 4
    # A workload without any detail of some kind would take the weight of the cells to 0.
    energy = np.maximum(energy, 1e-9 * max(energy.max(), 1e-300))
    weights: NDArray[np.float64] = np.ones(len(sizes))
    for _ in range(_ROUNDS):
        eigenvalues = np.cumsum(weights**2 * size)
        reach = np.cumsum((energy / eigenvalues**2)[::-1])[::-1]
        weights = (weights**4 * size * reach) ** power
        weights /= weights.max()
    whole = np.rint(weights * largest).astype(int)
    whole[0] = max(whole[0], 1)
    kept = whole > 0
    divisor = int(np.gcd.reduce(whole[kept]))
    return tuple(np.array(sizes)[kept].tolist()), tuple((whole[kept] // divisor).tolist())


def ladder(cells: int, branching: int) -> tuple[int, ...]:
    """Return 1, b, b**2 and so on, up to the first that holds all cells."""
    sizes = [1]
    while sizes[-1] < cells:
        sizes.append(sizes[-1] * branching)
    return tuple(sizes)
