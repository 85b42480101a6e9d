"""Google's library by its Python binding, python-dp: noise, value by value, and statistics of a column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import Peers, Statistics, few, imported

_MECHANISMS = "pydp.algorithms.numerical_mechanisms"


def noise(values: np.ndarray, kind: str, scale: float) -> Peers:
    """Return its noise on the first values."""
    if (mechanisms := imported(_MECHANISMS)) is None:
        return {}
    some = few(values, 20_000).tolist()
    if kind == "laplace":
        mechanism = mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=scale)
    else:
        mechanism = mechanisms.GaussianMechanism(0.5, 1e-5, 1.0)
    return {"python-dp": (lambda: [mechanism.add_noise(value) for value in some], len(some))}


def noisy(scale: float) -> Callable[[float, int], list[float]] | None:
    """Return Laplace noise on a float, so many times; None where it is not installed."""
    if (mechanisms := imported(_MECHANISMS)) is None:
        return None
    mechanism = mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=scale)
    return lambda value, size: [mechanism.add_noise(value) for _ in range(size)]


def statistics(values: np.ndarray, bounds: tuple[float, float], epsilon: float) -> Statistics:
    """Return statistics of values within bounds."""
    if (found := imported("pydp.algorithms.laplacian")) is None:
        return {}
    given = {"epsilon": epsilon, "lower_bound": bounds[0], "upper_bound": bounds[1], "dtype": "float"}
    listed = values.tolist()
    return {
        "count": lambda: float(found.Count(epsilon=epsilon, dtype="float").quick_result(listed)),
        "sum": lambda: float(found.BoundedSum(**given).quick_result(listed)),
        "mean": lambda: float(found.BoundedMean(**given).quick_result(listed)),
        "median": lambda: float(found.Median(**given).quick_result(listed)),
    }
