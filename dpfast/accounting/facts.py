"""What is known of each kind of event: one row each, which every accountant, the ledger and the exchange read.

A new event is its class in `dpfast.accounting.events`, there also in `Single`, and a row here. Accountants round what a
row says exactly, add it up, and refuse what has no place in their theorem: where a row says None. How events are put
together (`PoissonSubsampled`, `Partitioned`) is each accountant's own theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb

from dpfast.accounting.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    Gaussian,
    KeySelection,
    Laplace,
    Partitioned,
    PermuteAndFlip,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
    Repeated,
    ZeroConcentrated,
    runs,
)
from dpfast.accounting.formulas import curves, exchanges, pairs, profiles, rhos
from dpfast.accounting.formulas.exchanges import Exchange
from dpfast.accounting.formulas.transforms import BoundedRange, DiscreteLaplaces, Laplaces, Loss, Responses
from dpfast.exact.balls import as_written
from dpfast.exact.elementary import Floats
from dpfast.exact.units import Units, units_as_written, units_of_floats

__all__ = ["FACTS", "Facts", "for_add_remove_only"]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of one kind of event: functions of an event, or of columns of its fields; None for nothing."""

    #: Its epsilon and delta, exactly.
    epsilon: Callable[[Any], Fraction] | None = None
    delta: Callable[[Any], Fraction] | None = None
    #: Its epsilon of columns: nearly, and in units of 1e-18, never below the event's.
    epsilons: Callable[..., Floats] | None = None
    epsilon_units: Callable[..., Units] | None = None
    #: Where every Rényi divergence is the order times rho: that rho, exactly.
    concentrated: Callable[[Any], Fraction] | None = None
    #: Else, by its epsilon: rho, and the Rényi divergence D_a of (a, epsilon, event); None: as of whatever has one.
    rho: Callable[[arb], arb] | None = None
    curve: Callable[[arb, arb, Any], arb] | None = None
    #: Its rho of columns, off by less than a relative 2**-40.
    rhos: Callable[..., Floats] | None = None
    #: Of Gaussian noise alone: (sensitivity / scale)**2.
    squared_mean: Callable[[Any], Fraction] | None = None
    #: Its dominating pair: the transform of its loss, and on samples the pair itself, by side and fineness.
    loss: Callable[[Any], Loss] | None = None
    pair: Callable[[Any, pairs.Side, int], pairs.Pair] | None = None
    #: Whether finite pairs can stand for it on samples.
    sampled: Callable[[Any], bool] = lambda _: True
    #: Whether that loss is the mechanism's own, attained by some mechanism that the event allows, or only a bound.
    loss_is: Literal["its own", "attained", "a bound"] = "a bound"
    #: Its delta at an epsilon below its own, of columns: (own epsilon, epsilon, *fields).
    profile: Callable[..., Floats] | None = None
    #: Whether ledgers take columns of it.
    in_ledger_columns: bool = False
    #: Whether what it says holds for add/remove neighbours alone.
    add_remove_only: bool = False
    #: What it is called in `dp_accounting`.
    exchange: Exchange | None = None


def _ratio(event: Any) -> Fraction:
    return Fraction(event.sensitivity) / Fraction(event.scale)


def _quotients(scale: Floats, sensitivity: Floats) -> Floats:
    return sensitivity / scale


def _quotient_units(scale: Floats, sensitivity: Floats) -> Units:
    """Return quotients, off by less than a relative 2**-52, raised by 2**-51."""
    with np.errstate(over="ignore"):
        quotient = sensitivity / scale
    return units_of_floats(np.nextafter(quotient * (1.0 + 2.0**-51), np.inf), "scale")


def _discrete_laplace_loss(event: DiscreteLaplace) -> Loss:
    top = event.sensitivity / event.scale
    if event.sensitivity == 1:
        return Loss(Responses, (top, 0.0))
    return Loss(DiscreteLaplaces, (top, event.scale, float(event.sensitivity)))


def _steps_are_wide(event: Laplace | Gaussian) -> bool:
    return event.sensitivity / event.scale <= pairs.LARGEST_RATIO


def _costly(composed: Any, convert: Callable[[Any], Event]) -> Composed | None:
    """Return a composition of `dp_accounting` without what costs nothing."""
    parts = [part for part in composed.events if type(part).__name__ != "NoOpDpEvent"]
    return Composed(tuple(map(convert, parts))) if parts else None


