"""How much each part of a strategy should count for a workload: weights that make the error least."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_weights", "ladder", "largest_weight", "least_error_weights"]

_ROUNDS = 300
#: Weights that move by less in a round are as good as they will be: a hundredth of what rounding them changes.
_STILL = 1e-5
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


def least_error_weights(
    energy: NDArray[np.float64], effect: NDArray[np.float64], order: Literal[1, 2]
) -> NDArray[np.float64]:
    """Return weights of parts of a strategy, the largest of them 1, that make a workload's error least.

    Parameters
    ----------
    energy
        The workload's energy E_t in each eigenspace of A'A.
    effect
        B: part s of the strategy, with the weight w_s, adds w_s**2 B_ts to the eigenvalue of space t.
    order
        1 for Laplace noise, where the norm is the sum of the weights; 2 for Gaussian noise, where it is the root of
        the sum of their squares.

    Notes
    -----
    The error norm**2 * sum of E_t / lambda_t, lambda_t = sum of w_s**2 B_ts, is lowered step by step: with the shares
    a_ts = w_s**2 B_ts / lambda_t of the present weights, E_t / lambda_t is at most the sum of a_ts**2 E_t / (v_s**2
    B_ts) over s for any other weights v (Jensen), with equality at v = w. These bounds add up to the sum of C_s /
    v_s**2, C_s = w_s**4 * sum of B_ts E_t / lambda_t**2 over t, which is least at v_s = C_s**(1/3) for order 1 and
    C_s**(1/4) for order 2. For order 2 the problem is convex in the squares, so that the steps lead to its one minimum;
    for order 1 to a local one.

    """
    power = 1 / 3 if order == 1 else 1 / 4
    weights: NDArray[np.float64] = np.ones(effect.shape[1])
    for _ in range(_ROUNDS):
        eigenvalues = effect @ weights**2
        before, weights = weights, (weights**4 * ((energy / eigenvalues**2) @ effect)) ** power
        weights /= weights.max()
        if np.abs(weights - before).max() < _STILL:
            break
    return weights


def best_weights(
    details: list[float], sizes: tuple[int, ...], order: Literal[1, 2], largest: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and whole-number weights of levels that make a workload's error least; useless levels are left out.

    Parameters
    ----------
    details
        The workload's energy in the details of each level, from the cells up (`Energies.details`).
    sizes
        The levels' block sizes.
    order
        1 for Laplace noise, 2 for Gaussian noise.
    largest
        The largest weight.

    """
    energy = np.array(details)
    # A workload without any detail of some kind would take the weight of the cells to 0.
    energy = np.maximum(energy, 1e-9 * max(energy.max(), 1e-300))
    weights = least_error_weights(energy, np.tril(np.tile(np.array(sizes, float), (len(sizes), 1))), order)
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
