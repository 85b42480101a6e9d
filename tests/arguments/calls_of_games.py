"""Right calls of games: choices of agents who may lie."""

from __future__ import annotations

import numpy as np

import dpfast as dpf
from dpfast import theory
from dpfast.games.large_games import Equilibrium

from .calls import Call
from .calls_of_mechanisms import call, method

WORTH = [[0.1, 0.9], [0.4, 0.3]]
REACTIONS = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 0.8], [0.5, 0.5]]])
PAYOFFS = np.array([[[10.0, 0], [0, 5]], [[5, 0], [0, 10]]])


def equilibrium() -> Equilibrium:
    return dpf.select_equilibrium([0, 1], PAYOFFS, epsilon=1.0)


CALLS: list[Call] = [
    call(dpf.select_outcome, utilities=WORTH, epsilon=1.0),
    call(dpf.select_outcome, utilities=WORTH, rho=0.1),
    call(dpf.select_outcome, utilities=WORTH, epsilon=1.0, outcomes=2),
    call(dpf.vcg_payments, utilities=WORTH, epsilon=1.0),
    call(dpf.vcg_payments, utilities=WORTH, epsilon=1.0, outcomes=2),
    call(dpf.two_outcome_vote, utilities=WORTH, epsilon=1.0),
    call(dpf.punishing_mechanism, types=[0, 1], utilities=REACTIONS, epsilon=1.0),
    call(dpf.place_facilities, homes=[0.1, 0.2], epsilon=1.0),
    call(dpf.select_equilibrium, types=[0, 1], payoffs=PAYOFFS, epsilon=1.0),
    method(equilibrium, "largest_regret"),
    method(equilibrium, "incentive"),
    call(theory.commitment_gap, utilities=REACTIONS),
    call(theory.punishing_parameters, outcomes=9, agents=10**6, gap=0.25),
    call(theory.outcome_costs, laws=[[0.5, 0.5], [0.25, 0.75]]),
    call(theory.information_cost, laws=[[0.5, 0.5], [0.25, 0.75]]),
]
