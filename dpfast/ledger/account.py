"""The rule of the ledger, apart from where it is kept: what is charged, for whom, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dpfast.accounting.amounts import (
    LARGEST_DELTA_UNITS,
    LARGEST_EPSILON_UNITS,
    charge_units,
    to_decimal,
    to_float,
)
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError

__all__ = ["Account", "Budget", "Charge", "Entry", "Identity", "Store"]

_NEIGHBORS = ("add_remove", "replace")


def _check_text(text: object, argument: str, *, empty: bool) -> None:
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
    """What one query costs, in exact units of 1e-18.

    Parameters
    ----------
    epsilon_units, delta_units
        Units of 1e-18, each 0 or more and not both 0; :mod:`dpfast.accounting.amounts` makes them of numbers.
    description
        What is paid for, from the plan alone: it stands in the ledger for anyone to read, so it tells nothing
        of the data.

    Raises
    ------
    ParameterError
        If an amount or the description is of another kind or range.

    Examples
    --------
    >>> Charge.of(0.1, 1e-9, "mean of delay")
    Charge(epsilon_units=100000000000000000, delta_units=1000000000, description='mean of delay')

    """

    epsilon_units: int
    delta_units: int
    description: str

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse amounts out of range (again, since unpickling goes around ``__init__``)."""
        _check_units(self.epsilon_units, "epsilon_units", LARGEST_EPSILON_UNITS)
        _check_units(self.delta_units, "delta_units", LARGEST_DELTA_UNITS)
        if self.epsilon_units == 0 and self.delta_units == 0:
            raise ParameterError("epsilon_units", 0, "above 0 where delta_units is 0")
        _check_text(self.description, "description", empty=True)

    @classmethod
    def of(cls, epsilon: object, delta: object = 0, description: str = "") -> Charge:
        """Make a charge of numbers, each rounded up to whole units."""
        return cls(charge_units(epsilon, "epsilon"), charge_units(delta, "delta"), description)


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of (epsilon, delta), each the float nearest to the exact amount."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Identity:
    """What a ledger's guarantee is about; None is what the first charge will settle.

    Parameters
    ----------
    dataset
        The name of the data.
    privacy_unit
        Whose presence is hidden: ``"row"``, or a column as ``"column:tailnum"``.
    neighbors
        ``"add_remove"``, one unit more or fewer, or ``"replace"``, one unit exchanged.

    """

    dataset: str | None = None
    privacy_unit: str | None = None
    neighbors: str | None = None

    def __post_init__(self) -> None:
        for argument in ("dataset", "privacy_unit"):
            if getattr(self, argument) is not None:
                _check_text(getattr(self, argument), argument, empty=False)
        if self.neighbors is not None and (type(self.neighbors) is not str or self.neighbors not in _NEIGHBORS):
            raise ParameterError("neighbors", self.neighbors, '"add_remove" or "replace"')

    def joined(self, given: Identity) -> Identity:
        """Return this identity with what it leaves open taken from another; refuse a contradiction."""
        settled = {}
        for name, phrase in (
            ("dataset", "dataset"),
            ("privacy_unit", "privacy unit"),
            ("neighbors", "neighbour relation"),
        ):
            mine, theirs = getattr(self, name), getattr(given, name)
            if mine is not None and theirs is not None and mine != theirs:
                raise LedgerError(
                    f"this ledger's {phrase} is {mine!r}, but {theirs!r} was given; nothing was charged: "
                    f"keep another {phrase} in a ledger of its own"
                )
            settled[name] = theirs if mine is None else mine
        return Identity(**settled)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger; the time is in microseconds since 1970 (UTC)."""

    number: int
    time: int
    epsilon_units: int
    delta_units: int
    description: str


@dataclass(frozen=True, slots=True)
class Account:
    """The state of a ledger: budget and spending in units of 1e-18, number of entries, identity."""

    total_epsilon: int
    total_delta: int
    spent_epsilon: int = 0
    spent_delta: int = 0
    entries: int = 0
    identity: Identity = Identity()

    @property
    def total(self) -> Budget:
        """The whole budget."""
        return Budget(to_float(self.total_epsilon), to_float(self.total_delta))

    @property
    def spent(self) -> Budget:
        """What has been charged."""
        return Budget(to_float(self.spent_epsilon), to_float(self.spent_delta))

    @property
    def remaining(self) -> Budget:
        """What can still be charged."""
        return Budget(to_float(self.total_epsilon - self.spent_epsilon), to_float(self.total_delta - self.spent_delta))

    def charged(self, charges: Sequence[Charge], identity: Identity) -> Account:
        """Return the account after these charges, all of them or none."""
        settled = self.identity.joined(identity)
        epsilon = sum(charge.epsilon_units for charge in charges)
        delta = sum(charge.delta_units for charge in charges)
        spent_epsilon, spent_delta = self.spent_epsilon + epsilon, self.spent_delta + delta
        if not (spent_epsilon <= self.total_epsilon and spent_delta <= self.total_delta):
            left_epsilon = to_decimal(self.total_epsilon - self.spent_epsilon)
            left_delta = to_decimal(self.total_delta - self.spent_delta)
            raise BudgetExceededError(
                f"epsilon {to_decimal(epsilon)} and delta {to_decimal(delta)} were asked, "
                f"but epsilon {left_epsilon} and delta {left_delta} are left; "
                "nothing was charged: ask for no more than is left"
            )
        return replace(
            self,
            spent_epsilon=spent_epsilon,
            spent_delta=spent_delta,
            entries=self.entries + len(charges),
            identity=settled,
        )


class Store(Protocol):
    """Where an account is kept."""

    def account(self) -> Account:
        """Return the present state."""

    def append(self, charges: Sequence[Charge], identity: Identity) -> Account:
        """Record all charges or none, for good, and return the state with them."""

    def entries(self) -> Sequence[Entry]:
        """Return every entry, in the order of their numbers."""
