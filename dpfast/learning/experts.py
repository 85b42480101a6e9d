"""Learning from the advice of experts: randomized weighted majority, played exactly and privately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import DELTA, Epsilon
from dpfast.accounting.events import ExponentialMechanism, Repeated
from dpfast.arguments import Number, Private, Real, Threads, Whole
from dpfast.columns.declarations import TypedColumn
from dpfast.columns.elements import as_floats
from dpfast.columns.private import numeric_array
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError, Words
from dpfast.exact.amounts import budget_units
from dpfast.kernels.weights.losses import UNITS, score_rounds
from dpfast.learning.regret import private_eta
from dpfast.ledger import Charge
from dpfast.mechanisms.selection.exponential import exponential
from dpfast.randomness import Random, RandomSource
from dpfast.showing import Facts, Shown
from dpfast.turns import Turns

__all__ = ["LOSS_UNITS", "Losses", "RandomizedWeightedMajority", "checked_losses", "play_rounds"]

LOSS_UNITS = UNITS
"""What a loss of 1 counts: losses are rounded to multiples of 2**-30, and add up exactly in 64 bits."""
_EXPERTS, _ROUNDS, _GROUPS = Whole(1, 2**40), Whole(1, 2**32), Whole(1, 2**40, optional=True)
_ETA = Number(5e-19, 5e5, optional=True)


def _no_losses() -> Iterator[object]:
    yield from (1, 0.5, True, "0", b"0", object(), len, {0: 1}, {0, 1}, [0.5] * 17, np.zeros(17), np.zeros((17, 2)))
    yield from (np.zeros((2, 2, 2)), np.ma.zeros((2, 2)), np.ma.zeros(2), np.zeros((2, 2), object))


#: Numbers of a shape that was declared before; what lies outside of their range is clamped.
Losses: TypeAlias = Annotated[TypedColumn | Sequence[Any], Private(_no_losses)]
#: So many scores are held at once, or those of one round.
_SCORES = 2**20


def checked_losses(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers or Booleans as an array that kernels read, whatever their values."""
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array).view(np.uint8)
    if array.dtype in (np.float64, np.float32, np.int64):
        return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return np.ascontiguousarray(as_floats(array))


