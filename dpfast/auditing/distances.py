"""How far two datasets are from each other: neighbours are one apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words

__all__ = ["histogram_distance", "row_distance"]

_MOST = 2**62


def _wrong_histograms() -> list[object]:
    wrong: list[object] = [1, 0.5, True, "12", b"12", {1, 2}, {"a": 1}, object(), [0.5], [True], ["1"], [-1], [2**63]]
    return [*wrong, [[1], [2]], np.ones((2, 2), np.int64), np.array([1.0]), np.array([np.nan])]


HISTOGRAM = Special(_wrong_histograms)
ROWS = Special(lambda: (1, 0.5, True, {1, 2}, {"a": 1}, object(), np.ones((), np.int64)))

Histogram: TypeAlias = Annotated[Sequence[int] | NDArray[Any], HISTOGRAM]
Rows: TypeAlias = Annotated[Sequence[Any] | NDArray[Any], ROWS]


def histogram_distance(x: Histogram, y: Histogram) -> int:
    """Return by how many rows two datasets differ, given as histograms: the sum of abs(x_i - y_i).

    Guarantee
        None: the distance is as private as the data.

    Parameters
    ----------
    x, y
        How many rows are of each kind: lists or arrays of whole numbers of at least 0, of one length.

    Returns
    -------
    int
        How many rows must be added or removed to make y of x; 1 for neighbours under "add_remove".

    Raises
    ------
    ParameterError
        A histogram has other numbers, or the two have different lengths.

    References
    ----------
    Dwork, Roth (2014), definition 2.3.

    Examples
    --------
    >>> histogram_distance([3, 0, 2], [3, 1, 2]), histogram_distance([3, 0, 2], [2, 1, 2])
    (1, 2)

    """
    one, other = _read_histogram("x", x), _read_histogram("y", y)
    if len(one) != len(other):
        raise ParameterError("y", Words(f"of length {len(other)}"), f"of the length of x, which is {len(one)}")
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def row_distance(x: Rows, y: Rows) -> int:
    """Return by how many rows two datasets differ, given as ordered rows: Hamming's distance.

    Guarantee
        None: the distance is as private as the data.

    Parameters
    ----------
    x, y
        Lists, arrays or strings of rows, of one length.

    Returns
    -------
    int
        How many rows must be replaced to make y of x; 1 for neighbours under "replace".

    Raises
    ------
    ParameterError
        There are no rows to compare, or more of one than of the other.

    References
    ----------
    Dwork, Roth (2014), section 2.3.

    Examples
    --------
    >>> row_distance(["ann", "bob"], ["ann", "eve"])
    1

    """
    for name, given in (("x", x), ("y", y)):
        listed = isinstance(given, (Sequence, np.ndarray)) and getattr(given, "ndim", 1) > 0
        if not listed:
            raise ParameterError(name, given, "a list or an array of rows", 'write for example ["ann", "bob"]')
    if len(x) != len(y):
        raise ParameterError("y", Words(f"of {len(y)} rows"), f"of as many rows as x, which has {len(x)}")
    return sum(not np.array_equal(one, other) for one, other in zip(x, y, strict=True))


def _read_histogram(name: str, given: Any) -> list[int]:
    whole = isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "iu"
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        whole = all(isinstance(count, (int, np.integer)) and not isinstance(count, bool) for count in given)
    if not whole or not all(0 <= count <= _MOST for count in given):
        allowed = "a list or an array of whole numbers from 0 to 2**62"
        raise ParameterError(name, Words(f"a {type(given).__name__} of others"), allowed, "write for example [3, 0, 2]")
    return [int(count) for count in given]
