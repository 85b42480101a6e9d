"""The kinds of additive noise by name: which function draws one on a borrowed column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from dpfast.mechanisms.noise.gaussian import gaussian_noise
from dpfast.mechanisms.noise.laplace import laplace_noise

__all__ = ["NOISE_OF"]

#: Each takes a column, its scale or scales, where keys come from, and how many threads share it.
NOISE_OF: Mapping[str, Callable[..., NDArray[Any]]] = {"laplace": laplace_noise, "gaussian": gaussian_noise}
