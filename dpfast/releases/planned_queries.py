"""Queries by group with their noise, and a charge for each measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.columns.bounds import show_bounds
from dpfast.columns.ranks import PARTS
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.gaussian import gaussian_kernel
from dpfast.mechanisms.noise.half_widths import half_width
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, gaussian_of_scale, laplace_of_scale
from dpfast.mechanisms.noise.joint_widths import Noise, joint_reach
from dpfast.mechanisms.noise.laplace import laplace_kernel
from dpfast.mechanisms.quantiles.joint import JointCalibration
from dpfast.mechanisms.quantiles.tree import Calibration, QuantileTree, rank_error
from dpfast.mechanisms.selection.modes import count_error, count_slope
from dpfast.queries import DistributionQuery, Measure, ModeQuery, QuantileQuery, Query, RankedQuery
from dpfast.releases.charged import Charged
from dpfast.releases.population_intervals import POPULATION, Sampled, has_population_interval
from dpfast.releases.ranked_values import DrawnValues
from dpfast.showing import number_of

__all__ = [
    "COUNT",
    "RANKS",
    "ROWS",
    "SUFFIXES",
    "Combined",
    "DrawnModes",
    "DrawnPart",
    "DrawnQuantiles",
    "DrawnTogether",
    "Mechanism",
    "NoisyMeasure",
    "Part",
    "PlannedQuery",
    "charges_of",
    "columns_of",
    "describe",
    "drawn_parts",
    "exact_measures",
    "exact_of",
]

Mechanism: TypeAlias = Literal["laplace", "gaussian"]

#: What a query's name is followed by in the columns of a release.
SUFFIXES = ("", "_scale", "_lower", "_upper")

#: What the name of quantiles is followed by where their error in ranks stands.
RANKS = "_ranks"

#: What the name of a mode is followed by where its error in rows stands.
ROWS = "_rows"

#: What the name of ranked values is followed by where their numbers of rows stand.
COUNT = "_count"


@dataclass(frozen=True)
class NoisyMeasure(Charged):
    """One measure with its noise: everything in steps of the measure.

    Attributes
    ----------
    measure
        What is aggregated.
    sensitivity
        How far it can move between neighbours.
    mechanism, scale
        The noise: Laplace b or Gaussian sigma.
    charge
        What it costs. Measures that are drawn together share one charge, whose event is all of them.

    """

    measure: Measure
    sensitivity: Sensitivity
    mechanism: Mechanism
    scale: float
    charge: Charge

    @property
    def noise(self) -> IntegerNoise:
        """The noise, as the event that it is of this measure alone."""
        if self.mechanism == "laplace":
            return laplace_of_scale(self.scale, self.sensitivity.l1)
        return gaussian_of_scale(self.scale, self.sensitivity.l2_squared)

    @property
    def kernel(self) -> str:
        """The kernel that will draw the noise."""
        return laplace_kernel(self.scale) if self.mechanism == "laplace" else gaussian_kernel(self.scale)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, in steps, before it is rounded."""
        return self.scale * self.deviation_of_ones

    @property
    def deviation_of_ones(self) -> float:
        """The standard deviation of noise of scale 1."""
        return math.sqrt(2.0) if self.mechanism == "laplace" else 1.0

    def steps(self, miss: float) -> int:
        """Return a bound of the noise, in steps, that holds with probability at least 1 - ``miss``."""
        return half_width(self.mechanism, self.scale, miss)

    def reach(self, miss: float) -> float:
        """Return the same in the column's unit."""
        return self.steps(miss) * self.step

    def noises(self, worth: float) -> tuple[Noise, ...]:
        """Return the noise, with what a step counts."""
        return (Noise(self.mechanism, self.scale, worth),)


