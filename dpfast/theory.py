"""What theorems say beforehand, from public numbers alone: bounds in closed form, and what their proofs construct.

>>> import dpfast as dpf
>>> dpf.theory.rounds_for_regret(experts=100, regret=0.05)
7369
"""

from dpfast.games.commitment import commitment_gap, punishing_parameters
from dpfast.games.privacy_costs import information_cost, outcome_costs
from dpfast.learning.regret import (
    best_eta,
    likely_regret_bound,
    private_eta,
    private_regret_bound,
    regret_bound,
    rounds_for_regret,
)
from dpfast.streaming.tails import laplace_sum_error, laplace_sum_miss
from dpfast.synthesis.fitted.base_generators import round_to_multiples
from dpfast.synthesis.fitted.boosting_bounds import (
    book_rounds,
    brute_force_samples,
    generalization,
    inaccurate_share,
    laplace_accuracy,
    least_margin,
    naive_factor,
    rounds_needed,
    sample_epsilon,
    sampling_epsilon,
    step_size,
    subsample_size,
)
from dpfast.synthesis.fitted.projection_mechanism import projection_error

__all__ = [
    "best_eta",
    "book_rounds",
    "brute_force_samples",
    "commitment_gap",
    "generalization",
    "inaccurate_share",
    "information_cost",
    "laplace_accuracy",
    "laplace_sum_error",
    "laplace_sum_miss",
    "least_margin",
    "likely_regret_bound",
    "naive_factor",
    "outcome_costs",
    "private_eta",
    "private_regret_bound",
    "projection_error",
    "punishing_parameters",
    "regret_bound",
    "round_to_multiples",
    "rounds_for_regret",
    "rounds_needed",
    "sample_epsilon",
    "sampling_epsilon",
    "step_size",
    "subsample_size",
]
