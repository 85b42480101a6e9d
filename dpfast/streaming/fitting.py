"""Buffers whose Toeplitz factors of the prefix sums have nearly the least error: found by descent, once a horizon.

Nothing here is trusted: what a factor measures, its norm and its error are computed from the buffers that come out
(`dpfast.streaming.toeplitz`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpfast.streaming.toeplitz import Buffers

__all__ = ["buffers_for"]

_ROUNDS = 200
_ENOUGH = 1e-7
_DIFFERENCE = 1e-5
#: Up to these horizons so many buffers err less than 1.1% more than the square root, and one fewer much more.
_MOST_STEPS = ((1, 1), (32, 2), (1 << 10, 3), (1 << 16, 4), (1 << 22, 5))
_MOST_BUFFERS = 6


def _read(point: NDArray[np.float64], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the losses, from the smallest, and the weights that a point in the plain space stands for."""
    losses = np.exp(-np.cumsum(np.exp(point[:count])))[::-1]
    weights = np.exp(np.append(point[count:], 0.0))
    return losses, weights / weights.sum()


def _log_error(point: NDArray[np.float64], count: int, horizon: int) -> float:
    with np.errstate(all="ignore"):
        losses, weights = _read(point, count)
        buffers = Buffers(losses, weights)
        error = 0.5 * math.log(buffers.energy(np.array([horizon]))[0]) + 0.5 * math.log(
            buffers.measured_energy(horizon)
        )
    return error if math.isfinite(error) else math.inf


def _slope(point: NDArray[np.float64], count: int, horizon: int) -> NDArray[np.float64]:
    steps = _DIFFERENCE * np.eye(point.size)
    ends = [(_log_error(point + step, count, horizon), _log_error(point - step, count, horizon)) for step in steps]
    return np.array([above - below for above, below in ends]) / (2 * _DIFFERENCE)


def _descend(point: NDArray[np.float64], count: int, horizon: int) -> NDArray[np.float64]:
    """Return a point of nearly the least error: by the method of Broyden, Fletcher, Goldfarb and Shanno."""
    unit = np.eye(point.size)
    inverse, error, slope = unit, _log_error(point, count, horizon), _slope(point, count, horizon)
    for _ in range(_ROUNDS):
        direction = -inverse @ slope
        if direction @ slope >= 0:
            inverse, direction = unit, -slope
        size = min(1.0, 1 / max(float(np.abs(direction).max()), 1e-300))
        while True:
            further = point + size * direction
            found = _log_error(further, count, horizon)
            if found <= error + 1e-4 * size * (direction @ slope):
                break
            size /= 2
            if size < 1e-10:
                return point
        gained, moved = error - found, further - point
        change = -slope
        point, error, slope = further, found, _slope(further, count, horizon)
        change = change + slope
        if gained < _ENOUGH:
            break
        if moved @ change > 1e-14:
            ratio = 1 / (moved @ change)
            turn = unit - ratio * np.outer(moved, change)
            inverse = turn @ inverse @ turn.T + ratio * np.outer(moved, moved)
    return point


@lru_cache(maxsize=256)
def buffers_for(horizon: int) -> Buffers:
    """Return buffers for a horizon, their weights whole multiples of 2**-40 that add up to 1.

    Notes
    -----
    The error that is made small is that of the last prefix, which is the largest. The first guess spreads losses over
    the decades from 1 / (2 horizon) on, with weights in proportion to their square roots, as a quadrature of
    (1 - x)**(-1/2) does.

    References
    ----------
    Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024); McMahan, Xu, Zhang (2024).

    """
    if horizon == 1:
        return Buffers(np.ones(1), np.ones(1))
    count = next((count for most, count in _MOST_STEPS if horizon <= most), _MOST_BUFFERS)
    gaps = np.full(count, math.log(2 * horizon) / (count - 0.5))
    gaps[0] *= 0.3
    logs = -np.cumsum(gaps)[::-1] / 2
    losses, weights = _read(_descend(np.append(np.log(gaps), (logs - logs[-1])[:-1]), count, horizon), count)
    weights = np.maximum(np.rint(weights * 2.0**40), 1.0) * 2.0**-40
    weights[-1] = 1.0 - weights[:-1].sum()
    # A loss is 1 less a rate, exactly.
    return Buffers(1.0 - (1.0 - losses), weights)
