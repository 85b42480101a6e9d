"""Strategies made for one workload over a small domain: the best of all under Gaussian noise, p-Identity otherwise."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Whole
from dpfast.errors import ParameterError, Words
from dpfast.strategies.descent import descend
from dpfast.strategies.explicit import Explicit, rounded
from dpfast.strategies.strategy import ORDER, Order
from dpfast.workloads.workload import WORKLOAD, Asked, Workload

__all__ = ["LARGEST_OPTIMIZED", "optimal", "p_identity"]

LARGEST_OPTIMIZED = 1024

SUMS = Whole(1, LARGEST_OPTIMIZED, optional=True)
SEED = Whole(0, 2**32)

#: A workload that does not ask about some direction is taken to ask so little about it, as a part of the whole.
_LEAST = 1e-9

_ROUNDS = 200
_STRIDE = 1.9
_TOLERANCE = 1e-4


def _gram(workload: Workload) -> NDArray[np.float64]:
    """Return a workload's Gram matrix, with a little of every direction, so that strategies determine all cells."""
    WORKLOAD.read("workload", workload)
    if workload.cells > LARGEST_OPTIMIZED:
        allowed = f"one over at most {LARGEST_OPTIMIZED:,} cells, as the strategy is a matrix of its own"
        raise ParameterError(
            "workload", Words(f"one over {workload.cells:,} cells"), allowed, "use dpf.strategies.choose"
        )
    gram = workload.gram()
    whole = float(np.trace(gram)) / workload.cells
    # In units of their mean, products of the entries stay within float64; without any, all strategies are as good.
    scaled = gram / whole if whole > 0 else np.zeros_like(gram)
    return np.asarray(scaled + np.eye(workload.cells) * (_LEAST if whole > 0 else 1.0), np.float64)


def optimal(workload: Asked) -> Explicit:
    """Make the strategy of the least error under Gaussian noise, of all there are.

    Parameters
    ----------
    workload
        Over at most 1,024 cells.

    Returns
    -------
    Explicit
        Of as many rows as cells, rounded to fixed point; norms and errors are those of the rounded matrix.

    Raises
    ------
    ParameterError
        The workload has more cells.

    Notes
    -----
    With X = A'A the error tr(G X^-1) is to be least where no diagonal entry of X exceeds 1 (G = W'W): a convex problem.
    Where it is least, G = X M X for a diagonal matrix M of multipliers, so that M^(1/2) X M^(1/2) is the root R of
    M^(1/2) G M^(1/2); and the diagonal of X being 1, M is the diagonal of R. That is solved by iteration, M moving
    almost twice as far each time, which ends when the bound of the dual problem, (tr R)**2 / tr M, is within 1e-4 of
    the error reached.

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi (2015), program 1; Yuan, Yang, Zhang, Hao (2016). Denisov, McMahan, Rush, Smith,
    Thakurta (2022), theorem 3.2, for the iteration.

    Examples
    --------
    >>> import dpfast as dpf
    >>> best = optimal(dpf.workloads.prefix(64))
    >>> bool(best.norm(2) ** 2 * best.error(dpf.workloads.prefix(64)) < 64 * 2.101**2)
    True

    """
    gram = _gram(workload)
    multipliers = np.sqrt(np.diag(gram))
    # What follows does not depend on the number of rounds for its guarantee, only for the last digits of its error.
    for _ in range(_ROUNDS):
        outer = np.sqrt(multipliers)
        values, vectors = np.linalg.eigh(gram * np.multiply.outer(outer, outer))
        roots = np.sqrt(np.maximum(values, 0.0))
        root = (vectors * roots) @ vectors.T
        diagonal = np.diag(root).copy()
        square = root / np.multiply.outer(outer, outer)
        # tr(G X^-1) = tr(M X) where G = X M X; the largest diagonal entry of X is the squared norm.
        reached = np.diag(square).max() * float(multipliers @ np.diag(square))
        if reached <= (1 + _TOLERANCE) * roots.sum() ** 2 / multipliers.sum():
            break
        multipliers = multipliers * (diagonal / multipliers) ** _STRIDE
    return rounded(workload.shape, np.asarray(np.linalg.cholesky(square).T), "the best under Gaussian noise")


def p_identity(
    workload: Asked, p: Annotated[int | None, SUMS] = None, *, order: Order = 1, seed: Annotated[int, SEED] = 1
) -> Explicit:
    """Make a strategy for a workload: every cell, and p weighted sums of cells, fitted so that the error is small.

    Parameters
    ----------
    workload
        Over at most 1,024 cells.
    p
        How many sums are measured beside the cells; by default a sixteenth of the cells, and 4 or more.
    order
        1 for Laplace noise, 2 for Gaussian noise (where `optimal` is better).
    seed
        Of the start: different seeds lead to different local minima.

    Returns
    -------
    Explicit
        Rounded to fixed point; norms and errors are those of the rounded matrix.

    Raises
    ------
    ParameterError
        An argument is not as above.

    Notes
    -----
    A = [I; T] D with T >= 0 of p rows and D diagonal such that all columns have the norm 1. With s the norms of the
    columns of [I; T] and M = (I + T'T)^-1 = I - T'(I + TT')^-1 T, the error is the sum of s_i s_j G_ij M_ij. Its
    gradient is -2 T M H M, H_ij = s_i s_j G_ij, and 2 (G * M) s by s. The entries of T are squares of free variables,
    over which the error is lowered by L-BFGS.

    References
    ----------
    McKenna, Miklau, Hay, Machanavajjhala (2018), definition 6 and section 5.

    Examples
    --------
    >>> import dpfast as dpf
    >>> fitted = p_identity(dpf.workloads.all_range(32), 4)
    >>> len(fitted)
    36

    """
    gram = _gram(workload)
    cells = workload.cells
    sums = min(max(4, cells // 16), cells) if p is None else SUMS.read("p", p)
    if sums > cells:
        raise ParameterError("p", p, f"a whole number from 1 to {cells}, the number of cells")
    ORDER.read("order", order)
    seed = SEED.read("seed", seed)

    def error_and_gradient(roots: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        T = roots.reshape(sums, cells) ** 2  # noqa: N806
        norms = 1 + T.sum(axis=0) if order == 1 else np.sqrt(1 + (T**2).sum(axis=0))
        M = np.eye(cells) - T.T @ np.linalg.solve(np.eye(sums) + T @ T.T, T)  # noqa: N806
        H = gram * np.multiply.outer(norms, norms)  # noqa: N806
        by_norms = 2 * (gram * M) @ norms
        gradient = -2 * (T @ M) @ H @ M + (by_norms if order == 1 else by_norms / norms * T)
        return float((H * M).sum()), 2 * roots * gradient.reshape(-1)

    # Any numbers between 0 and 1 that are spread out, and the same on every machine.
    start = np.modf(np.arange(1, sums * cells + 1) * (np.sqrt(5) - 1) / 2 * (2 * seed + 1))[0]
    T = descend(error_and_gradient, start).reshape(sums, cells) ** 2  # noqa: N806
    norms = 1 + T.sum(axis=0) if order == 1 else np.sqrt(1 + (T**2).sum(axis=0))
    return rounded(workload.shape, np.concatenate([np.eye(cells), T]) / norms, f"p-Identity, p = {sums}")
