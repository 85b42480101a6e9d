"""Base synopsis generators: from noisy answers of a few queries to a histogram that answers all (definition 6.1).

They see no private data: noisy answers come in, so all they do is post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Choice, Number, Real, Special
from dpfast.errors import ParameterError, Words
from dpfast.synthesis.fitted.projection import project_answers
from dpfast.workloads import Workload
from dpfast.workloads.histograms import array_of, no_arrays

__all__ = [
    "GENERATOR",
    "GENERATORS",
    "Fit",
    "Generator",
    "fit_by_linear_program",
    "fit_by_projection",
    "fit_by_search",
    "linear_solver",
    "round_to_multiples",
]

GENERATOR = Choice(("projection", "linear", "brute_force"))
Generator: TypeAlias = Annotated[Literal["projection", "linear", "brute_force"], GENERATOR]
_SHARE = Number(1e-9, 1, mend="write for example {name}=0.01")
_SHARES = Special(lambda: (*no_arrays(), [-1.0, 2.0], [0, 0], [math.nan], [math.inf, 1], []))
#: From queries, their noisy answers, the number of records, lambda and the histogram before to a histogram, or None.
Fit: TypeAlias = Callable[
    [Workload, NDArray[np.float64], float, float, NDArray[np.float64] | None], NDArray[np.float64] | None
]

_LARGEST_PROGRAM = 2**24
_LARGEST_SEARCH = 10**7
_BLOCK = 2**14


def fit_by_projection(
    queries: Workload,
    noisy: NDArray[np.float64],
    total: float,
    accuracy: float,
    before: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Return the histogram without negative cells whose answers are nearest, on average over the queries.

    To a fiftieth of ``accuracy``; found faster from the one before.

    """
    return project_answers(noisy, queries, total=total, tolerance=max(0.02 * accuracy, 1e-9), start=before).histogram


def fit_by_linear_program(
    queries: Workload,
    noisy: NDArray[np.float64],
    total: float,
    accuracy: float = math.inf,
) -> NDArray[np.float64] | None:
    """Return the histogram whose largest distance from an answer is least, or None where that is above ``accuracy``.

    The linear program of Dwork, Roth (2014), theorem 6.7, with the slack as a variable: least s such that some y >= 0
    of sum n has v - s <= W y <= v + s. The true histogram has a slack of the largest noise, L, so s is at most L and
    W y within 2 L of the true answers.

    Parameters
    ----------
    queries
        The queries answered; their matrix is formed, up to 2**24 numbers.
    noisy
        Their answers.
    total
        The number of records.
    accuracy
        The largest slack that is not refused.

    Raises
    ------
    ParameterError
        SciPy is missing, or the matrix is too large.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> print(fit_by_linear_program(dpf.workloads.prefix(3), np.array([4.0, 2.0, 10.0]), 10.0))
    [3. 0. 7.]
    >>> fit_by_linear_program(dpf.workloads.prefix(3), np.array([4.0, 2.0, 10.0]), 10.0, accuracy=0.5)

    """
    minimize = linear_solver()
    check_program(len(queries), queries.cells)
    if total <= 0:
        return np.zeros(queries.shape)
    matrix = queries.rows(0, len(queries)).astype(np.float64)
    slack = np.ones((len(queries), 1))
    solved = minimize(
        np.append(np.zeros(queries.cells), 1.0),
        A_ub=np.block([[matrix, -slack], [-matrix, -slack]]),
        b_ub=np.concatenate([noisy, -noisy]) / total,
        A_eq=np.append(np.ones(queries.cells), 0.0)[None, :],
        b_eq=[1.0],
        method="highs",
    )
    if solved.x is None or solved.x[-1] * total > accuracy:
        return None
    shares = np.maximum(solved.x[:-1], 0.0)
    return np.asarray(shares * (total / shares.sum())).reshape(queries.shape)


