"""The k best candidates in order: one round of Gumbel noise, which equals k exponential mechanisms in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads, Whole
from dpfast.columns.declarations import Scale
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import slopes
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.kinds import ArrayRow, ArrayRows, CandidateValues, Groups, Offsets, Scores
from dpfast.mechanisms.selection.ranking import rank_rows
from dpfast.mechanisms.selection.winners import give_rankings, read_values
from dpfast.randomness import Keystream, Random, random_source

if TYPE_CHECKING:
    import polars as pl

__all__ = ["noisy_top_k"]

_WINNERS = Whole(1, 2**40 - 1, mend="write for example {name}=10")
Winners: TypeAlias = Annotated[int, _WINNERS]


@overload
def noisy_top_k(
    scores: ArrayRow | ArrayRows | NDArray[Any],
    k: Winners,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    candidates: None = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> NDArray[np.int64]: ...
@overload
def noisy_top_k(
    scores: pl.Series,
    k: Winners,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    candidates: None = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> pl.Series: ...
# Candidates are of any type, and PyArrow has none.
@overload
def noisy_top_k(
    scores: Scores,
    k: Winners,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    candidates: CandidateValues = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> Any: ...
def noisy_top_k(
    scores: Scores,
    k: Winners,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    candidates: CandidateValues = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> Any:
    """Select k candidates with high scores, in order, by one round of Gumbel noise.

    Guarantee
        Exactly the distribution of ``k`` exponential mechanisms in turn, each among the candidates that are left and
        with epsilon / k: the next is candidate i with probability proportional to exp(a * scores[i]), where
        a = epsilon / (2 * k * sensitivity) rounded down to a float64. ``epsilon`` is the total: by basic composition
        all k indices with their order are (epsilon, 0)-differentially private if no score changes by more than
        ``sensitivity``; each of the k is of bounded range, so that rho = epsilon**2 / (8 * k) in zCDP. Every row is
        a ranking of its own and costs its own epsilon. Only places may be published, scores and keys cost extra. The
        candidates, the null mask and the shape are public, and no budget is kept here.

        Proof of the equality: the largest of independent Gumbel variables with locations a * scores[i] is i with the
        exponential mechanism's probability whatever its value is, and given that one and its value, the others are
        independent Gumbel variables below it; the next largest among them is therefore again an exponential mechanism.

    Parameters
    ----------
    scores, sensitivity, monotonic, candidates, offsets, groups, random, threads
        As for `exponential`.
    k
        How many are selected, at least 1.
    epsilon
        The privacy of all k together: a number from 1e-18 to 1e6, or a column with one for each row.

    Returns
    -------
    numpy.ndarray, or a column of the kind given
        For one column its k places, the best first. For rows an int64 array with k columns; for a column with offsets
        or groups likewise, or a column of lists if it is of Polars or PyArrow. Lists give lists, in which a row of
        fewer than k candidates has all of them in order; where the result is an array that is an error. With
        ``candidates``, values in place of places.

    Raises
    ------
    ParameterError
        k is no whole number from 1 to 2**40 - 1, or as for `exponential`.
    ColumnError, DataError
        As for `exponential`; also fewer than k candidates where the result is no column of lists.

    References
    ----------
    Durfee, Rogers (2019), for one round instead of k; Plackett (1975) and Luce (1959) for the distribution. Bounded
    range: Dong, Durfee, Rogers (2020); rho: Cesar, Rogers (2021).

    Examples
    --------
    >>> import polars as pl
    >>> noisy_top_k([3, 900, 14976, 10683], 2, epsilon=1.0)
    array([2, 3])
    >>> noisy_top_k(pl.Series([[3, 900, 14976], [700]]), 2, epsilon=1.0).to_list()
    [[2, 1], [0]]
    >>> noisy_top_k([3, 900], 3, epsilon=1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.DataError: scores must hold at least 3 candidates, but had 2; a null is no candidate

    """
    k = _WINNERS.read("k", k)
    borrowed = borrow_candidates(scores, offsets, groups)
    slope = slopes(epsilon, sensitivity, monotonic, borrowed.rows, k)
    values = None if candidates is None else read_values(candidates, borrowed)
    borrowed.refuse_few(k, None if values is None else values.has_nulls)
    keystream = Keystream(random_source(random).key())
    wanted = min(k, max(1, borrowed.longest))
    winners, _ = rank_rows(borrowed, slope, GUMBEL, wanted, keystream, threads)
    return give_rankings(borrowed, winners) if values is None else values.take_rankings(borrowed, winners)
