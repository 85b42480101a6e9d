"""Strategies: what is measured of a histogram, so that a workload's answers, put together from it, err least.

>>> import dpfast as dpf
>>> dpf.strategies.choose(dpf.workloads.prefix(1024), epsilon=1).strategy.name
'weighted blocks of 1, 16, 256'
"""

from dpfast.strategies.choosing import Choice, Considered, choose
from dpfast.strategies.explicit import matrix
from dpfast.strategies.hierarchy import hierarchy
from dpfast.strategies.identity import identity
from dpfast.strategies.marginals import marginals
from dpfast.strategies.matrix_mechanism import MatrixRelease
from dpfast.strategies.optimal import optimal, p_identity
from dpfast.strategies.product import product
from dpfast.strategies.square_root import square_root
from dpfast.strategies.strategy import Strategy
from dpfast.strategies.wavelet import wavelet

__all__ = [
    "Choice",
    "Considered",
    "MatrixRelease",
    "Strategy",
    "choose",
    "hierarchy",
    "identity",
    "marginals",
    "matrix",
    "optimal",
    "p_identity",
    "product",
    "square_root",
    "wavelet",
]
