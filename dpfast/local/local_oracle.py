"""The local randomizer oracle: rows that are asked by any randomizers, each within its own budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.arguments import Instance, Special, Threads
from dpfast.columns.declarations import AnyColumn, TypedColumn, as_array
from dpfast.columns.lists import library_of
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError, Words
from dpfast.exact.amounts import budget_units, exact_text
from dpfast.local.bounded_mean import BoundedMean
from dpfast.local.oracle import FrequencyOracle
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Random
from dpfast.showing import Facts, Shown
from dpfast.turns import Turns

__all__ = ["LocalOracle", "LocalRandomizer", "Values", "length_of", "take_rows"]


def _wrong_values() -> Iterator[object]:
    yield from (1, 0.5, True, "rows", b"rows", {"a": 1}, {1}, object(), len, range(3), pl.DataFrame({"a": [1]}), (1,))


def _wrong_rows() -> Iterator[object]:
    yield from (0.5, "rows", [0.5], [True], [-1], [10**9], [0, 0], [[0]], ["a"], [None], object(), {0})


LocalRandomizer: TypeAlias = FrequencyOracle | BoundedMean
#: A column of any library, or a list.
Values: TypeAlias = Annotated[AnyColumn | list[Any], Special(_wrong_values)]
_RANDOMIZER: Instance[Any] = Instance(LocalRandomizer, "a frequency oracle or a dpf.BoundedMean")  # type: ignore[arg-type]
_Rows: TypeAlias = Annotated[Sequence[int] | TypedColumn | None, Special(_wrong_rows, optional=True)]


class LocalOracle(Shown):
    """Hold people's values, and give out nothing but reports, until a person's budget is spent.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model in everything that `ask` returns, also where
        each call is chosen after seeing the reports of those before: of every row the epsilons of the randomizers that
        it was asked by add up to at most ``epsilon``, in exact arithmetic. A call that would exceed it for one row is
        refused before anything is drawn. Which rows are asked is chosen by whom sees reports alone.

    Parameters
    ----------
    values
        A column of any library, or a list: one row a person.
    epsilon
        What each person spends at most: a number from 1e-18 to 1e6, read as the decimal that it was written as.

    Raises
    ------
    ColumnError
        ``values`` is no column.
    ParameterError
        ``epsilon`` is not as above.

    References
    ----------
    Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith (2011). Dwork, Roth (2014), definitions 12.1 to 12.3,
    observation 12.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> people = LocalOracle(["yes", "no", "no"], epsilon=1.0)
    >>> reports = people.ask(dpf.RandomizedResponse(["yes", "no"], 0.75))
    >>> reports = people.ask(dpf.RandomizedResponse(["yes", "no"], 0.25), rows=[0, 2])
    >>> people.spent.to_list()
    [1.0, 0.75, 1.0]
    >>> people.ask(dpf.RandomizedResponse(["yes", "no"], 0.25))
    Traceback (most recent call last):
    ...
    dpfast.errors.BudgetExceededError: epsilon 0.25 more does not fit into the epsilon 1 of 2 of these rows

    """

    def __init__(self, values: Values, epsilon: Epsilon) -> None:
        self._units = budget_units(epsilon, "epsilon")
        self._values = values
        # Which total each row has spent, and the totals: exact, and few of them.
        self._state = np.zeros(length_of(values), np.int32)
        self._totals = [0]
        self._turns = Turns("a LocalOracle cannot be used after a fork: both processes would spend the same budget")

    @property
    def spent(self) -> pl.Series:
        """What each row has spent, rounded to floats."""
        with self._turns.turn():
            return pl.Series("spent", np.array([float(exact_text(total)) for total in self._totals])[self._state])

    def ask(
        self,
        randomizer: Annotated[LocalRandomizer, _RANDOMIZER],
        *,
        rows: _Rows = None,
        random: Random = None,
        threads: Threads = None,
    ) -> Any:
        """Return reports of rows by a randomizer, and count its epsilon as spent by each of them.

        Parameters
        ----------
        randomizer
            A frequency oracle, as `dpfast.frequency_oracle` returns, or a `dpfast.BoundedMean`.
        rows
            The numbers of the rows to ask, each once; None for all.
        random, threads
            As for the randomizer's ``randomize``.

        Returns
        -------
        same kind as ``values``
            What ``randomizer.randomize`` returns of these rows.

        Raises
        ------
        BudgetExceededError
            A row has less left than the randomizer's epsilon; nothing is drawn.
        ParameterError
            ``randomizer`` is none, or ``rows`` are no different numbers of rows.

        """
        randomizer = _RANDOMIZER.read("randomizer", randomizer)
        chosen = None if rows is None else _read_rows(rows, len(self._state))
        given = self._values if chosen is None else take_rows(self._values, chosen)
        self._charge(budget_units(randomizer.epsilon, "epsilon"), chosen)
        reports = randomizer.randomize(given, random=random, threads=threads)
        self._turns.refuse_other_process()
        return reports

    def _charge(self, units: int, chosen: NDArray[np.int64] | None) -> None:
        with self._turns.turn():
            before = self._state if chosen is None else self._state[chosen]
            states, counts = np.unique(before, return_counts=True)
            pairs = zip(states.tolist(), counts.tolist(), strict=True)
            full = sum(count for state, count in pairs if self._totals[state] + units > self._units)
            if full:
                more, whole = exact_text(units), exact_text(self._units)
                message = f"epsilon {more} more does not fit into the epsilon {whole} of {full} of these rows"
                raise BudgetExceededError(message)
            places = {total: place for place, total in enumerate(self._totals)}
            after = np.zeros(len(self._totals), np.int32)
            for state in states.tolist():
                total = self._totals[state] + units
                if total not in places:
                    places[total] = len(self._totals)
                    self._totals.append(total)
                after[state] = places[total]
            if chosen is None:
                self._state = after[self._state]
            else:
                self._state[chosen] = after[before]

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a LocalOracle cannot be pickled or copied: each copy would spend the same budget again")

    def _facts(self) -> Facts:
        """Return the budget, never the values."""
        return [("rows", len(self._state)), ("epsilon", float(exact_text(self._units)))]


def length_of(values: Any) -> int:
    """Return how many rows a column of any library has.

    Raises
    ------
    ColumnError
        It is no column.

    """
    library, kind = library_of(values), type(values).__name__
    if library == "polars" and isinstance(values, pl.Series):
        return len(values)
    if library == "numpy" and isinstance(values, np.ndarray) and values.ndim == 1:
        return len(values)
    if isinstance(values, list) or (library == "pandas" and kind == "Series"):
        return len(values)
    if library == "pyarrow" and kind.endswith("Array"):
        _refuse_untaken(values)
        return len(values)
    what = f"{library} {kind}".strip()
    raise ColumnError(f"values must be a column of Polars, PyArrow, pandas or NumPy, or a list, but was a {what}")


def take_rows(values: Any, rows: NDArray[np.int64]) -> Any:
    """Return chosen rows of such a column, as a column of its kind."""
    library = library_of(values)
    if library == "polars":
        return values.gather(pl.Series(rows))
    if library == "pyarrow":
        return _taken(values, rows)
    if library == "pandas":
        return values.iloc[rows]
    return [values[row] for row in rows.tolist()] if isinstance(values, list) else values[rows]


def _taken(values: Any, rows: NDArray[np.int64]) -> Any:
    """Return chosen rows of a column of PyArrow, which takes nothing from views."""
    import pyarrow as pa

    wide = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(values.type)
    taken = (values if wide is None else values.cast(wide)).take(pa.array(rows))
    return taken if wide is None else taken.cast(values.type)


def _refuse_untaken(values: Any) -> None:
    """Refuse a column of a type from which no rows can be taken: by that type alone."""
    try:
        take_rows(values[:0], np.zeros(0, np.int64))
        return
    except Exception:  # whatever their library raises
        pass
    raise ColumnError(f"values are of a type that rows cannot be taken from, {str(values.type)[:60]}; cast them")


def _read_rows(rows: Any, length: int) -> NDArray[np.int64]:
    allowed = f"different whole numbers from 0 to {length - 1}"
    array: Any = as_array(rows, "rows")
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError("rows", Words("of another kind"), allowed, "leave it out for all rows")
    numbers: NDArray[np.int64] = array.astype(np.int64)
    if not ((numbers >= 0) & (numbers < length)).all() or np.unique(numbers).size < numbers.size:
        raise ParameterError("rows", Words("repeated, or out of range"), allowed, "leave it out for all rows")
    return numbers
