"""Independent oracles for selection: keys and probabilities by mpmath, and keystreams that a test writes itself."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np

from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL, LAPLACE
from dpfast.mechanisms.selection import argmax as selection

KINDS = {"gumbel": GUMBEL, "exponential": EXPONENTIAL, "laplace": LAPLACE}
PRECISION = 1200
REST = 0x7FFFFFFF

#: Book, exponential-mechanism chapter: marital status of 32,561 people, in thousands.
MARITAL = np.array([14976, 10683, 4443, 1025, 993, 418, 23]) / 1000


def noise_of(kind: int, bits: int, count: int, negative: bool) -> mpmath.mpf:
    """Return the noise at the middle of the cell of these leading bits, under the working precision."""
    u = (mpmath.mpf(bits) + 0.5) / mpmath.mpf(2) ** count
    if kind == GUMBEL:
        return -mpmath.log(-mpmath.log1p(-u))
    return mpmath.log(u) if kind == LAPLACE and negative else -mpmath.log(u)


def winner_of(kind: int, a, scores, words, extensions) -> int:
    """Return the argmax of a * score + noise, each word continued by an integer of 1024 bits."""
    with mpmath.workprec(PRECISION):
        keys = []
        for score, word, extension in zip(scores, words, extensions, strict=True):
            exact = Fraction(float(a)) * Fraction(score)
            noise = noise_of(kind, ((word & REST) << 1024) | extension, 31 + 1024, word > REST)
            keys.append(mpmath.mpf(exact.numerator) / exact.denominator + noise)
        return max(range(len(keys)), key=keys.__getitem__)


class ChosenKeystream:
    """Stands in for `Keystream`: words by their index, each continued by 1024 bits as the test says."""

    def __init__(self, words, extensions=None) -> None:
        self.chosen = np.asarray(words, np.uint32)
        self.extensions = extensions or {}
        self.read = []

    def __call__(self, key):
        return self

    def words(self, purpose):
        return self

    def fill(self, chunk, buffer):
        start = chunk * selection.CHUNK
        buffer[:] = self.chosen[start : start + buffer.size]

    def extension(self, indices, depth):
        blocks = []
        for index in map(int, indices):
            self.read.append((index, depth))
            whole = self.extensions.get(index, index * 0x9E3779B97F4A7C15F39CC0605CEDC834 + 1) % 2**1024
            blocks.append(((whole >> (1024 - 128 * (depth + 1))) % 2**128).to_bytes(16, "big"))
        return b"".join(blocks)


def exact_noisy_max(scores, a: float) -> list[float]:
    """Return the probabilities of the argmax of a * score + Laplace(1), by numerical integration."""
    with mpmath.workprec(100):
        centres = [mpmath.mpf(float(score)) * a for score in scores]

        def below(x):
            return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

        def density(i, x):
            value = mpmath.exp(-abs(x - centres[i])) / 2
            for k, centre in enumerate(centres):
                if k != i:
                    value *= below(x - centre)
            return value

        points = [min(centres) - 60, *sorted(set(centres)), max(centres) + 60]
        return [float(mpmath.quad(lambda x, i=i: density(i, x), points)) for i in range(len(centres))]


def noisy_max_of_two(gap: float) -> float:
    """Return the probability that the lower of two candidates wins with Laplace(1) noise."""
    return math.exp(-gap) * (0.5 + gap / 4)
