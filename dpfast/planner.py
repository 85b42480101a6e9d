"""Queries and a budget -> a blueprint: sensitivities, scales and charge, without looking at the data."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from dpfast.accounting.amounts import UNITS_PER_ONE, charge_units, share_units, to_float
from dpfast.aggregation.exact import Aggregation, Grouping, prepare
from dpfast.aggregation.sources import open_source
from dpfast.errors import ParameterError
from dpfast.ledger import Charge
from dpfast.mechanisms.calibration import analytic_gaussian_scale, laplace_scale, round_up, round_up_root
from dpfast.mechanisms.gaussian import gaussian_kernel
from dpfast.mechanisms.intervals import half_width
from dpfast.mechanisms.key_selection import SelectionTable, selection_table
from dpfast.mechanisms.laplace import laplace_kernel
from dpfast.mechanisms.lattice import LARGEST_INTEGER_SCALE
from dpfast.queries import Bins, Measure, PrivacyUnit, Query, Sensitivity, sum_measure

__all__ = ["Blueprint", "KeyShare", "NoisyMeasure", "PlannedQuery", "draw_up"]

Mechanism: TypeAlias = Literal["laplace", "gaussian"]

#: What a query's name is followed by in the columns of a release.
SUFFIXES = ("", "_scale", "_lower", "_upper")


@dataclass(frozen=True)
class NoisyMeasure:
    """One measure with its noise: everything in steps of the measure.

    Attributes
    ----------
    measure
        What is aggregated.
    sensitivity
        How far it can move between neighbours.
    mechanism, scale
        The noise: Laplace b or Gaussian sigma.
    epsilon_units, delta_units
        Its share of the charge.

    """

    measure: Measure
    sensitivity: Sensitivity
    mechanism: Mechanism
    scale: float
    epsilon_units: int
    delta_units: int

    @property
    def step(self) -> float:
        """What one step is worth in the column's unit."""
        return 2.0**self.measure.step_exponent

    @property
    def kernel(self) -> str:
        """The kernel that will draw the noise."""
        return laplace_kernel(self.scale) if self.mechanism == "laplace" else gaussian_kernel(self.scale)


@dataclass(frozen=True)
class PlannedQuery:
    """A query by name with the measures that it is answered from: one, or a mean's sum and count."""

    name: str
    query: Query
    parts: tuple[NoisyMeasure, ...]
    whole: bool


@dataclass(frozen=True)
class KeyShare:
    """How keys are selected privately: each key's table, and what selecting all of them costs."""

    table: SelectionTable
    keys_per_unit: int
    epsilon_units: int
    delta_units: int


@dataclass(frozen=True)
class Blueprint:
    """What a release will do and cost, from schema and parameters alone.

    Attributes
    ----------
    aggregation
        The checked, exact aggregation, not yet run.
    queries
        The queries with their noise.
    unit
        Whose presence is hidden.
    key_share
        How keys are selected; None where they are public.
    charge
        What the ledger is charged.
    dataset
        The name under which the ledger knows the data, None for the ledger's own.

    """

    aggregation: Aggregation
    queries: tuple[PlannedQuery, ...]
    unit: PrivacyUnit
    key_share: KeyShare | None
    charge: Charge
    dataset: str | None

    @property
    def privacy_unit(self) -> str:
        """The privacy unit's name for the ledger."""
        return "row" if self.unit.column is None else f"column:{self.unit.column}"

    def explain(self) -> str:
        """Return what will be done and why, as text."""
        by = ", ".join(_name(entry) for entry in self.aggregation.grouping.by) or "nothing (one group)"
        lines = [f"Release of {len(self.queries)} queries by {by}"]
        if self.unit.column is None:
            lines.append(f"  privacy unit  one row; neighbours: {self.unit.neighbors}")
        else:
            lines.append(
                f"  privacy unit  {self.unit.column}: at most {self.unit.max_groups} groups and "
                f"{self.unit.max_rows_per_group} rows in each, chosen at random; neighbours: {self.unit.neighbors}"
            )
        lines.append("  keys          " + self._explain_keys())
        for planned in self.queries:
            lines.append(f"  {planned.name:<13} {_describe(planned.query)}")
            lines.extend(f"                {_explain_part(part)}" for part in planned.parts)
        lines.append(
            f"  charge        epsilon {to_float(self.charge.epsilon_units)!r}, "
            f"delta {to_float(self.charge.delta_units)!r}, before any data is read"
        )
        lines.append(
            "  assumes       the rows of the frame as given are the unit's own: joins, windows or explodes before "
            "this plan can give one person the rows of another; at most 2**38 rows"
        )
        return "\n".join(lines)

    def _explain_keys(self) -> str:
        if self.key_share is None:
            public = self.aggregation.public
            height = 1 if public is None else public.given.height
            return f"{height} public keys, each shown, zeros included ({self.aggregation.route} route)"
        share = self.key_share
        return (
            f"selected privately: epsilon {to_float(share.epsilon_units):.6g}, delta {to_float(share.delta_units):.6g} "
            f"over {share.keys_per_unit} keys a unit; a key is shown for certain from {share.table.thresholds.size} "
            "units on"
        )


