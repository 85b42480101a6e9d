"""The exponential mechanism by inverting its distribution function: one random word a draw.

The line [0, 1) is cut into parts as long as the candidates' probabilities, in their order; a draw is the candidate in
whose part U lies. Sums are taken block by block (`dpfast.kernels.weights.exponential_weights`); a draw looks for its
block, and weighs that block again. The ends of parts are known up to a proven bound; a draw that lies nearer than that
to one of them is decided in ball arithmetic, with more bits of the same U.

The bound, with u = 2**-53, n candidates, w_i = exp(-x_i), x_i = a * (best score - score_i), W the sum of all w_i >= 1:

- A candidate's weight is computed as the product of its own relative to its block's reference and of that one's
  relative to the best score: a relative error of at most (2.01 x_i + 6.3) u, the x of the two adding up to x_i (and
  weights below 2**-1021 where it says nothing).
- The mean of x_i under p_i = w_i / W is the entropy of p less ln W, so at most ln n. Hence for *every* set of
  candidates the computed weights are off by at most (2.01 ln n + 6.3) u W altogether, whatever the scores.
- A block's sum adds 11 levels of additions of 1.01 u, the sum of all blocks ceil(log2 blocks) levels.
- Dividing by the sum of all doubles the first two. Quotient and product round once each, and every block's sum is
  rounded down to an integer, in units of 2**-62; these integers are added exactly.

That is `doubt` below. With 10**7 candidates it is 128 u, and one of 10**7 ends lies nearer than that to U with
probability 2**-21.7 at most; with 10**6 candidates 2**-25.3. Sums within the block, taken in order, add 2**-30.
Such a draw needs the exponentials of all candidates in ball arithmetic, one for equal scores, a microsecond each: at
worst ten seconds with 10**7 candidates, on average less than 4 microseconds a draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.kernels.selection.differences import best_score
from dpfast.kernels.weights.exponential_weights import BLOCK, locate, sum_halves, weigh, weigh_blocks
from dpfast.mechanisms.selection.candidates import Candidates
from dpfast.mechanisms.selection.exact_inversion import ExactSums
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail

__all__ = ["Weights", "draw_from_sums"]

#: Candidates whose scores are read at a time: whole blocks of them.
CHUNK = 256 * BLOCK

_U = 2.0**-53
_ONE_IN_UNITS = 2.0**62


class Weights:
    """The weights of candidates, summed block by block.

    Parameters
    ----------
    candidates
        One column of scores.
    slope
        What scores are multiplied by.

    Attributes
    ----------
    references, factors
        Each block's best score, and its weight relative to the best of all.
    total
        The sum of all weights, up to `relative_doubt` of it.

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """

    __slots__ = ("_sums", "candidates", "factors", "references", "size", "slope", "total")

    def __init__(self, candidates: Candidates, slope: float) -> None:
        self.candidates, self.slope, self.size = candidates, slope, candidates.size
        blocks = -(-self.size // BLOCK)
        is_float = candidates.block(0, 1).dtype.kind == "f"
        self.references = np.empty(blocks, np.float64 if is_float else np.int64)
        sums, weights = np.empty(blocks), np.empty(BLOCK)
        for start, scores, own in self.chunks():
            if weigh_blocks(scores, slope, weights, self.references[own], sums[own]):
                raise candidates.refuse_not_finite(start, scores)
        self.factors = np.empty(blocks)
        weigh(self.references, best_score(self.references), slope, self.factors)
        self._sums = sums * self.factors
        self.total = float(sum_halves(self._sums.copy()))

    def chunks(self) -> Iterator[tuple[int, NDArray[Any], slice]]:
        """Yield stretches of whole blocks: the first candidate, the scores, and which blocks they are."""
        for start in range(0, self.size, CHUNK):
            stop = min(start + CHUNK, self.size)
            yield start, self.candidates.block(start, stop), slice(start // BLOCK, (stop - 1) // BLOCK + 1)

    @property
    def relative_doubt(self) -> float:
        """How far the sum of any of the blocks may be from exact, in terms of the sum of all."""
        levels = math.ceil(math.log2(BLOCK)) + math.ceil(math.log2(self._sums.size))
        return 1.001 * _U * (2.01 * math.log(self.size) + 6.3 + 1.01 * levels)

    @property
    def doubt(self) -> int:
        """How far an end of a block may be from where `ends` says, in units of 2**-62."""
        return math.ceil(_ONE_IN_UNITS * (2.001 * self.relative_doubt + 2.1 * _U)) + self._sums.size + 2

    def ends(self) -> NDArray[np.int64]:
        """Return where the blocks' parts begin and the last one ends, in units of 2**-62."""
        ends = np.zeros(self._sums.size + 1, np.int64)
        np.cumsum((self._sums * (_ONE_IN_UNITS / self.total)).astype(np.int64), out=ends[1:])
        return ends

    def scores(self) -> NDArray[Any]:
        """Return all scores."""
        return self.candidates.block(0, self.size)


def draw_from_sums(
    candidates: Candidates, slope: float, draws: int, source: RandomSource, *, refine_all: bool = False
) -> NDArray[np.int64]:
    """Return the candidates of independent draws, by inverting the distribution function.

    Parameters
    ----------
    candidates, slope
        One column of scores, and what they are multiplied by.
    draws
        How many; word i of the keystream belongs to draw i.
    source
        Where the call's key comes from.
    refine_all
        Decide every draw in ball arithmetic: the slow, exact path, which must agree with the fast one.

    Raises
    ------
    DataError
        A score is NaN or infinite.

    """
    weights = Weights(candidates, slope)
    keystream = Keystream(source.key())
    words = np.empty(draws, np.uint64)
    keystream.words(Purpose.NOISE).fill(0, words)
    # A target of 62 bits, the last two of the word being left out, is low by less than a unit.
    targets = (words >> np.uint64(2)).astype(np.int64)
    ends, doubt = weights.ends(), weights.doubt
    lowest = np.searchsorted(ends[1:-1], targets - doubt, side="right")
    highest_block = np.searchsorted(ends[1:-1], targets + doubt, side="right")
    unit = weights.factors * (_ONE_IN_UNITS / weights.total)
    scratch = np.empty(BLOCK)
    drawn = np.empty(draws, np.int64)
    everything = ExactSums(weights.scores(), slope) if refine_all else None
    for i, (block, other) in enumerate(zip(lowest.tolist(), highest_block.tolist(), strict=True)):
        start, stop = block * BLOCK, min((other + 1) * BLOCK, candidates.size)
        first, last = start, stop - 1
        if block == other:
            # The block's sum taken in order, and the conversion of what was an integer.
            more = doubt + (BLOCK + 8) * _U * float(ends[block + 1] - ends[block] + doubt)
            target = float(targets[i] - ends[block])
            scores = candidates.block(start, stop)
            first, last = (
                start + place
                for place in locate(scores, weights.references[block], slope, unit[block], target, more, scratch)
            )
        if refine_all or first != last:
            exact = everything or ExactSums(weights.scores(), slope, first, last)
            first = exact.place(Tail(keystream, i, int(words[i]), 64))
        drawn[i] = first
    return drawn
