"""What a user gives as a query -> a linear query over a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias, cast

import numpy as np

from dpfast.arguments import Special, is_numeric
from dpfast.columns.declarations import TypedColumn
from dpfast.errors import ParameterError
from dpfast.weights.declarations import NO_NUMBERS
from dpfast.weights.linear_queries import DenseQuery, LinearQuery
from dpfast.weights.slab_queries import BoxQuery, RangeQuery

__all__ = ["GivenQuery", "OptionalQuery", "linear_query"]


_NO_ROWS: tuple[object, ...] = (
    [],
    [[1], [0, 1]],
    np.ones(17),
    [2.0] * 4,
    [-1.0] * 4,
    [math.nan] * 4,
    np.zeros(4, "S1"),
)
_NO_PAIRS = ((0, 99), (-1, 1), (2, 1), (True, True), (0, "1"))
_QUERY = Special(
    lambda: [
        *(True, 5, 0.5, DenseQuery, *NO_NUMBERS, *_NO_ROWS, *_NO_PAIRS),
        *(RangeQuery(0, 99), BoxQuery((7, 11), (0, 0), (1, 1))),
    ]
)
#: A `LinearQuery`, an array of coefficients, or a pair (start, stop) of a range.
GivenQuery: TypeAlias = Annotated[LinearQuery | TypedColumn | Sequence[Any], _QUERY]
OptionalQuery: TypeAlias = Annotated[LinearQuery | TypedColumn | Sequence[Any] | None, replace(_QUERY, optional=True)]


def linear_query(query: GivenQuery, shape: tuple[int, ...], argument: str = "query") -> LinearQuery:
    """Return a query over a shape: a `LinearQuery`, an array of coefficients, or a pair (start, stop) of a range."""
    try:
        if not isinstance(query, LinearQuery):
            pair = isinstance(query, tuple) and len(query) == 2 and all(map(is_numeric, query))
            query = RangeQuery(*cast("tuple[int, int]", query)) if pair else DenseQuery(query)
        query.check(shape)
    except ParameterError as error:
        if error.argument != argument:
            error.argument, error.args = argument, (f"{argument}: {error}",)
        raise
    return query
