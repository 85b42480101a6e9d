"""Payments that make the truth the best report to a private choice, as those of Vickrey, Clarke and Groves do."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Real
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.games.welfare import (
    OUTCOMES,
    UTILITY_UNITS,
    Outcomes,
    Utilities,
    added_utilities,
    in_units,
    read_utilities,
)
from dpfast.mechanisms.parameters import EPSILON

__all__ = ["vcg_payments"]


def vcg_payments(
    utilities: Utilities, epsilon: Annotated[Real, EPSILON], *, outcomes: Outcomes = None
) -> NDArray[np.float64]:
    """Return what each agent pays so that nobody gains by a false report to `dpfast.select_outcome`.

    Guarantee
        None of privacy: a payment is made of everybody's utilities, and as private as these, though it is meant for the
        eyes of one. Release it with noise of its own, or not at all.

        Of the truth: with the outcome by ``dpf.select_outcome(utilities, epsilon=epsilon)`` under "replace", no report
        makes an agent's expected utility less her payment larger than the truth does, whatever the others report; it is
        never negative, and nor is a payment, which is 1 at most. Proof: the law of the outcome is the D that makes
        E W(o) + (2 / epsilon) H(D) largest, W being the sum of all utilities and H the entropy. A payment is what all
        others together lose of that, theirs without her, less theirs with her. What is left to the agent is the whole
        of it, less a number that she cannot change, and no D has more of the whole than the one that the truth leads
        to.

    Parameters
    ----------
    utilities
        As for `dpfast.select_outcome`.
    epsilon
        Its budget: a number from 1e-18 to 1e6.
    outcomes
        As for `dpfast.select_outcome`.

    Returns
    -------
    numpy.ndarray
        A payment for each agent (float64), in the unit of the utilities.

    Raises
    ------
    ParameterError
        An argument is not as above.

    Notes
    -----
    With a = epsilon / 2 and S the sum of the others' utilities: (ln sum exp(a S) - ln sum exp(a W)) / a + E u, u being
    the agent's own.

    References
    ----------
    Huang, Kannan (2012), section 4. Dwork, Roth (2014), section 10.3.1.

    Examples
    --------
    >>> vcg_payments([[1.0, 0.0], [0.0, 0.4], [0.0, 0.5]], epsilon=1000.0).round(4) + 0.0
    array([0.9, 0. , 0. ])

    """
    array = read_utilities(utilities, OUTCOMES.read_optional("outcomes", outcomes))
    slope = float(Fraction(budget_units(epsilon, "epsilon"), 2 * UNITS_PER_ONE))
    sums = added_utilities(array)
    payments = np.empty(len(array))
    law, whole = _law_and_value(sums[None, :], slope)
    rows = max(1, 2**20 // array.shape[1])
    for start in range(0, len(array), rows):
        own = in_units(array[start : start + rows])
        _, others = _law_and_value(sums - own, slope)
        # Differences of whole numbers, before anything is rounded.
        payments[start : start + rows] = (others - whole) + (law * own).sum(axis=1) / UTILITY_UNITS
        payments[start : start + rows] += ((sums - own).max(axis=1) - sums.max()) / UTILITY_UNITS
    return np.clip(payments, 0.0, 1.0)


def _law_and_value(sums: NDArray[np.int64], slope: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the law of each row, and the most that it attains less the largest sum and (ln outcomes) / slope."""
    gaps = slope * ((sums - sums.max(axis=1, keepdims=True)) / UTILITY_UNITS)
    weights = np.exp(gaps)
    return weights / weights.sum(axis=1, keepdims=True), np.log1p(np.expm1(gaps).mean(axis=1)) / slope
