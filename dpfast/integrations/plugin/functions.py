"""Noise as Polars expressions; `dpfast.integrations.polars_plugin` says when an expression is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.arguments import Instance, Real, Special, no_numbers
from dpfast.columns import borrow_scale
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.local.categories import Categories, read_categories
from dpfast.mechanisms.parameters import Epsilon

__all__ = ["EXPRESSION", "ScaleExpression", "gaussian", "laplace", "randomized_response"]

EXPRESSION = Instance(pl.Expr, "a Polars expression", mend='write for example pl.col("x")')


def _no_scales() -> Iterator[object]:
    yield from (*no_numbers(), 0, 0.0, -1, 1e-320, 1e308, Fraction(-1, 3), "s", [1.0], np.ones(2), pl.Series([1.0]))


#: A positive number, or an expression with one for each row.
ScaleExpression: TypeAlias = Annotated[Real | pl.Expr, Special(_no_scales)]
Values: TypeAlias = Annotated[pl.Expr, EXPRESSION]


def laplace(expr: Values, scale: ScaleExpression) -> pl.Expr:
    """Return a column with Laplace noise in every row.

    Guarantee
        Of each value that is drawn, that of `dpfast.laplace`, sampled exactly: releasing a statistic of L1 sensitivity
        D once is (D / scale, 0)-differentially private. Every evaluation draws again, under a key of its own:
        `dpfast.integrations.polars_plugin` says when there are several. Lengths and nulls are published as they are,
        and no budget is kept.

    Parameters
    ----------
    expr
        A column of Int64, Int32, UInt32, Float64 or Float32; others are cast first. Nulls stay null. NaN and
        infinities fail: replace them first. A column's name has no NUL character.
    scale
        b = sensitivity / epsilon: a number from 2**-960 to 2**960, for integers at most 2**60; or an expression of
        such numbers, without nulls.

    Returns
    -------
    polars.Expr
        UInt32 becomes Int64; the other types stay, saturating at their bounds. Floats are multiples of
        2**(floor(log2(scale)) - 10), rounded to their type.

    Raises
    ------
    ParameterError
        ``expr`` is no expression, or ``scale`` no such number.
    polars.exceptions.ComputeError
        When it is evaluated: a type is another, a value is not finite, or a scale out of range.

    References
    ----------
    As for `dpfast.laplace`.

    Examples
    --------
    >>> frame = pl.DataFrame({"n": [10, None], "b": [1.0, 2.5]})
    >>> frame.select(laplace(pl.col("n"), pl.col("b"))).to_series().null_count()
    1

    """
    return _noisy("laplace", expr, scale)


def gaussian(expr: Values, scale: ScaleExpression) -> pl.Expr:
    """Return a column with Gaussian noise in every row.

    Guarantee
        Of each value that is drawn, that of `dpfast.gaussian`, sampled exactly. Every evaluation draws again:
        `dpfast.integrations.polars_plugin` says when there are several. Lengths and nulls are published as they are,
        and no budget is kept.

    Parameters
    ----------
    expr
        As for `laplace`.
    scale
        The standard deviation, as for `laplace`.

    Returns
    -------
    polars.Expr
        As for `laplace`.

    Raises
    ------
    ParameterError, polars.exceptions.ComputeError
        As for `laplace`.

    References
    ----------
    As for `dpfast.gaussian`.

    Examples
    --------
    >>> frame = pl.DataFrame({"n": [10.0, 20.0]})
    >>> frame.select(gaussian(pl.col("n"), 0.5)).dtypes
    [Float64]

    """
    return _noisy("gaussian", expr, scale)


def randomized_response(expr: Values, categories: Categories, epsilon: Epsilon) -> pl.Expr:
    """Return a column in which every row answers with its category, or with another one.

    Guarantee
        Of each row that is drawn once, that of `dpfast.randomized_response`: (epsilon, 0)-differentially private in
        the local model, whatever the row holds; nulls and values outside the list answer evenly. A row that is drawn
        twice pays twice: see `dpfast.integrations.polars_plugin` about when Polars evaluates more than once.

    Parameters
    ----------
    expr
        A column that `dpfast.randomized_response` takes for these categories: Int64, Int32 or UInt32 if they are a
        number; else strings, categoricals, enums, integers, Booleans or dates, each with a list of its kind.
    categories, epsilon
        As for `dpfast.randomized_response`, which every evaluation calls itself, in Python: the same columns are taken
        and the same refused, and every row has one answer.

    Returns
    -------
    polars.Expr
        Of the column's own type; for a list of strings always String, since the types of categoricals and enums name
        values of the data. Null only if None is a category.

    Raises
    ------
    ParameterError
        ``expr`` is no expression, or the others are not as for `dpfast.randomized_response`.
    ColumnError
        When it is evaluated: the column is of another type, or of one that cannot hold a category.

    References
    ----------
    As for `dpfast.randomized_response`.

    Examples
    --------
    >>> frame = pl.DataFrame({"smokes": ["yes", None, "no"]})
    >>> answers = frame.select(randomized_response(pl.col("smokes"), ["yes", "no"], epsilon=1.0)).to_series()
    >>> answers.dtype, answers.null_count()
    (String, 0)

    """
    column, read = _named(EXPRESSION.read("expr", expr), "expr"), read_categories(categories)
    units = budget_units(epsilon, "epsilon")
    # Joining with the list, as `replace_strict` does, would repeat rows wherever two categories become equal once cast.
    answer = partial(_answer, categories=read, epsilon=Fraction(units, UNITS_PER_ONE))
    # Literals have no type of their own to begin with, and several columns no single one.
    own = pl.self_dtype() if column.meta.has_multiple_outputs() else pl.dtype_of(column)
    named = not isinstance(read, int) and any(isinstance(category, str) for category in read)
    return column.map_batches(answer, return_dtype=pl.String if named else own, is_elementwise=True)


def _answer(values: pl.Series, *, categories: int | tuple[Any, ...], epsilon: Fraction) -> pl.Series:
    from dpfast.local.randomized_response import randomized_response as respond  # not at the top: numba takes long

    if values.dtype == pl.Null:
        raise ColumnError("values must be a column with a type, but was of dtype Null; cast it")
    try:
        answers = respond(values, categories, epsilon, threads=1)
        return answers.cast(pl.String) if isinstance(answers.dtype, (pl.Categorical, pl.Enum)) else answers
    except ParameterError as error:
        words = str(error)
    # Polars makes errors of their words alone again, which a ParameterError cannot be made of.
    raise ColumnError(words)


def _named(column: pl.Expr, argument: str) -> pl.Expr:
    """Refuse a name that Polars cannot hand over to a plugin: it would panic."""
    if "\0" in (column.meta.output_name(raise_if_undetermined=False) or ""):
        given = Words("a column with a NUL character in its name")
        raise ParameterError(argument, given, "a column without it", 'rename it: pl.col(...).alias("n")')
    return column


def _noisy(operation: str, expr: object, scale: object) -> pl.Expr:
    from dpfast.integrations.plugin.calls import call, pack_scale  # see above

    column = _named(EXPRESSION.read("expr", expr), "expr")
    if isinstance(scale, pl.Expr):
        return call(operation, [column, _named(scale, "scale")], b"")
    if not isinstance(scale, (int, float, Decimal, Fraction, np.integer, np.floating)):
        raise ParameterError("scale", scale, "a number or an expression", 'write for example scale=pl.col("scale")')
    number = borrow_scale(scale, 0)
    assert isinstance(number, float)
    return call(operation, [column], pack_scale(number))
