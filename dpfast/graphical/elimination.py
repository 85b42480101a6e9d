"""Which small tables hold a model: attributes are eliminated one after the other, and leave cliques behind.

Sets of attributes that are measured make a graph: two attributes are neighbours if some set holds both. To eliminate an
attribute joins all its neighbours to each other, and the attribute with its neighbours is a clique. Whatever the order,
the cliques form a junction tree (Lauritzen, Spiegelhalter 1988); its size depends on the order much. The best order is
hard to find. Greedy ones are good: next is the attribute that joins the fewest new pairs, or that leaves the smallest
table; costs are varied a little, and the best of several tries is kept. Sizes and sets are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.graphical import elimination as kernels

__all__ = ["cells_of", "find_cliques", "model_cells"]

Attributes = tuple[int, ...]

#: Orders that are tried for the cliques that are used, half by the pairs that are joined and half by size.
_TRIES = 16
#: How much costs are varied.
_VARIATION = 0.3
_IRRATIONAL = (math.sqrt(5.0) - 1.0) / 2.0


def cells_of(sizes: Sequence[int], clique: Iterable[int]) -> int:
    """Return how many cells the table over some attributes has."""
    return math.prod(sizes[attribute] for attribute in clique)


def _graph(attributes: int, sets: Iterable[Attributes]) -> NDArray[np.uint64]:
    """Return each attribute's neighbours, a row of bits each."""
    joined = np.zeros((attributes, -(-attributes // 64) * 64), np.bool_)
    for held in sets:
        joined[np.ix_(held, held)] = True
    np.fill_diagonal(joined, False)
    return np.packbits(joined, axis=1, bitorder="little").view(np.uint64)


def _orders(attributes: int, tries: int) -> list[tuple[bool, NDArray[np.float64]]]:
    """Return by what each try chooses, and how costs are varied: not at all in the first two.

    Multiples of an irrational number, less their whole parts, are spread evenly: that is all the chance there is.
    """
    places = np.arange(1.0, attributes + 1.0)
    return [
        (attempt % 2 == 1, _VARIATION * (places * max(attempt - 1, 0) * _IRRATIONAL % 1.0)) for attempt in range(tries)
    ]


def rows_of_bits(attributes: int, sets: Sequence[Attributes]) -> NDArray[np.uint64]:
    """Return sets of attributes as the kernels take them, a row of bits each."""
    held = np.zeros((len(sets), -(-attributes // 64) * 64), np.bool_)
    for row, own in zip(held, sets, strict=True):
        row[list(own)] = True
    return np.packbits(held, axis=1, bitorder="little").view(np.uint64)


def find_cliques(
    sizes: Sequence[int], sets: Iterable[Attributes], known: Iterable[Attributes] = ()
) -> tuple[Attributes, ...]:
    """Return the cliques of a junction tree in which every set lies within some clique.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    sets
        Attributes that must be together.
    known
        Cliques of some junction tree that has them together, if one is known: not more cells are returned.

    Returns
    -------
    tuple
        Cliques, each ascending, none within another, of as few cells together as was found. Every attribute is in one.

    Examples
    --------
    >>> find_cliques((2, 3, 4), [(0, 1), (1, 2)])
    ((0, 1), (1, 2))

    """
    graph = _graph(len(sizes), sets)
    lengths = np.array(sizes, np.float64)
    best, fewest = np.empty((0, 0), np.uint64), math.inf
    tries = [(graph, *order) for order in _orders(len(sizes), _TRIES)]
    if complete := list(known):
        # Nothing is missing between its cliques, so that attributes are eliminated without joining any more.
        tries.append((_graph(len(sizes), complete), False, np.zeros(len(sizes))))
    for joined, by_size, noise in tries:
        cliques = np.empty_like(graph)
        count, cells = kernels.eliminate(joined.copy(), lengths, by_size, noise, cliques)
        if cells < fewest:
            best, fewest = cliques[:count], cells
    held = np.unpackbits(best.view(np.uint8), axis=1, bitorder="little")
    return tuple(sorted(tuple(np.flatnonzero(row).tolist()) for row in held))


def model_cells(sizes: Sequence[int], sets: Iterable[Attributes], candidates: Sequence[Attributes]) -> list[float]:
    """Return how many cells a model would have at most, were one candidate measured beside the sets; for each of them.

    Examples
    --------
    >>> model_cells((2, 3, 4), [(0, 1), (1, 2)], [(0, 2), (1,)])
    [24.0, 18.0]

    """
    graph, lengths = _graph(len(sizes), sets), np.array(sizes, np.float64)
    members = np.array([attribute for candidate in candidates for attribute in candidate], np.int64)
    starts = np.concatenate([[0], np.cumsum([len(candidate) for candidate in candidates])]).astype(np.int64)
    cells = np.full(len(candidates), np.inf)
    for by_size, noise in _orders(len(sizes), 2):
        kernels.cells_with(graph, lengths, by_size, noise, members, starts, cells)
    found: list[float] = cells.tolist()
    return found
