"""Report noisy max: the argmax of scores with Laplace noise."""

from __future__ import annotations

from typing import Any

from dpfast.arguments import Threads
from dpfast.columns.declarations import Scale
from dpfast.kernels.selection.argmax import LAPLACE
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import select
from dpfast.mechanisms.selection.kinds import CandidateValues, Groups, Offsets, Scores, selection
from dpfast.randomness import Random

__all__ = ["report_noisy_max"]


@selection
def report_noisy_max(
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
    """Select a candidate with a high score by the argmax of scores with Laplace noise.

    Guarantee
        The argmax of scores[i] + Laplace(1 / a), exactly, where a = epsilon / (2 * sensitivity) rounded down to
        a float64: (epsilon, 0)-differentially private if no score changes by more than ``sensitivity``. Noise of
        half the scale would not do: two candidates of which one's score rises as the other's falls lose nearly
        2 epsilon. It does where ``monotonic`` holds. Only the index may be published.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic, candidates, offsets, groups, random, threads
        As for `exponential`. Permute-and-flip is the better mechanism at the same cost; this one is here to be
        compared with.

    Returns
    -------
    int, numpy.ndarray, or a column of the kind given
        The winners' places, or their values: as for `exponential`.

    Raises
    ------
    ParameterError, ColumnError, DataError
        As for `exponential`.

    References
    ----------
    Dwork, Roth (2014), section 3.3, for monotone scores; Ding, Wang, Zhang, Kifer (2019) for others.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> report_noisy_max([14976, 10683, 4443], epsilon=0.1, random=SeededRandom(1))
    0

    """
    return select(scores, epsilon, sensitivity, monotonic, LAPLACE, random, candidates, offsets, groups, threads)
