"""The outcome that is best for all together: what everybody says it is worth to them, added up and chosen privately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Private, Whole
from dpfast.columns import BLOCK_ROWS
from dpfast.columns.declarations import Table, TypedColumn
from dpfast.columns.elements import as_floats
from dpfast.columns.private import numeric_array
from dpfast.errors import ParameterError, Words
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.selection.argmax import select
from dpfast.randomness import Random, random_source
from dpfast.synthesis.shares import selection_for

__all__ = [
    "OUTCOMES",
    "UTILITY_UNITS",
    "Outcomes",
    "Utilities",
    "added_utilities",
    "choose_privately",
    "read_utilities",
    "select_outcome",
]

#: What a utility of 1 counts: utilities are rounded to multiples of 2**-30, and add up exactly in 64 bits.
UTILITY_UNITS = 2**30
OUTCOMES = Whole(1, 2**24, optional=True, mend="write for example {name}=3, or leave it out")
_SELECTION = Choice(("exponential", "permute_and_flip"))
Rule: TypeAlias = Literal["exponential", "permute_and_flip"]
_KINDS = {"exponential": GUMBEL, "permute_and_flip": EXPONENTIAL}


def _no_utilities() -> Iterator[object]:
    yield from (1, 0.5, True, "0", b"0", object(), len, {0: 1}, {0, 1}, np.zeros(17), np.zeros((2, 0)))
    yield from (np.zeros((2, 2, 2)), np.ma.ones((2, 2)), np.zeros((2, 2), object))


#: A row for each agent, and in it a number from 0 to 1 for each outcome; what lies outside is clamped.
Utilities: TypeAlias = Annotated[TypedColumn | Table | Sequence[Any], Private(_no_utilities)]
#: How many outcomes there are.
Outcomes: TypeAlias = Annotated[int | None, OUTCOMES]


def read_utilities(utilities: Utilities, outcomes: int | None = None) -> NDArray[Any]:
    """Return utilities as an array of rows of numbers, whatever these are; of so many outcomes, if that is given."""
    array = numeric_array(utilities, "utilities", 2, (outcomes,))
    least = 1 if outcomes is None else outcomes
    if array.shape[1] < least or (outcomes is not None and array.shape[1] != outcomes):
        allowed = "a row for each agent" + ("" if outcomes is None else f", with {outcomes} numbers in it")
        # The number of rows is private where neighbours add or remove one.
        raise ParameterError("utilities", Words(f"of {array.shape[1]} numbers in a row"), allowed)
    return array


def added_utilities(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sum over all agents for each outcome, in units of 2**-30; NaN counts as 0."""
    sums = np.zeros(array.shape[1], np.int64)
    rows = max(1, BLOCK_ROWS // array.shape[1])
    for start in range(0, len(array), rows):
        sums += in_units(array[start : start + rows]).sum(axis=0)
    return sums


def in_units(utilities: NDArray[Any]) -> NDArray[np.int64]:
    """Return utilities as whole numbers of units, from 0 to 2**30; NaN counts as 0."""
    clamped = np.clip(np.nan_to_num(as_floats(utilities), nan=0.0), 0.0, 1.0)
    return np.rint(clamped * UTILITY_UNITS).astype(np.int64)


def select_outcome(
    utilities: Utilities,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    outcomes: Outcomes = None,
    selection: Annotated[Rule, _SELECTION] = "exponential",
    neighbors: Neighbors = "replace",
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
) -> int:
    """Choose the outcome that is worth nearly as much as possible to all agents together.

    Guarantee
        Outcome o is chosen with probability proportional to exp(epsilon * W(o) / 2), W(o) being the sum of what all
        agents say that it is worth to them, each a number from 0 to 1 rounded to a multiple of 2**-30: exactly, and
        (epsilon, 0)-differentially private, or rho-zCDP. One agent's row, replaced by any other, moves every sum by 1
        at most. Where one is added or removed instead no sum falls as another rises, and the 2 is left out. A ledger is
        charged before anything is added up.

    Parameters
    ----------
    utilities
        A row for each agent with a number from 0 to 1 for each outcome: a NumPy array, a frame of Polars or pandas, or
        lists. What lies outside is clamped; NaN, in a frame null, and in a list whatever is no number, counts as 0.
    epsilon, rho
        The budget, one of the two.
    outcomes
        How many outcomes there are. In lists a row of another length counts as 0, and there need not be any row. None
        for as many as an array or a frame has columns; of lists the first row says it then, so that the number must
        be public and the same for all rows.
    selection
        "exponential"; or "permute_and_flip", whose outcome is never worse on average, and whose law is another one:
        `vcg_payments` belong to the first.
    neighbors
        "replace", one agent's row exchanged for another, the number of agents being public; or "add_remove".
    ledger
        The budget that is charged, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    int
        The outcome's place in a row. What it is worth to anyone is still private.

    Raises
    ------
    ParameterError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else.

    Notes
    -----
    Of all laws D over outcomes this one has the largest mean of W, plus 2 / epsilon times its entropy. The reference
    prints exp(epsilon * F / (2 n)) for the average F = W / n, of sensitivity 1 / n; that would choose hardly better
    than at random, and exp(epsilon * n * F / 2) is meant. With probability at least 1 - miss the outcome falls short
    of the best W by ``dpf.selection_error(outcomes, epsilon, miss=miss)`` at most.

    No agent can change the law by much: of bounded range epsilon, it moves by tanh(epsilon / 4) at most in total
    variation, and so that much is the most that a false report can gain. (The reference's bound is 2 epsilon.) Of k
    agents together it is tanh(k epsilon / 4).

    References
    ----------
    McSherry, Talwar (2007). Dwork, Roth (2014), sections 10.1, 10.2.3 and 10.3.1. Huang, Kannan (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> worth = np.tile([[0.1, 0.9, 0.5], [0.4, 0.6, 0.3]], (100, 1))
    >>> select_outcome(worth, epsilon=1.0, random=SeededRandom(1))
    1

    """
    array = read_utilities(utilities, OUTCOMES.read_optional("outcomes", outcomes))
    rule = _SELECTION.read("selection", selection)
    description = f"the best of {array.shape[1]} outcomes"
    given = epsilon, rho, rule, neighbors, ledger, dataset, privacy_unit, random
    return choose_privately(array, description, *given)


def choose_privately(
    array: NDArray[Any],
    description: str,
    epsilon: Epsilon,
    rho: Rho,
    rule: str,
    neighbors: Neighbors,
    ledger: Payer,
    dataset: OwnName,
    privacy_unit: OwnName,
    random: Random,
) -> int:
    """Charge for a selection, and make it; the arguments are those of `select_outcome`."""
    budget, relation = read_budget(epsilon, None, rho), read_neighbors(neighbors)
    bought = selection_for(budget.kind, budget.units, rule, 1, description)
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    source = random_source(random)
    payment.charge([bought.charge])
    sums = added_utilities(array)
    chosen = select(sums, bought.epsilon, UTILITY_UNITS, relation == "add_remove", _KINDS[rule], source)
    return int(chosen)
