"""diffprivlib: noise, value by value, and statistics of a column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import Peers, Statistics, few, imported


def noise(values: np.ndarray, kind: str, scale: float) -> Peers:
    """Return its noise on the first values."""
    if (mechanisms := imported("diffprivlib.mechanisms")) is None:
        return {}
    some = few(values, 5_000).tolist()
    if kind == "laplace" and values.dtype == np.int64:
        mechanism = mechanisms.Geometric(epsilon=1.0, sensitivity=round(scale))
    elif kind == "laplace":
        mechanism = mechanisms.Laplace(epsilon=1.0, sensitivity=scale)
    else:
        gaussian = mechanisms.GaussianDiscrete if values.dtype == np.int64 else mechanisms.Gaussian
        mechanism = gaussian(epsilon=0.5, delta=1e-5, sensitivity=1)
    return {"diffprivlib": (lambda: [mechanism.randomise(value) for value in some], len(some))}


def noisy(scale: float) -> Callable[[float, int], list[float]] | None:
    """Return Laplace noise on a float, so many times; None where it is not installed."""
    if (mechanisms := imported("diffprivlib.mechanisms")) is None:
        return None
    mechanism = mechanisms.Laplace(epsilon=1.0, sensitivity=scale)
    return lambda value, size: [mechanism.randomise(value) for _ in range(size)]


def statistics(values: np.ndarray, bounds: tuple[float, float], epsilon: float) -> Statistics:
    """Return statistics of values within bounds; to it their number is public, but in a count."""
    if (tools := imported("diffprivlib.tools")) is None:
        return {}
    ones, given = np.ones(values.size), {"epsilon": epsilon, "bounds": bounds}
    return {
        "count": lambda: float(tools.count_nonzero(ones, epsilon=epsilon)),
        "sum": lambda: float(tools.sum(values, **given)),
        "mean": lambda: float(tools.mean(values, **given)),
        "median": lambda: float(tools.median(values, **given)),
    }
