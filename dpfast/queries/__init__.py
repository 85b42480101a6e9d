"""What a user may ask of rows, and what rows are measured by to answer it, with exact sensitivities."""

from dpfast.queries.basic import (
    NAME,
    Bins,
    Edges,
    ModeQuery,
    Name,
    OwnName,
    QuantileQuery,
    Query,
    bins,
    count,
    mean,
    mode,
    quantile,
    sum,
)
from dpfast.queries.measures import Measure, choices_measure, points_measure, sum_measure

__all__ = [
    "NAME",
    "Bins",
    "Edges",
    "Measure",
    "ModeQuery",
    "Name",
    "OwnName",
    "QuantileQuery",
    "Query",
    "bins",
    "choices_measure",
    "count",
    "mean",
    "mode",
    "points_measure",
    "quantile",
    "sum",
    "sum_measure",
]
