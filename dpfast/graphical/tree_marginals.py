"""Marginals of weights in a tree, over any attributes: the cliques between these are summed out one after the other.

With the tree's weights p, a clique's table over its separator's is the law of its other attributes, given those; what
lies beyond the cliques that hold the attributes asked for sums to 1, and is left out. From the leaves of that part of
the tree on, each clique tells the next how its asked attributes depend on what the two have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.elimination import cells_of
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_weights import TreeWeights
from dpfast.graphical.views import View

__all__ = ["TreeMarginals"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: For each clique the next one on the way, the edge to it, and how many edges there are to the end.
Ways: TypeAlias = dict[int, tuple[int, int, int]]

#: So many cells may be kept of weights that are small themselves: those of hundreds of columns often are.
_ROOM = 1 << 19
#: Products of so many cells are summed as they come.
_FEW_CELLS = 1 << 14


class TreeMarginals:
    """Marginals of weights as they are now: what is summed for one of them is kept for the others.

    Parameters
    ----------
    weights
        Whose tables agree: after `TreeWeights.fit`.

    """

    def __init__(self, weights: TreeWeights) -> None:
        self._weights = weights
        self._sums: dict[tuple[int, Attributes], Floats] = {}
        self._singles: dict[int, Floats] = {}
        self._ways: dict[int, Ways] = {}
        self._shares: dict[tuple[int, int], Floats] = {}
        self._total = weights.total
        # What is kept takes no more than half of the weights' memory, or than a few megabytes.
        self._room = max(weights.tree.cells // 2, _ROOM)

    def marginal(self, attributes: Attributes) -> Floats:
        """Return the marginal over ascending attributes, in one dimension."""
        tree = self._weights.tree
        if len(attributes) == 2:
            one, other = attributes
            if tree.part_of[one] != tree.part_of[other]:
                return np.multiply.outer(self._single(one), self._single(other) / self._total).reshape(-1)
        home = tree.home(attributes)
        if home is not None:
            return self._sum(home, attributes).reshape(-1)
        parts: dict[int, list[int]] = {}
        for attribute in attributes:
            parts.setdefault(tree.part_of[attribute], []).append(attribute)
        if len(parts) > 1:
            return self._product([tuple(own) for own in parts.values()], attributes)
        if len(attributes) == 2:
            return self._pair(*attributes)
        root, below = self._part(attributes)
        table, axes = self._told(root, set(attributes), below)
        order = [axes.index(attribute) for attribute in attributes]
        return np.ascontiguousarray(table.transpose(order)).reshape(-1)

    def _single(self, attribute: int) -> Floats:
        """Return the marginal over one attribute, which is kept: all of them are no larger than the tree."""
        found = self._singles.get(attribute)
        if found is None:
            found = self._singles[attribute] = self.marginal((attribute,))
        return found

    def _pair(self, one: int, other: int) -> Floats:
        """Return the marginal over two attributes of one part of the tree that no clique holds both of.

        The attribute of fewer values tells all cliques beyond its own of it. What it told one of them serves all other
        attributes that are as far or further.
        """
        tree = self._weights.tree
        source, target = (one, other) if tree.sizes[one] <= tree.sizes[other] else (other, one)
        ways = self._ways.get(source)
        if ways is None:
            ways = self._ways[source] = _ways_from(tree, source)
        last = min(tree.holding_attribute[target], key=lambda clique: ways[clique][2])
        path = [last]
        while (source, path[-1]) not in self._shares and ways[path[-1]][2] > 1:
            path.append(ways[path[-1]][0])
        share = self._shares.get((source, path[-1]))
        for clique in reversed(path):
            if (known := self._shares.get((source, clique))) is not None:
                share = known
                continue
            before, edge, _ = ways[clique]
            share = self._share(source, before, share, ways[before][1], edge)
            if share.size <= self._room:
                self._room -= share.size
                self._shares[source, clique] = share
        assert share is not None
        common = tree.separators[ways[last][1]]
        held = tuple(sorted((*common, target)))
        factors = [(share, [source, *common]), (self._sum(last, held), list(held))]
        return np.ascontiguousarray(_contract(factors, [one, other])).reshape(-1)

    def _share(self, source: int, clique: int, told: Floats | None, entered: int, left: int) -> Floats:
        """Return the marginal over an attribute and what a clique has in common with the next, over the latter's.

        ``told`` is the same of the clique itself, across the edge ``entered``; it is not used if the clique holds the
        attribute.
        """
        tree = self._weights.tree
        common = tree.separators[left]
        if source in tree.cliques[clique]:
            held = tuple(sorted((source, *common)))
            table = np.moveaxis(self._sum(clique, held), held.index(source), 0)
        else:
            assert told is not None
            before = tree.separators[entered]
            held = tuple(sorted({*before, *common}))
            factors = [(told, [source, *before]), (self._sum(clique, held), list(held))]
            table = _contract(factors, [source, *common])
        given = self._weights.separator(left).reshape([1, *(tree.sizes[a] for a in common)])
        return np.divide(table, given, out=np.zeros(table.shape), where=given > 0.0)

    def _product(self, parts: Sequence[Attributes], attributes: Attributes) -> Floats:
        """Return the marginal over attributes of which those of different parts are independent."""
        sizes, total = self._weights.tree.sizes, self._total
        table, axes = self.marginal(parts[0]).reshape([sizes[a] for a in parts[0]]), list(parts[0])
        for own in parts[1:]:
            table = np.multiply.outer(table, self.marginal(own).reshape([sizes[a] for a in own]) / total)
            axes += own
        return np.ascontiguousarray(table.transpose([axes.index(a) for a in attributes])).reshape(-1)

    def _sum(self, clique: int, attributes: Attributes) -> Floats:
        """Return a clique's marginal, an axis for each of some ascending attributes."""
        found = self._sums.get((clique, attributes))
        if found is None:
            tree, table = self._weights.tree, self._weights.tables[clique]
            whole = attributes == tree.cliques[clique]
            sums = table if whole else View(tree.sizes, tree.cliques[clique], attributes).sums(table)
            found = sums.reshape([tree.sizes[a] for a in attributes])
            size = 0 if whole else found.size
            if size <= self._room:
                self._room -= size
                self._sums[clique, attributes] = found
        return found

    def _part(self, attributes: Attributes) -> tuple[int, dict[int, list[int]]]:
        """Return the root, and each clique's children, of the smallest part of the tree that holds some attributes.

        Of several cliques that hold an attribute the highest is taken, and then the part is pruned from above.
        """
        tree = self._weights.tree
        needed = {tree.holding_attribute[a][0] for a in attributes}
        below: dict[int, list[int]] = {c: [] for c in needed}
        for clique in needed:
            above = tree.parents[clique]
            while above >= 0 and clique not in below.setdefault(above, []):
                below[above].append(clique)
                clique, above = above, tree.parents[above]  # up to what was met before
        root, wanted = 0, set(attributes)
        while not wanted & set(tree.cliques[root]) and len(below[root]) == 1:
            root = below[root][0]
        return root, below

    def _told(self, root: int, wanted: set[int], below: dict[int, list[int]]) -> tuple[Floats, list[int]]:
        """Return the table over what is wanted: what each clique tells the next, from the leaves to the best root."""
        tree = self._weights.tree
        # Edges bear the number of the clique that is lower in the tree.
        near: dict[int, list[tuple[int, int]]] = {root: []}
        order = [root]
        for clique in order:
            for child in below[clique]:
                near[clique].append((child, child))
                near[child] = [(clique, child)]
            order += below[clique]
        walk = [(self._best_root(order, wanted, below), -1)]
        for clique, edge in walk:
            walk += [(other, crossed) for other, crossed in near[clique] if crossed != edge]
        told: dict[int, tuple[Floats, list[int]]] = {}
        for clique, edge in reversed(walk):
            common = tree.separators[edge] if edge >= 0 else ()
            ways = [crossed for _, crossed in near[clique] if crossed != edge]
            told[edge] = self._tell(clique, common, wanted, {crossed: told.pop(crossed) for crossed in ways})
        return told[-1]

    def _best_root(self, order: Sequence[int], wanted: set[int], below: dict[int, list[int]]) -> int:
        """Return the clique that all others tell with the fewest numbers together; the first of ``order`` is above.

        From a clique to a neighbour of it only one edge turns. What is told across one is a table over what both sides
        have in common, and over what is wanted of the side that tells.
        """
        tree = self._weights.tree
        held: dict[int, set[int]] = {}
        for clique in reversed(order):
            held[clique] = (wanted & set(tree.cliques[clique])).union(*(held[child] for child in below[clique]))
        more = {order[0]: 0}
        for clique in order:
            for child in below[clique]:
                common = tree.separators[child]
                own = held[child].difference(common)
                other = wanted.difference(own, common)
                up, down = (cells_of(tree.sizes, (*common, *side)) for side in (own, other))
                more[child] = more[clique] - up + down
        return min(order, key=lambda clique: more[clique])

    def _tell(
        self, clique: int, common: Attributes, wanted: set[int], told: dict[int, tuple[Floats, list[int]]]
    ) -> tuple[Floats, list[int]]:
        """Return a table over what a clique has in common with the next, and what is wanted of it and all before.

        ``told`` has what was told it across each edge.
        """
        tree = self._weights.tree
        own = set(common) | (wanted & set(tree.cliques[clique]))
        for child in told:
            own |= set(tree.separators[child])
        attributes = tuple(sorted(own))
        factors: list[tuple[Floats, list[int]]] = [(self._sum(clique, attributes), list(attributes))]
        out = [a for a in attributes if a in common or a in wanted]
        for child, (table, axes) in told.items():
            separator = tree.separators[child]
            given = self._weights.separator(child).reshape([tree.sizes[a] for a in separator])
            where = [axes.index(a) for a in separator]
            rest = [place for place in range(len(axes)) if place not in where]
            table = table.transpose(where + rest)
            given = given.reshape(given.shape + (1,) * len(rest))
            share = np.divide(table, given, out=np.zeros(table.shape), where=given > 0.0)
            factors.append((share, [axes[place] for place in where + rest]))
            out += [axes[place] for place in rest]
        if len(factors) == 1 and out == list(attributes):
            return factors[0][0], out
        return _contract(factors, out), out


