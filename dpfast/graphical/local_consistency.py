"""Noisy marginals of which no tree has room, made nonnegative and consistent with each other: pseudo-marginals.

Tables over cliques that are nonnegative, agree on every set of attributes that two of them hold, and add up to one
total, are the local polytope. Every table over all attributes has its marginals there. The converse holds where the
cliques form a junction tree, and fails elsewhere: such tables may be marginals of no table at all (Wainwright, Jordan
2008, section 4.1). In exchange they take the memory of the cliques alone. Fitting noisy marginals over this set, in
place of the marginals of tables, is the approximate form of Private-PGM (McKenna, Pradhan, Sheldon, Miklau 2021).

The fit minimises a sum over all cells x of all cliques of a strictly convex function of x plus (x - y)**2 / (2 s), with
the noisy count y and a softness s of each clique. For "least squares" the function is 0 on x >= 0; for "entropy" it is
the relative entropy to counts q in which attributes are independent, x ln(x / q) - x + q: a free energy whose region
graph has the counting number 1 at each clique, and so is convex.

Its Lagrangian dual has a number for each cell of each shared marginal of each clique (`shared_marginals`). Given these
a cell has a closed form (`dpfast.kernels.graphical.local_consistency`), which moves by at most s per unit of its dual
terms. So the dual's gradient, what tables lack to agree, has the Lipschitz constant 1 in the norm of the weighted sum
of squares, and steps of length 1 go up. They are accelerated (Nesterov 1983), and begin anew where they overshoot
(O'Donoghue, Candes 2015). Without restarts the dual misses its maximum after k steps by 2 r**2 / (k + 1)**2 at most,
for the distance r from the start. Whether it was reached is measured: `LocalFit.disagreement`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.graphical.elimination import cells_of
from dpfast.graphical.shared_marginals import SharedMarginals
from dpfast.graphical.views import View
from dpfast.kernels.graphical.local_consistency import entropy_cells, least_squares_cells
from dpfast.progress import silent

__all__ = ["LocalFit", "Method", "fit_locally"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]
Method: TypeAlias = Literal["entropy", "least_squares"]

#: Tables agree when they differ by no more than this part of the total in any shared count.
TOLERANCE = 1e-5
_MOST_STEPS = 2_000
#: How softly entropy holds noisy counts, in their deviations: in proportion to the root of the deviation over the mean
#: count, within bounds. Of small counts noise says little. Found by experiment on made-up tables.
_SOFTNESS, _FIRMEST, _SOFTEST = 2.0, 0.3, 8.0
#: No column's value gets less than this part of its even share before entropy is counted.
_LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class LocalFit:
    """Pseudo-marginals.

    Attributes
    ----------
    tables
        Nonnegative counts of each clique, in one dimension.
    disagreement
        The largest difference between two tables' counts of what both hold, or of one's sum from the total.
    steps
        How many steps of the dual were made.

    """

    tables: list[Floats]
    disagreement: float
    steps: int


class _Dual:
    """The dual of one fit: tables from duals, and back.

    Parameters
    ----------
    levels
        What the kernel takes of each cell, a list for each clique.
    softness
        Of each clique.
    cells
        The kernel.

    """

    def __init__(
        self,
        sizes: Sequence[int],
        cliques: Sequence[Attributes],
        shared: Sequence[Attributes],
        levels: list[Floats],
        softness: Sequence[float],
        cells: Callable[..., Any],
    ) -> None:
        self._cells, self._levels, self._softness = cells, levels, softness
        self.shared = SharedMarginals(sizes, cliques, shared, softness)
        self._views: list[list[tuple[int, int, View]]] = [[] for _ in cliques]
        for place, (held, holders) in enumerate(zip(shared, self.shared.holders, strict=True)):
            for row, clique in enumerate(holders):
                self._views[clique].append((place, row, View(sizes, cliques[clique], held)))
        self.tables = [np.zeros(level.size) for level in levels]
        self._terms = np.zeros(max(level.size for level in levels))

    def fill(self, duals: Sequence[Floats]) -> list[Floats]:
        """Set the tables to those of the duals; return their shared marginals."""
        found = self.shared.zeros()
        for clique, (level, table) in enumerate(zip(self._levels, self.tables, strict=True)):
            terms = self._terms[: table.size]
            terms[:] = 0.0
            for place, row, view in self._views[clique]:
                view.add(terms, duals[place][row])
            self._cells(level, terms, self._softness[clique], table)
            for place, row, view in self._views[clique]:
                found[place][row] = view.sums(table)
        return found

    def maximise(self, total: float, tolerance: float, most: int, tell: Callable[[int, float], object]) -> LocalFit:
        """Return the fit whose tables agree within the tolerance, or that of the last step.

        ``tell`` hears how many steps are done, and how far apart tables are.
        """
        duals = before = self.shared.zeros()
        speed = 1.0
        for done in range(most + 1):
            faster = (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
            ahead = [now + (speed - 1.0) / faster * (now - old) for now, old in zip(duals, before, strict=True)]
            sums = self.fill(ahead)
            apart = self.shared.disagreement(sums, total)
            tell(done, apart)
            if apart <= tolerance or done == most:
                break
            step = self.shared.steps(self.shared.lacking(sums, total))
            before, duals = duals, [old + new for old, new in zip(ahead, step, strict=True)]
            moved = [now - old for now, old in zip(duals, before, strict=True)]
            # A step against the way that it came: it overshot.
            speed = 1.0 if self.shared.product(step, moved) < 0.0 else faster
        return LocalFit(self.tables, apart, done)


def fit_locally(
    sizes: Sequence[int],
    cliques: Sequence[Attributes],
    shared: Sequence[Attributes],
    values: Sequence[Floats],
    deviations: Sequence[float],
    total: float,
    method: Method,
    tell: Callable[[str], object] = silent,
) -> LocalFit:
    """Return pseudo-marginals fitted to noisy marginals.

    Guarantee
        Post-processing of the values: the same values give the same fit. Beside the values it takes about twice the
        memory of the tables that come out, and that of the shared marginals several times.

    Parameters
    ----------
    sizes
        How many values each attribute has.
    cliques, shared
        Different ascending sets of attributes, and what `shared_sets` says of them.
    values, deviations
        The noisy counts of each clique in one dimension, and the deviation of their noise.
    total
        What the tables shall add up to; not below 0.
    method
        "least_squares" or "entropy".
    tell
        Hears after every step how far the fit has come.

    """

    def step(name: str, done: int, apart: float) -> None:
        tell(f"fitting marginals by {name}, step {done} of at most {_MOST_STEPS:,}: they differ by {apart:.3g}")

    if not total > 0.0:
        return LocalFit([np.zeros(own.size) for own in values], 0.0, 0)
    tolerance = TOLERANCE * total
    softness = [one * one for one in deviations]
    levels = [own / soft for own, soft in zip(values, softness, strict=True)]
    dual = _Dual(sizes, cliques, shared, levels, softness, least_squares_cells)
    plain = dual.maximise(total, tolerance, _MOST_STEPS, partial(step, "least squares"))
    if method == "least_squares":
        return plain
    even = _log_shares(sizes, cliques, plain.tables)
    softness = [
        one * min(max(_SOFTNESS * math.sqrt(one * own.size / total), _FIRMEST), _SOFTEST)
        for one, own in zip(deviations, values, strict=True)
    ]
    for clique, own, soft, level in zip(cliques, values, softness, levels, strict=True):
        np.divide(own, soft, out=level)
        level += math.log(total / soft)
        for attribute in clique:
            View(sizes, clique, (attribute,)).add(level, even[attribute])
    del plain, dual
    softer = _Dual(sizes, cliques, shared, levels, softness, entropy_cells)
    return softer.maximise(total, tolerance, _MOST_STEPS, partial(step, "entropy"))


def _log_shares(sizes: Sequence[int], cliques: Sequence[Attributes], tables: Sequence[Floats]) -> dict[int, Floats]:
    """Return the logarithm of each value's share of its attribute, from the smallest table that holds this."""
    homes: dict[int, int] = {}
    for place in sorted(range(len(cliques)), key=lambda place: (cells_of(sizes, cliques[place]), place)):
        for attribute in cliques[place]:
            homes.setdefault(attribute, place)
    found = {}
    for attribute, place in homes.items():
        counts = View(sizes, cliques[place], (attribute,)).sums(tables[place])
        # Where noise left no count at all, nothing is known of the shares.
        least = _LEAST_SHARE * counts.sum() / counts.size or 1.0
        kept = np.maximum(counts, least)
        found[attribute] = np.log(kept / kept.sum())
    return found
