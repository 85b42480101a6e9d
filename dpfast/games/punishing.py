"""The punishing exponential mechanism: a good outcome, chosen privately, and the truth as everybody's best report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Epsilon, read_budget
from dpfast.columns import BLOCK_ROWS, Column
from dpfast.columns.declarations import WholeColumn
from dpfast.columns.private import borrow_integers
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import to_float
from dpfast.games.commitment import (
    Punishment,
    Reactions,
    best_reactions,
    commitment_gap,
    punishing_parameters,
    read_reactions,
)
from dpfast.games.welfare import UTILITY_UNITS, in_units
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.selection.argmax import select
from dpfast.randomness import Random, RandomSource, fresh_words, random_source
from dpfast.showing import Shown
from dpfast.synthesis.shares import selection_for

__all__ = ["Commitment", "count_numbers", "parameters_for", "punish_or_select", "punishing_mechanism"]

#: Of the coin that decides whether reports bind.
_COIN_BITS = 64


@dataclass(frozen=True, repr=False)
class Commitment(Shown):
    """An outcome, and whether everybody is held to her report.

    Attributes
    ----------
    outcome
        The place of the outcome that was chosen.
    committed
        Whether it was chosen at random, and agents must react as their reports say. If not, each may react as she
        likes. It does not depend on the reports.
    reactions
        The best reaction of each type to the outcome (int64), in the order of types: what an agent who reported it must
        do if ``committed``.
    parameters
        Epsilon, the probability of being held to reports, and the loss that the theorem allows.

    """

    outcome: int
    committed: bool
    reactions: NDArray[np.int64]
    parameters: Punishment


def punishing_mechanism(
    types: WholeColumn,
    utilities: Reactions,
    *,
    epsilon: Epsilon = None,
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
) -> Commitment:
    """Choose an outcome that agents react to, so that each does best to report her type as it is.

    Guarantee
        (epsilon, 0)-differentially private for the outcome and whether reports bind; neighbours differ in one agent's
        report, and the number of agents is public. With probability 1 - q the outcome is drawn by the exponential
        mechanism, scored by what each outcome is worth to all agents if they react to it at their best (sensitivity 1,
        utilities being rounded to multiples of 2**-30); with probability q at random, all alike. Then everybody must
        react as her report says: that is told to her alone, and makes false reports dear.

        Of the truth: by `dpf.theory.punishing_parameters`, no agent gains by a false report, whatever the others
        report, if her own utilities are those of her type.

    Parameters
    ----------
    types
        What each agent reports: the number of her type, an integer column. A null, and a number of no type, counts as
        type 0: else nobody could be held to such a report, and it might pay.
    utilities
        What each outcome and reaction are worth to each type, from 0 to 1: an array of types x outcomes x reactions. It
        is public, and must have a gap (`dpf.theory.commitment_gap`).
    epsilon
        The budget. By default what makes the expected loss about least.
    ledger
        The budget that is charged before reports are read, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    Commitment
        ``outcome``, ``committed``, ``reactions`` and ``parameters``.

    Raises
    ------
    ParameterError
        An argument is not as above, or the utilities have no gap; nothing is charged.
    ColumnError
        The types are no column of integers.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else.

    References
    ----------
    Nissim, Smorodinsky, Tennenholtz (2012). Dwork, Roth (2014), definitions 10.4 to 10.6, theorems 10.3 and 10.4.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> worth = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 0.8], [0.5, 0.5]]]
    >>> chosen = punishing_mechanism([0] * 9000 + [1] * 1000, worth, random=SeededRandom(1))
    >>> chosen.outcome, chosen.committed, chosen.reactions, round(chosen.parameters.loss, 3)
    (0, False, array([0, 1]), 0.012)

    """
    array = read_reactions(utilities)
    gap = commitment_gap(array)
    if gap <= 0:
        allowed = "such that every false report costs something at some outcome"
        raise ParameterError("utilities", Words("without a gap"), allowed)
    column = borrow_integers(types, "types", "number the types from 0 on")
    best = best_reactions(array)
    reached = in_units(array.max(axis=2))
    parameters = parameters_for(array.shape[1], column.length, gap, epsilon)

    def scores() -> NDArray[np.int64]:
        counts = count_numbers(column, len(array))
        counts[0] += column.length - counts.sum()
        return counts @ reached

    given = ledger, dataset, privacy_unit, random
    outcome, committed = punish_or_select(scores, UTILITY_UNITS, array.shape[1], parameters, *given)
    return Commitment(outcome, committed, best[:, outcome], parameters)


def parameters_for(outcomes: int, agents: int, gap: float, epsilon: Epsilon) -> Punishment:
    """Return what the theorem says, of the budget that is given or of the best one."""
    if epsilon is None:
        return punishing_parameters(outcomes, max(agents, 1), gap)
    strength = to_float(read_budget(epsilon, None, None).units)
    return punishing_parameters(outcomes, max(agents, 1), gap, epsilon=strength)


def punish_or_select(
    scores: Callable[[], NDArray[np.int64]],
    sensitivity: int,
    outcomes: int,
    parameters: Punishment,
    ledger: Payer,
    dataset: OwnName,
    privacy_unit: OwnName,
    random: Random,
) -> tuple[int, bool]:
    """Charge for a selection, and return an outcome and whether reports bind.

    Parameters
    ----------
    scores
        Returns the outcomes' scores, which one agent's report moves by ``sensitivity`` at most: called after the
        charge.
    sensitivity, outcomes, parameters
        What one agent moves a score by; how many outcomes there are; epsilon, and how often reports bind.
    ledger, dataset, privacy_unit, random
        As for `punishing_mechanism`.

    """
    budget = read_budget(parameters.epsilon, None, None)
    bought = selection_for(
        "epsilon", budget.units, "exponential", 1, f"the best of {outcomes} outcomes, or any of them"
    )
    payment = read_payment(ledger, budget, random, neighbors="replace", dataset=dataset, privacy_unit=privacy_unit)
    source = random_source(random)
    payment.charge([bought.charge])
    committed = _falls(parameters.probability, source)
    # Equal scores: every outcome alike.
    given = np.zeros(outcomes, np.int64) if committed else scores()
    return int(select(given, bought.epsilon, sensitivity, False, GUMBEL, source)), committed


def _falls(probability: float, source: RandomSource) -> bool:
    """Return whether a coin falls that does so with this probability, or up to 2**-64 more often."""
    word = int(fresh_words(source, 1)[0])
    return bool(word < math.ceil(Fraction(probability) * 2**_COIN_BITS))


def count_numbers(column: Column, kinds: int) -> NDArray[np.int64]:
    """Return how many rows hold each whole number from 0 to below ``kinds``; nulls and others are left out."""
    counts = np.zeros(kinds, np.int64)
    for start in range(0, column.length, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, column.length)
        block, missing = column.block(start, stop), column.missing(start, stop)
        held = (block >= 0) & (block < kinds)
        if missing is not None:
            held &= ~missing
        counts += np.bincount(block[held], minlength=kinds)
    return counts
