"""Attributes of a graph eliminated one after the other, each joining its neighbours: the cliques that are left behind.

Sets of attributes stand in rows of 64-bit words, attribute a at bit a % 64 of word a // 64. What it would cost to
eliminate an attribute is kept, and changes only where an elimination joins something: at the neighbours of what is
eliminated, and at what has both ends of a new pair as neighbours.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, bit_xor, count_ones, shift_left, shift_right, subtract

__all__ = ["cells_with", "eliminate"]

_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)


@kernel
def _holds(row, place):
    return bit_and(shift_right(row[place >> 6], np.uint64(place & 63)), _ONE) != _ZERO


@kernel
def _put(row, place):
    row[place >> 6] = bit_or(row[place >> 6], shift_left(_ONE, np.uint64(place & 63)))


@kernel
def _take(row, place):
    row[place >> 6] = bit_and(row[place >> 6], bit_xor(shift_left(_ONE, np.uint64(place & 63)), _ALL))


@kernel
def _list(row, places):
    """Set the first places to those of a row's bits, ascending; return how many there are."""
    count = 0
    for word in range(row.size):
        left = row[word]
        while left != _ZERO:
            lowest = bit_and(left, subtract(_ZERO, left))
            places[count] = 64 * word + np.int64(count_ones(subtract(lowest, _ONE)))
            count += 1
            left = bit_xor(left, lowest)
    return count


@kernel
def _cost(neighbours, logs, place, by_size, around):
    """Return what eliminating an attribute costs: the log of its clique's cells, or the pairs that it joins anew."""
    row = neighbours[place]
    count = _list(row, around)
    if by_size:
        log = logs[place]
        for i in range(count):
            log += logs[around[i]]
        return log
    missing = -count  # each is missing among its own neighbours
    for i in range(count):
        for word in range(row.size):
            missing += np.int64(count_ones(bit_and(row[word], bit_xor(neighbours[around[i], word], _ALL))))
    return missing / 2


@kernel
def _join(neighbours, one, other, by_size, costs, around):
    """Join two attributes that were no neighbours: to what has both around it, that is one pair fewer to join."""
    if not by_size:
        for word in range(neighbours.shape[1]):
            left = bit_and(neighbours[one, word], neighbours[other, word])
            while left != _ZERO:
                lowest = bit_and(left, subtract(_ZERO, left))
                costs[64 * word + np.int64(count_ones(subtract(lowest, _ONE)))] -= 1.0
                left = bit_xor(left, lowest)
    _put(neighbours[one], other)
    _put(neighbours[other], one)


@kernel
def _cheapest(costs, factors):
    """Return the attribute of the lowest cost, that plus 1 times its factor; what is eliminated costs infinity."""
    chosen, lowest = -1, np.inf
    for place in range(costs.size):
        cost = (costs[place] + 1.0) * factors[place]
        if cost < lowest:
            chosen, lowest = place, cost
    return chosen


@kernel
def _eliminate(neighbours, sizes, logs, by_size, factors, costs, cliques, order, around, others):
    """Eliminate all attributes, as `eliminate`; what they cost is known, and the last three are scratch memory.

    Each attribute's row is left as its neighbours were when it was eliminated. Of these the first to be eliminated
    after it has all others as neighbours, so that its clique lies within this one if it has no further neighbour. A
    clique that lies within any earlier one lies within such a one.
    """
    count, cells, waiting = 0, 0.0, 0
    for _ in range(sizes.size):
        chosen = _cheapest(costs, factors)
        joins = costs[chosen] > 0.0
        costs[chosen] = np.inf
        row = neighbours[chosen]
        number = _list(row, around)
        product = sizes[chosen]
        for i in range(number):
            product *= sizes[around[i]]
            _take(neighbours[around[i]], chosen)
        if by_size or joins:
            for i in range(number):
                for j in range(i):
                    if not _holds(neighbours[around[i]], around[j]):
                        _join(neighbours, around[i], around[j], by_size, costs, others)
            for i in range(number):
                costs[around[i]] = _cost(neighbours, logs, around[i], by_size, others)
        else:
            # Of a neighbour's pairs those of the eliminated one with what is not around it are gone.
            for i in range(number):
                own = 0
                for word in range(row.size):
                    own += np.int64(count_ones(neighbours[around[i], word]))
                costs[around[i]] -= own - (number - 1)
        maximal, kept = True, 0
        for i in range(waiting):
            earlier = order[i]
            if _holds(neighbours[earlier], chosen):
                held = 0
                for word in range(row.size):
                    held += np.int64(count_ones(neighbours[earlier, word]))
                maximal &= held != number + 1
            else:
                order[kept] = earlier
                kept += 1
        order[kept] = chosen
        waiting = kept + 1
        if maximal:
            cliques[count, :] = row
            _put(cliques[count], chosen)
            count += 1
            cells += product
    return count, cells


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
    scratch = np.empty((3, sizes.size), np.int64)
    logs, costs = np.log(sizes), np.empty(sizes.size)
    for place in range(sizes.size):
        costs[place] = _cost(neighbours, logs, place, by_size, scratch[0])
    return _eliminate(neighbours, sizes, logs, by_size, 1.0 + noise, costs, cliques, scratch[0], scratch[1], scratch[2])


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
    cliques, own = np.empty_like(neighbours), np.empty_like(neighbours)
    scratch = np.empty((3, sizes.size), np.int64)
    logs, factors = np.log(sizes), 1.0 + noise
    before, costs = np.empty(sizes.size), np.empty(sizes.size)
    for place in range(sizes.size):
        before[place] = _cost(neighbours, logs, place, by_size, scratch[0])
    for i in range(cells.size):
        own[:] = neighbours
        costs[:] = before
        held = members[starts[i] : starts[i + 1]]
        for j in range(held.size):
            for k in range(j):
                if not _holds(own[held[j]], held[k]):
                    _join(own, held[j], held[k], by_size, costs, scratch[0])
        for j in range(held.size):
            costs[held[j]] = _cost(own, logs, held[j], by_size, scratch[0])
        _, found = _eliminate(own, sizes, logs, by_size, factors, costs, cliques, scratch[0], scratch[1], scratch[2])
        cells[i] = min(cells[i], found)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
