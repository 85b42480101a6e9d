"""A share of the budget -> the most common values: the noise of their counts, and a threshold where one is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Approximate
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.errors import ParameterError
from dpfast.exact.balls import as_written, written_below
from dpfast.ledger import Charge
from dpfast.mechanisms.keys.thresholds import least_threshold
from dpfast.queries import Measure
from dpfast.releases.choosing_keys import divided_delta
from dpfast.releases.measure_noise import noise_of
from dpfast.releases.planned_queries import Mechanism
from dpfast.releases.ranked_values import DrawnValues, lonely_pairs

__all__ = ["values_of"]

_MISSED = 0.05
_NO_DELTA = "above 0 where values are found in the data"
_GIVE_DELTA = "write for example delta=1e-7, or give candidates="


def values_of(
    measure: Measure, unit: PrivacyUnit, share: Budget, kinds: Sequence[Mechanism], description: str, winners: int
) -> DrawnValues:
    """Return the most common values at a share of the budget, by the noise of the least predicted error.

    Guarantee
        The noise's event and, where values are found in the data, a delta at epsilon 0 beside it are true of all that
        is shown (`dpfast.releases.ranked_values`), and cost the share at most.

    Parameters
    ----------
    measure, unit
        What is counted, for whom.
    share
        What is spent; its delta is divided between Gaussian noise and the threshold.
    kinds
        The noise that may be used.
    description
        For the ledger.
    winners
        How many values of a group are shown at most.

    """
    if not share.delta_units and measure.kind == "found":
        raise ParameterError("delta", 0.0, _NO_DELTA, _GIVE_DELTA)
    found: list[DrawnValues] = []
    refused: list[ParameterError] = []
    for kind in kinds:
        try:
            found.append(_with_noise(measure, unit, share, kind, description, winners))
        except ParameterError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return min(found, key=_predicted_error)


def _predicted_error(part: DrawnValues) -> float:
    """Return the deviation of the noise, or from how many rows on a value found is shown with probability 0.95.

    A threshold alone would prefer noise that is twice as wide for a few rows less.
    """
    if part.threshold is None:
        return part.noise.deviation
    return part.threshold + part.noise.half_width(2 * _MISSED)


def _with_noise(
    measure: Measure, unit: PrivacyUnit, share: Budget, kind: Mechanism, description: str, winners: int
) -> DrawnValues:
    moved = measure.sensitivity(unit)
    if measure.kind != "found":
        own = share if kind == "gaussian" and share.kind == "epsilon" else replace(share, delta_units=0)
        noise, charge = noise_of(own, kind, moved.l1, moved.l2_squared, description)
        return DrawnValues(measure, unit, noise, charge, winners)
    of_noise, of_threshold = 0, share.delta_units
    if kind == "gaussian" and share.kind == "epsilon":
        of_noise, of_threshold = divided_delta(share.units, share.delta_units, unit.max_groups)
    delta = written_below(of_threshold)
    if not delta > 0:
        raise ParameterError("delta", delta, _NO_DELTA, _GIVE_DELTA)
    noise, charge = noise_of(Budget(share.kind, share.units, of_noise), kind, moved.l1, moved.l2_squared, description)
    threshold = least_threshold(noise, lonely_pairs(unit), as_written(delta))
    alone = Charge(0, of_threshold, f"{description}: values of one unit alone", Approximate(0.0, delta))
    return DrawnValues(measure, unit, noise, charge, winners, threshold, alone)
