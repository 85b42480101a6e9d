"""dpfast: differentially private statistics at the speed of the data."""

from dpfast.mechanisms.gaussian import gaussian
from dpfast.mechanisms.laplace import laplace

__all__ = ["gaussian", "laplace"]
