"""How many of a column's values fulfil a public condition."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpfast.queries.basic import NAME, Name, Query
from dpfast.queries.conditions import Among, Condition, Equal, Limit, read_condition

__all__ = ["ProportionQuery", "proportion"]


@dataclass(frozen=True)
class ProportionQuery(Query):
    """The part of a column's values that fulfil a condition, in every group: what `proportion` returns."""

    condition: Condition = field(default_factory=Condition)

    @property
    def in_words(self) -> str:
        """What is asked."""
        return f"proportion of {self.column} that is {self.condition.words}, of values that are not missing"


def proportion(
    column: Name,
    *,
    above: Limit = None,
    at_least: Limit = None,
    below: Limit = None,
    at_most: Limit = None,
    equal: Equal = None,
    among: Among = None,
) -> ProportionQuery:
    """Ask what part of a column's values in every group fulfils a condition, from 0 to 1.

    Null and NaN are missing: they are counted neither as fulfilling it nor as failing it, as in the mean of a Boolean
    column. It is made of two answers that share the query's budget: how many more values fulfil it than fail it, and
    how many there are.

    Parameters
    ----------
    column
        A column of integers, floats, strings, categories, Booleans or dates.
    above, at_least, below, at_most
        Numbers that values of a numeric column are compared with, exactly: one, or a lower and an upper one.
    equal
        The value that fulfils it: a number, a string, a date, True or False.
    among
        The values that fulfil it: a list of strings, integers, Booleans or dates.

    All of them are public: chosen without looking at the data. Without any, the column is one of Booleans, and the
    proportion is of those that are true.

    Raises
    ------
    ParameterError
        If limits and values are given at once, or no number lies between the limits.

    Examples
    --------
    >>> proportion("dep_delay", above=15).in_words
    'proportion of dep_delay that is above 15, of values that are not missing'
    >>> proportion("status", equal="paid").condition.among
    ('paid',)

    """
    condition = read_condition(above, at_least, below, at_most, equal, among)
    return ProportionQuery("proportion", NAME.read("column", column), (0.0, 1.0), condition=condition)
