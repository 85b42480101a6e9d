"""A linear function learnt privately over the simplex, from examples seen once."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.events import ExponentialMechanism, Repeated
from dpfast.arguments import Threads
from dpfast.columns.elements import as_floats
from dpfast.columns.private import numeric_array
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError, Words
from dpfast.learning.experts import Losses, checked_losses, play_rounds
from dpfast.learning.regret import (
    BETA,
    EXPERTS,
    ROUNDS,
    Beta,
    Delta,
    Epsilon,
    Experts,
    Rounds,
    private_eta,
    regret_bound,
)
from dpfast.ledger import Charge
from dpfast.ledger.account import Identity, OwnName
from dpfast.ledger.payment import LEDGER, Payer, Payment, refuse_repeatable
from dpfast.randomness import Random, random_source
from dpfast.showing import Facts, Shown
from dpfast.threads import thread_count
from dpfast.turns import Turns

__all__ = ["LinearLearner"]


class LinearLearner(Shown):
    """Learn which convex combination of d features has a small mean, privately.

    From n examples x in [-1, 1]^d, drawn independently from one distribution, it returns theta in the simplex with
    <theta, mean> close to the least coordinate of the distribution's mean. Each example is seen once: put them in
    random order first if their order means anything.

    Guarantee
        The result is (epsilon, delta)-differentially private; neighbours differ in one example, replaced by any
        other, and n is public. It is the average of n plays of randomized weighted majority, whose experts are the
        coordinates and whose losses are (1 + x) / 2. These lie in [0, 1], so that each play is the exponential
        mechanism with scores of sensitivity 1, and all of them are post-processed: see
        `dpfast.RandomizedWeightedMajority`. It learns once. A ledger is charged before a value is read, and refuses
        what does not fit; without one nobody keeps a budget.

    Parameters
    ----------
    features
        d, at least 2.
    examples
        n, public.
    epsilon, delta
        What learning may cost in all.
    ledger
        The `dpfast.Ledger` that `learn` is charged to, or None. One of zCDP takes an epsilon with a delta if its
        conversion_delta is that delta; one that adds up epsilons needs delta 0.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row". Neighbours are of "replace".

    Attributes
    ----------
    eta
        How fast losses in [0, 1] are learnt; half of it per unit of x.
    event
        All plays, for accountants.
    charge
        The same, as `learn` puts it to the ledger.
    entry
        The charge's number in the ledger; None before it, and without a ledger.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    The reference takes x itself as the loss, with the eta of losses in [0, 1]. But a replaced x moves scores by 2, for
    which its proof gives (2 epsilon, delta). Moving losses to [0, 1] mends that, and composition by bounded range
    gives an eta several times larger than the proof's all the same.

    References
    ----------
    Dwork, Roth (2014), algorithm 17, theorems 11.5 and 11.6.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> learner = LinearLearner(features=3, examples=20_000, epsilon=1.0, delta=1e-6)
    >>> data = np.tile([0.5, -0.9, 0.1], (20_000, 1))
    >>> theta = learner.learn(data, random=SeededRandom(1))
    >>> bool(theta[1] > 0.9), round(float(theta.sum()), 9), round(learner.excess_bound(beta=0.05), 3)
    (True, 1.0, 0.131)

    """

    def __init__(
        self,
        features: Experts,
        examples: Rounds,
        *,
        epsilon: Epsilon,
        delta: Delta = 0,
        ledger: Payer = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
    ) -> None:
        self.features = EXPERTS.read("features", features)
        self.examples = ROUNDS.read("examples", examples)
        self.eta = private_eta(self.examples, epsilon, delta)
        self._epsilon = 2.0 * self.eta
        play = ExponentialMechanism(self._epsilon)
        self.event: Repeated = play.times(self.examples)
        self.charge = Charge.of(self._epsilon, description="linear learner", event=play, count=self.examples)
        paying = None if ledger is None else LEDGER.read("ledger", ledger)
        self._payment = Payment(paying, Identity(dataset, privacy_unit, "replace"))
        self.entry: int | None = None
        self._has_learnt = False
        self._turns = Turns("a learner cannot learn after a fork: both processes would learn for the same charge")

    def learn(self, examples: Losses, *, random: Random = None, threads: Threads = None) -> NDArray[np.float64]:
        """Return theta: d numbers of 0 or more that add up to 1. The ledger is charged first, and it is done once.

        Parameters
        ----------
        examples
            An array of n rows and d columns. Values outside [-1, 1] are clamped; NaN, and whatever in lists is no
            number or stands in a row of another length, is read as 1, so that no error depends on private values.
        random, threads
            As for `dpfast.exponential`, which draws the plays.

        Raises
        ------
        ParameterError
            The array has another shape, or is not one of numbers; or ``random`` is given where a ledger is charged.
        BudgetExceededError
            It does not fit into the ledger, or this learner has learnt.
        LedgerError
            The ledger is for other data, or the process was forked.

        """
        random_source(random)
        thread_count(threads, 1)
        if self._payment.ledger is not None:
            refuse_repeatable(random)
        array = numeric_array(examples, "examples", 2, (self.features,))
        if array.shape != (self.examples, self.features):
            raise ParameterError(
                "examples",
                Words(f"of shape {array.shape}, {array.dtype}"),
                f"numbers of shape {(self.examples, self.features)}, as declared",
            )
        with self._turns.turn():
            if self._has_learnt:
                raise BudgetExceededError("this learner has learnt; make another one, which costs a budget of its own")
            self.entry = self._payment.charge([self.charge])
            self._has_learnt = True
            losses = checked_losses((1.0 + as_floats(array)) / 2.0)
            plays = play_rounds(np.zeros(self.features, np.int64), losses, self._epsilon, random, threads)
            self._turns.refuse_other_process()
        return np.bincount(plays, minlength=self.features) / self.examples

    def excess_bound(self, beta: Beta = 0.05) -> float:
        """Return how far <theta, mean> is above the mean's least coordinate, with probability at least 1 - beta.

        In losses (1 + x) / 2, with p_t what play t is drawn from and m their mean: the sum of <p_t, l_t> exceeds that
        of the best coordinate by T `regret_bound` at most (theorem 11.1). m[a_t] - <p_t, l_t> has the mean 0 given
        all before, and is within 1 of 0: their sum exceeds sqrt(2 T ln(2/beta)) with probability at most beta/2
        (Azuma). The best coordinate's losses exceed their mean by sqrt(ln(2/beta) / 2T) with probability at most
        beta/2, too (Hoeffding). x is twice as wide.
        """
        slack = math.log(2.0 / BETA.read("beta", beta)) / self.examples
        regret = regret_bound(self.features, self.examples, self.eta)
        return 2.0 * (regret + math.sqrt(2.0 * slack) + math.sqrt(slack / 2.0))

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a learner cannot be pickled or copied: each copy would learn again for the same charge")

    def _facts(self) -> Facts:
        """Return the parameters; the epsilon is that of one play."""
        return [("features", self.features), ("examples", self.examples), ("epsilon_of_play", self._epsilon)]
