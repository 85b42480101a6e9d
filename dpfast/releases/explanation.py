"""What a plan says of its queries by group: as text, as a frame with a row a measure, and as a frame of errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from dpfast.arguments import Number
from dpfast.errors import ParameterError
from dpfast.exact.amounts import to_float
from dpfast.queries import Measure
from dpfast.releases.planned_queries import (
    Combined,
    DrawnModes,
    DrawnPart,
    DrawnQuantiles,
    DrawnTogether,
    NoisyMeasure,
    Part,
    PlannedQuery,
    charges_of,
    describe,
    drawn_parts,
)
from dpfast.releases.query_measures import explain_measure
from dpfast.releases.ranked_values import DrawnValues
from dpfast.showing import number_of

__all__ = ["ALPHA", "MEASURE_SCHEMA", "error_frame", "explain_queries", "measure_frame"]

_INDENT = " " * 16
#: The columns of a plan as a frame.
MEASURE_SCHEMA = {
    "query": pl.String,
    "measure": pl.String,
    "norm": pl.String,
    "sensitivity": pl.Float64,
    "reason": pl.String,
    "mechanism": pl.String,
    "kernel": pl.String,
    "scale": pl.Float64,
    "error95": pl.Float64,
    "epsilon": pl.Float64,
    "delta": pl.Float64,
    "event": pl.String,
    "charge": pl.Int64,
}
_ERROR_SCHEMA = {
    "query": pl.String,
    "measure": pl.String,
    "one": pl.Float64,
    "groups": pl.Int64,
    "all": pl.Float64,
}
#: The probability that a bound is missed. Below 1e-12 the normal quantile, computed from 1 - p, loses its digits.
ALPHA = Number(1e-12, 1, below=True, mend="write for example {name}=0.05")


def _measure(part: Part) -> str:
    if isinstance(part, (DrawnQuantiles, DrawnTogether)):
        return part.measure.grid.describe(float(part.measure.tick))
    if isinstance(part, DrawnModes):
        return f"rows of {number_of(part.measure.points, 'candidate')}"
    return explain_measure(part.measure)


def _reason(part: DrawnQuantiles | DrawnTogether | DrawnModes) -> str:
    unit = part.unit
    rows = f"{number_of(unit.max_rows_per_group, 'row')} x " * (unit.max_rows_per_group > 1)
    paid = f"a unit pays for {part.draws} {'draw' if part.draws == 1 else 'draws'}"
    if isinstance(part, DrawnModes):
        kind = "a row may change its candidate" if unit.neighbors == "replace" else "no count rises as another falls"
        return f"{rows}1 ({kind}); {paid}"
    if isinstance(part, DrawnTogether):
        each = "1" if unit.neighbors == "add_remove" else "2 (a row replaced)"
        count = f"with a noisy number of rows of scale {part.calibration.count_scale:g}"
        return f"{rows}{each}; {number_of(len(part.calibration.parts), 'quantile')} together, {count}; {paid}"
    tree = part.tree
    each = f"{float(part.sensitivity) / unit.max_rows_per_group:g}"
    kind = "max(q, 1 - q)"
    if unit.neighbors == "replace":
        lone = part.calibration.alone and len(tree.parts) == 1
        kind = "a row replaced" if lone else "2 max(q, 1 - q), a row replaced"
    levels = f", {number_of(len(tree.parts), 'quantile')} on {number_of(len(tree.levels), 'level')}" * (
        len(tree.parts) > 1
    )
    return f"{rows}{each} ({kind}); {paid}{levels}"


def _row(query: str, part: DrawnPart) -> tuple[Any, ...]:
    mechanism, unit = "exponential", 1.0
    if isinstance(part, (NoisyMeasure, DrawnValues)):
        mechanism, unit = part.mechanism, part.step
        norm, steps, reason = part.sensitivity.of_noise(part.mechanism)
    else:
        norm, steps, reason = "score", float(part.sensitivity), _reason(part)
    noise = (norm, steps * unit, reason, mechanism, part.kernel, part.scale * unit, part.reach(0.05))
    facts = [charge.fact if charge.count == 1 else charge.fact.times(charge.count) for charge in part.charges]
    charged = (to_float(part.epsilon_units), to_float(part.delta_units), " and ".join(map(repr, facts)))
    return query, _measure(part), *noise, *charged


def measure_frame(queries: Sequence[PlannedQuery]) -> pl.DataFrame:
    """Return a frame with a row for everything drawn, in that order.

    ``query`` is the first that needs it. Parts with the same number in ``charge`` are charged once, together.
    """
    parts = drawn_parts(planned.parts for planned in queries)
    numbers = {id(charge): number for number, charge in enumerate(charges_of(parts))}
    rows = [(*_row(_owner(part, queries), part), numbers[id(part.charge)]) for part in parts]
    return pl.DataFrame(rows, schema=MEASURE_SCHEMA, orient="row")


def _owner(part: DrawnPart, queries: Sequence[PlannedQuery]) -> str:
    """Return the name of the first query that needs a part."""
    return next(planned.name for planned in queries if any(part is one for one in drawn_parts([planned.parts])))


def error_frame(queries: Sequence[PlannedQuery], groups: int | None, alpha: float) -> pl.DataFrame:
    """Return bounds of the noise of every measure: for one value, and for those of all public keys together.

    Parameters
    ----------
    queries
        With their noise.
    groups
        How many groups there are; None where keys are selected.
    alpha
        The probability that a bound is missed.

    Notes
    -----
    A histogram has a noise for each bin of a group. The noises of n figures are independent: all stay within h with
    probability (1 - p)**n, p that of one to exceed h. So p = 1 - (1 - alpha)**(1 / n), exactly, which is a little more
    than a union bound's alpha / n.
    """
    rows = []
    for planned in queries:
        for part in planned.parts:
            figures = part.measure.points if isinstance(part, DrawnValues) else part.measure.figures
            together = (groups or 0) * figures
            miss = alpha if not together else -math.expm1(math.log1p(-alpha) / together)
            if miss < ALPHA.least:
                raise ParameterError("alpha", alpha, f"at least {ALPHA.least * together:g} for {groups} keys")
            # How many values are found is private.
            private = groups is None or (isinstance(part, DrawnValues) and part.threshold is not None)
            all_of_them = None if private else part.reach(miss)
            rows.append((planned.name, _measure(part), part.reach(alpha), groups, all_of_them))
    return pl.DataFrame(rows, schema=_ERROR_SCHEMA, orient="row")


def explain_queries(queries: Sequence[PlannedQuery], *, measures: bool) -> list[str]:
    """Return the lines that say what is asked, and with ``measures`` how each measure gets its noise."""
    lines, measured, charged = [], dict[Measure, str](), set[int]()
    drawn_once = drawn_parts(planned.parts for planned in queries)
    together = [part for part in drawn_once if isinstance(part, NoisyMeasure) and part.mechanism == "gaussian"]
    for planned in queries:
        lines.append(f"  {planned.name:<13} {describe(planned.query)}")
        for part in planned.parts if measures else ():
            if isinstance(part, Combined):
                made = f"{_measure(part.first)} {'plus' if part.sign > 0 else 'less'} {_measure(part.second)}"
                lines.append(f"{_INDENT}{_measure(part)}: {made}, 95% within {part.reach(0.05):g}")
            for drawn in drawn_parts([[part]]):
                first = measured.get(drawn.measure) if isinstance(drawn, NoisyMeasure) else None
                if first is not None:
                    said = f"{_measure(drawn)}: those of {first}"
                elif drawn in together and len(together) > 1:
                    said = f"{_explain_part(drawn)}; {drawn.kernel}"
                else:
                    costs = "no further epsilon" if id(drawn.charge) in charged else _explain_charge(drawn)
                    said = f"{_explain_part(drawn)}; {costs}; {drawn.kernel}"
                charged.add(id(drawn.charge))
                measured.setdefault(drawn.measure, planned.name)
                lines.append(f"{_INDENT}{said}")
    if measures and len(together) > 1:
        lines.append(f"  together      {_explain_charge(together[0])} for all Gaussian noise, drawn as one")
    return lines


def _explain_charge(part: DrawnPart) -> str:
    epsilon, delta = to_float(part.epsilon_units), to_float(part.delta_units)
    return f"epsilon {epsilon:.6g}" + (f", delta {delta:.6g}" if part.delta_units else "")


def _explain_part(part: DrawnPart) -> str:
    row = dict(zip(MEASURE_SCHEMA, _row("", part), strict=False))
    noise = (
        f"{row['measure']}: {row['norm']} sensitivity {row['sensitivity']:g} = {row['reason']}; {row['mechanism']} "
        f"noise of scale {row['scale']:g}, 95% within {row['error95']:g}"
    )
    if isinstance(part, DrawnValues):
        return noise if part.threshold is None else f"{noise}; {part.explain()}"
    if not isinstance(part, NoisyMeasure):
        what = "rows" if isinstance(part, DrawnModes) else "ranks"
        return (
            f"{row['measure']}: score sensitivity {row['sensitivity']:g} {what} = {row['reason']}; "
            f"exponential mechanism at epsilon {part.epsilon:.6g} a draw, a factor e every {row['scale']:g} {what}, "
            f"95% within {row['error95']:g} {what}"
        )
    return noise
