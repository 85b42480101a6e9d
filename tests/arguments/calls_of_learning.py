"""Right calls of learners of private examples."""

from __future__ import annotations

import numpy as np

import dpfast as dpf
from dpfast.testing import SeededRandom

from .calls import Call
from .calls_of_mechanisms import call, method

X, Y = [[0.5], [1.0]], [0, 1]


def regression() -> dpf.LinearRegression:
    return dpf.LinearRegression([(0, 1)], (0, 1), epsilon=1.0, random=SeededRandom(1)).fit(X, Y)


def oracle() -> dpf.StatisticalQueryOracle:
    return dpf.StatisticalQueryOracle(np.array([[0], [1]]), np.array([0, 1]), queries=3, epsilon=1.0)


CALLS: list[Call] = [
    call(dpf.LinearRegression, feature_bounds=(0, 1), target_bounds=(0, 1), epsilon=1.0),
    call(dpf.LinearRegression, feature_bounds=[(0, 1)], target_bounds=(0, 1), rho=0.1, max_row_norm=1.0),
    method(regression, "fit", X=X, y=Y),
    method(regression, "predict", X=X),
    method(regression, "score", X=X, y=Y),
    method(regression, "get_params"),
    call(dpf.select_concept, predictions=[[0, 1], [1, 1]], labels=[0, 1], epsilon=1.0),
    call(dpf.StatisticalQueryOracle, examples=[[0], [1]], labels=[0, 1], queries=3, epsilon=1.0),
    call(dpf.StatisticalQueryOracle, examples=[[0], [1]], queries=3, rho=0.1),
    method(oracle, "ask", query=lambda rows, labels: np.asarray(labels)),
    method(oracle, "error"),
    Call("learn_conjunction", dpf.learn_conjunction, lambda: {"oracle": oracle(), "features": 1}),
]
