"""Many draws of the exponential mechanism from one column of scores: an alias table of certified integers.

Candidate i owns f_i = floor(2**64 p_i (1 - 2**-44)) of the 2**64 words, computed in floats: at most 2**64 p_i, as the
errors are below 2**-44 in relative terms. What is left over, R = 2**64 - sum f_i words, belongs to the *residual*: a
draw that falls there takes candidate i with probability (2**64 p_i - f_i) / R, in ball arithmetic, from the bits that
continue its word. So candidate i is drawn with probability f_i / 2**64 + (2**64 p_i - f_i) / 2**64 = p_i, exactly. R is
about 2**20 words, and the residual drawn about once in 2**44 draws.

The bound, with the notation of `dpfast.mechanisms.selection.inversion` and t_i = 2**64 p_i. f_i = 0 is never too much,
so let the product that is rounded down be 1 or more. Neither of its two exponentials is below 2**-65 then, their
arguments add
up to x_i < 93, and the product is at most t_i (1 - 2**-44) (1 + e_i), where e_i counts

- (2.01 x_i + 5.2) u for the weight and its block's factor, and 3 u for a quotient and two products;
- (2.01 ln n + 6.3 + 1.01 levels) u for the sum of all.

So e_i < 2**-43 and t_i > 1/2; as W >= 1, t_i <= 2**64 exp(-x_i), which leaves x_i < 65 ln 2 < 46. With ln n <= 44 and
levels <= 64 e_i is therefore less than 261 u, and 2**-44 is 512 u: f_i <= t_i.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpfast.columns import BLOCK_ROWS
from dpfast.columns.fresh import fresh_array
from dpfast.kernels.selection.alias import build_table, draw_from_table, floor_masses
from dpfast.kernels.weights.exponential_weights import BLOCK
from dpfast.mechanisms.selection.candidates import Candidates
from dpfast.mechanisms.selection.exact_inversion import ExactSums
from dpfast.mechanisms.selection.inversion import Weights
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail
from dpfast.threads import share, thread_count

__all__ = ["AliasTable"]

#: What every candidate's mass is lowered by, in relative terms.
LOWERED = 2.0**-44


class AliasTable:
    """A column's candidates with the probabilities of the exponential mechanism, ready for many draws.

    Parameters
    ----------
    candidates, slope
        One column of scores, and what they are multiplied by.

    Attributes
    ----------
    table, bits
        The alias table of `dpfast.kernels.selection.alias`, and the logarithm of its length. Item ``size`` is the
        residual.
    residual
        The number of words that belong to no candidate.

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """

    __slots__ = ("_exact", "_lock", "_units", "_weights", "bits", "residual", "size", "table")

    def __init__(self, candidates: Candidates, slope: float) -> None:
        weights = Weights(candidates, slope)
        size = candidates.size
        self.size, self.bits = size, max(1, size.bit_length())
        slots = 1 << self.bits
        masses = np.zeros(slots, np.uint64)
        self._units = weights.factors * (2.0**64 * (1 - LOWERED) / weights.total)
        self._weights = weights
        self._floor(masses)
        # uint64 wraps at 2**64, of which less is owned.
        self.residual = -int(masses.sum(dtype=np.uint64)) % 2**64
        masses[size] = self.residual
        self.table = np.empty(slots, np.uint64)
        left = build_table(masses, self.bits, np.empty(slots, np.int64), self.table)
        assert left == 0, "integers that add up to 2**64 fill the slots exactly"
        self._exact: ExactSums | None = None
        self._lock = threading.Lock()

    def _floor(self, masses: NDArray[np.uint64]) -> None:
        weights, scratch = self._weights, np.empty(BLOCK)
        for start, scores, own in weights.chunks():
            floor_masses(scores, weights.slope, weights.references[own], self._units[own], scratch, masses[start:])

    def masses(self) -> NDArray[np.uint64]:
        """Return the number of words, out of 2**64, that belong to each candidate."""
        masses = np.empty(self.size, np.uint64)
        self._floor(masses)
        return masses

    def draw(self, draws: int, source: RandomSource, threads: object = None) -> NDArray[np.int64]:
        """Return the candidates of independent draws.

        Parameters
        ----------
        draws
            How many.
        source
            Where the call's key comes from.
        threads
            How many threads share the draws, or None. The result does not depend on it.

        """
        keystream = Keystream(source.key())
        drawn = fresh_array(draws, np.dtype(np.int64))

        def work(chunks: Iterator[int]) -> None:
            reader = keystream.words(Purpose.NOISE)
            buffer = np.empty(min(draws, BLOCK_ROWS), np.uint64)
            for chunk in chunks:
                start = chunk * BLOCK_ROWS
                own = drawn[start : start + BLOCK_ROWS]
                words = buffer[: own.size]
                reader.fill(chunk, words)
                if draw_from_table(words, self.table, self.bits, self.size, own):
                    for place in np.flatnonzero(own == self.size).tolist():
                        own[place] = self.draw_residual(keystream, start + place)

        share(work, -(-draws // BLOCK_ROWS), thread_count(threads, draws))
        return drawn

    def draw_residual(self, keystream: Keystream, word: int) -> int:
        """Return a candidate with probability proportional to 2**64 p_i - f_i, from the bits that continue a word."""
        with self._lock:
            if self._exact is None:
                weights = self._weights
                self._exact = ExactSums(weights.scores(), weights.slope, scale=2**64, taken=self.masses().tolist())
            return self._exact.place(Tail(keystream, word, 0, 0))