def play_rounds(
    sums: NDArray[np.int64], losses: NDArray[Any], epsilon: float, random: RandomSource | None, threads: int | None
) -> NDArray[np.int64]:
    """Return the plays of consecutive rounds, each from the losses before it, which are added to ``sums`` in turn."""
    experts = sums.shape[-1]
    plays = np.empty(losses.shape[:-1], np.int64)
    step = max(1, _SCORES // sums.size)
    held = np.empty((min(step, len(losses)), *sums.shape), np.int64)
    for start in range(0, len(losses), step):
        own = losses[start : start + step]
        scores = held[: len(own)]
        score_rounds(own.reshape(len(own), -1), sums.reshape(-1), scores.reshape(len(own), -1))
        winners = exponential(
            scores.reshape(-1, experts), epsilon, sensitivity=LOSS_UNITS, random=random, threads=threads
        )
        plays[start : start + step] = np.asarray(winners).reshape(own.shape[:-1])
    return plays


class RandomizedWeightedMajority(Shown):
    """Play one of k experts in every round, those with small losses so far most often, and privately.

    Guarantee
        A play is expert i with probability proportional to exp(-eta * the sum of its losses so far), exactly (losses
        are rounded to multiples of 2**-30 beforehand). That is the exponential mechanism at 2 eta with the score
        -(sum of losses). Neighbours differ in the losses of one round, in any way within [0, 1]: all plays of T
        rounds together are (T eta**2 / 2)-zCDP, being of bounded range 2 eta each, even if losses are chosen after
        seeing earlier plays (Dong, Durfee, Rogers 2020; Cesar, Rogers 2021). Only plays may be published: losses, and
        what an expert has lost, are private. No budget is kept here, but play ends after ``rounds``; put ``charge``
        to a ledger before the first.

    Parameters
    ----------
    experts
        How many, k; at least 1.
    rounds
        How many plays there will be at most, T; at most 2**32.
    eta
        How fast to learn: a positive number, at most 5e5. Or give a budget instead:
    epsilon, delta
        What all plays together may cost: eta is then the largest allowed, `dpfast.learning.regret.private_eta`.
    groups
        None for one player; or a number of independent ones, which play side by side. The guarantee is for each
        group: where one round's losses of several groups belong to one person, costs add up.

    Attributes
    ----------
    eta
        As given or as found.
    event
        All plays of a group, for accountants.
    charge
        The same, for `dpfast.Ledger.charge`. A ledger of zCDP holds all plays of ``epsilon`` and ``delta`` if its
        conversion_delta is that delta; one that adds up epsilons needs delta 0.

    Raises
    ------
    ParameterError
        A parameter is not as above, or both or neither of eta and epsilon are given.

    Notes
    -----
    Algorithm 15 of the reference keeps weights and multiplies them by exp(-eta * loss); algorithm 16 draws from the
    sums of losses. The law is the same, and this is the second: sums of integers are exact, and the draw certified.
    The expected regret is at most `dpfast.learning.regret.regret_bound`.

    References
    ----------
    Littlestone, Warmuth (1994); Freund, Schapire (1997). Dwork, Roth (2014), algorithms 15 and 16, theorems 11.1 to
    11.4.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> player = RandomizedWeightedMajority(experts=3, rounds=10_000, epsilon=0.5, delta=1e-6)
    >>> round(player.eta, 8)
    0.00115252
    >>> player = RandomizedWeightedMajority(experts=3, rounds=100, eta=0.5)
    >>> plays = player.run(np.tile([0.9, 0.1, 0.8], (100, 1)), random=SeededRandom(1))
    >>> int((plays == 1).sum()) > 80
    True
    >>> player.event
    Repeated(event=ExponentialMechanism(epsilon=1.0), count=100)

    """

    def __init__(
        self,
        experts: Annotated[int, _EXPERTS],
        rounds: Annotated[int, _ROUNDS],
        *,
        eta: Annotated[Real | None, _ETA] = None,
        epsilon: Epsilon = None,
        delta: Annotated[Real, DELTA] = 0,
        groups: Annotated[int | None, _GROUPS] = None,
    ) -> None:
        self.experts = _EXPERTS.read("experts", experts)
        self.rounds = _ROUNDS.read("rounds", rounds)
        self.groups = _GROUPS.read_optional("groups", groups)
        budget_units(delta, "delta")
        if epsilon is not None:
            budget_units(epsilon, "epsilon")
        if epsilon is not None and eta is None:
            self.eta = private_eta(rounds, epsilon, delta)
        elif epsilon is None and eta is not None:
            self.eta = _ETA.read("eta", eta)
        else:
            raise ParameterError("eta", eta, "given if epsilon is not, and only then")
        shape = (self.experts,) if self.groups is None else (self.groups, self.experts)
        self._losses = np.zeros(shape, np.int64)
        self._epsilon = 2.0 * self.eta
        play = ExponentialMechanism(self._epsilon)
        self.event: Repeated = play.times(self.rounds)
        self.charge = Charge.of(
            self._epsilon, description="randomized weighted majority", event=play, count=self.rounds
        )
        self._played = 0
        self._seen = 0
        self._turns = Turns("experts cannot play on after a fork: both processes would play for the same charge")

    def play(self, *, random: Random = None, threads: Threads = None) -> int | NDArray[np.int64]:
        """Return the expert to follow in this round: an int, or an int64 for each group.

        Raises
        ------
        BudgetExceededError
            All rounds have been played.
        LedgerError
            The process was forked: both would play for one charge.

        """
        with self._turns.turn():
            self._spend(1)
            choice = exponential(-self._losses, self._epsilon, sensitivity=LOSS_UNITS, random=random, threads=threads)
            self._turns.refuse_other_process()
        return int(choice) if self.groups is None else choice

    def update(self, losses: Losses) -> None:
        """Learn what every expert lost in this round.

        Parameters
        ----------
        losses
            One for each expert, or a row of them for each group: numbers from 0 to 1. What lies outside is clamped
            and NaN, and whatever in a list is no number, is a loss of 1, so that no error depends on private values.

        Raises
        ------
        ParameterError
            Losses of another shape, or of more rounds than declared.

        """
        array = numeric_array(losses, "losses", self._losses.ndim, self._losses.shape[1:])
        with self._turns.turn():
            row = self._checked(array, self._losses.shape).reshape(1, -1)
            score_rounds(row, self._losses.reshape(-1), np.empty(row.shape, np.int64))
            self._seen += 1

    def run(self, losses: Losses, *, random: Random = None, threads: Threads = None) -> NDArray[np.int64]:
        """Play a round for each entry of ``losses``, learning from it afterwards; return all plays.

        Parameters
        ----------
        losses
            Losses as for `update`, one round after the other along the first axis; they must not depend on the plays.
            In lists, a round of another length than declared is one of losses of 1.
        random, threads
            As for `dpfast.exponential`, which draws all of them.

        Returns
        -------
        numpy.ndarray
            int64, one play for each round, and in it for each group.

        Raises
        ------
        ParameterError
            Losses of another shape.
        BudgetExceededError
            More rounds than are left; nothing is played.

        """
        array = numeric_array(losses, "losses", 1 + self._losses.ndim, self._losses.shape)
        rounds = len(array)
        with self._turns.turn():
            given = self._checked(array, (rounds, *self._losses.shape), rounds)
            self._spend(rounds)
            self._seen += rounds
            plays = play_rounds(self._losses, given, self._epsilon, random, threads)
            self._turns.refuse_other_process()
        return plays

    def _checked(self, array: NDArray[Any], shape: tuple[int, ...], rounds: int = 1) -> NDArray[Any]:
        if array.shape != shape:
            raise ParameterError("losses", Words(f"of shape {array.shape}"), f"of shape {shape}")
        # More losses than rounds would leave the 64 bits that sums are exact in.
        if self._seen + rounds > self.rounds:
            raise BudgetExceededError(f"losses of {self._seen + rounds} rounds do not fit into {self.rounds} rounds")
        return checked_losses(array)

    def _spend(self, plays: int) -> None:
        if self._played + plays > self.rounds:
            message = f"{plays} more plays do not fit into the {self.rounds} rounds of which {self._played} are played"
            raise BudgetExceededError(message)
        self._played += plays

    def __reduce__(self) -> NoReturn:
        raise LedgerError("experts cannot be pickled or copied: each copy would play again for the same charge")

    def _facts(self) -> Facts:
        """Return the parameters, never the losses."""
        return [("experts", self.experts), ("rounds", self.rounds), ("eta", self.eta)]
