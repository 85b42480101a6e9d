"""Independent oracles for the sparse vector technique: exact probabilities by quadrature, and comparisons by mpmath.

Nothing here is dpfast's. Noise is a pair of a density and a distribution function; every integrand is analytic
between its kinks, and Gauss-Legendre rules between them are exact to about 1e-13.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class Noise:
    """Laplace or one-sided exponential noise, or none at scale 0."""

    scale: float
    one_sided: bool = False

    def density(self, x):
        if self.one_sided:
            return np.where(x >= 0, np.exp(-np.maximum(x, 0) / self.scale), 0.0) / self.scale
        return np.exp(-np.abs(x) / self.scale) / (2 * self.scale)

    def below(self, x):
        """Return P(noise < x)."""
        if not self.scale:
            return (x > 0).astype(float)
        if self.one_sided:
            return -np.expm1(-np.maximum(x, 0) / self.scale)
        return np.where(
            x < 0, np.exp(np.minimum(x, 0) / self.scale) / 2, 1 - np.exp(-np.maximum(x, 0) / self.scale) / 2
        )

    def reaches(self, x):
        """Return P(noise >= x)."""
        if not self.scale or not self.one_sided:
            return self.below(-x) if self.scale else (x <= 0).astype(float)
        return np.exp(-np.maximum(x, 0) / self.scale)


@dataclass(frozen=True)
class Variant:
    """A sparse vector technique: its noise, and what it lets out.

    Attributes
    ----------
    threshold, query
        The noise of the threshold (scale 0: none) and of a value.
    restarts
        Whether the threshold's noise is fresh after every positive.
    published
        The value with noise that was compared, where it is released with a positive; else None.

    """

    threshold: Noise
    query: Noise
    restarts: bool = False

    def probability(self, values, answers, times=None, published=None):
        """Return the probability (or density) of answers to values, compared with a threshold of 0.

        ``times`` says how often each value is asked in a row; ``published`` gives the noisy value of each positive.
        """
        times = [1] * len(values) if times is None else times
        total, begin = 1.0, 0
        for end in range(1, len(values) + 1):
            if end == len(values) or (self.restarts and answers[end - 1]):
                own = slice(begin, end)
                noisy = None if published is None else published[own]
                total *= self._one_run(values[own], answers[own], times[own], noisy)
                begin = end
        return total

    def _one_run(self, values, answers, times, published):
        def of(z):
            value = np.ones_like(z)
            for i, (q, above, often) in enumerate(zip(values, answers, times, strict=True)):
                if above and published is not None:
                    value = value * self.query.density(np.float64(published[i] - q)) * (published[i] >= z)
                else:
                    value = value * (self.query.reaches(z - q) if above else self.query.below(z - q)) ** often
            return value

        if not self.threshold.scale:
            return float(of(np.zeros(1))[0])
        b = self.threshold.scale
        ends = (0.0 if self.threshold.one_sided else -60 * b, 60 * b)
        kinks = {
            0.0,
            *values,
            *(() if published is None else [v for v, a in zip(published, answers, strict=True) if a]),
        }
        points = sorted({*ends, *(kink for kink in kinks if ends[0] < kink < ends[1])})
        step = min(b, self.query.scale or b)
        total = 0.0
        for low, high in itertools.pairwise(points):
            edges = np.linspace(low, high, int(np.ceil((high - low) / step)) + 1)
            half = np.diff(edges)[:, None] / 2
            z = (edges[:-1, None] + half) + half * NODES
            total += float((half * WEIGHTS * self.threshold.density(z) * of(z)).sum())
        return total


def variant_of(noise, one_sided=True, restarts=False):
    """Return the technique with noise of these scales."""
    threshold, query = noise.scales
    return Variant(Noise(threshold, one_sided), Noise(query, one_sided), restarts)


def events(counts, variant, values):
    """Return how often each transcript happened and how probable it is, as noise/goodness.py takes them."""
    draws = sum(counts.values())
    return [
        (str(answers), happened, draws, variant.probability(values[: len(answers)], answers))
        for answers, happened in counts.items()
    ]


def transcripts(length, count):
    """Yield every possible tuple of answers: it ends early with the last of ``count`` positives."""
    for answers in itertools.product((False, True), repeat=length):
        positives = list(itertools.accumulate(answers))
        if positives[-1] < count or positives.index(count) == length - 1:
            yield answers
    for shorter in range(1, length):
        for answers in itertools.product((False, True), repeat=shorter):
            if answers[-1] and sum(answers) == count:
                yield answers


def loss(variant, one, other, answers, **more):
    """Return |ln of the ratio| of the probabilities of answers to the values of two neighbours."""
    with np.errstate(divide="ignore"):
        first, second = (np.log(variant.probability(values, answers, **more)) for values in (one, other))
    return abs(first - second)


def is_above(a: float, ratio: float, value, threshold, bits: int, threshold_bits: int, count: int) -> bool:
    """Return whether a * (value - threshold) - ln U >= -ratio * ln V, for U and V in the middle of their cells."""
    with mpmath.workprec(2 * count + 200):
        gap = Fraction(a) * (Fraction(value) - Fraction(threshold))
        u, v = ((mpmath.mpf(x) + 0.5) / mpmath.mpf(2) ** count for x in (bits, threshold_bits))
        return mpmath.mpf(gap.numerator) / gap.denominator - mpmath.log(u) >= -mpmath.mpf(ratio) * mpmath.log(v)
