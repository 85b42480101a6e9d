"""What every way of counting is: facts from public parameters, and the state that a stream leaves behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Single
from dpfast.aggregation.private import Private
from dpfast.errors import ParameterError
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.integer_noise import (
    IntegerNoise,
    declared_amounts,
    gaussian_of_delta,
    gaussian_of_rho,
    laplace_of_epsilon,
)
from dpfast.randomness import RandomSource
from dpfast.streaming.unit import Norms, StreamUnit

__all__ = ["LARGEST_TOTAL", "Found", "Method", "State", "noise_for"]

#: As JSON can say it.
Found: TypeAlias = dict[str, Any]

LARGEST_TOTAL = 2**61
"""Increments are moved to where no sum of them exceeds it."""

#: Neither the noise of one node nor a total leaves the integers of 64 bits, and their sums do not either.
LARGEST_SCALE = 2.0**48
_MEND = "raise it, shorten the horizon, or count in coarser units"


class State(Private, ABC):
    """What is kept of a stream between its steps: private, except where it says otherwise.

    Attributes
    ----------
    step
        How many steps have been.
    arrays
        By name, all that the next step needs: one column for each counter, or rows of them.

    """

    def __init__(self, **arrays: NDArray[Any]) -> None:
        self.step = 0
        self.arrays = arrays

    @abstractmethod
    def advance(
        self, increments: NDArray[np.int64], limit: int, source: RandomSource, threads: int | None
    ) -> NDArray[np.int64]:
        """Take a step: return every counter's figure."""

    def run(
        self, increments: NDArray[np.int64], limit: int, sources: Callable[[], RandomSource], threads: int | None
    ) -> NDArray[np.int64]:
        """Take a step of a single counter for each increment; return the figures."""
        figures = np.empty(increments.size, np.int64)
        for row in range(increments.size):
            figures[row] = self.advance(increments[row : row + 1], limit, sources(), threads)[0]
        return figures


class Method(ABC):
    """A way to count over a horizon, planned from public parameters.

    Attributes
    ----------
    horizon
        The number of steps that are paid for.
    noise
        What is drawn afresh for each measurement, and the event of all of them together.

    """

    name: ClassVar[str]
    noise: IntegerNoise

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    @property
    def largest_increment(self) -> int:
        """Where increments are moved to, so that totals stay in 64 bits."""
        return LARGEST_TOTAL // self.horizon

    @property
    def found(self) -> Found:
        """What was searched for when this was planned: enough, with its arguments, to plan it again."""
        return {}

    @property
    def event(self) -> Single:
        """All measurements of the horizon together, for an accountant."""
        return self.noise.event

    def charge(self, budget: Budget, description: str) -> Charge:
        """Return what they cost: the very event that is drawn, which costs no more than the budget."""
        if budget.kind == "rho":
            return Charge(*declared_amounts(self.event), description, self.event)
        delta = budget.delta_units if self.noise.mechanism == "gaussian" else 0
        return Charge(budget.units, delta, description, self.event)

    @abstractmethod
    def variances(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the variance of the figure at each of these steps, counted from 1."""

    @abstractmethod
    def mean_variance(self) -> float:
        """Return the mean of the variances over the horizon."""

    @abstractmethod
    def begin(self, counters: int) -> State:
        """Return the state before the first step."""


def noise_for(
    budget: Budget, unit: StreamUnit, norms: Norms, *, gaussian: bool, largest: float = LARGEST_SCALE
) -> IntegerNoise:
    """Return the least noise that a budget buys for measurements of these norms.

    Raises
    ------
    ParameterError
        The noise would be wider than the counters.

    """
    squared = unit.l2_squared(norms)
    if budget.kind == "rho":
        noise = gaussian_of_rho(squared, budget.units, mend=_MEND)
    elif gaussian:
        noise = gaussian_of_delta(squared, budget.units, budget.delta_units, mend=_MEND)
    else:
        noise = laplace_of_epsilon(unit.l1(norms), budget.units, mend=_MEND)
    if noise.scale > largest:
        allowed = "larger: the noise would be wider than totals are"
        raise ParameterError(budget.kind, float(budget.amount), allowed, _MEND)
    return noise
