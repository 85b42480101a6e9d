"""Many draws from one distribution by an alias table (Walker 1977; Vose 1991), on integers alone.

The line of 2**64 words is cut into 2**bits slots of equal length. Every item owns an integer number of words, its
mass; the masses add up to 2**64 exactly. A slot holds at most two items: its own from its begin up to a threshold,
another one, the alias, from there on. All numbers are integers, and the construction moves words from one item to
another without loss, so that every item gets exactly its mass: the last slots to be filled are exactly full.

An entry of the table is one word: the threshold above, the alias in the lowest ``bits`` bits. A threshold is below
2**(64 - bits); a slot that is its own item's from begin to end has threshold 0 and itself as alias.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bit_and, bit_or, choose, shift_left, shift_right, subtract
from dpfast.kernels.weights.exponential_weights import BLOCK, weigh

__all__ = ["build_table", "draw_from_table", "floor_masses"]

_WORD, _ZERO, _ONE = np.uint64(64), np.uint64(0), np.uint64(1)


@kernel
def floor_masses(scores, a, references, units, weights, masses):
    """Set each candidate's mass to its weight times its block's unit, rounded down.

    ``references`` and ``units`` have one entry for each block of BLOCK scores; ``weights`` is scratch memory. Every
    product must be below 2**64, and is then converted to an integer without rounding but down.
    """
    for block in range(units.size):
        start, stop = block * BLOCK, min((block + 1) * BLOCK, scores.size)
        weigh(scores[start:stop], references[block], a, weights)
        unit = units[block]
        for i in range(stop - start):
            masses[start + i] = np.uint64(weights[i] * unit)


@kernel
def build_table(masses, bits, order, table):
    """Fill ``table`` from masses (uint64) that add up to 2**64, and are used up; return how many were not placed: 0.

    ``masses``, ``order`` (int64, scratch memory) and ``table`` (uint64) have 2**bits entries, bits from 1 to 32.
    """
    shift = np.uint64(bits)
    slot = shift_left(_ONE, subtract(_WORD, shift))
    # Items that do not fill a slot are piled up from the front, the others from the back.
    small, large = 0, masses.size
    for item in range(masses.size):
        if masses[item] < slot:
            order[small] = item
            small += 1
        else:
            large -= 1
            order[large] = item
    while small > 0 and large < masses.size:
        small -= 1
        item, giver = order[small], order[large]
        table[item] = bit_or(shift_left(masses[item], shift), np.uint64(giver))
        left = subtract(masses[giver], subtract(slot, masses[item]))
        masses[giver] = left
        if left < slot:
            order[small] = giver
            small += 1
            large += 1
    for place in range(large, masses.size):
        table[order[place]] = np.uint64(order[place])
    return small


@kernel
def draw_from_table(words, table, bits, residual, drawn):
    """Set ``drawn`` (int64) to the item of every word (uint64); return how often that is ``residual``."""
    shift = np.uint64(bits)
    slot_shift = subtract(_WORD, shift)
    alias_mask = subtract(shift_left(_ONE, shift), _ONE)
    place_mask = subtract(shift_left(_ONE, slot_shift), _ONE)
    found = 0
    for i in range(words.size):
        word = words[i]
        slot = shift_right(word, slot_shift)
        entry = table[slot]
        inside = bit_and(word, place_mask) < shift_right(entry, shift)
        item = np.int64(choose(inside, slot, bit_and(entry, alias_mask)))
        drawn[i] = item
        found += 1 if item == residual else 0
    return found


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
