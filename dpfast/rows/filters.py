"""Which rows count: comparisons of columns with public values, joined by and, or, not.

A filter is a specification, as queries are: no expression of any engine, so that nothing evaluates it twice, and it
means the same wherever rows are filtered. It is true or false of every row, whatever the row holds:

- a comparison is true where it holds of the column's value, and false where the value is null or NaN, ``!=`` too;
- ``~`` is true where what follows is false: of every two filters ``f`` and ``~f`` each row passes exactly one.

Why filtering changes no sensitivity: whether a row passes is a function of this row and of public values. Let two data
differ in the rows of one privacy unit; then what passes of them differs in rows of this unit alone, and is equal
elsewhere, in the same order. So the filtered data are neighbours too, or equal. A unit that is replaced may keep no
row, or have had none: sensitivities count what a replaced unit takes away and what it adds apart, and let either be
nothing, as they must for rows whose key is not shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.rows.values import NAME, Compared, Value, read_value, shown_name, shown_value
from dpfast.showing import Card, Facts, Shown

__all__ = ["Column", "Comparison", "Every", "Filter", "Missing", "Not", "OneOf", "OwnFilter", "Some", "Test"]
__all__ += ["OptionalValues", "column", "in_short", "read_filter"]

Operator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]
#: Comparisons of all parts, and how deep they are nested, so that no engine runs out of its stack.
_MOST_TESTS, _MOST_DEPTH, _MOST_VALUES = 1000, 50, 1 << 16
_MOST_SHOWN, _MOST_IN_SHORT = 200, 80
_JOIN = 'write (dpf.column("a") > 1) & (dpf.column("b") < 2), with |, & and ~ for or, and, not'


@dataclass(frozen=True)
class Filter(Shown, ABC):
    """Which rows count: made by `dpfast.column`, joined by ``&``, ``|`` and ``~``."""

    @property
    def parts(self) -> tuple[Filter, ...]:
        """The filters that this one is made of."""
        return ()

    @abstractmethod
    def __str__(self) -> str:
        """Return the filter as it is written on the command line."""

    def _card(self) -> Card:
        return Card([f"rows with {self}"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, once each."""
        return tuple(dict.fromkeys(test.column for test in self.tests()))

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns of which values are compared, once each; of others it is only asked whether there is one."""
        return tuple(dict.fromkeys(test.column for test in self.tests() if not isinstance(test, Missing)))

    def tests(self) -> Iterator[Test]:
        """Yield what is asked of single columns."""
        for part in self.parts:
            yield from part.tests()

    def described(self) -> str:
        """Return the filter in at most about 200 characters."""
        text = str(self)
        return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 4]} ..."

    @abstractmethod
    def renamed(self, names: Mapping[str, str]) -> Filter:
        """Return the filter of the same columns under other names."""

    def __and__(self, other: Filter | Column) -> Filter:
        return _joined(Every, self, other)

    def __or__(self, other: Filter | Column) -> Filter:
        return _joined(Some, self, other)

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        raise ParameterError("a filter", Words("asked whether it is true"), "joined by &, | and ~", _JOIN)


@dataclass(frozen=True)
class Test(Filter):
    """What is asked of one column."""

    column: str

    def tests(self) -> Iterator[Test]:
        """Yield this one."""
        yield self

    def renamed(self, names: Mapping[str, str]) -> Filter:
        """Return the same of another name."""
        return replace(self, column=names[self.column])


@dataclass(frozen=True)
class Comparison(Test):
    """A column's value compared with a public one."""

    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{shown_name(self.column)} {self.operator} {shown_value(self.value)}"


@dataclass(frozen=True)
class OneOf(Test):
    """A column's value that is one of several public ones."""

    values: tuple[Value, ...]

    def __str__(self) -> str:
        values = ", ".join(map(shown_value, self.values))
        return f"{shown_name(self.column)} in ({values}{',' * (len(self.values) == 1)})"


@dataclass(frozen=True)
class Missing(Test):
    """A column without a value: null, or NaN."""

    kind: Literal["null", "nan"]

    def __str__(self) -> str:
        name = shown_name(self.column)
        return f"{name} is None" if self.kind == "null" else f"is_nan({name})"


