"""Strategies: what is measured of a histogram, so that a workload's answers, put together from it, err least."""

from dpfast.strategies.hierarchy import hierarchy
from dpfast.strategies.identity import identity
from dpfast.strategies.strategy import Strategy

__all__ = ["Strategy", "hierarchy", "identity"]
