"""The hierarchy H_b: sums over nested blocks of cells, level by level, made consistent by least squares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Flag, Special, Threads
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ParameterError
from dpfast.kernels.histograms import trees
from dpfast.strategies.nested import Nested
from dpfast.strategies.strategy import Weights, integer_histogram, read_weights
from dpfast.threads import in_parts, thread_count
from dpfast.workloads.histograms import Counts
from dpfast.workloads.shapes import CELLS, Cells

__all__ = ["Hierarchy", "block_sizes", "hierarchies", "hierarchy", "weighted_hierarchy"]

ROOT = Flag()
#: A level's blocks, a tree a row.
Table: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class _Level:
    """Factors of the two passes for the blocks of a level above the cells: see `dpfast.kernels.histograms.trees`.

    Attributes
    ----------
    fan_out
        How many blocks of the level below make one.
    whole, last
        What a block's own measurement and the sum of those below it count: of full blocks, and of the last one.
    shares
        What each block below gets of what its block lacks: in full blocks, and in the last one, of which the last block
        below has a share of its own.

    """

    fan_out: int
    whole: tuple[float, float]
    last: tuple[float, float]
    shares: tuple[float, float, float]

    def estimate(self, below: Table, measured: Table, unit: float, estimates: Table, threads: object) -> None:
        """Set a level's estimates from those below, times ``unit``, and its own measurements."""
        blocks = estimates.shape[1]

        def work(start: int, stop: int) -> None:
            # Only the last block of all has factors of its own.
            factors = [
                (own, children * unit) for own, children in (self.whole, self.last if stop == blocks else self.whole)
            ]
            numbers = below[:, start * self.fan_out : stop * self.fan_out], measured[:, start:stop], self.fan_out
            trees.estimate_blocks(*numbers, *factors[0], *factors[1], estimates[:, start:stop])

        in_parts(work, blocks, thread_count(threads, below.size))

    def settle(self, below: Table, above: Table, unit: float, settled: Table, threads: object) -> None:
        """Set a level's final estimates from its own, times ``unit``, and those above."""
        blocks = above.shape[1]

        def work(start: int, stop: int) -> None:
            share, last, last_child = self.shares if stop == blocks else (self.shares[0],) * 3
            own = slice(start * self.fan_out, stop * self.fan_out)
            numbers = below[:, own], above[:, start:stop], self.fan_out
            trees.settle_blocks(*numbers, unit, share, last, last_child, settled[:, own])

        in_parts(work, blocks, thread_count(threads, below.size))