@dataclass(frozen=True)
class _Several(Filter):
    """Filters joined by one word."""

    joined: tuple[Filter, ...]
    depth: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = 1 + max(getattr(part, "depth", 0) for part in self.joined)
        size = sum(getattr(part, "size", 1) for part in self.joined)
        if depth > _MOST_DEPTH or size > _MOST_TESTS:
            given = Words(f"of {size:,} comparisons nested {depth} deep")
            allowed = f"of at most {_MOST_TESTS:,} comparisons nested {_MOST_DEPTH} deep"
            raise ParameterError("where", given, allowed, 'write dpf.column("a").is_in([...]) for many values')
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "size", size)

    @property
    def parts(self) -> tuple[Filter, ...]:
        """The filters that are joined."""
        return self.joined

    def renamed(self, names: Mapping[str, str]) -> Filter:
        """Return the same of other names."""
        return type(self)(tuple(part.renamed(names) for part in self.joined))


class Every(_Several):
    """All of several filters."""

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Some) else str(part) for part in self.joined)


class Some(_Several):
    """At least one of several filters."""

    def __str__(self) -> str:
        return " or ".join(map(str, self.joined))


class Not(_Several):
    """The opposite of a filter."""

    def __init__(self, of: Filter | tuple[Filter, ...]) -> None:
        super().__init__(of if isinstance(of, tuple) else (of,))

    def __str__(self) -> str:
        (part,) = self.joined
        if isinstance(part, Missing) and part.kind == "null":
            return f"{shown_name(part.column)} is not None"
        if isinstance(part, OneOf):
            return str(part).replace(" in (", " not in (", 1)
        return f"not ({part})" if isinstance(part, _Several) else f"not {part}"

    def __invert__(self) -> Filter:
        return self.joined[0]


def _no_lists() -> Iterable[object]:
    return (5, "AA", b"AA", [], [None], [float("nan")], [object()], {"a": 1}, object(), [[1]], float)


Values: TypeAlias = Annotated[Iterable[Value], Special(lambda: (None, *_no_lists()))]
OptionalValues: TypeAlias = Annotated[Iterable[Value] | None, Special(_no_lists, optional=True)]


class Column(Shown):
    """A column by its name, to be compared with public values: what `dpfast.column` returns.

    Each comparison is a `Filter`. A column of Booleans is a filter by itself, which is true where the column is.

    Examples
    --------
    >>> delay, carrier = Column("delay"), Column("carrier")
    >>> print((delay > 15) & carrier.is_in(["AA", "UA"]))
    delay > 15 and carrier in ('AA', 'UA')
    >>> print(~Column("cancelled") | delay.is_null())
    not cancelled == True or delay is None

    """

    __slots__ = ("_name",)

    def __init__(self, name: Annotated[str, NAME]) -> None:
        self._name = NAME.read("name", name)

    def __eq__(self, value: Compared) -> Comparison:  # type: ignore[override]
        return self._compared("==", value)

    def __ne__(self, value: Compared) -> Comparison:  # type: ignore[override]
        return self._compared("!=", value)

    def __lt__(self, value: Compared) -> Comparison:
        return self._compared("<", value)

    def __le__(self, value: Compared) -> Comparison:
        return self._compared("<=", value)

    def __gt__(self, value: Compared) -> Comparison:
        return self._compared(">", value)

    def __ge__(self, value: Compared) -> Comparison:
        return self._compared(">=", value)

    __hash__ = None  # type: ignore[assignment]

    def between(self, low: Compared, high: Compared) -> Filter:
        """Return whether a value lies between two, or is one of them.

        Examples
        --------
        >>> print(Column("distance").between(100, 500))
        distance >= 100 and distance <= 500

        """
        return (self >= low) & (self <= high)

    def is_in(self, values: Values) -> OneOf:
        """Return whether a value is one of several.

        Examples
        --------
        >>> print(Column("carrier").is_in(["AA"]))
        carrier in ('AA',)

        """
        allowed = f"a list of 1 to {_MOST_VALUES:,} values, such as ['AA', 'UA']"
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise ParameterError("values", values, allowed)
        listed = tuple(values)
        if not 1 <= len(listed) <= _MOST_VALUES:
            raise ParameterError("values", Words(f"of {len(listed):,}"), allowed)
        return OneOf(self._name, tuple(read_value(self._name, value) for value in listed))

    def is_null(self) -> Missing:
        """Return whether there is no value; NaN is none that is null.

        Examples
        --------
        >>> print(~Column("delay").is_null())
        delay is not None

        """
        return Missing(self._name, "null")

    def is_nan(self) -> Missing:
        """Return whether a value is NaN, in a column of floats.

        Examples
        --------
        >>> print(Column("delay").is_nan())
        is_nan(delay)

        """
        return Missing(self._name, "nan")

    def __and__(self, other: Filter | Column) -> Filter:
        return read_filter(self) & other

    def __or__(self, other: Filter | Column) -> Filter:
        return read_filter(self) | other

    def __invert__(self) -> Filter:
        return ~read_filter(self)

    def __bool__(self) -> bool:
        raise ParameterError("a column", Words("asked whether it is true"), "compared with a value", _JOIN)

    def _facts(self) -> Facts:
        return [("name", self._name)]

    def __repr__(self) -> str:
        return f"column({self._name!r})"

    def _compared(self, operator: Operator, value: Value) -> Comparison:
        return Comparison(self._name, operator, read_value(self._name, value))


