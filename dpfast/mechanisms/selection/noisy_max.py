"""Report noisy max: the argmax of scores with Laplace noise."""

from __future__ import annotations

from typing import Any

from dpfast.kernels.selection.argmax import LAPLACE
from dpfast.mechanisms.selection.argmax import select

__all__ = ["report_noisy_max"]


def report_noisy_max(
    scores: Any,
    epsilon: Any,
    sensitivity: Any = 1.0,
    monotonic: bool = False,
    *,
    candidates: Any = None,
    offsets: Any = None,
    groups: Any = None,
    random: object = None,
    threads: int | None = None,
) -> Any:
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
    return select(
        scores,
        epsilon,
        sensitivity,
        monotonic,
        LAPLACE,
        random,
        candidates=candidates,
        offsets=offsets,
        groups=groups,
        threads=threads,
    )
