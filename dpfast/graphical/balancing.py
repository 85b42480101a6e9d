"""Records drawn from weights in a tree so that all their pairs of attributes are near the weights' own.

Of records drawn at random, a cell of 100 expected ones errs by 10: where cells are many, that is as much as the noise
that privacy takes. So values are not drawn independently. Attributes are drawn one after the other, and each record
gets the value that its like lack most, by the law that the tree says of it: among all records that agree in what the
law depends on, and among those that agree in any one attribute drawn before. Whatever one record gets too much, others
get less, so that the counts of pairs stay within a few records of the expected ones, in cliques and across them. Which
records come first is random, and so is the fraction, from -1/2 to 1/2, that each cell of each table lacks at the
beginning: without that rare cells would be rounded down, and get too little on average. With it every cell's mean is
its share within a few percent; `dpfast.graphical.drawing.TreeRecords`, for more records, is right on average.

It is post-processing, as all drawing is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.support import kept_within
from dpfast.graphical.tree_weights import TreeWeights
from dpfast.kernels.graphical.balancing import draw_balanced
from dpfast.randomness import RandomSource, fresh_words

__all__ = ["balances", "draw_balanced_codes"]

#: More records than that err little however they are drawn.
_MOST_RECORDS = 1 << 18
#: How much work is worth it, in numbers that are added; and with how many attributes before it one is balanced.
_MOST_WORK, _MOST_OTHERS = 1 << 32, 32


def balances(weights: TreeWeights, records: int) -> bool:
    """Return whether so many records are drawn so."""
    sizes = weights.tree.sizes
    return records <= _MOST_RECORDS and records * sum(sizes) * min(len(sizes), _MOST_OTHERS) <= _MOST_WORK


def draw_balanced_codes(weights: TreeWeights, records: int, source: RandomSource) -> NDArray[np.uint32]:
    """Return each record's code of each attribute, a row for each attribute."""
    tree = weights.tree
    codes = np.empty((len(tree.sizes), records), np.uint32)
    drawn: list[int] = []
    for clique, attributes in enumerate(tree.cliques):
        given = list(tree.separators[clique])
        new = [a for a in attributes if a not in given]
        table = weights.tables[clique].reshape([tree.sizes[a] for a in attributes])
        axes = [attributes.index(a) for a in (*given, *new)]
        table = table.transpose(axes)
        support = None
        if weights.support is not None:
            support = weights.support[clique].reshape([tree.sizes[a] for a in attributes]).transpose(axes)
        for attribute in new:
            size = tree.sizes[attribute]
            beyond = tuple(range(len(given) + 1, table.ndim))
            possible = None if support is None else support.any(axis=beyond).reshape(-1, size)
            shares = _shares(kept_within(np.ascontiguousarray(table.sum(axis=beyond)).reshape(-1, size), possible))
            rows = np.zeros(records, np.int64)
            for a in given:
                rows *= tree.sizes[a]
                rows += codes[a]
            # Of one attribute that the law depends on, its rows are the table.
            others = np.array([a for a in drawn[-_MOST_OTHERS:] if given != [a]], np.int64)
            offsets = np.concatenate([[0], np.cumsum([tree.sizes[a] * size for a in others])]).astype(np.int64)
            lacks = _fractions(int(offsets[-1]), source)
            own = _fractions(shares.size, source).reshape(shares.shape)
            order = np.argsort(fresh_words(source, records), kind="stable")
            draw_balanced(order, rows, shares, codes, others, offsets, lacks, own, codes[attribute])
            given.append(attribute)
            drawn.append(attribute)
    return codes


def _shares(table: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the law of each row; nothing for rows that are impossible, which no record has."""
    sums = table.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(table, sums, out=np.zeros(table.shape), where=sums > 0.0)
    return shares.astype(np.float32)


def _fractions(number: int, source: RandomSource) -> NDArray[np.float32]:
    """Return numbers from -1/2 to 1/2."""
    words = fresh_words(source, -(-number // 2)).view(np.uint32)[:number]
    found: NDArray[np.float32] = (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24) - np.float32(0.5)
    return found