def _name(entry: str | Bins) -> str:
    return entry.column if isinstance(entry, Bins) else entry


def _describe(query: Query) -> str:
    if query.bounds is None:
        return query.kind
    return f"{query.kind} of {query.column}, values clipped to [{query.bounds[0]:g}, {query.bounds[1]:g}]"


def _explain_part(part: NoisyMeasure) -> str:
    what = {"rows": "rows", "values": "values that are not missing", "sum": "sum"}[part.measure.kind]
    if part.measure.centre:
        what += f" of differences to {part.measure.centre * part.step:g}"
    if part.mechanism == "laplace":
        name, size, reason = "L1", part.sensitivity.l1 * part.step, part.sensitivity.l1_reason
    else:
        name, size, reason = "L2", math.sqrt(part.sensitivity.l2_squared) * part.step, part.sensitivity.l2_reason
    reach = half_width(part.mechanism, part.scale, 0.05) * part.step
    return (
        f"{what}: {name} sensitivity {size:g} = {reason}; {part.mechanism} noise of scale "
        f"{part.scale * part.step:g}, 95% within {reach:g}; epsilon {to_float(part.epsilon_units):.6g}"
        + (f", delta {to_float(part.delta_units):.6g}" if part.delta_units else "")
        + f"; {part.kernel}"
    )


def draw_up(
    data: object,
    queries: Mapping[str, Query],
    *,
    by: str | Bins | Sequence[str | Bins] | None,
    epsilon: object,
    delta: object,
    keys: pl.DataFrame | None,
    privacy_unit: str | None,
    max_groups: int | None,
    max_rows_per_group: int | None,
    neighbors: str,
    mechanism: str,
    dataset: str | None,
    schema: Mapping[str, Any] | None,
) -> Blueprint:
    """Return the blueprint of a release; see `dpfast.plan` for the parameters.

    The budget is split evenly over the queries and, where keys are selected, the selection; a mean halves its
    share between its sum and its count. delta goes to the selection, and to the queries if their noise is
    Gaussian; what is not needed is not charged.
    """
    if not (by is None or isinstance(by, (str, Bins, list, tuple))):
        raise ParameterError("by", by, "a column's name, dpf.bins(column, edges), a list of these, or None")
    entries = () if by is None else (by,) if isinstance(by, (str, Bins)) else tuple(by)
    unit = _privacy_unit(privacy_unit, max_groups, max_rows_per_group, neighbors)
    if keys is not None or not entries:
        # A unit touches no more groups than there are.
        known = keys.height if isinstance(keys, pl.DataFrame) and entries else 1
        unit = replace(unit, max_groups=max(min(unit.max_groups, known), 1))
    _check_names(queries, [_name(entry) for entry in entries if isinstance(entry, (str, Bins))])
    if type(mechanism) is not str or mechanism not in ("auto", "laplace", "gaussian"):
        raise ParameterError("mechanism", mechanism, '"auto", "laplace" or "gaussian"')
    epsilon_units = charge_units(epsilon, "epsilon")
    delta_units = charge_units(delta, "delta")
    if dataset is not None and (not isinstance(dataset, str) or not dataset):
        raise ParameterError("dataset", dataset, "a name, or None")

    source = open_source(data, schema=schema)
    columns = source.collect_schema()
    measures = {name: _measures(query, columns) for name, query in queries.items()}
    grouping = Grouping(entries, keys, unit.column, max_groups, max_rows_per_group)
    every = [measure for part in measures.values() for measure in part]
    aggregation = prepare(source, grouping, every)

    selects = keys is None and len(entries) > 0
    shares = len(queries) + selects
    # What a budget is split into at most: each share may be halved for a mean.
    pieces = 2 * shares
    if epsilon_units < pieces:
        raise ParameterError("epsilon", epsilon, f"at least {pieces}e-18, to be split into so many parts")
    if mechanism == "gaussian" and delta_units < pieces:
        allowed = "above 0 for Gaussian noise" if not delta_units else f"at least {pieces}e-18, to be split into parts"
        raise ParameterError("delta", delta, allowed, "write for example delta=1e-6")
    epsilon_share = share_units(epsilon_units, shares)
    candidates = []
    if mechanism in ("auto", "laplace"):
        candidates.append(_noise(measures, unit, "laplace", epsilon_share, 0))
    if mechanism == "gaussian" or (mechanism == "auto" and delta_units >= pieces):
        candidates.append(_noise(measures, unit, "gaussian", epsilon_share, share_units(delta_units, shares)))
    planned = min(candidates, key=_log_variance)
    spent_delta = sum(part.delta_units for query in planned for part in query)
    key_share = None
    if selects:
        key_delta = delta_units - spent_delta
        kappa = unit.max_groups * (2 if unit.neighbors == "replace" else 1)
        table = selection_table(
            Fraction(epsilon_share, UNITS_PER_ONE * kappa), Fraction(key_delta, UNITS_PER_ONE * kappa)
        )
        key_share = KeyShare(table, unit.max_groups, epsilon_share, key_delta)
        spent_delta += key_delta
    answers = tuple(
        PlannedQuery(name, query, parts, _is_whole(query, columns))
        for (name, query), parts in zip(queries.items(), planned, strict=True)
    )
    description = "; ".join(f"{answer.name}: {_describe(answer.query)}" for answer in answers)
    described = f"{description} by {', '.join(map(_name, entries)) or 'nothing'}"
    charge = Charge(epsilon_units, spent_delta, described)
    return Blueprint(aggregation, answers, unit, key_share, charge, dataset or _dataset_name(data))


