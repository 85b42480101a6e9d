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
    from dpfast.mechanisms.noise.gaussian import gaussian
    from dpfast.mechanisms.noise.laplace import laplace
    from dpfast.mechanisms.quantiles.quantiles import quantiles
    from dpfast.mechanisms.selection.auction import price_revenues, select_price
    from dpfast.mechanisms.selection.error_bounds import selection_error, selection_miss, threshold_error
    from dpfast.mechanisms.selection.exponential import exponential
    from dpfast.mechanisms.selection.exponential_draws import exponential_draws
    from dpfast.mechanisms.selection.noisy_max import report_noisy_max
    from dpfast.mechanisms.selection.noisy_max_with_gap import noisy_max_with_gap
    from dpfast.mechanisms.selection.noisy_top_k import noisy_top_k
    from dpfast.mechanisms.selection.permute_and_flip import permute_and_flip
    from dpfast.mechanisms.selection.probabilities import selection_probabilities
    from dpfast.mechanisms.selection.unlisted_domain import exponential_sparse
    from dpfast.mechanisms.thresholds.above_threshold import above_threshold
    from dpfast.mechanisms.thresholds.sparse_vector import SparseVector
    from dpfast.queries import bins, count, mean, mode, quantile, sum
    from dpfast.releases.planning import plan, release
    from dpfast.strategies.matrix_mechanism import matrix_mechanism
    from dpfast.synthesis.choosing import estimate_histogram
    from dpfast.synthesis.fitted.boosting import boost_queries
    from dpfast.synthesis.fitted.mwem import mwem
    from dpfast.synthesis.fitted.private_multiplicative_weights import PrivateMultiplicativeWeights
    from dpfast.synthesis.fitted.projection import project_answers
    from dpfast.synthesis.fitted.projection_mechanism import projection_mechanism
    from dpfast.synthesis.histograms.adaptive_hierarchy import adaptive_hierarchy
    from dpfast.synthesis.histograms.ahp import ahp
    from dpfast.synthesis.histograms.dawa import dawa
    from dpfast.weights.multiplicative_weights import multiplicative_weights

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
    "release",
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
    "PrivateMultiplicativeWeights": "dpfast.synthesis.fitted.private_multiplicative_weights",
    "RandomizedWeightedMajority": "dpfast.learning.experts",
    "SparseVector": "dpfast.mechanisms.thresholds.sparse_vector",
    "above_threshold": "dpfast.mechanisms.thresholds.above_threshold",
    "adaptive_hierarchy": "dpfast.synthesis.histograms.adaptive_hierarchy",
    "ahp": "dpfast.synthesis.histograms.ahp",
    "answer": "dpfast.answering",
    "bins": "dpfast.queries",
    "boost_queries": "dpfast.synthesis.fitted.boosting",
    "count": "dpfast.queries",
    "dawa": "dpfast.synthesis.histograms.dawa",
    "estimate_histogram": "dpfast.synthesis.choosing",
    "exponential": "dpfast.mechanisms.selection.exponential",
    "exponential_draws": "dpfast.mechanisms.selection.exponential_draws",
    "exponential_sparse": "dpfast.mechanisms.selection.unlisted_domain",
    "gaussian": "dpfast.mechanisms.noise.gaussian",
    "laplace": "dpfast.mechanisms.noise.laplace",
    "matrix_mechanism": "dpfast.strategies.matrix_mechanism",
    "mean": "dpfast.queries",
    "mode": "dpfast.queries",
    "multiplicative_weights": "dpfast.weights.multiplicative_weights",
    "mwem": "dpfast.synthesis.fitted.mwem",
    "noisy_max_with_gap": "dpfast.mechanisms.selection.noisy_max_with_gap",
    "noisy_top_k": "dpfast.mechanisms.selection.noisy_top_k",
    "permute_and_flip": "dpfast.mechanisms.selection.permute_and_flip",
    "plan": "dpfast.releases.planning",
    "price_revenues": "dpfast.mechanisms.selection.auction",
    "project_answers": "dpfast.synthesis.fitted.projection",
    "projection_mechanism": "dpfast.synthesis.fitted.projection_mechanism",
    "quantile": "dpfast.queries",
    "quantiles": "dpfast.mechanisms.quantiles.quantiles",
    "release": "dpfast.releases.planning",
    "report_noisy_max": "dpfast.mechanisms.selection.noisy_max",
    "select_price": "dpfast.mechanisms.selection.auction",
    "selection_error": "dpfast.mechanisms.selection.error_bounds",
    "selection_miss": "dpfast.mechanisms.selection.error_bounds",
    "selection_probabilities": "dpfast.mechanisms.selection.probabilities",
    "sum": "dpfast.queries",
    "threshold_error": "dpfast.mechanisms.selection.error_bounds",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in {"errors", "strategies", "testing", "theory", "weights", "workloads"}:
        return import_module(f"{__name__}.{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
