"""Queries by public keys whose units are clipped as a whole: what is surveyed, chosen, clipped and drawn.

Guarantee
    Everything that is drawn is Gaussian noise on what one unit moves by at most a known distance, in an order in which
    each step may look at what was drawn before: histograms of units, of which each unit is in one cell, and last the
    sums of vectors that were clipped to a norm. With distances D_j and deviations s_j, all steps together are
    (sum of (D_j / s_j)**2)**(1/2)-Gaussian differentially private (Dong, Roth, Su 2022, corollary 3.3, for adaptive
    composition), and so no more than the one event that is charged: s_j is at least s D_j / sqrt(part_j) for the event's
    s at a distance of 1, and the parts add up to 1 at most. The same holds of rho.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.sensitivity import Sensitivity
from dpfast.aggregation.grouping import Aggregates
from dpfast.aggregation.unit_sums import UnitSums
from dpfast.columns import borrow
from dpfast.ledger import Charge
from dpfast.mechanisms.clipping import Survey, UnitVectors, choose_norm, clip_to_norm, middle_of, norms_of, upper_of
from dpfast.mechanisms.noise.gaussian import gaussian_noise
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, scale_within
from dpfast.queries import Measure, Query
from dpfast.randomness import SystemRandom
from dpfast.releases.answers import answer
from dpfast.releases.blueprint import Blueprint
from dpfast.releases.drawing import frame_of_no_groups
from dpfast.releases.explanation import MEASURE_SCHEMA, error_frame
from dpfast.releases.group_blueprint import released_by_group
from dpfast.releases.measurements import ROWS
from dpfast.releases.planned_queries import Combined, NoisyMeasure, Part, PlannedQuery, describe
from dpfast.releases.release import Release

__all__ = ["ClippedBlueprint", "Coordinate"]

#: The parts of the budget, of the square of what is drawn, for the choice of a centre, of a spread and of the norm.
_CENTRE, _SPREAD, _NORM = Fraction(1, 100), Fraction(1, 100), Fraction(3, 100)
#: Centres are sought in so many cells between the bounds, spreads and norms in cells that grow by sqrt(2).
_CELLS, _SPREADS, _NORMS = 64, 48, 80
#: The spread of a sum is what so large a share of the units stays below.
_SHARE = 0.9
#: A norm is so many steps.
_STEPS = 2.0**22
#: A warning says so where more of the units are cut.
_MANY = 0.1
_FAR = 2.0**62


@dataclass(frozen=True)
class Coordinate:
    """One of the figures that are clipped together.

    Attributes
    ----------
    measure
        The figure.
    importance
        How much it weighs beside the rows, once its spread is as large.
    centred
        Whether it is of differences to a centre that is chosen.

    """

    measure: Measure
    importance: float
    centred: bool = False


@dataclass(frozen=True)
class _Clipped(NoisyMeasure):
    """A noisy measure of what clipping left, which was rounded to whole steps after the noise."""

    def steps(self, miss: float) -> int:
        """Return a bound of the noise and of the rounding."""
        return super().steps(miss) + 1


@dataclass(frozen=True, kw_only=True)
class ClippedBlueprint(Blueprint):
    """What a release with units clipped as a whole will do and cost.

    Attributes
    ----------
    asked
        The queries by name, each with its measures and whether it is of whole numbers.
    exact
        What is aggregated for each unit and group.
    coordinates
        What is clipped together.
    noise, charge
        The event that is charged, for a distance of 1, and the charge.
    split
        In words, how the budget was split.

    """

    asked: tuple[tuple[str, Query, tuple[Measure, ...], bool], ...]
    exact: tuple[Measure, ...]
    coordinates: tuple[Coordinate, ...]
    noise: IntegerNoise
    charge: Charge
    split: str

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The one charge."""
        return (self.charge,)

    @property
    def about(self) -> str:
        """What is released."""
        return f"{len(self.asked)} queries by {', '.join(self.by) or 'nothing (one group)'}"

    @property
    def main(self) -> Fraction:
        """The part of the budget that is left for the figures."""
        surveys = _NORM
        for coordinate in self.coordinates:
            surveys += (_SPREAD + _CENTRE * coordinate.centred) * (coordinate.measure.kind == "sum")
        # With very many sums the surveys get a fourth of it all.
        return max(1 - surveys, Fraction(3, 4))

    def part(self, of_survey: Fraction) -> Fraction:
        """Return the part of the budget that one survey gets."""
        surveys = sum(
            (
                (_SPREAD + _CENTRE * coordinate.centred) * (coordinate.measure.kind == "sum")
                for coordinate in self.coordinates
            ),
            _NORM,
        )
        return of_survey * (1 - self.main) / surveys

    def explain_noise(self, *, measures: bool) -> list[str]:
        """Return the lines about limits, noise and all queries."""
        lines = [
            f"  keys          {self.aggregation.groups} public keys, each shown, zeros included",
            f"  limits        all rows of a unit count; what it adds to all groups, as one vector of "
            f"{len(self.coordinates)} figures a group, is scaled down to a norm that is chosen privately, like the centre "
            f"and the spread of sums, by noisy histograms of units: {float(1 - self.main):.0%} of the budget",
            f"  split         {self.split}",
        ]
        for name, query, _, _ in self.asked:
            lines.append(f"  {name:<13} {describe(query)}")
        if measures:
            times = self.noise.scale / math.sqrt(self.main) * self._moved
            lines.append(f"  noise         Gaussian, {times:.4g} norms on each group's count; known when it is drawn")
        return lines

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with a row for every measure, whose scales are not known yet."""
        epsilon, delta = self.charge.epsilon_units / 10**18, self.charge.delta_units / 10**18
        rows = [
            {"query": name, "measure": part.measure.kind, "norm": "L2", "mechanism": "gaussian", "epsilon": epsilon,
             "delta": delta, "event": repr(self.charge.fact), "charge": 0}
            for name, parts in ((planned.name, planned.parts) for planned in self._planned(1.0, {}))
            for part in parts
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=MEASURE_SCHEMA)

    def error(self, alpha: float) -> pl.DataFrame:
        """Return bounds of the noise of every measure: null, as the noise is known when it is drawn."""
        frame = error_frame(self._planned(1.0, {}), self.aggregation.groups, alpha)
        return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("one", "all"))

    def schema(self) -> pl.Schema:
        """Return the columns of keys and queries."""
        return frame_of_no_groups(self._planned(1.0, {}), self.aggregation.no_keys(), selected=False).schema

    @property
    def _moved(self) -> int:
        """How many norms, or cells, neighbours are apart: a replaced unit is one that goes and one that comes."""
        return 2 if self.unit.neighbors == "replace" else 1

    def draw(self, exact: Aggregates, entry: int) -> Release:
        """Survey the units, choose what they are clipped to, clip, draw, and return what is shown."""
        assert exact.by_unit is not None
        sums, groups = exact.by_unit, exact.keys.height
        figures = self._figures(sums)
        coordinates, spreads = list(self.coordinates), dict[Measure, float]()
        for place, coordinate in enumerate(coordinates):
            if coordinate.measure.kind == "sum":
                coordinates[place], figures[place], spread = self._fit(coordinate, figures[place], figures, sums)
                spreads[coordinates[place].measure] = spread
        weights = [coordinate.importance / spreads.get(coordinate.measure, 1.0) for coordinate in coordinates]
        scaled = [figure * weight for figure, weight in zip(figures, weights, strict=True)]
        vectors = UnitVectors(sums.units, sums.groups, scaled, sums.number)
        norms = norms_of(vectors)
        edges = np.sqrt(2.0) ** np.arange(_NORMS + 1)
        survey = self._survey(norms, edges, _NORM)
        each = self.noise.scale * self._moved / math.sqrt(self.main)
        norm = choose_norm(survey, groups, each)
        step = 2.0 ** math.floor(math.log2(norm / _STEPS))
        noisy = clip_to_norm(vectors, norms, norm, [step] * len(scaled), groups)
        distance = Fraction(norm) / Fraction(step) * self._moved
        scale = scale_within(self.noise, distance**2, self.main, "epsilon", Fraction(1))
        measured: dict[Measure, tuple[NDArray[np.int64], float]] = {}
        for place, (coordinate, original) in enumerate(zip(coordinates, self.coordinates, strict=True)):
            drawn = gaussian_noise(borrow(noisy[place]), scale, SystemRandom())
            back = step / weights[place]
            whole = np.clip(np.rint(drawn * back), -_FAR, _FAR).astype(np.int64)
            measured[original.measure] = whole, scale * back
        centres = {original.measure: one.measure for original, one in zip(self.coordinates, coordinates, strict=True)}
        planned = self._planned(1.0, {measure: deviation for measure, (_, deviation) in measured.items()}, centres)
        columns = list(exact.keys.get_columns())
        for query in planned:
            columns.extend(answer(query, [_taken(part, measured, centres) for part in query.parts]))
        frame = pl.DataFrame({column.name: column for column in columns})
        return released_by_group(self, planned, frame.clone, entry, _notes(survey, norm))

    def _figures(self, sums: UnitSums) -> list[NDArray[np.float64]]:
        """Return the coordinates' figures of every pair, exactly: they are below 2**62, and rounded to float64."""
        found = dict(zip(self.exact, sums.figures, strict=True))
        figures = []
        for coordinate in self.coordinates:
            measure = coordinate.measure
            if measure.kind == "missing":
                figures.append((found[ROWS] - found[Measure("values", measure.column)]).astype(np.float64))
            else:
                figures.append(found[measure].astype(np.float64))
        return figures

    def _fit(
        self,
        coordinate: Coordinate,
        figure: NDArray[np.float64],
        figures: Sequence[NDArray[np.float64]],
        sums: UnitSums,
    ) -> tuple[Coordinate, NDArray[np.float64], float]:
        """Return a sum with its centre chosen, its figures, and how large it is to one row for most units."""
        measure = coordinate.measure
        values = self._values(measure, figures)
        if coordinate.centred:
            edges = np.linspace(measure.lower - measure.centre, measure.upper - measure.centre, _CELLS + 1)
            totals, counts = (np.bincount(sums.units, each, sums.number) for each in (figure, values))
            means = np.divide(totals, counts, out=np.full(sums.number, np.nan), where=counts > 0)
            middle = middle_of(self._survey(means, edges, _CENTRE))
            if middle is not None:
                moved = round(middle)
                measure = replace(measure, centre=measure.centre + moved)
                figure = figure - moved * values
        widest = float(max(abs(measure.lower - measure.centre), abs(measure.upper - measure.centre)))
        lengths, rows = (np.sqrt(np.bincount(sums.units, each * each, sums.number)) for each in (figure, figures[0]))
        ratios = np.divide(lengths, rows, out=np.full(sums.number, np.nan), where=rows > 0)
        edges = widest * np.sqrt(2.0) ** -np.arange(_SPREADS, -1.0, -1.0)
        spread = upper_of(self._survey(ratios, edges, _SPREAD), _SHARE)
        return replace(coordinate, measure=measure), figure, widest if spread is None else spread

    def _values(self, measure: Measure, figures: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return how many values of a sum's column every pair has; all rows where that is not counted."""
        missing = Measure("missing", measure.column)
        places = [place for place, one in enumerate(self.coordinates) if one.measure == missing]
        return figures[0] - figures[places[0]] if places else figures[0]

    def _survey(self, numbers: NDArray[np.float64], edges: NDArray[np.float64], part: Fraction) -> Survey:
        """Return a noisy histogram of units: each with a number is in one cell, those beyond in the outermost."""
        told = numbers[~np.isnan(numbers)]
        cells = np.clip(np.searchsorted(edges, told, side="right") - 1, 0, edges.size - 2)
        counts = np.bincount(cells, minlength=edges.size - 1).astype(np.int64)
        # One unit moves a count by 1, a replaced one two counts.
        scale = scale_within(self.noise, self._moved, self.part(part), "epsilon", Fraction(1))
        noisy = gaussian_noise(borrow(counts), scale, SystemRandom())
        return Survey(edges, noisy.astype(np.float64), scale)

    def _planned(
        self,
        deviation: float,
        deviations: Mapping[Measure, float],
        centres: Mapping[Measure, Measure] | None = None,
    ) -> tuple[PlannedQuery, ...]:
        """Return the queries with the noise that they have, or with ``deviation`` where it is not known yet."""

        def noisy(measure: Measure) -> NoisyMeasure:
            shown = measure if centres is None else centres[measure]
            moved = Sensitivity(0, 0)
            return _Clipped(shown, moved, "gaussian", deviations.get(measure, deviation), self.charge)

        def part(measure: Measure) -> Part:
            if measure.kind != "values":
                return noisy(measure)
            return Combined(measure, noisy(ROWS), noisy(Measure("missing", measure.column)), -1)

        return tuple(
            PlannedQuery(name, query, tuple(part(measure) for measure in measures), whole)
            for name, query, measures, whole in self.asked
        )


def _taken(
    part: Part, measured: Mapping[Measure, tuple[NDArray[np.int64], float]], centres: Mapping[Measure, Measure]
) -> NDArray[Any]:
    """Return what a query takes of what was drawn."""
    if isinstance(part, Combined):
        return _taken(part.first, measured, centres) + part.sign * _taken(part.second, measured, centres)
    original = next(measure for measure, shown in centres.items() if shown == part.measure)
    return measured[original][0]


def _notes(survey: Survey, norm: float) -> list[str]:
    """Return what the release says of the norm, by the noisy numbers of units."""
    above = survey.above()
    units = max(float(above[0]), 1.0)
    cut = float(np.interp(norm, survey.edges, np.append(above, 0.0))) / units
    said = [f"  clipped to    a norm of {norm:.6g} rows; about {min(cut, 1.0):.0%} of the units are longer"]
    if cut > _MANY:
        said.append("  warning       more than a tenth of the units are clipped: figures are too low on average")
    return said