@dataclass(frozen=True)
class Combined:
    """A number of rows that two noisy numbers of rows make together: their sum, or their difference.

    Attributes
    ----------
    measure
        What it stands for.
    first, second, sign
        It is ``first + sign * second``.

    """

    measure: Measure
    first: NoisyMeasure
    second: NoisyMeasure
    sign: int

    @property
    def step(self) -> float:
        """What one step is worth: a row."""
        return 1.0

    @property
    def mechanism(self) -> Mechanism:
        """The noise of the first."""
        return self.first.mechanism

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, before it is rounded."""
        return math.hypot(self.first.deviation, self.second.deviation)

    @property
    def scale(self) -> float:
        """The scale of one noise of the kind of the first and of the same variance."""
        return self.deviation / self.first.deviation_of_ones

    def steps(self, miss: float) -> int:
        """Return a bound of the noise, in rows, that holds with probability at least 1 - ``miss``."""
        return math.floor(joint_reach(self.noises(1.0), miss))

    def reach(self, miss: float) -> float:
        """Return the same."""
        return self.steps(miss)

    def noises(self, worth: float) -> tuple[Noise, ...]:
        """Return the noises of both, with what a row counts: each is drawn by itself."""
        return self.first.noises(worth) + self.second.noises(worth)


@dataclass(frozen=True)
class Drawn(Charged):
    """What the exponential mechanism selects in every group.

    Attributes
    ----------
    measure
        What is aggregated.
    epsilon
        What one draw is made with, read as the decimal that it denotes.
    unit
        It fixes the sensitivities.
    charge
        What it costs: the exponential mechanism, as often as a privacy unit pays for it.

    """

    measure: Measure
    epsilon: float
    unit: PrivacyUnit
    charge: Charge

    @property
    def draws(self) -> int:
        """How many draws, over all groups, a privacy unit pays for."""
        return self.charge.count


@dataclass(frozen=True)
class DrawnModes(Drawn):
    """Counts of rows by candidate, of which the most common is selected."""

    @property
    def kernel(self) -> str:
        """The kernel that will select."""
        return "selection"

    @property
    def sensitivity(self) -> int:
        """How far a unit can move one group's counts, in rows."""
        return self.unit.max_rows_per_group

    @property
    def slope(self) -> float:
        """What counts are multiplied by."""
        return count_slope(self.epsilon, self.unit.max_rows_per_group, self.unit.neighbors)

    @property
    def scale(self) -> float:
        """How many rows divide a probability by e."""
        return 1 / self.slope

    def reach(self, miss: float) -> int:
        """Return how many rows fewer the answer has than the most common candidate.

        The bound holds with probability at least 1 - ``miss``.
        """
        unit = self.unit
        return count_error(self.measure.points, self.epsilon, unit.max_rows_per_group, unit.neighbors, miss)


@dataclass(frozen=True)
class DrawnQuantiles(Drawn):
    """Points of which quantiles are drawn by the exponential mechanism, by halves.

    Attributes
    ----------
    calibration
        The nodes of a group, each level drawn with ``epsilon``; ``measure`` collects points of a grid, in steps.

    """

    calibration: Calibration

    @property
    def tree(self) -> QuantileTree:
        """The nodes of a group."""
        return self.calibration.tree

    @property
    def kernel(self) -> str:
        """The kernel that will draw the quantiles."""
        return "quantiles"

    @property
    def sensitivity(self) -> Fraction:
        """The largest sensitivity of a node, in ranks."""
        return max(Fraction(self.calibration.sensitivity(node), node.d) for level in self.tree.levels for node in level)

    @property
    def scale(self) -> float:
        """How many ranks divide a probability by e, at the largest sensitivity."""
        return 1 / min(self.calibration.slope(node) * node.d for level in self.tree.levels for node in level)

    def reach(self, miss: float) -> float:
        """Return a bound of the error in ranks of all quantiles of a group, with probability at least 1 - ``miss``.

        A node is drawn between two quantiles that were drawn before. Their errors move its rank by no more than the
        larger of them, and its own error adds to that. So the bounds of all levels add up. They hold together with
        probability at least 1 minus the sum of the probabilities that one of them fails.

        This is the worst case over all data. It arises where the values near the quantile lie one point apart, and
        nearly all other points lie just beyond the bound. There the probability of a larger error is the number of
        points times exp(-slope * ranks), up to a small factor. Hence the logarithm of the number of points in the
        bound, 41 for floats by default. Of values that are spread over the bounds the error is a few ranks.
        """
        each = miss / len(self.tree.parts)
        points = self.measure.points
        errors = [
            max(rank_error(node, self.calibration.slope(node), points, each) for node in level)
            for level in self.tree.levels
        ]
        return math.fsum(errors)


