"""From the error that all answers to a workload may have to the least budget, and the strategy that needs it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpfast.accounting.budget import LARGEST_RHO, Budget, Kind
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.exact.amounts import LARGEST_EPSILON_UNITS, UNITS_PER_ONE
from dpfast.releases.wishes import ERROR, check_limit
from dpfast.strategies import Choice, Strategy
from dpfast.strategies.choosing import choose_for
from dpfast.workloads import Workload

__all__ = ["least_budget"]

#: So often the best strategy is looked for near the budget that the last one needs.
_ROUNDS = 3


def least_budget(
    error: object,
    workload: Workload,
    budget: Budget,
    unit: PrivacyUnit,
    among: Sequence[Strategy] | None,
    limit: int | None,
) -> Budget:
    """Return the least budget with which the root mean square error over all queries is as small as was wished.

    The error of a strategy is its own, known in closed form, times the deviation of the noise, which is inverse to
    epsilon, or to the root of rho, but for its rounding. So the best strategy is looked for where the last one would
    just do, and the least budget for that one found by halving, to a part in 2**40.

    Parameters
    ----------
    error
        What was wished.
    workload, unit, among
        As for `choose_for`.
    budget
        Its kind and delta.
    limit
        What it may be at most, in units of 1e-18.

    Raises
    ------
    ParameterError
        The wish is no number above 0, or costs more than it may.

    """
    wish, kind = ERROR.read("error", error), budget.kind
    most = LARGEST_EPSILON_UNITS if kind == "epsilon" else LARGEST_RHO * UNITS_PER_ONE

    def chosen(units: int, among: Sequence[Strategy] | None) -> Choice:
        return choose_for(workload, Budget(kind, units, budget.delta_units), unit, among)

    def suffices(units: int) -> bool:
        try:
            return chosen(units, [best]).best.rmse <= wish
        except ParameterError:  # noise too wide
            return False

    units = UNITS_PER_ONE
    for _ in range(_ROUNDS):
        considered = chosen(units, among).best
        best = considered.strategy
        ratio = Fraction(considered.rmse) / Fraction(wish)
        units = min(max(int(units * ratio ** _power(kind)), 1000), most)
    low, high = 0, units
    while not suffices(high):
        if high >= most:
            raise ParameterError("error", wish, f"larger: no {kind} meets it")
        low, high = high, min(high + (high >> 6) + 1 if low else 2 * high, most)
    while high - low > max(high >> 40, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    check_limit(kind, high, limit, f"{wish:g}")
    return Budget(kind, high, budget.delta_units)


def _power(kind: Kind) -> int:
    return 1 if kind == "epsilon" else 2
