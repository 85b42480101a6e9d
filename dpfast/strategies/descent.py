"""Descent to a local minimum of a smooth function of many variables: L-BFGS with backtracking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["descend"]

Vector = NDArray[np.float64]

_PAIRS = 10
_SUFFICIENT = 1e-4
_HALVINGS = 40


def descend(value_and_gradient: Callable[[Vector], tuple[float, Vector]], start: Vector, rounds: int = 300) -> Vector:
    """Return a point near a local minimum, of a value not above the start's.

    Parameters
    ----------
    value_and_gradient
        The function, above 0.
    start
        Where to begin.
    rounds
        How many steps to take at most; fewer where a step lowers the value by less than 1e-7 of it.

    References
    ----------
    Nocedal, Wright (2006), algorithms 7.4 and 3.1.

    Examples
    --------
    >>> descend(lambda x: (1 + ((x - 3) ** 2).sum(), 2 * (x - 3)), np.zeros(2)).round(6).tolist()
    [3.0, 3.0]

    """
    point = start
    value, gradient = value_and_gradient(point)
    pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=_PAIRS)
    for _ in range(rounds):
        direction = -_times_inverse(gradient, pairs)
        slope = float(direction @ gradient)
        if slope >= 0:
            pairs.clear()
            direction, slope = -gradient, -float(gradient @ gradient)
        # The first step has no scale of its own: it moves the point by a tenth of its norm, or of 1.
        reach = 0.1 * max(float(np.linalg.norm(point)), 1.0)
        length = 1.0 if pairs else min(1.0, reach / max(-slope, 1e-300) ** 0.5)
        for _ in range(_HALVINGS):
            there = point + length * direction
            new_value, new_gradient = value_and_gradient(there)
            if new_value <= value + _SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            return point
        step, change = there - point, new_gradient - gradient
        curvature = float(step @ change)
        if curvature > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            pairs.append((step, change, curvature))
        lowered = value - new_value
        point, value, gradient = there, new_value, new_gradient
        if lowered < 1e-7 * abs(value) and pairs:
            break
    return point


def _times_inverse(gradient: Vector, pairs: deque[tuple[Vector, Vector, float]]) -> Vector:
    """Return the gradient times an estimate of the inverse Hessian, made of the last steps."""
    result = gradient.copy()
    shares = []
    for step, change, curvature in reversed(pairs):
        share = float(step @ result) / curvature
        shares.append(share)
        result -= share * change
    if pairs:
        _, change, curvature = pairs[-1]
        result *= curvature / float(change @ change)
    for (step, change, curvature), share in zip(pairs, reversed(shares), strict=True):
        result += (share - float(change @ result) / curvature) * step
    return result