_LAPLACE = Facts(
    epsilon=_ratio,
    epsilons=_quotients,
    epsilon_units=_quotient_units,
    rho=rhos.laplace,
    curve=lambda order, epsilon, _: curves.laplace(order, epsilon),
    rhos=lambda scale, sensitivity: rhos.laplace_column(sensitivity / scale),
    loss=lambda event: Loss(Laplaces, (event.sensitivity / event.scale,)),
    pair=lambda event, side, fineness: pairs.laplace_pair(event.sensitivity / event.scale, side, fineness),
    sampled=_steps_are_wide,
    loss_is="its own",
    profile=profiles.laplace,
    in_ledger_columns=True,
    exchange=Exchange(
        "LaplaceDpEvent",
        lambda event, _: (exchanges.multiplier_of(event),),
        lambda event, _: Laplace(event.noise_multiplier),
    ),
)
_DISCRETE_LAPLACE = Facts(
    epsilon=_ratio,
    epsilons=_quotients,
    epsilon_units=_quotient_units,
    rhos=lambda scale, sensitivity: rhos.pure_column(sensitivity / scale),
    loss=_discrete_laplace_loss,
    pair=lambda event, *_: pairs.discrete_pair(event.scale, event.sensitivity),
    sampled=lambda event: event.sensitivity <= pairs.LARGEST_DISCRETE,
    loss_is="its own",
    profile=profiles.discrete_laplace,
    in_ledger_columns=True,
    exchange=Exchange(
        "DiscreteLaplaceDpEvent",
        lambda event, _: (exchanges.parameter_of(event), event.sensitivity),
        lambda event, _: DiscreteLaplace(exchanges.scale_of(event.noise_parameter), event.sensitivity),
    ),
)
_GAUSSIAN = Facts(
    concentrated=lambda event: _ratio(event) ** 2 / 2,
    rhos=lambda scale, sensitivity: (sensitivity / scale) ** 2 / 2.0,
    squared_mean=lambda event: _ratio(event) ** 2,
    loss=lambda event: Loss(squared_mean=(event.sensitivity / event.scale) ** 2),
    sampled=_steps_are_wide,
    loss_is="its own",
    in_ledger_columns=True,
    exchange=Exchange(
        "GaussianDpEvent",
        lambda event, _: (exchanges.multiplier_of(event),),
        lambda event, _: Gaussian(event.noise_multiplier),
    ),
)
_PURE = Facts(
    epsilon=lambda event: as_written(event.epsilon),
    epsilons=lambda epsilon, *_: epsilon,
    epsilon_units=lambda epsilon, *_: units_as_written(epsilon, "epsilon"),
    rhos=lambda epsilon, *_: rhos.pure_column(epsilon),
    loss=lambda event: Loss(Responses, (event.epsilon, 0.0)),
    pair=lambda event, *_: pairs.response_pair(event.epsilon),
    loss_is="attained",
    profile=profiles.pure,
    in_ledger_columns=True,
)
_EXPONENTIAL_MECHANISM = replace(
    _PURE,
    rho=rhos.bounded_range,
    curve=lambda order, epsilon, _: curves.bounded_range(order, epsilon),
    rhos=rhos.bounded_range_column,
    loss=lambda event: Loss(BoundedRange, (event.epsilon,)),
    loss_is="a bound",
    profile=profiles.bounded_range,
)
_RANDOMIZED_RESPONSE = replace(
    _PURE,
    curve=lambda order, epsilon, event: curves.randomized_response(order, epsilon, event.categories),
    loss=lambda event: Loss(Responses, (event.epsilon, event.categories - 2.0)),
    pair=lambda event, *_: pairs.response_pair(event.epsilon, event.categories),
    loss_is="its own",
    profile=None,
    in_ledger_columns=False,
    exchange=Exchange(
        "RandomizedResponseDpEvent",
        lambda event, _: (exchanges.lie_of(event), event.categories),
        lambda event, _: RandomizedResponse(
            exchanges.odds_of(event.noise_parameter, event.num_buckets), event.num_buckets
        ),
    ),
)
_APPROXIMATE = replace(
    _PURE,
    delta=lambda event: as_written(event.delta),
    rhos=None,
    loss=lambda event: (
        Loss(Responses, (event.epsilon, 0.0), event.delta) if event.epsilon > 0.0 else Loss(failure=event.delta)
    ),
    pair=lambda event, *_: pairs.response_pair(event.epsilon, 2, event.delta),
    profile=None,
    in_ledger_columns=False,
)
_ZERO_CONCENTRATED = Facts(
    concentrated=lambda event: as_written(event.rho),
    rhos=lambda rho: rho,
    exchange=Exchange(
        "ZCDpEvent",
        lambda event, _: (event.rho,),
        lambda event, _: ZeroConcentrated(event.rho) if event.xi == 0 else None,
        said="ZCDp with xi 0",
    ),
)

#: Every kind of event and its row, in the order in which messages name them.
FACTS: dict[type, Facts] = {
    Laplace: _LAPLACE,
    DiscreteLaplace: _DISCRETE_LAPLACE,
    Gaussian: _GAUSSIAN,
    ExponentialMechanism: _EXPONENTIAL_MECHANISM,
    PermuteAndFlip: replace(_PURE, loss_is="a bound"),
    RandomizedResponse: _RANDOMIZED_RESPONSE,
    Pure: _PURE,
    Approximate: _APPROXIMATE,
    KeySelection: replace(_APPROXIMATE, loss_is="a bound"),
    ZeroConcentrated: _ZERO_CONCENTRATED,
    PoissonSubsampled: Facts(
        add_remove_only=True,
        exchange=Exchange(
            "PoissonSampledDpEvent",
            lambda event, convert: (event.rate, convert(event.event)),
            lambda event, convert: PoissonSubsampled(convert(event.event), event.sampling_probability),
        ),
    ),
    Partitioned: Facts(add_remove_only=True),
    Repeated: Facts(
        exchange=Exchange(
            "SelfComposedDpEvent",
            lambda event, convert: (convert(event.event), event.count),
            lambda event, convert: Repeated(convert(event.event), event.count),
        )
    ),
    Composed: Facts(
        exchange=Exchange("ComposedDpEvent", lambda event, convert: ([*map(convert, event.events)],), _costly)
    ),
}


def for_add_remove_only(event: Event) -> bool:
    """Return whether what an event says holds for add/remove neighbours alone: parts, or samples, are in it.

    Examples
    --------
    >>> for_add_remove_only(Partitioned((Laplace(10.0),))), for_add_remove_only(Laplace(10.0))
    (True, False)

    """
    if isinstance(event, (Repeated, Composed)):
        return any(map(for_add_remove_only, runs(event)))
    return FACTS[type(event)].add_remove_only
