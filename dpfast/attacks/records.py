"""Private bits, one of each record: what attacks try to find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.workloads.histograms import array_of, no_arrays

__all__ = ["Records", "Table", "no_records", "read_records", "read_table"]

_ALLOWED = "zeros and ones, or True and False"


def no_records() -> Iterator[object]:
    """Yield what are no zeros and ones."""
    yield from (given for given in no_arrays() if given is not True)
    yield from ([], [0.5], [2, 1], [-1, 1], [np.nan], ["0", "1"], 5)


def _no_tables() -> Iterator[object]:
    yield from no_records()
    yield from ([0, 1], np.ones(3, np.int64), np.full((2, 2), 2), np.full((2, 2), 0.5))


#: n zeros and ones.
Records: TypeAlias = Annotated[ArrayLike, Special(no_records)]
#: Zeros and ones, a row for each person, a column for each attribute.
Table: TypeAlias = Annotated[ArrayLike, Special(_no_tables)]


def _bits(given: object, name: str, dimensions: int) -> NDArray[np.uint8]:
    array = array_of(given, name)
    if array.ndim != dimensions or array.size == 0 or array.dtype.kind not in "biuf":
        what = "a list of" if dimensions == 1 else "rows and columns of"
        raise ParameterError(name, Words(f"of shape {array.shape} and type {array.dtype}"), f"{what} {_ALLOWED}")
    if not ((array == 0) | (array == 1)).all():
        raise ParameterError(name, Words("with other numbers"), _ALLOWED)
    return array.astype(np.uint8)


def read_records(given: object, *, most: int, name: str = "records") -> NDArray[np.uint8]:
    """Return records as an array.

    Raises
    ------
    ParameterError
        They are not zeros and ones, or more than ``most``.

    """
    bits = _bits(given, name, 1)
    if bits.size > most:
        raise ParameterError(name, Words(f"{bits.size:,} records"), f"at most {most:,}", "attack a part of them")
    return bits


def read_table(given: object, name: str) -> NDArray[np.uint8]:
    """Return people as rows.

    Raises
    ------
    ParameterError
        They are not rows and columns of zeros and ones.

    """
    return _bits(given, name, 2)
