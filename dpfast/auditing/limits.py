"""What a number of successes says of a probability: Clopper and Pearson's limits, certified, and quick ones.

I_p(k, n - k + 1), the regularized incomplete beta function, is the probability that a binomial variable of n trials
with probability p is k or more. Clopper and Pearson's lower limit for k successes is the p at which this is the allowed
probability of a miss. It is evaluated here in ball arithmetic, with as much precision as it takes to tell the tail from
the miss: what is returned is the last float on the safe side, so the limit is sound whatever the rounding, and the best
one that is a float.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import numpy as np
from flint import arb, ctx
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

#: The precision of a first look, and of the last one.
_BITS, _MOST_BITS = 96, 2**12
#: Where no precision tells the tail from the miss they may be equal: rational numbers decide, of so few trials.
_MOST_EXACT = 500
#: An excess that is so near to 0 lies a few floats away.
_NEAR = 2.0**-44
_TINY = 1e-300
#: Of more trials no terms are added up.
_MOST_SUMMED = 2**15
#: Of more trials Chernoff's bound is taken: the incomplete beta function takes minutes from 10**15 on.
_MOST_TRIALS = 10**12


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
        Clopper and Pearson's lower limit, rounded down to a float; of more than 10**12 trials Chernoff's.

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
        Clopper and Pearson's upper limit, rounded up to a float; of more than 10**12 trials Chernoff's.

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


@lru_cache(maxsize=64)
def _choices(n: int, k: int) -> int:
    return math.comb(n, k)


def _at_least(k: int, n: int, success: Fraction) -> arb:
    """Return a ball that holds the probability of k successes or more in n trials, 1 <= k <= n.

    A term of the binomial sum is the one before times odds (n - j) / (j + 1), j the number of successes before, and
    this ratio falls with j. Where it is below 1 at k, terms are added until they are small; all that follow the last
    are at most a geometric series with the ratio there, t r / (1 - r), and at least 0. Elsewhere, and of many trials,
    it is the incomplete beta function, which takes up to thirty times as long.
    """
    p = ball(success)
    if n > _MOST_SUMMED or not 0 < success < 1 or not (odds := ball(success / (1 - success))) * (n - k) < k + 1:
        return p.beta_lower(k, n - k + 1, regularized=True)
    term = arb(_choices(n, k)) * p**k * ball(1 - success) ** (n - k)
    total, least = term, arb(2) ** -(ctx.prec + 8)
    for j in range(k, n):
        ratio = odds * (n - j) / (j + 1)
        if j % 16 == 0 and term < total * least:
            return total + term * ratio / (1 - ratio) * arb(0.5, 0.5)
        term *= ratio
        total += term
    return total


@dataclass(frozen=True)
class _Tail:
    """The probability that a binomial variable is at least k, 1 <= k <= n, set against the miss.

    With ``mirrored`` the variable counts failures, so that n - k successes or fewer are meant.
    """

    k: int
    n: int
    miss: Fraction
    mirrored: bool

    def excess(self, p: float) -> float:
        """Return about by how much the tail is above the miss, as a logarithm: it certifies nothing."""
        tail, bound, rising = self._sides(p)
        if not tail.is_finite() or not tail.mid() > 0:
            return -math.inf if rising and tail.is_finite() else math.inf
        found = float((tail.mid() / ball(bound)).log().mid())
        return found if rising else -found

    def holds(self, p: float) -> bool:
        """Return whether it is certain that the tail is at most the miss."""
        if self.n > _MOST_TRIALS:
            with working_precision(_BITS):
                return self._chernoff(p)
        bits = _BITS
        while bits <= _MOST_BITS:
            with working_precision(bits):
                tail, bound, rising = self._sides(p)
                limit = ball(bound)
                if tail < limit or tail > limit:
                    return bool(tail < limit) is rising
            bits *= 2
        return self.n <= _MOST_EXACT and self._exact(p) <= self.miss

    def _sides(self, p: float) -> tuple[arb, Fraction, bool]:
        """Return the smaller of the tail and the rest, what it is compared with, and whether it rises with the tail.

        Where the miss is nearly 1 the tail is too, and only the rest shows by how little it is less.
        """
        success = 1 - Fraction(p) if self.mirrored else Fraction(p)
        k, n = self.k, self.n
        if 2 * self.miss <= 1:
            return _at_least(k, n, success), self.miss, True
        return _at_least(n - k + 1, n, 1 - success), 1 - self.miss, False

    def _chernoff(self, p: float) -> bool:
        """Return whether Chernoff's bound, exp(-n KL(k / n, p)), is certainly at most the miss: for large n."""
        share, success = Fraction(self.k, self.n), 1 - Fraction(p) if self.mirrored else Fraction(p)
        if not 0 < success < share:
            return success == 0
        divergence = ball(share) * ball(share / success).log()
        if share < 1:
            divergence += ball(1 - share) * ball((1 - share) / (1 - success)).log()
        return bool(self.n * divergence >= -ball(self.miss).log())

    def _exact(self, p: float) -> Fraction:
        one = 1 - Fraction(p) if self.mirrored else Fraction(p)
        return sum(
            (math.comb(self.n, j) * one**j * (1 - one) ** (self.n - j) for j in range(self.k, self.n + 1)), Fraction(0)
        )


