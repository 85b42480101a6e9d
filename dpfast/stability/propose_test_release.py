"""Propose, test, release: noise for a proposed bound on the local sensitivity, where the data are far from worse."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Laplace
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Number, Real, Special
from dpfast.columns.grid import Bounds
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import round_up
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.noise.calibration import laplace_scale
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.mechanisms.parameters import Epsilon
from dpfast.progress import forgetting
from dpfast.randomness import Random, random_source
from dpfast.stability.answers import Cost, Paid, StableAnswer
from dpfast.stability.instability import median_of, rows_until_wide
from dpfast.stability.named import Bounded, OptionalGrid, load_points, read_grid_of
from dpfast.stability.passing import Delta, Test, read_delta, read_test
from dpfast.stability.processes import TIMEOUT, WORKERS, Calls, Function, Timeout, Workers, prepare_calls
from dpfast.stability.rows import Data, Loaded, Rows, read_rows
from dpfast.stability.subsample_and_aggregate import Dataset

__all__ = ["Distance", "Share", "distance_of", "propose_test_release"]

_LARGEST = 2.0**960
_BOUND = Number(1e-250, 1e250)
_DEFAULT = Number()
SHARE = Number(0, 1, above=True, below=True)
#: The part of epsilon that a test gets.
Share: TypeAlias = Annotated[Real, SHARE]


def _no_functions() -> Iterator[object]:
    yield from (5, True, "mean", "", b"median", [len], object())


_Named: TypeAlias = Annotated[Function | Literal["median"], Special(_no_functions)]
#: A function of all the data: how many rows can change before the value is at risk.
Distance: TypeAlias = Annotated[
    Callable[..., object] | None, Special(lambda: (5, True, "distance", b"a", [len], object()), optional=True)
]


def propose_test_release(
    data: Data,
    function: _Named,
    distance: Distance = None,
    *,
    bound: Annotated[Real, _BOUND],
    epsilon: Epsilon,
    delta: Delta,
    bounds: Bounded = None,
    grid: OptionalGrid = None,
    default: Annotated[Real, _DEFAULT] = 0.0,
    test_share: Share = 0.5,
    test: Test = "optimal",
    neighbors: Neighbors = "add_remove",
    timeout: Timeout = 600.0,
    workers: Workers = None,
    ledger: Payer = None,
    dataset: Dataset = None,
    privacy_unit: Dataset = None,
    random: Random = None,
) -> StableAnswer:
    """Propose a bound on the local sensitivity; release the value with noise for it if the data are far from others.

    Guarantee
        (epsilon, delta)-differentially private for neighbours that differ in one row, if the distance is right: 0
        where some neighbour's value differs from the data's by more than ``bound``, and at most 1 more or less for
        each neighbour. What either function gives that is no number counts as ``default``, and for the distance as 0;
        of the value that is part of what the distance must be right about. The distances of ours are.

        Proof. Let x and x' be neighbours. If the local sensitivity is above the bound at both, both distances are 0,
        and any value is shown with probability at most delta on either side. Otherwise the values differ by at most
        ``bound``, the test is private by itself (`dpfast.stability.passing`), and the noise of scale
        bound / epsilon_2 is epsilon_2-private: epsilon_1 + epsilon_2 in all. Time is outside of it, and it
        shows how long the functions run.

    Parameters
    ----------
    data
        A column or a frame, as for `dpfast.subsample_and_aggregate`.
    function
        Takes all the data and returns a number; or ``"median"``, the lower median of a column, with bounds.
    distance
        Takes all the data and returns the least number of rows to change until the local sensitivity is above the
        bound; what is no whole number is rounded down. Left out for ``"median"``.
    bound
        What is proposed: a number from 1e-250 to 1e250. Public.
    epsilon, delta
        For test and noise together; delta above 0, as a value is shown by chance where it should not.
    bounds, grid
        For ``"median"``: values are clipped to the bounds, and rounded to the grid, a power of two; by default there
        are 2**39 to 2**40 steps.
    default
        What counts for a value that is no number.
    test_share
        The part of epsilon that the test gets.
    test
        ``"optimal"``, ``"laplace"`` or ``"book"``, as for `dpfast.release_if_stable`.
    neighbors
        ``"add_remove"`` or ``"replace"``: what the distance counts.
    timeout
        Seconds that each of the two functions may take.
    workers
        0 calls them in this process, without a timeout; otherwise in one of its own.
    ledger
        The budget that is charged, before a function is called.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    StableAnswer
        Its ``value`` is a float, or None where the test did not pass.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.

    References
    ----------
    Dwork, Lei (2009). Dwork, Roth (2014), section 7.2.

    Examples
    --------
    >>> import dpfast as dpf
    >>> ages = [20 + k % 40 for k in range(2_000)]
    >>> answer = dpf.propose_test_release(ages, "median", bound=1, bounds=(0, 120), epsilon=1.0, delta=1e-6)
    >>> abs(answer.value - 39) < 40
    True
    >>> dpf.propose_test_release(ages, "median", bound=0, bounds=(0, 120), epsilon=1.0, delta=1e-6)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: bound must be a number from 1e-250 to 1e+250, but was 0

    """
    exact, relation = _BOUND.read_exactly("bound", bound), read_neighbors(neighbors)
    epsilon_units, delta_units = budget_units(epsilon, "epsilon"), read_delta(delta)
    share = SHARE.read("test_share", test_share)
    for_test = min(max(int(Fraction(share) * epsilon_units), 1), epsilon_units - 1)
    if not for_test:
        raise ParameterError("epsilon", epsilon, "larger: the test and the noise need some each")
    passing = read_test(test, for_test, delta_units)
    passing.prepare()
    instead = _DEFAULT.read("default", default)
    rest = epsilon_units - for_test
    widest = Fraction(round_up(exact))
    scale = laplace_scale(widest, Fraction(rest, UNITS_PER_ONE))
    if not scale <= _LARGEST:
        raise ParameterError("bound", bound, "smaller: the noise would be beyond all floats")
    noise = Cost("noise for a proposed bound", Laplace(scale, round_up(widest)), rest)
    costs = [passing.cost("test of a proposed bound"), noise]
    rows = read_rows(data)
    TIMEOUT.read("timeout", timeout)
    WORKERS.read_optional("workers", workers)
    asked = _named(function, distance, rows, bounds, grid, exact, relation)
    if asked is None:
        asked = _given(function, distance, data, rows, bounds, grid, timeout, workers, instead)
    budget = Budget("epsilon", epsilon_units, delta_units)
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    source = random_source(random)
    paid = Paid(payment, costs)

    def draw() -> StableAnswer:
        value, far = asked()
        shown = passing.passes(far, source)
        released = float(laplace(np.array([value]), scale, random=source)[0])
        told = [
            f"propose, test, release: local sensitivity at most {float(exact):.6g}; neighbours {relation}",
            passing.told(),
            f"noise: Laplace of scale {scale:.6g}, epsilon {rest / UNITS_PER_ONE:.12g}",
        ]
        return paid.give(released if shown else None, told)

    with forgetting():
        return draw()


_Asked: TypeAlias = Callable[[], tuple[float, int]]


def _named(
    function: Any, distance: Any, rows: Rows, bounds: Bounds | None, grid: Any, bound: Fraction, relation: Neighbors
) -> _Asked | None:
    """Return how the median and its distance are found; None where functions are given."""
    if callable(function):
        return None
    if type(function) is not str or function != "median":
        raise ParameterError("function", function, 'a function of the data, or "median"')
    if distance is not None:
        raise ParameterError("distance", distance, "left out for the median, whose distance is known")
    points = read_grid_of(bounds, grid)
    load = load_points(rows, points, relation)
    # A local sensitivity above the bound is one above as many steps.
    steps = math.floor(bound / Fraction(points.step))

    def find() -> tuple[float, int]:
        own = load()
        far = rows_until_wide(own, points.lower, points.upper, steps, relation)
        median = median_of(own) if own.size else points.lower
        return median * points.step, own.size + 2 if far is None else far

    return find


def _given(
    function: Any,
    distance: Any,
    data: object,
    rows: Rows,
    bounds: object,
    grid: object,
    timeout: object,
    workers: object,
    default: float,
) -> _Asked:
    for name, given in (("bounds", bounds), ("grid", grid)):
        if given is not None:
            raise ParameterError(name, given, "left out for a function of yours")
    if distance is None:
        raise ParameterError("distance", None, "given for a function of yours", "see the examples for the median")
    value_of = prepare_calls(function, timeout=timeout, workers=workers, progress=None, data=data)
    far_of = prepare_calls(distance, timeout=timeout, workers=workers, progress=None, data=data, argument="distance")

    def find() -> tuple[float, int]:
        loaded = rows.load()
        (answer,) = value_of.run(lambda _: (loaded.whole(),), 1)
        value = struct.unpack("<d", answer)[0] if answer else default
        return min(max(value, -_LARGEST), _LARGEST), distance_of(far_of, loaded)

    return find


def distance_of(calls: Calls, loaded: Loaded) -> int:
    """Return a distance that a function gave, rounded down: 0 for what is no number."""
    (answer,) = calls.run(lambda _: (loaded.whole(),), 1)
    number = struct.unpack("<d", answer)[0] if answer else 0.0
    return math.floor(min(max(number, 0.0), 2.0**52))
