"""The exact probabilities of a selection among few candidates: for tests, and for seeing what a mechanism does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Choice
from dpfast.columns.declarations import Scale
from dpfast.errors import ParameterError, Words
from dpfast.exact.balls import ball, working_precision
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import slope_of, slopes
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.kinds import Score

__all__ = ["selection_probabilities"]

_LARGEST = 1000
_MECHANISM = Choice(("exponential", "permute_and_flip"))


def selection_probabilities(
    scores: Score,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    mechanism: Annotated[Literal["exponential", "permute_and_flip"], _MECHANISM] = "exponential",
) -> NDArray[np.float64]:
    """Return the probability with which each candidate is selected, to the last bits of a float64.

    Guarantee
        None: the probabilities are functions of the scores, and as private as these are.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic
        As for `exponential`; one column of at most 1000 finite scores without nulls.
    mechanism
        "exponential" or "permute_and_flip".

    Returns
    -------
    numpy.ndarray
        One probability for each candidate.

    Raises
    ------
    ParameterError
        The mechanism is another, or the scores are no such column.

    Notes
    -----
    With p_i = exp(a * (score_i - best score)): the exponential mechanism selects i with probability p_i / sum p;
    permute-and-flip with p_i times the integral from 0 to 1 of the product over k != i of (1 - p_k t) dt, in which
    -ln t is how far the winner's key lies above the best score.

    Examples
    --------
    >>> selection_probabilities([0, 2], epsilon=1.0).round(4)
    array([0.2689, 0.7311])
    >>> selection_probabilities([0, 2], epsilon=1.0, mechanism="permute_and_flip").round(4)
    array([0.1839, 0.8161])

    """
    chosen = _MECHANISM.read("mechanism", mechanism)
    candidates = borrow_candidates(scores)
    candidates.refuse_few(1)
    given = candidates.block(0, candidates.size)
    if candidates.shape != "vector" or candidates.size > _LARGEST or candidates.nulls or not np.isfinite(given).all():
        shape = Words(f"{candidates.rows} rows of {candidates.size} scores and {candidates.nulls} nulls")
        raise ParameterError("scores", shape, f"one column of at most {_LARGEST} finite scores without nulls")
    slope = Fraction(slope_of(slopes(epsilon, sensitivity, monotonic, 1), 0))
    exact = [Fraction(score) for score in given.tolist()]
    highest = max(exact)
    # The polynomials' coefficients are as large as 2**n and of both signs.
    with working_precision(128 + 4 * len(exact)):
        weights = [ball(slope * (score - highest)).exp() for score in exact]
        if chosen == "exponential":
            total = sum(weights, arb(0))
            probabilities = [weight / total for weight in weights]
        else:
            probabilities = _permute_and_flip(weights)
        return np.array([float(probability.mid()) for probability in probabilities])


def _permute_and_flip(weights: Sequence[arb]) -> list[arb]:
    product = [arb(1)]
    for weight in weights:
        product = [c - weight * lower for c, lower in zip([*product, arb(0)], [arb(0), *product], strict=True)]
    probabilities = []
    for weight in weights:
        # The product without this factor, by division, and its integral.
        coefficient, integral = arb(0), arb(0)
        for power, c in enumerate(product[:-1]):
            coefficient = c + weight * coefficient
            integral += coefficient / (power + 1)
        probabilities.append(weight * integral)
    return probabilities
