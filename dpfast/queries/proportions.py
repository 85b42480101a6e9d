"""In how many rows a public condition holds: proportions, and counts of some rows beside others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.queries.basic import Query
from dpfast.rows.filters import Column, Every, Filter, OptionalValues, read_filter
from dpfast.rows.values import NAME, OptionalCompared

__all__ = ["Condition", "ProportionQuery", "proportion"]


def _no_conditions() -> Iterable[object]:
    return (None, 5, True, b"a", object(), [Column("a") > 1], "\ud800", lambda row: True, Column("a").is_null())


#: A filter, or a column of Booleans.
Condition: TypeAlias = Annotated[Filter | Column | str, Special(_no_conditions)]


@dataclass(frozen=True, kw_only=True, repr=False)
class ProportionQuery(Query):
    """The part of the rows in which a condition holds, in every group: what `proportion` returns."""

    condition: Filter

    @property
    def in_words(self) -> str:
        """What is asked."""
        return f"proportion of {self.condition.described()}, of values that are not missing"


def proportion(
    of: Condition,
    *,
    above: OptionalCompared = None,
    at_least: OptionalCompared = None,
    below: OptionalCompared = None,
    at_most: OptionalCompared = None,
    equal: OptionalCompared = None,
    among: OptionalValues = None,
) -> ProportionQuery:
    """Ask in what part of the rows of every group a condition holds, from 0 to 1.

    Rows in which a compared column is null or NaN are left out: they count neither as fulfilling it nor as failing it,
    as in the mean of a Boolean column. It is made of two answers that share the query's budget: how many more rows
    fulfil it than fail it, and how many there are.

    Parameters
    ----------
    of
        What holds: comparisons of columns with public values (`dpfast.column`), chosen without looking at the data; or
        the name of a column of Booleans, which are to be true.
    above, at_least, below, at_most, equal, among
        In short, all comparisons of one column, given by its name: ``proportion("delay", above=15)`` is
        ``proportion(dpf.column("delay") > 15)``.

    Raises
    ------
    ParameterError
        If it is no condition, compares no values, or a comparison in short is given beside one that is no name.

    Examples
    --------
    >>> from dpfast import column
    >>> proportion((column("delay") > 15) & (column("carrier") == "AA")).in_words
    "proportion of delay > 15 and carrier == 'AA', of values that are not missing"
    >>> proportion("delay", above=15) == proportion(column("delay") > 15)
    True

    """
    short = {"above": above, "at_least": at_least, "below": below, "at_most": at_most, "equal": equal, "among": among}
    given = {name: value for name, value in short.items() if value is not None}
    if isinstance(of, str):
        column = Column(NAME.read("of", of))
        tests = tuple(_compared(column, name, value) for name, value in given.items())
        condition = Every(tests) if len(tests) > 1 else tests[0] if tests else read_filter(column)
    else:
        condition = read_filter(of, "of")
    if not condition.compared:
        mend = 'for the part of missing values ask count() and count("a")'
        raise ParameterError("of", Words("a condition that compares no value"), "one that does", mend)
    for name, value in given.items() if not isinstance(of, str) else ():
        raise ParameterError(name, value, "left out where a condition is given", "join conditions by &")
    return ProportionQuery("proportion", condition.compared[0], (0.0, 1.0), condition=condition)


def _compared(column: Column, name: str, value: object) -> Filter:
    """Return a comparison that is given in short."""
    tests: dict[str, Callable[[Any], Filter]] = {
        "above": column.__gt__,
        "at_least": column.__ge__,
        "below": column.__lt__,
        "at_most": column.__le__,
        "equal": column.__eq__,
        "among": column.is_in,
    }
    try:
        return tests[name](value)
    except ParameterError:
        several = (
            "a list of 1 to 65,536 of these: numbers, text, Booleans, bytes, dates, datetimes, times or timedeltas"
        )
        allowed = (
            several if name == "among" else "a number, text, a Boolean, bytes, a date, datetime, time or timedelta"
        )
    raise ParameterError(name, value, allowed)
