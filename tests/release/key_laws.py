"""What a selection of keys releases, as exact laws of small cases: SciPy and plain loops. Nothing here is dpfast's."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from scipy.special import log_ndtr, ndtr

#: One unit of weight in steps, as the documentation says.
STEPS = 2**24


def chance_at_least(mechanism, scale, gap):
    """Return P(noise >= gap) of noise on whole numbers, ``gap`` one of them."""
    if mechanism == "gaussian":
        return ndtr(-(gap - 0.5) / scale)
    q = math.exp(-1 / scale)
    return q**gap / (1 + q) if gap > 0 else 1 - q ** (1 - gap) / (1 + q)


def law_of_count(mechanism, scale, threshold, count, reach):
    """Return the probabilities of not shown, then of threshold, threshold + 1, ... and of ``reach`` or more."""
    if count == 0:
        return np.array([1.0] + [0.0] * (reach - threshold + 1))
    tails = np.array([chance_at_least(mechanism, scale, v - count) for v in range(threshold, reach + 1)])
    below = chance_at_least(mechanism, scale, count - threshold + 1)
    return np.array([below, *(tails[:-1] - tails[1:]), tails[-1]])


def together(laws):
    """Return the joint law of independent outputs, flattened."""
    joint = np.ones(1)
    for law in laws:
        joint = np.multiply.outer(joint, law).ravel()
    return joint


def divergence(p, q, epsilon):
    """Return the least delta for which p and q are (epsilon, delta)-indistinguishable, in both directions."""
    growth = math.exp(epsilon)
    return max(np.maximum(p - growth * q, 0).sum(), np.maximum(q - growth * p, 0).sum())


def gaussian_profile(scale, sensitivity, epsilon):
    """Return the Gaussian mechanism's delta at epsilon: Balle and Wang (2018), theorem 8."""
    a = sensitivity / scale
    return ndtr(a / 2 - epsilon / a) - math.exp(epsilon + log_ndtr(-a / 2 - epsilon / a))


def weight(mechanism, keys):
    """Return what a unit of so many keys gives to each, in steps."""
    return STEPS // keys if mechanism == "laplace" else math.isqrt(STEPS**2 // keys)


def chance_of_sum(mechanism, scale, threshold, total):
    """Return the chance that a sum of weights passes; the noise is so wide that a step is nothing beside it."""
    if mechanism == "gaussian":
        return float(ndtr((total - threshold) / scale))
    far = (threshold - total) / scale
    return math.exp(-far) / 2 if far > 0 else 1 - math.exp(far) / 2


def law_of_shown(holders, keys, rounds):
    """Return the law of the set of keys shown, as 2**keys probabilities, over all rounds of a selection by weights.

    Parameters
    ----------
    holders
        A list of (set of keys, number of units that hold just these).
    keys
        How many keys there are.
    rounds
        (mechanism, scale, threshold) for each.

    """
    law = {frozenset(): 1.0}
    for mechanism, scale, threshold in rounds:
        after = {}
        for shown, chance in law.items():
            sums = [0] * keys
            for held, units in holders:
                left = [key for key in held if key not in shown]
                for key in left:
                    sums[key] += units * weight(mechanism, len(left))
            passing = [0.0 if total == 0 else chance_of_sum(mechanism, scale, threshold, total) for total in sums]
            for outcome in product((False, True), repeat=keys):
                now = shown | {key for key in range(keys) if outcome[key]}
                p = math.prod(passing[key] if outcome[key] else 1 - passing[key] for key in range(keys))
                after[now] = after.get(now, 0.0) + chance * p
        law = after
    places = [frozenset(some) for size in range(keys + 1) for some in combinations(range(keys), size)]
    return np.array([law.get(place, 0.0) for place in places])


def sums_of_policy(holders, keys, cutoff):
    """Return the sums in steps, units of many keys first: each adds what lacks to the cutoff, shortened to norm 1."""
    sums = [0.0] * keys
    for held, units in sorted(holders, key=lambda some: (-len(some[0]), some[0])):
        for _ in range(units):
            lack = [cutoff - sums[key] for key in held]
            share = min(1.0, STEPS / max(math.hypot(*lack), 1e-9))
            for key, gap in zip(held, lack, strict=True):
                sums[key] += gap * share
    return sums


def law_of_policy(holders, keys, scale, threshold, cutoff):
    """Return the law of the set of keys shown by a policy, as 2**keys probabilities."""
    sums = sums_of_policy(holders, keys, cutoff)
    found = {key for held, _ in holders for key in held}
    passing = [chance_of_sum("gaussian", scale, threshold, sums[key]) if key in found else 0.0 for key in range(keys)]
    return together([np.array([1 - p, p]) for p in passing])


def small_populations(keys, copies, kinds):
    """Return lists of (set of keys, number of units): up to ``kinds`` different sets, each held by so many units."""
    subsets = [some for size in range(1, keys + 1) for some in combinations(range(keys), size)]
    populations = [[]]
    for number in range(1, kinds + 1):
        for chosen in combinations_with_replacement(subsets, number):
            populations.extend(list(zip(chosen, units, strict=True)) for units in product(copies, repeat=number))
    return populations, subsets
