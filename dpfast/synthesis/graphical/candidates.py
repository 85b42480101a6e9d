"""Marginals that may be measured, and how far a model is from them: exact scores that one record hardly changes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.junction_tree import Pairs, pairs_among
from dpfast.synthesis.fitted.exact_workload import public_steps

__all__ = ["LARGEST_COUNT", "SCORE_BITS", "Candidates", "pairs_within"]

Attributes = tuple[int, ...]

SCORE_BITS = 8
"""Scores are in steps of 2**-8 records."""

LARGEST_COUNT = 2**36
"""More records in a cell count as so many: no score then overflows."""

#: All parts of what was asked are candidates as well, unless they are more sets or have more cells together.
_MOST_PARTS, _CELLS_OF_PARTS = 2_000, 1 << 24
#: Weights beyond are cut off.
_LARGEST_WEIGHT = 2**12
_LIMIT = 2.0**60
#: Sets are scored together until they have so many cells.
_CELLS_AT_ONCE = 1 << 14


def pairs_within(sizes: Sequence[int], largest: int) -> tuple[list[Attributes], list[Attributes]]:
    """Return the pairs of attributes of several values that have at most so many cells, and those that have more."""
    varying = [place for place, size in enumerate(sizes) if size > 1]
    within, beyond = list[Attributes](), list[Attributes]()
    for one, other in combinations(varying, 2):
        (within if sizes[one] * sizes[other] <= largest else beyond).append((one, other))
    return within, beyond


class Candidates:
    """Sets of attributes whose marginals may be measured.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    workload
        What shall be answered well. A set counts as often as it shares attributes with these: whoever measures it helps
        them (McKenna, Mullins, Sheldon, Miklau 2022).

    Attributes
    ----------
    asked
        In the workload's order, each ascending, without attributes of one value, of which there is nothing to know.
    sets
        These, and after them those of several of their attributes: where a triple's noise would be more than what it
        mends, a pair of it may still be worth its price. Which ones there are follows from what was asked alone.
    weights
        A whole number for each set.
    cells
        How many each set has.

    """

    def __init__(self, sizes: Sequence[int], workload: Sequence[Attributes]) -> None:
        self.asked = tuple(dict.fromkeys(_that_vary(sizes, held) for held in workload))
        self.sets = (*self.asked, *_parts_of(sizes, self.asked))
        # How many attributes all that was asked shares with a set, counted attribute by attribute.
        uses = Counter(attribute for held in self.asked for attribute in held)
        self.weights = [min(sum(uses[attribute] for attribute in held), _LARGEST_WEIGHT) for held in self.sets]
        self.cells = [math.prod(sizes[attribute] for attribute in held) for held in self.sets]

    @classmethod
    def pairs(cls, sizes: Sequence[int], largest: int) -> Candidates:
        """Return all pairs of attributes with at most so many cells; single attributes where there are none."""
        return cls(sizes, pairs_within(sizes, largest)[0] or [(place,) for place in range(len(sizes))])

    @cached_property
    def places_of_pairs(self) -> Pairs:
        """Where the sets of two attributes stand, and these."""
        return pairs_among(self.sets)

    @cached_property
    def holding(self) -> dict[int, NDArray[np.int64]]:
        """Where the sets stand that hold each attribute."""
        found: dict[int, list[int]] = {}
        for place, held in enumerate(self.sets):
            for attribute in held:
                found.setdefault(attribute, []).append(place)
        return {attribute: np.array(own) for attribute, own in found.items()}

    @property
    def sensitivity(self) -> int:
        """What one cell's count that changes by one changes in a score at most."""
        return max(self.weights) << SCORE_BITS

    def scores(
        self,
        places: Sequence[int],
        exact: Mapping[Attributes, NDArray[np.int64]],
        estimated: Callable[[Attributes], NDArray[np.float64]],
        threshold: float,
    ) -> NDArray[np.int64]:
        """Return how far the model is from the counts in each of some sets: what measuring it would mend.

        Guarantee
            Integers. For a fixed model and threshold, which are public, a count that changes by one changes no score by
            more than `sensitivity`: the score is the weight times the sum over cells of
            max(abs(2**8 a - e) - t, 0), with whole e and t made of public numbers, and neither abs(.) nor max(. - t, 0)
            moves further than its argument (Soundness rule 25).

        Parameters
        ----------
        places
            Which sets.
        exact
            Their counts, private.
        estimated
            Gives the model's marginal over attributes.
        threshold
            About what the noise of a measurement is: what is nearer than that, a measurement would not mend.

        """
        near = round(math.ldexp(min(threshold, LARGEST_COUNT), SCORE_BITS))
        return np.concatenate([np.empty(0, np.int64), *self._scores(places, exact, estimated, near)])

    def _scores(
        self,
        places: Sequence[int],
        exact: Mapping[Attributes, NDArray[np.int64]],
        estimated: Callable[[Attributes], NDArray[np.float64]],
        near: int,
    ) -> Iterator[NDArray[np.int64]]:
        """Yield scores, of as many sets at a time as have few cells: most sets are small, and calls take longer."""
        first = 0
        while first < len(places):
            counts: list[NDArray[np.int64]] = []
            cells = 0
            while first + len(counts) < len(places) and cells < _CELLS_AT_ONCE:
                counts.append(exact[self.sets[places[first + len(counts)]]].reshape(-1))
                cells += counts[-1].size
            own = places[first : first + len(counts)]
            first += len(counts)
            sizes = np.array([one.size for one in counts])
            weights = np.array([self.weights[place] for place in own])
            # Sums over the cells, times weights, stay below 2**62.
            limit = np.minimum(_LIMIT / (sizes * weights), 2.0**50)
            made = np.concatenate([estimated(self.sets[place]) for place in own])
            steps = public_steps(np.ldexp(made, SCORE_BITS), np.repeat(limit, sizes))
            far = np.abs((np.minimum(np.concatenate(counts), LARGEST_COUNT) << SCORE_BITS) - steps) - near
            yield weights * np.add.reduceat(np.maximum(far, 0), np.cumsum(sizes) - sizes)


def _that_vary(sizes: Sequence[int], held: Attributes) -> Attributes:
    """Return those of some attributes that have several values, ascending; the first one if none has."""
    varying = tuple(sorted(attribute for attribute in held if sizes[attribute] > 1))
    return varying or (min(held),)


def _parts_of(sizes: Sequence[int], asked: Sequence[Attributes]) -> tuple[Attributes, ...]:
    """Return the sets of two attributes or more within larger ones that are not asked themselves; none if too many."""
    if sum(2.0 ** len(held) for held in asked if len(held) > 2) > 4 * _MOST_PARTS:
        return ()
    known = set(asked)
    found = dict.fromkeys(
        part
        for held in asked
        for k in range(len(held) - 1, 1, -1)
        for part in combinations(held, k)
        if part not in known
    )
    cells = sum(math.prod(sizes[attribute] for attribute in part) for part in found)
    return tuple(found) if len(found) <= _MOST_PARTS and cells <= _CELLS_OF_PARTS else ()
