"""Auditing with one run (Steinke, Nasr, Jagielski 2023): many canaries, each in or out by a coin, guessed afterwards.

Under (epsilon, delta)-differential privacy W right guesses of r are hardly more than a binomial number of r trials with
probability exp(epsilon) / (1 + exp(epsilon)). With f(v) the probability that this is v or more, and m canaries, their
theorem 5.2 and corollary 5.4 say

    P(W >= v) <= max over i = 0..v of f(v) + (2 m delta / i) (f(v - i) - f(v)),

without the second term for i = 0. So computed, it need not rise with epsilon where 2 m delta > i, and a search for
the epsilon at which it crosses a level would not be sound. Here (2 m delta / i) f(v - i) stands for such an i: it is
not smaller, since f(v) is subtracted at least once. All that is left are sums of f with positive weights, and f rises
with epsilon: so does the bound, and all that lies below an epsilon that is refuted is refuted.

Everything is computed in balls and rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Special, Whole, is_numeric
from dpfast.auditing.auditor import CONFIDENCE, Confidence
from dpfast.auditing.exactly import CALLABLE
from dpfast.auditing.laws import CLAIMED_DELTA, CLAIMED_EPSILON, ClaimedDelta, ClaimedEpsilon, read_exactly
from dpfast.auditing.result import OneRunAudit
from dpfast.errors import ParameterError, Words
from dpfast.exact.balls import ball, float_above, round_down, working_precision
from dpfast.randomness import Keystream, Purpose, Random, random_source

__all__ = ["audit_one_run", "one_run_epsilon", "one_run_p_value"]

_Canary = TypeVar("_Canary")
_Output = TypeVar("_Output")

_MOST = 2**30
_COUNT = Whole(1, _MOST)
_CORRECT = Whole(0, _MOST)
_GUESSES = Whole(1, _MOST, optional=True, mend="leave it out to try several numbers")
_LEAST_GUESSES = 16
_BITS = 128

Count: TypeAlias = Annotated[int, _COUNT]
Correct: TypeAlias = Annotated[int, _CORRECT]
CANARIES = Special(lambda: (1, 0.5, True, "abc", b"abc", {1, 2}, {"a": 1}, object(), [], (), range(0), np.ones((2, 2))))


def audit_one_run(
    mechanism: Annotated[Callable[[list[_Canary]], _Output], CALLABLE],
    canaries: Annotated[Sequence[_Canary] | NDArray[Any], CANARIES],
    score: Annotated[Callable[[_Output, _Canary], float], CALLABLE],
    epsilon: ClaimedEpsilon,
    delta: ClaimedDelta = 0.0,
    *,
    guesses: Annotated[int | None, _GUESSES] = None,
    confidence: Confidence = 0.999999,
    random: Random = None,
) -> OneRunAudit:
    """Try to refute that a mechanism on data is private, by a single run of it.

    Guarantee
        Of the verdict: a mechanism that is (epsilon, delta)-differentially private where one canary more or less makes
        neighbours is refuted with probability at most 1 - confidence, whatever the canaries and the scores are. For
        training and other mechanisms that take long: `dpfast.audit` needs thousands of runs, but sees more.

    Parameters
    ----------
    mechanism
        ``mechanism(included)`` runs once, on the canaries that take part, and on what else it has.
    canaries
        A list of records, each of a privacy unit of its own. The more there are, the closer is the bound.
    score
        ``score(output, canary)`` says how much the output looks as if this canary took part: the higher, the likelier.
    epsilon, delta
        What the mechanism claims: numbers from 0 to 1e6, and from 0 to below 1.
    guesses
        How many canaries are guessed, half of them in and half out, those with the highest and the lowest scores.
        None tries all, half of them, a quarter and so on, and divides the allowed probability of a false alarm among
        these numbers. It must not be chosen by the scores.
    confidence
        The probability with which the bound holds, above 0 and below 1.
    random
        None for fresh coins from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    OneRunAudit
        With ``passed``, ``epsilon_lower``, ``correct``, ``guesses``, ``explain()`` and ``to_frame()``. With the claimed
        epsilon, every delta below ``delta_lower`` is refuted.

    Raises
    ------
    ParameterError
        An argument is not as above, there are more guesses than canaries, or a score is no number or NaN.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run, theorem 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> def histogram(people: list[int]) -> np.ndarray:
    ...     return dpf.laplace(np.bincount(people, minlength=5000), 0.5)
    >>> def own_cell(counts: np.ndarray, person: int) -> float:
    ...     return float(counts[person])
    >>> found = dpf.audit_one_run(histogram, range(5000), own_cell, epsilon=1.0)
    >>> found.passed, 1.0 < found.epsilon_lower <= 2.0
    (False, True)

    """
    claimed = read_exactly(CLAIMED_EPSILON, "epsilon", epsilon)
    allowed = read_exactly(CLAIMED_DELTA, "delta", delta)
    sure = read_exactly(CONFIDENCE, "confidence", confidence)
    asked = _GUESSES.read_optional("guesses", guesses)
    listed = _read_canaries(canaries)
    if asked is not None and asked > len(listed):
        raise ParameterError("guesses", asked, f"at most the number of canaries, which is {len(listed)}")
    for name, given in (("mechanism", mechanism), ("score", score)):
        if not callable(given):
            raise ParameterError(name, given, "a function", "write for example a lambda")
    included = _coins(random, len(listed))
    output = mechanism([canary for canary, taken in zip(listed, included.tolist(), strict=True) if taken])
    scores = np.array([_read_score(score(output, canary)) for canary in listed])
    tried = _numbers_of_guesses(len(listed)) if asked is None else [asked]
    miss = (1 - sure) / len(tried)
    found = []
    for number in tried:
        right = _right_guesses(scores, included, number)
        p_value = _p_value(len(listed), number, right, claimed, allowed)
        found.append((_epsilon_below(len(listed), number, right, allowed, miss), -p_value, number, right))
    lower, _, number, right = max(found)
    least = min(-negative for _, negative, _, _ in found)
    return OneRunAudit(
        epsilon=float(claimed),
        delta=float(allowed),
        epsilon_lower=lower,
        delta_lower=max(_delta_below(len(listed), r, v, claimed, miss) for _, _, r, v in found),
        passed=not Fraction(least) <= miss,
        confidence=float(sure),
        canaries=len(listed),
        guesses=number,
        correct=right,
        p_value=min(1.0, least * len(tried) * (1 + 2.0**-40)),
    )


def one_run_p_value(
    canaries: Count, guesses: Count, correct: Correct, epsilon: ClaimedEpsilon, delta: ClaimedDelta = 0.0
) -> float:
    """Return how probable so many right guesses are, at most, were a mechanism private.

    Guarantee
        Of the probability: it is not below the true one for any (epsilon, delta)-differentially private mechanism, and
        it rises with epsilon and with delta.

    Parameters
    ----------
    canaries
        How many records were included or not, each by a fair coin of its own.
    guesses, correct
        About how many of them it was guessed which, a number fixed beforehand, and how many guesses were right.
    epsilon, delta
        What the mechanism claims.

    Returns
    -------
    float
        The probability, rounded up; at most 1.

    Raises
    ------
    ParameterError
        An argument is out of range, or there are more right guesses than guesses, or more of these than canaries.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), theorem 5.2, corollary 5.4.

    Examples
    --------
    >>> 2.0**-100 <= one_run_p_value(1000, 100, 100, epsilon=0) < 2.0**-99
    True
    >>> round(one_run_p_value(100, 100, 75, epsilon=1.0986122886681098), 4)
    0.5535

    """
    m, r, v = _read_counts(canaries, guesses, correct)
    claimed = read_exactly(CLAIMED_EPSILON, "epsilon", epsilon)
    return _p_value(m, r, v, claimed, read_exactly(CLAIMED_DELTA, "delta", delta))


def one_run_epsilon(
    canaries: Count,
    guesses: Count,
    correct: Correct,
    delta: ClaimedDelta = 0.0,
    *,
    confidence: Annotated[float, CONFIDENCE] = 0.95,
) -> float:
    """Return the largest epsilon that so many right guesses refute.

    Guarantee
        Of the confidence: a mechanism that is (epsilon, delta)-differentially private gives a larger number than its
        epsilon with probability at most 1 - confidence.

    Parameters
    ----------
    canaries, guesses, correct, delta
        As for `one_run_p_value`.
    confidence
        Above 0 and below 1.

    Returns
    -------
    float
        A lower bound of epsilon, rounded down; 0 if nothing is refuted.

    Raises
    ------
    ParameterError
        As for `one_run_p_value`.

    References
    ----------
    Steinke, Nasr, Jagielski (2023), appendix D.

    Examples
    --------
    >>> round(one_run_epsilon(1000, 100, 75, 1e-4), 3)
    0.673

    """
    m, r, v = _read_counts(canaries, guesses, correct)
    allowed = read_exactly(CLAIMED_DELTA, "delta", delta)
    return _epsilon_below(m, r, v, allowed, 1 - read_exactly(CONFIDENCE, "confidence", confidence))


def _read_counts(canaries: object, guesses: object, correct: object) -> tuple[int, int, int]:
    m, r, v = _COUNT.read("canaries", canaries), _COUNT.read("guesses", guesses), _CORRECT.read("correct", correct)
    if r > m:
        raise ParameterError("guesses", r, f"at most canaries, which is {m}")
    if v > r:
        raise ParameterError("correct", v, f"at most guesses, which is {r}")
    return m, r, v


def _read_canaries(canaries: Any) -> list[Any]:
    flat = isinstance(canaries, np.ndarray) and canaries.ndim == 1
    if not (isinstance(canaries, Sequence) and not isinstance(canaries, (str, bytes))) and not flat:
        raise ParameterError("canaries", canaries, "a list of records", "write for example canaries=range(1000)")
    if not 1 <= len(canaries) <= _MOST:
        raise ParameterError("canaries", Words(f"{len(canaries)} records"), "a list of 1 to 2**30 records")
    return list(canaries)


def _read_score(score: Any) -> float:
    try:
        number = float(score) if is_numeric(score) or isinstance(score, (bool, np.bool_)) else math.nan
    except OverflowError:
        number = math.inf if score > 0 else -math.inf
    if math.isnan(number):
        allowed = "a function that returns a number, True or False, and not NaN"
        mend = "write for example lambda output, canary: canary in output"
        raise ParameterError("score", Words(f"one that returned {score!r:.40}"), allowed, mend)
    return number


def _coins(random: object, count: int) -> NDArray[np.bool_]:
    words = Keystream(random_source(random).key()).words(Purpose.NOISE)
    # A whole number of blocks of the cipher.
    buffer = np.empty(16 * (count // 128 + 1), np.uint8)
    words.fill(0, buffer)
    return np.unpackbits(buffer)[:count].astype(np.bool_)


def _numbers_of_guesses(canaries: int) -> list[int]:
    numbers = [canaries]
    while numbers[-1] // 2 >= _LEAST_GUESSES:
        numbers.append(numbers[-1] // 2)
    return numbers


def _right_guesses(scores: NDArray[np.float64], included: NDArray[np.bool_], guesses: int) -> int:
    order = np.argsort(scores, kind="stable")
    out, taken = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int(np.count_nonzero(included[taken]) + np.count_nonzero(~included[out]))


def _p_value(m: int, r: int, v: int, epsilon: Fraction, delta: Fraction) -> float:
    """Return the bound of the module's docstring, rounded up."""
    with working_precision(_BITS):
        return min(1.0, float_above(_bound(m, r, v, ball(epsilon), delta)))


