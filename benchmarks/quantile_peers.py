"""Three published mechanisms for quantiles in plain NumPy, in floating point: what ours are compared with.

All are epsilon-differentially private where one row is added or removed. None handles equal values: the intervals
between them have no length, and are never chosen. Each draws many runs at once, from the same sorted values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PEERS", "approximate_quantiles", "joint_exponential", "smith"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

#: Intervals whose weight is below that of another by a factor of exp(-200), or more, are left out, lengths aside.
_NEGLIGIBLE = 200.0


def _near(rank: float, logarithms: Floats, slope: float) -> Places:
    """Return the intervals that may be chosen: those near the rank, or all, where only lengths of 0 are near."""
    reach = _NEGLIGIBLE / slope
    first, last = max(0, int(rank - reach)), min(logarithms.size, int(rank + reach) + 2)
    near = first + np.flatnonzero(np.isfinite(logarithms[first:last]))
    if near.size == 0 or np.abs(near - rank).min() > reach / 2:
        return np.flatnonzero(np.isfinite(logarithms))
    return near


def _choose(logarithms: Floats, runs: int, generator: np.random.Generator) -> Places:
    """Return so many places, drawn with probabilities of these logarithms."""
    sums = np.cumsum(np.exp(logarithms - logarithms.max()))
    return np.searchsorted(sums, generator.random(runs) * sums[-1], "right").astype(np.int64)


def _lengths(values: Floats, low: float, high: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.diff(np.concatenate([[low], values, [high]])))


def _one(
    values: Floats, lengths: Floats, q: float, bounds: tuple[float, float], slope: float, runs: int, generator
) -> Floats:
    """Draw a quantile of sorted values: an interval by the exponential mechanism, and a number in it.

    ``lengths`` are those of the intervals between values, and of one more on either side that may reach further.
    """
    rank = q * values.size
    near = _near(rank, lengths, slope)
    if near.size == 0:
        return np.full(runs, bounds[0])
    lows = np.where(near > 0, values[np.maximum(near - 1, 0)], bounds[0]) if values.size else np.array([bounds[0]])
    highs = (
        np.where(near < values.size, values[np.minimum(near, values.size - 1)], bounds[1])
        if values.size
        else np.array([bounds[1]])
    )
    with np.errstate(divide="ignore"):
        chosen = _choose(np.log(highs - lows) - slope * np.abs(near - rank), runs, generator)
    return generator.uniform(lows[chosen], highs[chosen])


def smith(
    values: Floats,
    quantiles: Floats,
    bounds: tuple[float, float],
    epsilon: float,
    runs: int,
    generator: np.random.Generator,
) -> Floats:
    """Return each quantile by itself, at an equal share of epsilon (Smith 2011, algorithm 2), one row for each run."""
    lengths = _lengths(values, *bounds)
    share = epsilon / quantiles.size
    return np.stack(
        [_one(values, lengths, q, bounds, share / (2 * max(q, 1 - q)), runs, generator) for q in quantiles], axis=1
    )


def approximate_quantiles(
    values: Floats,
    quantiles: Floats,
    bounds: tuple[float, float],
    epsilon: float,
    runs: int,
    generator: np.random.Generator,
) -> Floats:
    """Return quantiles by halves (Kaplan, Schnapp, Stemmer 2022, algorithm 1), one row for each run."""
    share = epsilon / (math.floor(math.log2(quantiles.size)) + 1)
    found = np.empty((runs, quantiles.size))
    inner = _lengths(values, *bounds)

    def descend(
        run: slice, first: int, last: int, start: int, stop: int, low: float, high: float, left: float, right: float
    ) -> None:
        if first == last:
            return
        middle = (first + last) // 2
        q = (quantiles[middle] - left) / (right - left)
        slope = share / (2 * max(q, 1 - q))
        own = values[start:stop]
        count = len(range(*run.indices(runs)))
        if low < high:
            drawn = _one(own, inner[start : stop + 1], q, (low, high), slope, count, generator)
        else:
            drawn = np.full(count, low)
        found[run, middle] = drawn
        for i, point in enumerate(drawn.tolist()):
            single = run if count == 1 else slice(i, i + 1)
            place = start + int(np.searchsorted(own, point))
            descend(single, first, middle, start, place, low, point, left, quantiles[middle])
            descend(single, middle + 1, last, place, stop, point, high, quantiles[middle], right)

    descend(slice(0, runs), 0, quantiles.size, 0, values.size, *bounds, 0.0, 1.0)
    return found


def joint_exponential(
    values: Floats,
    quantiles: Floats,
    bounds: tuple[float, float],
    epsilon: float,
    runs: int,
    generator: np.random.Generator,
) -> Floats:
    """Return all quantiles by one exponential mechanism (Gillenwater, Joseph, Kulesza 2021), one row for each run.

    ``ended[j][i]`` is the weight of all ways to place the quantiles up to j, the last of them in interval i and the
    next one further right; several in one interval fill it in any order, hence 1 / k!. It is the same for all runs.
    """
    n, m = values.size, quantiles.size
    lengths = _lengths(values, *bounds)
    gaps = np.diff(np.concatenate([[0.0], quantiles, [1.0]]))
    slope = epsilon / (4 * (1 - gaps.min()))
    windows = [_near(q * n, lengths, 2 * slope) for q in quantiles]
    # From j's interval to the next quantile's, in logarithms; the start is a quantile of rank 0 left of everything.
    ended: list[Floats] = []
    steps: list[Floats] = []
    options: list[Floats] = []
    for j in range(m):
        before = np.array([0]) if j == 0 else windows[j - 1]
        distance = windows[j][None, :] - before[:, None]
        steps.append(np.where(distance >= (j > 0), -slope * np.abs(distance - gaps[j] * n), -np.inf))
        entered = _entered(j, steps, ended, windows, gaps * n * slope)
        together = np.arange(1, len(entered) + 1)
        orders = np.array([math.lgamma(k + 1) for k in together.tolist()])
        ways = np.array(entered) + np.multiply.outer(together, lengths[windows[j]]) - orders[:, None]
        options.append(ways)
        ended.append(np.logaddexp.reduce(ways, axis=0))
    found = np.empty((runs, m))
    ends = np.concatenate([[bounds[0]], values, [bounds[1]]])
    for run in range(runs):
        j, following = m - 1, -slope * np.abs(n - windows[-1] - gaps[m] * n)
        while j >= 0:
            at = int(_choose(ended[j] + following, 1, generator)[0])
            interval = windows[j][at]
            k = int(_choose(options[j][:, at], 1, generator)[0])
            found[run, j - k : j + 1] = np.sort(generator.uniform(ends[interval], ends[interval + 1], k + 1))
            j -= k + 1
            if j >= 0:
                following = steps[j + 1][:, np.searchsorted(windows[j + 1], interval)]
    return found


def _entered(j: int, steps: list[Floats], ended: list[Floats], windows: list[Places], stays: Floats) -> list[Floats]:
    """Return, for k = 0, 1, ..., the weight of entering an interval with quantile j - k and staying up to j."""
    result = []
    stay = 0.0
    for k in range(j + 1):
        first = j - k
        both = np.full(windows[j].size, -np.inf)
        _, mine, theirs = np.intersect1d(windows[j], windows[first], return_indices=True)
        if first == 0:
            both[mine] = steps[0][0][theirs]
        elif mine.size:
            joint = ended[first - 1][:, None] + steps[first][:, theirs]
            top = joint.max(axis=0)
            safe = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                both[mine] = np.log(np.exp(joint - safe).sum(axis=0)) + safe
        result.append(both + stay)
        stay -= stays[first]
    return result


Peer = Callable[[Floats, Floats, tuple[float, float], float, int, np.random.Generator], Floats]

PEERS: dict[str, Peer] = {
    "Smith": smith,
    "ApproximateQuantiles": approximate_quantiles,
    "JointExp": joint_exponential,
}
