"""What is asked of a ledger: single charges, and a million of them as columns."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.events import Approximate, Pure, Single
from dpfast.accounting.facts import FACTS
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import LARGEST_DELTA_UNITS, LARGEST_EPSILON_UNITS, UNITS_PER_ONE, charge_units, to_float
from dpfast.exact.balls import as_written
from dpfast.ledger.agreement import check_columns, check_event
from dpfast.showing import Facts, Shown

__all__ = ["Charge", "ChargeColumns", "Item", "check_text", "recorded"]

_Item = TypeVar("_Item", "Charge", "ChargeColumns")

_LEAST_POSITIVE, _LARGEST_FINITE = math.nextafter(0.0, 1.0), sys.float_info.max

#: Kinds of events that come as columns, and what their parameters are called.
COLUMN_KINDS: dict[str, type] = {kind.__name__: kind for kind, facts in FACTS.items() if facts.in_ledger_columns}


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


@dataclass(frozen=True, slots=True, repr=False)
class Charge(Shown):
    """What one query costs, in exact units of 1e-18, or ``count`` equal ones.

    Parameters
    ----------
    epsilon_units, delta_units
        Units of 1e-18 a query, each 0 or more and not both 0 (unless the event is one for ledgers that add up
        rho alone); :mod:`dpfast.exact.amounts` makes them of numbers.
    description
        What is paid for, from the plan alone: it stands in the ledger for anyone to read, so it tells nothing
        of the data.
    event
        The mechanism that will run, once a query. It must be (epsilon, delta)-differentially private by what is
        known of it, else a ledger that counts the one and a ledger that counts the other would disagree
        (`dpfast.ledger.agreement`). None: nothing is known but the amounts.
    count
        How many such queries.

    Raises
    ------
    ParameterError
        If an amount, the event or the description is of another kind or range, or the event costs more.

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

    def _facts(self) -> Facts:
        """Return what is charged as the numbers that a person writes."""
        amounts = [("epsilon", to_float(self.epsilon_units)), ("delta", to_float(self.delta_units))]
        return [*amounts, ("description", self.description), ("event", self.event), ("count", self.count)]

    def check(self) -> None:
        """Refuse amounts out of range (again, since unpickling goes around ``__init__``), or below the event's cost."""
        self._check_fields()
        # Without amounts it is one for ledgers that add up rho, which count the event alone.
        if self.event is not None and (self.epsilon_units or self.delta_units):
            check_event(self.event, self.epsilon_units, self.delta_units)

    def _check_fields(self) -> None:
        _check_units(self.epsilon_units, "epsilon_units", LARGEST_EPSILON_UNITS)
        _check_units(self.delta_units, "delta_units", LARGEST_DELTA_UNITS)
        if self.epsilon_units == 0 and self.delta_units == 0 and type(self.event) not in _WITHOUT_EPSILON:
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
        # Decimals that are not below the units, and equal to them where a float can say so: else a budget that is
        # wholly spent would look overspent.
        epsilon, delta = (_decimal_above(units) for units in (self.epsilon_units, self.delta_units))
        return Approximate(epsilon, delta) if delta else Pure(epsilon)


def _decimal_above(units: int) -> float:
    """Return the smallest float that, as the decimal it denotes, is no less than an amount."""
    amount = Fraction(units, UNITS_PER_ONE)
    near = float(amount)
    return near if as_written(near) >= amount else float(np.nextafter(near, np.inf))


#: Events that a charge may leave without (epsilon, delta): only a ledger that adds up rho or divergences takes them.
_WITHOUT_EPSILON = frozenset(kind for kind, facts in FACTS.items() if facts.concentrated is not None)
_SINGLES = frozenset(get_args(Single))


