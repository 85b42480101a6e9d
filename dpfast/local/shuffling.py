"""Privacy amplification by shuffling: what reports cost together once nobody knows whose is which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Flag, Real, Special, Whole
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import working_precision
from dpfast.mechanisms.parameters import EPSILON, Epsilon

__all__ = ["local_epsilon", "shuffled_delta", "shuffled_epsilon"]

_ROWS, _BINARY = Whole(1, 2**33), Flag()
_DELTA = Special(lambda: (*EPSILON.wrong(), 1, 1.0, 2))
#: A local epsilon above this is not amplified by any number of rows that may be given.
_LARGEST = 100
#: Numbers of clones are taken together in blocks: so many where there are a million, fewer where more are as close.
_BLOCKS, _FEWEST = 256, 16
#: What sums and products of floats are rounded by in the direction of less privacy: each has fewer than 10**6 terms.
_UP = 1 + 1e-9
_STEPS = 40


@dataclass(frozen=True)
class _Clones:
    """How many rows are clones of the one in question: bounds on the law of a binomial number C, by blocks.

    Attributes
    ----------
    starts
        The least number in each block, ascending.
    below
        For each block an upper bound on the probability that C lies in it or before it; the last one is 1.

    """

    starts: NDArray[np.int64]
    below: NDArray[np.float64]


@lru_cache(maxsize=256)
def _clones(rows: int, share: float) -> _Clones:
    """Return bounds on the law of C, binomial of ``rows`` trials with probability ``share`` (rounded down)."""
    if rows == 0 or rows * share < 1e-12:
        return _Clones(np.zeros(1, np.int64), np.ones(1))
    mean = rows * share
    reach = 9.5 * math.sqrt(mean * (1 - share)) + 60
    low, high = max(0, int(mean - reach)), min(rows, int(mean + reach))
    counts = np.arange(low, high + 1, dtype=np.float64)
    # Ratios of neighbouring probabilities; their product from the most probable number on.
    peak = min(max(int((rows + 1) * share) - low, 0), len(counts) - 1)
    odds = share / (1 - share)
    up = np.cumprod(odds * (rows - counts[peak:-1]) / (counts[peak:-1] + 1))
    down = np.cumprod((counts[peak:0:-1] / (rows - counts[peak:0:-1] + 1)) / odds)
    law = np.concatenate([down[::-1], [1.0], up]) * float(_binomial(rows, low + peak, share))
    before = math.exp(-rows * _divergence(low / rows, share)) * _UP if low else 0.0
    blocks = min(max(int(_BLOCKS * math.sqrt(1e6 / mean)), _FEWEST), _BLOCKS, len(counts))
    edges = np.unique(np.linspace(0, len(counts), blocks + 1).astype(np.int64))
    below = before + np.cumsum(law)[edges[1:] - 1] * _UP
    below[-1] = 1.0
    starts = low + edges[:-1]
    if low:
        starts, below = np.concatenate([[0], starts]), np.concatenate([[before], below])
    return _Clones(starts, np.minimum(np.maximum.accumulate(below), 1.0))


def _divergence(x: float, share: float) -> float:
    """Return the relative entropy of coins of probability ``x`` and ``share``: Chernoff's bound, rounded down."""
    first = x * math.log(x / share) if x > 0 else 0.0
    return max(first + (1 - x) * (math.log1p(-x) - math.log1p(-share)) - 1e-15, 0.0)


def _binomial(rows: int, count: int, share: float) -> arb:
    """Return an upper bound on the probability of ``count`` among ``rows`` trials."""
    with working_precision(160):
        chosen = arb(rows + 1).lgamma() - arb(count + 1).lgamma() - arb(rows - count + 1).lgamma()
        if count:
            chosen += count * arb(share).log()
        if rows > count:
            chosen += (rows - count) * (1 - arb(share)).log()
        return (chosen.exp() * arb(_UP)).upper()


