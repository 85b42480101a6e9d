"""What a user gives as a query -> a linear query over a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfast.weights.linear_queries import DenseQuery, LinearQuery
from dpfast.weights.slab_queries import RangeQuery

__all__ = ["linear_query"]


def linear_query(query: Any, shape: tuple[int, ...]) -> LinearQuery:
    """Return a query over a shape: a `LinearQuery`, an array of coefficients, or a pair (start, stop) of a range."""
    if not isinstance(query, LinearQuery):
        pair = isinstance(query, tuple) and len(query) == 2 and all(isinstance(end, (int, np.integer)) for end in query)
        query = RangeQuery(*query) if pair else DenseQuery(query)
    asked: LinearQuery = query
    asked.check(shape)
    return asked
