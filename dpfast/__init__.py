"""dpfast: differentially private statistics at the speed of the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpfast.answering import answer
    from dpfast.domain import Domain
    from dpfast.learning.experts import RandomizedWeightedMajority
    from dpfast.learning.linear_learner import LinearLearner
    from dpfast.ledger import Ledger
    from dpfast.mechanisms.above_threshold import above_threshold
    from dpfast.mechanisms.accuracy import selection_error, selection_miss, threshold_error
    from dpfast.mechanisms.auction import price_revenues, select_price
    from dpfast.mechanisms.exponential import exponential
    from dpfast.mechanisms.exponential_draws import exponential_draws
    from dpfast.mechanisms.gaussian import gaussian
    from dpfast.mechanisms.laplace import laplace
    from dpfast.mechanisms.noisy_max import report_noisy_max
    from dpfast.mechanisms.noisy_max_with_gap import noisy_max_with_gap
    from dpfast.mechanisms.noisy_top_k import noisy_top_k
    from dpfast.mechanisms.permute_and_flip import permute_and_flip
    from dpfast.mechanisms.quantiles import quantiles
    from dpfast.mechanisms.selection_probabilities import selection_probabilities
    from dpfast.mechanisms.sparse_domain import exponential_sparse
    from dpfast.mechanisms.sparse_vector import SparseVector
    from dpfast.queries import bins, count, mean, mode, quantile, sum
    from dpfast.release import plan
    from dpfast.strategies.matrix_mechanism import matrix_mechanism
    from dpfast.synthesis.adaptive_hierarchy import adaptive_hierarchy
    from dpfast.synthesis.ahp import ahp
    from dpfast.synthesis.boosting import boost_queries
    from dpfast.synthesis.choosing import estimate_histogram
    from dpfast.synthesis.dawa import dawa
    from dpfast.synthesis.multiplicative_weights import multiplicative_weights
    from dpfast.synthesis.mwem import mwem
    from dpfast.synthesis.private_multiplicative_weights import PrivateMultiplicativeWeights
    from dpfast.synthesis.projection import project_answers
    from dpfast.synthesis.projection_mechanism import projection_mechanism

__all__ = [
    "Domain",
    "Ledger",
    "LinearLearner",
    "PrivateMultiplicativeWeights",
    "RandomizedWeightedMajority",
    "SparseVector",
    "above_threshold",
    "adaptive_hierarchy",
    "ahp",
    "answer",
    "bins",
    "boost_queries",
    "count",
    "dawa",
    "estimate_histogram",
    "exponential",
    "exponential_draws",
    "exponential_sparse",
    "gaussian",
    "laplace",
    "matrix_mechanism",
    "mean",
    "mode",
    "multiplicative_weights",
    "mwem",
    "noisy_max_with_gap",
    "noisy_top_k",
    "permute_and_flip",
    "plan",
    "price_revenues",
    "project_answers",
    "projection_mechanism",
    "quantile",
    "quantiles",
    "report_noisy_max",
    "select_price",
    "selection_error",
    "selection_miss",
    "selection_probabilities",
    "sum",
    "threshold_error",
]

# Names are imported when they are first used: numba and polars take longer to import than most programs to run.
_HOMES = {
    "Domain": "dpfast.domain",
    "Ledger": "dpfast.ledger",
    "LinearLearner": "dpfast.learning.linear_learner",
    "PrivateMultiplicativeWeights": "dpfast.synthesis.private_multiplicative_weights",
    "RandomizedWeightedMajority": "dpfast.learning.experts",
    "SparseVector": "dpfast.mechanisms.sparse_vector",
    "above_threshold": "dpfast.mechanisms.above_threshold",
    "adaptive_hierarchy": "dpfast.synthesis.adaptive_hierarchy",
    "ahp": "dpfast.synthesis.ahp",
    "answer": "dpfast.answering",
    "bins": "dpfast.queries",
    "boost_queries": "dpfast.synthesis.boosting",
    "count": "dpfast.queries",
    "dawa": "dpfast.synthesis.dawa",
    "estimate_histogram": "dpfast.synthesis.choosing",
    "exponential": "dpfast.mechanisms.exponential",
    "exponential_draws": "dpfast.mechanisms.exponential_draws",
    "exponential_sparse": "dpfast.mechanisms.sparse_domain",
    "gaussian": "dpfast.mechanisms.gaussian",
    "laplace": "dpfast.mechanisms.laplace",
    "matrix_mechanism": "dpfast.strategies.matrix_mechanism",
    "mean": "dpfast.queries",
    "mode": "dpfast.queries",
    "multiplicative_weights": "dpfast.synthesis.multiplicative_weights",
    "mwem": "dpfast.synthesis.mwem",
    "noisy_max_with_gap": "dpfast.mechanisms.noisy_max_with_gap",
    "noisy_top_k": "dpfast.mechanisms.noisy_top_k",
    "permute_and_flip": "dpfast.mechanisms.permute_and_flip",
    "plan": "dpfast.release",
    "price_revenues": "dpfast.mechanisms.auction",
    "project_answers": "dpfast.synthesis.projection",
    "projection_mechanism": "dpfast.synthesis.projection_mechanism",
    "quantile": "dpfast.queries",
    "quantiles": "dpfast.mechanisms.quantiles",
    "report_noisy_max": "dpfast.mechanisms.noisy_max",
    "select_price": "dpfast.mechanisms.auction",
    "selection_error": "dpfast.mechanisms.accuracy",
    "selection_miss": "dpfast.mechanisms.accuracy",
    "selection_probabilities": "dpfast.mechanisms.selection_probabilities",
    "sum": "dpfast.queries",
    "threshold_error": "dpfast.mechanisms.accuracy",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in {"errors", "release", "strategies", "testing", "workloads"}:
        # The module `release` can be called like the function in it.
        return import_module(f"{__name__}.{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
