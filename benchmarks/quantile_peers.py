"""Three published mechanisms for quantiles in plain NumPy, in floating point: what ours are compared with.

All are epsilon-differentially private where one row is added or removed. None handles equal values: the intervals
between them have no length, and are never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PEERS", "approximate_quantiles", "joint_exponential", "smith"]

Floats = NDArray[np.float64]

#: Ranks further from a quantile than so many times 1 / epsilon are left out by `joint_exponential`.
_REACH = 400


def _pick(logarithms: Floats, generator: np.random.Generator) -> int:
    return int(np.argmax(logarithms + generator.gumbel(size=logarithms.size)))


def _one(values: Floats, q: float, low: float, high: float, epsilon: float, generator: np.random.Generator) -> float:
    """Draw a quantile of sorted values: an interval by the exponential mechanism, and a number in it."""
    ends = np.concatenate([[low], values, [high]])
    scores = -np.abs(np.arange(values.size + 1) - q * values.size)
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.diff(ends)) + epsilon * scores / (2 * max(q, 1 - q))
    place = _pick(logarithms, generator)
    return float(generator.uniform(ends[place], ends[place + 1]))


def smith(
    values: Floats, quantiles: Floats, bounds: tuple[float, float], epsilon: float, generator: np.random.Generator
) -> Floats:
    """Return each quantile by itself, at an equal share of epsilon (Smith 2011, algorithm 2)."""
    share = epsilon / quantiles.size
    return np.array([_one(values, q, *bounds, share, generator) for q in quantiles])


def approximate_quantiles(
    values: Floats, quantiles: Floats, bounds: tuple[float, float], epsilon: float, generator: np.random.Generator
) -> Floats:
    """Return quantiles by halves (Kaplan, Schnapp, Stemmer 2022, algorithm 1)."""
    share = epsilon / (math.floor(math.log2(quantiles.size)) + 1)
    found = np.empty(quantiles.size)

    def descend(first: int, last: int, own: Floats, low: float, high: float, left: float, right: float) -> None:
        if first == last:
            return
        middle = (first + last) // 2
        q = (quantiles[middle] - left) / (right - left)
        drawn = _one(own, q, low, high, share, generator) if low < high else low
        found[middle] = drawn
        place = np.searchsorted(own, drawn)
        descend(first, middle, own[:place], low, drawn, left, quantiles[middle])
        descend(middle + 1, last, own[place:], drawn, high, quantiles[middle], right)

    descend(0, quantiles.size, values, *bounds, 0.0, 1.0)
    return found


def joint_exponential(
    values: Floats, quantiles: Floats, bounds: tuple[float, float], epsilon: float, generator: np.random.Generator
) -> Floats:
    """Return all quantiles by one exponential mechanism (Gillenwater, Joseph, Kulesza 2021), ranks near them only.

    ``ended[j][i]`` is the weight of all ways to place the quantiles up to j, the last of them in interval i and the
    next one further right; several in one interval fill it in any order, hence 1 / k!.
    """
    n, m = values.size, quantiles.size
    with np.errstate(divide="ignore"):
        lengths = np.log(np.diff(np.concatenate([[bounds[0]], values, [bounds[1]]])))
    gaps = np.diff(np.concatenate([[0.0], quantiles, [1.0]]))
    slope = epsilon / (4 * (1 - gaps.min()))
    windows = [
        np.arange(max(0, int(q * n - _REACH / epsilon)), min(n, int(q * n + _REACH / epsilon)) + 1) for q in quantiles
    ]
    # From j's interval to the next quantile's, in logarithms; the start is a quantile of rank 0 left of everything.
    ended: list[Floats] = []
    steps: list[Floats] = []
    for j in range(m):
        before = np.array([0]) if j == 0 else windows[j - 1]
        distance = windows[j][None, :] - before[:, None]
        step = np.where(distance >= (j > 0), -slope * np.abs(distance - gaps[j] * n), -np.inf)
        steps.append(step)
        total = np.full(windows[j].size, -np.inf)
        for k, entered in enumerate(_entered(j, steps, ended, windows, gaps * n * slope)):
            with np.errstate(invalid="ignore"):
                ways = entered + (k + 1) * lengths[windows[j]] - math.lgamma(k + 2)
            total = np.logaddexp(total, np.where(np.isfinite(ways), ways, -np.inf))
        ended.append(total)
    found = np.empty(m)
    j, following = m - 1, -slope * np.abs(n - windows[-1] - gaps[m] * n)
    while j >= 0:
        at = _pick(ended[j] + following, generator)
        interval = windows[j][at]
        options = [entered[at] for entered in _entered(j, steps, ended, windows, gaps * n * slope)]
        ways = np.array(
            [entered + (k + 1) * lengths[interval] - math.lgamma(k + 2) for k, entered in enumerate(options)]
        )
        k = _pick(np.where(np.isnan(ways), -np.inf, ways), generator)
        low = bounds[0] if interval == 0 else values[interval - 1]
        high = bounds[1] if interval == n else values[interval]
        found[j - k : j + 1] = np.sort(generator.uniform(low, high, k + 1))
        j -= k + 1
        if j >= 0:
            here = np.flatnonzero(windows[j + 1] == interval)
            following = steps[j + 1][:, here[0]]
    return found


def _entered(
    j: int, steps: list[Floats], ended: list[Floats], windows: list[NDArray[np.int64]], stays: Floats
) -> list[Floats]:
    """Return, for k = 0, 1, ..., the weight of entering an interval with quantile j - k and staying up to j."""
    result = []
    stay = 0.0
    for k in range(min(j + 1, 12)):
        first = j - k
        if first == 0:
            inward = steps[0][0]
        else:
            joint = ended[first - 1][:, None] + steps[first]
            top = joint.max(axis=0)
            safe = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                inward = np.log(np.exp(joint - safe).sum(axis=0)) + safe
        both = np.full(windows[j].size, -np.inf)
        _, mine, theirs = np.intersect1d(windows[j], windows[first], return_indices=True)
        both[mine] = inward[theirs]
        result.append(both + stay)
        stay -= stays[first]
    return result


Peer = Callable[[Floats, Floats, tuple[float, float], float, np.random.Generator], Floats]

PEERS: dict[str, Peer] = {
    "Smith": smith,
    "ApproximateQuantiles": approximate_quantiles,
    "JointExp": joint_exponential,
}