@dataclass(frozen=True, eq=False, repr=False)
class ChargeColumns(Shown):
    """Many charges for one kind of mechanism, as columns of one length.

    Parameters
    ----------
    kind
        The event: Laplace, DiscreteLaplace, Gaussian, ExponentialMechanism, PermuteAndFlip or Pure.
    parameters
        For every field of the event a float64 column.
    epsilon
        What each query is charged, no less than its event costs, from 1e-18 to 10**6, rounded up to whole units: a
        float counts as the decimal of at most 15 digits that it denotes, if it denotes one
        (`dpfast.kernels.amounts.calibrating`). None for Gaussian events, if only a ledger that adds up rho shall take
        them.
    delta
        Likewise, below 1, or None for nothing.
    description
        As in `Charge`, for all of them.

    Raises
    ------
    ParameterError
        If a column is of another kind, length or range, or an event costs more than its row is charged.

    """

    kind: type
    parameters: dict[str, NDArray[np.float64]]
    epsilon: NDArray[np.float64] | None
    delta: NDArray[np.float64] | None = None
    description: str = ""
    _totals: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.check()

    @classmethod
    def to_check(
        cls,
        kind: type,
        parameters: dict[str, NDArray[np.float64]],
        epsilon: NDArray[np.float64] | None,
        delta: NDArray[np.float64] | None,
        description: str,
    ) -> ChargeColumns:
        """Return columns that are checked when they are charged, as all are, and not before that, too."""
        return _made(cls, kind, parameters, epsilon, delta, description, {})

    @property
    def count(self) -> int:
        """How many queries."""
        return next(iter(self.parameters.values())).size

    @property
    def columns(self) -> dict[str, NDArray[np.float64]]:
        """All columns by name."""
        beside = {"charged_epsilon": self.epsilon, "charged_delta": self.delta}
        return self.parameters | {name: column for name, column in beside.items() if column is not None}

    def check(self) -> None:
        """Refuse columns of other kinds, lengths and ranges, or below the events' costs, and add the charges up."""
        self._check_fields()
        check_columns(self.kind, self.parameters, self.epsilon, self.delta)

    def _check_fields(self) -> None:
        from dpfast.kernels.amounts.calibrating import (  # not at the top: most ledgers do without numba
            LIMB_BITS,
            sum_amounts,
        )
        from dpfast.kernels.ranges import all_within

        if COLUMN_KINDS.get(getattr(self.kind, "__name__", "")) is not self.kind:
            raise ParameterError("kind", self.kind, f"one of the events {', '.join(COLUMN_KINDS)}")
        check_text(self.description, "description", empty=True)
        names = [one.name for one in fields(self.kind)]
        if list(self.parameters) != names:
            raise ParameterError("parameters", list(self.parameters), f"columns called {', '.join(names)}")
        if self.epsilon is None and (self.kind not in _WITHOUT_EPSILON or self.delta is not None):
            raise ParameterError("epsilon", None, "given, but for Gaussian events without a delta")
        self._totals.update(charged_epsilon=0, charged_delta=0)
        count = getattr(self.parameters[names[0]], "size", 0)
        for name, column in self.columns.items():
            if type(column) is not np.ndarray or column.dtype != np.float64 or column.shape != (count,) or not count:
                raise ParameterError(name, column, "float64 columns of one length, with a row or more")
            if name in self._totals:
                good, wholes, highs, lows = map(int, sum_amounts(column))
                if not good or (name == "charged_delta" and not column.max() < 1.0):
                    raise ParameterError(name, Words("a column"), "amounts from 1e-18 to 1e6, or for delta to below 1")
                self._totals[name] = wholes * UNITS_PER_ONE + (highs << LIMB_BITS) + lows
            elif not all_within(_one_of_equal(column), _LEAST_POSITIVE, _LARGEST_FINITE):
                raise ParameterError(name, Words("a column"), "positive finite numbers")
        for name, kind in get_type_hints(self.kind).items():
            column = _one_of_equal(self.parameters[name])
            if kind is int and (np.floor(column) != column).any():
                raise ParameterError(name, Words("a column"), f"whole numbers for {self.kind.__name__}")

    def as_one(self) -> Charge | None:
        """Return the one charge that all rows are, or None."""
        if any(column[0] != column[-1] or (column != column[0]).any() for column in self.columns.values()):
            return None
        event = self.event_of(float(column[0]) for column in self.parameters.values())
        epsilon, delta = self.epsilon_units // self.count, self.delta_units // self.count
        return Charge(epsilon, delta, self.description, event, self.count)

    def event_of(self, values: Iterable[float]) -> Single:
        """Return the event of a row; sensitivities of integers are integers."""
        event: Single = self.kind(*(int(value) if value.is_integer() else value for value in values))
        return event

    @property
    def epsilon_units(self) -> int:
        """The sum of all epsilons, exactly."""
        return self._total("charged_epsilon")

    @property
    def delta_units(self) -> int:
        """The sum of all deltas, exactly."""
        return self._total("charged_delta")

    def _total(self, name: str) -> int:
        if not self._totals:
            self.check()
        return self._totals[name]


def recorded(kind: type[_Item], *values: object) -> _Item:
    """Return a charge or columns as they stand in a ledger.

    Unlike a new charge, it may have an event that costs more than the charge: an earlier dpfast let that pass.
    """
    item = _made(kind, *values)
    item._check_fields()
    return item


def _made(kind: type[_Item], *values: object) -> _Item:
    """Return a charge or columns with the values of all its fields, not checked."""
    item = object.__new__(kind)
    for one, value in zip(fields(kind), values, strict=True):
        object.__setattr__(item, one.name, value)
    return item


def _one_of_equal(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one row of a column that repeats a single number in memory."""
    return column[:1] if column.strides == (0,) else column


Item = Charge | ChargeColumns
