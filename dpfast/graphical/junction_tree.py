"""Cliques in a tree: what two of them have in common is in every clique between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dpfast.graphical.elimination import cells_of, find_cliques

__all__ = ["JunctionTree"]

Attributes = tuple[int, ...]


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
    def holding(cls, sizes: tuple[int, ...], sets: Iterable[Attributes]) -> JunctionTree:
        """Return a tree in which each set of attributes lies within a clique.

        Of all ways to join the cliques, one in which they have most in common is a junction tree (Jensen, Jensen
        1994); cliques with nothing in common are joined too, and stay independent.

        Examples
        --------
        >>> tree = JunctionTree.holding((2, 3, 4, 5), [(0, 1), (1, 2)])
        >>> tree.cliques, tree.parents, tree.separators, tree.cells
        (((0, 1), (1, 2), (3,)), (-1, 0, 0), ((), (1,), ()), 23)

        """
        cliques = find_cliques(sizes, sets)
        order, parents = [0], [-1]
        held = [set(clique) for clique in cliques]
        # What each clique that is left has most in common with, of those that are joined: with the first one at least.
        best = dict.fromkeys(range(1, len(cliques)), (-1, 0, 0))
        while best:
            last, place = held[order[-1]], len(order) - 1
            for c, found in best.items():
                common = held[c] & last
                best[c] = max(found, (len(common), cells_of(sizes, common), -place))
            clique = max(best, key=lambda c: (*best[c][:2], -c))
            order.append(clique)
            parents.append(-best.pop(clique)[2])
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
        return tuple(tuple(c for c, parent in enumerate(self.parents) if parent == p) for p in range(len(self.cliques)))

    @property
    def cells(self) -> int:
        """How many cells the cliques' tables have together."""
        return sum(cells_of(self.sizes, clique) for clique in self.cliques)

    def home(self, attributes: Iterable[int]) -> int | None:
        """Return the smallest clique that holds all of some attributes, or None."""
        wanted = set(attributes)
        homes = [c for c, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(homes, key=lambda c: cells_of(self.sizes, self.cliques[c]), default=None)
