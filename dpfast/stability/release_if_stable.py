"""A value that hardly any row changes, released as it is: the test of its distance to instability (algorithm 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, TypeAlias

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Special
from dpfast.errors import ParameterError
from dpfast.exact.amounts import budget_units
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.parameters import Epsilon
from dpfast.progress import forgetting
from dpfast.randomness import Random, random_source
from dpfast.stability.aggregators import value_of
from dpfast.stability.answers import Paid, StableAnswer
from dpfast.stability.instability import count_labels, median_instability_of, median_of, mode_of
from dpfast.stability.labels import check_labels
from dpfast.stability.named import Bounded, OptionalGrid, load_points, read_grid_of
from dpfast.stability.passing import Delta, Test, read_delta, read_test
from dpfast.stability.processes import TIMEOUT, WORKERS, Function, Timeout, Workers, prepare_calls
from dpfast.stability.propose_test_release import Distance, distance_of
from dpfast.stability.rows import Data, Rows, read_rows
from dpfast.stability.subsample_and_aggregate import Dataset

__all__ = ["release_if_stable"]


def _no_functions() -> Iterator[object]:
    yield from (5, True, "mean", "", b"mode", [len], object())


_Named: TypeAlias = Annotated[Function | Literal["mode", "median"], Special(_no_functions)]
_Asked: TypeAlias = Callable[[], tuple[Any, int]]


def release_if_stable(
    data: Data,
    function: _Named,
    distance: Distance = None,
    *,
    epsilon: Epsilon,
    delta: Delta,
    bounds: Bounded = None,
    grid: OptionalGrid = None,
    test: Test = "optimal",
    neighbors: Neighbors = "add_remove",
    timeout: Timeout = 600.0,
    workers: Workers = None,
    ledger: Payer = None,
    dataset: Dataset = None,
    privacy_unit: Dataset = None,
    random: Random = None,
) -> StableAnswer:
    """Release a function's value without noise, if many rows would have to change before it does.

    Guarantee
        (epsilon, delta)-differentially private for neighbours that differ in one row, if the distance is right: 0
        where some neighbour has another value, and at most 1 more or less for each neighbour. A value that is no plain
        one is never shown, and counts as one value; a distance that is no number counts as 0.

        Proof. If neighbours have different values, both distances are 0, and either is shown with probability at most
        delta. If they have the same, only whether it is shown tells them apart, which is private by itself
        (`dpfast.stability.passing`). Time is outside of it, and shows how long the functions run.

    Parameters
    ----------
    data
        A column or a frame, as for `dpfast.subsample_and_aggregate`.
    function
        Takes all the data and returns a plain value: a string, finite number, truth value or bytes, or a tuple or list
        of these. Or ``"mode"``, the most frequent value of a column, of any plain values; or ``"median"``, the lower
        median of a column of numbers, with bounds.
    distance
        Takes all the data and returns how many rows can change with the value staying as it is for all neighbours
        too; rounded down. Left out for "mode" and "median".
    epsilon, delta
        Of the test; delta above 0, as an unstable value is shown by chance.
    bounds, grid
        For ``"median"``: as for `dpfast.propose_test_release`.
    test
        ``"optimal"``: passes most often of all. ``"laplace"``: the distance with discrete Laplace noise reaches the
        least threshold that noise alone reaches with probability delta. ``"book"``: the distance with continuous
        noise exceeds ln(1 / delta) / epsilon, as the reference has it.
    neighbors
        ``"add_remove"`` or ``"replace"``: what the distance counts.
    timeout, workers
        As for `dpfast.propose_test_release`.
    ledger
        The budget that is charged, before a function is called.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    StableAnswer
        Its ``value`` is exact; None where the test did not pass. Numbers come back as Python's, lists as tuples.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.

    Notes
    -----
    `dpfast.stability.pass_probability` tells beforehand how often a distance passes. For the mode, the distance is
    the lead of the first over the second, less 1, under add/remove, and ceil(lead / 2) - 1 under replace. Nulls and NaN
    have no part in it.

    References
    ----------
    Dwork, Roth (2014), algorithm 13 and proposition 7.2; Smith, Thakurta (2013).

    Examples
    --------
    >>> import dpfast as dpf
    >>> orders = ["tea"] * 80 + ["milk"] * 15
    >>> answer = dpf.release_if_stable(orders, "mode", epsilon=1.0, delta=1e-6)
    >>> print(answer.explain())
    release if stable: the mode; neighbours add_remove
    test: optimal, epsilon 1, delta 1e-06; a distance of 13 passes with probability 0.7
    cost: epsilon 1, delta 1e-06
    value 'tea'
    >>> dpf.release_if_stable(orders, max, epsilon=1.0, delta=1e-6)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: distance must be given for a function of yours, but was None

    """
    relation = read_neighbors(neighbors)
    amounts = budget_units(epsilon, "epsilon"), read_delta(delta)
    passing = read_test(test, *amounts)
    passing.prepare()
    rows = read_rows(data)
    TIMEOUT.read("timeout", timeout)
    WORKERS.read_optional("workers", workers)
    if callable(function):
        for name, given in (("bounds", bounds), ("grid", grid)):
            if given is not None:
                raise ParameterError(name, given, "left out for a function of yours")
        asked = _given(function, distance, data, rows, timeout, workers)
        what = "a function of the data"
    else:
        asked = _named(function, distance, rows, bounds, grid, relation)
        what = f"the {function}"
    cost = passing.cost("release of a value if it is stable")
    payment = read_payment(
        ledger, Budget("epsilon", *amounts), random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit
    )
    source = random_source(random)
    paid = Paid(payment, [cost])

    def draw() -> StableAnswer:
        value, far = asked()
        passed = passing.passes(far, source)
        told = [f"release if stable: {what}; neighbours {relation}", passing.told()]
        return paid.give(value if passed else None, told)

    with forgetting():
        return draw()


def _given(function: Any, distance: Any, data: object, rows: Rows, timeout: object, workers: object) -> _Asked:
    """Return how functions of the user's are called."""
    if distance is None:
        raise ParameterError("distance", None, "given for a function of yours")
    shared = {"timeout": timeout, "workers": workers, "progress": None, "data": data}
    value_calls = prepare_calls(function, numeric=False, **shared)  # type: ignore[arg-type]
    far_calls = prepare_calls(distance, argument="distance", **shared)  # type: ignore[arg-type]

    def find() -> tuple[Any, int]:
        loaded = rows.load()
        (answer,) = value_calls.run(lambda _: (loaded.whole(),), 1)
        return value_of(answer), distance_of(far_calls, loaded)

    return find


