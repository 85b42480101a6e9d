"""A price for digital goods: the exponential mechanism over a public grid, scored by what each price would earn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.columns import BLOCK_ROWS, borrow, dimensions
from dpfast.columns.declarations import AnyColumn, WholeColumn, wrong_columns
from dpfast.columns.private import borrow_integers
from dpfast.errors import ParameterError, Words
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.kernels.selection.prices import count_bids
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import select
from dpfast.randomness import Random

__all__ = ["price_revenues", "select_price"]

_LARGEST_PRICE, _LARGEST_REVENUE = 2**53, 2**63 - 1


def _no_prices() -> Iterator[object]:
    yield from wrong_columns(whole=True)
    yield from ([], [0, 1], [-1, 1], [2, 1], [1, 1], [1, 2**53 + 1], range(0), range(3, 1, -1), range(3))


Prices: TypeAlias = Annotated[AnyColumn | Sequence[int], Special(_no_prices)]
_SMALL_TABLE, _LARGE_TABLE = 2**16, 2**24


def price_revenues(bids: WholeColumn, prices: Prices) -> NDArray[np.int64]:
    """Return what each price would earn: the price times the number of bids that reach it.

    Guarantee
        None: the revenues are as private as the bids. Where one bid is added, removed or replaced, no revenue changes
        by more than the largest price; adding a bid lowers none of them. Both hold for revenues that saturate as well:
        with x and y the exact ones before and after, min(x, c) and min(y, c) differ by at most abs(x - y), and
        min(x, c) <= min(y, c) where x <= y.

    Parameters
    ----------
    bids
        An integer column, in the smallest unit of money (cents, say): int64, int32 or uint32, or a list of numbers of
        any size. A null is no bid, and nor is anything in a list that is no whole number.
    prices
        The public grid, in the same unit: positive integers up to 2**53, ascending, each once.

    Returns
    -------
    numpy.ndarray
        The revenues (int64), exactly, or 2**63 - 1 where they are larger. The number of bids is private, and no error
        reveals it.

    Raises
    ------
    ParameterError
        The prices are no such integers.
    ColumnError
        The bids are no such column.

    Examples
    --------
    >>> price_revenues([100, 100, 100, 301], [100, 300, 301, 302])
    array([400, 300, 301,   0])

    """
    grid = _borrow_prices(prices)
    column = borrow_integers(bids, "bids", "count in cents and cast them to int64")
    largest = int(grid[-1])
    # A table of all bids up to the largest price, where that is no longer than the column; else a search for each.
    tabulated = largest <= min(max(4 * column.length, _SMALL_TABLE), _LARGE_TABLE)
    counts = np.zeros((largest if tabulated else grid.size) + 1, np.int64)
    for start in range(0, column.length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, column.length)
        block, missing = column.block(start, stop), column.missing(start, stop)
        present = block if missing is None else block[~missing]
        present.setflags(write=False)
        if tabulated:
            count_bids(present, counts)
        else:
            counts += np.bincount(np.searchsorted(grid, present, side="right"), minlength=counts.size)
    reaching = counts[::-1].cumsum()[::-1]
    buyers = reaching[grid] if tabulated else reaching[1:]
    most = _LARGEST_REVENUE // grid
    revenues: NDArray[np.int64] = np.where(buyers > most, _LARGEST_REVENUE, np.minimum(buyers, most) * grid)
    return revenues


def select_price(
    bids: WholeColumn, prices: Prices, epsilon: EpsilonPerRow, monotonic: Monotonic = False, *, random: Random = None
) -> int:
    """Choose one price for all that earns nearly as much as the best one.

    Guarantee
        Price p is chosen with probability proportional to exp(epsilon * revenue(p) / (2 * largest price)), exactly:
        (epsilon, 0)-differentially private where neighbours differ in one bid, added, removed or replaced. With
        ``monotonic`` without the 2, and only where a bid is added or removed. A revenue above 2**63 - 1 counts as that,
        which moves no two revenues further apart. The grid is public: do not make it from the bids. The revenue at
        the price chosen is still private. No budget is kept here.

    Parameters
    ----------
    bids, prices
        As for `price_revenues`.
    epsilon, monotonic, random
        As for `exponential`.

    Returns
    -------
    int
        The price.

    Raises
    ------
    ParameterError, ColumnError
        As for `price_revenues` and `exponential`.

    Notes
    -----
    The sensitivity is the largest price, which is why dear prices that nobody would pay make all others worse: with
    probability 1 - miss the revenue is within ``selection_error(len(prices), epsilon, max(prices), miss=miss)`` of the
    best one. A bidder can gain little by a false bid: it changes no probability by more than a factor exp(epsilon).

    References
    ----------
    McSherry, Talwar (2007), section 4; Dwork, Roth (2014), example 3.5.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> bids = [100] * 3_000 + [301] * 1_500
    >>> select_price(bids, range(1, 501), epsilon=1.0, random=SeededRandom(1)) in range(297, 302)
    True

    """
    grid = _borrow_prices(prices)
    revenues = price_revenues(bids, grid)
    won = select(revenues, epsilon, int(grid[-1]), monotonic, GUMBEL, random)
    return int(grid[won])


def _borrow_prices(prices: Prices) -> NDArray[np.int64]:
    """Return the grid as ascending int64."""
    allowed = "ascending whole numbers from 1 to 2**53, each once"
    mend = "write for example prices=range(1, 501)"
    given = list(prices) if isinstance(prices, range) else prices
    if dimensions(given) != 1:
        raise ParameterError("prices", prices, allowed, mend)
    column = borrow(given, "prices")
    if column.null_count or column.dtype.kind == "f" or not column.length:
        kind = Words(f"one of {column.dtype}, {column.length} long with {column.null_count} nulls")
        raise ParameterError("prices", kind, allowed, mend)
    grid = column.block(0, column.length).astype(np.int64)
    if not (grid[0] >= 1 and grid[-1] <= _LARGEST_PRICE and (grid[1:] > grid[:-1]).all()):
        raise ParameterError("prices", prices, allowed, mend)
    return grid