def _dataset_name(data: object) -> str | None:
    """Return a path as the data's name; what is in memory has none."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data) if isinstance(os.fspath(data), str) else None
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return ", ".join(str(os.fspath(path)) for path in data)
    return None


def _privacy_unit(column: object, max_groups: object, max_rows_per_group: object, neighbors: object) -> PrivacyUnit:
    if type(neighbors) is str and neighbors in ("add_remove", "replace"):
        relation: Literal["add_remove", "replace"] = "add_remove" if neighbors == "add_remove" else "replace"
    else:
        raise ParameterError("neighbors", neighbors, '"add_remove" or "replace"')
    bounds = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
    if column is None:
        for name, bound in bounds.items():
            if bound is not None:
                raise ParameterError(name, bound, "left out where each row is a unit", "give privacy_unit= as well")
        return PrivacyUnit(None, 1, 1, relation)
    if not isinstance(column, str):
        raise ParameterError("privacy_unit", column, "a column's name, or None for rows")
    for name, bound in bounds.items():
        if isinstance(bound, bool) or not isinstance(bound, (int, np.integer)) or not 1 <= bound <= 2**40:
            allowed = "a whole number from 1 to 2**40 where privacy_unit is given"
            raise ParameterError(name, bound, allowed, f"write for example {name}=10")
    return PrivacyUnit(column, int(str(max_groups)), int(str(max_rows_per_group)), relation)


def _check_names(queries: Mapping[str, Query], by: Sequence[str]) -> None:
    if not queries:
        raise ParameterError("queries", {}, "at least one", "write for example n=dpf.count()")
    taken = set(by)
    for name, query in queries.items():
        if not isinstance(query, Query):
            allowed = "dpf.count(), dpf.sum(column, bounds=) or dpf.mean(column, bounds=)"
            raise ParameterError(str(name), query, allowed)
        if not isinstance(name, str) or not name:
            raise ParameterError("queries", name, "named by strings")
        columns = {name + suffix for suffix in SUFFIXES}
        if columns & taken:
            allowed = f"a name that leaves {', '.join(sorted(columns & taken))} to one column"
            raise ParameterError("the query's name", name, allowed, "rename the query")
        taken |= columns


def _is_whole(query: Query, columns: pl.Schema) -> bool:
    """Return whether a query is of whole numbers: rows, or a column of integers or Booleans."""
    dtype = pl.Int64() if query.column is None else columns.get(query.column)
    return dtype is not None and (dtype.is_integer() or dtype == pl.Boolean)


def _measures(query: Query, columns: pl.Schema) -> list[Measure]:
    if query.kind == "count":
        return [Measure("rows")]
    numerator = sum_measure(query, whole=_is_whole(query, columns))
    return [numerator] if query.kind == "sum" else [numerator, Measure("values", query.column)]


def _noise(
    measures: Mapping[str, list[Measure]], unit: PrivacyUnit, mechanism: Mechanism, epsilon: int, delta: int
) -> list[tuple[NoisyMeasure, ...]]:
    """Return every query's measures with noise, each query with the same shares of epsilon and delta."""
    return [
        tuple(
            _noisy(measure, unit, mechanism, share_units(epsilon, len(parts)), delta // len(parts)) for measure in parts
        )
        for parts in measures.values()
    ]


def _noisy(measure: Measure, unit: PrivacyUnit, mechanism: Mechanism, epsilon: int, delta: int) -> NoisyMeasure:
    sensitivity = Sensitivity.of(measure, unit)
    share = Fraction(epsilon, UNITS_PER_ONE)
    if mechanism == "laplace":
        wanted = Fraction(sensitivity.l1) / share
        scale = laplace_scale(Fraction(sensitivity.l1), share) if wanted < 2**1000 else math.inf
    else:
        ratio = analytic_gaussian_scale(Fraction(1), share, Fraction(delta, UNITS_PER_ONE))
        scale = round_up(Fraction(ratio) * Fraction(round_up_root(Fraction(sensitivity.l2_squared))))
    if not scale <= LARGEST_INTEGER_SCALE:
        allowed = "larger: the noise would drown every value that an int64 can hold"
        raise ParameterError("epsilon", float(share), allowed, "raise epsilon, or lower max_groups or the bounds")
    return NoisyMeasure(measure, sensitivity, mechanism, scale, epsilon, delta)


def _log_variance(planned: list[tuple[NoisyMeasure, ...]]) -> float:
    """Return the sum of the logarithms of the noises' variances, the same for all steps and units."""
    return math.fsum(
        math.log(part.scale**2 * (2 if part.mechanism == "laplace" else 1)) for parts in planned for part in parts
    )
