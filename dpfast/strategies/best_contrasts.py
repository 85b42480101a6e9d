"""Which contrasts of an attribute answer queries with the least error at a given norm: found, then rounded.

X = R'R is to make tr(G X^+) least, G being the queries' Gram matrix, where no diagonal entry of X exceeds 1 and X takes
all ones to 0. In an orthonormal basis U of the values that add up to 0, X is U Y U', and with a multiplier m_i for each
diagonal entry, M = U' diag(m) U and H = U' G U, the least error has Y M Y = H. With M = K K' that is

    Y = K'^-1 (K' H K)^(1/2) K^-1.

Multipliers are right where all diagonal entries of X are 1, or m_i is 0. By duality no X errs less than
(tr (K' H K)^(1/2))**2 / sum of m, for any m: that says when to stop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.strategies.contrasts import MatrixContrasts

__all__ = ["LARGEST_ATTRIBUTE", "best_contrasts", "rounded_contrasts"]

Floats = NDArray[np.float64]

#: Of an attribute of more values the search takes minutes.
LARGEST_ATTRIBUTE = 1024
#: So much of every direction is asked, as a part of the mean: whole numbers then tell all values apart.
_LEAST = 1e-4
_ROUNDS, _STRIDE, _TOLERANCE = 100, 1.9, 1e-2
_LEAST_MULTIPLIER = 1e-12


def best_contrasts(gram: Floats) -> Floats:
    """Return the symmetric root of the best X for queries of a Gram matrix, values by values: contrasts of norm 1.

    The rounds decide how near to the best it comes, and nothing else.

    Parameters
    ----------
    gram
        The sum over all queries of w'w, w being a query's coefficients: at least two values.

    References
    ----------
    Li, Miklau, Hay, McGregor, Rastogi (2015), program 1, here within one space; Xiao, He, Zhang, Kifer (2024),
    "ResidualPlanner+", for a matrix of each attribute's own in the residuals of marginals.

    Examples
    --------
    >>> import dpfast as dpf
    >>> best_contrasts(dpf.workloads.identity(3).gram()).round(3)
    array([[ 0.816, -0.408, -0.408],
           [-0.408,  0.816, -0.408],
           [-0.408, -0.408,  0.816]])

    """
    size = len(gram)
    basis = _basis(size)
    asked = basis.T @ gram @ basis
    mean = float(np.trace(asked)) / (size - 1)
    asked = asked / mean if mean > 0 else np.zeros_like(asked)
    asked += np.eye(size - 1) * (_LEAST if mean > 0 else 1.0)
    multipliers = np.sqrt(np.maximum(np.diag(basis @ asked @ basis.T), _LEAST_MULTIPLIER))
    for _ in range(_ROUNDS):
        half = np.linalg.cholesky(basis.T @ (multipliers[:, None] * basis))
        values, vectors = np.linalg.eigh(half.T @ asked @ half)
        roots = np.sqrt(np.maximum(values, 0.0))
        turned = np.linalg.solve(half.T, vectors)
        found = basis @ ((turned * roots) @ turned.T) @ basis.T
        diagonal = np.diag(found)
        # tr(H Y^-1) = tr(M Y), the sum of the multipliers times the diagonal.
        reached = diagonal.max() * float(multipliers @ diagonal)
        if reached <= (1 + _TOLERANCE) * roots.sum() ** 2 / multipliers.sum():
            break
        grown = multipliers * np.maximum(diagonal, _LEAST_MULTIPLIER) ** _STRIDE
        multipliers = np.maximum(grown, _LEAST_MULTIPLIER * grown.max())
    values, vectors = np.linalg.eigh(found / diagonal.max())
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, np.float64)


def rounded_contrasts(root: Floats, largest: int) -> MatrixContrasts | None:
    """Return contrasts in whole numbers up to ``largest`` that are nearly a multiple of these; None if that is too low.

    A row is rounded so that it still adds up to 0: entries that rounding moved most go the other way.

    Parameters
    ----------
    root
        Rows that add up to 0.
    largest
        At least 1.

    Examples
    --------
    >>> found = rounded_contrasts(np.array([[0.8, -0.4, -0.4], [-0.4, 0.8, -0.4], [-0.4, -0.4, 0.8]]), 9)
    >>> None if found is None else found.matrix
    array([[ 8, -4, -4],
           [-4,  8, -4],
           [-4, -4,  8]])

    """
    # What is mended moves an entry by one.
    wanted = root * (max(largest - 1, 1) / np.abs(root).max())
    matrix = np.rint(wanted).astype(np.int64)
    for row, left, off in zip(matrix, wanted - matrix, matrix.sum(axis=1).tolist(), strict=True):
        order = np.argsort(left if off > 0 else -left, kind="stable")
        row[order[: abs(off)]] -= np.sign(off)
    if np.abs(matrix).max() > largest:
        return None
    try:
        return MatrixContrasts(matrix)
    except np.linalg.LinAlgError:
        return None


def _basis(size: int) -> Floats:
    """Return columns that are orthonormal and add up to 0: a reflection that takes the last axis to all ones."""
    mirror = np.full(size, size**-0.5)
    mirror[-1] += 1.0
    reflected = np.eye(size) - np.multiply.outer(mirror, mirror) * (2 / float(mirror @ mirror))
    return np.asarray(reflected[:, :-1], np.float64)
