"""A million amounts at once: whole units of 1e-18 in two limbs, and what makes them of float64 arrays.

One 64-bit integer ends at 9.22 units of one; here the whole part has 64 bits of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.elementary import Floats

__all__ = ["Units", "in_blocks", "parameter_arrays", "units_as_written", "units_of_floats"]

_BLOCK = 1 << 14
_LARGEST = 2.0**53
_LOW = (1 << 30) - 1


@dataclass(frozen=True)
class Units:
    """Amounts of whole units of 1e-18: ``whole * 10**18 + part`` each.

    Attributes
    ----------
    whole, part
        int64 arrays of one shape; ``part`` is at least 0 and at most 10**18 + 128.

    """

    whole: NDArray[np.int64]
    part: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, index: int) -> int:
        """Return one amount."""
        return int(self.whole[index]) * UNITS_PER_ONE + int(self.part[index])

    def __iter__(self) -> Iterator[int]:
        for whole, part in zip(self.whole.tolist(), self.part.tolist(), strict=True):
            yield whole * UNITS_PER_ONE + part

    def total(self) -> int:
        """Return the exact sum, for up to 2**33 amounts (each limb is added in halves that cannot overflow)."""
        return _exact_sum(self.whole) * UNITS_PER_ONE + _exact_sum(self.part)


def _exact_sum(limbs: NDArray[np.int64]) -> int:
    # `whole` is at most 2**53 and `part` below 2**60: neither half overflows before 2**33 of them.
    return (int((limbs >> 30).sum(dtype=np.int64)) << 30) + int((limbs & _LOW).sum(dtype=np.int64))


def units_of_floats(x: Floats, argument: str) -> Units:
    """Return float64 amounts as units, rounded up.

    The whole part and the rest are exact; the rest times 1e18 is rounded to nearest, the next float is not
    below the true product, and neither is its ceiling.
    """
    if not np.all((x >= 0.0) & (x < _LARGEST)):
        raise ParameterError(argument, Words("an array"), "such that every amount is below 2**53")
    whole = np.floor(x)
    part = (x - whole) * 1e18
    part = np.where(part == 0.0, 0.0, np.ceil(np.nextafter(part, np.inf)))
    return Units(whole.astype(np.int64), part.astype(np.int64))


def in_blocks(function: Callable[..., Units], arrays: list[Floats]) -> Units:
    """Return a function's units of whole arrays, computed in blocks that stay in the cache."""
    size = len(arrays[0])
    whole, part = np.empty(size, np.int64), np.empty(size, np.int64)
    for start in range(0, size, _BLOCK):
        block = slice(start, start + _BLOCK)
        units = function(*(array[block] for array in arrays))
        whole[block], part[block] = units.whole, units.part
    return Units(whole, part)


def parameter_arrays(kind: type, parameters: dict[str, ArrayLike]) -> list[Floats]:
    """Return the parameters of many events of one kind as float64 arrays of one length, or refuse them.

    Parameters
    ----------
    kind
        A class of `dpfast.accounting.events` whose fields are numbers.
    parameters
        Numbers or one-dimensional arrays by the names of the fields; what is missing takes its default.

    """
    columns = []
    for one in fields(kind):
        given = parameters.pop(one.name, one.default)
        if given is MISSING:
            raise ParameterError(one.name, None, f"given: a {kind.__name__} has no default for it")
        column = np.asarray(given)
        if column.dtype.kind not in "iuf" or column.dtype.itemsize > 8 or column.ndim > 1:
            raise ParameterError(one.name, Words("an array"), "numbers in one dimension, of at most 64 bits each")
        column = column.astype(np.float64)
        if not np.all((column > 0.0) & (column < np.inf)):
            raise ParameterError(one.name, Words("an array"), "positive finite numbers")
        columns.append(column)
    if parameters:
        raise ParameterError(next(iter(parameters)), Words("given"), f"left out: a {kind.__name__} has no such field")
    try:
        return [np.atleast_1d(column) for column in np.broadcast_arrays(*columns)]
    except ValueError:
        raise ParameterError("parameters", Words("arrays of several lengths"), "of one length") from None


def units_as_written(x: Floats, argument: str) -> Units:
    """Return float64 amounts as units, rounded up from the decimals that denote them.

    Exactly, where that decimal has at most 15 digits in all and 15, 12 or 9 places for amounts below 1, 1000
    and 10**6; elsewhere at most a relative 2**-50 more, for the decimal lies within half a unit in the last
    place of the float. Proof of the first: ``n / power`` is correctly rounded, so if it equals x then x denotes
    a decimal of at most 15 digits, and no two of these share a float.
    """
    above = units_of_floats(np.nextafter(x * (1.0 + 2.0**-51), np.inf), argument)
    exponent = np.where(x < 1.0, 15, np.where(x < 1e3, 12, 9))
    power = np.array([10**n for n in range(16)], np.int64)[exponent]
    n = np.rint(np.minimum(x, 1e6) * power)
    exact = (n / power == x) & (n < 1e15)
    digits = n.astype(np.int64)
    return Units(
        np.where(exact, digits // power, above.whole),
        np.where(exact, digits % power * (UNITS_PER_ONE // power), above.part),
    )
