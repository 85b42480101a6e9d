"""OpenDP: noise on a vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import Peers


def noise(values: np.ndarray, kind: str, scale: float) -> Peers:
    """Return its noise on the first values, as a list, which is what it takes."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib", "floating-point")
    few = values[: min(len(values), 20_000)]
    atom = "i64" if values.dtype == np.int64 else "f64"
    domain = dp.vector_domain(dp.atom_domain(T=atom, nan=False) if atom == "f64" else dp.atom_domain(T=atom))
    metric = dp.l1_distance(T=atom) if kind == "laplace" else dp.l2_distance(T="f64" if atom == "f64" else atom)
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    measurement = make(domain, metric, scale=scale)
    listed = few.tolist()
    return {"OpenDP": (lambda: measurement(listed), len(listed))}


def noisy(scale: float) -> Callable[[float, int], list[float]]:
    """Return Laplace noise on a float, so many times."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")
    domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="f64"), scale=scale)
    return lambda value, size: measurement([value] * size)
