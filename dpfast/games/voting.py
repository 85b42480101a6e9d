"""A vote between two outcomes in which it pays to tell the truth, even for those who value their privacy."""

from __future__ import annotations

from dpfast.accounting.budget import Epsilon
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.games.welfare import Utilities, choose_privately, read_utilities
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.randomness import Random

__all__ = ["two_outcome_vote"]


def two_outcome_vote(
    utilities: Utilities,
    *,
    epsilon: Epsilon,
    neighbors: Neighbors = "replace",
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
) -> int:
    """Decide between two outcomes, by what they are worth to all voters together.

    Guarantee
        (epsilon, 0)-differentially private. With d the difference of the two sums, the lesser outcome wins with
        probability exp(-epsilon * d / 2) / 2, exactly: as if the sign of d plus Laplace noise of scale 2 / epsilon were
        taken. Proof: d moves by 2 at most where one voter's row, of numbers from 0 to 1, is replaced. Where it is added
        or removed d moves by 1, and the 2 is left out.

        Of the truth, where a ballot is (1, 0) or (0, 1), and voters are replaced: a voter who pays at most the
        outcome's privacy loss for the outcome that comes (the largest difference that her ballots make in the logarithm
        of its probability, `dpf.theory.outcome_costs`), and to whom one outcome is worth more than the other by epsilon
        at least, gains nothing by voting for the other, whatever the others do. Proof: a ballot that lowers her
        outcome's probability by x loses x times what it is worth more, and saves x times the difference of the two
        losses, which is epsilon at most.

    Parameters
    ----------
    utilities
        A row for each voter with two numbers from 0 to 1, as for `dpfast.select_outcome`.
    epsilon
        The budget.
    neighbors, ledger, dataset, privacy_unit, random
        As for `dpfast.select_outcome`.

    Returns
    -------
    int
        0 or 1.

    Raises
    ------
    ParameterError, BudgetExceededError, LedgerError
        As for `dpfast.select_outcome`.

    Notes
    -----
    It is permute-and-flip for two candidates. The reference adds Laplace noise of scale 1 / epsilon to either sum and
    says that this is epsilon-private. It is not: two numbers that move by 1 each, in opposite directions, lose up to
    2 epsilon, and the bound is approached as d grows. With scale 2 / epsilon for either (`dpf.report_noisy_max`) the
    claim is true, but two noises lie between the sums, where one does.

    Whoever may write any numbers between 0 and 1 gains by exaggeration, here as in the reference's form: (1, 0) is
    better than (0.6, 0.1) for whom these are true. Ask for ballots, or let agents pay (`dpf.vcg_payments`).

    References
    ----------
    Chen, Chong, Kash, Moran, Vadhan (2013). Dwork, Roth (2014), section 10.3.4. McKenna, Sheldon (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> votes = np.array([[1.0, 0.0]] * 40 + [[0.2, 0.9]] * 60)
    >>> two_outcome_vote(votes, epsilon=1.0, random=SeededRandom(1))
    1

    """
    array = read_utilities(utilities, outcomes=2)
    given = epsilon, None, "permute_and_flip", neighbors, ledger, dataset, privacy_unit, random
    return choose_privately(array, "a vote between 2 outcomes", *given)
