"""In which order marginal tables are made of each other, so that the histogram is read a few times only.

A table over some attributes serves all marginals of them. Of a table that is to serve marginals of at most k
attributes, these are divided into k + 1 stretches: a marginal touches k of them at most, so that some stretch can be
summed out for it. The k + 1 smaller tables share the marginals among them, and so on: all pairs of 15 attributes cost
three passes over the histogram and little more, instead of 105.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

__all__ = ["MarginalTree"]

_Attributes = tuple[int, ...]


class MarginalTree:
    """Steps for `sum_marginals` and `spread_marginals`.

    Parameters
    ----------
    shape
        The histogram's shape.
    marginals
        Attributes of each marginal, ascending.

    Attributes
    ----------
    steps
        One row of five numbers for each step.
    size
        Numbers that all tables take: the marginals first, in their order, then the tables that only lead to them.

    """

    def __init__(self, shape: tuple[int, ...], marginals: Sequence[_Attributes]) -> None:
        self._shape = shape
        self._steps: list[tuple[int, int, int, int, int]] = []
        self._wanted: dict[_Attributes, int] = {}
        self.size = 0
        repeated = []
        for marginal in marginals:
            cells = self._cells(marginal)
            if marginal in self._wanted:
                repeated.append((self._wanted[marginal], self.size, 1, 1, cells))
            else:
                self._wanted[marginal] = self.size
            self.size += cells
        whole = tuple(range(len(shape)))
        self._made = {whole: -1}
        if whole in self._wanted:
            self._steps.append((-1, self._wanted[whole], 1, 1, self._cells(whole)))
        self._lead(whole, [marginal for marginal in self._wanted if marginal != whole])
        self.steps: NDArray[np.int64] = np.array(self._steps + repeated, np.int64).reshape(-1, 5)

    def _cells(self, attributes: _Attributes) -> int:
        return math.prod(self._shape[attribute] for attribute in attributes)

    def _lead(self, table: _Attributes, wanted: list[_Attributes]) -> None:
        """Make these marginals, each of fewer attributes than the table has, of the table."""
        if not wanted:
            return
        stretches = self._unused(table, wanted) or self._divided(table, max(map(len, wanted)) + 1)
        shares: dict[tuple[int, int], list[_Attributes]] = {}
        # The stretch of the most cells leaves the smallest table.
        stretches.sort(key=lambda stretch: -self._cells(table[stretch[0] : stretch[1]]))
        for marginal in wanted:
            untouched = next(place for place in stretches if not set(table[place[0] : place[1]]) & set(marginal))
            shares.setdefault(untouched, []).append(marginal)
        for (start, stop), share in shares.items():
            rest = table[:start] + table[stop:]
            if rest not in self._made:
                self._make(rest, table, start, stop)
            self._lead(rest, [marginal for marginal in share if marginal != rest])

    def _make(self, table: _Attributes, source: _Attributes, start: int, stop: int) -> None:
        place = self._wanted.get(table)
        if place is None:
            place = self.size
            self.size += self._cells(table)
        self._made[table] = place
        outer, size, inner = (self._cells(part) for part in (source[:start], source[start:stop], source[stop:]))
        self._steps.append((self._made[source], place, outer, size, inner))

    def _unused(self, table: _Attributes, wanted: list[_Attributes]) -> list[tuple[int, int]]:
        """Return the stretch of the most cells that no marginal takes, alone; or nothing."""
        used = set().union(*wanted)
        stretches: list[tuple[int, int]] = []
        for place, attribute in enumerate(table):
            if attribute not in used:
                grows = stretches and stretches[-1][1] == place
                stretches.append((stretches.pop()[0] if grows else place, place + 1))
        return sorted(stretches, key=lambda stretch: -self._cells(table[stretch[0] : stretch[1]]))[:1]

    def _divided(self, table: _Attributes, parts: int) -> list[tuple[int, int]]:
        """Return so many stretches of the table, of about as many cells each."""
        heights = list(accumulate((math.log2(self._shape[attribute]) for attribute in table), initial=0.0))
        cuts = [0]
        for part in range(1, parts):
            places = range(cuts[-1] + 1, len(table) - (parts - part) + 1)
            cuts.append(min(places, key=lambda place: abs(heights[place] - heights[-1] * part / parts)))
        return list(zip(cuts, [*cuts[1:], len(table)], strict=True))
