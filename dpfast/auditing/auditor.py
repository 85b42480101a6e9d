"""`dpfast.audit`: whether the outputs of any mechanism on two neighbouring inputs refute what it claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np

from dpfast.arguments import Flag, Number, Real, Whole, is_numeric
from dpfast.auditing.batches import form_of_batch, joined
from dpfast.auditing.classifier import classifier_score
from dpfast.auditing.events import Claim, Event, Parts, chosen_event, events_of_categories, events_of_numbers
from dpfast.auditing.exactly import CALLABLE, INPUT
from dpfast.auditing.features import Feature, features_of
from dpfast.auditing.laws import CLAIMED_DELTA, CLAIMED_EPSILON, ClaimedDelta, ClaimedEpsilon, read_exactly
from dpfast.auditing.limits import lower_limit, upper_limit
from dpfast.auditing.outputs import Columns, read_columns
from dpfast.auditing.result import Audit
from dpfast.auditing.sampling import draw_batches, draw_batches_of_one, draw_outputs
from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, exact_lower, round_down, working_precision
from dpfast.progress import TellParts, read_progress

__all__ = ["CONFIDENCE", "Confidence", "audit"]

_Data = TypeVar("_Data")

_SAMPLES = Whole(100, 10**9, mend="write for example {name}=100_000")
_BATCHED = Flag()
CONFIDENCE = Number(0, 1, above=True, below=True, mend="write for example {name}=0.999")

Confidence: TypeAlias = Annotated[Real, CONFIDENCE]

#: Of outputs of several forms, the numbers of so many forms are looked at by themselves.
_MOST_FORMS = 6
#: Of outputs with many numbers, so many are looked at by themselves.
_MOST_NUMBERS = 48
#: What a classifier sees is taken only if it shows so much more than an event that can be said.
_PLAINER = 0.95
#: Where batches differ in their form, so many of one output are drawn of each input.
_MOST_CALLS = 2_000
#: Of the probability of a false alarm of batches, so much is kept for these, which may be asked for by any output.
_OF_ONE = Fraction(1, 10)


def audit(
    mechanism: Annotated[Callable[[_Data], Any] | Callable[[_Data, int], Any], CALLABLE],
    x: Annotated[_Data, INPUT],
    neighbour: Annotated[_Data, INPUT],
    epsilon: ClaimedEpsilon,
    delta: ClaimedDelta = 0.0,
    *,
    samples: Annotated[int, _SAMPLES] = 100_000,
    confidence: Confidence = 0.999999,
    batched: Annotated[bool, _BATCHED] = False,
    progress: TellParts = None,
) -> Audit:
    """Try to refute that a mechanism is private, by many of its outputs on two neighbouring inputs.

    Guarantee
        Of the verdict: a mechanism that is (epsilon, delta)-differentially private for this pair is refuted with
        probability at most 1 - confidence, whatever its outputs are, if the calls are independent of each other. Proof:
        the event S and the input that it favours are chosen by the first half of the outputs of both inputs. The other
        half is independent of them, so the number of its outputs in S is binomial for each input. Clopper and Pearson's
        limits, p below P(S) and q above Q(S), each miss with probability at most (1 - confidence) / 2; where both hold,
        (p - delta) / q <= (P(S) - delta) / Q(S) <= exp(epsilon). Batches may need two such tests: a tenth of
        1 - confidence is kept for that of batches of one. What passes is not proved to be private: other inputs,
        other events or more samples may refute it. The samples are not private: audit with inputs that may be known.

    Parameters
    ----------
    mechanism
        Any function: ours, a peer's or your own. ``mechanism(x)`` returns one output, with fresh randomness for each
        call: a number, a string, None, an array, a column, a frame, or lists, tuples, dicts and dataclasses of these.
        An error that it raises is an output too. With ``batched``, ``mechanism(x, n)`` returns n independent outputs:
        an array whose first axis has length n, a list, a column, or a frame with n rows.
    x, neighbour
        Two neighbouring inputs, of any kind.
    epsilon, delta
        What the mechanism claims: numbers from 0 to 1e6, and from 0 to below 1.
    samples
        How many outputs of each input are drawn, from 100 to 10**9. The bounds come closer as its root grows.
    confidence
        The probability with which the bounds hold, above 0 and below 1.
    batched
        Whether ``mechanism`` is called twice for each input, with half the number of outputs, and not for each one.
    progress
        Called with how many outputs were drawn, and of how many.

    Returns
    -------
    Audit
        With ``passed``, ``epsilon_lower``, ``delta_lower``, ``event``, ``explain()`` and ``to_frame()``.

    Raises
    ------
    ParameterError
        An argument is not as above, every call raises an error, a batch has another length, or an output is of a kind
        that cannot be compared.

    Notes
    -----
    The events are: thresholds of every number and unions of intervals; single values and sets of values of the output,
    of its parts and of its form; for floats the powers of two that divide them, their low bits and their number of
    significant bits, which show noise that was rounded after it was drawn (Mironov 2012), also of the output less
    either input; remainders of whole numbers; sums, squares and extremes of several numbers, and the score of a
    logistic regression on all of them; types, shapes, dtypes and names; errors, NaN, infinities and -0.0. Of an output
    with many numbers, 512 or fewer have events of their own: those that tell most in the first quarter of the outputs.
    A batch has one type and one dtype, shape and set of names; where those of two inputs differ, what both have is
    compared as numbers of one type, and ``mechanism(x, 1)`` is called 2,000 times for each to compare the rest, so that
    these calls are independent too. Where the two batches of one input differ in these, such calls alone are compared.

    References
    ----------
    Ding, Wang, Wang, Zhang, Kifer (2018): events chosen on other samples than are tested. Bichsel, Steffen, Bogunovic,
    Vechev (2021): a classifier that chooses the event. Clopper, Pearson (1934). Mironov (2012).

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> def noisy(count: int, size: int) -> np.ndarray:
    ...     return dpf.laplace(np.full(size, count), 2.0)
    >>> dpf.audit(noisy, 10, 11, epsilon=0.5, batched=True).passed
    True
    >>> found = dpf.audit(noisy, 10, 11, epsilon=0.4, batched=True)
    >>> found.passed, 0.4 < found.epsilon_lower <= 0.5
    (False, True)

    """
    claimed = read_exactly(CLAIMED_EPSILON, "epsilon", epsilon)
    allowed = read_exactly(CLAIMED_DELTA, "delta", delta)
    size = _SAMPLES.read("samples", samples)
    sure = read_exactly(CONFIDENCE, "confidence", confidence)
    at_once = _BATCHED.read("batched", batched)
    if not callable(mechanism):
        raise ParameterError(
            "mechanism", mechanism, "a function of an input", "write for example lambda x: my_noise(x)"
        )
    inputs, told = (x, neighbour), read_progress(progress, "two numbers, of parts done and of all")
    centres = tuple(number for number in map(_as_float, inputs) if math.isfinite(number))
    if not at_once:
        only = _taught(draw_outputs(mechanism, inputs, size, told), size, centres, allowed, 1 - sure)
        return _measured(only, claimed, allowed, sure)
    halves = draw_batches(mechanism, inputs, size, told)
    drawn = joined(*halves)
    test = None if drawn is None else _taught(drawn, size, centres, allowed, (1 - sure) * (1 - _OF_ONE))
    if test is None or form_of_batch(halves[0][0]) != form_of_batch(halves[1][0]):
        # One batch has one form, so each output is drawn by a call of its own.
        calls = min(size, _MOST_CALLS)
        by_form = _taught(draw_batches_of_one(mechanism, inputs, calls), calls, (), allowed, (1 - sure) * _OF_ONE)
        if by_form.merit > (0.0 if test is None else test.merit) or test is None:
            test = by_form.said("of a batch of one, ")
    return _measured(test, claimed, allowed, sure)


@dataclass(frozen=True)
class _Test:
    """One event that was chosen, if any shows something, of these outputs, and with which probability it may fail."""

    event: Event | None
    columns: Columns
    parts: Parts
    miss: Fraction

    @property
    def merit(self) -> float:
        return 0.0 if self.event is None else self.event.merit

    def said(self, words: str) -> _Test:
        """Return the same, with words before those of the event."""
        event = None if self.event is None else replace(self.event, words=words + self.event.words)
        return replace(self, event=event)


def _taught(drawn: tuple[Any, Any], size: int, centres: tuple[float, ...], delta: Fraction, miss: Fraction) -> _Test:
    """Return the test that the outputs that teach and choose recommend."""
    columns, parts = read_columns(*drawn), Parts(size)
    event = chosen_event(_events(columns, centres, parts, Claim(float(delta), float(miss))))
    return _Test(event, columns, parts, miss)


def _as_float(given: Any) -> float:
    """Return an input that is a number, and NaN for all others."""
    try:
        return float(given) if is_numeric(given) else math.nan
    except OverflowError:
        return math.inf


def _events(columns: Columns, centres: tuple[float, ...], parts: Parts, claim: Claim) -> Iterator[Event]:
    features, categories = features_of(columns, centres)
    yield from events_of_categories(categories, parts, claim)
    score = classifier_score(features, parts)
    features = _telling(features, parts)
    yield from events_of_numbers(features, parts, claim)
    if score is not None:
        for event in events_of_numbers([score], parts, claim):
            yield replace(event, merit=event.merit * _PLAINER)
    yield from events_of_numbers(_by_form(columns, features, parts), parts, claim)


def _telling(features: list[Feature], parts: Parts) -> list[Feature]:
    """Return the features whose means or spreads differ most among the outputs that teach, if there are many."""
    if len(features) <= _MOST_NUMBERS:
        return features
    differences = []
    for feature in features:
        sides = [np.nan_to_num(feature.values[part], posinf=0.0, neginf=0.0) for part in parts.teach]
        with np.errstate(all="ignore"):
            means, variances = np.array([side.mean() for side in sides]), np.array([side.var() for side in sides])
            moved = np.abs(means[0] - means[1]) / np.sqrt(variances.sum())
            wider = np.abs(variances[0] - variances[1]) / variances.sum()
        # Where nothing varies on either side, two means are told apart at once.
        differences.append(float(np.nan_to_num(np.fmax(moved, wider), posinf=1e300)))
    best = np.argsort(-np.array(differences), kind="stable")[:_MOST_NUMBERS]
    return [features[place] for place in sorted(best.tolist())]


def _by_form(columns: Columns, features: list[Feature], parts: Parts) -> Iterator[Feature]:
    """Yield each feature for each of the commonest forms of the output alone, where it has several."""
    if columns.forms is None:
        return
    sizes = sum(np.bincount(columns.forms[part], minlength=int(columns.forms.max()) + 1) for part in parts.teach)
    sizes = np.asarray(sizes)
    common = [form for form in np.argsort(-sizes, kind="stable")[:_MOST_FORMS].tolist() if sizes[form]]
    if len(common) < 2:
        return
    words = columns.categories[1].words
    for form in common:
        holds = columns.forms == form
        for feature in features:
            if columns.among_first(holds & ~np.isnan(feature.values)):
                yield feature.where(holds, words(form))


def _measured(test: _Test, epsilon: Fraction, delta: Fraction, sure: Fraction) -> Audit:
    """Return what the outputs that measure say of the one event that is left."""
    event, columns, parts = test.event, test.columns, test.parts
    sides = parts.measure
    favours, words = (0, "none that one input favours") if event is None else (event.favours, event.words)
    trials = sides[0].stop - sides[0].start
    counts = [trials if event is None else int(np.count_nonzero(event.holds[part])) for part in sides]
    happened, elsewhere = counts[favours], counts[1 - favours]
    each = test.miss / 2
    p, q = Fraction(lower_limit(happened, trials, each)), Fraction(upper_limit(elsewhere, trials, each))
    with working_precision():
        most = exact_lower((ball(p - delta) / ball(q)).log()) if p > delta else Fraction(0)
        gap = ball(p) - ball(epsilon).exp() * ball(q)
        least = exact_lower(gap)
        refuted = bool(gap > ball(delta))
    return Audit(
        epsilon=float(epsilon),
        delta=float(delta),
        epsilon_lower=round_down(most) if most > 0 else 0.0,
        delta_lower=round_down(least) if least > 0 else 0.0,
        passed=not refuted,
        confidence=float(sure),
        samples=parts.size,
        event=words,
        likelier=("x", "neighbour")[favours],
        happened=happened,
        happened_elsewhere=elsewhere,
        measured=trials,
        raised=columns.raised,
    )
