"""A public condition that a column's values fulfil or not: what a proportion is of."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np

from dpfast.arguments import Number, Numeric, Special, is_numeric
from dpfast.columns.candidates import Candidates, read_candidates
from dpfast.errors import ParameterError

__all__ = ["Among", "Condition", "Equal", "Limit", "read_condition"]

LIMIT = Number(optional=True, mend="write for example {name}=15")
#: A number that values are compared with.
Limit: TypeAlias = Annotated[Numeric | None, LIMIT]
Equal: TypeAlias = Annotated[
    Numeric | str | bool | datetime.date | None, Special(lambda: (b"a", object(), [1], 1j, math.nan), optional=True)
]
Among: TypeAlias = Annotated[Candidates | None, Special(lambda: ("AA", 5, [], ["a", 1], [None], [0.5]), optional=True)]


@dataclass(frozen=True)
class Condition:
    """Values between limits, or values of a list; null and NaN are missing, and neither fulfil it nor fail it.

    Attributes
    ----------
    least, most
        The limits, exactly; None for none.
    above, below
        Whether ``least``, or ``most``, itself fails.
    among
        The values that fulfil it, of which no limits are given then.

    """

    least: Fraction | None = None
    most: Fraction | None = None
    above: bool = False
    below: bool = False
    among: tuple[Any, ...] = ()

    @property
    def words(self) -> str:
        """What is said of a value that fulfils it."""
        if self.among:
            shown = ", ".join(str(value) for value in self.among[:8]) + ", ..." * (len(self.among) > 8)
            return shown if len(self.among) == 1 else f"one of {shown}"
        if self.least is not None and self.least == self.most:
            return f"{float(self.least):g}"
        limits = []
        if self.least is not None:
            limits.append(f"{'above' if self.above else 'at least'} {float(self.least):g}")
        if self.most is not None:
            limits.append(f"{'below' if self.below else 'at most'} {float(self.most):g}")
        return " and ".join(limits)

    def integers(self, lowest: int, largest: int) -> tuple[int, int]:
        """Return the first and the last integer that fulfil it, of those from ``lowest`` to ``largest``.

        Examples
        --------
        >>> Condition(least=Fraction(5, 2), most=Fraction(9), below=True).integers(-128, 127)
        (3, 8)

        """
        first, last = lowest, largest
        if self.least is not None:
            first = math.floor(self.least) + 1 if self.above else math.ceil(self.least)
        if self.most is not None:
            last = math.ceil(self.most) - 1 if self.below else math.floor(self.most)
        # Limits out of range stay literals of the column's type; a range without an integer stays one.
        return (first, last) if first <= largest and last >= lowest and first <= last else (1, 0)

    def floats(self) -> tuple[float, float]:
        """Return the first and the last float64 that fulfil it; infinities may.

        Examples
        --------
        >>> Condition(least=Fraction(15), above=True).floats()
        (15.000000000000002, inf)

        """
        first = -math.inf if self.least is None else float(self.least)
        last = math.inf if self.most is None else float(self.most)
        if self.least is not None and (first < self.least or (self.above and first == self.least)):
            first = math.nextafter(first, math.inf)
        if self.most is not None and (last > self.most or (self.below and last == self.most)):
            last = math.nextafter(last, -math.inf)
        # A negative zero is no other number than zero, and what lies beside zero is no other than what lies beside it.
        return first + 0.0, last + 0.0


def read_condition(
    above: Limit, at_least: Limit, below: Limit, at_most: Limit, equal: Equal, among: Among
) -> Condition:
    """Return the condition that is given: limits, one value, several values, or, where nothing is, to be true.

    Raises
    ------
    ParameterError
        Something is no value, is given beside what it excludes, or no value lies between the limits.

    """
    limits = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    given = [name for name, limit in limits.items() if limit is not None]
    for one, other in (("above", "at_least"), ("below", "at_most"), ("equal", "among")):
        together = {**limits, "equal": equal, "among": among}
        if together[one] is not None and together[other] is not None:
            raise ParameterError(other, together[other], f"left out beside {one}=", "give one of the two")
    for name, value in (("equal", equal), ("among", among)):
        if value is not None and given:
            raise ParameterError(name, value, f"left out beside {given[0]}=", "give limits or values, not both")
    if equal is not None:
        return _equal_to(equal)
    if among is not None:
        values = read_candidates(among, "among")
        if None in values:
            raise ParameterError("among", values[:8], "without None: nulls are missing values, and left out")
        return Condition(among=values)
    if not given:
        return Condition(among=(True,))
    least, most = (
        next((LIMIT.read_exactly(name, limits[name]) for name in names if limits[name] is not None), None)
        for names in (("above", "at_least"), ("below", "at_most"))
    )
    condition = Condition(least, most, above is not None, below is not None)
    if least is not None and most is not None and (least > most or (least == most and (above or below) is not None)):
        raise ParameterError(given[-1], limits[given[-1]], f"such that values lie between it and {given[0]}=")
    return condition


def _equal_to(value: Equal) -> Condition:
    if isinstance(value, np.bool_):
        value = bool(value)
    if is_numeric(value):
        number = replace(LIMIT, optional=False).read_exactly("equal", value)
        return Condition(number, number)
    if type(value) not in (str, bool, datetime.date):
        raise ParameterError(
            "equal", value, "a number, a string, True, False or a date", 'write for example equal="AA"'
        )
    return Condition(among=read_candidates([value], "equal"))
