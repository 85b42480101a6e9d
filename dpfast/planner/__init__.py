"""Queries and a budget -> a blueprint: sensitivities, shares, scales and charges, without looking at the data."""

from __future__ import annotations

from dpfast.planner.blueprint import (
    SUFFIXES,
    Blueprint,
    DrawnModes,
    DrawnQuantiles,
    KeyShare,
    NoisyMeasure,
    Part,
    PlannedQuery,
)
from dpfast.planner.charged import Charged
from dpfast.planner.drawing_up import draw_up
from dpfast.planner.explanation import error_frame, explain, measure_frame

__all__ = [
    "SUFFIXES",
    "Blueprint",
    "Charged",
    "DrawnModes",
    "DrawnQuantiles",
    "KeyShare",
    "NoisyMeasure",
    "Part",
    "PlannedQuery",
    "draw_up",
    "error_frame",
    "explain",
    "measure_frame",
]
