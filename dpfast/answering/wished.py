"""From wished errors to charges, a column at a time: the interval of every answer is known before it is drawn."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError

__all__ = ["epsilons_of", "reach_of", "rhos_of"]

Floats = NDArray[np.float64]

#: An interval misses the true value with this probability.
_MISS = 0.05
#: Covers the roundings of kernels' logarithms and normal quantiles.
_WIDENED = 1.0 + 2.0**-18
# Scales are raised by at most so much where they follow from a charge, of epsilon and of rho.
_ROOM, _RHO_ROOM = 1.0 + 2.0**-48, 1.0 + 2.0**-28


def reach_of(mechanism: str) -> float:
    """Return how many scales half of an interval is wide."""
    return (math.log(1 / _MISS) if mechanism == "laplace" else NormalDist().inv_cdf(1 - _MISS / 2)) * _WIDENED


def epsilons_of(error: Floats, width: float | Floats, *, whole: bool) -> Floats:
    """Return the least epsilons at which Laplace noise stays within errors.

    Examples
    --------
    >>> epsilons_of(np.array([3.0, 30.0]), 1.0, whole=False).round(4).tolist()
    [0.9986, 0.0999]

    """
    return width / _scales(error, "laplace", whole=whole) * _ROOM


def rhos_of(
    error: Floats, width: float | Floats, mechanism: str | NDArray[np.bool_], *, whole: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the least rhos at which noise stays within errors, and for which rows it is Gaussian.

    Gaussian noise costs (D / sigma)**2 / 2; Laplace noise, with e = D / b, e tanh(e / 2) on integers, and
    e + exp(-e) - 1 on others.
    """
    gaussian = (width / _scales(error, "gaussian", whole=whole)) ** 2 / 2
    e = width / _scales(error, "laplace", whole=whole)
    laplace = e * np.tanh(e / 2) if whole else e + np.expm1(-e)
    # Of a tiny e the difference of the two would be lost in rounding.
    laplace = np.where(e < 1e-4, e**2 / 2, laplace)
    if isinstance(mechanism, str):
        chosen = gaussian <= laplace if mechanism == "auto" else np.full(error.size, mechanism == "gaussian")
    else:
        chosen = mechanism
    return np.where(chosen, gaussian, laplace) * _RHO_ROOM, chosen


def _scales(error: Floats, mechanism: str, *, whole: bool) -> Floats:
    """Return the widest noise of which intervals are no wider: of integers they reach a whole number and one more."""
    if not whole:
        return error / reach_of(mechanism) / _ROOM
    if not error.min() >= 1.0:
        row = int(np.argmax(~(error >= 1.0)))
        allowed = "at least 1 for values that are whole numbers, whose intervals are"
        raise ParameterError(f"error[{row}]", float(error[row]), allowed)
    scales: Floats = np.minimum(np.floor(error), 2.0**53) / reach_of(mechanism) / _ROOM**4
    return scales
