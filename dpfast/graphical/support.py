"""Cells of a tree's tables that some possible record is in: what public constraints leave, and what follows from them.

A clique's cell is left where no constraint that it holds forbids it, and where each neighbour has a cell left that
agrees with it. Walks up and down the tree find all of that, as they do for weights: what is left of one clique is what
all of the tree leaves of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.domain.impossible import Possible
from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.views import View

__all__ = ["find_support", "kept_within"]

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def find_support(tree: JunctionTree, possible: Sequence[Possible]) -> list[Flags]:
    """Return which cells of each clique's table a possible record is in; none at all where nothing is possible.

    Parameters
    ----------
    tree
        Each constraint's attributes lie within a clique.
    possible
        The constraints.

    """
    sizes = tree.sizes
    # Ones and zeros, which no product leaves.
    tables = [np.ones(length) for length in tree.lengths]
    for one in possible:
        home = tree.home(one.attributes)
        assert home is not None
        View(sizes, tree.cliques[home], one.attributes).multiply(tables[home], one.flags.astype(np.float64))
    edges = [
        (c, parent, View(sizes, tree.cliques[c], held), View(sizes, tree.cliques[parent], held))
        for c, (parent, held) in enumerate(zip(tree.parents, tree.separators, strict=True))
        if parent >= 0
    ]
    for c, parent, own, above in reversed(edges):
        above.multiply(tables[parent], _some(own, tables[c]))
    for c, parent, own, above in edges:
        own.multiply(tables[c], _some(above, tables[parent]))
    return [table > 0.0 for table in tables]


def _some(view: View, table: Floats) -> Floats:
    """Return 1 for each cell of a marginal in which something is left."""
    return (view.sums(table) > 0.0).astype(np.float64)


def kept_within(weights: Floats, support: Flags | None) -> Floats:
    """Return rows of weights with none outside of the support; even within it where a row has none left.

    Rounding alone can lead to a row without weights. Without a support every cell is possible.
    """
    even = np.ones_like(weights) if support is None else support.astype(np.float64)
    kept = weights if support is None else np.where(support, weights, 0.0)
    return np.where(kept.sum(axis=1, keepdims=True) > 0.0, kept, even)
