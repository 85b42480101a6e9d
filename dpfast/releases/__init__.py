"""Queries and a budget -> a blueprint: sensitivities, shares, scales and charges, without looking at the data."""

from __future__ import annotations

from dpfast.releases.adaptive_blueprint import AdaptiveBlueprint, draw_up_adaptive, explain_adaptive
from dpfast.releases.blueprint import (
    SUFFIXES,
    Blueprint,
    DrawnModes,
    DrawnQuantiles,
    DrawnTogether,
    NoisyMeasure,
    Part,
    PlannedQuery,
)
from dpfast.releases.charged import Charged
from dpfast.releases.drawing_up import draw_up
from dpfast.releases.explanation import error_frame, explain, measure_frame
from dpfast.releases.key_share import KeyShare, NoisyUnits, OneByOne, Policy, ReleasedCount, Weights
from dpfast.releases.workload_blueprint import WorkloadBlueprint, draw_up_workload
from dpfast.releases.workload_explanation import consider_frame, explain_workload, workload_error_frame
from dpfast.releases.workload_reading import AskedWorkload, read_workload

__all__ = [
    "SUFFIXES",
    "AdaptiveBlueprint",
    "AskedWorkload",
    "Blueprint",
    "Charged",
    "DrawnModes",
    "DrawnQuantiles",
    "DrawnTogether",
    "KeyShare",
    "NoisyMeasure",
    "NoisyUnits",
    "OneByOne",
    "Part",
    "PlannedQuery",
    "Policy",
    "ReleasedCount",
    "Weights",
    "WorkloadBlueprint",
    "consider_frame",
    "draw_up",
    "draw_up_adaptive",
    "draw_up_workload",
    "error_frame",
    "explain",
    "explain_adaptive",
    "explain_workload",
    "measure_frame",
    "read_workload",
    "workload_error_frame",
]
