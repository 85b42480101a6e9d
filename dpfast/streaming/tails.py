"""How far a sum of independent Laplace variables goes: bounds that hold for every number of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Number, Numeric, Special
from dpfast.columns.declarations import as_array
from dpfast.errors import ParameterError, Words

__all__ = ["laplace_sum_error", "laplace_sum_miss"]

_MISS = Number(0, 1, above=True, below=True)
_WIDTH = Number(0, above=True)


def _no_scales() -> Iterator[object]:
    yield from (5, 1.5, True, "1", b"1", object(), {1: 2}, [], [0.0], [-1.0], [math.nan], [math.inf], ["a"], [[1.0]])


Scales: TypeAlias = Annotated[Sequence[Numeric] | NDArray[Any], Special(_no_scales)]


def _scales(given: Any) -> NDArray[np.float64]:
    array = as_array(given, "scales") if isinstance(given, (list, tuple, np.ndarray)) else np.empty(0)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not array.size or not (array > 0).all():
        raise ParameterError("scales", Words("other than that"), "one positive number or more, in one dimension")
    if not np.isfinite(array).all():
        raise ParameterError("scales", Words("infinite"), "finite numbers")
    return array.astype(np.float64)


def laplace_sum_miss(scales: Scales, width: Annotated[float, _WIDTH]) -> float:
    """Return at most which part of sums of independent Laplace variables exceeds a width, on one side.

    Parameters
    ----------
    scales
        The scale of each.
    width
        Above 0. Where it is above 2 sqrt(2) nu**2 / b for the largest scale b, nu is made larger, as the lemma allows.

    References
    ----------
    Chan, Shi, Song (2011); Dwork, Roth (2014), lemma 12.2: exp(-width**2 / (8 nu**2)) for every nu of at least
    sqrt(sum of b**2), if width < 2 sqrt(2) nu**2 / b.

    Examples
    --------
    >>> round(laplace_sum_miss([10.0] * 10, 150.0), 5)
    0.06005

    """
    b, x = _scales(scales), _WIDTH.read("width", width)
    squared = max(float((b**2).sum()), x * float(b.max()) / (2 * math.sqrt(2)))
    return math.exp(-(x**2) / (8 * squared))


def laplace_sum_error(scales: Scales, miss: Annotated[float, _MISS]) -> float:
    """Return a width: a sum of independent Laplace variables lies beyond it, on either side, with at most that chance.

    Parameters
    ----------
    scales
        The scale of each.
    miss
        Between 0 and 1. For many sums together, divide it by their number.

    References
    ----------
    Dwork, Roth (2014), corollary 12.3: nu sqrt(8 ln(2 / miss)), nu = max(sqrt(sum of b**2), max b sqrt(ln(2 / miss))).

    Examples
    --------
    >>> round(laplace_sum_error([10.0] * 10, 0.05 / 1024), 3)
    300.389

    """
    b, log = _scales(scales), math.log(2) - math.log(_MISS.read("miss", miss))
    nu = max(math.sqrt(float((b**2).sum())), float(b.max()) * math.sqrt(log))
    return nu * math.sqrt(8 * log)
