"""Statistical queries: a learner sees no example, only noisy means of functions that it chooses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.arguments import Instance, Number, Real, Special, Whole
from dpfast.columns.declarations import Table, TypedColumn, as_array
from dpfast.columns.elements import as_floats
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError, Words
from dpfast.exact.amounts import share_units
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.randomness import Random, random_source
from dpfast.showing import Facts, Shown
from dpfast.synthesis.shares import noise_for, positive_share
from dpfast.turns import Turns

__all__ = ["Examples", "Labels", "StatisticalQueryOracle", "learn_conjunction"]

#: Answers are added up in units of 2**-30, exactly in 64 bits for up to 2**33 examples.
_UNITS = 2**30
_LARGEST_SUM = 2**62
QUERIES = Whole(1, 2**32, mend="write for example {name}=20")
MISS = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
FEATURES = Whole(1, 10**6, mend="write for example {name}=10")


def _no_examples() -> Iterator[object]:
    yield from (1, 0.5, True, object(), len, np.array(1.0), np.float64(1))


def _no_labels() -> Iterator[object]:
    yield from (1, 0.5, True, object(), len, np.array(1.0), [0] * 17, np.zeros(17))


def _no_queries() -> Iterator[object]:
    yield from (1, 0.5, True, "text", [len], object(), np.ones(3))


#: Anything of rows with a length: an array, a frame, a column, a list.
Examples: TypeAlias = Annotated[TypedColumn | Table | Sequence[Any], Special(_no_examples)]
Labels: TypeAlias = Annotated[TypedColumn | Sequence[Any] | None, Special(_no_labels, optional=True)]
Query: TypeAlias = Annotated[Callable[..., Any], Special(_no_queries)]


class StatisticalQueryOracle(Shown):
    """Answer a number of queries for the mean of a function of one example, privately.

    Guarantee
        All answers of one oracle together are (epsilon, 0)-differentially private, or rho-zCDP, even if each query is
        chosen after the answers before it; the whole budget is charged at creation. A query gives each example a number
        from 0 to 1 (others are clamped, NaN counts as 0, and all are rounded to multiples of 2**-30). The numbers are
        added up exactly, and Laplace noise of scale ``queries`` / epsilon, or Gaussian noise, is added: one example
        moves a sum by 1 at most. Under "replace" the number of examples is public; under "add_remove" it is measured
        first, as one more query.

        It is the query that must see to it that an example's number depends on nothing but the example: it is given all
        of them at once only in order to be fast.

    Parameters
    ----------
    examples
        Rows of any kind: an array, a frame, a list. Queries are given them as they are.
    labels
        One for each example, or None. If given, queries take them as a second argument.
    queries
        How many may be asked.
    epsilon, rho
        The budget of all of them, one of the two.
    neighbors
        "replace": one example exchanged for another; "add_remove": one more or fewer.
    ledger
        What is charged, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Attributes
    ----------
    remaining
        How many queries are left.
    size
        The number of examples: exactly under "replace", else as measured, at least 1.
    entry
        The number of the charge in the ledger, or None.

    Raises
    ------
    ParameterError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else.

    Notes
    -----
    Whatever learns from statistical queries (Kearns 1998; of tolerance tau, each answer within tau of the mean) learns
    privately: the noise of m queries is below tau, for all of them with probability 1 - miss, from
    m ln(m / miss) / (epsilon tau) examples on; that the sample is like its distribution takes about
    ln(m / miss) / tau**2 more. By rho noise grows with the root of m. Questions that are known beforehand are cheaper
    together: `dpfast.LinearRegression` asks all its own at once, and `dpfast.matrix_mechanism` any of a histogram.

    References
    ----------
    Blum, Dwork, McSherry, Nissim (2005); Kasiviswanathan et al. (2011). Dwork, Roth (2014), section 11.1.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> ages = np.arange(20_000) % 80
    >>> oracle = StatisticalQueryOracle(ages, queries=2, epsilon=1.0, random=SeededRandom(1))
    >>> round(oracle.ask(lambda ages: ages >= 40), 2), round(oracle.ask(lambda ages: ages / 80), 2), oracle.remaining
    (0.5, 0.49, 0)
    >>> round(oracle.error(miss=0.05), 5)
    0.00037

    """

    def __init__(
        self,
        examples: Examples,
        labels: Labels = None,
        *,
        queries: Annotated[int, QUERIES],
        epsilon: Epsilon = None,
        rho: Rho = None,
        neighbors: Neighbors = "replace",
        ledger: Payer = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        random: Random = None,
    ) -> None:
        self.queries = QUERIES.read("queries", queries)
        rows = _length(examples, "examples")
        if labels is not None and _length(labels, "labels") != rows:
            raise ParameterError("labels", Words("of another length"), "one for each example")
        budget, relation = read_budget(epsilon, None, rho), read_neighbors(neighbors)
        counted = relation == "add_remove"
        draws = self.queries + counted
        units = positive_share(share_units(budget.units, draws), budget, "raise it, or ask less")
        change = Sensitivity(_UNITS, _UNITS**2)
        self._noise, charge = noise_for(budget.kind, units, change, draws, f"{self.queries} statistical queries")
        payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
        self._source = random_source(random)
        self._turns = Turns("an oracle cannot be used in a forked process: make one there, with a budget of its own")
        self.entry = payment.charge([charge])
        self.remaining = self.queries
        self._given = (examples,) if labels is None else (examples, labels)
        self._rows = rows
        self.size = max(self._noisy(rows * _UNITS), 1.0) if counted else max(float(rows), 1.0)

    def ask(self, query: Query) -> float:
        """Return the mean of a query over all examples, with noise; it may lie a little outside of 0 and 1.

        Parameters
        ----------
        query
            A function of the examples, and of the labels if there are any, that returns a number from 0 to 1, or a
            truth value, for each example. It is tried on no examples at all first. Where it fails, the number of each
            single example on which it fails counts as 0, and the query is spent: an error would tell of the examples.

        Raises
        ------
        ParameterError
            It is no such function; nothing is spent.
        BudgetExceededError
            No query is left.
        LedgerError
            The process was forked: its copies would answer for one charge.

        """
        if not callable(query) or isinstance(query, type):
            raise ParameterError("query", query, "a function of the examples", "write lambda examples: ...")
        if _answers(query, _slices(self._given, 0, 0), 0) is None:
            allowed = "a function that returns one number, or truth value, for each example"
            raise ParameterError("query", Words("one that fails where there are no examples"), allowed)
        with self._turns.turn():
            if not self.remaining:
                raise BudgetExceededError(f"all {self.queries} queries were asked")
            self.remaining -= 1
        noisy = self._noisy(self._sum(query))
        self._turns.refuse_other_process()
        return noisy / self.size

    def error(self, miss: Annotated[Real, MISS] = 0.05) -> float:
        """Return how far the noise of any answer reaches: all of them lie closer, with probability at least 1 - miss.

        Under "add_remove" the number of examples, which is measured, moves answers by about as much again.
        """
        allowed = MISS.read("miss", miss) / self.queries
        return self._noise.half_width(allowed) / _UNITS / self.size

    def _sum(self, query: Callable[..., Any]) -> int:
        """Return the sum of what a query says of all examples, in units.

        Where it fails it is asked again about both halves, down to single examples: one on which it fails must not
        move the numbers of others, or the sensitivity would be the number of examples.
        """
        total, parts = 0, [(0, self._rows)]
        while parts:
            start, stop = parts.pop()
            whole = stop - start == self._rows
            answered = _answers(query, self._given if whole else _slices(self._given, start, stop), stop - start)
            if answered is not None:
                numbers = np.clip(np.nan_to_num(as_floats(answered), nan=0.0), 0.0, 1.0)
                total += int(np.rint(numbers * _UNITS).astype(np.int64).sum())
            elif stop - start > 1:
                middle = (start + stop) // 2
                parts += [(start, middle), (middle, stop)]
        return total

    def _noisy(self, exact: int) -> float:
        noisy = self._noise.add(np.array([min(exact, _LARGEST_SUM)]), self._source)
        return float(noisy[0]) / _UNITS

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return len(self._given) == 2

    def _has_columns(self, count: int) -> bool:
        """Return whether examples have so many columns, or are of a kind that does not say how many."""
        empty = np.asarray(_slices(self._given, 0, 0)[0])
        return empty.ndim != 2 or count <= empty.shape[1]

    def __reduce__(self) -> NoReturn:
        raise LedgerError("an oracle cannot be pickled or copied: each copy would answer again for the same charge")

    def _facts(self) -> Facts:
        """Return how many queries are left, never the examples."""
        return [("queries", self.queries), ("remaining", self.remaining)]


ORACLE = Instance(StatisticalQueryOracle, "a dpfast.StatisticalQueryOracle with labels")


def learn_conjunction(
    oracle: Annotated[StatisticalQueryOracle, ORACLE],
    features: Annotated[int, FEATURES],
    *,
    miss: Annotated[Real, MISS] = 0.05,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Learn which features must be true, and which must be false, for a label to be true.

    Guarantee
        The oracle's: it is asked ``2 * features`` queries, and nothing else is seen.

        Of the result, under "replace": if labels are a conjunction of some features and of the negations of some,
        without exception, then with probability at least 1 - miss what is learnt is false wherever the label is, and
        differs from it on a share of 4 * features * tau of the examples at most, tau being ``oracle.error(miss)``. For
        a literal is kept unless, as answered, it is false in more than tau of all examples while the label is true;
        those of the conjunction never are, and any other that is kept is false in 2 tau of all at most.

    Parameters
    ----------
    oracle
        A `StatisticalQueryOracle` with labels, which are true or false, of rows of truth values: an array of two
        dimensions, or a frame. So many queries must be left.
    features
        How many columns there are.
    miss
        The probability that the noise of some answer is larger.

    Returns
    -------
    tuple
        The places of the features that must be true, and of those that must be false (int64). One that stands in both
        says that labels are hardly ever true.

    Raises
    ------
    ParameterError
        An argument is not as above; nothing is asked.

    References
    ----------
    Kearns (1998). Dwork, Roth (2014), section 11.1.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> bits = np.arange(40_000)[:, None] >> np.arange(4) & 1
    >>> labels = (bits[:, 0] == 1) & (bits[:, 3] == 0)
    >>> oracle = StatisticalQueryOracle(bits, labels, queries=8, epsilon=1.0, random=SeededRandom(1))
    >>> learn_conjunction(oracle, features=4)
    (array([0]), array([3]))

    """
    asked = ORACLE.read("oracle", oracle)
    count = FEATURES.read("features", features)
    if not asked.labelled:
        raise ParameterError("oracle", oracle, "one with labels")
    if 2 * count > asked.remaining:
        raise ParameterError("features", features, f"at most {asked.remaining // 2}, half of the oracle's queries left")
    if not asked._has_columns(count):
        raise ParameterError("features", features, "at most the number of the examples' columns")
    tau = asked.error(miss)
    kept: list[list[int]] = [[], []]
    for feature, value in itertools.product(range(count), (True, False)):

        def contradicts(rows: Any, labels: Any, feature: int = feature, value: bool = value) -> NDArray[np.bool_]:
            """Return where the label is true although this feature has not this value."""
            other: NDArray[np.bool_] = np.asarray(rows)[:, feature].astype(bool) != value
            other &= np.asarray(labels).astype(bool)
            return other

        if asked.ask(contradicts) <= tau:
            kept[not value].append(feature)
    return np.array(kept[0], np.int64), np.array(kept[1], np.int64)


def _length(given: Any, argument: str) -> int:
    """Return how many rows there are, of what can be taken in parts."""
    try:
        _slices((given,), 0, 0)
        return len(given)
    except Exception:  # whatever their kind raises
        pass
    allowed = "rows with a length and slices, such as an array, a frame or a list"
    raise ParameterError(argument, Words(f"of type {type(given).__name__}"), allowed)


def _slices(given: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
    """Return the same rows of each, in its own kind."""
    return tuple(one.iloc[start:stop] if hasattr(one, "iloc") else one[start:stop] for one in given)


def _answers(query: Callable[..., Any], given: tuple[Any, ...], rows: int) -> NDArray[Any] | None:
    """Return a query's numbers, None where it fails or returns something else."""
    try:
        answer = query(*given)
        if isinstance(answer, np.ma.MaskedArray):
            answer = np.ma.filled(as_floats(answer), np.nan)
        answered = as_array(answer, "query")
    except (Exception, SystemExit):  # whatever a function of theirs raises
        return None
    return answered if answered.shape == (rows,) and answered.dtype.kind in "biuf" else None
