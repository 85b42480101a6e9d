"""Cliques in a tree: what two of them have in common is in every clique between them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.elimination import cells_of, find_cliques, model_cells, rows_of_bits
from dpfast.kernels.graphical import joining as kernels

__all__ = ["JunctionTree", "Pairs", "pairs_among"]

Attributes = tuple[int, ...]
#: Which of some sets are pairs, and a row for the first attributes of these, and one for the second.
Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]

#: Up to so many attributes, an order of elimination is tried for every candidate.
_FEW = 64


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of attributes, each but the first joined to one before it.

    Attributes
    ----------
    sizes
        How many values each attribute has.
    cliques
        Attributes of each clique, ascending.
    parents
        The clique, before it, that each is joined to; -1 for the first.

    """

    sizes: tuple[int, ...]
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]

    @classmethod
    def holding(
        cls, sizes: tuple[int, ...], sets: Iterable[Attributes], known: Iterable[Attributes] = ()
    ) -> JunctionTree:
        """Return a tree in which each set of attributes lies within a clique.

        ``known`` are the cliques of a tree that does; a larger one is not returned.

        Of all ways to join the cliques, one in which they have most in common is a junction tree (Jensen, Jensen
        1994); cliques with nothing in common are joined too, and stay independent.

        Examples
        --------
        >>> tree = JunctionTree.holding((2, 3, 4, 5), [(0, 1), (1, 2)])
        >>> tree.cliques, tree.parents, tree.separators, tree.cells
        (((0, 1), (1, 2), (3,)), (-1, 0, 0), ((), (1,), ()), 23)

        """
        cliques = find_cliques(sizes, sets, known)
        holding = _holding(len(sizes), cliques)
        order, parents, last = [0], [-1], 0
        # What each clique that is left has most in common with, of those that are joined: with the first one at least.
        best = dict.fromkeys(range(1, len(cliques)), (0, 1, 0))
        queue = [(0, -1, c) for c in best]
        while best:
            near = Counter(c for attribute in cliques[last] for c in holding[attribute] if c in best)
            for c, number in near.items():
                if number >= best[c][0]:
                    common = cells_of(sizes, set(cliques[c]).intersection(cliques[last]))
                    found = (number, common, 1 - len(order))
                    if found > best[c]:
                        best[c] = found
                        heapq.heappush(queue, (-number, -common, c))
            # What was queued with less in common than now comes later, when it is joined already.
            while (last := heapq.heappop(queue)[2]) not in best:
                pass
            order.append(last)
            parents.append(-best.pop(last)[2])
        return cls(sizes, tuple(cliques[c] for c in order), tuple(parents))

    @cached_property
    def separators(self) -> tuple[Attributes, ...]:
        """What each clique has in common with its parent; nothing for the first."""
        return tuple(
            () if parent < 0 else tuple(a for a in clique if a in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The cliques that are joined to each, after it."""
        below: list[list[int]] = [[] for _ in self.cliques]
        for c, parent in enumerate(self.parents[1:], 1):
            below[parent].append(c)
        return tuple(map(tuple, below))

    @cached_property
    def parts(self) -> tuple[int, ...]:
        """The part of the tree that each clique is in: attributes of different ones are independent."""
        found: list[int] = []
        for clique, (parent, common) in enumerate(zip(self.parents, self.separators, strict=True)):
            found.append(found[parent] if common else clique)
        return tuple(found)

    @cached_property
    def part_of(self) -> tuple[int, ...]:
        """The part of the tree that each attribute is in."""
        return tuple(self.parts[held[0]] for held in self.holding_attribute)

    @property
    def cells(self) -> int:
        """How many cells the cliques' tables have together."""
        return sum(self.lengths)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many cells each clique's table has."""
        return tuple(cells_of(self.sizes, clique) for clique in self.cliques)

    @cached_property
    def holding_attribute(self) -> tuple[tuple[int, ...], ...]:
        """The cliques that hold each attribute, ascending."""
        return _holding(len(self.sizes), self.cliques)

    def growth(self, source: int) -> NDArray[np.float64]:
        """Return by how many cells the tree grows at most, were one attribute together with each other one."""
        cells = np.empty(len(self.sizes))
        sizes, starts, members, near_starts, near, separators, lengths = self._arrays
        kernels.cells_joined(source, sizes, starts, members, near_starts, near, separators, lengths, cells)
        return cells

    @cached_property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """The tree as the kernel takes it; clique c's separator has row c."""
        members = [a for clique in self.cliques for a in clique]
        starts = np.cumsum([0, *map(len, self.cliques)])
        near = [[(c, c) for c in below] for below in self.children]
        for c, parent in enumerate(self.parents[1:], 1):
            near[c].append((parent, c))
        near_starts = np.cumsum([0, *map(len, near)])
        lengths = [float(cells_of(self.sizes, held)) if held else 0.0 for held in self.separators]
        return (
            np.array(self.sizes, np.float64),
            starts.astype(np.int64),
            np.array(members, np.int64),
            near_starts.astype(np.int64),
            np.array([pair for own in near for pair in own], np.int64).reshape(-1, 2),
            rows_of_bits(len(self.sizes), self.separators),
            np.array(lengths),
        )

    def joined(self, one: int, other: int) -> list[Attributes]:
        """Return cliques that join two attributes, as `growth` counts them; none if a clique holds both."""
        if self.home((one, other)) is not None:
            return []
        path = self._path(one, other)
        if any(not held for held in path):
            return [(one, other)]
        last = len(path) - 1
        sides = [[(one, *path[m], *path[m + 1]) for m in range(t)] for t in range(last + 1)]
        ways = [
            [*sides[t], (one, other, *path[t]), *((other, *path[m], *path[m + 1]) for m in range(t, last))]
            for t in range(last + 1)
        ]
        found = [[tuple(sorted(set(clique))) for clique in way] for way in ways]
        return min(found, key=lambda way: sum(cells_of(self.sizes, clique) for clique in way))

    def holding_one_more(self, attributes: Attributes) -> list[Attributes]:
        """Return cliques of a tree that holds one set of attributes more; none if that is no pair and in no clique."""
        if self.home(attributes) is not None:
            return list(self.cliques)
        return [*self.cliques, *self.joined(*attributes)] if len(attributes) == 2 else []

    def cells_with(
        self, sets: Sequence[Attributes], candidates: Sequence[Attributes], pairs: Pairs | None = None
    ) -> NDArray[np.float64]:
        """Return how many cells a tree would have at most, were one candidate more together; for each of them.

        Parameters
        ----------
        sets
            What must be together as it is.
        candidates
            Sets of attributes. Pairs are joined to this tree. Where there are few attributes, and for other sets, it is
            tried too what an elimination leaves behind.
        pairs
            Those among the candidates, if they are known.

        """
        cells = np.full(len(candidates), np.inf)
        places, (one, other) = pairs_among(candidates) if pairs is None else pairs
        grown = np.empty((len(self.sizes), len(self.sizes)))
        for source in np.unique(one).tolist():
            grown[source] = self.growth(source)
        cells[places] = self.cells + grown[one, other]
        if places.size < len(candidates):
            for place, held in enumerate(candidates):
                if len(held) != 2 and self.home(held) is not None:
                    cells[place] = self.cells
        if len(self.sizes) <= _FEW:
            cells[:] = np.minimum(cells, model_cells(self.sizes, sets, candidates))
            return cells
        rest = np.flatnonzero(np.isinf(cells)).tolist()
        if not rest:
            return cells
        cells[rest] = model_cells(self.sizes, sets, [candidates[place] for place in rest])
        return cells

    def _path(self, one: int, other: int) -> list[Attributes]:
        """Return the separators between the cliques that hold one attribute and those that hold the other."""
        # Each attribute's cliques are a part of the tree, of which the highest is the first.
        up: list[int] = [self.holding_attribute[one][0]]
        while up[-1] > 0:
            up.append(self.parents[up[-1]])
        down: list[int] = [self.holding_attribute[other][0]]
        while down[-1] not in up:
            down.append(self.parents[down[-1]])
        meeting = down[-1]
        cliques = [*up[: up.index(meeting)], *reversed(down)]
        edges = [max(a, b) for a, b in pairwise(cliques)]
        # What still holds the first, or holds the other already, is no part of the way.
        while one in self.separators[edges[0]]:
            edges.pop(0)
        while other in self.separators[edges[-1]]:
            edges.pop()
        return [self.separators[edge] for edge in edges]

    def home(self, attributes: Iterable[int]) -> int | None:
        """Return the smallest clique that holds all of some attributes, or None."""
        held = [self.holding_attribute[attribute] for attribute in attributes]
        homes = set(held[0]).intersection(*held[1:]) if held else range(len(self.cliques))
        return min(homes, key=lambda c: (self.lengths[c], c), default=None)


def _holding(attributes: int, cliques: Sequence[Attributes]) -> tuple[tuple[int, ...], ...]:
    """Return the cliques that hold each attribute, ascending."""
    holding: list[list[int]] = [[] for _ in range(attributes)]
    for place, clique in enumerate(cliques):
        for attribute in clique:
            holding[attribute].append(place)
    return tuple(map(tuple, holding))


def pairs_among(candidates: Sequence[Attributes]) -> Pairs:
    """Return which of some sets are pairs, and the first and the second attributes of these."""
    places = [place for place, held in enumerate(candidates) if len(held) == 2]
    ends = np.array([candidates[place] for place in places], np.int64).reshape(-1, 2)
    return np.array(places, np.int64), np.ascontiguousarray(ends.T)
