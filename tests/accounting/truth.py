"""The true privacy profile of small compositions, by adding up all outcomes in 60 digits."""

from __future__ import annotations

from collections.abc import Iterable

import mpmath as mp

DIGITS = 60


def response(epsilon: float, delta: float = 0.0, categories: int = 2) -> list[tuple]:
    """Return the pair (P, Q) that dominates what is (epsilon, delta)-private, outcome by outcome."""
    with mp.workdps(DIGITS):
        e, d = mp.exp(mp.mpf(repr(epsilon))), mp.mpf(repr(delta))
        total = e + categories - 1
        outcomes = [((1 - d) * e / total, (1 - d) / total), ((1 - d) / total, (1 - d) * e / total)]
        if categories > 2:
            outcomes.append(((categories - 2) / total, (categories - 2) / total))
        return outcomes if not delta else [*outcomes, (d, mp.mpf(0)), (mp.mpf(0), d)]


def composed(pairs: Iterable[list[tuple]]) -> list[tuple]:
    """Return the pair of several pairs' products."""
    with mp.workdps(DIGITS):
        outcomes = [(mp.mpf(1), mp.mpf(1))]
        for pair in pairs:
            outcomes = [(p * x, q * y) for p, q in outcomes for x, y in pair]
        return outcomes


def profile(outcomes: list[tuple], epsilon: float) -> mp.mpf:
    """Return the larger delta of both directions at an epsilon."""
    with mp.workdps(DIGITS):
        factor = mp.exp(mp.mpf(epsilon))
        forth = mp.fsum(max(p - factor * q, 0) for p, q in outcomes)
        back = mp.fsum(max(q - factor * p, 0) for p, q in outcomes)
        return max(forth, back)


def responses_profile(count: int, each: float, epsilon: float) -> mp.mpf:
    """Return delta of ``count`` equal randomized responses by the binomial sum."""
    with mp.workdps(DIGITS):
        e, target = mp.mpf(repr(each)), mp.mpf(epsilon)
        p = 1 / (1 + mp.exp(-e))
        return mp.fsum(
            mp.binomial(count, n) * p**n * (1 - p) ** (count - n) * (1 - mp.exp(target - (2 * n - count) * e))
            for n in range(count + 1)
            if (2 * n - count) * e > target
        )


def renyi(density_p, density_q, order: float, points: list) -> mp.mpf:
    """Return the divergence of two densities by quadrature."""
    moment = mp.quad(lambda x: density_p(x) ** order * density_q(x) ** (1 - order), points)
    return mp.log(moment) / (order - 1)
