"""Queries by public keys whose units are clipped as a whole: what it will do and cost, and what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.sensitivity import Sensitivity
from dpfast.aggregation.grouping import Aggregates
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.joint_widths import Noise
from dpfast.queries import Measure, Query
from dpfast.releases.answers import answer
from dpfast.releases.blueprint import DrawnBlueprint
from dpfast.releases.clipping import ClippedFigures, Clipping, NoisyFigure
from dpfast.releases.drawing import frame_of_no_groups
from dpfast.releases.explanation import MEASURE_SCHEMA, error_frame
from dpfast.releases.group_blueprint import released_by_group
from dpfast.releases.measurements import ROWS
from dpfast.releases.planned_queries import Combined, NoisyMeasure, Part, PlannedQuery, describe
from dpfast.releases.rebuilding import in_one_frame
from dpfast.releases.release import Release
from dpfast.showing import number_of

__all__ = ["ClippedBlueprint"]

#: A warning says so where more of the units are cut.
_MANY = 0.1


@dataclass(frozen=True)
class _Clipped(NoisyMeasure):
    """A noisy measure of what clipping left, which was rounded to whole steps after the noise."""

    def steps(self, miss: float) -> int:
        """Return a bound of the noise and of the rounding."""
        return super().steps(miss) + 1

    def noises(self, worth: float) -> tuple[Noise, ...]:
        """Return the noise, with the rounding."""
        return tuple(noise._replace(moved=1.0) for noise in super().noises(worth))


@dataclass(frozen=True, kw_only=True)
class ClippedBlueprint(DrawnBlueprint):
    """What a release with units clipped as a whole will do and cost.

    Attributes
    ----------
    asked
        The queries by name, each with its measures.
    clipping
        How units are clipped, and by which noise.
    charge
        What all of it costs.
    split
        In words, how the budget was split.

    """

    asked: tuple[tuple[str, Query, tuple[Measure, ...]], ...]
    clipping: Clipping
    charge: Charge
    split: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The one charge."""
        return (self.charge,)

    @property
    def about(self) -> str:
        """What is released."""
        return f"{number_of(len(self.asked), 'query', 'queries')} by {', '.join(self.by) or 'nothing (one group)'}"

    def explain_unit(self) -> str:
        """Return whose presence is hidden, in words."""
        return f"all rows with one value of {self.unit.column}, none of them dropped; neighbours: {self.unit.neighbors}"

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines about limits, noise and all queries."""
        lines = [
            f"  keys          {self.aggregation.groups} public keys, each shown, zeros included",
            f"  limits        all rows of a unit count; what it adds to all groups, as one vector of "
            f"{number_of(len(self.clipping.coordinates), 'figure')} a group, "
            "is cut to a norm that is chosen privately, like "
            f"the centre and the spread of sums, with {float(self.clipping.surveyed):.1%} of the budget",
            f"  split         {self.split}",
        ]
        for name, query, _ in self.asked:
            lines.append(f"  {name:<13} {describe(query)}")
        if measures:
            times = self.clipping.noise_per_norm
            lines.append(f"  noise         Gaussian, {times:.4g} norms on each group's count; known when it is drawn")
        return lines

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for every measure, whose scales are not known yet."""
        epsilon, delta = self.charge.epsilon_units / 10**18, self.charge.delta_units / 10**18
        rows = [
            {"query": name, "measure": part.measure.kind, "norm": "L2", "mechanism": "gaussian", "epsilon": epsilon,
             "delta": delta, "event": repr(self.charge.fact), "charge": 0}
            for name, parts in ((planned.name, planned.parts) for planned in self._planned())
            for part in parts
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=MEASURE_SCHEMA)

    def error(self, alpha: float) -> pl.DataFrame:
        """Return bounds of the noise of every measure: null, as the noise is known when it is drawn."""
        frame = error_frame(self._planned(), self.aggregation.groups, alpha)
        return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("one", "all"))

    def schema(self) -> pl.Schema:
        """Return the columns of keys and queries."""
        return frame_of_no_groups(self._planned(), self.aggregation.no_keys(), selected=False).schema

    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Survey the units, choose what they are clipped to, clip, draw, and return what is shown."""
        assert exact.by_unit is not None
        drawn = self.clipping.draw(exact.by_unit, exact.keys.height)
        planned = self._planned(drawn.figures)
        columns = list(exact.keys.get_columns())
        for query, (_, _, measures) in zip(planned, self.asked, strict=True):
            columns.extend(answer(query, [_taken(measure, drawn) for measure in measures]))
        frame = in_one_frame(columns)
        return released_by_group(self, planned, frame.clone, entry, _notes(drawn))

    def _planned(self, drawn: Mapping[Measure, NoisyFigure] | None = None) -> tuple[PlannedQuery, ...]:
        """Return the queries with the noise that was drawn, or with some where it is not known yet."""

        def noisy(measure: Measure) -> NoisyMeasure:
            shown, deviation = (measure, 1.0) if drawn is None else (drawn[measure].measure, drawn[measure].deviation)
            return _Clipped(shown, Sensitivity(0, 0), "gaussian", deviation, self.charge)

        def part(measure: Measure) -> Part:
            if measure.kind != "values":
                return noisy(measure)
            return Combined(measure, noisy(ROWS), noisy(Measure("missing", measure.column)), -1)

        return tuple(
            PlannedQuery(name, query, tuple(part(measure) for measure in measures))
            for name, query, measures in self.asked
        )


def _taken(measure: Measure, drawn: ClippedFigures) -> NDArray[np.int64]:
    """Return what a query takes of what was drawn."""
    if measure.kind == "values":
        rows, missing = _taken(ROWS, drawn), _taken(Measure("missing", measure.column), drawn)
        return np.subtract(rows, missing, dtype=np.int64)
    return drawn.figures[measure].values


def _notes(drawn: ClippedFigures) -> list[str]:
    """Return what the release says of the norm, by the noisy numbers of units."""
    said = [f"  clipped to    a norm of {drawn.norm:.6g} rows; about {drawn.cut:.0%} of the units are longer"]
    if drawn.cut > _MANY:
        said.append("  warning       more than a tenth of the units are clipped: figures are too low on average")
    return said
