"""The scale of the noise: one number, or one per row."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.kinds import borrow
from dpfast.errors import ParameterError

__all__ = ["HIGHEST_SCALE", "LOWEST_SCALE", "borrow_scale"]

#: The scales for which the kernels' error bounds are proved: grids and noise stay normal floats between them.
LOWEST_SCALE = 2.0**-960
HIGHEST_SCALE = 2.0**960

_LOWEST_DECIMAL = Decimal(LOWEST_SCALE)
_HIGHEST_DECIMAL = Decimal(HIGHEST_SCALE)

_RANGE = "from 2**-960 (about 1.03e-289) to 2**960 (about 9.74e+288)"


def borrow_scale(scale: Any, length: int, argument: str = "scale") -> float | NDArray[np.float64]:
    """Read a scale: a positive number, or a column with one positive number for each row.

    Guarantee
        A number is never rounded down: the result is the smallest float that is not below what was given, so
        that the noise is at least as wide as was asked for. A column of float64 in one chunk is borrowed
        without a copy; entries of other types are converted exactly or refused.

    Parameters
    ----------
    scale
        An int, float, Decimal, Fraction or NumPy scalar; or any column that `borrow` takes, without nulls.
        Every scale lies from 2**-960 to 2**960.
    length
        The number of rows that a column of scales must have.
    argument
        The name that an error gives to ``scale``.

    Returns
    -------
    float or numpy.ndarray
        A float, or a read-only contiguous array of float64 with ``length`` entries.

    Raises
    ------
    ParameterError
        The scale, or one in a column, is no finite positive number in the range; the length is wrong; a row
        is null; an integer is no float64. The first such row is named and shown: scales are public.
    ColumnError
        ``scale`` is of a kind or type that `borrow` does not take.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dpfast.columns import borrow_scale
    >>> scale = borrow_scale(Fraction(1, 3), length=10)
    >>> isinstance(scale, float) and scale >= Fraction(1, 3)
    True
    >>> borrow_scale([1, 2, 4], length=3)
    array([1., 2., 4.])
    >>> borrow_scale([1.0, float("nan")], length=2)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: scale[1] must be a number from 2**-960 (about 1.03e-289) to 2**960 (about \
9.74e+288), but was nan

    """
    if isinstance(scale, np.ndarray) and scale.ndim == 0 and not isinstance(scale, np.ma.MaskedArray):
        scale = scale[()]
    if isinstance(scale, (int, float, Decimal, Fraction, np.generic, complex, str, bytes, type(None))):
        return _number_rounded_up(scale, argument)
    from dpfast.kernels.ranges import all_within  # not at the top: it takes long, and numbers do without

    column = borrow(scale, argument)
    if column.length != length:
        mend = "pass one number, or one for each row"
        raise _error(argument, f"the length of {argument}", column.length, f"{length}, as the column's", mend)
    if column.null_count:
        row = next(row for row in range(length) if column.missing(row, row + 1) is not None)
        raise _error(argument, f"{argument}[{row}]", None, f"a number {_RANGE}")
    given = column.block(0, length)
    scales: NDArray[np.float64] = given.astype(np.float64, copy=False)
    if given.dtype == np.int64:
        _refuse_inexact(given, scales, argument)
    scales.setflags(write=False)
    if not all_within(scales, LOWEST_SCALE, HIGHEST_SCALE):
        row = int(np.argmin((scales >= LOWEST_SCALE) & (scales <= HIGHEST_SCALE)))
        raise _error(argument, f"{argument}[{row}]", scales[row].item(), f"a number {_RANGE}")
    return scales


def _number_rounded_up(scale: Any, argument: str) -> float:
    number = scale
    if isinstance(scale, np.generic) and scale.dtype.kind in "iuf":
        # As a Python number: beside a float32, NumPy would round the bounds below to 0 and infinity.
        number = scale.item()
        if isinstance(number, np.longdouble):
            number = Fraction(*number.as_integer_ratio()) if np.isfinite(number) else float(number)
    accepted = isinstance(number, (int, float, Decimal, Fraction)) and not isinstance(number, bool)
    # A Decimal is asked first, because comparing a signalling NaN raises.
    if not accepted or (isinstance(number, Decimal) and not number.is_finite()):
        raise ParameterError(argument, scale, f"a number {_RANGE}", f"write for example {argument}=1.0")
    # The range comes before any conversion: 10**400 is no float, and Decimal("1e999999999") as a fraction
    # would fill the memory. Python compares its numbers exactly.
    if isinstance(number, Decimal):
        in_range = _LOWEST_DECIMAL <= number <= _HIGHEST_DECIMAL
    else:
        in_range = LOWEST_SCALE <= number <= HIGHEST_SCALE
    if not in_range:
        raise ParameterError(argument, scale, f"a number {_RANGE}")
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def _refuse_inexact(given: NDArray[np.int64], scales: NDArray[np.float64], argument: str) -> None:
    # 2**63 itself is what integers just below it round to; cast back, it would not fit.
    fits = scales < 2.0**63
    exact = fits & (np.where(fits, scales, 0.0).astype(np.int64) == given)
    if not exact.all():
        row = int(np.argmin(exact))
        mend = f"round it up to a float64 and pass {argument} as floats"
        raise _error(argument, f"{argument}[{row}]", given[row].item(), "an integer that float64 holds", mend)


def _error(argument: str, part: str, given: Any, allowed: str, mend: str = "") -> ParameterError:
    error = ParameterError(part, given, allowed, mend)
    error.argument = argument
    return error