def _divergence_of_pair(clones: int, local: float, epsilon: float) -> float:
    """Return an upper bound on the hockey-stick divergence of the pair, given the number of clones c.

    The pair is x + d for x binomial of c fair coins and d a coin of probability a, or 1 - a, a = e0 / (e0 + 1). The
    likelihood ratio rises with the sum, so that the divergence is that of the event sum >= t:
    u Pr[x = t - 1] - (exp(epsilon) - 1) Pr[x >= t], u = (e0 - exp(epsilon)) / (e0 + 1).
    """
    u = math.exp(epsilon) * math.expm1(local - epsilon) / (math.exp(local) + 1) * _UP
    point = (clones + 1) * math.expm1(epsilon + local) / (math.expm1(local) * (1 + math.exp(epsilon)))
    doubt = 1e-5 + 1e-14 * point
    found = 0.0
    # Where rounding may have moved the threshold past a whole number, both of them.
    for threshold in {math.floor(point - doubt) + 1, math.floor(point + doubt) + 1}:
        if threshold - 1 > clones:
            continue
        terms = min(clones - threshold + 1, int(4.5 * math.sqrt(clones)) + 60)
        places = np.arange(terms, dtype=np.float64)
        # Pr[x >= t] / Pr[x = t - 1], from below: the terms left out are positive.
        ratio = float(np.cumprod((clones - threshold + 1 - places) / (threshold + places)).sum()) / _UP
        factor = u - math.expm1(epsilon) * ratio / _UP
        if factor > 0:
            found = max(found, factor * float(_binomial(clones, threshold - 1, 0.5)))
    return min(found * _UP, 1.0)


def _delta(local: float, rows: int, epsilon: float, binary: bool) -> float:
    """Return an upper bound on the divergence at ``epsilon``; all are floats."""
    if epsilon >= local:
        return 0.0
    if local > _LARGEST:
        # There are hardly any clones; without them it is (e0 - exp(epsilon)) / (e0 + 1), which is more with none.
        return min(-math.expm1(epsilon - local) * _UP, 1.0)
    share = math.exp(-local) * (2 / (1 + math.exp(-local)) if binary else 1.0) / _UP
    clones = _clones(rows - 1, share)
    # More clones are more privacy: a block is as private as its least number.
    each = [_divergence_of_pair(int(start), local, epsilon) for start in clones.starts]
    worst = np.maximum.accumulate(np.array(each)[::-1])[::-1]
    falls = worst - np.append(worst[1:], 0.0)
    return min(float((clones.below * falls).sum()) * _UP, 1.0)


def shuffled_delta(
    epsilon: Epsilon,
    rows: Annotated[int, _ROWS],
    central_epsilon: Epsilon,
    *,
    binary: Annotated[bool, _BINARY] = False,
) -> float:
    """Return a delta with which shuffled reports are (central_epsilon, delta)-differentially private together.

    Guarantee
        That of `shuffled_epsilon`, read the other way round.

    Parameters
    ----------
    epsilon, rows, binary
        As for `shuffled_epsilon`.
    central_epsilon
        The epsilon of all reports together.

    Returns
    -------
    float
        Delta, rounded up; 0 from ``epsilon`` on.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Examples
    --------
    >>> shuffled_delta(1.0, 10_000, 0.1) < 1e-9, shuffled_delta(1.0, 10_000, 2.0)
    (True, 0.0)

    """
    local, number = _read(epsilon, rows)
    central = budget_units(central_epsilon, "epsilon", "central_epsilon") / UNITS_PER_ONE
    return _delta(local, number, math.nextafter(central, 0.0), _BINARY.read("binary", binary))


