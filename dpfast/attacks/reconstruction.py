"""Attacks that tell every record: from random counts, and from counts that differ in one record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Whole
from dpfast.attacks.linear_queries import (
    METHOD,
    MOST_NUMBERS,
    SEED,
    Method,
    Seed,
    random_queries,
    reconstruct_from_answers,
)
from dpfast.attacks.mechanisms import Mechanism, ask
from dpfast.attacks.records import Records, read_records
from dpfast.errors import ParameterError
from dpfast.showing import Facts, Shown, number_of

__all__ = ["Reconstruction", "differencing", "reconstruction"]

_MOST_RECORDS = 4096
_QUERIES = Whole(1, 2**20, optional=True)
_REPEATS = Whole(1, 2**20)


@dataclass(frozen=True)
class Reconstruction(Shown):
    """What an attack found of private records.

    Attributes
    ----------
    records
        The truth: n zeros and ones.
    guess
        What the attack says they are.
    queries
        How many answers it used.
    noise
        The root mean square of the answers' errors.

    """

    records: NDArray[np.uint8]
    guess: NDArray[np.uint8]
    queries: int
    noise: float

    @property
    def recovered(self) -> float:
        """The share of records that were found."""
        return float((self.records == self.guess).mean())

    @property
    def guessing(self) -> float:
        """The share that is right if every record is taken for the more frequent value."""
        share = float(self.records.mean())
        return max(share, 1.0 - share)

    def explain(self) -> str:
        """Return it in words.

        Examples
        --------
        >>> import dpfast as dpf
        >>> print(dpf.attacks.reconstruction(lambda answers: answers.round(), [1, 0, 0, 1, 0]).explain())
        5 of 5 records recovered (100.0%) from 20 answers with errors of 0; guessing is right for 60.0%

        """
        found = int((self.records == self.guess).sum())
        size = self.records.size
        return (
            f"{found:,} of {number_of(size, 'record')} recovered ({self.recovered:.1%}) from "
            f"{number_of(self.queries, 'answer')} with errors"
            f" of {self.noise:.3g}; guessing is right for {self.guessing:.1%}"
        )

    def _facts(self) -> Facts:
        """Return how much was found, and none of the records."""
        names = ("recovered", "guessing", "queries", "noise")
        return [(name, getattr(self, name)) for name in names]

    def __repr__(self) -> str:
        return f"Reconstruction({self.explain()})"


def reconstruction(
    mechanism: Mechanism,
    records: Records,
    queries: Annotated[int | None, _QUERIES] = None,
    method: Method = "least_squares",
    seed: Seed = 0,
) -> Reconstruction:
    """Try to find every record from the answers of a mechanism to random counts.

    With noise well below the square root of the number of records, nearly all records are found from a few answers for
    each: so much noise, or a bound on the number of answers, is needed by *every* mechanism. What a budget buys is
    more noise for more answers.

    Parameters
    ----------
    mechanism
        From an array of exact counts to as many noisy ones. It is called once.
    records
        The private bits, at most 4,096: the attack sees none of them, they say how much of it is right.
    queries
        How many random subsets are counted; four for each record if not given.
    method
        ``"least_squares"``, or ``"linear_program"``, which stands some answers that are far off.
    seed
        Of the subsets.

    Returns
    -------
    Reconstruction
        The guess, and how much of it is right.

    Raises
    ------
    ParameterError
        An argument is not allowed, or the mechanism returns something else than as many finite numbers.

    References
    ----------
    Dinur, Nissim (2003). Dwork, McSherry, Talwar (2007). Dwork, Roth (2014), theorem 8.2.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> smokes = np.arange(200) % 3 == 0
    >>> little = lambda counts: dpf.laplace(counts, 1.0, random=SeededRandom(1))
    >>> enough = lambda counts: dpf.laplace(counts, 800.0, random=SeededRandom(1))
    >>> dpf.attacks.reconstruction(little, smokes).recovered
    1.0
    >>> dpf.attacks.reconstruction(enough, smokes).recovered < 0.7
    True

    """
    bits = read_records(records, most=_MOST_RECORDS)
    count = _QUERIES.read_optional("queries", queries) or 4 * bits.size
    if METHOD.read("method", method) == "search":
        allowed = '"least_squares" or "linear_program"'
        raise ParameterError("method", method, allowed, "search by dpf.attacks.reconstruct_from_answers")
    if count * bits.size > MOST_NUMBERS:
        raise ParameterError("queries", count, f"at most {MOST_NUMBERS // bits.size:,} for {bits.size:,} records")
    subsets = random_queries(count, bits.size, "subsets", SEED.read("seed", seed))
    exact = subsets.astype(np.float64) @ bits
    noisy = ask(mechanism, exact)
    guess = reconstruct_from_answers(subsets, noisy, method)
    return Reconstruction(bits, guess, count, _root_mean_square(noisy - exact))


def differencing(mechanism: Mechanism, records: Records, repeats: Annotated[int, _REPEATS] = 1) -> Reconstruction:
    """Try to find every record from two counts: of all records, and of all but one.

    The difference of the two is the record, give or take two errors. Where the mechanism draws afresh at each question,
    the average over repetitions finds it in spite of much noise: answers need a budget.

    Parameters
    ----------
    mechanism
        From an array of exact counts to as many noisy ones. It is called once.
    records
        The private bits, at most 4,096.
    repeats
        How often each of the two is asked.

    Returns
    -------
    Reconstruction
        The guess, and how much of it is right.

    Raises
    ------
    ParameterError
        An argument is not allowed, or the mechanism returns something else than as many finite numbers.

    References
    ----------
    Dwork, Roth (2014), sections 1 and 8.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> smokes = np.arange(100) % 3 == 0
    >>> dpf.attacks.differencing(lambda counts: 5 * np.round(counts / 5), smokes).recovered  # rounded to fives
    0.66
    >>> dpf.attacks.differencing(lambda counts: dpf.laplace(counts, 2.0), smokes, repeats=5000).recovered
    1.0

    """
    bits = read_records(records, most=_MOST_RECORDS)
    often = _REPEATS.read("repeats", repeats)
    if 2 * often * bits.size > MOST_NUMBERS:
        raise ParameterError("repeats", often, f"at most {MOST_NUMBERS // (2 * bits.size):,} for {bits.size:,} records")
    total = float(bits.sum())
    pairs = np.stack([np.full(bits.size, total), total - bits], axis=1)
    exact = np.repeat(pairs[:, :, None], often, axis=2).reshape(-1)
    noisy = ask(mechanism, exact)
    means = noisy.reshape(bits.size, 2, often).mean(axis=2)
    guess = (means[:, 0] - means[:, 1] > 0.5).astype(np.uint8)
    return Reconstruction(bits, guess, exact.size, _root_mean_square(noisy - exact))


def _root_mean_square(errors: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.square(errors).mean()))
