"""The exponential mechanism over a domain far too large to list, of which few candidates have a score."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpz
from numpy.typing import NDArray

from dpfast.accounting.balls import PRECISION, ball, float_above, working_precision
from dpfast.columns import borrow, dimensions
from dpfast.errors import ColumnError, DataError, ParameterError
from dpfast.kernels.selection import GUMBEL
from dpfast.mechanisms.additive import Tail, random_source
from dpfast.mechanisms.ball import Bits
from dpfast.mechanisms.candidates import borrow_candidates
from dpfast.mechanisms.selection import select_rows, slopes
from dpfast.randomness import Keystream, Purpose

__all__ = ["accepts", "exponential_sparse", "whole_number_below", "zero_score"]

_LARGEST_DOMAIN = 2**63
_EXACT = 2**53
_WORD_BITS, _GUARD_BITS, _SCORE_BITS = 64, 64, 64


def exponential_sparse(
    indices: Any,
    scores: Any,
    domain_size: int,
    epsilon: Any,
    sensitivity: Any = 1.0,
    monotonic: bool = False,
    *,
    random: object = None,
) -> int:
    """Select one of 0, 1, ..., domain_size - 1 by the exponential mechanism, where all but some have the score 0.

    Guarantee
        Exactly the distribution of `exponential` on all ``domain_size`` scores, and so its guarantee: (epsilon, 0) if
        no candidate's score, 0 or not, changes by more than ``sensitivity`` between neighbouring data sets. The domain
        is public; *which* candidates have a score, and how many, is private and is not published. The running time
        grows with their number: whoever can measure it learns that number, so that where this matters the scores have
        to be padded with zeros to a public number first. Only the index may be published; no budget is kept here.

    Parameters
    ----------
    indices
        The candidates that have a score: an int64, int32 or uint32 column without nulls, each of them once, in any
        order, from 0 to domain_size - 1.
    scores
        Their scores, the higher the better: a column of the same length as for `exponential`, without nulls. A score
        may be 0 or negative. Integers lie within plus and minus 2**53.
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
        The indices' or scores' kind, type or length is not one of those above.
    DataError
        A score is NaN or infinite, an index is outside of the domain or comes twice.

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
    >>> exponential_sparse([7, 7], [1, 2], domain_size=10, epsilon=1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.DataError: indices must hold each candidate once, but one comes twice; add up its scores first

    """
    size = _size(domain_size)
    a = slopes(epsilon, sensitivity, monotonic, 1)
    if not isinstance(a, float):
        raise ParameterError("epsilon", None, "one number, as must sensitivity", "write for example epsilon=0.5")
    source = random_source(random)
    # The largest score that could be needed: whether it is a float depends on nothing that is private.
    zero_score(a, size)
    scored = _borrow_indices(indices, size)
    given = _borrow_scores(scores, scored.size)
    zeros = size - scored.size
    together = zero_score(a, zeros) if zeros else 0.0
    candidates = borrow_candidates(np.append(given, together) if zeros else given)
    while True:
        won = int(select_rows(candidates, a, GUMBEL, source)[0])
        if won < scored.size:
            return int(scored[won])
        keystream = Keystream(source.key())
        words = np.empty(2, np.uint64)
        keystream.words(Purpose.NOISE).fill(0, words)
        stays, place = (Tail(keystream, i, int(words[i]), _WORD_BITS) for i in range(2))
        if accepts(a, together, zeros, stays):
            return _nth_other(scored, whole_number_below(zeros, place))


def _size(domain_size: Any) -> int:
    whole = isinstance(domain_size, (int, np.integer)) and not isinstance(domain_size, bool)
    if not whole or not 1 <= domain_size <= _LARGEST_DOMAIN:
        raise ParameterError("domain_size", domain_size, "a whole number from 1 to 2**63", "write for example 10**9")
    return int(domain_size)


def _whole_column(values: Any, argument: str) -> NDArray[Any]:
    """Return a column of one dimension without nulls, as it was given."""
    if dimensions(values) != 1:
        raise ColumnError(f"{argument} must be a column; pass one dimension, with one entry for each candidate")
    column = borrow(values, argument)
    if column.null_count:
        raise ColumnError(f"{argument} must have no nulls; drop these candidates, which have the score 0 then")
    return column.block(0, column.length)


def _borrow_indices(indices: Any, size: int) -> NDArray[np.int64]:
    """Return the indices in the order given, all different and within the domain."""
    given = _whole_column(indices, "indices")
    if given.dtype.kind == "f":
        if given.size:
            raise ColumnError("indices must be integers, but were floats; cast them to int64")
        given = given.astype(np.int64)
    scored = given.astype(np.int64, copy=False)
    if scored.size and not (scored.min() >= 0 and scored.max() < size):
        raise DataError("indices must lie from 0 to domain_size - 1, but one does not; make the domain larger")
    if not (np.diff(scored) > 0).all() and (np.diff(np.sort(scored)) == 0).any():
        raise DataError("indices must hold each candidate once, but one comes twice; add up its scores first")
    return scored


def _borrow_scores(scores: Any, length: int) -> NDArray[np.float64]:
    """Return the scores as float64, exactly."""
    given = _whole_column(scores, "scores")
    if given.size != length:
        raise ColumnError(f"scores must have one entry for each of the {length} indices, but had {given.size}")
    if given.dtype == np.int64 and given.size and not (abs(int(given.min())) <= _EXACT and int(given.max()) <= _EXACT):
        raise DataError("scores must lie within plus and minus 2**53 if they are integers; clip them, or pass floats")
    return given.astype(np.float64)


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
    count = bits.known
    with PRECISION:  # results are right under any precision, slow under a wrong one
        while True:
            with ctx.workprec(count + _GUARD_BITS + _SCORE_BITS):
                weight = arb(fmpz(zeros)) * (-ball(Fraction(a) * Fraction(score))).exp()
                u = arb(fmpz(2 * bits.leading(count) + 1), 1) / arb(2) ** (count + 1)
                if u < weight:
                    return True
                if u > weight:
                    return False
                if zeros == 1:  # the weight is 1 exactly, and U below it
                    return True
            count += 64


def whole_number_below(bound: int, bits: Bits) -> int:
    """Return floor(bound * U) for the U in [0, 1) with these bits: evenly one of 0, 1, ..., bound - 1.

    With U in [r, r + 1) * 2**-n the floor is decided once it is the same at both ends.
    """
    count = bits.known
    while True:
        leading = bits.leading(count)
        low = bound * leading >> count
        if low == (bound * (leading + 1) - 1) >> count:
            return low
        count += 64


def _nth_other(scored: NDArray[np.int64], n: int) -> int:
    """Return the index of the n-th candidate (from 0) that has no score."""
    ordered = np.sort(scored)
    # ordered[j] - j candidates without a score lie below ordered[j]: those with that many or fewer lie below the n-th.
    return n + int(np.searchsorted(ordered - np.arange(ordered.size), n, side="right"))
