"""Weights over cells that are too many to hold, as tables of cliques that agree where they meet; measurements fitted.

The weights are p(x) = product of the cliques' tables / product of the separators' (Lauritzen, Spiegelhalter 1988).
While each table is the marginal of p over its clique, to multiply p by a function of attributes within one clique is to
multiply that clique's table. What the other tables miss is passed on when they are visited: a clique sends its marginal
over the separator to its neighbour, which is multiplied by what is new over what it knew before (Jensen, Lauritzen,
Olesen 1990). A walk along the tree's edges, down and up, is at every moment in a clique whose table is the marginal of
p. So one walk fits every measurement once, as `dpfast.kernels.weights.replay` does over all cells, and the estimate has
the form that is explained there: of all positive p the one of least

    relative entropy to p0 + sum over measured cells of (m - <q, p>)**2 / (2 c),

with a softness c of each measured cell. It lies among the p of this form, however many cells there are: its duals are
one for each measured cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.domain.impossible import Possible
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.support import find_support
from dpfast.graphical.views import View
from dpfast.kernels.weights.replay import fit_masses

__all__ = ["Measurement", "NarrowWeights", "TreeWeights"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: A fit ends with a walk in which no mass moved by more than this part of itself.
TOLERANCE = 1e-3
#: What the magnitude of a normal number exceeds with probability 0.05, in its deviations; rounded up.
_NORMAL95 = 1.96


class Measurement:
    """A noisy marginal, and its duals: of repeated ones the mean, weighted by what is known of their noise.

    Parameters
    ----------
    attributes
        Ascending.
    values
        Noisy counts, in one dimension.
    variance
        Of their noise.
    softness
        How softly each of them holds the weights: c above, or one for all of them.
    largest
        The largest variance of a sum of counts whose coefficients' squares add up to 1: by default ``variance``, which
        it is where cells have noise of their own.

    Attributes
    ----------
    targets
        What weights are fitted to: the values, or what is made of them.

    """

    def __init__(
        self,
        attributes: Attributes,
        values: Floats,
        variance: float,
        softness: Floats | float,
        largest: float | None = None,
    ) -> None:
        self.attributes = attributes
        self.values = self.targets = values
        self.variance = variance
        self.largest = variance if largest is None else largest
        self.softness = np.broadcast_to(np.asarray(softness, np.float64), values.shape).copy()
        self.duals = np.zeros(values.size)

    @property
    def error95(self) -> float:
        """What the error of a count exceeds with probability 0.05, if its noise is normal."""
        return _NORMAL95 * math.sqrt(self.variance)

    def add(self, values: Floats, variance: float) -> None:
        """Take in another measurement of the same marginal."""
        weight = self.variance / (self.variance + variance)
        self.values = self.values + weight * (values - self.values)
        self.targets = self.targets + weight * (values - self.targets)
        self.variance *= 1.0 - weight
        self.largest *= 1.0 - weight


class TreeWeights:
    """Weights that fit measurements.

    Parameters
    ----------
    tree
        Every measurement lies within one of its cliques.
    total
        The weights' sum before anything is fitted; about the number of records.
    measurements
        With the duals of earlier fits, which are kept.
    possible
        Cells outside of these have no weight, ever: factors do not bring it back. Each lies within a clique.

    Attributes
    ----------
    support
        Which cells of each clique some possible record is in; None where every cell is.

    """

    def __init__(
        self,
        tree: JunctionTree,
        total: float,
        measurements: Sequence[Measurement],
        possible: Sequence[Possible] = (),
    ) -> None:
        self.tree = tree
        self.support = find_support(tree, possible) if possible else None
        sizes = tree.sizes
        self._edges = [View(sizes, clique, held) for clique, held in zip(tree.cliques, tree.separators, strict=True)]
        self._parent_edges = [
            View(sizes, tree.cliques[parent], held) if parent >= 0 else None
            for parent, held in zip(tree.parents, tree.separators, strict=True)
        ]
        self._separators = [np.ones(view.size) for view in self._edges]
        self._measured: list[list[tuple[Measurement, View]]] = [[] for _ in tree.cliques]
        for measurement in measurements:
            home = tree.home(measurement.attributes)
            assert home is not None
            view = View(sizes, tree.cliques[home], measurement.attributes)
            self._measured[home].append((measurement, view))
        self.tables = [self._start(c, total) for c in range(len(tree.cliques))]
        for c in range(len(tree.cliques) - 1, 0, -1):
            self._send_up(c)
        for c in range(1, len(tree.cliques)):
            self._send_down(c)

    def _start(self, clique: int, total: float) -> Floats:
        """Return what the measurements of one clique make of its share of even weights."""
        tree = self.tree
        new = [a for a in tree.cliques[clique] if a not in tree.separators[clique]]
        even = 1.0 / math.prod(tree.sizes[a] for a in new)
        table = np.full(math.prod(tree.sizes[a] for a in tree.cliques[clique]), even * (total if clique == 0 else 1.0))
        for measurement, view in self._measured[clique]:
            view.multiply(table, np.exp(measurement.duals))
        if self.support is not None:
            table *= self.support[clique]
        return table

    def _send_up(self, clique: int) -> None:
        """Let the parent know what the clique knows."""
        into = self._parent_edges[clique]
        assert into is not None
        sums = self._edges[clique].sums(self.tables[clique])
        into.multiply(self.tables[self.tree.parents[clique]], _ratio(sums, self._separators[clique]))
        self._separators[clique] = sums

    def _send_down(self, clique: int) -> None:
        """Let the clique know what its parent knows."""
        out = self._parent_edges[clique]
        assert out is not None
        sums = out.sums(self.tables[self.tree.parents[clique]])
        self._edges[clique].multiply(self.tables[clique], _ratio(sums, self._separators[clique]))
        self._separators[clique] = sums

    def fit(self, walks: int, tolerance: float = TOLERANCE) -> int:
        """Fit every measurement once in each of so many walks, or until none moves; return how many there were.

        Parameters
        ----------
        walks
            The most.
        tolerance
            The part of the records that all moves of one walk may add up to for the fit to end.

        """
        done, moved = 0, math.inf
        while done < walks and moved > tolerance:
            done += 1
            moved = 0.0
            for clique, is_new in self._walk():
                if is_new:
                    moved += self._fit_clique(clique)
        for c in range(1, len(self.tables)):
            self._send_down(c)
        self._fit_total()
        return done

    def _fit_total(self) -> None:
        """Fit what was measured of the number of records once more, last: what is fitted after it moves it."""
        for measurement, _ in (own for measured in self._measured for own in measured if not own[0].attributes):
            factor = np.array([self.total])
            fit_masses(factor, measurement.duals, measurement.targets, measurement.softness)
            for table in (*self.tables, *self._separators):
                table *= factor

    def _walk(self) -> Iterator[tuple[int, bool]]:
        """Visit every clique, messages passed on the way; say when a clique is met first."""
        yield 0, True
        # A stack, as a tree may be deeper than calls may be nested.
        path = [(0, iter(self.tree.children[0]))]
        while path:
            clique, children = path[-1]
            child = next(children, None)
            if child is not None:
                self._send_down(child)
                yield child, True
                path.append((child, iter(self.tree.children[child])))
                continue
            path.pop()
            if path:
                self._send_up(clique)
                yield path[-1][0], False

    def _fit_clique(self, clique: int) -> float:
        """Fit the measurements of a clique, one after the other; return the furthest that one moved the records."""
        furthest = 0.0
        for measurement, view in self._measured[clique]:
            factors = view.sums(self.tables[clique])
            moved = fit_masses(factors, measurement.duals, measurement.targets, measurement.softness)
            furthest = max(furthest, moved)
            view.multiply(self.tables[clique], factors)
        return furthest

    def narrow(self) -> NarrowWeights:
        """Return the weights in half of their memory."""
        tables, separators = ([one.astype(np.float32) for one in own] for own in (self.tables, self._separators))
        return NarrowWeights(self.tree, tables, separators)

    @property
    def total(self) -> float:
        """The weights' sum."""
        return float(self.tables[0].sum())

    def separator(self, clique: int) -> Floats:
        """Return the marginal over what a clique has in common with its parent, in one dimension."""
        return self._separators[clique]


@dataclass(frozen=True)
class NarrowWeights:
    """Weights that are set aside, each rounded to 24 bits.

    A marginal of them is a sum of products and ratios of at most two numbers for each clique. So it errs by its part
    `rounding` at most, but for weights below the least number of 32 bits.
    """

    tree: JunctionTree
    tables: list[NDArray[np.float32]]
    separators: list[NDArray[np.float32]]

    @property
    def rounding(self) -> float:
        """What part of itself a marginal errs by at most."""
        return 2.0**-23 * (2 * len(self.tables) + 1)

    def widen(self) -> TreeWeights:
        """Return weights of which marginals can be taken; they fit no measurements."""
        found = TreeWeights.__new__(TreeWeights)
        found.tree, found.support = self.tree, None
        found.tables = [table.astype(np.float64) for table in self.tables]
        found._separators = [table.astype(np.float64) for table in self.separators]
        return found


def _ratio(new: Floats, old: Floats) -> Floats:
    """Return new / old; where old is 0, new is 0 too, and so is the ratio."""
    return np.divide(new, old, out=np.zeros(new.size), where=old > 0.0)
