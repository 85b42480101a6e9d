"""The median with noise that follows the data at hand, by its smooth sensitivity."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from dpfast.accounting.budget import Budget, Delta
from dpfast.accounting.events import Approximate, Pure
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Special
from dpfast.columns.grid import Bounds
from dpfast.columns.private import borrow_numbers
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import written_below
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.parameters import Epsilon
from dpfast.progress import forgetting
from dpfast.randomness import Random, random_source
from dpfast.stability.answers import Cost, Paid, StableAnswer
from dpfast.stability.instability import median_of
from dpfast.stability.interquartile_scale import Values
from dpfast.stability.named import OptionalGrid, points_of, read_grid_of
from dpfast.stability.smooth import smooth_noise, smooth_sensitivity_of
from dpfast.stability.subsample_and_aggregate import Dataset

__all__ = ["smooth_median"]


def _no_bounds() -> tuple[object, ...]:
    return (5, "01", (), (1,), (0, 1, 2), (5, 5), (9, 0), (0, float("nan")), (0, 1e301), object())


def smooth_median(
    values: Values,
    *,
    bounds: Annotated[Bounds, Special(_no_bounds)],
    epsilon: Epsilon,
    delta: Delta = None,
    grid: OptionalGrid = None,
    neighbors: Neighbors = "add_remove",
    ledger: Payer = None,
    dataset: Dataset = None,
    privacy_unit: Dataset = None,
    random: Random = None,
) -> StableAnswer:
    """Release the median with noise in proportion to its smooth sensitivity; `dpfast.quantiles` is mostly better.

    Guarantee
        (epsilon, delta)-differentially private, for neighbours that differ in one row. With ``delta`` the noise is
        Laplace, without it Cauchy noise. What is released is the median with that noise rounded to a public grid,
        exactly distributed whatever the sensitivity is. The proof stands in `dpfast.stability.smooth`.

    Parameters
    ----------
    values
        A column of numbers: int64, int32, uint32, float64 or float32. Nulls and NaN are left out under add/remove, and
        count as the lower bound under replace.
    bounds
        The lowest and the highest value; others are clipped. Public.
    epsilon, delta
        The budget; delta above 0 or left out.
    grid
        The distance between points, a power of two, to which values and result are rounded: by default the bounds are
        parted into 2**39 to 2**40 steps.
    neighbors
        ``"add_remove"`` or ``"replace"``: under the first a row moves the median half as far.
    ledger
        The budget that is charged, before anything is computed.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    StableAnswer
        Its ``value`` is a float within the bounds: never None.

    Raises
    ------
    ParameterError, ColumnError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.

    Notes
    -----
    `dpfast.quantiles` draws a median by how many rows are on each side: the inverse sensitivity mechanism, which is of
    pure epsilon and nearly always closer (Asi, Duchi 2020). This one stands here for comparison, and because noise of a
    known law on a known value is sometimes wanted.

    References
    ----------
    Nissim, Raskhodnikova, Smith (2007), sections 2 and 3. Bun, Steinke (2019). Asi, Duchi (2020).

    Examples
    --------
    >>> import dpfast as dpf
    >>> ages = [20 + k % 40 for k in range(4_000)]
    >>> bool(20 <= dpf.smooth_median(ages, bounds=(0, 120), epsilon=1.0, delta=1e-6).value <= 60)
    True

    """
    relation = read_neighbors(neighbors)
    amounts = budget_units(epsilon, "epsilon"), 0 if delta is None else budget_units(delta, "delta")
    noise = smooth_noise(*(Fraction(units, UNITS_PER_ONE) for units in amounts))
    column = borrow_numbers(values, "values")
    points = read_grid_of(bounds, grid)
    amount = written_below(amounts[0])
    event = Approximate(amount, written_below(amounts[1])) if amounts[1] else Pure(amount)
    cost = Cost("median by smooth sensitivity", event, *amounts)
    payment = read_payment(
        ledger, Budget("epsilon", *amounts), random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit
    )
    source = random_source(random)
    paid = Paid(payment, [cost])

    def draw() -> StableAnswer:
        own = points_of(column, points, relation)
        spread = smooth_sensitivity_of(own, points.lower, points.upper, noise.beta, relation)
        median = median_of(own) if own.size else points.lower
        drawn = noise.add(Fraction(median), Fraction(spread), source)
        value = min(max(drawn, points.lower), points.upper) * points.step
        told = [
            f"median, {noise.kind.capitalize()} noise by its {noise.beta:.4g}-smooth sensitivity; "
            f"neighbours {relation}",
            f"grid: {points.describe()}",
        ]
        return paid.give(value + 0.0, told)

    with forgetting():
        return draw()
