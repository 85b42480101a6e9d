"""Statistical queries answered by local reports: the simulation of one model in the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.arguments import Number, Special, Threads, Whole
from dpfast.columns.elements import array_of_list, as_floats
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError, Words
from dpfast.exact.amounts import budget_units
from dpfast.local.bounded_mean import BoundedMean
from dpfast.local.local_oracle import Values, length_of, take_rows
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Random, fresh_words, random_source
from dpfast.showing import Facts, Shown
from dpfast.turns import Turns

__all__ = ["LocalStatisticalQueries", "statistical_query_rows", "statistical_query_tolerance"]

_QUERIES, _ROWS = Whole(1, 2**31), Whole(1, 2**40)
_FAILURE = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
_TOLERANCE = Number(0, 1, above=True, mend="write for example {name}=0.05")


def _wrong_queries() -> Iterator[object]:
    yield from (1, 0.5, True, "x", b"x", [len], object(), {}, None)


_Query: TypeAlias = Annotated[Callable[[Any], Any], Special(_wrong_queries)]


def _half_width(epsilon: object) -> float:
    """Return (e + 1) / (e - 1), rounded up."""
    mean = BoundedMean((0, 1), epsilon)  # type: ignore[arg-type]
    return 2**64 / (2**64 - 2 * mean.lie) * (1 + 1e-12)


def statistical_query_tolerance(
    rows: Annotated[int, _ROWS],
    epsilon: Epsilon,
    *,
    queries: Annotated[int, _QUERIES] = 1,
    failure: Annotated[float, _FAILURE] = 0.05,
) -> float:
    """Return how far answers to statistical queries by local reports are off at most.

    Guarantee
        With probability at least 1 - ``failure`` every one of so many queries that `LocalStatisticalQueries` answers
        from so many rows is within the returned tolerance of its mean over the population that rows are an independent
        sample of. Proof: an answer is the mean of m = floor(rows / queries) independent reports of two values
        (e + 1) / (e - 1) apart, e = exp(epsilon), that have the query's mean; Hoeffding's inequality for each, and the
        union bound.

    Parameters
    ----------
    rows
        How many people there are.
    epsilon
        What each spends.
    queries
        How many queries are asked.
    failure
        The probability that one of the answers is off by more.

    Returns
    -------
    float
        The tolerance: (e + 1) / (e - 1) * sqrt(ln(2 queries / failure) / (2 m)). It may be above 1, which says nothing.

    Raises
    ------
    ParameterError
        A parameter is not as above, or there are more queries than rows.

    Examples
    --------
    >>> round(statistical_query_tolerance(1_000_000, 1.0, queries=10), 4)
    0.0118

    """
    each = _ROWS.read("rows", rows) // _QUERIES.read("queries", queries)
    if each == 0:
        raise ParameterError("queries", queries, f"at most as many as rows, {rows}", "ask fewer")
    failure = _FAILURE.read("failure", failure)
    return _half_width(epsilon) * math.sqrt(math.log(2 * queries / failure) / (2 * each))


def statistical_query_rows(
    tolerance: Annotated[float, _TOLERANCE],
    epsilon: Epsilon,
    *,
    queries: Annotated[int, _QUERIES] = 1,
    failure: Annotated[float, _FAILURE] = 0.05,
) -> int:
    """Return how many people are needed for answers within a tolerance.

    Guarantee
        `statistical_query_tolerance` of so many rows is at most ``tolerance``: see there.

    Parameters
    ----------
    tolerance
        A number above 0, at most 1.
    epsilon, queries, failure
        As there.

    Returns
    -------
    int
        queries * ceil(((e + 1) / (e - 1))**2 * ln(2 queries / failure) / (2 tolerance**2)).

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Examples
    --------
    >>> statistical_query_rows(0.05, 1.0, queries=10)
    56120

    """
    tolerance = _TOLERANCE.read("tolerance", tolerance)
    queries, failure = _QUERIES.read("queries", queries), _FAILURE.read("failure", failure)
    each = (_half_width(epsilon) / tolerance) ** 2 * math.log(2 * queries / failure) / 2
    return queries * math.ceil(each * (1 + 1e-12))


class LocalStatisticalQueries(Shown):
    """Answer statistical queries, chosen one after the other, from local reports.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model in all answers together: it is asked for one
        query alone, by `dpfast.BoundedMean`. Rows are parted evenly at random beforehand, one part a query. Queries may
        be chosen after seeing earlier answers. Every one of these answers is within ``tolerance`` of the query's mean
        over the population that the rows are an independent sample of, with probability at least 1 - ``failure``: see
        `statistical_query_tolerance`.

    Parameters
    ----------
    values
        A column of any library, or a list: one row a person.
    epsilon
        What each person spends: a number from 1e-18 to 1e6.
    queries
        How many will be asked at most.
    failure
        The probability that one of the answers is off by more than ``tolerance``.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Attributes
    ----------
    tolerance
        How far answers are off at most.

    Raises
    ------
    ColumnError
        ``values`` is no column.
    ParameterError
        A parameter is not as above, or there are more queries than rows.

    Notes
    -----
    To part rows is better than to part the budget: k queries by parts have errors that grow as sqrt(k), by shares of
    epsilon as k. So a learner that asks k statistical queries is a local one with k times the rows of one query.

    References
    ----------
    Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith (2011), theorem 5.7. Dwork, Roth (2014), section 12.1.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> ages = np.arange(200_000) % 90
    >>> people = LocalStatisticalQueries(ages, 1.0, queries=2, random=SeededRandom(1))
    >>> round(people.tolerance, 3)
    0.01
    >>> abs(people.answer(lambda age: age < 18) - 0.2) < people.tolerance
    True

    """

    def __init__(
        self,
        values: Values,
        epsilon: Epsilon,
        *,
        queries: Annotated[int, _QUERIES],
        failure: Annotated[float, _FAILURE] = 0.05,
        random: Random = None,
    ) -> None:
        budget_units(epsilon, "epsilon")
        rows = length_of(values)
        if rows == 0:
            raise ParameterError("values", Words("empty"), "at least one row", "pass a column with rows")
        self.tolerance = statistical_query_tolerance(rows, epsilon, queries=queries, failure=failure)
        self.queries = _QUERIES.read("queries", queries)
        self._mean, self._values, self._random = BoundedMean((0, 1), epsilon), values, random_source(random)
        words = fresh_words(self._random, rows)
        # Equal words, which leave an order to chance no more, have a probability below rows**2 / 2**64.
        self._order = np.argsort(words, kind="stable")
        self._asked = 0
        self._turns = Turns("statistical queries cannot go on after a fork: both processes would ask the same rows")

    def answer(self, query: _Query, *, threads: Threads = None) -> float:
        """Return an estimate of the mean of a query over the population, by the next part of the rows.

        Parameters
        ----------
        query
            A function that takes rows, as a column of the kind of ``values``, and returns a number from 0 to 1 for each
            of them, or a Boolean, depending on that row alone. What lies outside is clamped; NaN, null and whatever is
            no number are 1/2. Where it fails, or does not return a number for each row, it is asked again about both
            halves, down to single rows, so that one on which it fails is 1/2 too: an error would tell of it.
        threads
            As for `dpfast.laplace`.

        Returns
        -------
        float
            The estimate; unbiased, so that it may lie outside of 0 to 1.

        Raises
        ------
        BudgetExceededError
            All queries are asked.

        """
        if not callable(query):
            raise ParameterError("query", query, "a function", "write for example lambda x: x > 3")
        with self._turns.turn():
            if self._asked == self.queries:
                raise BudgetExceededError(f"all {self.queries} queries are asked")
            each = len(self._order) // self.queries
            part = self._order[self._asked * each : (self._asked + 1) * each]
            self._asked += 1
        numbers = self._numbers(query, part)
        reports = self._mean.randomize(numbers, random=self._random, threads=threads)
        self._turns.refuse_other_process()
        return float(self._mean.estimate(reports)["mean"][0])

    def _numbers(self, query: Callable[[Any], Any], part: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what a query says of rows, NaN where it fails."""
        numbers, spans = np.full(part.size, np.nan), [(0, part.size)]
        while spans:
            start, stop = spans.pop()
            found = _asked(query, take_rows(self._values, part[start:stop]), stop - start)
            if found is not None:
                numbers[start:stop] = found
            elif stop - start > 1:
                middle = (start + stop) // 2
                spans += [(start, middle), (middle, stop)]
        return numbers

    def __reduce__(self) -> NoReturn:
        raise LedgerError("statistical queries cannot be pickled or copied: each copy would ask the same rows again")

    def _facts(self) -> Facts:
        """Return the parameters, never the values."""
        return [("rows", len(self._order)), ("queries", self.queries)]


def _asked(query: Callable[[Any], Any], rows: Any, count: int) -> NDArray[np.float64] | None:
    """Return a query's numbers, NaN for what is none; None where it fails or returns something else."""
    try:
        results = query(rows)
        if isinstance(results, pl.Series):
            results = results.cast(pl.Float64).to_numpy()
        if isinstance(results, np.ma.MaskedArray) or not isinstance(results, np.ndarray):
            results = results.to_pylist() if hasattr(results, "to_pylist") else list(results)
            results = array_of_list(results, 1)
        elif results.dtype.kind not in "biuf":
            results = array_of_list(results.tolist(), 1)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # whatever a function of theirs raises
        return None
    return as_floats(results) if results.shape == (count,) else None
