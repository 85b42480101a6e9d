"""Randomized response on a column of categories."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar, overload

from dpfast.arguments import Threads
from dpfast.columns.declarations import TypedColumn
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.local.bits import answer_bits
from dpfast.local.booleans import answer_booleans, is_boolean_column
from dpfast.local.categories import Categories, Responses, borrow_responses, read_categories
from dpfast.local.responses import answer_rows, weights_of
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Random, random_source

__all__ = ["randomized_response"]

_Column = TypeVar("_Column", bound=TypedColumn)


@overload
def randomized_response(
    values: _Column, categories: Categories, epsilon: Epsilon, *, random: Random = None, threads: Threads = None
) -> _Column: ...
@overload
def randomized_response(
    values: Responses, categories: Categories, epsilon: Epsilon, *, random: Random = None, threads: Threads = None
) -> Any: ...
def randomized_response(
    values: Responses, categories: Categories, epsilon: Epsilon, *, random: Random = None, threads: Threads = None
) -> Any:
    """Answer for every row by itself: with the truth, or with one of the other categories.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: for any two contents of a row, nulls and
        values outside the list among them, no answer's probabilities differ by more than a factor exp(epsilon). With
        k categories a row of category c answers c with probability exp(epsilon) / W and each other category with
        probability 1 / W, W = exp(epsilon) + k - 1, sampled exactly. A row of no category (a null, unless None is a
        category, or a value outside the list) answers each with probability 1 / k. Proof: 1 / W <= 1 / k <=
        exp(epsilon) / W, so that any two probabilities of an answer have a ratio of at most exp(epsilon). Whether a
        row was null is not published. The length or shape, the categories, the column's type and name, and the index
        of a pandas Series are: they leave as they came. The values that a categorical, an Enum or a dictionary names
        are not: what is returned names ``categories`` alone, in their order. No content of a row makes it fail: in a
        list, a column of Python objects, or alone, a value of another kind is a value outside the list. A person with
        several rows, or with several columns, pays epsilon for each. No budget is kept here.

    Parameters
    ----------
    values
        A column of categories: Polars Series, PyArrow Array or ChunkedArray, pandas Series, NumPy array of any shape,
        or list (also of lists of one length, which is public and that of the first); or one value.
    categories
        What may be answered, fixed without a look at the data: a whole number k from 2 to 2**31 for the integers
        0, 1, ..., k - 1 (values are then int64, int32 or uint32); or a list of different strings, integers, Booleans or
        dates, at most 2**16, and None if null is an answer (values are then strings, categoricals, enums, integers,
        Booleans or dates).
    epsilon
        The privacy of one row: a number from 1e-18 to 1e6, read as the decimal that it was written as.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads share the work; None uses all cores where that pays. The result does not depend on it.

    Returns
    -------
    same kind as ``values``
        A category in every row, of the column's own type; lists come back as NumPy arrays, and categoricals and Enums
        with ``categories`` in place of their own. There are nulls only if None is a category.

    Raises
    ------
    ParameterError
        The categories are fewer than two, repeated, of several kinds, or do not fit into the column's type; or epsilon
        is no such number.
    ColumnError
        The column's kind or type is not one of those above.

    Notes
    -----
    One uniform word decides both whether a row tells the truth and what else it says, by integer bounds on W proved
    in ball arithmetic; rows that its first 32 or 64 bits do not decide read more bits of the same word. Of two
    categories eight bits decide 255 rows of 256, and Booleans of Arrow and Polars stay packed: 10^8 of them take
    about 30 ms on one core.

    References
    ----------
    Warner (1965) for k = 2. Kairouz, Oh, Viswanath (2014), which shows that it is optimal for large epsilon. Dwork,
    Roth (2014), section 3.2 and claim 3.5.

    Examples
    --------
    >>> import polars as pl
    >>> from dpfast.testing import SeededRandom
    >>> answers = pl.Series("smokes", ["yes", "no", None, "no"])
    >>> randomized_response(answers, ["yes", "no"], epsilon=1.0, random=SeededRandom(1)).null_count()
    0
    >>> randomized_response([0, 2, 1], 3, epsilon=20.0)
    array([0, 2, 1])
    >>> randomized_response([0, 2, 1], 1, epsilon=1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: categories must be a whole number from 2 to 2**31, or a list, but was 1; write for \
example categories=["yes", "no"]

    """
    read = read_categories(categories)
    exactly = Fraction(budget_units(epsilon, "epsilon"), UNITS_PER_ONE)
    if is_boolean_column(values, read):
        return answer_booleans(values, exactly, random_source(random), threads)
    column = borrow_responses(values, read)
    number = read if isinstance(read, int) else len(read)
    if number == 2:
        return column.rebuild_without_nulls(answer_bits(column, exactly, random_source(random), threads))
    weights = weights_of(exactly, number)
    return column.rebuild_without_nulls(answer_rows(column, weights, random_source(random), threads))
