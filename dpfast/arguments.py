"""Arguments, declared once: what is allowed, how it is read, and what is refused.

A declaration stands in the signature, as ``k: Annotated[int, WINNERS]``, and reads what was given, as
``WINNERS.read("k", k)``. What takes more than that is `Special`: a function of its own reads it, and the declaration
knows what that refuses. tests/arguments goes through the signatures of all public functions, and gives each argument
everything that its declaration calls wrong.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, get_type_hints

import numpy as np

from dpfast.errors import ParameterError

__all__ = [
    "THREADS",
    "Argument",
    "Choice",
    "Declaration",
    "Flag",
    "Instance",
    "Number",
    "Numeric",
    "Private",
    "Real",
    "Special",
    "Text",
    "Threads",
    "Whole",
    "is_numeric",
    "is_real",
    "no_numbers",
    "read_declared",
]

_Value = TypeVar("_Value")
_Instance = TypeVar("_Instance")

#: A number of Python or NumPy; and one of any kind that is read exactly.
Numeric: TypeAlias = int | float | np.integer[Any] | np.floating[Any]
Real: TypeAlias = Numeric | Decimal | Fraction


@dataclass(frozen=True, kw_only=True)
class Declaration(ABC):
    """What is known of an argument.

    Attributes
    ----------
    optional
        Whether None may be given.

    """

    optional: bool = False

    @abstractmethod
    def wrong(self) -> Iterator[object]:
        """Yield values of every kind that is refused, except None."""


@dataclass(frozen=True)
class Special(Declaration):
    """An argument that a function of its own reads.

    Attributes
    ----------
    refused
        Gives values of every kind that this function refuses.

    """

    refused: Callable[[], Iterable[object]]

    def wrong(self) -> Iterator[object]:
        """Yield them."""
        yield from self.refused()


@dataclass(frozen=True)
class Private(Special):
    """An argument of private numbers: what is refused is their container, and never an element of a list."""


@dataclass(frozen=True, kw_only=True)
class Argument(Declaration, Generic[_Value]):
    """What an argument may be.

    Attributes
    ----------
    mend
        What to write instead, as an imperative sentence; ``{name}`` stands for the argument's name.

    """

    mend: str = ""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What is allowed, as a phrase that follows "must be"."""

    @abstractmethod
    def accepts(self, given: Any) -> bool:
        """Return whether something other than None is allowed."""

    @abstractmethod
    def convert(self, given: Any) -> _Value:
        """Return what was given, and is allowed, as the type that the package works with."""

    def read(self, name: str, given: object) -> _Value:
        """Return what was given for an argument that is not left out.

        Raises
        ------
        ParameterError
            It is not allowed.

        """
        if given is None or not self.accepts(given):
            raise self.refusal(name, given)
        return self.convert(given)

    def read_optional(self, name: str, given: object) -> _Value | None:
        """Return what was given for an argument that may be None."""
        return None if given is None else self.read(name, given)

    def refusal(self, name: str, given: object) -> ParameterError:
        """Return the error that says what is allowed."""
        allowed = f"{self.allowed}, or None" if self.optional else self.allowed
        return ParameterError(name, given, allowed, self.mend.format(name=name))


@dataclass(frozen=True)
class Whole(Argument[int]):
    """A whole number from ``least`` to ``most``, of Python or NumPy; True and False are none.

    Examples
    --------
    >>> Whole(1, 2**40, mend="write for example {name}=10").read("k", 0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: k must be a whole number from 1 to 2**40, but was 0; write for example k=10

    """

    least: int = 1
    most: int | None = None

    @property
    def allowed(self) -> str:
        """The range."""
        if self.most is None:
            return f"a whole number of at least {_short(self.least)}"
        return f"a whole number from {_short(self.least)} to {_short(self.most)}"

    def accepts(self, given: Any) -> bool:
        """Return whether it is such a number."""
        whole = isinstance(given, (int, np.integer)) and is_numeric(given)
        return whole and self.least <= given and (self.most is None or given <= self.most)

    def convert(self, given: Any) -> int:
        """Return it as Python's."""
        return int(given)

    def wrong(self) -> Iterator[object]:
        """Yield what is no whole number, or out of range."""
        yield from (number for number in no_numbers() if type(number) is not int)
        yield from (float(self.least + 1), self.least + 0.5, str(self.least), [self.least], Fraction(self.least))
        yield from (np.float64(self.least), np.array([self.least, self.least]), self.least - 1, self.least - 10**30)
        if self.most is not None:
            yield from (self.most + 1, self.most + 10**400)