@dataclass(frozen=True)
class DrawnTogether(Drawn):
    """Points of which all quantiles are drawn by one exponential mechanism, given a noisy number of rows.

    Attributes
    ----------
    calibration
        The quantiles of a group, drawn with ``epsilon``; ``measure`` collects points of a grid, in steps.
    counted
        What the number of rows costs.

    """

    calibration: JointCalibration
    counted: Charge

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it costs: the number of rows, then the quantiles."""
        return self.counted, self.charge

    @property
    def kernel(self) -> str:
        """The kernel that will draw the quantiles."""
        return "joint quantiles"

    @property
    def sensitivity(self) -> int:
        """How far a unit can move a group's scores, in ranks."""
        return self.calibration.sensitivity

    @property
    def scale(self) -> float:
        """How many ranks, between two quantiles, divide a probability by e."""
        return self.calibration.scale

    def reach(self, miss: float) -> float:
        """Return a bound of the error in ranks of all quantiles of a group, with probability at least 1 - ``miss``."""
        return self.calibration.rank_error(self.measure.points, miss)


#: What is drawn once for every group.
DrawnPart: TypeAlias = NoisyMeasure | DrawnQuantiles | DrawnTogether | DrawnModes | DrawnValues

#: What a query is answered from.
Part: TypeAlias = DrawnPart | Combined


@dataclass(frozen=True)
class PlannedQuery:
    """A query by name with what it is answered from: one part, or a mean's sum and number of values.

    Queries of one plan share noisy measures.
    """

    name: str
    query: Query
    parts: tuple[Part, ...]
    sampled: Sampled | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns in a release."""
        return columns_of(self.name, self.query, population=self.sampled is not None)


def drawn_parts(answers: Iterable[Sequence[Part]]) -> list[DrawnPart]:
    """Return what is drawn for queries that are answered from these parts: each once, in order."""
    found: list[DrawnPart] = []
    seen = set()
    for parts in answers:
        for part in parts:
            for drawn in (part.first, part.second) if isinstance(part, Combined) else (part,):
                # A selection is one query's own, even if another asks for the same.
                if not isinstance(drawn, NoisyMeasure):
                    found.append(drawn)
                elif drawn.measure not in seen:
                    seen.add(drawn.measure)
                    found.append(drawn)
    return found


def charges_of(parts: Iterable[DrawnPart]) -> list[Charge]:
    """Return what is charged for parts, in order: once for those that share a charge."""
    return list({id(charge): charge for part in parts for charge in part.charges}.values())


def exact_measures(measures: Iterable[Measure]) -> list[Measure]:
    """Return the exact figures that measures are made of, each once: missing values are rows less values."""
    found: dict[Measure, None] = {}
    for measure in measures:
        if measure.kind == "missing":
            found |= {Measure("rows"): None, Measure("values", measure.column): None}
        else:
            found[measure] = None
    return list(found)


def exact_of(measure: Measure, figures: Mapping[Measure, Any]) -> Any:
    """Return a measure's exact figures, of those that `exact_measures` names."""
    if measure.kind == "missing":
        return figures[Measure("rows")] - figures[Measure("values", measure.column)]
    return figures[measure]


def columns_of(name: str, query: Query, *, population: bool = False) -> tuple[str, ...]:
    """Return the names of a query's columns in a release; with intervals for a population where they are known."""
    if isinstance(query, QuantileQuery):
        return (*(name + label for label in query.labels), name + RANKS)
    if isinstance(query, ModeQuery):
        return (name, name + ROWS)
    if isinstance(query, RankedQuery):
        return (name, name + COUNT, *(name + suffix for suffix in SUFFIXES[1:]))
    if isinstance(query, DistributionQuery):
        return (name + ("_bin" if query.kind == "histogram" else "_edge"), *(name + suffix for suffix in SUFFIXES))
    more = POPULATION if population and has_population_interval(query) else ()
    return tuple(name + suffix for suffix in (*SUFFIXES, *more))


def describe(query: Query) -> str:
    """Return a query in words."""
    if query.in_words:
        return query.in_words
    if isinstance(query, ModeQuery):
        return f"most common of {number_of(len(query.candidates), 'candidate')} in {query.column}"
    if query.bounds is None:
        return query.kind if query.column is None else f"{query.kind} of {query.column}"
    what: str = query.kind
    if isinstance(query, QuantileQuery):
        listed = ", ".join(f"{query.parts[place] / PARTS:.7g}" for place in query.order)
        what = f"quantile {listed}" if len(query.parts) == 1 else f"quantiles {listed}"
    return f"{what} of {query.column}, values clipped to {show_bounds(query.bounds)}"