def column(name: Annotated[str, NAME]) -> Column:
    """Name a column, to say which rows count: for ``where=`` of `dpfast.plan` and `dpfast.release`.

    Guarantee
        A filter of comparisons with public values is true or false of every row, and never fails; so it changes no
        sensitivity, and no error depends on a value. A comparison with null or NaN is false, ``!=`` too.

    Parameters
    ----------
    name
        A column of integers, floats, decimals, strings, categories, Booleans, dates, datetimes, durations, times or
        bytes. Its values are compared with ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``.between(low, high)`` and
        ``.is_in([...])``; ``.is_null()`` and ``.is_nan()`` find missing ones. Filters are joined by ``&`` (and), ``|``
        (or) and ``~`` (not), in parentheses.

    Notes
    -----
    The values are of the column's kind: a number beside numbers, and so on; they may be written as text where a column
    holds dates, datetimes, times or durations: ``"2024-02-29T12:00"``, ``"06:00"``, ``"1h30m"``. A date stands for its
    midnight beside datetimes. Beside a column with a time zone a datetime has one too. Numbers are compared exactly;
    beside floats they are the nearest number of the column's type, beside decimals as they are written. Strings and
    categories are compared letter by letter, by Unicode's numbers.

    Examples
    --------
    >>> import dpfast as dpf
    >>> late = dpf.column("delay") > 15
    >>> print(late & dpf.column("carrier").is_in(["AA", "UA"]))
    delay > 15 and carrier in ('AA', 'UA')

    """
    return Column(name)


def _no_filters() -> Iterable[object]:
    return (5, True, "delay > 15", b"a", object(), [Column("a") > 1], lambda row: True, {"a": 1}, Filter, np.ones(2))


OwnFilter: TypeAlias = Annotated[Filter | Column | None, Special(_no_filters, optional=True)]


def read_filter(given: object, argument: str = "where") -> Filter:
    """Return a filter that was given; a column by itself is one of Booleans, which is to be true.

    Raises
    ------
    ParameterError
        It is none; an engine's expressions are none, since they may fail on a value, and differ from engine to engine.

    """
    if isinstance(given, Filter):
        return given
    if isinstance(given, Column):
        return given == True  # noqa: E712
    mend = f'write for example {argument}=dpf.column("delay") > 15' if argument.isidentifier() else _JOIN
    if type(given).__module__.startswith("polars"):
        mend += "; whatever else Polars can say, say beforehand: frame.filter(...)"
    raise ParameterError(argument, given, "a filter made of dpf.column(...)", mend)


def in_short(where: Filter | None) -> str:
    """Return what a charge's description says of a filter: all of it, or that there is one.

    Examples
    --------
    >>> in_short(Column("delay") > 15), in_short(None)
    (' where delay > 15', '')

    """
    if where is None:
        return ""
    text = str(where)
    return f" where {text}" if len(text) <= _MOST_IN_SHORT else f" of rows that pass a filter of {len(text)} characters"


def _joined(kind: Callable[[tuple[Filter, ...]], Filter], one: Filter, other: object) -> Filter:
    """Return two filters joined, in one row with those that are joined by the same word."""
    pair = one, read_filter(other, "what is joined by & or |")
    return kind(tuple(part for side in pair for part in (side.parts if type(side) is kind else (side,))))