@dataclass(frozen=True)
class Number(Argument[float]):
    """A finite number from ``least`` to ``most``, of Python or NumPy, read as a float.

    Attributes
    ----------
    above, below
        Whether ``least``, or ``most``, is itself refused.

    Examples
    --------
    >>> Number(0, 1, above=True, below=True).read("miss", 1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: miss must be a number above 0 and below 1, but was 1

    """

    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    below: bool = False

    @property
    def allowed(self) -> str:
        """The range."""
        if math.isinf(self.least) and math.isinf(self.most):
            return "a finite number"
        if math.isinf(self.most):
            return "a positive finite number" if self.least == 0 and self.above else f"a finite number {self._from()}"
        if not self.above and not self.below:
            return f"a number from {_short(self.least)} to {_short(self.most)}"
        end = f"below {_short(self.most)}" if self.below else f"at most {_short(self.most)}"
        return f"a number {self._from()} and {end}"

    def _from(self) -> str:
        return f"above {_short(self.least)}" if self.above else f"of at least {_short(self.least)}"

    def accepts(self, given: Any) -> bool:
        """Return whether it is such a number."""
        number = _number(given)
        if not math.isfinite(number) or not self.least <= number <= self.most:
            return False
        return not (self.above and number == self.least) and not (self.below and number == self.most)

    def convert(self, given: Any) -> float:
        """Return it as Python's float."""
        return float(given)

    def read_exactly(self, name: str, given: object) -> Fraction:
        """Return what `read` returns, without its rounding."""
        number = self.read(name, given)
        given = int(given) if isinstance(given, np.integer) else given
        return Fraction(given if isinstance(given, (int, Decimal, Fraction)) else number)

    def wrong(self) -> Iterator[object]:
        """Yield what is no number, or out of range."""
        yield from no_numbers()
        yield from ([0.5], np.array([0.5, 0.5]))
        if math.isfinite(self.least):
            yield self.least if self.above else self.least - 1
        if math.isfinite(self.most):
            yield self.most if self.below else self.most + max(1, abs(self.most))


