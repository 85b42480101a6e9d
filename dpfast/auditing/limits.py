"""What a number of successes says of a probability: Clopper and Pearson's limits, certified, and quick ones.

I_p(k, n - k + 1), the regularized incomplete beta function, is the probability that a binomial variable of n trials
with probability p is k or more. Clopper and Pearson's lower limit for k successes is the p at which this is the allowed
probability of a miss. It is evaluated here in ball arithmetic: what is returned is a float at which the ball shows that
the probability is not above the miss, so the limit is sound whatever the rounding, and within 1e-7 of the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Number, Real, Whole
from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, working_precision

__all__ = ["lower_limit", "quick_limits", "upper_limit"]

_HAPPENED, _TRIALS = Whole(0, 2**62), Whole(1, 2**62)
_MISS = Number(0, 1, above=True, below=True, mend="write for example {name}=1e-6")

Happened: TypeAlias = Annotated[int, _HAPPENED]
Trials: TypeAlias = Annotated[int, _TRIALS]
Miss: TypeAlias = Annotated[Real, _MISS]

_BITS = 96
#: Relatively, how near to the best limit is near enough.
_NEAR = 2.0**-28


def lower_limit(happened: Happened, trials: Trials, miss: Miss) -> float:
    """Return a number that a probability is not below, after so many successes in independent trials.

    Guarantee
        Of the confidence, not of privacy: whatever the probability is, the limit is above it with probability at most
        ``miss``.

    Parameters
    ----------
    happened, trials
        The number of successes, and of trials.
    miss
        The allowed probability of a miss, above 0 and below 1.

    Returns
    -------
    float
        Clopper and Pearson's lower limit, rounded down.

    Raises
    ------
    ParameterError
        An argument is out of range, or there are more successes than trials.

    References
    ----------
    Clopper, Pearson (1934).

    Examples
    --------
    >>> round(lower_limit(30, 1000, 1e-6), 6)
    0.01081

    """
    k, n, allowed = _read(happened, trials, miss)
    return _certified(k, n, allowed) if k else 0.0


def upper_limit(happened: Happened, trials: Trials, miss: Miss) -> float:
    """Return a number that a probability is not above, after so many successes in independent trials.

    Guarantee
        Of the confidence, not of privacy: whatever the probability is, the limit is below it with probability at most
        ``miss``.

    Parameters
    ----------
    happened, trials, miss
        As for `lower_limit`.

    Returns
    -------
    float
        Clopper and Pearson's upper limit, rounded up.

    Raises
    ------
    ParameterError
        As for `lower_limit`.

    References
    ----------
    Clopper, Pearson (1934).

    Examples
    --------
    >>> round(upper_limit(30, 1000, 1e-6), 6)
    0.063843
    >>> upper_limit(0, 100, 0.05) >= 1 - 0.05 ** (1 / 100)
    True

    """
    k, n, allowed = _read(happened, trials, miss)
    return 1.0 if k == n else _certified_above(k, n, allowed)


def _read(happened: object, trials: object, miss: object) -> tuple[int, int, Fraction]:
    n = _TRIALS.read("trials", trials)
    k = _HAPPENED.read("happened", happened)
    if k > n:
        raise ParameterError("happened", k, f"at most trials, which is {n}")
    return k, n, _MISS.read_exactly("miss", miss)


def _tail(k: int, n: int, p: Fraction) -> arb:
    """Return P(X >= k) for X binomial, 1 <= k <= n."""
    return ball(p).beta_lower(k, n - k + 1, regularized=True)


def _certified(k: int, n: int, miss: Fraction) -> float:
    """Return a p, as large as is easily found, with P(X >= k) <= miss."""

    def excess(p: float) -> float:
        return _excess(_tail(k, n, Fraction(p)), miss)

    with working_precision(_BITS):
        low, _ = quick_limits(np.array([k]), n, float(miss))
        p, step = _searched(excess, float(low[0]), k / n), 2.0**-50
        while excess(p) > 0:
            p *= 1.0 - step
            step = min(2 * step, 0.5)
        return p


def _certified_above(k: int, n: int, miss: Fraction) -> float:
    """Return a p, as small as is easily found, with P(X <= k) <= miss: so many failures, of probability 1 - p."""

    def excess(p: float) -> float:
        return _excess(_tail(n - k, n, 1 - Fraction(p)), miss)

    with working_precision(_BITS):
        _, high = quick_limits(np.array([k]), n, float(miss))
        p, step = _searched(excess, float(high[0]), k / n), 2.0**-50
        while p < 1.0 and excess(p) > 0:
            p = min(1.0, p + p * step)
            step *= 2
        return p


def _excess(tail: arb, miss: Fraction) -> float:
    """Return about ln(tail / miss); at most 0 only where the ball shows that the tail is not above the miss."""
    if tail <= ball(miss):
        return min(0.0, float((tail.mid() / ball(miss)).log().mid())) if tail.mid() > 0 else -math.inf
    found = float((tail.upper() / ball(miss)).log().mid()) if tail.is_finite() else math.inf
    return max(found, 5e-324)


def _searched(excess: Callable[[float], float], sound: float, unsound: float) -> float:
    """Return about where an excess becomes positive between two numbers, on the side where it is not.

    By false position (Illinois), and by bisection where that helps little.
    """
    low, high = excess(sound), excess(unsound)
    if low > 0 or high <= 0:
        return sound if low > 0 else unsound
    weight = 1.0
    for turn in range(100):
        width = abs(sound - unsound)
        if width <= _NEAR * min(sound, 1.0 - sound) or low > -_NEAR:
            break
        share = weight * low / (weight * low - high)
        middle = sound + (unsound - sound) * (share if turn % 4 != 3 and 0 < share < 1 else 0.5)
        if middle in (sound, unsound):
            break
        found = excess(middle)
        if found <= 0:
            sound, low, weight = middle, found, 1.0
        else:
            unsound, high, weight = middle, found, weight / 2
    return sound


def quick_limits(
    happened: NDArray[Any], trials: int | NDArray[Any], miss: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper limits by Chernoff's bound, for many numbers of successes at once.

    A little wider than Clopper and Pearson's: P(X >= k) <= exp(-n KL(k/n, p)) for p < k/n, and as much below. They
    are computed in float64 and certify nothing: events are chosen by them.

    Examples
    --------
    >>> low, high = quick_limits(np.array([30]), 1000, 1e-6)
    >>> round(float(low[0]), 4), round(float(high[0]), 4)
    (0.0097, 0.0673)

    """
    share = np.asarray(happened, np.float64) / trials
    room = -math.log(miss) / np.asarray(trials, np.float64)
    lower = _where_divergence_is(share, room, np.zeros_like(share))
    return lower, _where_divergence_is(share, room, np.ones_like(share))


def _where_divergence_is(
    share: NDArray[np.float64], room: NDArray[np.float64], end: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the p between ``share`` and ``end`` with KL(share, p) = room, by bisection from the end's side."""
    near, far = share.copy(), end.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(60):
            p = (near + far) / 2
            first = np.where(share > 0, share * np.log(share / p), 0.0)
            second = np.where(share < 1, (1 - share) * np.log1p((p - share) / (1 - p)), 0.0)
            beyond = ~(first + second <= room)
            far = np.where(beyond, p, far)
            near = np.where(beyond, near, p)
    return far
