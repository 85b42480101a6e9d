"""Binary trees over the steps: the event-level counter of the book, and Honaker's use of all its nodes.

A node of level l is 2**l consecutive steps. What a node holds is measured once, when its last step comes, and a prefix
sum is added up from the nodes that it consists of. Published figures are functions of the noisy nodes alone, computed
from them and from nothing else that is private, so that no rounding in them can tell more than the nodes do.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.columns import BLOCK_ROWS
from dpfast.columns.fresh import fresh_array
from dpfast.kernels.streaming import trees as kernels
from dpfast.mechanisms.noise.additive import Buffers
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.randomness import RandomSource
from dpfast.streaming.method import Found, Method, State, noise_for
from dpfast.streaming.unit import Norms, StreamUnit

__all__ = ["BinaryTree", "Honaker", "node_count", "tree_norms"]

#: Steps whose nodes are drawn together: they stay in a cache, and their noise is as large as what `fresh_array` takes
#: from a pool of mapped memory. Fresh pages for every block took longer than the noise.
_BLOCK_STEPS = 2 * BLOCK_ROWS


def tree_norms(levels: int, max_steps: int) -> Norms:
    """Return how far a unit of so many steps moves the nodes of a tree.

    Each of its steps is in one node of every level. Squares add up to the most where its steps fill as few nodes as
    they can: where they follow each other from the first on, at all levels alike.

    Examples
    --------
    >>> tree_norms(3, 1), tree_norms(3, 3)
    (Norms(l1=3, l2_squared=Fraction(3, 1)), Norms(l1=9, l2_squared=Fraction(17, 1)))

    """
    squared = 0
    for level in range(levels):
        full, rest = divmod(max_steps, 1 << level)
        squared += full * 4**level + rest**2
    return Norms(levels * max_steps, Fraction(squared))


def node_count(steps: NDArray[np.int64], level: int, top: int) -> NDArray[np.int64]:
    """Return how many nodes of a level the prefixes of so many steps consist of."""
    nodes = steps >> level
    return nodes if level == top else nodes & 1


class BinaryTree(Method):
    """The event-level counter: prefixes added up from the nodes of a binary tree.

    Every step s, counted from 1, ends a node of level j, the number of zero bits at the end of s, which is measured
    and added to the noisy prefix at s - 2**j. The top level is not joined further: for 2**k steps k levels are enough,
    the root being what two nodes say. The number of levels is the one with the least mean variance, unless it is given.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum (2010); Chan, Shi, Song (2011). Dwork, Roth (2014), figure 12.1.

    """

    name: ClassVar[str] = "tree"

    def __init__(self, horizon: int, unit: StreamUnit, budget: Budget, found: Found | None = None) -> None:
        super().__init__(horizon)
        self._gaussian = budget.kind == "rho" or budget.delta_units > 0
        least: tuple[float, int, IntegerNoise] | None = None
        for count in range(1, horizon.bit_length() + 1) if found is None else [found["levels"]]:
            noises = [noise_for(budget, unit, tree_norms(count, unit.max_steps), gaussian=self._gaussian)]
            if self._gaussian and budget.kind == "epsilon":
                noises.append(noise_for(budget, unit, tree_norms(count, unit.max_steps), gaussian=False))
            for noise in noises:
                mean = self._mean_nodes(count - 1) * noise.deviation**2
                if least is None or mean < least[0]:
                    least = mean, count, noise
        assert least is not None
        self._mean, self.levels, self.noise = least

    @staticmethod
    def share_of_variance(level: int) -> float:
        """Return the variance of a node's value, in those of a measurement."""
        return 1.0

    @property
    def found(self) -> Found:
        """See `Method.found`."""
        return {"levels": self.levels}

    def _mean_nodes(self, top: int) -> float:
        """Return the mean, over all steps, of the variance of a prefix, in those of a measurement."""
        whole = 0.0
        for level in range(top + 1):
            full, rest = divmod(self.horizon >> level, 2)
            if level == top:
                count = self.horizon >> level
                # Each node that is counted stays for the steps that come after it.
                held = count * (self.horizon + 1) - (1 << level) * count * (count + 1) // 2
            else:
                # Half of every pair of nodes but the last: from the first one's end on.
                held = full << level
                held += (self.horizon + 1 - ((2 * full + 1) << level)) if rest else 0
            whole += held * self.share_of_variance(level)
        return whole / self.horizon

    def variances(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Method.variances`."""
        top = self.levels - 1
        shares = (node_count(steps, level, top) * self.share_of_variance(level) for level in range(self.levels))
        return np.asarray(sum(shares) * self.noise.deviation**2, np.float64)

    def mean_variance(self) -> float:
        """See `Method.mean_variance`."""
        return self._mean

    def begin(self, counters: int) -> State:
        """See `Method.begin`."""
        return _TreeState(self.noise, self.levels, counters)


class _TreeState(State):
    """Exact and noisy prefixes, a row for each level; the last row is the empty prefix."""

    def __init__(self, noise: IntegerNoise, levels: int, counters: int) -> None:
        self._noise, self._top = noise, levels - 1
        stacks = {name: np.zeros((levels + 1, counters), np.int64) for name in ("exact", "noisy")}
        super().__init__(totals=np.zeros(counters, np.int64), **stacks)

    def advance(
        self, increments: NDArray[np.int64], limit: int, source: RandomSource, threads: int | None
    ) -> NDArray[np.int64]:
        """See `State.advance`."""
        totals, exact, noisy = (self.arrays[name] for name in ("totals", "exact", "noisy"))
        level, before = places(self.step + 1, self._top)
        nodes = np.empty(totals.size, np.int64)
        kernels.open_nodes(increments, np.int64(limit), totals, exact[before], nodes)
        measured = self._noise.add(nodes, source, threads)
        figures = fresh_array(totals.size, np.dtype(np.int64))
        kernels.add_columns(noisy[before], measured, figures)
        exact[level], noisy[level] = totals, figures
        self.step += 1
        return figures

    def run(
        self, increments: NDArray[np.int64], limit: int, sources: Callable[[], RandomSource], threads: int | None
    ) -> NDArray[np.int64]:
        """See `State.run`: in blocks, whose nodes are drawn together."""
        exact, noisy = (self.arrays[name][:, 0].copy() for name in ("exact", "noisy"))
        total, top = np.int64(self.arrays["totals"][0]), np.int64(self._top)
        figures = fresh_array(increments.size, np.dtype(np.int64))
        nodes = np.empty(min(_BLOCK_STEPS, increments.size), np.int64)
        kept: list[Buffers] = []
        for start in range(0, increments.size, _BLOCK_STEPS):
            block = increments[start : start + _BLOCK_STEPS]
            part, step = nodes[: block.size], np.int64(self.step)
            total = kernels.run_nodes(block, np.int64(limit), step, top, exact, total, part)
            measured = self._noise.add_again(part, sources(), threads, kept)
            kernels.sum_nodes(measured, step, top, noisy, figures[start : start + block.size])
            self.step += block.size
        self.arrays["exact"][:, 0], self.arrays["noisy"][:, 0] = exact, noisy
        self.arrays["totals"][0] = total
        return figures


def places(step: int, top: int) -> tuple[int, int]:
    """Return the level of the node that ends at a step, counted from 1, and the row of the prefix before it.

    Examples
    --------
    >>> places(6, 3), places(8, 3), places(8, 2), places(12, 2)
    ((1, 2), (3, 4), (2, 2), (2, 2))

    """
    level = min((step & -step).bit_length() - 1, top)
    before = step - (1 << level)
    return level, min((before & -before).bit_length() - 1, top) if before else top + 1


class Honaker(BinaryTree):
    """The same tree, where what a node holds is estimated from its own measurement and from all below it.

    A node of level l has its own measurement, of variance 1, and its children's estimates, together of variance 2 v:
    weighted by their precisions they have the variance v' = 2 v / (1 + 2 v), which is 2**l / (2**(l + 1) - 1). All
    nodes are measured, those too that no prefix consists of: the budget of a tree pays for them.

    References
    ----------
    Honaker (2015), estimation from below, which needs no later step.

    """

    name: ClassVar[str] = "honaker"

    @staticmethod
    def share_of_variance(level: int) -> float:
        """See `BinaryTree.share_of_variance`."""
        return float(2**level / (2 ** (level + 1) - 1))

    def begin(self, counters: int) -> State:
        """See `Method.begin`."""
        return _HonakerState(self.noise, self.levels, counters)


class _HonakerState(State):
    """By level: the exact prefix, the estimated prefix, and the estimate of the last node."""

    def __init__(self, noise: IntegerNoise, levels: int, counters: int) -> None:
        self._noise, self._top = noise, levels - 1
        super().__init__(
            totals=np.zeros(counters, np.int64),
            exact=np.zeros((levels + 1, counters), np.int64),
            prefixes=np.zeros((levels + 1, counters)),
            nodes=np.zeros((levels, counters)),
        )

    def advance(
        self, increments: NDArray[np.int64], limit: int, source: RandomSource, threads: int | None
    ) -> NDArray[np.int64]:
        """See `State.advance`."""
        totals, exact, prefixes, nodes = (self.arrays[name] for name in ("totals", "exact", "prefixes", "nodes"))
        level, before = places(self.step + 1, self._top)
        sums = np.empty(totals.size, np.int64)
        estimates = np.zeros(totals.size)
        nothing = np.zeros(totals.size, np.int64)
        for below in range(level + 1):
            # The prefix before this node: at its own level its left sibling's, else what the level before says.
            row = below if below < level else before
            kernels.open_nodes(increments if below == 0 else nothing, np.int64(limit), totals, exact[row], sums)
            measured = self._noise.add(sums, source, threads)
            if below == 0:
                estimates[:] = measured
            else:
                share = Honaker.share_of_variance(below)
                kernels.merge_estimates(measured, share, nodes[below - 1], estimates)
        kernels.add_columns(prefixes[before], estimates, prefixes[level])
        nodes[level], exact[level] = estimates, totals
        self.step += 1
        return np.asarray(np.rint(prefixes[level]), np.int64)
