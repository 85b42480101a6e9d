"""What a user may ask of rows, and what rows are measured by to answer it, with exact sensitivities."""

from dpfast.columns.edges import Edges, Points
from dpfast.queries.basic import (
    Bins,
    Highest,
    Lowest,
    ModeQuery,
    Name,
    OwnName,
    QuantileQuery,
    Query,
    bins,
    maximum,
    mean,
    minimum,
    mode,
    quantile,
    sum,
)
from dpfast.queries.counts import FilteredCountQuery, count, units
from dpfast.queries.distributions import DistributionQuery, cdf, histogram
from dpfast.queries.measures import (
    Measure,
    bins_measure,
    choices_measure,
    matches_measure,
    points_measure,
    product_measure,
    ranked_measure,
    sum_measure,
)
from dpfast.queries.moments import CovarianceQuery, covariance, std, variance
from dpfast.queries.proportions import Condition, ProportionQuery, proportion
from dpfast.queries.values import DistinctQuery, RankedQuery, Winners, count_distinct, top_k
from dpfast.rows.values import NAME

__all__ = [
    "NAME",
    "Bins",
    "Condition",
    "CovarianceQuery",
    "DistinctQuery",
    "DistributionQuery",
    "Edges",
    "FilteredCountQuery",
    "Highest",
    "Lowest",
    "Measure",
    "ModeQuery",
    "Name",
    "OwnName",
    "Points",
    "ProportionQuery",
    "QuantileQuery",
    "Query",
    "RankedQuery",
    "Winners",
    "bins",
    "bins_measure",
    "cdf",
    "choices_measure",
    "count",
    "count_distinct",
    "covariance",
    "histogram",
    "matches_measure",
    "maximum",
    "mean",
    "minimum",
    "mode",
    "points_measure",
    "product_measure",
    "proportion",
    "quantile",
    "ranked_measure",
    "std",
    "sum",
    "sum_measure",
    "top_k",
    "units",
    "variance",
]
