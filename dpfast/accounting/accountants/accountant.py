"""What every accountant offers: epsilon for a delta, delta for an epsilon, both as upper bounds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, TypeAlias

import numpy as np

from dpfast.accounting.events import Event, Laplace, Partitioned, Single, runs
from dpfast.arguments import Number, Real, Special
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import as_written, round_up
from dpfast.showing import Facts, Shown

__all__ = [
    "Accountant",
    "Events",
    "checked_delta",
    "checked_epsilon",
    "dearest",
    "nearly",
    "pair_total",
    "refused",
    "smallest_epsilon",
]

TARGET_DELTA = Number(0, 1, below=True, mend="write for example {name}=1e-6")
TARGET_EPSILON = Number(0, 1e300, mend="write for example {name}=0.5")
#: An event, or several: `dpfast.accounting.events.runs` reads them.
Events: TypeAlias = Annotated[
    Event | Iterable[Event], Special(lambda: (5, True, "text", [], [5], [None], {}, object(), Laplace, np.array(5)))
]
TargetDelta: TypeAlias = Annotated[Real, TARGET_DELTA]
TargetEpsilon: TypeAlias = Annotated[Real, TARGET_EPSILON]


class Accountant(Shown, ABC):
    """A theorem on composition, applied to events.

    Guarantee
        The events together are (``epsilon(delta)``, ``delta``)- and (``epsilon``, ``delta(epsilon)``)-differentially
        private, for the privacy unit and the neighbour relation that they are for. Every figure is rounded up.

    Raises
    ------
    ParameterError
        At construction, where something is no event or an event has no place in the theorem.
    """

    @abstractmethod
    def __init__(self, events: Events) -> None: ...

    def _set(self, **figures: object) -> None:
        """Set fields, which nobody else can."""
        for name, figure in figures.items():
            object.__setattr__(self, name, figure)

    @property
    @abstractmethod
    def _told(self) -> dict[str, float]:
        """What was added up, as a person reads it: not in whole units."""

    def _facts(self) -> Facts:
        """Return what was added up."""
        return [(name, Words(f"{figure:.6g}")) for name, figure in self._told.items()]

    @classmethod
    def applies(cls, events: Events) -> bool:
        """Return whether every event has a place in this accountant; what is no event is refused."""
        singles = tuple(event.times(count) for event, count in runs(events).items())
        try:
            cls(singles)
        except ParameterError:
            return False
        return True

    def epsilon(self, delta: TargetDelta) -> float:
        """Return an epsilon at which the events are (epsilon, delta)-private; infinity where none is known.

        Parameters
        ----------
        delta
            At least 0 and below 1; a float is read as the decimal it was written as.
        """
        return self._epsilon(checked_delta(delta))

    def delta(self, epsilon: TargetEpsilon) -> float:
        """Return a delta at which the events are (epsilon, delta)-private; 1 where none is known.

        Parameters
        ----------
        epsilon
            At least 0 and at most 1e300; a float is read as the decimal it was written as.
        """
        return self._delta(checked_epsilon(epsilon))

    @abstractmethod
    def _epsilon(self, target: Fraction) -> float:
        """Return the theorem's epsilon at a delta."""

    @abstractmethod
    def _delta(self, target: Fraction) -> float:
        """Return the theorem's delta at an epsilon."""


def _as_written(declared: Number, argument: str, given: object) -> Fraction:
    """Return a number exactly; a float is read as the decimal that it was written as."""
    number = declared.read(argument, given)
    exact = Fraction(given) if isinstance(given, (int, Decimal, Fraction)) else as_written(number)
    if exact < declared.least:  # by so little that a float is 0
        raise declared.refusal(argument, given)
    return exact


def checked_delta(given: object, argument: str = "delta") -> Fraction:
    """Return a target delta as it was written, or refuse it."""
    return _as_written(TARGET_DELTA, argument, given)


def checked_epsilon(given: object, argument: str = "epsilon") -> Fraction:
    """Return a target epsilon as it was written, or refuse it."""
    return _as_written(TARGET_EPSILON, argument, given)


def nearly(units: int) -> float:
    """Return an amount of units of 1e-18 about, as a float that does not overflow: to search with, not to report."""
    return min(units, 10**318) / UNITS_PER_ONE


def refused(event: Single, accountant: str, takes: str, instead: str) -> ParameterError:
    """Return the error that names an event which has no place in an accountant."""
    name = type(event).__name__
    return ParameterError("events", event, f"{takes} for {accountant}", f"account for the {name} by {instead}")


def dearest(event: Partitioned, cost: Callable[[Event], tuple[int, int]]) -> tuple[int, int]:
    """Return the larger of each coordinate over the parts: a unit lies in one of them."""
    parts = [cost(part) for part in event.events]
    return max(part[0] for part in parts), max(part[1] for part in parts)


def pair_total(events: Events, cost: Callable[[Single], tuple[int, int]]) -> tuple[int, int]:
    """Return the sums of both coordinates of a cost over all runs of all events."""
    first = second = 0
    for event, count in runs(events).items():
        one, other = cost(event)
        first += count * one
        second += count * other
    return first, second


def smallest_epsilon(delta_at: Callable[[float], float], delta: Fraction, guess: float) -> float:
    """Return an epsilon with ``delta_at(epsilon) <= delta``, next to the least, or infinity.

    Guarantee
        The inequality was evaluated at the float below the one returned, so that an upper bound ``delta_at`` gives
        one here, also where the float is read as the decimal that it denotes.

    Parameters
    ----------
    delta_at
        Falls as epsilon grows.
    delta
        What to reach.
    guess
        Where to begin, above 0.

    """
    limit = -round_up(-delta) if delta else 0.0
    if delta_at(0.0) <= limit:
        return 0.0
    low, high = 0.0, guess
    while not delta_at(high) <= limit:
        low, high = high, 2.0 * high
        if math.isinf(high):
            return high
    while high - low > 2.0**-50 * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if delta_at(middle) <= limit else (middle, high)
    return math.nextafter(high, math.inf)