def _certified(k: int, n: int, miss: Fraction) -> float:
    """Return the largest float p with P(X >= k) <= miss."""
    tail = _Tail(k, n, miss, mirrored=False)
    low, high = _ends(k, n, miss)
    return _float(_last(tail.holds, _near(tail.excess, low, high) if n <= _MOST_TRIALS else low))


def _certified_above(k: int, n: int, miss: Fraction) -> float:
    """Return the smallest float p with P(X <= k) <= miss: so many failures, of probability 1 - p."""
    tail = _Tail(n - k, n, miss, mirrored=True)
    low, high = _ends(n - k, n, miss)
    near = _near(tail.excess, 1.0 - low, 1.0 - high) if n <= _MOST_TRIALS else 1.0 - low
    return _float(_last(lambda p: not tail.holds(p), near) + 1)


def _ends(k: int, n: int, miss: Fraction) -> tuple[float, float]:
    """Return about two numbers between which the lower limit lies."""
    low, _ = quick_limits(np.array([k]), n, max(float(miss), _TINY))
    if 2 * miss <= 1:
        return float(low[0]), k / n
    _, high = quick_limits(np.array([k]), n, max(float(1 - miss), _TINY))
    return float(low[0]), float(high[0])


def _near(excess: Callable[[float], float], sound: float, unsound: float) -> float:
    """Return about where an excess becomes positive between two numbers, by false position (Illinois) and bisection."""
    with working_precision(_BITS):
        low, high = excess(sound), excess(unsound)
        weight = 1.0
        for turn in range(60):
            if not (low <= 0 < high) or abs(sound - unsound) <= 2.0**-50 * min(sound, unsound):
                break
            share = weight * low / (weight * low - high)
            middle = sound + (unsound - sound) * (share if turn % 4 != 3 and 0 < share < 1 else 0.5)
            if middle in (sound, unsound):
                break
            found = excess(middle)
            if abs(found) < _NEAR:
                return middle
            if found <= 0:
                sound, low, weight = middle, found, 1.0
            else:
                unsound, high, weight = middle, found, weight / 2
    return sound


def _last(holds: Callable[[float], bool], near: float) -> int:
    """Return the number of the last float from 0 to 1 up to which something holds; it does at 0."""
    first, last = _number(0.0), _number(1.0)
    place, step = min(max(_number(near), first), last), 1
    if holds(_float(place)):
        while place < last and holds(_float(min(place + step, last))):
            place, step = min(place + step, last), 2 * step
        beyond = min(place + step, last + 1)
    else:
        while place > first and not holds(_float(max(place - step, first))):
            place, step = max(place - step, first), 2 * step
        place, beyond = max(place - step, first), place
    while beyond - place > 1:
        middle = (place + beyond) // 2
        place, beyond = (middle, beyond) if holds(_float(middle)) else (place, middle)
    return place


def _number(x: float) -> int:
    """Return the number of a float that is not negative, in the order of floats."""
    found: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return found


def _float(number: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<q", number))[0]
    return found


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
