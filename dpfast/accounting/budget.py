"""What may be spent: an epsilon with a delta beside it, or a rho. Read here, by one rule, for every method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TypeAlias

import numpy as np

from dpfast.arguments import Real, Special, no_numbers
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units, exact_text, to_decimal, to_float
from dpfast.showing import Shown

__all__ = [
    "DELTA",
    "EPSILON",
    "LARGEST_RHO",
    "Amounts",
    "Budget",
    "ConcentratedAmounts",
    "Delta",
    "Epsilon",
    "Kind",
    "RenyiAmounts",
    "Rho",
    "ShownAmounts",
    "delta_beside_rho",
    "kind_of_budget",
    "no_amounts",
    "read_budget",
]

Kind: TypeAlias = Literal["epsilon", "rho"]

#: Beyond it, the (epsilon, delta) that is declared with a charge would exceed every ledger's.
LARGEST_RHO = 100_000


def no_amounts() -> Iterator[object]:
    """Yield what is an amount neither of epsilon, nor of rho, nor of delta."""
    yield from no_numbers()
    yield from ([0.5], (0.5,), np.array([0.5, 0.5]), np.array(0.5), np.longdouble(0.5), -0.0, Decimal("-0"))
    yield from (-1, -0.5, Decimal(-1), Fraction(-1, 2), 1e-19, Fraction(1, 10**19), Decimal("1e-19"), 10**7)


EPSILON = Special(lambda: (*no_amounts(), 0, 0.0, Decimal(0), 10**6 + 1))
DELTA = Special(lambda: (*no_amounts(), 1, 1.0, Fraction(3, 2)))

#: One of epsilon and rho is left out, and no delta need be given.
Epsilon: TypeAlias = Annotated[Real | None, replace(EPSILON, optional=True)]
Rho: TypeAlias = Annotated[Real | None, Special(lambda: (*EPSILON.wrong(), LARGEST_RHO + 1), optional=True)]
Delta: TypeAlias = Annotated[Real | None, replace(DELTA, optional=True)]


class ShownAmounts(Shown):
    """Amounts as a ledger shows them: of epsilon, of rho, or of a divergence at an order, with a delta beside it.

    Which of them there is depends on what the ledger adds up; asking for another one is an `AttributeError`.
    """

    __slots__ = ()
    delta: float
    if TYPE_CHECKING:
        # Of which a type checker cannot know which there is.
        epsilon: float
        rho: float
        order: float
        divergence: float
        is_left: bool

    def text(self, name: str) -> str:
        """Return an amount as it is shown (`amount_text`).

        Examples
        --------
        >>> Amounts(2 / 3, 0.0).text("epsilon"), Amounts(2 / 3, 0.0, is_left=True).text("epsilon")
        ('0.666666666667', '0.666666666666')

        """
        return amount_text(getattr(self, name), up=not self.is_left)

    def __getattr__(self, name: str) -> NoReturn:
        has = ", ".join(one for one in getattr(type(self), "__slots__", ()) if one != "is_left")
        message = f"{type(self).__name__} has {has}, but no {name}: the ledger's accountant adds up something else"
        raise AttributeError(message)


def amount_text(amount: float, *, up: bool = True, digits: int = 12) -> str:
    """Return an amount as it is shown everywhere: what is spent is rounded up, and what is left down.

    Amounts come as the float that is nearest to what a ledger has exactly: the shortest decimal of that float is what
    is rounded, so that 0.1 stays 0.1.

    Examples
    --------
    >>> amount_text(0.1), amount_text(1 / 3), amount_text(1 / 3, up=False)
    ('0.1', '0.333333333334', '0.333333333333')
    >>> amount_text(1e-6), amount_text(2.34567, digits=3), amount_text(float("inf"))
    ('1e-06', '2.35', 'inf')

    """
    if not math.isfinite(amount):
        return f"{amount:g}"
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(context.plus(Decimal(repr(float(amount))))):.{digits}g}"


@dataclass(frozen=True, slots=True)
class Amounts(ShownAmounts):
    """Amounts of epsilon and delta as they are shown, each the float nearest to the exact one."""

    epsilon: float
    delta: float
    #: Whether it is what remains: it is shown rounded down, and not up.
    is_left: bool = field(default=False, repr=False, compare=False, kw_only=True)

    def __str__(self) -> str:
        return f"epsilon {self.text('epsilon')}, delta {self.text('delta')}"


@dataclass(frozen=True, slots=True)
class ConcentratedAmounts(ShownAmounts):
    """An amount of zero-concentrated privacy with a delta beside it (Bun, Steinke 2016), as they are shown."""

    rho: float
    delta: float
    #: Whether it is what remains: it is shown rounded down, and not up.
    is_left: bool = field(default=False, repr=False, compare=False, kw_only=True)

    def __str__(self) -> str:
        return f"rho {self.text('rho')}, delta {self.text('delta')}"


@dataclass(frozen=True, slots=True)
class RenyiAmounts(ShownAmounts):
    """The order that leaves most, its divergence, and a delta beside it (Mironov 2017), as they are shown."""

    order: float
    divergence: float
    delta: float
    #: Whether it is what remains: it is shown rounded down, and not up.
    is_left: bool = field(default=False, repr=False, compare=False, kw_only=True)

    def __str__(self) -> str:
        return f"divergence {self.text('divergence')} at order {self.order:g}, delta {self.text('delta')}"


@dataclass(frozen=True, slots=True)
class Budget(Shown):
    """A budget in units of 1e-18, rounded down: of epsilon or of rho, and of delta beside it.

    Attributes
    ----------
    kind
        What ``units`` are of.
    units
        At least 1 where it was given; 0 of what was spent where nothing was.
    delta_units
        0 for none.

    """

    kind: Kind
    units: int
    delta_units: int = 0

    @property
    def amount(self) -> Decimal:
        """Epsilon or rho, exactly."""
        return to_decimal(self.units)

    @property
    def delta(self) -> Decimal:
        """Delta, exactly."""
        return to_decimal(self.delta_units)

    @property
    def shown(self) -> ShownAmounts:
        """The budget as a ledger shows amounts."""
        amount, delta = to_float(self.units), to_float(self.delta_units)
        return Amounts(amount, delta) if self.kind == "epsilon" else ConcentratedAmounts(amount, delta)

    def __str__(self) -> str:
        beside = f", delta = {exact_text(self.delta_units)}" if self.delta_units else ""
        return f"{self.kind} = {exact_text(self.units)}{beside}"


def read_budget(epsilon: object, delta: object, rho: object, *, selects_keys: bool = False) -> Budget:
    """Return the budget that a user gave, rounded down, so that no charge exceeds it.

    The rule, for every method: exactly one of epsilon and rho is given. Beside epsilon a delta may stand; None and 0
    are no delta. Beside rho there is none, since rho is an (epsilon, delta) for every delta, except that
    ``selects_keys`` allows one for the thresholds by which private keys are shown.

    Raises
    ------
    ParameterError
        Both or none of epsilon and rho are given, or one is out of range, or a delta stands where none may.

    Examples
    --------
    >>> print(read_budget(0.5, 1e-6, None))
    epsilon = 0.5, delta = 1e-06
    >>> read_budget(1, None, 0.1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: rho must be left out where epsilon is given, but was 0.1; give one of both

    """
    delta_units = 0 if delta is None else budget_units(delta, "delta")
    if kind_of_budget(epsilon, rho) == "epsilon":
        return Budget("epsilon", budget_units(epsilon, "epsilon"), delta_units)
    try:
        units = budget_units(rho, "epsilon", "rho")
    except ParameterError:
        units = 0  # one range is named, rho's own
    if not 0 < units <= LARGEST_RHO * UNITS_PER_ONE:
        raise ParameterError("rho", rho, f"a number from 1e-18 to {LARGEST_RHO}", "write for example rho=0.1")
    if delta_units and not selects_keys:
        raise delta_beside_rho(delta)
    return Budget("rho", units, delta_units)


def kind_of_budget(epsilon: object, rho: object) -> Kind:
    """Return which of the two was given, if exactly one was."""
    if rho is None:
        if epsilon is None:
            raise ParameterError("epsilon", None, "given, or else rho", "write for example epsilon=1.0 or rho=0.1")
        return "epsilon"
    if epsilon is not None:
        raise ParameterError("rho", rho, "left out where epsilon is given", "give one of both")
    return "rho"


def delta_beside_rho(delta: object) -> ParameterError:
    """Return the error for a delta that nothing needs."""
    allowed = "None or 0 beside rho, which is an (epsilon, delta) for every delta"
    return ParameterError("delta", delta, allowed, "leave delta out")
