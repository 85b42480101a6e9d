"""What is asked of a ledger: single charges, and a million of them as columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting import events
from dpfast.accounting.amounts import (
    LARGEST_DELTA_UNITS,
    LARGEST_EPSILON_UNITS,
    UNITS_PER_ONE,
    charge_units,
)
from dpfast.accounting.events import Single
from dpfast.accounting.units import Units
from dpfast.errors import ParameterError

__all__ = ["Charge", "ChargeColumns", "Item", "check_text"]

#: Kinds of events that come as columns, and what their parameters are called.
COLUMN_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        events.Laplace,
        events.DiscreteLaplace,
        events.Gaussian,
        events.ExponentialMechanism,
        events.PermuteAndFlip,
        events.Pure,
    )
}


def check_text(text: object, argument: str, *, empty: bool) -> None:
    """Refuse what is no plain string, or cannot be stored as UTF-8."""
    if type(text) is not str or not (text or empty):
        raise ParameterError(argument, text, "a string" if empty else "a string that is not empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(argument, text, "a string without lone surrogates") from None


def _check_units(units: object, argument: str, largest: int) -> None:
    if type(units) is not int or not (0 <= units <= largest):
        raise ParameterError(argument, units, f"a whole number of units of 1e-18, from 0 to {largest}")


@dataclass(frozen=True, slots=True)
class Charge:
    """What one query costs, in exact units of 1e-18, or ``count`` equal ones.

    Parameters
    ----------
    epsilon_units, delta_units
        Units of 1e-18 a query, each 0 or more and not both 0; :mod:`dpfast.accounting.amounts` makes them of
        numbers.
    description
        What is paid for, from the plan alone: it stands in the ledger for anyone to read, so it tells nothing
        of the data.
    event
        The mechanism that will run, once a query, which must be (epsilon, delta)-differentially private. None:
        nothing is known but that.
    count
        How many such queries.

    Raises
    ------
    ParameterError
        If an amount, the event or the description is of another kind or range.

    Examples
    --------
    >>> Charge.of(0.1, 1e-9, "mean of delay").epsilon_units
    100000000000000000

    """

    epsilon_units: int
    delta_units: int
    description: str
    event: Single | None = None
    count: int = 1

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse amounts out of range (again, since unpickling goes around ``__init__``)."""
        _check_units(self.epsilon_units, "epsilon_units", LARGEST_EPSILON_UNITS)
        _check_units(self.delta_units, "delta_units", LARGEST_DELTA_UNITS)
        if self.epsilon_units == 0 and self.delta_units == 0:
            raise ParameterError("epsilon_units", 0, "above 0 where delta_units is 0")
        check_text(self.description, "description", empty=True)
        if type(self.count) is not int or not (1 <= self.count < 2**63):
            raise ParameterError("count", self.count, "a whole number from 1 to below 2**63")
        if self.event is not None and type(self.event) not in _SINGLES:
            raise ParameterError("event", self.event, "an event of dpfast.accounting.events that runs once")

    @classmethod
    def of(
        cls, epsilon: object, delta: object = 0, description: str = "", *, event: Single | None = None, count: int = 1
    ) -> Charge:
        """Make a charge of numbers, each rounded up to whole units."""
        return cls(charge_units(epsilon, "epsilon"), charge_units(delta, "delta"), description, event, count)

    @property
    def fact(self) -> Single:
        """What is known of one of the queries."""
        if self.event is not None:
            return self.event
        # The next float up: an event must not say less than the units do.
        epsilon = np.nextafter(self.epsilon_units / UNITS_PER_ONE, np.inf) if self.epsilon_units else 0.0
        if not self.delta_units:
            return events.Pure(float(epsilon))
        return events.Approximate(float(epsilon), float(np.nextafter(self.delta_units / UNITS_PER_ONE, 1.0)))


_SINGLES = frozenset(
    (
        events.Laplace,
        events.DiscreteLaplace,
        events.Gaussian,
        events.ExponentialMechanism,
        events.PermuteAndFlip,
        events.RandomizedResponse,
        events.Pure,
        events.Approximate,
        events.KeySelection,
        events.ZeroConcentrated,
        events.PoissonSubsampled,
        events.Partitioned,
    )
)


