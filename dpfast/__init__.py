"""dpfast: differentially private statistics at the speed of the data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_MODULES = (
    "accounting",
    "attacks",
    "auditing",
    "errors",
    "stability",
    "strategies",
    "testing",
    "theory",
    "weights",
    "workloads",
)

if TYPE_CHECKING:
    from dpfast import accounting as accounting
    from dpfast import attacks as attacks
    from dpfast import auditing as auditing
    from dpfast import errors as errors
    from dpfast import stability as stability
    from dpfast import strategies as strategies
    from dpfast import testing as testing
    from dpfast import theory as theory
    from dpfast import weights as weights
    from dpfast import workloads as workloads
    from dpfast.answering import answer as answer
    from dpfast.auditing.auditor import audit as audit
    from dpfast.auditing.exactly import audit_law as audit_law
    from dpfast.auditing.one_run import audit_one_run as audit_one_run
    from dpfast.domain import Domain as Domain
    from dpfast.games.auction import price_revenues as price_revenues
    from dpfast.games.auction import select_price as select_price
    from dpfast.games.facilities import place_facilities as place_facilities
    from dpfast.games.large_games import select_equilibrium as select_equilibrium
    from dpfast.games.payments import vcg_payments as vcg_payments
    from dpfast.games.punishing import punishing_mechanism as punishing_mechanism
    from dpfast.games.voting import two_outcome_vote as two_outcome_vote
    from dpfast.games.welfare import select_outcome as select_outcome
    from dpfast.integrations.sql.databases import sql as sql
    from dpfast.learning.concepts import select_concept as select_concept
    from dpfast.learning.experts import RandomizedWeightedMajority as RandomizedWeightedMajority
    from dpfast.learning.linear_learner import LinearLearner as LinearLearner
    from dpfast.learning.linear_regression import LinearRegression as LinearRegression
    from dpfast.learning.statistical_queries import StatisticalQueryOracle as StatisticalQueryOracle
    from dpfast.learning.statistical_queries import learn_conjunction as learn_conjunction
    from dpfast.ledger import Ledger as Ledger
    from dpfast.local.bounded_mean import BoundedMean as BoundedMean
    from dpfast.local.choosing import frequency_oracle as frequency_oracle
    from dpfast.local.hadamard_response import HadamardResponse as HadamardResponse
    from dpfast.local.heavy_hitters import HeavyHitters as HeavyHitters
    from dpfast.local.local_hashing import OptimizedLocalHashing as OptimizedLocalHashing
    from dpfast.local.local_oracle import LocalOracle as LocalOracle
    from dpfast.local.randomized_response import randomized_response as randomized_response
    from dpfast.local.response_oracle import RandomizedResponse as RandomizedResponse
    from dpfast.local.shuffling import local_epsilon as local_epsilon
    from dpfast.local.shuffling import shuffled_delta as shuffled_delta
    from dpfast.local.shuffling import shuffled_epsilon as shuffled_epsilon
    from dpfast.local.statistical_queries import LocalStatisticalQueries as LocalStatisticalQueries
    from dpfast.local.statistical_queries import statistical_query_rows as statistical_query_rows
    from dpfast.local.statistical_queries import statistical_query_tolerance as statistical_query_tolerance
    from dpfast.local.subset_selection import SubsetSelection as SubsetSelection
    from dpfast.local.unary_encoding import OptimizedUnaryEncoding as OptimizedUnaryEncoding
    from dpfast.mechanisms.noise.gaussian import gaussian as gaussian
    from dpfast.mechanisms.noise.laplace import laplace as laplace
    from dpfast.mechanisms.quantiles.quantiles import quantiles as quantiles
    from dpfast.mechanisms.selection.error_bounds import selection_error as selection_error
    from dpfast.mechanisms.selection.error_bounds import selection_miss as selection_miss
    from dpfast.mechanisms.selection.error_bounds import threshold_error as threshold_error
    from dpfast.mechanisms.selection.exponential import exponential as exponential
    from dpfast.mechanisms.selection.exponential_draws import exponential_draws as exponential_draws
    from dpfast.mechanisms.selection.noisy_max import report_noisy_max as report_noisy_max
    from dpfast.mechanisms.selection.noisy_max_with_gap import noisy_max_with_gap as noisy_max_with_gap
    from dpfast.mechanisms.selection.noisy_top_k import noisy_top_k as noisy_top_k
    from dpfast.mechanisms.selection.permute_and_flip import permute_and_flip as permute_and_flip
    from dpfast.mechanisms.selection.probabilities import selection_probabilities as selection_probabilities
    from dpfast.mechanisms.selection.unlisted_domain import exponential_sparse as exponential_sparse
    from dpfast.mechanisms.thresholds.above_threshold import above_threshold as above_threshold
    from dpfast.mechanisms.thresholds.sparse_vector import SparseVector as SparseVector
    from dpfast.queries.basic import bins as bins
    from dpfast.queries.basic import maximum as maximum
    from dpfast.queries.basic import mean as mean
    from dpfast.queries.basic import minimum as minimum
    from dpfast.queries.basic import mode as mode
    from dpfast.queries.basic import quantile as quantile
    from dpfast.queries.basic import sum as sum
    from dpfast.queries.counts import count as count
    from dpfast.queries.counts import units as units
    from dpfast.queries.distributions import cdf as cdf
    from dpfast.queries.distributions import histogram as histogram
    from dpfast.queries.moments import covariance as covariance
    from dpfast.queries.moments import std as std
    from dpfast.queries.moments import variance as variance
    from dpfast.queries.proportions import proportion as proportion
    from dpfast.queries.values import count_distinct as count_distinct
    from dpfast.queries.values import top_k as top_k
    from dpfast.releases.domain_proposal import propose_domain as propose_domain
    from dpfast.releases.planning import plan as plan
    from dpfast.releases.planning import release as release
    from dpfast.releases.previewing import preview as preview
    from dpfast.rows.calendars import calendar as calendar
    from dpfast.rows.filters import column as column
    from dpfast.sketches.distinct import distinct_sketch as distinct_sketch
    from dpfast.sketches.distinct import merge_sketches as merge_sketches
    from dpfast.stability.interquartile_scale import interquartile_scale as interquartile_scale
    from dpfast.stability.propose_test_release import propose_test_release as propose_test_release
    from dpfast.stability.release_if_stable import release_if_stable as release_if_stable
    from dpfast.stability.release_if_subsamples_agree import release_if_subsamples_agree as release_if_subsamples_agree
    from dpfast.stability.smooth_median import smooth_median as smooth_median
    from dpfast.stability.subsample_and_aggregate import subsample_and_aggregate as subsample_and_aggregate
    from dpfast.strategies.matrix_mechanism import matrix_mechanism as matrix_mechanism
    from dpfast.streaming.counters import continual_count as continual_count
    from dpfast.streaming.counters import continual_sum as continual_sum
    from dpfast.streaming.counters import restore_counter as restore_counter
    from dpfast.streaming.density import PanPrivateDensity as PanPrivateDensity
    from dpfast.synthesis.choosing import estimate_histogram as estimate_histogram
    from dpfast.synthesis.fitted.boosting import boost_queries as boost_queries
    from dpfast.synthesis.fitted.mwem import mwem as mwem
    from dpfast.synthesis.fitted.private_multiplicative_weights import (
        PrivateMultiplicativeWeights as PrivateMultiplicativeWeights,
    )
    from dpfast.synthesis.fitted.projection import project_answers as project_answers
    from dpfast.synthesis.fitted.projection_mechanism import projection_mechanism as projection_mechanism
    from dpfast.synthesis.histograms.adaptive_hierarchy import adaptive_hierarchy as adaptive_hierarchy
    from dpfast.synthesis.histograms.ahp import ahp as ahp
    from dpfast.synthesis.histograms.dawa import dawa as dawa
    from dpfast.synthesis.planning import plan_synthesis as plan_synthesis
    from dpfast.synthesis.relaxed.fitting import fit_marginals as fit_marginals
    from dpfast.synthesis.residuals.marginals import plan_marginals as plan_marginals
    from dpfast.synthesis.residuals.marginals import release_marginals as release_marginals
    from dpfast.synthesis.synthesizing import synthesize as synthesize
    from dpfast.weights.multiplicative_weights import multiplicative_weights as multiplicative_weights

# Names are imported when they are first used: numba and polars take longer to import than most programs to run.
_NAMES_BY_HOME = {
    "answering": "answer",
    "auditing.auditor": "audit",
    "auditing.exactly": "audit_law",
    "auditing.one_run": "audit_one_run",
    "domain": "Domain",
    "games.auction": "price_revenues select_price",
    "games.facilities": "place_facilities",
    "games.large_games": "select_equilibrium",
    "games.payments": "vcg_payments",
    "games.punishing": "punishing_mechanism",
    "games.voting": "two_outcome_vote",
    "games.welfare": "select_outcome",
    "integrations.sql.databases": "sql",
    "learning.concepts": "select_concept",
    "learning.experts": "RandomizedWeightedMajority",
    "learning.linear_learner": "LinearLearner",
    "learning.linear_regression": "LinearRegression",
    "learning.statistical_queries": "StatisticalQueryOracle learn_conjunction",
    "ledger": "Ledger",
    "local.bounded_mean": "BoundedMean",
    "local.choosing": "frequency_oracle",
    "local.hadamard_response": "HadamardResponse",
    "local.heavy_hitters": "HeavyHitters",
    "local.local_hashing": "OptimizedLocalHashing",
    "local.local_oracle": "LocalOracle",
    "local.randomized_response": "randomized_response",
    "local.response_oracle": "RandomizedResponse",
    "local.shuffling": "local_epsilon shuffled_delta shuffled_epsilon",
    "local.statistical_queries": "LocalStatisticalQueries statistical_query_rows statistical_query_tolerance",
    "local.subset_selection": "SubsetSelection",
    "local.unary_encoding": "OptimizedUnaryEncoding",
    "mechanisms.noise.gaussian": "gaussian",
    "mechanisms.noise.laplace": "laplace",
    "mechanisms.quantiles.quantiles": "quantiles",
    "mechanisms.selection.error_bounds": "selection_error selection_miss threshold_error",
    "mechanisms.selection.exponential": "exponential",
    "mechanisms.selection.exponential_draws": "exponential_draws",
    "mechanisms.selection.noisy_max": "report_noisy_max",
    "mechanisms.selection.noisy_max_with_gap": "noisy_max_with_gap",
    "mechanisms.selection.noisy_top_k": "noisy_top_k",
    "mechanisms.selection.permute_and_flip": "permute_and_flip",
    "mechanisms.selection.probabilities": "selection_probabilities",
    "mechanisms.selection.unlisted_domain": "exponential_sparse",
    "mechanisms.thresholds.above_threshold": "above_threshold",
    "mechanisms.thresholds.sparse_vector": "SparseVector",
    "queries.basic": "bins maximum mean minimum mode quantile sum",
    "queries.counts": "count units",
    "queries.distributions": "cdf histogram",
    "queries.moments": "covariance std variance",
    "queries.proportions": "proportion",
    "queries.values": "count_distinct top_k",
    "releases.domain_proposal": "propose_domain",
    "releases.planning": "plan release",
    "releases.previewing": "preview",
    "rows.calendars": "calendar",
    "rows.filters": "column",
    "sketches.distinct": "distinct_sketch merge_sketches",
    "stability.interquartile_scale": "interquartile_scale",
    "stability.propose_test_release": "propose_test_release",
    "stability.release_if_stable": "release_if_stable",
    "stability.release_if_subsamples_agree": "release_if_subsamples_agree",
    "stability.smooth_median": "smooth_median",
    "stability.subsample_and_aggregate": "subsample_and_aggregate",
    "strategies.matrix_mechanism": "matrix_mechanism",
    "streaming.counters": "continual_count continual_sum restore_counter",
    "streaming.density": "PanPrivateDensity",
    "synthesis.choosing": "estimate_histogram",
    "synthesis.fitted.boosting": "boost_queries",
    "synthesis.fitted.mwem": "mwem",
    "synthesis.fitted.private_multiplicative_weights": "PrivateMultiplicativeWeights",
    "synthesis.fitted.projection": "project_answers",
    "synthesis.fitted.projection_mechanism": "projection_mechanism",
    "synthesis.histograms.adaptive_hierarchy": "adaptive_hierarchy",
    "synthesis.histograms.ahp": "ahp",
    "synthesis.histograms.dawa": "dawa",
    "synthesis.planning": "plan_synthesis",
    "synthesis.relaxed.fitting": "fit_marginals",
    "synthesis.residuals.marginals": "plan_marginals release_marginals",
    "synthesis.synthesizing": "synthesize",
    "weights.multiplicative_weights": "multiplicative_weights",
}
_HOMES = {name: home for home, names in _NAMES_BY_HOME.items() for name in names.split()}
__all__ = [*sorted(_HOMES)]


if not TYPE_CHECKING:  # for which a misspelt name would be anything

    def __getattr__(name: str) -> Any:
        """Import a public name, or a module of the package."""
        if name in _HOMES:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            return value
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
