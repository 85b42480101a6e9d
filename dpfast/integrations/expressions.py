"""The namespace ``dpf`` of Polars expressions."""

from __future__ import annotations

from textwrap import shorten
from typing import Annotated

import polars as pl

from dpfast import queries
from dpfast.columns.bounds import AddedBounds, NumberBounds, OrderedBounds
from dpfast.columns.candidates import Candidates, OwnCandidates
from dpfast.columns.grid import Grid
from dpfast.columns.ranks import Quantiles
from dpfast.errors import ParameterError, Words
from dpfast.integrations.plugin.functions import EXPRESSION, ScaleExpression, gaussian, laplace, randomized_response
from dpfast.local.categories import Categories
from dpfast.mechanisms.parameters import Epsilon
from dpfast.queries import (
    Bins,
    CovarianceQuery,
    DistributionQuery,
    Edges,
    Highest,
    Lowest,
    ModeQuery,
    Name,
    Points,
    ProportionQuery,
    QuantileQuery,
    Query,
    RankedQuery,
    Winners,
)
from dpfast.rows.filters import OptionalValues, OwnFilter
from dpfast.rows.values import OptionalCompared

__all__ = ["Expressions"]


@pl.api.register_expr_namespace("dpf")
class Expressions:
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

    """

    def __init__(self, expr: Annotated[pl.Expr, EXPRESSION]) -> None:
        self._expr = EXPRESSION.read("expr", expr)

    def count(self, *, where: OwnFilter = None) -> Query:
        """Return `dpfast.count` of the column: how many values it has in every group.

        Nulls are not counted, as Polars does, and NaN neither. `dpfast.count` without a column counts rows.

        Examples
        --------
        >>> Expressions(pl.col("x")).count()
        Query(kind='count', column='x', bounds=None)

        """
        return queries.count(self._column(), where=where)

    def sum(self, *, bounds: AddedBounds) -> Query:
        """Return `dpfast.sum` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).sum(bounds=(0, 600))
        Query(kind='sum', column='dep_delay', bounds=(0.0, 600.0))

        """
        return queries.sum(self._column(), bounds=bounds)

    def mean(self, *, bounds: OrderedBounds) -> Query:
        """Return `dpfast.mean` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).mean(bounds=(-60, 600))
        Query(kind='mean', column='dep_delay', bounds=(-60.0, 600.0))

        """
        return queries.mean(self._column(), bounds=bounds)

    def proportion(
        self,
        *,
        above: OptionalCompared = None,
        at_least: OptionalCompared = None,
        below: OptionalCompared = None,
        at_most: OptionalCompared = None,
        equal: OptionalCompared = None,
        among: OptionalValues = None,
    ) -> ProportionQuery:
        """Return `dpfast.proportion` of the column, which has the parameters' documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).proportion(above=15) == queries.proportion("dep_delay", above=15)
        True

        """
        tests = {"above": above, "at_least": at_least, "below": below, "at_most": at_most, "equal": equal}
        return queries.proportion(self._column(), **tests, among=among)

    def variance(self, *, bounds: NumberBounds) -> Query:
        """Return `dpfast.variance` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).variance(bounds=(-60, 600)).bounds
        (-60.0, 600.0)

        """
        return queries.variance(self._column(), bounds=bounds)

    def std(self, *, bounds: OrderedBounds) -> Query:
        """Return `dpfast.std` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).std(bounds=(-60, 600)).bounds
        (-60.0, 600.0)

        """
        return queries.std(self._column(), bounds=bounds)

    def covariance(self, other: Name, *, bounds: NumberBounds, other_bounds: NumberBounds) -> CovarianceQuery:
        """Return `dpfast.covariance` of the column and another one, by its name; it has the parameters' documentation.

        Examples
        --------
        >>> Expressions(pl.col("distance")).covariance("time", bounds=(0, 9), other_bounds=(0, 5)).other
        'time'

        """
        return queries.covariance(self._column(), other, bounds=bounds, other_bounds=other_bounds)

    def minimum(self, *, bounds: OrderedBounds, q: Lowest = 0.01, grid: Grid = None) -> QuantileQuery:
        """Return `dpfast.minimum` of the column, a low quantile; it has the parameters' documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).minimum(bounds=(-60, 600)).kind
        'minimum'

        """
        return queries.minimum(self._column(), bounds=bounds, q=q, grid=grid)

    def maximum(self, *, bounds: OrderedBounds, q: Highest = 0.99, grid: Grid = None) -> QuantileQuery:
        """Return `dpfast.maximum` of the column, a high quantile; it has the parameters' documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).maximum(bounds=(-60, 600)).kind
        'maximum'

        """
        return queries.maximum(self._column(), bounds=bounds, q=q, grid=grid)

    def histogram(self, edges: Edges) -> DistributionQuery:
        """Return `dpfast.histogram` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).histogram([0, 15, 60]).edges
        (0, 15, 60)

        """
        return queries.histogram(self._column(), edges)

    def cdf(self, edges: Points) -> DistributionQuery:
        """Return `dpfast.cdf` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).cdf([0, 15, 60]).edges
        (0, 15, 60)

        """
        return queries.cdf(self._column(), edges)

    def quantile(self, q: Quantiles, *, bounds: OrderedBounds, grid: Grid = None) -> QuantileQuery:
        """Return `dpfast.quantile` of the column, which has the parameters' documentation.

        Examples
        --------
        >>> Expressions(pl.col("dep_delay")).quantile([0.25, 0.5], bounds=(-60, 600)).labels
        ('_p25', '_p50')

        """
        return queries.quantile(self._column(), q, bounds=bounds, grid=grid)

    def mode(self, *, candidates: Candidates) -> ModeQuery:
        """Return `dpfast.mode` of the column, which has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("dest")).mode(candidates=["IAH", "MIA"]).candidates
        ('IAH', 'MIA')

        """
        return queries.mode(self._column(), candidates=candidates)

    def top_k(self, k: Winners, *, candidates: OwnCandidates = None) -> RankedQuery:
        """Return `dpfast.top_k` of the column, which has the parameters' documentation.

        Examples
        --------
        >>> Expressions(pl.col("dest")).top_k(1, candidates=["IAH", "MIA"]).winners
        1

        """
        return queries.top_k(self._column(), k, candidates=candidates)

    def count_distinct(self) -> Query:
        """Return `dpfast.count_distinct` of the column: how many different values it has in every group.

        Examples
        --------
        >>> Expressions(pl.col("dest")).count_distinct().kind
        'count_distinct'

        """
        return queries.count_distinct(self._column())

    def bins(self, edges: Edges) -> Bins:
        """Return `dpfast.bins` of the column, for ``by``; it has the parameter's documentation.

        Examples
        --------
        >>> Expressions(pl.col("distance")).bins([0, 500, 1000]).labels
        (0, 500)

        """
        return queries.bins(self._column(), edges)

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

    def __repr__(self) -> str:
        return f"Expressions({shorten(str(self._expr), 100)})"
