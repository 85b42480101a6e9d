"""Events to and from `dp_accounting`, Google's library of accountants (the extra ``dpfast[dp-accounting]``).

Its events say what ours say in ratios of noise to sensitivity. Where such a ratio is no float it is rounded to
the side of less noise, so that what the other library reports stays an upper bound. What only one side can
express is refused, never replaced by something near.
"""

from __future__ import annotations

import importlib
import math
import sys
from fractions import Fraction
from types import ModuleType
from typing import Any

from dpfast.accounting.events import (
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Repeated,
    ZeroConcentrated,
)
from dpfast.errors import DpfastError, ParameterError
from dpfast.exact.balls import as_written, ball, exact_lower, float_above, round_down, round_up, working_precision

__all__ = ["from_dp_accounting", "to_dp_accounting"]

_EXPRESSED = "an event that both libraries express (Laplace, DiscreteLaplace, Gaussian, RandomizedResponse, "
_OURS = _EXPRESSED + "ZeroConcentrated, PoissonSubsampled, Repeated, Composed)"
_THEIRS = "a dp_accounting event that both libraries express: Laplace, DiscreteLaplace, Gaussian, RandomizedResponse, "
_THEIRS += "ZCDp with xi 0, PoissonSampled, SelfComposed or Composed"


def _library() -> ModuleType:
    try:
        return importlib.import_module("dp_accounting.dp_event")
    except ImportError:
        raise DpfastError("dp_accounting is not installed; install dpfast[dp-accounting]") from None


def to_dp_accounting(event: Event) -> Any:
    """Return the `dp_accounting.DpEvent` that says what an event says.

    Guarantee
        The event returned is ours, or the same mechanism with less noise by one rounding of a float: what
        bounds its loss bounds ours. What their accountants make of it is theirs: `PLDAccountant` of 0.6.0
        counts a repeated `RandomizedResponse` once. Its neighbours must be the ones ours is for;
        `dp_accounting` calls them ADD_OR_REMOVE_ONE, REPLACE_ONE and REPLACE_SPECIAL.

    Parameters
    ----------
    event
        An event; of `Laplace` and `Gaussian` only scale / sensitivity arrives.

    Raises
    ------
    ParameterError
        `dp_accounting` has no such event: `Pure`, `Approximate`, `KeySelection`, `ExponentialMechanism`,
        `PermuteAndFlip` and `Partitioned`.
    DpfastError
        `dp_accounting` is not installed.

    Examples
    --------
    >>> to_dp_accounting(Laplace(scale=10.0, sensitivity=5.0).times(3))
    SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=2.0), count=3)

    """
    theirs = _library()
    match event:
        case Laplace():
            return theirs.LaplaceDpEvent(_multiplier(event))
        case Gaussian():
            return theirs.GaussianDpEvent(_multiplier(event))
        case DiscreteLaplace():
            return theirs.DiscreteLaplaceDpEvent(round_up(1 / Fraction(event.scale)), event.sensitivity)
        case RandomizedResponse():
            return theirs.RandomizedResponseDpEvent(_lie(event), event.categories)
        case ZeroConcentrated():
            return theirs.ZCDpEvent(event.rho)
        case PoissonSubsampled():
            return theirs.PoissonSampledDpEvent(event.rate, to_dp_accounting(event.event))
        case Repeated():
            return theirs.SelfComposedDpEvent(to_dp_accounting(event.event), event.count)
        case Composed():
            return theirs.ComposedDpEvent([to_dp_accounting(part) for part in event.events])
        case _:
            raise ParameterError("event", event, _OURS, f"dp_accounting has no {type(event).__name__}")


def _multiplier(event: Laplace | Gaussian) -> float:
    ratio = round_down(Fraction(event.scale) / Fraction(event.sensitivity))
    if not 0.0 < ratio < sys.float_info.max:
        raise ParameterError("event", ratio, "of a scale / sensitivity that a float can hold")
    return ratio


def _lie(event: RandomizedResponse) -> float:
    """Return the probability of a uniform answer, k / (exp(epsilon) + k - 1), rounded down."""
    with working_precision():
        k = event.categories
        lie = round_down(exact_lower(k / (ball(as_written(event.epsilon)).exp() + (k - 1))))
    if lie <= 0.0:
        raise ParameterError("event", event.epsilon, "of an epsilon below 700, so that some answers are lies")
    return lie


def from_dp_accounting(event: Any) -> Event:
    """Return the event that says what a `dp_accounting.DpEvent` says.

    Guarantee
        The event returned is the same, or the same mechanism with less noise by one rounding of a float. Its
        neighbours are the ones the other was for; `PoissonSubsampled` is for add/remove only.

    Parameters
    ----------
    event
        A `DpEvent`. One without privacy cost is left out of a composition, and refused alone.

    Raises
    ------
    ParameterError
        Ours have no such event, or its parameters are out of range (no noise at all, say).
    DpfastError
        `dp_accounting` is not installed.

    Examples
    --------
    >>> import dp_accounting
    >>> from_dp_accounting(dp_accounting.LaplaceDpEvent(2.0))
    Laplace(scale=2.0, sensitivity=1.0)

    """
    theirs = _library()
    match event:
        case theirs.LaplaceDpEvent():
            return Laplace(event.noise_multiplier)
        case theirs.GaussianDpEvent():
            return Gaussian(event.noise_multiplier)
        case theirs.DiscreteLaplaceDpEvent():
            return DiscreteLaplace(_reciprocal(event.noise_parameter), event.sensitivity)
        case theirs.RandomizedResponseDpEvent():
            return RandomizedResponse(_odds(event.noise_parameter, event.num_buckets), event.num_buckets)
        case theirs.ZCDpEvent() if event.xi == 0:
            return ZeroConcentrated(event.rho)
        case theirs.PoissonSampledDpEvent():
            return PoissonSubsampled(from_dp_accounting(event.event), event.sampling_probability)
        case theirs.SelfComposedDpEvent():
            return Repeated(from_dp_accounting(event.event), event.count)
        case theirs.ComposedDpEvent():
            costly = [part for part in event.events if not isinstance(part, theirs.NoOpDpEvent)]
            if costly:
                return Composed(tuple(from_dp_accounting(part) for part in costly))
    raise ParameterError("event", event, _THEIRS, "leave out what costs nothing, and account for the rest there")


def _reciprocal(parameter: float) -> float:
    """Return the scale 1 / parameter, rounded down."""
    if not 0.0 < parameter < math.inf:
        raise ParameterError("noise_parameter", parameter, "above 0 and finite")
    return round_down(1 / Fraction(float(parameter)))


def _odds(lie: float, categories: int) -> float:
    """Return epsilon = ln(1 + k (1 - p) / p) at the probability p of a uniform answer, rounded up."""
    if not 0.0 < lie < 1.0:
        raise ParameterError("noise_parameter", lie, "above 0 and below 1")
    with working_precision():
        p = ball(lie)
        return float_above((categories * (1 - p) / p).log1p())
