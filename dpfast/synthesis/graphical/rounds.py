"""Rounds: the marginal that a model errs in most is selected, measured, and fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.elimination import model_cells
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_marginals import TreeMarginals
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.mechanisms.selection.exponential import exponential
from dpfast.randomness import RandomSource
from dpfast.synthesis.graphical.candidates import LARGEST_COUNT, Candidates
from dpfast.synthesis.graphical.plan import ModelPlan

__all__ = ["Measured", "ModelRounds"]

Attributes = tuple[int, ...]

#: How softly a measurement holds the model, in deviations of its noise; found by experiment, and the same as mwem's.
_SOFTNESS = 0.4
#: The variance that stands for none.
_EXACT = 1e-12
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

    """

    sizes: tuple[int, ...]
    candidates: Candidates
    plan: ModelPlan
    most_cells: float
    sensitivity: int
    log: list[Measured] = field(default_factory=list)
    _held: dict[Attributes, Measurement] = field(default_factory=dict)

    def run(
        self,
        exact: Mapping[Attributes, NDArray[np.int64]],
        records: int | None,
        source: RandomSource,
        progress: Callable[[int], object],
    ) -> TreeWeights:
        """Return the weights that fit all that was measured of the counts; ``records`` is their number if public.

        Everything after a measurement is made of noisy numbers alone.
        """
        for place in range(len(self.sizes)):
            self._measure((place,), exact, self.plan.first, source)
        total = float(max(records, 1)) if records is not None else self._total()
        # Masses cannot be negative, so that noise alone would add records: the number that the sums say is kept.
        self._held[()] = Measurement((), np.array([total]), _EXACT)
        weights = self._fit(total, _WALKS)
        for number in range(self.plan.rounds):
            chosen = self._select(number, weights, exact, source)
            self._measure(chosen, exact, self.plan.noise, source)
            weights = self._fit(weights.total, _WALKS)
            if progress(number + 1) is False:
                break
        weights.fit(_LAST_WALKS, self._softness)
        return weights

    @property
    def _softness(self) -> float:
        return _SOFTNESS / max(_deviation(noise) for noise in (self.plan.first, self.plan.noise))

    def _total(self) -> float:
        """Return the number of records that the first measurements say together, each by its weight."""
        sums = [(float(one.counts.sum()), one.counts.size) for one in self.log]
        weight = sum(1.0 / cells for _, cells in sums)
        return max(sum(total / cells for total, cells in sums) / weight, 1.0)

    def _measure(
        self,
        attributes: Attributes,
        exact: Mapping[Attributes, NDArray[np.int64]],
        noise: IntegerNoise,
        source: RandomSource,
    ) -> None:
        noisy = noise.add(np.minimum(exact[attributes], LARGEST_COUNT), source)
        self.log.append(Measured(attributes, noise, noisy))
        variance = _deviation(noise) ** 2
        values = noisy.astype(np.float64)
        if attributes in self._held:
            self._held[attributes].add(values, variance)
        else:
            self._held[attributes] = Measurement(attributes, values, variance)

    def _fit(self, total: float, walks: int) -> TreeWeights:
        tree = JunctionTree.holding(self.sizes, self._held)
        weights = TreeWeights(tree, total, list(self._held.values()))
        weights.fit(walks, self._softness)
        return weights

    def _select(
        self, number: int, weights: TreeWeights, exact: Mapping[Attributes, NDArray[np.int64]], source: RandomSource
    ) -> Attributes:
        """Return the set that this round measures: drawn by its score among those that the model has room for."""
        sets = self.candidates.sets
        places = self._with_room(number, weights)
        if not places:
            return (number % len(self.sizes),)
        if len(places) == 1 or self.plan.selection is None:
            return sets[places[number % len(places)]]
        marginals = TreeMarginals(weights)
        scores = self.candidates.scores(places, exact, marginals.marginal, self.plan.noise.deviation)
        return sets[places[int(exponential(scores, self.plan.selection, self.sensitivity, random=source))]]

    def _with_room(self, number: int, weights: TreeWeights) -> list[int]:
        """Return the candidates beside which the model would not be too large: it may grow as the budget is spent."""
        cells = model_cells(self.sizes, list(self._held), self.candidates.sets)
        homes = [weights.tree.home(held) is not None for held in self.candidates.sets]
        for allowed in (self.most_cells * (number + 1) / self.plan.rounds, self.most_cells):
            places = [place for place, own in enumerate(cells) if own <= allowed or homes[place]]
            if places:
                break
        return places


def _deviation(noise: IntegerNoise) -> float:
    """Return the deviation of noise, never 0: of noise far below 1, which is 0 almost surely, it would be."""
    return max(noise.deviation, noise.scale)
