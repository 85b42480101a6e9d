"""The delta of single mechanisms at an epsilon below their own, in closed form, as float64 columns.

Every function takes each event's own epsilon, the epsilon at which delta is asked, and the event's fields.
"""

from __future__ import annotations

import numpy as np

from dpfast.exact.elementary import Floats

__all__ = ["bounded_range", "discrete_laplace", "laplace", "pure"]


def laplace(own: Floats, epsilon: Floats, *_: Floats) -> Floats:
    """Return 1 - exp((epsilon - own) / 2), of continuous Laplace noise."""
    return np.asarray(-np.expm1(-(own - epsilon) / 2.0))


def discrete_laplace(own: Floats, epsilon: Floats, scale: Floats, sensitivity: Floats) -> Floats:
    """Return the delta of discrete Laplace noise, by its tails.

    Noise x has the loss (sensitivity - 2x) / scale: the mass of what is above epsilon, less the other's.
    """
    base = np.exp(-1.0 / scale)
    last = np.ceil((sensitivity - epsilon * scale) / 2.0) - 1.0
    below = np.where(last >= 0.0, 1.0 - base ** (last + 1.0) / (1.0 + base), base**-last / (1.0 + base))
    return np.asarray(below - np.exp(epsilon) * base ** (sensitivity - last) / (1.0 + base))


def bounded_range(own: Floats, epsilon: Floats, *_: Floats) -> Floats:
    """Return (exp(own/2) - exp(epsilon/2))**2 / (exp(own) - 1), of a bounded range."""
    return np.asarray(np.expm1(-(own - epsilon) / 2.0) ** 2 / -np.expm1(-own))


def pure(own: Floats, epsilon: Floats, *_: Floats) -> Floats:
    """Return (exp(own) - exp(epsilon)) / (exp(own) + 1), of whatever is (own, 0)-private."""
    return np.asarray(-np.expm1(-(own - epsilon)) / (1.0 + np.exp(-own)))
