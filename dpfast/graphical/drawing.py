"""Records drawn from weights in a tree: clique by clique, each given what it has in common with those before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.tree_weights import TreeWeights
from dpfast.kernels.graphical.drawing import draw_conditionally, order_by_code
from dpfast.randomness import Keystream, Purpose, RandomSource

__all__ = ["draw_codes"]


def draw_codes(weights: TreeWeights, records: int, source: RandomSource) -> NDArray[np.uint32]:
    """Return each record's code of each attribute, a row for each attribute.

    Of the records that agree in what a clique has in common with its parent, each value of the clique's other
    attributes gets its share, rounded down or up and right on average, in random order. So each clique's counts are
    those of its parent spread without bias, and within 1 for each value of what they have in common.
    """
    tree = weights.tree
    codes = np.empty((len(tree.sizes), records), np.uint32)
    for clique, attributes in enumerate(tree.cliques):
        common = tree.separators[clique]
        new = tuple(a for a in attributes if a not in common)
        shape = [tree.sizes[a] for a in attributes]
        order = [attributes.index(a) for a in (*common, *new)]
        rows = int(np.prod([tree.sizes[a] for a in common], dtype=np.int64))
        table = np.ascontiguousarray(weights.tables[clique].reshape(shape).transpose(order)).reshape(rows, -1)
        given = np.zeros(records, np.int64)
        for attribute in common:
            given *= tree.sizes[attribute]
            given += codes[attribute]
        starts, places = np.zeros(rows + 1, np.int64), np.empty(records, np.int64)
        order_by_code(given, starts, places)
        words = np.empty(records + rows, np.uint64)
        Keystream(source.key()).words(Purpose.NOISE).fill(0, words)
        drawn = given  # no longer needed
        draw_conditionally(table, starts, places, words, drawn)
        for attribute in reversed(new):
            drawn, codes[attribute] = np.divmod(drawn, tree.sizes[attribute])
    return codes
