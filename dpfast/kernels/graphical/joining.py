"""What a tree of cliques grows by at most, were two attributes more together; for all pairs, and no order is searched.

Between the cliques that hold one attribute and those that hold the other lies one path, with separators S1, ..., Sk.
If one of them is empty, a clique of the two attributes joins both sides. Else the first attribute is carried along the
path up to some separator St, and the other one from there on: cliques of S1 + S2 and the first attribute, and so on; of
St and both; and of S(t+1) + St and the other, up to Sk. Together with the cliques that there are these are a junction
tree again. The t of fewest cells is taken.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, shift_right

__all__ = ["cells_joined"]

_ONE, _ZERO = np.uint64(1), np.uint64(0)


@kernel
def _cells_of_union(one, other, sizes):
    cells = 1.0
    for word in range(one.size):
        left, place = bit_or(one[word], other[word]), 64 * word
        while left != _ZERO:
            if bit_and(left, _ONE) != _ZERO:
                cells *= sizes[place]
            left = shift_right(left, _ONE)
            place += 1
    return cells


@kernel
def cells_joined(source, sizes, starts, members, near_starts, near, separators, lengths, cells):
    """Set by how many cells the tree grows at most, were one attribute together with each other one.

    Parameters
    ----------
    source
        The attribute.
    sizes
        float64: how many values each attribute has.
    starts, members
        int64: clique c has the attributes members[starts[c]:starts[c + 1]].
    near_starts, near
        int64: its neighbours in the tree, likewise, two numbers each: the clique, and the row of the separator.
    separators
        uint64: a row of bits for each.
    lengths
        float64: how many cells each separator has; 0 for an empty one.
    cells
        Out, float64: one for each attribute; 0 where a clique holds both.

    """
    count = starts.size - 1
    order, before, edge = np.empty(count, np.int64), np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    carried, met = np.zeros(count), np.zeros(count, np.bool_)
    cells[:] = np.inf
    size = 0
    for clique in range(count):
        for i in range(starts[clique], starts[clique + 1]):
            if members[i] == source:
                met[clique] = True
                order[size] = clique
                size += 1
    done = 0
    while done < size:
        clique = order[done]
        done += 1
        for i in range(starts[clique], starts[clique + 1]):
            other = members[i]
            if cells[other] < np.inf:
                continue
            if edge[clique] < 0:
                cells[other] = 0.0
                continue
            at, both = clique, sizes[source] * sizes[other]
            while edge[at] >= 0:
                held = lengths[edge[at]]
                if held == 0.0:
                    cells[other] = both
                    break
                kept = sizes[source] * carried[at] + both * held + sizes[other] * (carried[clique] - carried[at])
                cells[other] = min(cells[other], kept)
                at = before[at]
        for i in range(near_starts[clique], near_starts[clique + 1]):
            following, row = near[i, 0], near[i, 1]
            if not met[following]:
                met[following] = True
                before[following], edge[following] = clique, row
                if edge[clique] >= 0:
                    own = _cells_of_union(separators[edge[clique]], separators[row], sizes)
                    carried[following] = carried[clique] + own
                order[size] = following
                size += 1


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
