"""OpenDP: noise on a vector, statistics of a column, and what it charges for many answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Peers, Statistics, few, imported


def _prelude() -> Any:
    if (dp := imported("opendp.prelude")) is not None:
        dp.enable_features("contrib", "floating-point")
    return dp


def noise(values: np.ndarray, kind: str, scale: float) -> Peers:
    """Return its noise on the first values, as a list, which is what it takes."""
    if (dp := _prelude()) is None:
        return {}
    some = few(values, 20_000)
    atom = "i64" if values.dtype == np.int64 else "f64"
    domain = dp.vector_domain(dp.atom_domain(T=atom, nan=False) if atom == "f64" else dp.atom_domain(T=atom))
    metric = dp.l1_distance(T=atom) if kind == "laplace" else dp.l2_distance(T="f64" if atom == "f64" else atom)
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    measurement = make(domain, metric, scale=scale)
    listed = some.tolist()
    return {"OpenDP": (lambda: measurement(listed), len(listed))}


def noisy(scale: float) -> Callable[[float, int], list[float]] | None:
    """Return Laplace noise on a float, so many times; None where it is not installed."""
    if (dp := _prelude()) is None:
        return None
    domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="f64"), scale=scale)
    return lambda value, size: measurement([value] * size)


def statistics(values: np.ndarray, bounds: tuple[float, float], epsilon: float) -> Statistics:
    """Return statistics of values within bounds, their number unknown: a mean is a sum and a count at half each."""
    if (dp := _prelude()) is None:
        return {}
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.symmetric_distance()
    listed = values.tolist()

    def spending(make: Callable[[float], Any], share: float) -> Any:
        """Return the measurement with the least scale that costs this much at most."""
        return dp.binary_search_chain(make, d_in=1, d_out=share, bounds=(1e-6, 1e9))

    def count(share: float) -> Any:
        return spending(lambda scale: space >> dp.t.then_count() >> dp.m.then_laplace(scale=scale), share)

    def total(share: float) -> Any:
        clamped = space >> dp.t.then_clamp(bounds) >> dp.t.then_sum()
        return spending(lambda scale: clamped >> dp.m.then_laplace(scale=scale), share)

    candidates = np.linspace(*bounds, 1001).tolist()
    median = spending(
        lambda scale: dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, alpha=0.5, scale=scale),
        epsilon,
    )
    whole, some, half = count(epsilon), total(epsilon), (total(epsilon / 2), count(epsilon / 2))
    return {
        "count": lambda: float(whole(listed)),
        "sum": lambda: float(some(listed)),
        "mean": lambda: float(half[0](listed) / max(half[1](listed), 1)),
        "median": lambda: float(median(listed)),
    }


def epsilon_of(kind: str, scale: float, times: int, delta: float) -> float:
    """Return what so many Laplace or Gaussian answers of sensitivity 1 cost, composed as zCDP."""
    dp = _prelude()
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    if kind == "laplace":
        one = dp.c.make_pureDP_to_zCDP(dp.m.make_laplace(*space, scale=scale))
    else:
        one = dp.m.make_gaussian(*space, scale=scale)
    profile = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([one] * times)).map(1)
    return float(profile.epsilon(delta))
