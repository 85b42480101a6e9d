"""A tree for records of pseudo-marginals: of those that say most, as many as memory has room for.

Pseudo-marginals may belong to no table, so that no records can have all of them. Those whose cliques fit into a tree of
small tables can be had together, or nearly. A set of columns is worth its room if its counts are far from those that
its columns alone would make, were they independent: half the sum of differences, as McKenna, Mullins, Sheldon, Miklau
(2022) score them, here of fitted counts, so that nothing is paid. Sets are taken in this order, each if the tree that
holds it beside those before stays within the room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.junction_tree import JunctionTree
from dpfast.graphical.tree_weights import Measurement, TreeWeights
from dpfast.graphical.views import View

__all__ = ["choose_sets", "fit_records"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]

#: How softly a fitted count holds the tree, as a part of itself, and at least as a part of an even count.
_SOFTNESS, _LEAST = 0.1, 1e-6
_WALKS = 50


def choose_sets(
    sizes: tuple[int, ...], cliques: Sequence[Attributes], tables: Sequence[Floats], most_cells: float
) -> list[int]:
    """Return the places of the sets that the tree holds, those that say most first.

    Single columns are in every tree, and none of them is returned.
    """
    gains = [_dependence(sizes, clique, table) for clique, table in zip(cliques, tables, strict=True)]
    order = sorted(range(len(cliques)), key=lambda place: (-gains[place], place))
    chosen: list[int] = []
    for place in order:
        if len(cliques[place]) > 1 and np.prod([float(sizes[a]) for a in cliques[place]]) <= most_cells:
            held = [cliques[one] for one in (*chosen, place)]
            if JunctionTree.holding(sizes, held).cells <= most_cells:
                chosen.append(place)
    return chosen


def _dependence(sizes: tuple[int, ...], clique: Attributes, table: Floats) -> float:
    """Return half the sum of differences to the counts of independent columns with the same sums."""
    total = float(table.sum())
    if not total > 0.0:
        return 0.0
    independent = np.full(table.size, total)
    for attribute in clique:
        view = View(sizes, clique, (attribute,))
        view.multiply(independent, view.sums(table) / total)
    return float(np.abs(table - independent).sum()) / 2.0


def fit_records(
    sizes: tuple[int, ...], cliques: Sequence[Attributes], tables: Sequence[Floats], chosen: Sequence[int], total: float
) -> TreeWeights:
    """Return weights in a tree, fitted to the chosen tables and to every column; of columns in no table they are even.

    Of all such weights they are those of most entropy, less the squared misfits.
    """
    held = [cliques[place] for place in chosen]
    targets = {cliques[place]: tables[place] for place in chosen}
    for clique, table in zip(cliques, tables, strict=True):
        for attribute in clique:
            if (attribute,) not in targets:
                targets[attribute,] = View(sizes, clique, (attribute,)).sums(table)
    measurements = []
    for attributes, counts in targets.items():
        softness = _SOFTNESS * np.maximum(counts, _LEAST * total / counts.size)
        measurements.append(Measurement(attributes, counts, 1.0, softness))
    weights = TreeWeights(JunctionTree.holding(sizes, held), total, measurements)
    weights.fit(_WALKS)
    return weights