@dataclass(frozen=True)
class Choice(Argument[str]):
    """One of a few strings.

    Examples
    --------
    >>> Choice(("add_remove", "replace")).read("neighbors", "swap")
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: neighbors must be "add_remove" or "replace", but was 'swap'

    """

    choices: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The strings."""
        *before, last = (f'"{choice}"' for choice in self.choices)
        return f"{', '.join(before)} or {last}" if before else last

    def accepts(self, given: Any) -> bool:
        """Return whether it is one of them; what only equals one is not."""
        return type(given) is str and given in self.choices

    def convert(self, given: Any) -> str:
        """Return it."""
        return str(given)

    def wrong(self) -> Iterator[object]:
        """Yield other strings, and what is no string."""
        yield from ("", "none such", self.choices[0].upper(), self.choices[0] + " ", self.choices[0].encode())
        yield from (True, 0, 1.5, [self.choices[0]], self.choices, object(), np.array(self.choices))


@dataclass(frozen=True)
class Flag(Argument[bool]):
    """True or False.

    Examples
    --------
    >>> Flag().read("descending", 1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: descending must be True or False, but was 1

    """

    @property
    def allowed(self) -> str:
        """The two."""
        return "True or False"

    def accepts(self, given: Any) -> bool:
        """Return whether it is one of the two."""
        return isinstance(given, (bool, np.bool_))

    def convert(self, given: Any) -> bool:
        """Return it as Python's."""
        return bool(given)

    def wrong(self) -> Iterator[object]:
        """Yield what is only true or false by its value."""
        yield from (0, 1, "True", "", [True], [], 1.0, np.array([True, False]), object())


@dataclass(frozen=True)
class Text(Argument[str]):
    """A string that is not empty, unless ``blank``, and that every encoding can hold.

    Examples
    --------
    >>> Text().read("name", "")
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: name must be a string that is not empty, but was ''

    """

    what: str = "a string that is not empty"
    blank: bool = False

    @property
    def allowed(self) -> str:
        """What the string is."""
        return self.what

    def accepts(self, given: Any) -> bool:
        """Return whether it is one."""
        text = isinstance(given, str) and (self.blank or given != "")
        return text and not any("\ud800" <= letter <= "\udfff" for letter in given)

    def convert(self, given: Any) -> str:
        """Return it; of a string that is an enum, the string."""
        return str.__str__(given)

    def wrong(self) -> Iterator[object]:
        """Yield what is no string, or an empty one."""
        yield from ("\ud800", b"name", 1, True, ["name"], object(), 1.5, str)
        if not self.blank:
            yield ""


@dataclass(frozen=True)
class Instance(Argument[_Instance]):
    """An object of a class, such as a workload or a ledger.

    Attributes
    ----------
    kind
        The class.
    what
        What it is called, as a phrase that follows "must be".

    """

    kind: type[_Instance]
    what: str

    @property
    def allowed(self) -> str:
        """What it is called."""
        return self.what

    def accepts(self, given: Any) -> bool:
        """Return whether it is of the class."""
        return isinstance(given, self.kind)

    def convert(self, given: Any) -> _Instance:
        """Return it as it is."""
        instance: _Instance = given
        return instance

    def wrong(self) -> Iterator[object]:
        """Yield what is of other classes, and the class itself."""
        yield from (True, 1, 0.5, "text", b"text", [1], (1, 2), {"a": 1}, object(), self.kind, np.ones(3))


def no_numbers() -> Iterator[object]:
    """Yield what no argument takes for a number, of all types: text, truth, NaN, infinities."""
    yield from (math.nan, math.inf, -math.inf, True, "0.1", "NaN", b"1", 1 + 0j, object(), {}, ())
    yield from (Decimal("nan"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e999999"), 10**400)
    yield from (np.float64("nan"), np.float32("inf"), np.bool_(True), np.complex64(1), np.array(np.nan))
    yield from (np.datetime64("2020-01-01"), np.timedelta64(1, "D"), np.array("1"), np.array(True), float)


def read_declared(instance: object) -> None:
    """Read the fields of a frozen dataclass whose annotations declare them: for its ``__post_init__``."""
    kind: type = type(instance)
    for name, declared in _declared(kind):
        given = getattr(instance, name)
        if given is not None or not declared.optional:
            object.__setattr__(instance, name, declared.read(name, given))


@cache
def _declared(kind: type) -> tuple[tuple[str, Argument[Any]], ...]:
    hints = get_type_hints(kind, include_extras=True)
    beside = ((name, part) for name, hint in hints.items() for part in getattr(hint, "__metadata__", ()))
    return tuple((name, part) for name, part in beside if isinstance(part, Argument))


def is_numeric(given: object) -> bool:
    """Return whether it is a number of `Numeric`; True and False are none, nor are NumPy's durations."""
    return isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, (bool, np.timedelta64))


def is_real(given: object) -> bool:
    """Return whether it is a number of `Real`, of whatever size."""
    return is_numeric(given) or isinstance(given, (Decimal, Fraction))


def _number(given: Any) -> float:
    """Return a number as a float; NaN for what is none."""
    if type(given) is float:
        return given
    if isinstance(given, (bool, str, bytes, type)) or not hasattr(type(given), "__float__"):
        return math.nan
    if getattr(given, "ndim", 0) or (isinstance(given, (np.ndarray, np.generic)) and given.dtype.kind not in "iuf"):
        return math.nan
    try:
        return float(given)
    except Exception:  # whatever the number's own type raises
        return math.nan


def _short(number: float) -> str:
    """Return a number as people write it: large powers as powers."""
    if isinstance(number, int) and number > 2**20:
        for base in (2, 10):
            power = round(math.log(number, base))
            if base**power == number:
                return f"{base}**{power}"
            if base**power == number + 1:
                return f"{base}**{power} - 1"
    return str(number) if isinstance(number, int) else f"{number:g}"


#: Threads that share the work; None for as many as pay.
THREADS = Whole(1, optional=True, mend="leave it out to use all cores")
Threads: TypeAlias = Annotated[int | None, THREADS]