def _bound(m: int, r: int, v: int, epsilon: arb, delta: Fraction) -> arb:
    right = 1 / (1 + (-epsilon).exp())
    tail = _tail(r, v, right)
    if delta == 0 or v == 0:
        return tail
    weight = 2 * m * delta
    # The probability of v - i, from that of v - 1 on, and the sum of all these.
    each = _probability(r, v - 1, right)
    odds = (1 - right) / right
    between, largest = arb(0), tail
    for i in range(1, v + 1):
        between += each
        share = ball(weight / i)
        candidate = share * (between + tail) if weight > i else tail + share * between
        largest = largest.max(candidate)
        # All that follow are at most this.
        if share + tail <= largest and weight <= i:
            break
        each *= odds * ball(Fraction(v - i, r - v + i + 1))
    return largest


def _tail(r: int, v: int, right: arb) -> arb:
    return arb(1) if v == 0 else right.beta_lower(v, r - v + 1, regularized=True)


def _probability(r: int, k: int, right: arb) -> arb:
    ways = arb(r + 1).lgamma() - arb(k + 1).lgamma() - arb(r - k + 1).lgamma()
    return (ways + k * right.log() + (r - k) * (1 - right).log()).exp()


def _epsilon_below(m: int, r: int, v: int, delta: Fraction, miss: Fraction) -> float:
    """Return the largest epsilon, nearly, that is certified to be refuted; 0 if none is."""

    def refuted(epsilon: Fraction) -> bool:
        with working_precision(_BITS):
            return bool(_bound(m, r, v, ball(epsilon), delta) <= ball(miss))

    return round_down(_last(refuted, Fraction(10**6)))


def _delta_below(m: int, r: int, v: int, epsilon: Fraction, miss: Fraction) -> float:
    """Return the largest delta, nearly, that is certified to be refuted; 0 if none is."""

    def refuted(delta: Fraction) -> bool:
        with working_precision(_BITS):
            return bool(_bound(m, r, v, ball(epsilon), delta) <= ball(miss))

    return round_down(_last(refuted, Fraction(1))) if refuted(Fraction(0)) else 0.0


def _last(holds: Callable[[Fraction], bool], most: Fraction) -> Fraction:
    """Return about the last number up to ``most`` at which what holds from 0 on holds; 0 if it never does."""
    if not holds(Fraction(0)):
        return Fraction(0)
    high = min(Fraction(1), most)
    while high < most and holds(high):
        high *= 2
    low = Fraction(0)
    for _ in range(40):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
        if high - low <= low / 2**26:
            break
    return low
