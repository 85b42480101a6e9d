"""The bare update of multiplicative weights: one call, in place, normalised when it returns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.columns.declarations import as_array
from dpfast.errors import ParameterError, Words
from dpfast.kernels.weights import cells as kernels
from dpfast.kernels.weights import rows as kernels_of_rows
from dpfast.weights.declarations import Eta
from dpfast.weights.given_queries import GivenQuery, linear_query
from dpfast.weights.histogram_weights import checked_eta, inspected_sum, refuse_weights
from dpfast.weights.linear_queries import (
    LARGEST_ETA,
    OTHER_INTEGERS,
    BitQuery,
    DenseQuery,
    LinearQuery,
    blocks_of,
    refuse_coefficients,
    total_of,
)

__all__ = ["multiplicative_weights"]


def _no_weights() -> Iterator[object]:
    read_only = np.ones(4)
    read_only.setflags(write=False)
    yield from (5, "1", object(), [1.0, 1.0], (1.0,), np.ones(4, np.float32), np.ones(4, int), np.ones((2, 2, 2)))
    yield from (read_only, np.ones(8)[::2], np.empty(0), np.zeros(4), np.array([-1.0, 2.0]), np.full(4, math.nan))


def multiplicative_weights(
    weights: Annotated[NDArray[np.float64], Special(_no_weights)], query: GivenQuery, eta: Eta
) -> NDArray[np.float64]:
    """Multiply weights by exp(eta * query) and divide them by their sum, in place.

    Guarantee
        None of its own: the weights keep what privacy they, the query and eta have. Give it noisy answers, not exact
        private ones.

    Parameters
    ----------
    weights
        A histogram of n cells, or many independent ones, one a row: a NumPy array of float64 in one or two
        dimensions, contiguous in C order and writable, of numbers of 0 or more with a positive finite sum (in each
        row).
    query
        Coefficients from 0 to 1: an array of n, the same for all rows, or one of the weights' shape. bool and
        integers 0 and 1 are read as bytes, fastest as bool or uint8; float64 and float32 as they are. A pair (start,
        stop) stands for a range of cells, stop exclusive, and a `dpfast.weights.linear_queries.LinearQuery` for
        bits, levels, boxes and marginals.
    eta
        A number from -500 to 500; for rows also one for each, and for a table of queries one for each of these.

    Returns
    -------
    numpy.ndarray
        The same array.

    Raises
    ------
    ParameterError
        An argument is not as above. The weights are as they were then.

    Notes
    -----
    Where coefficients are 0 and 1 the weights are read once, for their sum and that within the query, which give the
    factors of one further pass. What is left adds up to 1 but for 1e-15 or so, and 3e-12 at worst for a million cells.
    The last figure of a float64 may differ from one machine to another: vectors of another width add in another order.
    Of many updates one after the other `dpfast.weights.histogram_weights.Weights` makes fewer passes, and
    `dpfast.weights.log_weights.LogWeights` takes any eta.

    References
    ----------
    Littlestone, Warmuth (1994); Arora, Hazan, Kale (2012). Hardt, Rothblum (2010) for private use.

    Examples
    --------
    >>> weights = np.full(4, 0.25)
    >>> multiplicative_weights(weights, np.array([True, True, False, False]), math.log(3.0)).round(6)
    array([0.375, 0.375, 0.125, 0.125])
    >>> rows = np.ones((2, 2))
    >>> multiplicative_weights(rows, np.array([[0.0, 1.0], [0.0, 0.5]]), math.log(4.0)).round(3).tolist()
    [[0.2, 0.8], [0.333, 0.667]]
    >>> multiplicative_weights(weights, (0, 5), 1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: query must be a range with 0 <= start <= stop <= 4, but was (0, 5); count cells \
from 0; stop is the first one after the range

    """
    rows = _checked_rows(weights)
    asked, coefficients, is_checked = _checked_query(query, rows.shape, weights.shape)
    if asked is not None:
        _update_one(rows.reshape(-1), asked, checked_eta(eta, asked.table, LARGEST_ETA))
        return weights
    etas: Any = eta
    if type(eta) is not float or not abs(eta) <= LARGEST_ETA:
        etas = checked_eta(eta, (rows.shape[0],) if as_array(eta, "eta").ndim else None, LARGEST_ETA)
    etas, totals, insides = np.atleast_1d(etas), *np.empty((2, rows.shape[0]))
    if not kernels_of_rows.update_rows(rows, coefficients, etas, totals, insides):
        signed, other = kernels_of_rows.weigh_rows(rows, coefficients, totals, insides)
        if other and not is_checked:
            raise refuse_coefficients(OTHER_INTEGERS)
        refuse_weights(rows, signed, float(totals[0]) if totals.size == 1 else totals, "weights")
        kernels_of_rows.multiply_rows(rows, coefficients, etas, totals, insides)
    return weights


def _checked_rows(weights: object) -> NDArray[np.float64]:
    """Return the weights in two dimensions, the same memory."""
    allowed = "a writable NumPy array of float64, contiguous in C order, of one or two dimensions"
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float64 or weights.ndim not in (1, 2):
        given = Words(f"of shape {weights.shape}, {weights.dtype}") if isinstance(weights, np.ndarray) else weights
        raise ParameterError("weights", given, allowed, "convert it first: np.array(weights, dtype=float)")
    if not weights.flags.c_contiguous or not weights.flags.writeable or not weights.flags.aligned:
        given = Words("read-only" if not weights.flags.writeable else "not contiguous")
        raise ParameterError("weights", given, allowed, "copy it first: weights = weights.copy()")
    if not weights.size:
        raise ParameterError("weights", Words(f"of shape {weights.shape}"), "at least one cell in each row")
    return weights.reshape(-1, weights.shape[-1])


def _checked_query(
    query: Any, rows: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[LinearQuery | None, NDArray[np.number[Any]] | None, bool]:
    """Return the query, or its coefficients in two dimensions if they are numbers for rows, and if they are checked.

    The kernel looks at bytes while it reads them.
    """
    if not isinstance(query, (LinearQuery, tuple)):
        array = as_array(query, "query")
        if array.shape not in {rows[1:], shape}:
            raise ParameterError(
                "query", Words(f"of shape {array.shape}"), f"of shape {shape}" + f" or {rows[1:]}" * (shape != rows[1:])
            )
        if array.dtype in (np.uint8, np.bool_):
            return None, np.ascontiguousarray(array).reshape(-1, rows[1]).view(np.uint8), array.dtype != np.uint8
        return None, DenseQuery(array).coefficients(array.shape).reshape(-1, rows[1]), True
    asked = linear_query(query, getattr(query, "shape", rows[1:]))
    own = getattr(asked, "shape", rows[1:])
    if math.prod(own) != rows[1]:
        raise ParameterError("query", Words(f"one over shape {own}"), f"one over {rows[1]} cells")
    if rows[0] == 1:
        return asked, None, True
    if asked.table is not None:
        raise ParameterError("query", Words("a table of queries"), "one query, where the weights have several rows")
    return None, asked.coefficients(own).reshape(1, -1), True


def _update_one(weights: NDArray[np.float64], query: LinearQuery, eta: Any) -> None:
    """Update one histogram with a query that is no array of bytes or floats."""
    inside = None
    if isinstance(query, BitQuery):
        sums, dots = np.empty((2, blocks_of(weights.size)))
        signed = kernels.inspect_and_dot(weights, query.words, None, sums, dots)
        total, inside = total_of(sums), total_of(dots)
        refuse_weights(weights, signed, total, "weights")
    else:
        total = inspected_sum(weights, "weights")
    if not kernels.LOWEST_SUM < total < kernels.HIGHEST_SUM:
        kernels.divide(weights, total)
        total, inside = 1.0, None if inside is None else inside / total
    if inside is not None:
        new = (total - inside) + inside * math.exp(eta)
        if new >= kernels_of_rows.LEAST_SHARE * total:
            query.multiply(weights, new, eta)
            return
    kernels.scale(weights, 1.0 / query.multiply(weights, total, eta))
