"""Exact figures of units -> noisy figures of groups: surveyed, fitted, clipped as whole vectors, drawn.

Guarantee
    Everything that is drawn is Gaussian noise on what one unit moves by at most a known distance, in an order in which
    each step may look at what was drawn before: histograms of units, of which each unit is in one cell, and last the
    sums of vectors that were clipped to a norm. With distances D_j and deviations s_j, all steps together are
    (sum of (D_j / s_j)**2)**(1/2)-Gaussian differentially private (Dong, Roth, Su 2022, corollary 3.3, for adaptive
    composition). The one event that is charged has a deviation s for a distance of 1, s_j is at least
    s D_j / sqrt(part_j), and the parts add up to 1 at most: so all steps are no more than the event. The same holds of
    rho, which adds up (Bun, Steinke 2016, lemma 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.unit_sums import UnitSums
from dpfast.mechanisms.clipping import Survey, UnitVectors, choose_norm, clip_to_norm, norms_of, quantile_of
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, gaussian_of_scale, scale_within
from dpfast.queries import Measure
from dpfast.randomness import SystemRandom
from dpfast.releases.planned_queries import exact_of

__all__ = ["ClippedFigures", "Clipping", "Coordinate", "NoisyFigure"]

#: The parts of the budget, of the square of what is drawn, for the choice of a centre, of a spread and of the norm.
_CENTRE, _SPREAD, _NORM = Fraction(1, 200), Fraction(1, 200), Fraction(2, 100)
#: Centres are sought in so many cells between the bounds, spreads and norms in cells that grow by sqrt(2).
_CELLS, _SPREADS, _NORMS = 64, 48, 80
#: The spread of a sum is what so large a share of the units stays below.
_SHARE = 0.95
#: A norm is at least so many steps: their sum over 2**31 units is below 2**62.
_STEPS = 2.0**30
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
class NoisyFigure:
    """What was drawn of a coordinate: the measure as it was fitted, its values by group, their noise's deviation."""

    measure: Measure
    values: NDArray[np.int64]
    deviation: float


@dataclass(frozen=True)
class ClippedFigures:
    """What was drawn: noisy figures by the measures that were asked, the norms of units, and what they were cut to."""

    figures: Mapping[Measure, NoisyFigure]
    norms: Survey
    norm: float

    @property
    def cut(self) -> float:
        """About which share of the units is longer than the norm."""
        above = np.append(self.norms.above(), 0.0)
        return min(float(np.interp(self.norm, self.norms.edges, above)) / max(float(above[0]), 1.0), 1.0)


@dataclass(frozen=True)
class Clipping:
    """How units are clipped, and by which noise.

    Attributes
    ----------
    exact
        The figures of units and groups, in order.
    coordinates
        What is clipped together; rows come first.
    noise
        The event that is charged, for a distance of 1.
    moved
        How many norms, or cells, neighbours are apart: 2 where a unit is replaced, which goes and another comes.

    """

    exact: tuple[Measure, ...]
    coordinates: tuple[Coordinate, ...]
    noise: IntegerNoise
    moved: int

    @property
    def noise_per_norm(self) -> float:
        """The deviation of the noise on a group's count, at a norm of 1."""
        return self.noise.scale * self.moved / math.sqrt(1 - self.surveyed)

    @property
    def surveyed(self) -> Fraction:
        """The part of the budget that all surveys get: a fourth of it where there are very many sums."""
        return min(self._asked_by_surveys, Fraction(1, 4))

    @property
    def _asked_by_surveys(self) -> Fraction:
        sums = [coordinate for coordinate in self.coordinates if coordinate.measure.kind == "sum"]
        return _NORM + sum((_SPREAD + _CENTRE * coordinate.centred for coordinate in sums), Fraction(0))

    def draw(self, sums: UnitSums, groups: int) -> ClippedFigures:
        """Survey the units, choose what they are clipped to, clip, and draw: each call costs the whole event."""
        figures, shown, weights = self._figures(sums), [], []
        for place, coordinate in enumerate(self.coordinates):
            spread = 1.0
            if coordinate.measure.kind == "sum":
                coordinate, figures[place], spread = self._fit(coordinate, figures[place], figures, sums)
            shown.append(coordinate.measure)
            weights.append(coordinate.importance / spread)
        scaled = [figure * weight for figure, weight in zip(figures, weights, strict=True)]
        vectors = UnitVectors(sums.units, sums.groups, scaled, sums.number)
        norms = norms_of(vectors)
        survey = self._survey(norms, np.sqrt(2.0) ** np.arange(_NORMS + 1), _NORM)
        norm = choose_norm(survey, groups, self.noise_per_norm)
        step = 2.0 ** math.floor(math.log2(norm / _STEPS))
        clipped = clip_to_norm(vectors, norms, norm, [step] * len(scaled), groups)
        distance = Fraction(norm) / Fraction(step) * self.moved
        noise = self._noise_within(distance**2, 1 - self.surveyed)
        found = {}
        for coordinate, measure, weight, sum_of_units in zip(self.coordinates, shown, weights, clipped, strict=True):
            noisy = noise.add(sum_of_units, SystemRandom(), threads=None) * (step / weight)
            values = np.clip(np.rint(noisy), -_FAR, _FAR).astype(np.int64)
            found[coordinate.measure] = NoisyFigure(measure, values, noise.scale * step / weight)
        return ClippedFigures(found, survey, norm)

    def _figures(self, sums: UnitSums) -> list[NDArray[np.float64]]:
        """Return the coordinates' figures of every pair, exactly: they are below 2**62, and rounded to float64."""
        found = dict(zip(self.exact, sums.figures, strict=True))
        return [exact_of(coordinate.measure, found).astype(np.float64) for coordinate in self.coordinates]

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
            middle = quantile_of(self._survey(means, edges, _CENTRE), 0.5)
            if middle is not None:
                moved = round(middle)
                measure = replace(measure, centre=measure.centre + moved)
                figure = figure - moved * values
        widest = float(max(abs(measure.lower - measure.centre), abs(measure.upper - measure.centre)))
        lengths, rows = (np.sqrt(np.bincount(sums.units, each * each, sums.number)) for each in (figure, figures[0]))
        ratios = np.divide(lengths, rows, out=np.full(sums.number, np.nan), where=rows > 0)
        edges = widest * np.sqrt(2.0) ** -np.arange(_SPREADS, -1.0, -1.0)
        spread = quantile_of(self._survey(ratios, edges, _SPREAD), _SHARE)
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
        noise = self._noise_within(self.moved, part * self.surveyed / self._asked_by_surveys)
        return Survey(edges, noise.add(counts, SystemRandom()).astype(np.float64), noise.scale)

    def _noise_within(self, l2_squared: int | Fraction, part: Fraction) -> IntegerNoise:
        """Return the noise of one step, on what moves by the root of ``l2_squared``: a part of the whole event."""
        return gaussian_of_scale(scale_within(self.noise, l2_squared, part, "epsilon", Fraction(1)), l2_squared)
