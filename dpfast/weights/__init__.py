"""Multiplicative weights: a histogram that is learnt from linear queries, and the queries in their compact forms.

>>> import dpfast as dpf
>>> weights = dpf.weights.Weights((2, 3), total=60.0)
>>> weights.update(dpf.weights.Marginal((2, 3), attributes=(0,)), eta=[0.0, 1.0])
>>> round(weights.answer((3, 6)), 2)
43.86
"""

from dpfast.weights.histogram_weights import Weights
from dpfast.weights.linear_queries import BitQuery, DenseQuery, LevelQuery, LinearQuery
from dpfast.weights.log_weights import LogWeights
from dpfast.weights.query_tables import Marginal, Ranges
from dpfast.weights.slab_queries import BoxQuery, MarginalCell, RangeQuery

__all__ = [
    "BitQuery",
    "BoxQuery",
    "DenseQuery",
    "LevelQuery",
    "LinearQuery",
    "LogWeights",
    "Marginal",
    "MarginalCell",
    "RangeQuery",
    "Ranges",
    "Weights",
]
