"""Quantiles as whole numbers of ten-millionths, so that ranks are compared in integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Real, Special, is_real, no_numbers
from dpfast.errors import ParameterError

__all__ = ["PARTS", "Quantiles", "read_quantiles"]

PARTS = 10**7
_MOST_QUANTILES = 1000


def _no_quantiles() -> Iterator[object]:
    yield from (1.5, -0.1, [], {0.5}, {0.5: 1}, iter([0.5]), np.ones((1, 1)), np.array(["0.5"]), [0.5, 0.50000001])
    yield from (*no_numbers(), *([0.5, number] for number in (*no_numbers(), None, 1.5)), [0.5] * 1001)


#: A number from 0 to 1, or several.
Quantiles: TypeAlias = Annotated[Real | Sequence[Real] | NDArray[Any], Special(_no_quantiles)]


def read_quantiles(q: Any) -> tuple[tuple[int, ...], list[int], bool]:
    """Return quantiles in ascending order in units of 1 / PARTS, the place of each given one, whether it is a number.

    Examples
    --------
    >>> read_quantiles([0.5, 0.25])
    ((2500000, 5000000), [1, 0], False)

    """
    allowed = "a number from 0 to 1, or several different ones"
    single = is_real(q)
    if isinstance(q, np.ndarray) and q.ndim == 1:
        q = q.tolist()
    listed = [q] if single else list(q) if isinstance(q, (list, tuple)) else []
    parts = []
    for number in listed:
        if not is_real(number):
            raise ParameterError("q", q, allowed)
        # A Decimal is asked first, because comparing its NaN raises.
        if (isinstance(number, Decimal) and not number.is_finite()) or not 0 <= number <= 1:
            raise ParameterError("q", q, allowed)
        exact = number if type(number) in (int, Fraction, Decimal) else Decimal(repr(float(number)))
        parts.append(round(Fraction(exact) * PARTS))
    if not 1 <= len(parts) <= _MOST_QUANTILES:
        raise ParameterError("q", q, f"{allowed}, {_MOST_QUANTILES} at most")
    if len(set(parts)) < len(parts):
        raise ParameterError("q", q, f"{allowed}, to seven decimals")
    ascending = sorted(parts)
    return tuple(ascending), [ascending.index(part) for part in parts], single
