"""diffprivlib: noise, value by value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import Peers


def noise(values: np.ndarray, kind: str, scale: float) -> Peers:
    """Return its noise on the first values."""
    try:
        from diffprivlib.mechanisms import Gaussian, GaussianDiscrete, Geometric, Laplace
    except ImportError:
        return {}
    few = values[: min(len(values), 5_000)].tolist()
    if kind == "laplace" and values.dtype == np.int64:
        mechanism = Geometric(epsilon=1.0, sensitivity=round(scale))
    elif kind == "laplace":
        mechanism = Laplace(epsilon=1.0, sensitivity=scale)
    else:
        gaussian = GaussianDiscrete if values.dtype == np.int64 else Gaussian
        mechanism = gaussian(epsilon=0.5, delta=1e-5, sensitivity=1)
    return {"diffprivlib": (lambda: [mechanism.randomise(value) for value in few], len(few))}


def noisy(scale: float) -> Callable[[float, int], list[float]]:
    """Return Laplace noise on a float, so many times."""
    from diffprivlib.mechanisms import Laplace

    mechanism = Laplace(epsilon=1.0, sensitivity=scale)
    return lambda value, size: [mechanism.randomise(value) for _ in range(size)]
