"""The best of a class of concepts, chosen privately: agnostic learning without a word about how labels come about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Epsilon, Rho, read_budget
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Choice, Private
from dpfast.columns import BLOCK_ROWS
from dpfast.columns.declarations import TypedColumn
from dpfast.columns.private import label_array
from dpfast.errors import ParameterError, Words
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.selection.argmax import select
from dpfast.randomness import Random, random_source
from dpfast.synthesis.shares import selection_for

__all__ = ["select_concept"]

_SELECTION = Choice(("permute_and_flip", "exponential"))
_KINDS = {"exponential": GUMBEL, "permute_and_flip": EXPONENTIAL}


def _no_predictions() -> Iterator[object]:
    yield from (1, 0.5, True, "0", object(), len, [], np.zeros(17), np.zeros((0, 2)), np.zeros((2, 17)))
    yield from (np.zeros((2, 2, 2)), np.zeros((2, 2), object), np.ma.zeros((2, 2)))


def _no_labels() -> Iterator[object]:
    yield from (1, 0.5, True, "0", object(), len, np.zeros((2, 2)), np.zeros(2, object))


#: A row for each concept, and in it a label for each example.
Predictions: TypeAlias = Annotated[TypedColumn | Sequence[Any], Private(_no_predictions)]
Labels: TypeAlias = Annotated[TypedColumn | Sequence[Any], Private(_no_labels)]


def select_concept(
    predictions: Predictions,
    labels: Labels,
    *,
    epsilon: Epsilon = None,
    rho: Rho = None,
    selection: Annotated[Literal["permute_and_flip", "exponential"], _SELECTION] = "permute_and_flip",
    neighbors: Neighbors = "replace",
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
) -> int:
    """Choose the concept, or model, that errs on few examples: nearly as few as any of the class.

    Guarantee
        (epsilon, 0)-differentially private, or rho-zCDP, by permute-and-flip or the exponential mechanism, exactly
        sampled; the score is the number of examples that a concept labels rightly, which one example moves by 1 at
        most. Neighbours differ in one example, replaced by another, or under "add_remove" added or removed, where no
        score falls as another rises. How many concepts there are is public; what each predicts must follow from the
        example alone, and concepts must not be made of these examples.

    Parameters
    ----------
    predictions
        What each concept says of each example: a row for each concept, of numbers, truth values or strings. NaN is
        never right, and nor is anything else that stands in a list, or a list that is not as long as the labels.
    labels
        The right answers, one for each example.
    epsilon, rho
        The budget, one of the two.
    selection
        "permute_and_flip", whose errors are no larger; or "exponential", which costs less by rho.
    neighbors
        As above.
    ledger
        The budget that is charged before anything is compared, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    int
        The concept's place. How often it errs is private still.

    Raises
    ------
    ParameterError
        An argument is not as above; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else.

    Notes
    -----
    Of n examples and a class C, the share of errors is above the least by 2 (ln abs(C) + ln(1 / miss)) / (epsilon n)
    at most, with probability at least 1 - miss, whatever the labels: ``dpf.selection_error(abs(C), epsilon, 1 / n)``,
    as in the example. On the distribution that examples come from, it is the least plus alpha from about
    max(ln abs(C) / (epsilon alpha), ln abs(C) / alpha**2) examples on.

    References
    ----------
    Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith (2011). Dwork, Roth (2014), section 11.1.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> ages = np.arange(2_000) % 100
    >>> thresholds = np.arange(0, 100, 5)
    >>> chosen = select_concept(ages >= thresholds[:, None], ages >= 40, epsilon=0.5, random=SeededRandom(1))
    >>> int(thresholds[chosen])
    40
    >>> round(dpf.selection_error(2**20, epsilon=0.5, sensitivity=1 / 10_000, miss=0.05), 8)
    0.00674347

    """
    truth = label_array(labels, "labels", 1)
    guesses = label_array(predictions, "predictions", 2, (len(truth),) if truth.ndim else ())
    if truth.ndim != 1:
        shown = Words(f"of {truth.ndim} dimensions and type {truth.dtype}")
        raise ParameterError("labels", shown, "a column of numbers, truth values or strings")
    if guesses.ndim != 2 or not len(guesses) or guesses.shape[1] != len(truth):
        shown = Words(f"of {guesses.ndim} dimensions and type {guesses.dtype}")
        raise ParameterError("predictions", shown, "a row for each concept, as long as labels")
    kinds = guesses.dtype.kind + truth.dtype.kind
    if "O" not in kinds and (kinds[0] in "UT") != (kinds[1] in "UT"):
        raise ParameterError("predictions", Words(f"of type {guesses.dtype}"), "numbers or strings, as labels are")
    rule, relation = _SELECTION.read("selection", selection), read_neighbors(neighbors)
    budget = read_budget(epsilon, None, rho)
    bought = selection_for(budget.kind, budget.units, rule, 1, f"the best of {len(guesses)} concepts")
    payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
    source = random_source(random)
    payment.charge([bought.charge])
    scores = _right_answers(guesses, truth)
    return int(select(scores, bought.epsilon, 1, relation == "add_remove", _KINDS[rule], source))


def _right_answers(guesses: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many examples each concept labels rightly."""
    right = np.zeros(len(guesses), np.int64)
    step = max(1, BLOCK_ROWS * 8 // len(guesses))
    for start in range(0, len(truth), step):
        with np.errstate(all="ignore"):  # of a signalling NaN NumPy would warn
            right += (guesses[:, start : start + step] == truth[start : start + step]).sum(axis=1)
    return right
