"""Where to build k facilities on a street, when everybody may lie about where she lives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Epsilon
from dpfast.arguments import Whole
from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.declarations import NumberColumn
from dpfast.columns.elements import as_floats
from dpfast.columns.private import borrow_numbers
from dpfast.errors import ParameterError, Words
from dpfast.games.commitment import Punishment
from dpfast.games.punishing import parameters_for, punish_or_select
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.randomness import Random
from dpfast.showing import Shown

__all__ = ["Facilities", "place_facilities"]

FACILITIES = Whole(2, 100, mend="write for example {name}=2")
STEPS = Whole(1, 10**4, mend="write for example {name}=10")
_MOST_PLANS = 2**22


@dataclass(frozen=True, repr=False)
class Facilities(Shown):
    """Where the facilities are, and who uses which.

    Attributes
    ----------
    positions
        From 0 to 1, ascending.
    committed
        Whether they were chosen at random, and everybody must use the one next to where she said she lives.
    reactions
        The position next to each point of the grid (float64): what who reported it must use if ``committed``.
    parameters
        Epsilon, the probability of being held to reports, and the loss that the theorem allows.

    """

    positions: tuple[float, ...]
    committed: bool
    reactions: NDArray[np.float64]
    parameters: Punishment


def place_facilities(
    homes: NumberColumn,
    facilities: Annotated[int, FACILITIES] = 2,
    *,
    steps: Annotated[int, STEPS] = 10,
    epsilon: Epsilon = None,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
) -> Facilities:
    """Choose k points of a street so that people live near one of them, and do best to say where they live.

    Guarantee
        (epsilon, 0)-differentially private, and truthful: it is `dpfast.punishing_mechanism` for types 0, 1/m, ..., 1,
        every set of k different ones of these as an outcome, and 1 less the distance to the facility that one uses as
        utility. The gap is 1/m: let two facilities stand where an agent lives and where she says she lives; held to
        the wrong one she walks 1/m at least. One facility has no gap, since everybody uses it, so k is at least 2.

    Parameters
    ----------
    homes
        Where each agent says that she lives: a column of numbers from 0 to 1. They are rounded to the grid, and what
        lies outside is clamped; a null or NaN counts as 0, as does whatever in a list is no number.
    facilities
        How many, k, from 2 to 100.
    steps
        Of the grid, m: positions are multiples of 1/m. There are at most 2**22 sets of k.
    epsilon, ledger, dataset, privacy_unit, random
        As for `dpfast.punishing_mechanism`.

    Returns
    -------
    Facilities
        ``positions``, ``committed``, ``reactions`` and ``parameters``.

    Raises
    ------
    ParameterError
        An argument is not as above; nothing is charged.
    ColumnError
        The homes are no column of numbers.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else.

    Notes
    -----
    The reference takes all (m + 1)**k lists of positions for outcomes, and all k: with k = 1 there is no gap, and no
    probability of punishment is enough. Sets are fewer, which makes random ones rarer.

    References
    ----------
    Nissim, Smorodinsky, Tennenholtz (2012). Dwork, Roth (2014), theorem 10.5.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> homes = np.repeat([0.2, 0.8], [600_000, 400_000])
    >>> place_facilities(homes, steps=5, random=SeededRandom(1)).positions
    (0.2, 0.8)
    >>> place_facilities(homes, 1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: facilities must be a whole number from 2 to 100, but was 1; write for example \
facilities=2

    """
    count, last = FACILITIES.read("facilities", facilities), STEPS.read("steps", steps)
    plans = math.comb(last + 1, count)
    if not 2 <= plans <= _MOST_PLANS:
        allowed = f"such that there are 2 to {_MOST_PLANS} sets of {count} of its points"
        raise ParameterError("steps", Words(f"{last}, with {plans:.4g} sets"), allowed, "write for example steps=10")
    column = borrow_numbers(homes, "homes")
    parameters = parameters_for(plans, column.length, 1 / last, epsilon)
    listed = chain.from_iterable(combinations(range(last + 1), count))
    sets = np.fromiter(listed, np.int32, plans * count).reshape(plans, count)

    def scores() -> NDArray[np.int64]:
        """Return m less the distance, in steps, added up over all agents."""
        living = _count_homes(column, last)
        sums = np.full(plans, living.sum() * last, np.int64)
        for home in np.flatnonzero(living):
            sums -= living[home] * np.abs(sets - home).min(axis=1)
        return sums

    given = ledger, dataset, privacy_unit, random
    chosen, committed = punish_or_select(scores, last, plans, parameters, *given)
    positions = sets[chosen] / last
    nearest = np.abs(np.arange(last + 1)[:, None] - sets[chosen]).argmin(axis=1)
    return Facilities(tuple(positions.tolist()), committed, positions[nearest], parameters)


def _count_homes(column: Column, last: int) -> NDArray[np.int64]:
    """Return how many agents live next to each point of the grid."""
    living = np.zeros(last + 1, np.int64)
    for start in range(0, column.length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, column.length)
        block, missing = as_floats(column.block(start, stop)), column.missing(start, stop)
        if missing is not None:
            block[missing] = 0.0
        places = np.rint(np.clip(np.nan_to_num(block, nan=0.0), 0.0, 1.0) * last).astype(np.int64)
        living += np.bincount(places, minlength=last + 1)
    return living
