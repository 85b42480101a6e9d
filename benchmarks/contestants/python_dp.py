"""Google's library by its Python binding, python-dp: noise, value by value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import Peers


def noise(values: np.ndarray, kind: str, scale: float) -> Peers:
    """Return its noise on the first values."""
    try:
        from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism
    except ImportError:
        return {}
    few = values[: min(len(values), 20_000)].tolist()
    if kind == "laplace":
        mechanism = LaplaceMechanism(epsilon=1.0, sensitivity=scale)
    else:
        mechanism = GaussianMechanism(0.5, 1e-5, 1.0)
    return {"python-dp": (lambda: [mechanism.add_noise(value) for value in few], len(few))}


def noisy(scale: float) -> Callable[[float, int], list[float]]:
    """Return Laplace noise on a float, so many times."""
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    mechanism = LaplaceMechanism(epsilon=1.0, sensitivity=scale)
    return lambda value, size: [mechanism.add_noise(value) for _ in range(size)]
