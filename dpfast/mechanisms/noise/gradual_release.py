"""Gradual release: a noisy count is published coarse first, and finer later, for the price of the finer one alone."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.errors import ParameterError, Words
from dpfast.exact.balls import ball
from dpfast.mechanisms.noise.exact import decided, unique_floor
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.mechanisms.noise.lattice import LARGEST_ONES_EXPONENT
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail

__all__ = ["LARGEST_SCALE", "coarsened", "share_kept"]

LARGEST_SCALE = 2.0 ** (LARGEST_ONES_EXPONENT + 1)
"""Below this scale, integers get discrete Laplace noise: what follows is about that."""

_WORD_BITS = 64
_FIRST_BITS = 192


def share_kept(fine: float, coarse: float) -> tuple[arb, int]:
    """Return a ball around (sinh(1 / 2 coarse) / sinh(1 / 2 fine))**2, and its first 64 bits: see `coarsened`.

    Between different scales it is irrational (Lindemann and Weierstrass: powers of e with different rational exponents
    are linearly independent over the rationals), so a ball around it times any power of 2 holds one floor in the end.
    """

    def attempt(_: int) -> tuple[arb, int] | None:
        share = _share(fine, coarse)
        first = unique_floor(share * arb(2) ** _WORD_BITS)
        return None if first is None else (share, first)

    return decided(attempt, _FIRST_BITS)


def _share(fine: float, coarse: float) -> arb:
    """Return the ball at the working precision."""
    wide, narrow = (ball(1 / (2 * Fraction(scale))).sinh() for scale in (coarse, fine))
    share: arb = (wide / narrow) ** 2
    return share


@lru_cache(2**14)
def _first_bits(fine: float, coarse: float) -> int:
    return share_kept(fine, coarse)[1]


def _all_first_bits(
    fine: NDArray[np.float64], coarse: NDArray[np.float64], same: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Return the first bits of all probabilities, computed once for each pair of scales; 0 where they are the same."""
    place = np.unique(fine, return_inverse=True)[1]
    coarses, other = np.unique(coarse, return_inverse=True)
    pairs, first, pair = np.unique(place * coarses.size + other, return_index=True, return_inverse=True)
    bits = np.zeros(pairs.size, np.uint64)
    for number, row in enumerate(first.tolist()):
        if not same[row]:
            bits[number] = _first_bits(float(fine[row]), float(coarse[row]))
    return bits[pair]


def coarsened(
    released: NDArray[np.int64],
    fine: NDArray[np.float64],
    coarse: NDArray[np.float64],
    source: RandomSource,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """Widen the discrete Laplace noise on whole numbers from scales ``fine`` to scales ``coarse``.

    Guarantee
        Let X be a count with discrete Laplace noise of scale f, and Y what this makes of X. Y is the count with
        discrete Laplace noise of scale c, exactly: published alone, it costs sensitivity / c. And Y is made from X and
        fresh randomness alone: to publish Y and later X as well costs sensitivity / f for both, not the sum. That
        holds for every rule that decides, from Y and from other published things, whether X is published too: for
        every outcome the ratio of its probabilities under neighbours is that of Y, or that of X.

    Parameters
    ----------
    released
        int64: whole numbers with noise. Far enough from the ends of int64 that nothing was cut off.
    fine, coarse
        For each its scale now, and the scale that it shall have: at least that, and below 2**25.
    source, threads
        As for `dpfast.laplace`.

    Returns
    -------
    numpy.ndarray
        int64.

    Notes
    -----
    With probability p a number stays as it is, else it gets discrete Laplace noise of scale c on top. The generating
    function of the noise of scale b is 1 / (1 + s(z) / (4 sinh(1 / 2b)**2)) with s(z) = 2 - z - 1/z. The quotient of
    those of c and f is therefore p + (1 - p) times that of c, for p = (sinh(1 / 2c) / sinh(1 / 2f))**2: about
    (f / c)**2. Whether a number stays is decided by a uniform real number in [0, 1), from its first 64 bits, or from as
    many more as it takes.

    References
    ----------
    Koufogiannis, Han, Pappas (2016), "Gradual release of sensitive data under differential privacy", theorem 2, for
    continuous noise. Ligett, Neel, Roth, Waggoner, Wu (2017), for choosing the accuracy as one goes.

    """
    if not ((fine > 0.0) & (fine <= coarse) & (coarse < LARGEST_SCALE)).all():
        raise ParameterError("coarse", Words("a scale"), "at least as large as the fine one, and below 2**25")
    kept = fine == coarse
    firsts = _all_first_bits(fine, coarse, kept)
    keystream = Keystream(source.key())
    words = np.empty(released.size, np.uint64)
    keystream.words(Purpose.NOISE).fill(0, words)
    for row in np.flatnonzero((words == firsts) & ~kept).tolist():
        kept[row] = _stays(Tail(keystream, row, int(words[row]), _WORD_BITS), float(fine[row]), float(coarse[row]))
    kept |= words < firsts
    wider = np.flatnonzero(~kept)
    result = released.copy()
    if wider.size:
        result[wider] = laplace(released[wider], coarse[wider], random=source, threads=threads)
    return result


def _stays(bits: Tail, fine: float, coarse: float) -> bool:
    """Return whether a uniform real number, given by its bits, is below the probability."""

    def stays(count: int) -> bool | None:
        floor, leading = unique_floor(_share(fine, coarse) * arb(2) ** count), bits.leading(count)
        return None if floor is None or floor == leading else leading < floor

    return decided(stays, 2 * _WORD_BITS, _FIRST_BITS)
