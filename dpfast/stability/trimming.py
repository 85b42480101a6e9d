"""Means of few numbers that forget the extremes: as whole numbers, with what one of them can change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Number, Real, Special
from dpfast.errors import ParameterError

__all__ = ["TRIM", "RankSum", "Trim", "rank_sum", "trimmed_mean", "winsorized_mean"]

#: The part of the values that is cut off, or pulled in, at each end.
TRIM = Number(0, 0.5, below=True)
Trim: TypeAlias = Annotated[Real, TRIM]


def _no_numbers() -> tuple[object, ...]:
    return (
        5,
        "12",
        b"12",
        [],
        [[1.0]],
        ["a"],
        [None],
        object(),
        [math.nan],
        [math.inf],
        {1: 2},
        np.zeros((2, 2)),
        [1j],
    )


Numbers: TypeAlias = Annotated[Sequence[Any] | NDArray[Any], Special(_no_numbers)]


@dataclass(frozen=True)
class RankSum:
    """A sum of n sorted numbers, each times a whole weight, over a divisor.

    Attributes
    ----------
    weights
        For each rank, the lowest first.
    divisor
        What the sum is divided by.

    """

    weights: tuple[int, ...]
    divisor: int

    @property
    def change(self) -> int:
        """The most that the sum changes where one number moves by 1 at most, whatever the others are.

        A number that moves from u up to v moves the sorted ones from the rank of u to the rank of v each to the next
        one's place, or less: the sum rises by sum w_r (x'_r - x_r), these differences being at least 0 and adding up to
        v - u. So it rises by at most the largest weight times v - u; and by as much where the others lie so that v - u
        is all in one rank.
        """
        return max(self.weights)


def rank_sum(kind: Literal["mean", "trimmed_mean", "winsorized_mean"], count: int, trim: float) -> RankSum:
    """Return a mean of so many numbers, floor(trim * count) of which are cut off or pulled in at each end.

    Examples
    --------
    >>> rank_sum("winsorized_mean", 5, 0.2), rank_sum("winsorized_mean", 5, 0.2).change
    (RankSum(weights=(0, 2, 1, 2, 0), divisor=5), 2)
    >>> rank_sum("trimmed_mean", 5, 0.2)
    RankSum(weights=(0, 1, 1, 1, 0), divisor=3)

    """
    cut = 0 if kind == "mean" else math.floor(trim * count)
    weights = [0] * cut + [1] * (count - 2 * cut) + [0] * cut
    if kind == "winsorized_mean":
        weights[cut] += cut
        weights[count - 1 - cut] += cut
        return RankSum(tuple(weights), count)
    return RankSum(tuple(weights), count - 2 * cut)


def _mean(values: Numbers, kind: Literal["trimmed_mean", "winsorized_mean"], trim: Trim) -> float:
    cut = TRIM.read("trim", trim)
    try:
        array = np.asarray(values)
        numbers = np.sort(array.astype(np.float64)) if array.dtype.kind in "iuf" else np.empty(0)
    except Exception:  # whatever a sequence of other things raises
        array = numbers = np.empty(0)
    if array.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ParameterError("values", values, "one finite number or more, in one dimension")
    chosen = rank_sum(kind, numbers.size, cut)
    return float(
        math.fsum(weight * number for weight, number in zip(chosen.weights, numbers.tolist(), strict=True))
    ) / (chosen.divisor)


def trimmed_mean(values: Numbers, trim: Trim) -> float:
    """Return the mean of what is left when floor(trim * n) values at each end are cut off.

    Guarantee
        None: it is as private as the values. One value among n that moves within a range r moves it by up to
        r / (n - 2 floor(trim * n)), which is no less than for the mean: trimming helps only where noise follows the
        data at hand (`dpfast.subsample_and_aggregate` with ``sensitivity="smooth"``).

    Parameters
    ----------
    values
        Finite numbers.
    trim
        From 0 to below 0.5.

    Returns
    -------
    float
        The mean.

    Raises
    ------
    ParameterError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), section 7.1.

    Examples
    --------
    >>> trimmed_mean([1, 2, 3, 4, 1000], 0.2)
    3.0

    """
    return _mean(values, "trimmed_mean", trim)


def winsorized_mean(values: Numbers, trim: Trim) -> float:
    """Return the mean where floor(trim * n) values at each end are pulled in to the nearest that are left.

    Guarantee
        None: it is as private as the values. With k = floor(trim * n), one value among n that moves within a range r
        moves it by up to r (k + 1) / n.

    Parameters
    ----------
    values, trim
        As for `trimmed_mean`.

    Returns
    -------
    float
        The mean.

    Raises
    ------
    ParameterError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), section 7.1.

    Examples
    --------
    >>> winsorized_mean([1, 2, 3, 4, 1000], 0.2)
    3.0

    """
    return _mean(values, "winsorized_mean", trim)
