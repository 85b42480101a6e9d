"""The exponential mechanism over a domain far too large to list, of which few candidates have a score."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from dpfast.arguments import Whole
from dpfast.columns import dimensions
from dpfast.columns.declarations import WholeColumn
from dpfast.columns.private import borrow_integers
from dpfast.columns.saturating import borrow_saturating
from dpfast.errors import ColumnError, DataError, ParameterError
from dpfast.exact.balls import ball, float_above, working_precision
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.mechanisms.noise.exact import Bits, decided, is_less, uniform_ball, whole_number_below
from dpfast.mechanisms.parameters import Epsilon, Monotonic, Sensitivity
from dpfast.mechanisms.selection.argmax import one_slope, select_rows
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.kinds import Score
from dpfast.randomness import Keystream, Purpose, Random, Tail, random_source

__all__ = ["accepts", "exponential_sparse", "zero_score"]

_DOMAIN_SIZE = Whole(1, 2**63, mend="write for example {name}=10**9")
_EXACT = 2**53
_WORD_BITS, _SCORE_BITS = 64, 64


def exponential_sparse(
    indices: WholeColumn,
    scores: Score,
    domain_size: Annotated[int, _DOMAIN_SIZE],
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    random: Random = None,
) -> int:
    """Select one of 0, 1, ..., domain_size - 1 by the exponential mechanism, where all but some have the score 0.

    Guarantee
        Exactly the distribution of `exponential` on all ``domain_size`` scores, and so its guarantee: (epsilon, 0) if
        no candidate's score, 0 or not, changes by more than ``sensitivity`` between neighbouring data sets. A score is
        what the rules below make of the entries; to clamp it to a fixed range moves no two scores further apart
        (abs(clamp(x) - clamp(y)) <= abs(x - y)), nor in another direction. So no error reveals indices, their number
        or the size of scores. A score that is NaN or infinite is refused, and the error publishes that there is one.
        The domain is public. *Which* candidates have a score, and how many, is private and is not published. The
        running time grows with their number, which can be learnt by measuring it: where this matters, pad the scores
        with zeros to a public number first. Only the index may be published. No budget is kept here.

    Parameters
    ----------
    indices
        The candidates that have a score: an int64, int32 or uint32 column, in any order. An entry whose index does not
        lie from 0 to domain_size - 1 is passed over; of a candidate's entries the largest score counts.
    scores
        Their scores, the higher the better: a column of the same length as for `exponential`. A score may be 0 or
        negative. Integers beyond plus and minus 2**53 count as these. An entry that is null in either column is
        passed over, and so is an index in a list that is no whole number.
    domain_size
        The number of candidates, from 1 to 2**63.
    epsilon, sensitivity, monotonic, random
        As for `exponential`, one number each.

    Returns
    -------
    int
        The index selected.

    Raises
    ------
    ParameterError
        domain_size, epsilon, sensitivity or monotonic is not as above.
    ColumnError
        The indices' or scores' kind or type is not one of those above, or they are not equally long.
    DataError
        A score is NaN or infinite.

    Notes
    -----
    The M candidates of score 0 weigh M together: they enter one selection as a single candidate of score v, v the next
    float above ln(M) / a, so that the largest of their keys, Gumbel noise shifted by ln M, is drawn at once. Where it
    wins, it stays with the probability M exp(-a v), a hair below 1 and decided in ball arithmetic, else all is drawn
    again: rejection makes its weight M exactly. Then one of the M is taken evenly. Sorting apart, the time is that of
    `exponential` on the scores given.

    References
    ----------
    McSherry, Talwar (2007). Cormode, Procopiuc, Srivastava, Tran (2012) for drawing the zeros of a sparse domain at
    once.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> exponential_sparse([12, 10**15], [3, 120], domain_size=10**18, epsilon=1.0, random=SeededRandom(1))
    1000000000000000
    >>> exponential_sparse([7], [0], domain_size=2**63, epsilon=1.0, random=SeededRandom(1)) in range(2**63)
    True
    >>> exponential_sparse([7, 7, 10], [1, 2000, 3000], domain_size=10, epsilon=1.0)
    7

    """
    size = _DOMAIN_SIZE.read("domain_size", domain_size)
    a = one_slope(epsilon, sensitivity, monotonic)
    source = random_source(random)
    # The largest score that could be needed: whether it is a float depends on nothing that is private.
    zero_score(a, size)
    scored, given = _read_entries(indices, scores, size)
    zeros = size - scored.size
    together = zero_score(a, zeros) if zeros else 0.0
    candidates = borrow_candidates(np.append(given, together) if zeros else given)
    while True:
        try:
            won = int(select_rows(candidates, a, GUMBEL, source)[0])
        except DataError:  # its place would reveal how many candidates come before
            message = "scores must be finite, but one is NaN or infinite; leave it out or replace it first"
            raise DataError(message) from None
        if won < scored.size:
            return int(scored[won])
        keystream = Keystream(source.key())
        words = np.empty(2, np.uint64)
        keystream.words(Purpose.NOISE).fill(0, words)
        stays, place = (Tail(keystream, i, int(words[i]), _WORD_BITS) for i in range(2))
        if accepts(a, together, zeros, stays):
            return _nth_other(scored, whole_number_below(zeros, place))


def _read_entries(indices: WholeColumn, scores: Score, size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the candidates of the domain that have a score, each once, and their scores as float64, exactly."""
    places = borrow_integers(indices, "indices", "cast them to int64")
    if dimensions(scores) != 1:
        raise ColumnError("scores must be a column; pass one dimension, with one entry for each candidate")
    weights = borrow_saturating(scores, "scores")
    length = places.length
    if weights.length != length:
        raise ColumnError("scores must have one entry for each index, but were more or fewer; pass equal lengths")
    scored = places.block(0, length).astype(np.int64, copy=False)
    given = weights.block(0, length)
    if given.dtype == np.int64:
        given = given.clip(-_EXACT, _EXACT)
    given = given.astype(np.float64)
    dropped = (scored < 0) | (scored >= size)
    for column in (places, weights):
        missing = column.missing(0, length)
        if missing is not None:
            dropped |= missing
    if dropped.any():
        scored, given = scored[~dropped], given[~dropped]
    if (scored[1:] > scored[:-1]).all():
        return scored, given
    order = np.argsort(scored)
    scored, given = scored[order], given[order]
    firsts = np.flatnonzero(np.diff(scored, prepend=-1))
    return scored[firsts], np.maximum.reduceat(given, firsts)


