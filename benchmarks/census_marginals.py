"""Marginals of another library's graphical model, summed by NumPy, for a mechanism that asks for very many of them.

mbi leaves sums to JAX, which compiles a program for each new shape: over a round of AIM that is nearly all of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["SummedModel"]

Factor = tuple[tuple[str, ...], np.ndarray]


class SummedModel:
    """What AIM asks a model of mbi for before it chooses: its domain, and the counts of a set of attributes."""

    def __init__(self, model: Any):
        self.domain, self.total = model.domain, float(model.total)
        self._size = dict(zip(model.domain.attributes, model.domain.shape, strict=True))
        self._marginals = self._tables(model.marginals)
        # Attributes of a factor are in the order of their names.
        self._factors: list[Factor] = []
        for held, table in self._tables(model.potentials):
            named = tuple(sorted(held))
            self._factors.append((named, _ordered((held, np.exp(table - table.max())), named)))

    def project(self, attributes: Sequence[str]) -> Summed:
        """Return the expected counts: from one clique that holds all attributes, else by eliminating all others."""
        wanted = tuple(attributes)
        for held, table in self._marginals:
            if set(wanted) <= set(held):
                return Summed(_ordered((held, table), wanted))
        left = self._connected(wanted)
        while others := {a for held, _ in left for a in held} - set(wanted):
            left = self._without(min(sorted(others), key=lambda a: self._cost(left, a)), left)
        held, table = _product([*left, *(((a,), np.ones(self._size[a])) for a in wanted)])
        counts = _ordered((held, table), wanted)
        return Summed(counts * (self.total / counts.sum()))

    def _tables(self, vector: Any) -> list[Factor]:
        return [(tuple(held), np.asarray(vector[held].values, np.float64)) for held in vector.cliques]

    def _connected(self, wanted: tuple[str, ...]) -> list[Factor]:
        """Return the factors that hang together with any of the attributes; others are one number."""
        reached, before = set(wanted), 0
        while len(reached) > before:
            before = len(reached)
            for held, _ in self._factors:
                reached |= set(held) if reached & set(held) else set()
        return [one for one in self._factors if reached & set(one[0])]

    def _cost(self, left: list[Factor], attribute: str) -> int:
        return math.prod(self._size[a] for a in {a for held, _ in left if attribute in held for a in held})

    @staticmethod
    def _without(attribute: str, left: list[Factor]) -> list[Factor]:
        held, table = _product([one for one in left if attribute in one[0]])
        summed = table.sum(axis=held.index(attribute))
        rest = [one for one in left if attribute not in one[0]]
        return [*rest, (tuple(a for a in held if a != attribute), summed / summed.max())]


class Summed:
    """Counts, with the one method of mbi's that AIM calls."""

    def __init__(self, counts: np.ndarray):
        self.counts = counts

    def datavector(self) -> np.ndarray:
        """Return the counts in one row."""
        return self.counts.ravel()


def _ordered(factor: Factor, wanted: tuple[str, ...]) -> np.ndarray:
    """Return a factor's table, summed to some attributes, in their order."""
    held, table = factor
    summed = table.sum(axis=tuple(place for place, a in enumerate(held) if a not in wanted))
    kept = [a for a in held if a in wanted]
    return np.asarray(summed).transpose([kept.index(a) for a in wanted])


def _product(factors: list[Factor]) -> Factor:
    """Return the product of factors whose attributes are in the order of their names."""
    held = tuple(sorted({a for one, _ in factors for a in one}))
    product = np.ones((1,) * len(held))
    # Small ones first: the product grows late.
    for one, table in sorted(factors, key=lambda factor: factor[1].size):
        sizes = iter(table.shape)
        product = product * table.reshape([next(sizes) if a in one else 1 for a in held])
    return held, product
