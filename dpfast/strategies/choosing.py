"""Which strategy answers a workload with the least error: all candidates' errors in closed form, without the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import BOUND, Bound, Neighbors, PrivacyUnit, read_neighbors
from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, NoiseTooWideError
from dpfast.showing import Card, Shown, number_of
from dpfast.strategies.candidates import candidates
from dpfast.strategies.noise import cheapest_noise
from dpfast.strategies.strategy import Strategy
from dpfast.workloads.workload import ANY_WORKLOAD, AskedOfAny, Workload

__all__ = ["Choice", "Considered", "choose", "choose_for", "consider", "consider_all", "read_unit"]

_ERRORS: WeakKeyDictionary[Workload, WeakKeyDictionary[Strategy, float]] = WeakKeyDictionary()


@dataclass(frozen=True, repr=False)
class Considered(Shown):
    """A strategy that was considered for a workload.

    Attributes
    ----------
    strategy, noise
        What would be measured, and with which noise.
    rmse
        The root of the mean, over all queries, of an answer's squared error: predicted, from public parameters.

    """

    strategy: Strategy
    noise: IntegerNoise
    rmse: float

    def __str__(self) -> str:
        return f"{self.strategy.name}: root mean squared error {self.rmse:.5g} ({self.noise.mechanism} noise)"


@dataclass(frozen=True, repr=False)
class Choice(Shown):
    """The best of the strategies considered, and all of them, the best first."""

    considered: tuple[Considered, ...]

    @property
    def best(self) -> Considered:
        """The one with the least predicted error."""
        return self.considered[0]

    @property
    def strategy(self) -> Strategy:
        """The best one's strategy."""
        return self.best.strategy

    def __str__(self) -> str:
        return "\n".join(map(str, self.considered))

    def _card(self) -> Card:
        rows = [[one.strategy.name, one.noise.mechanism, f"{one.rmse:.5g}"] for one in self.considered]
        headers = "strategy", "noise", "root mean squared error"
        among = f"Choice among {number_of(len(rows), 'strategy', 'strategies')}, the best first"
        return Card([among], headers=headers, rows=rows)


def read_unit(neighbors: object, max_groups: object, max_rows_per_group: object) -> PrivacyUnit:
    """Return the privacy unit of a histogram, or refuse what is none."""
    groups = BOUND.read("max_groups", max_groups)
    rows = BOUND.read("max_rows_per_group", max_rows_per_group)
    return PrivacyUnit(None, groups, rows, read_neighbors(neighbors))


def consider(strategy: Strategy, workload: Workload, budget: Budget, unit: PrivacyUnit) -> Considered:
    """Return a strategy with its noise under a budget, and the error that it will make."""
    if strategy.shape != workload.shape:
        raise ParameterError("strategy", Words(f"one of shape {strategy.shape}"), f"one of shape {workload.shape}")
    noise, error = cheapest_noise(strategy.sensitivity(unit), budget), _error(strategy, workload)
    if not math.isfinite(error):
        allowed = "one whose measurements determine all answers to the workload"
        raise ParameterError("strategy", strategy.name, allowed, "measure more, or ask less")
    return Considered(strategy, noise, noise.deviation * math.sqrt(error / len(workload)))


def consider_all(made: Sequence[Strategy], workload: Workload, budget: Budget, unit: PrivacyUnit) -> list[Considered]:
    """Return the candidates with their noise, but those that would need wider noise than an int64 can hold.

    Numbers in fixed point need noise that is as many times wider. The identity, which is first, does not: where even
    its noise is too wide, the budget is refused.
    """
    considered = [consider(made[0], workload, budget, unit)]
    for strategy in made[1:]:
        with suppress(NoiseTooWideError):
            considered.append(consider(strategy, workload, budget, unit))
    return considered


def _error(strategy: Strategy, workload: Workload) -> float:
    """Return `Strategy.error`, which the budget has no part in, worked out once as long as both live."""
    try:
        known = _ERRORS.setdefault(workload, WeakKeyDictionary())
        if strategy in known:
            return known[strategy]
    except TypeError:  # classes of one's own that cannot be keys
        return strategy.error(workload)
    known[strategy] = error = strategy.error(workload)
    return error


def _no_strategies() -> Iterator[object]:
    yield from (5, True, "identity", [], ["identity"], [5], [None], {}, object(), Strategy, [Strategy])


def choose(
    workload: AskedOfAny,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    neighbors: Neighbors = "add_remove",
    max_groups: Bound = 1,
    max_rows_per_group: Bound = 1,
    among: Annotated[Sequence[Strategy] | None, Special(_no_strategies, optional=True)] = None,
) -> Choice:
    """Choose the strategy that answers a workload with the least predicted error.

    Guarantee
        Nothing is read but public parameters: the choice costs no privacy.

    Parameters
    ----------
    workload
        The queries.
    epsilon, delta
        The budget: with a delta, Gaussian noise is considered too.
    rho
        Or the budget in zero-concentrated differential privacy.
    neighbors, max_groups, max_rows_per_group
        What neighbouring data sets are, as for `matrix_mechanism`.
    among
        The strategies to choose from; by default all that are made for such a workload.

    Returns
    -------
    Choice
        All that were considered with their predicted errors, the best first.

    Raises
    ------
    ParameterError
        An argument is not as above.

    Examples
    --------
    >>> import dpfast as dpf
    >>> choice = choose(dpf.workloads.prefix(1024), epsilon=1)
    >>> print(choice.best)
    weighted blocks of 1, 16, 256: root mean squared error 10.907 (laplace noise)
    >>> next(one for one in choice.considered if one.strategy.name == "H16 with root").rmse.__round__(3)
    12.946

    """
    ANY_WORKLOAD.read("workload", workload)
    budget, unit = read_budget(epsilon, delta, rho), read_unit(neighbors, max_groups, max_rows_per_group)
    return choose_for(workload, budget, unit, among)


def choose_for(
    workload: Workload, budget: Budget, unit: PrivacyUnit, among: Sequence[Strategy] | None = None
) -> Choice:
    """Choose as `choose` does, for a budget and a privacy unit that were read."""
    made = candidates(workload, budget) if among is None else list(among) if isinstance(among, Iterable) else []
    if not made or not all(isinstance(strategy, Strategy) for strategy in made):
        raise ParameterError("among", among, "a list of one strategy or more", "write [dpf.strategies.identity(100)]")
    if among is not None:
        considered = [consider(strategy, workload, budget, unit) for strategy in made]
    else:
        considered = consider_all(made, workload, budget, unit)
    return Choice(tuple(sorted(considered, key=lambda one: one.rmse)))