def linear_solver() -> Callable[..., Any]:
    """Return SciPy's linear programming, or say that it is missing."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        allowed = '"projection" where SciPy is not installed'
        raise ParameterError("generator", Words('"linear"'), allowed, "run pip install 'dpfast[synthesis]'") from None
    solver: Callable[..., Any] = linprog
    return solver


def check_program(queries: int, cells: int) -> None:
    """Refuse a linear program that is too large."""
    if queries * cells > _LARGEST_PROGRAM:
        allowed = f'at most {_LARGEST_PROGRAM:,} numbers of samples times cells for the generator "linear"'
        raise ParameterError(
            "samples", Words(f"{queries:,} with {cells:,} cells"), allowed, 'take generator="projection"'
        )


def fit_by_search(
    queries: Workload, noisy: NDArray[np.float64], total: float, accuracy: float
) -> NDArray[np.float64] | None:
    """Return the first of all data sets, by their lists of cells, with all answers within accuracy / 2; None if none.

    Dwork, Roth (2014), theorem 6.6. The first list of cells by the alphabet is sorted, as sorting makes it no later
    and leaves its answers: only sorted lists are tried.

    Raises
    ------
    ParameterError
        There are more than 10**7 of them.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> fit_by_search(dpf.workloads.prefix(3), np.array([1.6, 0.9, 3.3]), 3.0, accuracy=1.5)
    array([1., 0., 2.])

    """
    records = round(total)
    check_search(records, queries.cells)
    matrix = queries.rows(0, len(queries)).astype(np.float64)
    lists = itertools.combinations_with_replacement(range(queries.cells), records)
    while block := list(itertools.islice(lists, _BLOCK)):
        places = np.array(block, np.int64).reshape(len(block), records)
        answers = matrix[:, places].sum(axis=2)
        found = np.flatnonzero((np.abs(answers - noisy[:, None]) <= accuracy / 2).all(axis=0))
        if found.size:
            counts = np.bincount(places[found[0]], minlength=queries.cells)
            return counts.astype(np.float64).reshape(queries.shape)
    return None


def check_search(records: int, cells: int) -> None:
    """Refuse a search that is too long."""
    if records < 0 or math.comb(cells + records - 1, records) > _LARGEST_SEARCH:
        allowed = f'so few over {cells:,} cells that there are at most {_LARGEST_SEARCH:,} data sets for "brute_force"'
        raise ParameterError("total", records, allowed, 'take generator="projection"')


GENERATORS: dict[str, Fit] = {
    "projection": fit_by_projection,
    "linear": lambda queries, noisy, total, accuracy, _: fit_by_linear_program(queries, noisy, total, accuracy),
    "brute_force": lambda queries, noisy, total, accuracy, _: fit_by_search(queries, noisy, total, accuracy),
}


def round_to_multiples(
    histogram: Annotated[ArrayLike, _SHARES], accuracy: Annotated[Real, _SHARE]
) -> NDArray[np.int64]:
    """Return a data set of at most cells / accuracy records with nearly the shares that a histogram has.

    Every share is rounded down to a multiple of accuracy / cells, by which each changes by less than that, and each
    query with coefficients from 0 to 1 by less than ``accuracy``, as a share of the records (Dwork, Roth 2014, theorem
    6.7). Cell i has so many records as its share has multiples; the record is worth accuracy / cells of all.

    Parameters
    ----------
    histogram
        No negative cell, and not all 0.
    accuracy
        From 1e-9 to 1.

    Examples
    --------
    >>> round_to_multiples([3.0, 0.1, 6.9], accuracy=0.3)
    array([3, 0, 6])

    """
    given = array_of(histogram, "histogram")
    array = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)
    accuracy = _SHARE.read("accuracy", accuracy)
    if not (array.ndim and array.size and np.isfinite(array).all() and array.min() >= 0 and array.sum() > 0):
        raise ParameterError("histogram", Words("with other cells"), "finite numbers, none negative and not all 0")
    multiples: NDArray[np.int64] = np.floor(array / array.sum() * (array.size / accuracy)).astype(np.int64)
    return multiples
