"""The order of magnitude of a column's spread: the interquartile range, to within a factor (algorithm 12)."""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeAlias

import numpy as np

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Laplace
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Number, Real
from dpfast.columns.declarations import NumberColumn
from dpfast.columns.private import borrow_numbers
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.noise.integer_noise import laplace_of_epsilon
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.mechanisms.parameters import Epsilon
from dpfast.progress import forgetting
from dpfast.randomness import Random, random_source
from dpfast.stability.answers import Cost, Paid, StableAnswer
from dpfast.stability.instability import LARGEST, edges, interquartile_range_of, interquartile_scale_of
from dpfast.stability.named import floats_of
from dpfast.stability.passing import Delta, Test, read_delta, read_test
from dpfast.stability.subsample_and_aggregate import Dataset

__all__ = ["BASE", "Values", "interquartile_scale"]

BASE = Number(1.001, 16)
Values: TypeAlias = NumberColumn
_CONSTANTS = Choice(("book",), optional=True)


def interquartile_scale(
    values: Values,
    *,
    epsilon: Epsilon,
    delta: Delta,
    base: Annotated[Real, BASE] = 2.0,
    constants: Annotated[Literal["book"] | None, _CONSTANTS] = None,
    test: Test = "optimal",
    neighbors: Neighbors = "add_remove",
    ledger: Payer = None,
    dataset: Dataset = None,
    privacy_unit: Dataset = None,
    random: Random = None,
) -> StableAnswer:
    """Release how wide the middle half of a column is, to within a factor, without any bounds on its values.

    Guarantee
        (epsilon, delta)-differentially private, for neighbours that differ in one row.

        Proof. Sizes are parted into bins [base**k, base**(k + 1)), and in a second way into ones shifted by half a bin.
        Each way has half of epsilon and of delta. The bin of the interquartile range is a function of the data, and
        ``distance`` - 1, for the least number of rows to change until the range is in another bin, is 0 where a
        neighbour is in another bin, and differs by 1 at most between neighbours: the bin is released if it is stable
        (`dpfast.release_if_stable`). The first bin that passes is shown, which is post-processing of both.

        With ``constants="book"`` each way has a quarter of epsilon for the test and a quarter for Laplace noise on the
        logarithm, which within a bin moves by 1 at most.

    Parameters
    ----------
    values
        A column of numbers: int64, int32, uint32, float64 or float32. What is beyond 2**1000 counts as that. Nulls and
        NaN are left out under add/remove, and count as 0 under replace.
    epsilon, delta
        For everything together; delta above 0.
    base
        How wide bins are: from 1.001 to 16. The wider, the farther a range is from its bin's edges.
    constants
        ``"book"``: release range * base**Z with noise Z, as the reference's algorithm 12 does; None: the middle of the
        bin, which needs no noise, as a bin that passes is the same for all neighbours.
    test
        As for `dpfast.release_if_stable`; with ``"book"`` the threshold is 1 + ln(1 / delta) / epsilon on the number of
        rows that change the bin. The reference prints 1 + ln(1 / delta), which is not private for small epsilon.
    neighbors
        ``"add_remove"`` or ``"replace"``.
    ledger
        The budget that is charged, before anything is computed.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    StableAnswer
        Its ``value`` is within a factor sqrt(base) of the range; 0.0 if half of the values are the same (closer than
        2**-1000); None if neither way passed.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.

    Notes
    -----
    The quartiles of n values are those of ranks ceil(n / 4) and ceil(3 n / 4). Differences of floats are compared with
    the edges exactly. The reference's square root of 2 is rounded to a float: any two partitions will do.

    References
    ----------
    Dwork, Lei (2009). Dwork, Roth (2014), algorithm 12 and theorem 7.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> incomes = [1_000 + 7 * k for k in range(2_000)]
    >>> dpf.interquartile_scale(incomes, epsilon=1.0, delta=1e-6).value in (5792.618751480198, 8192.0)
    True
    >>> dpf.interquartile_scale(incomes, epsilon=1.0, delta=0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: delta must be a number from 1e-18 to below 1, but was 0; write for example delta=1e-6

    """
    relation = read_neighbors(neighbors)
    epsilon_units, delta_units = budget_units(epsilon, "epsilon"), read_delta(delta)
    width = BASE.read("base", base)
    noisy = _CONSTANTS.read_optional("constants", constants) is not None
    share, half = epsilon_units // (4 if noisy else 2), delta_units // 2
    if not share or not half:
        name, given = ("delta", delta) if share else ("epsilon", epsilon)
        raise ParameterError(name, given, "larger: it is split into parts of at least 1e-18")
    passing = read_test(test, share, half)
    passing.prepare()
    costs = [passing.cost(f"test of a scale, {way} way") for way in ("first", "second")]
    if noisy:
        scale = laplace_of_epsilon(1, share).scale
        costs += [Cost("noise for a scale", Laplace(scale), share)] * 2
    column = borrow_numbers(values, "values")
    budget = Budget("epsilon", epsilon_units, delta_units)
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    source = random_source(random)
    paid = Paid(payment, costs)

    def draw() -> StableAnswer:
        x = floats_of(column, LARGEST, relation)
        found: list[float] = []
        for way in edges(width):
            k, far = interquartile_scale_of(x, way, relation)
            if k is None:
                place, value = None, 0.0
            else:
                # Rounding leaves it within the bin, where the logarithm moves by 1 at most.
                exact = math.log(float(interquartile_range_of(x)) / way.factor) / math.log(width)
                place = min(max(exact, float(k)), k + 1.0)
                value = way.factor * math.pow(width, k + 0.5)
            shown = passing.passes(far, source)
            if noisy:
                moved = float(laplace(np.array([place or 0.0]), scale, random=source)[0])
                bent = min(max(moved, -1000.0 / math.log2(width)), 1000.0 / math.log2(width))
                value = 0.0 if place is None else way.factor * math.pow(width, bent)
            if shown:
                found.append(value)
        told = [
            f"interquartile scale: bins of a factor {width:g}, twice, shifted by half a bin; neighbours {relation}",
            passing.told(),
            f"released: the range with a factor {width:g}**Laplace({UNITS_PER_ONE / share:.6g})"
            if noisy
            else "released: the middle of a bin that passes",
        ]
        return paid.give(found[0] if found else None, told)

    with forgetting():
        return draw()