def _named(function: Any, distance: Any, rows: Rows, bounds: Any, grid: Any, relation: Neighbors) -> _Asked:
    """Return how the mode or the median is found, with its distance."""
    if type(function) is not str or function not in ("mode", "median"):
        raise ParameterError("function", function, 'a function of the data, "mode" or "median"')
    if distance is not None:
        raise ParameterError("distance", distance, f"left out for the {function}, whose distance is known")
    if function == "median":
        points = read_grid_of(bounds, grid)
        load = load_points(rows, points, relation)

        def find_median() -> tuple[Any, int]:
            own = load()
            median = median_of(own) * points.step if own.size else None
            return median, median_instability_of(own, relation)

        return find_median
    for name, given in (("bounds", bounds), ("grid", grid)):
        if given is not None:
            raise ParameterError(name, given, "left out for the mode")
    values = column_of(rows)

    def find_mode() -> tuple[Any, int]:
        label, far = mode_of(count_labels(values()), relation)
        return None if label is None else value_of(label.encode()), far

    return find_mode


def column_of(rows: Rows) -> Callable[[], Any]:
    """Return what gives a column's values one by one, once it may be looked at; refuse a frame."""
    if hasattr(type(rows.data), "columns") or getattr(rows.data, "ndim", 1) != 1 or hasattr(rows.data, "schema"):
        raise ParameterError("data", rows.data, "a column for the mode", "select one column of the frame")
    check_labels(rows.data)

    def values() -> Any:
        return rows.load().whole()

    return values
