"""Independent oracles for the noise: mpmath, fractions and AES block by block. Nothing here is dpfast's.

The random bits of word j are known here as an integer of ``count`` leading bits, so that an oracle and a
sampler can be given the same infinite string.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

PRECISION = 400
READ_BITS = 256

#: Gives the first so many bits of an infinite string as an integer.
LeadingBits = Callable[[int], int]


class FixedKey:
    """A source of keys that always gives the same one: what tests of the same bits need and users must not have."""

    def __init__(self, key: bytes = bytes(range(32))) -> None:
        self._key = key

    def key(self) -> bytes:
        return self._key


class Tape:
    """A finite string of random bits; asking for more than it holds raises `TapeEndsError`."""

    def __init__(self, value: int, length: int, known: int | None = None) -> None:
        self.value = value
        self.length = length
        self.known = length if known is None else known

    def leading(self, count: int) -> int:
        if count > self.length:
            raise TapeEndsError
        return self.value >> (self.length - count)


class TapeEndsError(Exception):
    """The sample is not decided by the bits on the tape."""


def aes_blocks(key: bytes, counters: list[int]) -> bytes:
    """Return AES-256 of each counter as one block: counter mode spelled out."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(b"".join(counter.to_bytes(16, "big") for counter in counters))


def noise_bytes(key: bytes, chunk: int, count: int) -> bytes:
    """Return the first bytes of a chunk's noise words: blocks chunk * 2**32 + 0, 1, ... of purpose 0."""
    first = chunk << 32
    return aes_blocks(key, list(range(first, first + -(-count // 16))))[:count]


def continued(key: bytes, index: int, read: int, known: int) -> LeadingBits:
    """Return a word's infinite bits: the ``known`` ones in ``read``, then blocks 2**96 + index * 2**32 + 0, 1, ..."""
    first = (1 << 96) + (index << 32)
    blocks = aes_blocks(key, [first, first + 1, first + 2])
    value, length = (read << 384) | int.from_bytes(blocks, "big"), known + 384

    def leading(count: int) -> int:
        assert count <= length
        return value >> (length - count)

    return leading


def pair_of(row: int, rows: int) -> tuple[int, int, bool]:
    """Return the words of a row's radius and angle, and whether it has the sine. Blocks of 1,024 rows pair up."""
    first = row - row % 1024
    half = -(-min(1024, rows - first) // 2)
    place = row - first
    is_second = place >= half
    radius = row - half if is_second else row
    return radius, radius + half, is_second


def _mpf(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def discrete_constant(scale: Fraction) -> mpmath.mpf:
    """Return ln(2 / (1 + q)), q = exp(-1 / scale), under the working precision."""
    return mpmath.log(2) - mpmath.log(1 + mpmath.exp(-1 / _mpf(scale)))


def _floor_with_margin(v: mpmath.mpf, margin: mpmath.mpf, lowest: float = -mpmath.inf) -> int:
    low, high = max(lowest, mpmath.floor(v - margin)), mpmath.floor(v + margin)
    assert low == high, "the oracle reads too few bits for this sample"
    return int(low)


def laplace_sample(negative: bool, bits: LeadingBits, scale: Fraction, fraction: Fraction, discrete: bool) -> int:
    """Return the rounded Laplace sample of these bits: s floor(b (E + c)) or s floor(b E + s f + 1/2)."""
    with mpmath.workprec(PRECISION):
        u = bits(READ_BITS)
        assert u > 0
        exponential = -mpmath.log((mpmath.mpf(u) + 0.5) / mpmath.mpf(2) ** READ_BITS)
        margin = _mpf(scale) * 2 / u + mpmath.mpf(2) ** -200
        if discrete:
            v = _mpf(scale) * (exponential + discrete_constant(scale))
        else:
            v = _mpf(scale) * exponential + _mpf(-fraction if negative else fraction) + 0.5
        # E > 0 and |f| <= 1/2, so that v > 0.
        magnitude = _floor_with_margin(v, margin, 0)
    return -magnitude if negative else magnitude


def gaussian_value(
    radius: LeadingBits, angle: LeadingBits, sine: bool, scale: Fraction, fraction: Fraction
) -> mpmath.mpf:
    """Return scale * sqrt(-2 ln U) * cos(2 pi V) + fraction (sin for cos) from 256 bits of U and V."""
    u, v = bits_midpoint(radius), bits_midpoint(angle)
    direction = mpmath.sinpi(2 * v) if sine else mpmath.cospi(2 * v)
    return _mpf(scale) * mpmath.sqrt(-2 * mpmath.log(u)) * direction + _mpf(fraction)


def bits_midpoint(bits: LeadingBits, count: int = READ_BITS) -> mpmath.mpf:
    return (mpmath.mpf(bits(count)) + 0.5) / mpmath.mpf(2) ** count


def gaussian_sample(radius: LeadingBits, angle: LeadingBits, sine: bool, scale: Fraction, fraction: Fraction) -> int:
    """Return the rounded Gaussian sample of these bits."""
    with mpmath.workprec(PRECISION):
        v = gaussian_value(radius, angle, sine, scale, fraction)
        return _floor_with_margin(v + 0.5, _mpf(scale) * mpmath.mpf(2) ** -100)


def discrete_thresholds(scale: float, bits: int) -> np.ndarray:
    """Return floor(2**bits * P(|K| >= k)) for k = 1, 2, ... down to the last one above 0 (uint64).

    |K| = floor(b (E + c)) >= k if and only if U <= exp(c - k / b) = P(|K| >= k). So a word r, which means U in
    [r, r + 1) * 2**-bits, is certain unless r equals a threshold, and then |K| is the number of thresholds above r.
    """
    return _thresholds(scale, bits, lambda b, k: discrete_constant(Fraction(scale)) - k / b)


def continuous_thresholds(scale: float, signed_fraction: float, bits: int) -> np.ndarray:
    """Return floor(2**bits * P(round(b E + f) >= k)) for k = 1, 2, ... down to the last one above 0 (uint64)."""
    f = Fraction(signed_fraction)
    return _thresholds(scale, bits, lambda b, k: -(k - mpmath.mpf(0.5) - _mpf(f)) / b)


def _thresholds(scale: float, bits: int, logarithm: Callable[[mpmath.mpf, int], mpmath.mpf]) -> np.ndarray:
    thresholds = []
    with mpmath.workprec(200):
        b = mpmath.mpf(scale)
        first, ratio = mpmath.exp(logarithm(b, 1)) * mpmath.mpf(2) ** bits, mpmath.exp(-1 / b)
        while first >= 1:
            assert len(thresholds) < 2**20, "the product's relative error grows by 2**-199 a step"
            # A threshold of 2**bits, for a fraction of 1/2, is the one that can be an integer.
            distance = abs(first - mpmath.nint(first))
            assert first == 2**bits or distance > mpmath.mpf(2) ** -100, "a threshold too close to an integer"
            thresholds.append(int(mpmath.floor(first)))
            first *= ratio
    return np.array(thresholds, np.uint64)


def discrete_threshold(scale: Fraction | float, bits: int, k: int) -> int:
    """Return one of `discrete_thresholds`, k >= 1."""
    scale = Fraction(scale)
    with mpmath.workprec(bits + 200):
        exact = mpmath.exp(discrete_constant(scale) - k / _mpf(scale)) * mpmath.mpf(2) ** bits
        return int(mpmath.floor(exact))


def magnitudes(words: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return |K| of each word and whether the word alone decides it; see `discrete_thresholds`."""
    ascending = thresholds[::-1].astype(np.uint64)
    words = words.astype(np.uint64)
    above = len(ascending) - np.searchsorted(ascending, words, side="right")
    straddles = np.searchsorted(ascending, words, side="left") != np.searchsorted(ascending, words, side="right")
    return above, ~straddles & (words > 0)


def discrete_laplace_tail(scale: float, k: int) -> float:
    """Return P(K >= k) of discrete Laplace noise, k >= 1."""
    with mpmath.workprec(200):
        q = mpmath.exp(-1 / mpmath.mpf(scale))
        return float(q**k / (1 + q))


def laplace_tail(x: float) -> float:
    """Return P(Laplace(1) >= x)."""
    with mpmath.workprec(100):
        return float(mpmath.exp(-x) / 2 if x >= 0 else 1 - mpmath.exp(x) / 2)


def normal_tail(x: float) -> float:
    """Return P(Z >= x), Z standard normal."""
    with mpmath.workprec(100):
        return float(mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
