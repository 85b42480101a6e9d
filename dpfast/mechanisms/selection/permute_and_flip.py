"""Permute-and-flip: the argmax of scores with exponential noise."""

from __future__ import annotations

from typing import Any

from dpfast.arguments import Threads
from dpfast.columns.declarations import Scale
from dpfast.kernels.selection.argmax import EXPONENTIAL
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import select
from dpfast.mechanisms.selection.kinds import CandidateValues, Groups, Offsets, Scores, selection
from dpfast.randomness import Random

__all__ = ["permute_and_flip"]


@selection
def permute_and_flip(
    scores: Scores,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    candidates: CandidateValues = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> Any:  # see Selection
    """Select a candidate by permute-and-flip: its expected score is never below the exponential mechanism's.

    Guarantee
        Selects with exactly the distribution of visiting candidates in random order and taking the first whose
        coin of probability exp(a * (score - best score)) says so, where a = epsilon / (2 * sensitivity) rounded
        down to a float64. That is (epsilon, 0)-differentially private if no score changes by more than
        ``sensitivity`` between neighbouring data sets; every row is a selection of its own and
        costs its own epsilon. Only the index may be published. The candidates and the null mask are public, as is
        the shape, and no budget is kept here. Unlike `exponential` it is not of bounded range: many selections
        compose as any other pure mechanism does.

    Parameters
    ----------
    scores
        One score for each candidate, as for `exponential`. A null is no candidate.
    epsilon
        The privacy of one selection: a number from 1e-18 to 1e6, or a column with one for each row.
    sensitivity
        The most that one score can change between neighbouring data sets, or a column with one for each row.
    monotonic
        True if a change between neighbours moves no two scores in opposite directions: then a = epsilon / sensitivity.
    candidates, offsets, groups, random, threads
        As for `exponential`.

    Returns
    -------
    int, numpy.ndarray, or a column of the kind given
        The winners' places, or their values: as for `exponential`.

    Raises
    ------
    ParameterError, ColumnError, DataError
        As for `exponential`.

    Notes
    -----
    The largest of a * score + E, E standard exponential noise (Ding et al. 2021); certified and finished as
    `exponential` is. Two candidates whose scores differ by c: the lower one wins with probability
    exp(-a c) / 2, for `exponential` with 1 / (1 + exp(a c)).

    References
    ----------
    McKenna, Sheldon (2020). Ding, Kifer, Saghaian, Steinke, Wang, Xiao, Zhang (2021) for the noise.

    Examples
    --------
    >>> import polars as pl
    >>> from dpfast.testing import SeededRandom
    >>> permute_and_flip(pl.Series("votes", [None, 120, 800]), epsilon=0.5, random=SeededRandom(1))
    2
    >>> permute_and_flip([3, 4], epsilon=-1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: epsilon must be a number from 1e-18 to 1e6, but was -1; write for example epsilon=0.5

    """
    return select(scores, epsilon, sensitivity, monotonic, EXPONENTIAL, random, candidates, offsets, groups, threads)
