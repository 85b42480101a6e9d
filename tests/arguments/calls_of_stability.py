"""Right calls of the room of stability."""

from __future__ import annotations

import numpy as np

import dpfast as dpf
from dpfast import stability

from .calls import Call
from .calls_of_mechanisms import call

VALUES = [3, 1, 4, 1, 5, 9, 2, 6]
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SPREAD = {"bounds": (0, 10), "grid": 1}


def largest(rows: list[int]) -> int:
    return max(rows, default=0)


def far(rows: list[int]) -> int:
    return len(rows)


HERE = {"data": VALUES, "function": largest, "workers": 0}

CALLS: list[Call] = [
    call(dpf.subsample_and_aggregate, **HERE, blocks=3, epsilon=1.0, bounds=(0, 10)),
    call(dpf.subsample_and_aggregate, **HERE, blocks=3, **BUDGET, aggregator="mode"),
    call(dpf.subsample_and_aggregate, **HERE, blocks=3, epsilon=1.0, aggregator="mode", candidates=[1, 9]),
    call(
        dpf.subsample_and_aggregate,
        **HERE,
        blocks=5,
        **BUDGET,
        aggregator="trimmed_mean",
        bounds=(0, 1),
        sensitivity="smooth",
    ),
    call(dpf.propose_test_release, **HERE, distance=far, bound=1.0, **BUDGET),
    call(dpf.propose_test_release, data=VALUES, function="median", bound=1.0, **BUDGET, **SPREAD),
    call(dpf.release_if_stable, **HERE, distance=far, **BUDGET),
    call(dpf.release_if_stable, data=VALUES, function="median", **BUDGET, **SPREAD),
    call(dpf.release_if_stable, data=VALUES, function="mode", **BUDGET),
    call(dpf.release_if_subsamples_agree, **HERE, **BUDGET, blocks=3, repeats=2),
    call(dpf.release_if_subsamples_agree, **HERE, **BUDGET, subsamples=4, rate=0.5),
    call(dpf.interquartile_scale, values=VALUES, **BUDGET),
    call(dpf.smooth_median, values=VALUES, **BUDGET, **SPREAD),
    call(stability.distance_to_instability, data=VALUES, function="median", **SPREAD),
    call(stability.distance_to_wide_median, values=VALUES, bound=1, **SPREAD),
    call(stability.local_sensitivity_of_median, values=VALUES, **SPREAD),
    call(stability.smooth_sensitivity_of_median, values=VALUES, beta=0.5, **SPREAD),
    call(stability.scale_distances, values=VALUES),
    call(stability.pass_probability, distance=3, **BUDGET),
    call(stability.distance_to_pass, miss=0.05, **BUDGET),
    call(stability.subsampling_constants, **BUDGET, rows=100),
    call(stability.trimmed_mean, values=VALUES, trim=0.1),
    call(stability.winsorized_mean, values=np.array(VALUES), trim=0.1),
]
