"""How good a selection will be, before it is run: functions of public parameters alone."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, TypeAlias

from flint import arb, fmpz

from dpfast.arguments import Flag, Number, Real, Whole
from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, float_above, working_precision
from dpfast.mechanisms.parameters import Epsilon, Monotonic, Sensitivity
from dpfast.mechanisms.selection.argmax import one_slope
from dpfast.mechanisms.thresholds.runs import Count, Numeric, calibrate

__all__ = ["selection_error", "selection_miss", "threshold_error"]

_MANY, _EXACT, _ERROR = Whole(1, 2**63), Flag(), Number(0)
_MISS = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
#: Exponentials far below the least underflow, and would be taken for 0.
_LIKELY_MISS = replace(_MISS, least=1e-300, above=False)

Candidates: TypeAlias = Annotated[int, _MANY]
Exact: TypeAlias = Annotated[bool, _EXACT]


def selection_error(
    candidates: Candidates,
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    miss: Annotated[Real, _MISS] = 0.05,
    best: Candidates = 1,
    exact: Exact = False,
) -> float:
    """Return how far the score selected lies below the best one at most, with probability at least 1 - ``miss``.

    Guarantee
        Of the accuracy: whatever the scores are, `exponential`, and `permute_and_flip` too, selects a candidate whose
        score is below the best one by this much or more with probability at most ``miss``. No data is read.

    Parameters
    ----------
    candidates
        The number of candidates.
    epsilon, sensitivity, monotonic
        As for `exponential`, one number each.
    miss
        The probability of a worse score, above 0 and below 1.
    best
        How many candidates are known to share the best score.
    exact
        False for the simple bound of the theorem. True for the smallest number that holds for all scores; it is 0
        where even the worst scores miss less often.

    Returns
    -------
    float
        The error in the unit of the scores, rounded up.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    With a = epsilon / (2 sensitivity), without the 2 if monotonic: P(score <= best score - x) <= (candidates / best)
    exp(-a x). The worst scores are those of which all but the best lie x below; their exact probability is
    w / (best + w), w = (candidates - best) exp(-a x). Permute-and-flip is never worse than the exponential mechanism.

    References
    ----------
    McSherry, Talwar (2007); Dwork, Roth (2014), theorem 3.11, and corollary 3.12 for ``best=1``. McKenna,
    Sheldon (2020) for permute-and-flip.

    Examples
    --------
    >>> round(selection_error(500, epsilon=1.0, sensitivity=5.0, miss=0.05), 2)
    92.1
    >>> round(selection_error(2, epsilon=0.5, exact=True), 2), round(selection_error(2, epsilon=0.5), 2)
    (11.78, 14.76)

    """
    many, top = _numbers(candidates, best, exact)
    a = one_slope(epsilon, sensitivity, monotonic)
    allowed = _MISS.read_exactly("miss", miss)
    with working_precision():
        ratio = Fraction(many, top) / allowed
        if exact:
            ratio = Fraction(many - top, top) * (1 - allowed) / allowed
        return float_above(ball(ratio).log() / ball(a)) if ratio > 1 else 0.0


def selection_miss(
    error: Annotated[Real, _ERROR],
    candidates: Candidates,
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    best: Candidates = 1,
    exact: Exact = False,
) -> float:
    """Return an upper bound of the probability that the score selected lies ``error`` or more below the best one.

    Guarantee
        Of the accuracy, as for `selection_error`, whose inverse this is.

    Parameters
    ----------
    error
        In the unit of the scores, 0 or more.
    candidates, epsilon, sensitivity, monotonic, best, exact
        As for `selection_error`.

    Returns
    -------
    float
        The probability, rounded up; at most 1.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    References
    ----------
    Dwork, Roth (2014), theorem 3.11, corollary 3.12 and example 3.6.

    Examples
    --------
    >>> round(selection_miss(10, candidates=2, epsilon=0.5), 5)
    0.16417
    >>> round(selection_miss(10, candidates=2, epsilon=0.5, exact=True), 7)
    0.0758582

    """
    many, top = _numbers(candidates, best, exact)
    a = one_slope(epsilon, sensitivity, monotonic)
    below = _ERROR.read_exactly("error", error)
    with working_precision():
        fall = (-ball(a) * ball(below)).exp()
        bound = arb(fmpz(many)) / top * fall
        if exact:
            worse = (many - top) * fall
            bound = worse / (top + worse)
        return min(float_above(bound), 1.0)


def threshold_error(
    values: Candidates,
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    count: Count = 1,
    numeric: Numeric = None,
    miss: Annotated[Real, _LIKELY_MISS] = 0.05,
) -> float:
    """Return a distance from the threshold beyond which all answers are right, with probability at least 1 - ``miss``.

    Guarantee
        Of the accuracy: with probability at least 1 - miss all of the ``values`` values answered "above" are at least
        threshold - x and all answered "below" at most threshold + x, x the number returned, even if each value is
        chosen after seeing the answers before it. No data is read.

    Parameters
    ----------
    values
        The number of values that are tested.
    epsilon, sensitivity, monotonic, count, numeric
        As for `above_threshold`.
    miss
        The probability that one of the answers is further off, from 1e-300 on and below 1.

    Returns
    -------
    float
        The distance in the unit of the values.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    With b0 and b the scales of the threshold's noise N0 and of a value's N: "above" below threshold - x needs
    N >= N0 + x, which has the probability exp(-x / b) b / (b0 + b), for each value; "below" above threshold + x needs
    N0 > x, one event for all values, of probability exp(-x / b0). Here both together are ``miss``. Laplace noise and
    halves of epsilon need 8 (ln(values) + ln(2 / miss)) / epsilon for one positive (Dwork, Roth 2014, theorem 3.24).

    Examples
    --------
    >>> round(threshold_error(1000, epsilon=1.0), 1)
    30.4

    """
    tested = _MANY.read("values", values)
    b0, b = calibrate(epsilon, sensitivity, monotonic, count, numeric).scales
    allowed = _LIKELY_MISS.read("miss", miss)

    def missed(x: float) -> float:
        return tested * b / (b0 + b) * math.exp(-x / b) + math.exp(-x / b0)

    low, high = 0.0, max(b, b0)
    while missed(high) > allowed:
        low, high = high, 2 * high
    # A few rounding errors are far below the 2**-40 by which the result is too large.
    while high - low > high * 2.0**-41:
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > allowed else (low, middle)
    return high * (1 + 2.0**-41)


def _numbers(candidates: int, best: int, exact: bool) -> tuple[int, int]:
    """Return how many candidates there are, and how many of them share the best score."""
    _EXACT.read("exact", exact)
    many, top = _MANY.read("candidates", candidates), _MANY.read("best", best)
    if top > many:
        raise ParameterError("best", best, "a whole number up to candidates")
    return many, top
