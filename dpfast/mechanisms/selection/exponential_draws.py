"""Many draws of the exponential mechanism from one column of scores."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads, Whole
from dpfast.columns.declarations import Scale
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.exponential_routes import draw_many
from dpfast.mechanisms.selection.kinds import Score
from dpfast.randomness import Random

__all__ = ["exponential_draws"]

_DRAWS = Whole(1, 10**12, mend="write for example {name}=1000")


def exponential_draws(
    scores: Score,
    epsilon: EpsilonPerRow,
    draws: Annotated[int, _DRAWS],
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    threads: Threads = None,
    random: Random = None,
) -> NDArray[np.int64]:
    """Select candidates with high scores many times over, by independent draws of the exponential mechanism.

    Guarantee
        Each draw, independently of the others, is candidate i with probability proportional to exp(a * scores[i]),
        exactly, where a = epsilon / (2 * sensitivity) rounded down to a float64: as if `exponential` were called
        ``draws`` times. So **every draw costs epsilon**: together they are (draws * epsilon, 0)-differentially
        private if no score changes by more than ``sensitivity`` between neighbouring data sets, and
        rho = draws * epsilon**2 / 8 in zero-concentrated terms, as the exponential mechanism is of bounded range.
        Only the indices may be published. The candidates, the null mask and the number of draws are public, and no
        budget is kept here.

    Parameters
    ----------
    scores
        One score for each candidate, a column as for `exponential`. A null is no candidate.
    epsilon
        The privacy of one draw: a number from 1e-18 to 1e6. To spend epsilon in all, give epsilon / draws.
    draws
        How many, from 1 to 10**12.
    sensitivity, monotonic
        As for `exponential`.
    threads
        How many threads share the draws; None for as many as pay. The result does not depend on it.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    numpy.ndarray
        The drawn candidates' places in the column, int64, in the order of the draws.

    Raises
    ------
    ParameterError
        A parameter is not as above.
    ColumnError
        The scores' kind or type is not one of those of `exponential`, or they are an array of rows.
    DataError
        A score is NaN or infinite, or there is no candidate.

    Notes
    -----
    An alias table of integers, made once: each candidate owns a certified number of the 2**64 words, at most its
    probability's share, and what is left over is drawn about once in 2**44 times, in ball arithmetic. Where there are
    more than 256 candidates for every draw, sums of weights are inverted instead (`exponential` does that for one
    long column). Both use one random word a draw, whatever the scores are.

    References
    ----------
    Walker (1977) and Vose (1991) for the table. McSherry, Talwar (2007) for the mechanism; Cesar, Rogers (2021) for
    rho.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> exponential_draws([14976, 10683, 4443], epsilon=0.0005, draws=12, random=SeededRandom(1))
    array([0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0])
    >>> exponential_draws([3, 4], epsilon=1.0, draws=0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: draws must be a whole number from 1 to 10**12, but was 0; write for example draws=1000

    """
    return draw_many(scores, epsilon, _DRAWS.read("draws", draws), sensitivity, monotonic, threads, random)
