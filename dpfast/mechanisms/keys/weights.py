"""Keys selected by weights: each unit shares one unit of norm among the keys that it holds.

A unit that holds j keys adds 1 / sqrt(j) to each of them where the noise is Gaussian, and 1 / j where it is Laplace:
whatever it holds, and whatever the others hold, the sums move by a vector of Euclidean norm, or of L1 norm, 1. A
unit of few keys so counts for more than one of many, and the noise does not grow with the most keys that a unit may
hold. (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020: weighted Gaussian and weighted Laplace.)

The weights are whole steps of 2**-24, rounded down, so that the norm is at most 1 in integers, and their sums exact.
Exchanged units move the sums by a - b, both of no negative entry and norm at most 1: by sqrt(2) in Euclidean norm,
by 2 in L1 norm.

In several rounds (Swanberg, Desfontaines, Haney 2023: DP-SIPS) the keys that a round shows are taken from every unit
before the next one, so that the weights go to those not yet shown. What was shown is the output of the rounds
before; given it, a round is the same mechanism on the keys that are left, and rounds compose adaptively: their
Gaussian noises as (sum of 1 / sigma**2) ** -0.5 (Dong, Roth, Su 2022, corollary 2), their deltas as a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.holdings import Holdings
from dpfast.mechanisms.keys.thresholds import Lonely
from dpfast.mechanisms.noise.integer_noise import NoiseKind

__all__ = ["STEPS", "lonely_keys", "select_by_weights", "unit_weights", "weight_of"]

#: One unit of norm, in steps.
STEPS = 1 << 24

#: Up to so many lonely keys are looked at number by number, more of them in ranges that grow by half.
_EACH = 16


def unit_weights(mechanism: NoiseKind, most: int) -> NDArray[np.int64]:
    """Return what a unit of j keys adds to each, in steps, for j from 0 to ``most``.

    Guarantee
        j * weight[j] ** 2 <= STEPS ** 2 for Gaussian noise, j * weight[j] <= STEPS for Laplace noise.

    Examples
    --------
    >>> (unit_weights("gaussian", 4) / STEPS).round(4).tolist(), (unit_weights("laplace", 4) / STEPS).round(4).tolist()
    ([0.0, 1.0, 0.7071, 0.5774, 0.5], [0.0, 1.0, 0.5, 0.3333, 0.25])

    """
    keys = np.arange(1, most + 1, dtype=np.int64)
    if mechanism == "laplace":
        each = STEPS // keys
    else:
        # Whole numbers below 2**49 have roots that float64 rounds by less than what parts them from whole numbers.
        each = np.floor(np.sqrt((STEPS * STEPS // keys).astype(np.float64))).astype(np.int64)
    return np.append(np.int64(0), each)


def lonely_keys(mechanism: NoiseKind, most: int) -> list[Lonely]:
    """Return what a unit may hold alone: j keys for every j up to ``most``, each of the weight that j keys have.

    A unit that holds further keys, which others hold too, gives less to each. From 17 keys on a range of numbers is
    one entry: its largest number of keys at the weight of its smallest.
    """
    cases = [Lonely(keys, weight_of(mechanism, keys)) for keys in range(1, min(most, _EACH) + 1)]
    first = _EACH + 1
    while first <= most:
        last = min(first + first // 2, most)
        cases.append(Lonely(last, weight_of(mechanism, first)))
        first = last + 1
    return cases


def weight_of(mechanism: NoiseKind, keys: int) -> int:
    """Return what a unit of so many keys adds to each, in steps: an entry of `unit_weights`."""
    return STEPS // keys if mechanism == "laplace" else math.isqrt(STEPS * STEPS // keys)


def select_by_weights(
    holdings: Iterable[Holdings],
    keys: int,
    mechanism: NoiseKind,
    passes: Sequence[Callable[[NDArray[np.int64]], NDArray[np.bool_]]],
) -> NDArray[np.bool_]:
    """Return which keys are shown, round by round.

    Parameters
    ----------
    holdings
        What units hold, in parts of different units: groups are numbers of keys. It is gone through before the first
        round and in each, so that it may read its parts anew each time.
    keys
        How many keys there are; each must be held by some unit, or count as never shown.
    mechanism
        Which norm of a unit's weights is 1.
    passes
        For every round, what adds its noise to the sums and compares them with its threshold; each is called once,
        with all sums, those of keys shown before among them.

    """
    from dpfast.kernels.grouping.weighing import weigh_groups  # not at the top: plans do without numba

    shown = np.zeros(keys, np.uint8)
    longest = max((int(np.diff(part.stops, prepend=0).max(initial=0)) for part in holdings), default=0)
    weights = unit_weights(mechanism, longest)
    for round_passes in passes:
        sums = np.zeros(keys, np.int64)
        for part in holdings:
            weigh_groups(part.stops, part.groups, shown, weights, sums)
        # Every unit that holds such a key adds something to it, unless its weight rounds to 0.
        shown |= (round_passes(sums) & (sums > 0)).astype(np.uint8)
    return shown.view(np.bool_)