@dataclass(frozen=True, eq=False)
class ChargeColumns:
    """Many charges for one kind of mechanism, as columns of one length.

    Parameters
    ----------
    kind
        The event: Laplace, DiscreteLaplace, Gaussian, ExponentialMechanism, PermuteAndFlip or Pure.
    parameters
        For every field of the event a float64 column.
    epsilon
        What each query is charged.
    delta
        Likewise, or None for nothing.
    description
        As in `Charge`, for all of them.

    Raises
    ------
    ParameterError
        If a column is of another kind, length or range.

    """

    kind: type
    parameters: dict[str, NDArray[np.float64]]
    epsilon: Units
    delta: Units | None = None
    description: str = ""

    def __post_init__(self) -> None:
        self.check()

    @property
    def count(self) -> int:
        """How many queries."""
        return len(self.epsilon)

    def check(self) -> None:
        """Refuse columns of other kinds, lengths and ranges."""
        if COLUMN_KINDS.get(getattr(self.kind, "__name__", "")) is not self.kind:
            raise ParameterError("kind", self.kind, f"one of the events {', '.join(COLUMN_KINDS)}")
        check_text(self.description, "description", empty=True)
        names = [field.name for field in fields(self.kind)]
        if list(self.parameters) != names:
            raise ParameterError("parameters", list(self.parameters), f"columns called {', '.join(names)}")
        if type(self.epsilon) is not Units or not len(self.epsilon):
            raise ParameterError("epsilon", self.epsilon, "the units of one query or more")
        for name, column in self.parameters.items():
            if type(column) is not np.ndarray or column.dtype != np.float64 or column.shape != (self.count,):
                raise ParameterError(name, column, f"a column of {self.count} float64 numbers")
            _check_rows(name, column, (column > 0) & (column < np.inf))
        free = _check_amounts(self.epsilon, "epsilon", LARGEST_EPSILON_UNITS, self.count)
        if self.delta is not None:
            free &= _check_amounts(self.delta, "delta", LARGEST_DELTA_UNITS, self.count)
        if free.any():
            raise ParameterError(f"epsilon[{int(np.argmax(free))}]", 0, "above 0 where delta is 0")

    def as_one(self) -> Charge | None:
        """Return the one charge that all rows are, or None."""
        limbs = [self.epsilon.whole, self.epsilon.part]
        limbs += [] if self.delta is None else [self.delta.whole, self.delta.part]
        if any((column != column[0]).any() for column in (*self.parameters.values(), *limbs)):
            return None
        event = self.kind(**{name: _number(column[0]) for name, column in self.parameters.items()})
        delta = 0 if self.delta is None else self.delta[0]
        return Charge(self.epsilon[0], delta, self.description, event, self.count)

    @property
    def epsilon_units(self) -> int:
        """The sum of all epsilons, exactly."""
        return self.epsilon.total()

    @property
    def delta_units(self) -> int:
        """The sum of all deltas, exactly."""
        return 0 if self.delta is None else self.delta.total()


def _check_amounts(units: Units, argument: str, largest: int, count: int) -> NDArray[np.bool_]:
    """Refuse amounts out of range; return where they are 0."""
    for limb in (units.whole, units.part):
        if type(limb) is not np.ndarray or limb.dtype != np.int64 or limb.shape != (count,):
            raise ParameterError(argument, limb, f"two columns of {count} whole numbers (int64)")
    within = (units.whole >= 0) & (units.whole <= largest // UNITS_PER_ONE)
    _check_rows(argument, units.whole, within & (units.part >= 0) & (units.part <= UNITS_PER_ONE + 128))
    free: NDArray[np.bool_] = (units.whole == 0) & (units.part == 0)
    return free


def _check_rows(argument: str, column: NDArray[Any], good: NDArray[np.bool_]) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise ParameterError(f"{argument}[{row}]", column[row].item(), "a positive finite number within its range")


def _number(value: np.float64) -> float | int:
    """Return a number as the events want it: sensitivities of integers are integers."""
    number = float(value)
    return int(number) if number.is_integer() else number


Item = Charge | ChargeColumns