class Hierarchy(Nested):
    """Sums over the blocks of nested partitions, each level times a whole-number weight.

    Attributes
    ----------
    sizes
        How many cells the blocks of each level have, from 1 for the cells upward, each a multiple of the one before;
        the last block of a level has what is left.
    weights
        One for each level: its sums are measured times that.

    """

    def __init__(self, cells: int, sizes: tuple[int, ...], weights: tuple[int, ...], name: str) -> None:
        self.shape = (cells,)
        self.sizes = sizes
        self.weights = weights
        self.name = name
        self.counts = tuple(-(-cells // size) for size in sizes)
        # A cell lies in one block of each level.
        self.l1, self.l2_squared = sum(weights), sum(weight**2 for weight in weights)
        self.row = max(weight * size for size, weight in self.levels)

    def __len__(self) -> int:
        """Return the number of blocks on all levels."""
        return sum(self.counts)

    @property
    def inner(self) -> int:
        """What all cells share: the root, if it is measured."""
        return sum(weight**2 for weight, count in zip(self.weights, self.counts, strict=True) if count == 1)

    @property
    def levels(self) -> list[tuple[int, int]]:
        """See `Strategy.levels`."""
        return [(min(size, self.cells), weight) for size, weight in zip(self.sizes, self.weights, strict=True)]

    def measure(self, histogram: Counts, *, threads: Threads = None) -> list[NDArray[np.int64]]:
        """See `Strategy.measure`: a column for each level, that of the cells first.

        The cells' own column is not clipped where its weight is 1, which is the histogram's own memory then.
        """
        cells = integer_histogram(histogram, self, clipped=False)
        return [level.reshape(-1) for level in self._measured(cells.reshape(1, -1), threads)]

    def _measured(self, cells: NDArray[np.int64], threads: Threads) -> list[NDArray[np.int64]]:
        """Return the columns of every row of a matrix, as rows."""
        limit = self.largest_count
        levels = [cells]
        for (size, larger), count in zip(pairwise(self.sizes), self.counts[1:], strict=True):
            sums = _fresh((len(cells), count), np.int64)
            # Only counts need the limit: sums of those within it stay below 2**62.
            _sum(levels[-1], larger // size, limit if size == 1 else 2**62, sums, threads)
            levels.append(sums)
        if self.weights[0] > 1:
            levels[0] = np.clip(cells, -limit, limit, out=_fresh(cells.shape, np.int64))
        for level, weight in zip(levels, self.weights, strict=True):
            if weight > 1:
                np.multiply(level, weight, out=level)
        return levels

    def reconstruct(self, noisy: Sequence[NDArray[Any]], *, threads: Threads = None) -> NDArray[np.float64]:
        """See `Strategy.reconstruct`."""
        return self._settled([level.reshape(1, -1) for level in noisy], threads).reshape(-1)

    def measure_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `LineStrategy.measure_rows`."""
        return np.concatenate(self._measured(rows, 1), axis=1)

    def reconstruct_rows(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `LineStrategy.reconstruct_rows`."""
        return self._settled([np.ascontiguousarray(level) for level in self._parts(noisy)], 1)

    @property
    def eigenvalues(self) -> list[float]:
        """Of A'A, in the details of each level: w_0**2 s_0 + ... + w_l**2 s_l with the weights w and the sizes s."""
        shares = (float(weight) ** 2 * size for weight, size in zip(self.weights, self.sizes, strict=True))
        return list(accumulate(shares))

    def _parts(self, numbers: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the part of each level, of rows that hold all levels one after the other."""
        ends = np.cumsum(self.counts)
        return [numbers[:, end - count : end] for end, count in zip(ends, self.counts, strict=True)]

    def _factors(self) -> tuple[list[_Level], float]:
        """Return the passes' factors for every level above the cells, and 1 / the cells' weight."""
        levels = []
        precision = last = float(self.weights[0]) ** 2
        # The cells' estimates are their measurements divided by the weight.
        for (size, larger), count, weight in zip(pairwise(self.sizes), self.counts[1:], self.weights[1:], strict=True):
            fan_out = larger // size
            children_below = -(-self.cells // size)
            last_children = children_below - (count - 1) * fan_out
            variance = fan_out / precision
            last_variance = (last_children - 1) / precision + 1.0 / last
            child_shares = (1.0 / precision / last_variance, 1.0 / last / last_variance)
            precision, last = weight**2 + 1.0 / variance, weight**2 + 1.0 / last_variance
            whole = weight / precision, 1.0 / (variance * precision)
            at_end = weight / last, 1.0 / (last_variance * last)
            levels.append(_Level(fan_out, whole, at_end, (1.0 / fan_out, *child_shares)))
        return levels, 1.0 / self.weights[0]

    def _settled(self, levels: list[NDArray[Any]], threads: object) -> NDArray[np.float64]:
        """Return the least-squares cells, a tree a row, from all levels' measurements."""
        factors, unit = self._factors()
        estimates: list[NDArray[Any]] = [levels[0]]
        for level, measured, factor in zip(range(1, len(levels)), levels[1:], factors, strict=True):
            # The cells' weight is taken out here and below, so that they need no copy.
            below = unit if level == 1 else 1.0
            upward = _fresh(measured.shape)
            factor.estimate(estimates[-1], measured, below, upward, threads)
            estimates.append(upward)
        if not factors:
            return levels[0] * unit
        settled: NDArray[np.float64] = estimates[-1]
        for level, factor in reversed(list(zip(range(len(factors)), factors, strict=True))):
            below = unit if level == 0 else 1.0
            # Estimates above the cells are needed no more, and replaced in place.
            downward = _fresh(estimates[0].shape) if level == 0 else estimates[level]
            factor.settle(estimates[level], settled, below, downward, threads)
            settled = downward
        return settled


def _fresh(shape: tuple[int, ...], kind: type = np.float64) -> NDArray[Any]:
    return fresh_array(math.prod(shape), np.dtype(kind)).reshape(shape)


def _sum(below: NDArray[Any], fan_out: int, limit: int, sums: NDArray[np.int64], threads: object) -> None:
    def work(start: int, stop: int) -> None:
        children = below[:, start * fan_out : stop * fan_out]
        trees.sum_blocks(children, fan_out, limit, sums[:, start:stop])

    in_parts(work, sums.shape[1], thread_count(threads, below.size))


def block_sizes(cells: int, branching: int) -> tuple[int, ...]:
    """Return the sizes of a tree's levels, from 1 to one that holds all cells, where b blocks make one.

    The blocks of the first level above the cells are smaller where ``cells`` is no power of b: of all sizes that leave
    the number of levels as it is, the least.

    Examples
    --------
    >>> block_sizes(1024, 8)
    (1, 2, 16, 128, 1024)

    """
    upper = 1
    while upper * branching < cells:
        upper *= branching
    sizes = [1]
    size = -(-cells // upper)
    while sizes[-1] < cells:
        sizes.append(size)
        size *= branching
    return tuple(sizes)


def weighted_hierarchy(cells: int, sizes: tuple[int, ...], weights: tuple[int, ...]) -> Hierarchy:
    """Return a hierarchy with a name that says what is weighted: H_b, or blocks of certain sizes."""
    b = sizes[1] if len(sizes) > 1 else 2
    complete = sizes == tuple(b**level for level in range(len(sizes))) and sizes[-1] >= cells and len(sizes) > 2
    blocks = f"H{b}" if complete else f"blocks of {', '.join(map(str, sizes))}"
    return Hierarchy(cells, sizes, weights, f"weighted {blocks}")


def hierarchies(cells: int, branchings: Iterable[int]) -> list[Hierarchy]:
    """Return hierarchies of equal weights, without and with a root, for all branchings below the number of cells."""
    return [hierarchy(cells, b, root=root) for b in branchings if b < cells for root in (False, True)]


def _no_branchings() -> Iterator[object]:
    yield from (
        0,
        1,
        -2,
        True,
        2.5,
        math.nan,
        "16",
        b"16",
        object(),
        {"a": 2},
        np.array(2.5),
        np.ones((2, 2), np.int64),
    )
    yield from ((1,), (0, 2), (2.5,), ("2",), (True,), (None,), [[2]], (16, 16, 16))


def hierarchy(
    cells: Cells,
    branching: Annotated[int | Sequence[int], Special(_no_branchings)] = 16,
    *,
    root: Annotated[bool, ROOT] = False,
    weights: Weights = None,
) -> Hierarchy:
    """Measure sums over nested blocks of cells: the hierarchical strategy H_b.

    Parameters
    ----------
    cells
        How many cells there are, in an order in which neighbours belong together.
    branching
        b: how many blocks make one of the next level, at least 2; or one number for each level above the cells, from
        the lowest up. With ranges 8 to 16 is best under Laplace noise, 2 to 4 under Gaussian noise.
    root
        Whether the sum of all cells is measured too. Where branchings are given level by level, the last level is the
        top, and ``root`` has no effect.
    weights
        How much each level counts, from the cells up: whole numbers from 1 to 2**20, whose sums are measured times
        that. Equal by default.

    Returns
    -------
    Hierarchy
        Its least squares takes two passes over the tree, whatever the number of cells.

    Raises
    ------
    ParameterError
        An argument is not as above.

    References
    ----------
    Hay, Rastogi, Miklau, Suciu (2010), theorem 3. Qardaji, Yang, Li (2013) for the choice of b and for weights.

    Examples
    --------
    >>> hierarchy(1024, 4).sizes
    (1, 4, 16, 64, 256)
    >>> hierarchy(1024, (16, 16), weights=(2, 1, 1)).l1
    4

    """
    cells, root = CELLS.read("cells", cells), ROOT.read("root", root)
    allowed = "a whole number of at least 2, or one for each level above the cells"
    if isinstance(branching, (int, np.integer)) and not isinstance(branching, bool):
        if branching < 2:
            raise ParameterError("branching", branching, allowed)
        sizes = block_sizes(cells, int(branching))
        if not root and len(sizes) > 1:
            sizes = sizes[:-1]
        name = f"H{branching}{' with root' if root else ''}"
    else:
        try:
            fan_outs = [CELLS.read("branching", fan_out) for fan_out in branching]  # type: ignore[union-attr]
        except TypeError:
            raise ParameterError("branching", branching, allowed) from None
        sizes = (1, *(math.prod(fan_outs[: level + 1]) for level in range(len(fan_outs))))
        if min(fan_outs, default=2) < 2 or (len(sizes) > 1 and sizes[-2] >= cells):
            raise ParameterError("branching", branching, allowed + ", the last of which may hold all cells")
        name = "H" + "x".join(map(str, fan_outs))
    if weights is None:
        return Hierarchy(cells, sizes, (1,) * len(sizes), name)
    return Hierarchy(cells, sizes, read_weights(weights, len(sizes), "level from the cells up"), f"weighted {name}")