def zero_score(a: float, zeros: int) -> float:
    """Return a score v with a * v >= ln(zeros), proved, and at most a few units in the last place above that.

    Examples
    --------
    >>> zero_score(0.5, 1), round(zero_score(0.5, 10**6), 6)
    (0.0, 27.631021)

    """
    if zeros == 1:
        return 0.0
    with working_precision():
        score = float_above(arb(fmpz(zeros)).log() / ball(a))
    if not math.isfinite(score):
        raise ParameterError("sensitivity", None, "smaller for so small an epsilon", "the noise would overflow")
    return score


def accepts(a: float, score: float, zeros: int, bits: Bits) -> bool:
    """Return whether U < zeros * exp(-a * score), for the U in [0, 1) with these bits."""

    def below(count: int) -> bool | None:
        weight = zeros * (-ball(Fraction(a) * Fraction(score))).exp()
        return is_less(uniform_ball(bits.leading(count), count), weight)

    # Of one candidate the weight is 1 exactly, and U below it.
    return zeros == 1 or decided(below, bits.known, _SCORE_BITS)


def _nth_other(scored: NDArray[np.int64], n: int) -> int:
    """Return the index of the n-th candidate (from 0) that has no score; those that have one ascend."""
    # scored[j] - j candidates without a score lie below scored[j]: those with that many or fewer lie below the n-th.
    return n + int(np.searchsorted(scored - np.arange(scored.size), n, side="right"))
