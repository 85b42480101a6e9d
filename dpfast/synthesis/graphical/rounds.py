"""Rounds: the marginal that a model errs in most is selected, measured, and fitted."""

from __future__ import annotations

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
from dpfast.synthesis.graphical.candidates import LARGEST_COUNT, SCORE_BITS, Candidates
from dpfast.synthesis.graphical.errors import LastSelection
from dpfast.synthesis.graphical.grouping import Axis, Grouping, deviations_of, kinds_of
from dpfast.synthesis.graphical.plan import ModelPlan
from dpfast.synthesis.graphical.softness import FIRMEST, softness_of

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
    """One marginal that was measured: its attributes, the noise, and the noisy counts."""

    attributes: Attributes
    noise: IntegerNoise
    counts: NDArray[np.int64]


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
    _counted: dict[Attributes, NDArray[np.int64]] = field(default_factory=dict)
    _scores: dict[int, int] = field(default_factory=dict)

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
        for place, noise in enumerate(self.plan.first):
            self.log.append(Measured((place,), noise, _noisy(exact[place,], noise, source)))
        total = float(max(records, 1)) if records is not None else self._total()
        self._group(total)
        weights = self._fit(total, JunctionTree.holding(self.grouping.sizes, self._together()))
        for number in range(self.plan.rounds):
            weights = self._round(number, weights, exact, source)
            if progress(number + 1) is False:
                break
        weights.fit(_LAST_WALKS)
        self._counted.clear()
        self._scores.clear()
        return weights

    def _total(self) -> float:
        """Return the number of records that the first measurements say together, each by its weight."""
        sums = [(float(one.counts.sum()), one.counts.size * _deviation(one.noise) ** 2) for one in self.log]
        weight = sum(1.0 / variance for _, variance in sums)
        return max(sum(total / variance for total, variance in sums) / weight, 1.0)

    def _group(self, total: float) -> None:
        """Group the rare values of each attribute, and hold what was measured of the groups."""
        axes = []
        for one in self.log:
            values, deviation = one.counts.astype(np.float64), _deviation(one.noise)
            alone = Measurement((0,), values, deviation**2, 0.0)
            alone.softness[:] = softness_of(values, np.full(values.size, total / values.size), deviation)
            # Masses cannot be negative, so that noise alone would add records: the number that the sums say is kept.
            whole = Measurement((), np.array([total]), _EXACT, _EXACT)
            weights = TreeWeights(JunctionTree.holding((values.size,), [(0,)]), total, [alone, whole])
            weights.fit(_LAST_WALKS)
            kinds = kinds_of(one.attributes[0], self.sizes, self.possible)
            axis = Axis.of(values, weights.tables[0], _RARE * deviation, kinds)
            axes.append(axis)
            grouped = np.append(values[axis.kept], values[axis.rare].sum()) if axis.rare.size else values
            self.held[one.attributes] = Measurement(
                one.attributes, grouped, deviation**2, FIRMEST * deviations_of(axis, deviation)
            )
        self.grouping = Grouping(tuple(axes))
        self.possible = [self.grouping.possible(one) for one in self.possible]
        self.held[()] = Measurement((), np.array([total]), _EXACT, _EXACT)

    def _round(self, number: int, weights: TreeWeights, exact: Counts, source: RandomSource) -> TreeWeights:
        """Select, measure and fit."""
        self.last = None  # so that there are two models at most: this one, and the next one
        marginals = TreeMarginals(weights)
        chosen, scored, number_of = self._select(number, weights.tree, marginals, exact, source)
        noise = self.plan.noise
        counts = _noisy(self._grouped(chosen, exact), noise, source)
        self.log.append(Measured(chosen, noise, counts))
        self._hold(chosen, counts.astype(np.float64), _deviation(noise), marginals.marginal(chosen))
        if chosen in scored and self.plan.selection is not None:
            slack = 2.0 * self.sensitivity / 2**SCORE_BITS / self.plan.selection
            measured = counts.astype(np.float64), _deviation(noise)
            self.last = LastSelection(weights, scored, number_of, chosen, noise.deviation, measured, slack)
        del marginals  # what it keeps is as large as a model
        known = weights.tree.holding_one_more(chosen)
        return self._fit(weights.total, JunctionTree.holding(self.grouping.sizes, self._together(), known))

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
        self, number: int, tree: JunctionTree, marginals: TreeMarginals, exact: Counts, source: RandomSource
    ) -> tuple[Attributes, dict[Attributes, int], int]:
        """Return the set that this round measures: drawn by its score among those that the model has room for.

        Beside it are the weights of those that were scored by the model as it is, and the number of all that could be
        drawn; nothing if none was drawn by a score. Where there are many sets, those keep their scores by an earlier
        model that have no attribute of what was measured last: both models are made of noisy counts.
        """
        sets = self.candidates.sets
        places = self._with_room(number, tree)
        if not places:
            return (number % len(self.sizes),), {}, 0
        if len(places) == 1 or self.plan.selection is None:
            return sets[places[number % len(places)]], {}, 0
        fresh = self._to_score(number, places)
        counts = {sets[place]: self._grouped(sets[place], exact) for place in fresh}
        scores = self.candidates.scores(fresh, counts, marginals.marginal, self.plan.noise.deviation)
        self._scores.update(zip(fresh, scores.tolist(), strict=True))
        all_scores = np.array([self._scores[place] for place in places], np.int64)
        chosen = places[int(exponential(all_scores, self.plan.selection, self.sensitivity, random=source))]
        return sets[chosen], {sets[place]: self.candidates.weights[place] for place in fresh}, len(places)

    def _to_score(self, number: int, places: list[int]) -> list[int]:
        """Return which sets are scored in this round; the others have been scored in an earlier one."""
        sets, turns = self.candidates.sets, -(-len(self.candidates.sets) // _ALL_SCORED)
        if turns == 1:
            return places
        last = self.log[-1].attributes
        return [
            place
            for place in places
            if place not in self._scores or place % turns == number % turns or any(a in last for a in sets[place])
        ]

    def _with_room(self, number: int, tree: JunctionTree) -> list[int]:
        """Return the candidates beside which the model would not be too large: it may grow as the budget is spent."""
        cells = tree.cells_with(self._together(), self.candidates.sets)
        for allowed in (self.most_cells * (number + 1) / self.plan.rounds, self.most_cells):
            places: list[int] = np.flatnonzero(cells <= max(allowed, tree.cells)).tolist()
            if places:
                break
        return places


def _noisy(exact: NDArray[np.int64], noise: IntegerNoise, source: RandomSource) -> NDArray[np.int64]:
    return noise.add(np.minimum(exact, LARGEST_COUNT), source)


def _deviation(noise: IntegerNoise) -> float:
    """Return the deviation of noise, never 0: of noise far below 1, which is 0 almost surely, it would be."""
    return max(noise.deviation, noise.scale)
