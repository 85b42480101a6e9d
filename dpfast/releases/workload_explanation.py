"""What a plan of a workload says of itself: as text, and as frames of strategies and of errors."""

from __future__ import annotations

import math

import polars as pl

from dpfast.errors import ParameterError
from dpfast.releases.explanation import explain_terms, explain_unit, read_miss
from dpfast.releases.workload_blueprint import WorkloadBlueprint

__all__ = ["consider_frame", "explain_workload", "workload_error_frame"]

#: So many of the strategies that were considered are named in an explanation.
_NAMED = 5
#: Counts of cells up to this are measured as they are by all strategies that are chosen.
_USUAL = 2**30
_CONSIDERED = {
    "strategy": pl.String,
    "measurements": pl.Int64,
    "mechanism": pl.String,
    "scale": pl.Float64,
    "rmse": pl.Float64,
}


def consider_frame(blueprint: WorkloadBlueprint) -> pl.DataFrame:
    """Return a frame with a row for every strategy that was considered, the one taken first."""
    considered = blueprint.choice.considered
    rows = [
        (one.strategy.name, len(one.strategy), one.noise.mechanism, one.noise.scale, one.rmse) for one in considered
    ]
    return pl.DataFrame(rows, schema=_CONSIDERED, orient="row")


def workload_error_frame(blueprint: WorkloadBlueprint, alpha: object) -> pl.DataFrame:
    """Return how far the answer of every query strays, alone and all of them together (a union bound)."""
    miss = read_miss(alpha)
    together = miss / len(blueprint.workload)
    if together < 1e-300:
        raise ParameterError("alpha", alpha, f"at least 1e-300 for each of {len(blueprint.workload):,} queries")
    noise = blueprint.best.noise
    deviations = pl.Series("scale", noise.deviation * blueprint.best.strategy.variances(blueprint.workload) ** 0.5)
    return blueprint.workload.frame().with_columns(
        deviations,
        (deviations * noise.reach(miss)).alias("one"),
        (deviations * noise.reach(together)).alias("all"),
    )


def explain_workload(blueprint: WorkloadBlueprint) -> str:
    """Return what will be measured and why, as text."""
    best, workload = blueprint.best, blueprint.workload
    size = blueprint.sensitivity
    if best.noise.mechanism == "laplace":
        norm, steps, reason = "L1", float(size.l1), size.l1_reason
    else:
        norm, steps, reason = "L2", math.sqrt(size.l2_squared), size.l2_reason
    shape = " x ".join(f"{length:,}" for length in workload.shape)
    lines = [
        f"Release of {len(workload):,} queries over {shape} cells by {', '.join(blueprint.by)}",
        "  privacy unit  " + explain_unit(blueprint.unit),
        f"  cells         {workload.cells:,} public keys ({blueprint.aggregation.route} route)",
        f"  strategy      {best.strategy.name}: {len(best.strategy):,} measurements, least squares",
        f"  noise         {norm} sensitivity {steps:g} = {reason}; {best.noise.mechanism} noise of scale "
        f"{best.noise.scale:g}",
        f"  error         root mean square {best.rmse:.6g} over all queries, known beforehand",
    ]
    if best.strategy.largest_count < _USUAL:
        lines.append(f"  counts        cells above {best.strategy.largest_count:,} are measured as that")
    others = blueprint.choice.considered[1:]
    if others:
        named = ", ".join(f"{one.strategy.name} {one.rmse:.5g}" for one in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more" * (len(others) > _NAMED)
        lines.append(f"  considered    {named}{more}")
    return "\n".join([*lines, *explain_terms(blueprint)])
