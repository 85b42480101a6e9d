"""Rounds: the marginal that a model errs in most is selected, measured, and fitted; or all of them at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpfast.domain.impossible import Possible
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.mechanisms.selection.exponential import exponential
from dpfast.randomness import RandomSource
from dpfast.synthesis.graphical.at_once import fit_at_once, measure_at_once
from dpfast.synthesis.graphical.candidates import LARGEST_COUNT, SCORE_BITS, Candidates
from dpfast.synthesis.graphical.columns import restored_column
from dpfast.synthesis.graphical.errors import LastSelection
from dpfast.synthesis.graphical.grouping import Axis, Grouping, deviations_of, kinds_of
from dpfast.synthesis.graphical.plan import ModelPlan, Split
from dpfast.synthesis.graphical.softness import FIRMEST, softness_of
from dpfast.synthesis.residuals.planning import ResidualPlan

__all__ = ["Measured", "ModelRounds"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]
Counts = Mapping[Attributes, NDArray[np.int64]]

#: The variance and the softness that stand for none.
_EXACT = 1e-12
#: Values of an attribute whose noisy counts are below so many deviations are grouped.
_RARE = 3.0
#: Up to so many sets are all scored in each round.
_ALL_SCORED = 1000
#: Walks along the tree in each round, and at the end.
_WALKS, _LAST_WALKS = 8, 50


@dataclass(frozen=True)
class Measured:
    """One marginal that was measured.

    Attributes
    ----------
    attributes
        Its own; none for the number of records.
    cells
        How many counts.
    deviation, error95
        Of the noise of each, and what this exceeds with probability 0.05.

    """

    attributes: Attributes
    cells: int
    deviation: float
    error95: float

    @classmethod
    def by(cls, noise: IntegerNoise, attributes: Attributes, cells: int) -> Measured:
        """Return what was measured with noise of its own for each cell."""
        return cls(attributes, cells, noise.deviation, noise.half_width(0.05))


@dataclass
class ModelRounds:
    """A model that is measured and fitted, round by round.

    Attributes
    ----------
    sizes
        How many values each attribute has.
    candidates
        What may be measured.
    plan
        What is paid for.
    most_cells
        The most that the model's tables may have together.
    sensitivity
        What neighbours change in a score.
    possible
        Which cells records can be in, of some sets of attributes; cells of groups, after `run`.
    grouping
        Rare values that are counted as one, after `run`; attributes' values are groups from then on.
    held
        What the model was fitted to, after `run`.
    last
        The last selection, if there was any.
    complete
        Whether all was measured that was paid for, after `run`.

    """

    sizes: tuple[int, ...]
    candidates: Candidates
    plan: ModelPlan
    most_cells: float
    sensitivity: int
    possible: Sequence[Possible] = ()
    log: list[Measured] = field(default_factory=list)
    held: dict[Attributes, Measurement] = field(default_factory=dict)
    grouping: Grouping = field(init=False)
    last: LastSelection | None = None
    split: Split | None = None
    complete: bool = True
    _sums: list[tuple[float, float]] = field(default_factory=list)
    _counted: dict[Attributes, NDArray[np.int64]] = field(default_factory=dict)
    _scores: NDArray[np.int64] = field(init=False, repr=False)
    _is_scored: NDArray[np.bool_] = field(init=False, repr=False)

    def run(
        self,
        exact: Counts,
        records: int | None,
        source: RandomSource,
        progress: Callable[[int], object],
    ) -> TreeWeights:
        """Return the weights that fit all that was measured of the counts; ``records`` is their number if public.

        Everything after a measurement is made of noisy numbers alone.
        """
        way = self.plan.choose(self._count_records(exact, records, source))
        if isinstance(way, ResidualPlan):
            return self._at_once(way, exact, source, progress)
        self.split = way
        self._scores = np.zeros(len(self.candidates.sets), np.int64)
        self._is_scored = np.zeros(len(self.candidates.sets), np.bool_)
        self._measure_columns(way, exact, source)
        weights = self._fit(self._total, JunctionTree.holding(self.grouping.sizes, self._together()))
        for number in range(way.rounds):
            total, tree = self._round(way, number, weights, exact, source)
            del weights  # there is one model at a time, and what is set aside of the one before
            weights = self._fit(total, tree)
            if progress(number + 1) is False:
                self.complete = number + 1 == way.rounds
                break
        weights.fit(_LAST_WALKS)
        self._counted.clear()
        del self._scores
        return weights

    def told(self, done: int) -> str:
        """Return what users are told after so many rounds."""
        return f"{done} of {self.split.rounds if self.split else 1} rounds"

    def _count_records(self, exact: Counts, records: int | None, source: RandomSource) -> float:
        """Return about how many records there are, 1 at least."""
        noise = self.plan.records
        if noise is None:
            self._sums.append((float(max(records or 0, 1)), _EXACT))
        else:
            counts = _noisy(exact[0,].sum(keepdims=True), noise, source)
            self.log.append(Measured.by(noise, (), 1))
            self._sums.append((float(counts[0]), _deviation(noise) ** 2))
        return self._total

    @property
    def _total(self) -> float:
        """The number of records that all measurements say together, each by its weight."""
        weight = sum(1.0 / variance for _, variance in self._sums)
        return max(sum(total / variance for total, variance in self._sums) / weight, 1.0)

    def _at_once(
        self, plan: ResidualPlan, exact: Counts, source: RandomSource, progress: Callable[[int], object]
    ) -> TreeWeights:
        """Measure all sets at once, and return the weights that fit them."""
        self.grouping = Grouping(tuple(Axis.whole(size) for size in self.sizes))
        measured, total = measure_at_once(plan, exact, source)
        if plan.noises[()] is not None:
            self._sums.append((float(total), plan.residual_variance(())))
        for held, one in measured.items():
            self.log.append(Measured(held, one.values.size, math.sqrt(one.variance), one.error95))
        self.held = measured
        self.held[()] = Measurement((), np.array([self._total]), _EXACT, _EXACT)
        tree = JunctionTree.holding(self.sizes, self._together())
        weights = TreeWeights(tree, self._total, list(self.held.values()), self.possible)
        fit_at_once(weights, len(measured))
        progress(1)
        return weights

    def _measure_columns(self, split: Split, exact: Counts, source: RandomSource) -> None:
        """Measure each attribute alone; group its rare values, and hold what was measured of the groups."""
        noisy = [_noisy(exact[place,], noise, source).astype(np.float64) for place, noise in enumerate(split.first)]
        for place, (values, noise) in enumerate(zip(noisy, split.first, strict=True)):
            self.log.append(Measured.by(noise, (place,), values.size))
            if self.plan.records is not None:
                self._sums.append((float(values.sum()), values.size * _deviation(noise) ** 2))
        axes = []
        for place, (values, noise) in enumerate(zip(noisy, split.first, strict=True)):
            deviation = _deviation(noise)
            expected = restored_column(values, noise, self._total)
            axis = Axis.of(values, expected, _RARE * deviation, kinds_of(place, self.sizes, self.possible))
            axes.append(axis)
            softness = FIRMEST * deviations_of(axis, deviation)
            held = self.held[place,] = Measurement((place,), axis.grouped(values), deviation**2, softness)
            held.targets = axis.grouped(expected)
        self.grouping = Grouping(tuple(axes))
        self.possible = [self.grouping.possible(one) for one in self.possible]
        self.held[()] = Measurement((), np.array([self._total]), _EXACT, _EXACT)

    def _round(
        self, split: Split, number: int, weights: TreeWeights, exact: Counts, source: RandomSource
    ) -> tuple[float, JunctionTree]:
        """Select and measure; return the number of records, and the tree of the model that is fitted next."""
        self.last = None
        marginals = TreeMarginals(weights)
        chosen, scored, number_of = self._select(split, number, weights.tree, marginals, exact, source)
        noise = split.noise
        counts = _noisy(self._grouped(chosen, exact), noise, source).astype(np.float64)
        self.log.append(Measured.by(noise, chosen, counts.size))
        self._hold(chosen, counts, _deviation(noise), marginals.marginal(chosen))
        if chosen in scored and split.selection is not None:
            slack = 2.0 * self.sensitivity / 2**SCORE_BITS / split.selection
            measured = counts, _deviation(noise)
            self.last = LastSelection(weights.narrow(), scored, number_of, chosen, noise.deviation, measured, slack)
        known = weights.tree.holding_one_more(chosen)
        return weights.total, JunctionTree.holding(self.grouping.sizes, self._together(), known)

    def _together(self) -> list[Attributes]:
        """Return the sets of attributes that must be in one clique each."""
        return [*self.held, *(one.attributes for one in self.possible)]

    def _hold(self, attributes: Attributes, values: Floats, deviation: float, model: Floats) -> None:
        """Take in a measurement; the model's counts are those before it is fitted."""
        held = self.held.get(attributes)
        if held is None:
            held = self.held[attributes] = Measurement(attributes, values, deviation**2, 0.0)
        else:
            held.add(values, deviation**2)
        held.softness[:] = softness_of(held.values, model, held.variance**0.5)

    def _grouped(self, attributes: Attributes, exact: Counts) -> NDArray[np.int64]:
        """Return exact counts by groups, which are kept for the next round: private."""
        found = self._counted.get(attributes)
        if found is None:
            found = self._counted[attributes] = self.grouping.counts(attributes, exact[attributes])
        return found

    def _fit(self, total: float, tree: JunctionTree) -> TreeWeights:
        weights = TreeWeights(tree, total, list(self.held.values()), self.possible)
        weights.fit(_WALKS)
        return weights

    def _select(
        self,
        split: Split,
        number: int,
        tree: JunctionTree,
        marginals: TreeMarginals,
        exact: Counts,
        source: RandomSource,
    ) -> tuple[Attributes, dict[Attributes, int], int]:
        """Return the set that this round measures: drawn by its score among those that the model has room for.

        Beside it are the weights of those that were scored by the model as it is, and the number of all that could be
        drawn; nothing if none was drawn by a score. Where there are many sets, those keep their scores by an earlier
        model that have no attribute of what was measured last: both models are made of noisy counts.
        """
        sets = self.candidates.sets
        places = self._with_room(split, number, tree)
        if not places.size:
            return (number % len(self.sizes),), {}, 0
        if places.size == 1 or split.selection is None:
            return sets[places[number % places.size]], {}, 0
        fresh = self._to_score(number, places).tolist()
        counts = {sets[place]: self._grouped(sets[place], exact) for place in fresh}
        scores = self.candidates.scores(fresh, counts, marginals.marginal, split.noise.deviation)
        self._scores[fresh] = scores
        self._is_scored[fresh] = True
        chosen = places[int(exponential(self._scores[places], split.selection, self.sensitivity, random=source))]
        return sets[chosen], {sets[place]: self.candidates.weights[place] for place in fresh}, places.size

    def _to_score(self, number: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which sets are scored in this round; the others have been scored in an earlier one."""
        turns = -(-len(self.candidates.sets) // _ALL_SCORED)
        if turns == 1:
            return places
        stale = ~self._is_scored
        stale[number % turns :: turns] = True
        for attribute in self.log[-1].attributes:
            stale[self.candidates.holding.get(attribute, [])] = True
        return places[stale[places]]

    def _with_room(self, split: Split, number: int, tree: JunctionTree) -> NDArray[np.int64]:
        """Return the candidates beside which the model would not be too large: it may grow as the budget is spent."""
        cells = tree.cells_with(self._together(), self.candidates.sets, self.candidates.places_of_pairs)
        for allowed in (self.most_cells * (number + 1) / split.rounds, self.most_cells):
            places = np.flatnonzero(cells <= max(allowed, tree.cells))
            if places.size:
                break
        return places


def _noisy(exact: NDArray[np.int64], noise: IntegerNoise, source: RandomSource) -> NDArray[np.int64]:
    return noise.add(np.minimum(exact, LARGEST_COUNT), source)


def _deviation(noise: IntegerNoise) -> float:
    """Return the deviation of noise, never 0: of noise far below 1, which is 0 almost surely, it would be."""
    return max(noise.deviation, noise.scale)
