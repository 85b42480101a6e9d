"""The namespace ``dpf`` of Polars expressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Concatenate, ParamSpec, TypeVar

import polars as pl

from dpfast import queries
from dpfast.errors import ParameterError, Words
from dpfast.integrations.plugin.functions import EXPRESSION, ScaleExpression, gaussian, laplace, randomized_response
from dpfast.local.categories import Categories
from dpfast.mechanisms.parameters import Epsilon
from dpfast.showing import Facts, Shown

__all__ = ["Expressions"]


_Given = ParamSpec("_Given")
_Asked = TypeVar("_Asked")


def _of_column(
    ask: Callable[Concatenate[str, _Given], _Asked],
) -> Callable[Concatenate[Expressions, _Given], _Asked]:
    """Return a method that asks of the column what the function asks of a column's name."""

    @wraps(ask)
    def method(self: Expressions, /, *given: _Given.args, **named: _Given.kwargs) -> _Asked:
        return ask(self._column(), *given, **named)

    return method


@pl.api.register_expr_namespace("dpf")
class Expressions(Shown):
    """What ``pl.col("x").dpf`` offers: specifications of what to ask of a column; and noise, row by row.

    Guarantee
        ``laplace``, ``gaussian`` and ``randomized_response`` are expressions, which draw whenever an engine evaluates
        them: `dpfast.integrations.polars_plugin` says what that means. All others are specifications.
        A specification is no expression. It cannot be evaluated, so no engine can evaluate it twice, and it cannot
        stand in ``over`` or ``when``. Nothing of it reads the data: `dpfast.release` does, after its charge.

    Parameters
    ----------
    expr
        For specifications a bare column, such as ``pl.col("x")``. What is computed gets a name first:
        ``lf.with_columns(y=pl.col("x") + 1)``, then ``pl.col("y")``. An alias is refused, since a query is named by
        its keyword: ``release(y=pl.col("x").dpf.sum(bounds=(0, 1)))``.

    Notes
    -----
    Type checkers know nothing of registered namespaces. A program that is checked calls the functions themselves:
    ``dpf.sum("x", bounds=(0, 1))`` is what ``pl.col("x").dpf.sum(bounds=(0, 1))`` returns.

    Examples
    --------
    >>> import polars as pl
    >>> import dpfast as dpf
    >>> Expressions(pl.col("x")).sum(bounds=(0, 1)) == dpf.sum("x", bounds=(0, 1))
    True
    >>> Expressions(pl.col("dep_delay")).proportion(above=15).in_words
    'proportion of dep_delay > 15, of values that are not missing'

    """

    def __init__(self, expr: Annotated[pl.Expr, EXPRESSION]) -> None:
        self._expr = EXPRESSION.read("expr", expr)

    #: Each is the function of this name, which has its documentation, of the column.
    count = _of_column(queries.count)
    sum = _of_column(queries.sum)
    mean = _of_column(queries.mean)
    proportion = _of_column(queries.proportion)
    variance = _of_column(queries.variance)
    std = _of_column(queries.std)
    covariance = _of_column(queries.covariance)
    minimum = _of_column(queries.minimum)
    maximum = _of_column(queries.maximum)
    histogram = _of_column(queries.histogram)
    cdf = _of_column(queries.cdf)
    quantile = _of_column(queries.quantile)
    mode = _of_column(queries.mode)
    top_k = _of_column(queries.top_k)
    count_distinct = _of_column(queries.count_distinct)
    bins = _of_column(queries.bins)

    def laplace(self, scale: ScaleExpression) -> pl.Expr:
        """Return the column with Laplace noise, an expression: see `dpfast.integrations.polars_plugin.laplace`.

        Examples
        --------
        >>> pl.DataFrame({"n": [3, 5]}).select(Expressions(pl.col("n")).laplace(scale=2.0)).dtypes
        [Int64]

        """
        return laplace(self._expr, scale)

    def gaussian(self, scale: ScaleExpression) -> pl.Expr:
        """Return the column with Gaussian noise, an expression: see `dpfast.integrations.polars_plugin.gaussian`.

        Examples
        --------
        >>> pl.DataFrame({"n": [3, 5]}).select(Expressions(pl.col("n")).gaussian(scale=2.0)).dtypes
        [Int64]

        """
        return gaussian(self._expr, scale)

    def randomized_response(self, categories: Categories, epsilon: Epsilon) -> pl.Expr:
        """Return answers in place of categories, an expression: see `dpfast.integrations.polars_plugin`.

        Examples
        --------
        >>> frame = pl.DataFrame({"n": [0, 1]})
        >>> frame.select(Expressions(pl.col("n")).randomized_response(2, epsilon=1.0)).dtypes
        [Int64]

        """
        return randomized_response(self._expr, categories, epsilon)

    def _column(self) -> str:
        """Return the column's name, or refuse the expression; its text may hold values, and is not shown."""
        expr = self._expr
        if expr.meta.is_column():
            return expr.meta.output_name()
        mend = 'name what is computed first: lf.with_columns(y=...), then pl.col("y").dpf'
        if expr.meta.undo_aliases().meta.is_column():
            given = "one with an alias"
            mend = 'name the query by its keyword: y=pl.col("x").dpf'
        elif expr.meta.is_column_selection():
            given, mend = "a selection of columns", 'write a query for each: pl.col("x").dpf'
        else:
            given = "an expression" + "".join(f" of {name[:60]!r}" for name in expr.meta.root_names()[:1])
        raise ParameterError("column", Words(given), 'a bare column such as pl.col("x")', mend)

    def _facts(self) -> Facts:
        """Return the columns that it reads; its text may hold values, and is not shown."""
        return [("columns", self._expr.meta.root_names())]
