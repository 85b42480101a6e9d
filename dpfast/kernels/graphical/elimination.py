"""Attributes of a graph eliminated one after the other, each joining its neighbours: the cliques that are left behind.

Sets of attributes stand in rows of 64-bit words, attribute a at bit a % 64 of word a // 64.
"""

from __future__ import annotations

import math

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, bit_xor, count_ones, shift_left, shift_right

__all__ = ["cells_with", "eliminate"]

_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)


@kernel
def _holds(row, place):
    return bit_and(shift_right(row[place >> 6], np.uint64(place & 63)), _ONE) != _ZERO


@kernel
def _cost(neighbours, sizes, place, by_size):
    """Return what eliminating an attribute costs: the log of its clique's cells, or the pairs that it joins anew."""
    around = neighbours[place]
    if by_size:
        log = math.log(sizes[place])
        for other in range(sizes.size):
            if _holds(around, other):
                log += math.log(sizes[other])
        return log
    missing = 0
    for other in range(sizes.size):
        if _holds(around, other):
            for word in range(around.size):
                missing += np.int64(count_ones(bit_and(around[word], bit_xor(neighbours[other, word], _ALL))))
            missing -= 1  # itself
    return missing / 2


@kernel
def eliminate(neighbours, sizes, by_size, noise, cliques):
    """Eliminate all attributes, the cheapest first; return how many maximal cliques there are, and all their cells.

    Parameters
    ----------
    neighbours
        A row for each attribute; overwritten.
    sizes
        float64: how many values each attribute has.
    by_size
        Whether the cheapest is that of the smallest table, not that which joins the fewest new pairs.
    noise
        float64: each attribute's cost plus 1 is multiplied by 1 plus this.
    cliques
        Out: as many rows as attributes, of which the first are filled.

    """
    count, cells = 0, 0.0
    done = np.zeros(sizes.size, np.bool_)
    for _ in range(sizes.size):
        chosen, lowest = -1, np.inf
        for place in range(sizes.size):
            if not done[place]:
                cost = (_cost(neighbours, sizes, place, by_size) + 1.0) * (1.0 + noise[place])
                if chosen < 0 or cost < lowest:
                    chosen, lowest = place, cost
        done[chosen] = True
        around = neighbours[chosen]
        own = shift_left(_ONE, np.uint64(chosen & 63))
        clique = cliques[count]
        clique[:] = around
        clique[chosen >> 6] = bit_or(clique[chosen >> 6], own)
        product = sizes[chosen]
        for other in range(sizes.size):
            if _holds(around, other):
                product *= sizes[other]
                for word in range(around.size):
                    neighbours[other, word] = bit_or(neighbours[other, word], around[word])
                place = shift_left(_ONE, np.uint64(other & 63))
                neighbours[other, other >> 6] = bit_and(neighbours[other, other >> 6], bit_xor(place, _ALL))
                neighbours[other, chosen >> 6] = bit_and(neighbours[other, chosen >> 6], bit_xor(own, _ALL))
        around[:] = _ZERO
        maximal = True
        for earlier in range(count):
            within = True
            for word in range(clique.size):
                within &= bit_and(clique[word], bit_xor(cliques[earlier, word], _ALL)) == _ZERO
            if within:
                maximal = False
                break
        if maximal:
            count += 1
            cells += product
    return count, cells


@kernel
def cells_with(neighbours, sizes, by_size, noise, members, starts, cells):
    """Set the cells of the cliques that there would be, were one set of attributes more together; of each of many sets.

    Parameters
    ----------
    neighbours, sizes, by_size, noise
        As for `eliminate`; the graph is left as it is.
    members, starts
        int64: set i has the attributes members[starts[i]:starts[i + 1]].
    cells
        float64, one for each set: lowered where this order has fewer.

    """
    cliques = np.empty_like(neighbours)
    for i in range(cells.size):
        own = neighbours.copy()
        for j in range(starts[i], starts[i + 1]):
            for k in range(starts[i], starts[i + 1]):
                if j != k:
                    bit = shift_left(_ONE, np.uint64(members[k] & 63))
                    row, word = members[j], members[k] >> 6
                    own[row, word] = bit_or(own[row, word], bit)
        _, found = eliminate(own, sizes, by_size, noise, cliques)
        cells[i] = min(cells[i], found)


# Stamp of all kernel sources (scripts/stamp_kernels.py): f1bbe2d92b75fca1