def shuffled_epsilon(
    epsilon: Epsilon,
    rows: Annotated[int, _ROWS],
    delta: Annotated[Real, _DELTA],
    *,
    binary: Annotated[bool, _BINARY] = False,
) -> float:
    """Return the epsilon of all reports together, once they are shuffled: far below that of one alone.

    Guarantee
        Let ``rows`` people each report once by the same randomizer, which is (epsilon, 0)-differentially private in the
        local model. Their reports in a random order are (r, delta)-differentially private for the returned r, where
        neighbours differ in one person's value. What somebody sees before the shuffling, or beside it, is not covered;
        reports must not tell whose they are, nor when they came.

    Parameters
    ----------
    epsilon
        The privacy of one row, as for `dpfast.randomized_response`.
    rows
        How many people report; at most 2**33.
    delta
        A number from 1e-18 to below 1.
    binary
        Whether each report is that of `dpfast.randomized_response` with two categories, or follows a mixture of its
        two laws, as `dpfast.BoundedMean`'s. The bound is better by a factor of up to 1.4.

    Returns
    -------
    float
        The least epsilon by this bound, rounded up; never above ``epsilon``.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    Of the person in question reports are made of two laws, Q0 and Q1, as randomized response with e = exp(epsilon)
    mixes them. Each other person reports by (Q0 + Q1) / 2 with probability 1 / e, whatever their value is, as every
    probability of theirs is at least 1 / e of any other's: those are C clones. So the divergence is at most that of
    (A + D, C - A + 1 - D) and (A + 1 - D, C - A + D), with C binomial (rows - 1, 1 / e), A binomial (C, 1/2), and D 1
    with probability e / (e + 1). It is summed here, with what is rounded rounded up, not bounded in closed form. If
    ``binary``, a person's clones have the probability 2 / (e + 1), since Q0 and Q1 are then all that reports are made
    of. That was published for all randomizers by the third reference, whose erratum of lemma 3.5 takes it back.

    References
    ----------
    Feldman, McMillan, Talwar (2021), theorem 3.1 and section 3. Balle, Bell, Gascon, Nissim (2019). Feldman, McMillan,
    Talwar (2023), with its erratum.

    Examples
    --------
    >>> shuffled_epsilon(1.0, 1_000_000, 1e-6) < 0.0235
    True
    >>> shuffled_epsilon(1.0, 1_000_000, 1e-6, binary=True) < shuffled_epsilon(1.0, 1_000_000, 1e-6)
    True
    >>> round(shuffled_epsilon(1.0, 1, 1e-6), 3)
    1.0

    """
    local, number = _read(epsilon, rows)
    wanted, binary = _read_delta(delta), _BINARY.read("binary", binary)
    if local > _LARGEST:
        return local
    low, high = 0.0, local
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if _delta(local, number, middle, binary) <= wanted:
            high = middle
        else:
            low = middle
        if high - low < 1e-6 * high:
            break
    return high


def local_epsilon(
    central_epsilon: Epsilon,
    rows: Annotated[int, _ROWS],
    delta: Annotated[Real, _DELTA],
    *,
    binary: Annotated[bool, _BINARY] = False,
) -> float:
    """Return how large the epsilon of each row may be, so that shuffled reports cost no more than a given epsilon.

    Guarantee
        `shuffled_epsilon` of what is returned is at most ``central_epsilon``: see there.

    Parameters
    ----------
    central_epsilon
        The epsilon of all reports together.
    rows, delta, binary
        As for `shuffled_epsilon`.

    Returns
    -------
    float
        The largest epsilon of a row that was found, rounded down; at least ``central_epsilon``, which needs no
        shuffling.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Examples
    --------
    >>> epsilon = local_epsilon(0.1, 1_000_000, 1e-6)
    >>> epsilon > 2, shuffled_epsilon(epsilon, 1_000_000, 1e-6) <= 0.1
    (True, True)

    """
    central, number = _read(central_epsilon, rows, "central_epsilon")
    wanted, binary = _read_delta(delta), _BINARY.read("binary", binary)
    if central >= _LARGEST:
        return central
    low, high = central, float(min(_LARGEST, central + math.log(number) + 1))
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        # What shuffled_epsilon returns is up to 1e-6 above the bound itself.
        if _delta(middle, number, central * (1 - 2e-6), binary) <= wanted:
            low = middle
        else:
            high = middle
        if high - low < 1e-6 * high:
            break
    return low


def _read(epsilon: object, rows: object, name: str = "epsilon") -> tuple[float, int]:
    """Return an epsilon rounded up, and the number of rows."""
    exactly = Fraction(budget_units(epsilon, "epsilon", name), UNITS_PER_ONE)
    nearest = float(exactly)
    rounded = nearest if Fraction(nearest) >= exactly or name != "epsilon" else math.nextafter(nearest, math.inf)
    return rounded, _ROWS.read("rows", rows)


def _read_delta(delta: object) -> float:
    units = budget_units(delta, "delta")
    if units == 0:
        raise ParameterError("delta", delta, "a number from 1e-18 to below 1", "write for example delta=1e-6")
    return math.nextafter(units / UNITS_PER_ONE, 0.0)
