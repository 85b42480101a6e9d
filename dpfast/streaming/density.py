"""The pan-private density estimator: how many of a known population were seen, from one random bit for each."""

from __future__ import annotations

import math
from typing import Annotated, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import EPSILON, read_budget
from dpfast.accounting.events import Pure
from dpfast.accounting.privacy_unit import Neighbors, read_neighbors
from dpfast.arguments import Real, Whole
from dpfast.columns import BLOCK_ROWS
from dpfast.columns.declarations import WholeColumn
from dpfast.columns.private import borrow_integers
from dpfast.errors import LedgerError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import ball, float_above, working_precision, written_below
from dpfast.ledger import Charge
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.noise.integer_noise import laplace_of_epsilon
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.randomness import Keystream, Purpose, Random, random_source
from dpfast.showing import Facts, Shown
from dpfast.streaming.rows import known_numbers
from dpfast.turns import Turns

__all__ = ["PanPrivateDensity"]

POPULATION = Whole(1, 2**32, mend="write for example {name}=10_000")
#: Below it, the scale of what decides a bit leaves the grid of ones.
_LEAST_EPSILON = 1e-6


def _scale_of_bits(units: int) -> float:
    """Return a b, rounded up, with 1 / b = ln(2 exp(epsilon) - 1): see `PanPrivateDensity`."""
    with working_precision():
        # 2 exp(e) - 1 = 1 + 2 expm1(e), without cancellation.
        return float_above(1 / (2 * (ball(units) / UNITS_PER_ONE).expm1()).log1p())


class PanPrivateDensity(Shown):
    """Estimate which part of a population occurs in a stream, with a state that is private too.

    Guarantee
        (epsilon, 0)-differentially private for users: for neighbouring streams, which differ in all occurrences of one
        member of the population, whatever their number, what an intruder sees of the state, once, at a time fixed
        beforehand or chosen from public facts, and the one estimate that is released, together. A ledger is charged
        when the object is made.

        Proof. Each member has a bit: first a fair coin; at each occurrence it is drawn afresh, and is 1 with
        probability p = 1 / (1 + q), q = exp(-1 / b), 1 / b <= ln(2 exp(e) - 1), so that q >= 1 / (2 exp(e) - 1) and
        1 - p >= exp(-e) / 2. Both values of a bit then have probabilities within a factor exp(e) of 1/2: 2 p <= 2 -
        exp(-e) <= exp(e). The state shows a member's last draw before the intrusion, which costs e = epsilon / 2; other
        bits do not depend on it. The estimate is made of the number of ones with discrete Laplace noise of scale
        1 / e', e' = epsilon - e: given everything else, a member changes that number by 1 at most.

    Parameters
    ----------
    population
        How many members, numbered from 0.
    epsilon
        What the state and the estimate cost together, from 1e-6: half of it each.
    neighbors, ledger, dataset, privacy_unit, random
        As for `dpfast.continual_count`: to replace one member by another costs twice as much, and each bit gets half.

    Attributes
    ----------
    bias
        How much likelier than 1/2 it is that the bit of a member that occurred is 1.
    event
        What it costs.
    entry
        The charge's number in the ledger, None without one.

    Raises
    ------
    ParameterError, BudgetExceededError, LedgerError
        An argument is not as above, or the ledger refuses the charge.

    Notes
    -----
    The estimate is (y / population - 1/2) / bias for y ones. In print the bits have a bias of epsilon, which is not
    (epsilon, 0)-private (ln(1 / (1 - 2 epsilon)) is what it costs), and the estimate is 2 bias times as large.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum, Yekhanin (2010). Dwork, Roth (2014), section 12.2.1, corrected.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> seen = PanPrivateDensity(100_000, epsilon=2.0, random=SeededRandom(1))
    >>> for day in range(3):
    ...     seen.arrive(np.arange(0, 40_000))
    >>> bool(abs(seen.release() - 0.4) < 0.05), bool(seen.error < 0.01)
    (True, True)

    """

    def __init__(
        self,
        population: Annotated[int, POPULATION],
        epsilon: Annotated[Real, EPSILON],
        *,
        neighbors: Neighbors = "add_remove",
        ledger: Payer = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        random: Random = None,
    ) -> None:
        self.population = POPULATION.read("population", population)
        budget, relation = read_budget(epsilon, None, None), read_neighbors(neighbors)
        if budget.units < _LEAST_EPSILON * UNITS_PER_ONE:
            raise ParameterError("epsilon", epsilon, f"at least {_LEAST_EPSILON:g} for a pan-private estimate")
        each = budget.units // (2 if relation == "replace" else 1)
        self._scale = _scale_of_bits(each // 2)
        self._noise = laplace_of_epsilon(1, each - each // 2)
        self.bias = math.tanh(0.5 / self._scale) / 2
        self.event = Pure(written_below(budget.units))
        payment = read_payment(ledger, budget, random, neighbors=relation, dataset=dataset, privacy_unit=privacy_unit)
        self._source = random_source(random)
        what = f"density of a stream in a population of {self.population:,} (pan-private)"
        self.entry = payment.charge([Charge(budget.units, 0, what, self.event)])
        words = np.empty(-(-self.population // 128) * 16, np.uint8)
        Keystream(self._source.key()).words(Purpose.NOISE).fill(0, words)
        self._bits = np.unpackbits(words)[: self.population]
        words.fill(0)
        self._released = False
        self._turns = Turns("a density estimator does not outlive a fork: each copy would release for one charge")

    @property
    def state(self) -> NDArray[np.uint8]:
        """What an intruder may see, once: the bit of every member."""
        return self._bits.copy()

    @property
    def error(self) -> float:
        """At most the standard deviation of the estimate."""
        return math.sqrt(self.population / 4 + self._noise.deviation**2) / (self.population * self.bias)

    def arrive(self, members: WholeColumn) -> None:
        """Take note of members that occur, as often as they do.

        Parameters
        ----------
        members
            Their numbers; other numbers and nulls are nobody's, and are left out, as is whatever in a list is no whole
            number.

        Raises
        ------
        ColumnError
            It is no column of whole numbers.
        LedgerError
            The estimate has been released, or the process was forked.

        """
        column = borrow_integers(members, "members", "give the numbers of members")
        with self._turns.turn():
            self._refuse_released()
            for start in range(0, column.length, BLOCK_ROWS):
                stop = min(start + BLOCK_ROWS, column.length)
                numbers, known = known_numbers(column, start, stop, self.population)
                seen = np.unique(numbers[known])
                draws = laplace(np.zeros(seen.size, np.int64), self._scale, random=self._source)
                self._bits[seen] = draws <= 0
                draws.fill(0)

    def release(self) -> float:
        """Return the estimate of the part of the population that occurred, once; it may be below 0 or above 1.

        Raises
        ------
        LedgerError
            It has been released, or the process was forked.

        """
        with self._turns.turn():
            self._refuse_released()
            self._released = True
            ones = self._noise.add(np.array([self._bits.sum(dtype=np.int64)]), self._source)
            self._turns.refuse_other_process()
        return float((ones[0] / self.population - 0.5) / self.bias)

    def _refuse_released(self) -> None:
        if self._released:
            raise LedgerError("the estimate has been released, which is all that was paid for; make a new estimator")

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a density estimator cannot be pickled or copied: each copy would release for one charge")

    def _facts(self) -> Facts:
        """Return what is public."""
        return [("population", self.population), ("event", self.event)]