def _ways_from(tree: JunctionTree, source: int) -> Ways:
    """Return each clique's way towards those that hold an attribute: the next clique, the edge, and how many edges.

    Edges bear the number of the clique that is lower in the tree.
    """
    found: Ways = dict.fromkeys(tree.holding_attribute[source], (-1, -1, 0))
    walk = list(found)
    for clique in walk:
        far = found[clique][2] + 1
        near = [(child, child) for child in tree.children[clique]]
        if tree.parents[clique] >= 0:
            near.append((tree.parents[clique], clique))
        for other, edge in near:
            if other not in found:
                found[other] = clique, edge, far
                walk.append(other)
    return found


def _contract(factors: Sequence[tuple[Floats, list[int]]], out: list[int]) -> Floats:
    """Return the sum of products of tables over all attributes but those that stay."""
    names = sorted({attribute for _, axes in factors for attribute in axes})
    short = {name: place for place, name in enumerate(names)}
    operands: list[Any] = []
    for table, axes in factors:
        operands += [table, [short[attribute] for attribute in axes]]
    # An order of contraction takes longer to find than small tables to walk.
    cells = math.prod({a: size for table, axes in factors for a, size in zip(axes, table.shape, strict=True)}.values())
    orders = len(factors) > 1 and cells > _FEW_CELLS
    found: Floats = np.einsum(*operands, [short[attribute] for attribute in out], optimize=orders)
    return found
