"""Reconstruction from the answers to random linear queries, some of them arbitrary (Dwork, Roth 2014, theorem 8.2)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Choice, Number, Real, Special, Whole
from dpfast.errors import ParameterError, Words
from dpfast.randomness import fresh_words
from dpfast.testing import SeededRandom
from dpfast.workloads.histograms import array_of, no_arrays

__all__ = ["METHOD", "MOST_NUMBERS", "SEED", "Kind", "Method", "Seed", "random_queries", "reconstruct_from_answers"]

#: Queries times records: a gigabyte as float64.
MOST_NUMBERS = 2**27
_MOST_SEARCHED = 20
_BLOCK = 2**12
_COUNT, _RECORDS, _KIND = Whole(1, 2**24), Whole(1, 2**16), Choice(("signs", "subsets"))
SEED = Whole(0, 2**256)
METHOD = Choice(("least_squares", "linear_program", "search"))
_TOLERANCE = Number(0, optional=True, mend="write for example {name}=3.5, the error that most answers keep to")

Kind: TypeAlias = Annotated[Literal["signs", "subsets"], _KIND]
Method: TypeAlias = Annotated[Literal["least_squares", "linear_program", "search"], METHOD]
Seed: TypeAlias = Annotated[int, SEED]
_ANSWERS = Special(lambda: (*no_arrays(), [], [1.0], [np.nan] * 4, [np.inf] * 4, np.ones((4, 1))))
_QUERIES = Special(lambda: (*no_arrays(), [1.0, 2.0], np.full((4, 2), np.nan), np.ones((0, 2))))


def random_queries(
    count: Annotated[int, _COUNT], records: Annotated[int, _RECORDS], kind: Kind = "signs", seed: Seed = 0
) -> NDArray[np.int8]:
    """Return random queries as rows, a column for each record.

    Parameters
    ----------
    count
        How many queries.
    records
        How many records.
    kind
        ``"signs"``: each coefficient is -1 or 1, as in theorem 8.2. ``"subsets"``: 0 or 1, a count of a random half.
    seed
        Queries are public; equal seeds give equal ones.

    Returns
    -------
    numpy.ndarray
        Coefficients, each of the two with probability 1/2.

    Raises
    ------
    ParameterError
        An argument is not allowed, or count times records exceeds 2**27.

    Examples
    --------
    >>> random_queries(2, 5).tolist()
    [[1, 1, -1, 1, -1], [1, -1, -1, -1, 1]]

    """
    rows, columns = _COUNT.read("count", count), _RECORDS.read("records", records)
    chosen, number = _KIND.read("kind", kind), SEED.read("seed", seed)
    if rows * columns > MOST_NUMBERS:
        allowed = f"at most {MOST_NUMBERS // columns:,} for {columns:,} records"
        raise ParameterError("count", rows, allowed, "ask fewer queries")
    words = fresh_words(SeededRandom(number), -(-rows * columns // 64))
    bits = np.unpackbits(words.view(np.uint8), count=rows * columns).reshape(rows, columns).astype(np.int8)
    return bits if chosen == "subsets" else 2 * bits - 1


def reconstruct_from_answers(
    queries: Annotated[ArrayLike, _QUERIES],
    answers: Annotated[ArrayLike, _ANSWERS],
    method: Method = "least_squares",
    tolerance: Annotated[Real | None, _TOLERANCE] = None,
) -> NDArray[np.uint8]:
    """Return records that explain noisy answers to linear queries.

    - ``"least_squares"``: the real vector with the least sum of squared errors, each entry rounded to 0 or 1. The
      fastest; right where the noise of every answer is small against the square root of the number of records.
    - ``"linear_program"``: the vector in [0, 1] with the least sum of absolute errors, rounded. It stands a share of up
      to 0.239 of *arbitrary* answers among many (Dwork, McSherry, Talwar 2007). Needs SciPy.
    - ``"search"``: of all 2**n vectors one that is within ``tolerance`` of the most answers; at most 20 records. If a
      share of 1/2 + eta of the answers err by at most alpha = ``tolerance``, at most (2 alpha / eta)**2 records are
      wrong, but with probability exp(-n (eta b / 4 - ln 3)) for b n random queries of signs (theorem 8.2, whose
      proof needs b > 4 ln 3 / eta).

    Parameters
    ----------
    queries
        A row for each query, a column for each record.
    answers
        One for each query.
    method
        How the records are found.
    tolerance
        For ``"search"`` alone: the error that most answers keep to.

    Returns
    -------
    numpy.ndarray
        Zeros and ones, one for each record.

    Raises
    ------
    ParameterError
        Queries and answers do not fit, are not finite, are too many for the method; SciPy is missing.

    References
    ----------
    Dinur, Nissim (2003). Dwork, McSherry, Talwar: The price of privacy and the limits of LP decoding (2007).
    Dwork, Roth (2014), section 8.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    >>> queries = random_queries(40, 8, "subsets")
    >>> reconstruct_from_answers(queries, queries @ records + 0.4).tolist()
    [0, 1, 1, 0, 1, 0, 0, 1]

    """
    matrix, noisy = array_of(queries, "queries"), array_of(answers, "answers")
    if matrix.ndim != 2 or matrix.size == 0 or matrix.dtype.kind not in "biuf" or not np.isfinite(matrix).all():
        raise ParameterError("queries", Words(f"of shape {matrix.shape}"), "rows and columns of finite numbers")
    if noisy.shape != (len(matrix),) or noisy.dtype.kind not in "biuf" or not np.isfinite(noisy).all():
        raise ParameterError("answers", Words(f"of shape {noisy.shape}"), f"{len(matrix)} finite numbers, one a query")
    if matrix.size > MOST_NUMBERS:
        raise ParameterError("queries", Words(f"{matrix.size:,} numbers"), f"at most {MOST_NUMBERS:,}")
    chosen, within = METHOD.read("method", method), _TOLERANCE.read_optional("tolerance", tolerance)
    if (within is None) == (chosen == "search"):
        allowed = "a number for method='search'" if within is None else "None but for method='search'"
        raise ParameterError("tolerance", within, allowed)
    matrix, noisy = matrix.astype(np.float64), noisy.astype(np.float64)
    if within is not None:
        return _search(matrix, noisy, within)
    if chosen == "linear_program":
        found = _least_absolute(matrix, noisy)
    else:
        found = np.linalg.lstsq(matrix, noisy, rcond=None)[0]
    return (found > 0.5).astype(np.uint8)


def _search(matrix: NDArray[np.float64], noisy: NDArray[np.float64], tolerance: float) -> NDArray[np.uint8]:
    records = matrix.shape[1]
    if records > _MOST_SEARCHED:
        allowed = f"with at most {_MOST_SEARCHED} records for method='search'"
        raise ParameterError("queries", Words(f"{records} records"), allowed, "take method='linear_program'")
    best, most = 0, -1
    for start in range(0, 2**records, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, 2**records))
        candidates = (numbers[:, None] >> np.arange(records)) & 1
        agreed = (np.abs(candidates @ matrix.T - noisy) <= tolerance).sum(axis=1)
        place = int(agreed.argmax())
        if agreed[place] > most:
            best, most = start + place, int(agreed[place])
    return ((best >> np.arange(records)) & 1).astype(np.uint8)


def _least_absolute(matrix: NDArray[np.float64], noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minimise the sum of r over x in [0, 1] and r >= |matrix x - noisy|."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        allowed = '"least_squares" where SciPy is not installed'
        raise ParameterError(
            "method", Words('"linear_program"'), allowed, "run pip install 'dpfast[synthesis]'"
        ) from None
    queries, records = matrix.shape
    if queries * (records + queries) > MOST_NUMBERS:
        allowed = f"so few that queries times (queries + records) is at most {MOST_NUMBERS:,}"
        raise ParameterError("queries", Words(f"{queries:,}"), allowed, 'take method="least_squares"')
    slack = np.eye(queries)
    solved: Any = linprog(
        np.concatenate([np.zeros(records), np.ones(queries)]),
        A_ub=np.block([[matrix, -slack], [-matrix, -slack]]),
        b_ub=np.concatenate([noisy, -noisy]),
        bounds=[(0, 1)] * records + [(0, None)] * queries,
        method="highs",
    )
    if solved.x is None:
        allowed = "of a size for which the solver finds an end"
        raise ParameterError("answers", Words("of other sizes"), allowed, 'scale them, or take method="least_squares"')
    return np.asarray(solved.x[:records], np.float64)
