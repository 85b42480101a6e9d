"""Right calls of the room of stability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast import stability

from .calls import Call

VALUES = [3, 1, 4, 1, 5, 9, 2, 6]
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SPREAD = {"bounds": (0, 10), "grid": 1}


def largest(rows: list[int]) -> int:
    return max(rows, default=0)


def far(rows: list[int]) -> int:
    return len(rows)


def of(called: Callable[..., Any], /, **given: Any) -> Call:
    return Call(f"stability-{called.__qualname__}", called, lambda: given)


HERE = {"data": VALUES, "function": largest, "workers": 0}

CALLS: list[Call] = [
    of(dpf.subsample_and_aggregate, **HERE, blocks=3, epsilon=1.0, bounds=(0, 10)),
    of(dpf.subsample_and_aggregate, **HERE, blocks=3, **BUDGET, aggregator="mode"),
    of(dpf.subsample_and_aggregate, **HERE, blocks=3, epsilon=1.0, aggregator="mode", candidates=[1, 9]),
    of(
        dpf.subsample_and_aggregate,
        **HERE,
        blocks=5,
        **BUDGET,
        aggregator="trimmed_mean",
        bounds=(0, 1),
        sensitivity="smooth",
    ),
    of(dpf.propose_test_release, **HERE, distance=far, bound=1.0, **BUDGET),
    of(dpf.propose_test_release, data=VALUES, function="median", bound=1.0, **BUDGET, **SPREAD),
    of(dpf.release_if_stable, **HERE, distance=far, **BUDGET),
    of(dpf.release_if_stable, data=VALUES, function="median", **BUDGET, **SPREAD),
    of(dpf.release_if_stable, data=VALUES, function="mode", **BUDGET),
    of(dpf.release_if_subsamples_agree, **HERE, **BUDGET, blocks=3, repeats=2),
    of(dpf.release_if_subsamples_agree, **HERE, **BUDGET, subsamples=4, rate=0.5),
    of(dpf.interquartile_scale, values=VALUES, **BUDGET),
    of(dpf.smooth_median, values=VALUES, **BUDGET, **SPREAD),
    of(stability.distance_to_instability, data=VALUES, function="median", **SPREAD),
    of(stability.distance_to_wide_median, values=VALUES, bound=1, **SPREAD),
    of(stability.local_sensitivity_of_median, values=VALUES, **SPREAD),
    of(stability.smooth_sensitivity_of_median, values=VALUES, beta=0.5, **SPREAD),
    of(stability.scale_distances, values=VALUES),
    of(stability.pass_probability, distance=3, **BUDGET),
    of(stability.distance_to_pass, miss=0.05, **BUDGET),
    of(stability.subsampling_constants, **BUDGET, rows=100),
    of(stability.trimmed_mean, values=VALUES, trim=0.1),
    of(stability.winsorized_mean, values=np.array(VALUES), trim=0.1),
]
