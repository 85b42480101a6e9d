"""Events to and from `dp_accounting`, Google's library of accountants (the extra ``dpfast[dp-accounting]``).

Its events say what ours say in ratios of noise to sensitivity. Where such a ratio is no float it is rounded to
the side of less noise, so that what the other library reports stays an upper bound. What only one side can
express is refused, never replaced by something near.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np

from dpfast.accounting.events import Event, Laplace
from dpfast.accounting.facts import FACTS
from dpfast.arguments import Special
from dpfast.errors import DpfastError, ParameterError

__all__ = ["from_dp_accounting", "to_dp_accounting"]

_EXCHANGES = {kind.__name__: facts.exchange for kind, facts in FACTS.items() if facts.exchange is not None}
_OURS = f"an event that both libraries express ({', '.join(_EXCHANGES)})"
*_FIRST, _LAST = (one.said or one.name.removesuffix("DpEvent") for one in _EXCHANGES.values())
_THEIRS = f"a dp_accounting event that both libraries express: {', '.join(_FIRST)} or {_LAST}"


class DpEvent(Protocol):
    """A `dp_accounting.DpEvent`, whose package need not be installed."""

    def to_named_tuple(self) -> Any: ...


_NO_EVENTS: tuple[object, ...] = (5, True, "text", [], {}, object(), Laplace, [Laplace(1.0)], np.array(5))
OneEvent: TypeAlias = Annotated[Event, Special(lambda: _NO_EVENTS)]
OneDpEvent: TypeAlias = Annotated[DpEvent, Special(lambda: (*_NO_EVENTS, Laplace(1.0)))]


def _library() -> ModuleType:
    try:
        return importlib.import_module("dp_accounting.dp_event")
    except ImportError:
        raise DpfastError("dp_accounting is not installed; install dpfast[dp-accounting]") from None


def to_dp_accounting(event: OneEvent) -> DpEvent:
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
    >>> import dpfast as dpf
    >>> dpf.accounting.to_dp_accounting(dpf.accounting.events.Laplace(scale=10.0, sensitivity=5.0).times(3))
    SelfComposedDpEvent(event=LaplaceDpEvent(noise_multiplier=2.0), count=3)

    """
    theirs = _library()
    exchange = FACTS[type(event)].exchange if type(event) in FACTS else None
    if exchange is None:
        raise ParameterError("event", event, _OURS, f"dp_accounting has no {type(event).__name__}")
    made: DpEvent = getattr(theirs, exchange.name)(*exchange.there(event, to_dp_accounting))
    return made


def from_dp_accounting(event: OneDpEvent) -> Event:
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
    >>> import dpfast as dpf
    >>> dpf.accounting.from_dp_accounting(dp_accounting.LaplaceDpEvent(2.0))
    Laplace(scale=2.0, sensitivity=1.0)

    """
    theirs = _library()
    for exchange in _EXCHANGES.values():
        if isinstance(event, getattr(theirs, exchange.name)):
            ours = exchange.back(event, from_dp_accounting)
            if ours is not None:
                return ours
    raise ParameterError("event", event, _THEIRS, "leave out what costs nothing, and account for the rest there")
