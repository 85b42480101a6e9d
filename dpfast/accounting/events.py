"""What was done to the data, as frozen facts: the one language of ledgers, accountants and reports.

An event says which mechanism ran with which parameters, never what some accountant makes of it, so its meaning
does not change when a tighter theorem is found. Every event is for one privacy unit and one neighbour relation,
which the ledger knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args, get_type_hints

from dpfast.errors import ParameterError
from dpfast.showing import Shown

__all__ = [
    "Approximate",
    "Composed",
    "DiscreteLaplace",
    "Event",
    "ExponentialMechanism",
    "Gaussian",
    "KeySelection",
    "Laplace",
    "Partitioned",
    "PermuteAndFlip",
    "PoissonSubsampled",
    "Pure",
    "RandomizedResponse",
    "Repeated",
    "Single",
    "ZeroConcentrated",
    "runs",
]


class _Field(NamedTuple):
    """What a field may be. Without `dpfast.arguments`, which needs NumPy: events alone are imported fast."""

    allowed: str
    convert: Callable[[Any], float]
    holds: Callable[[float], bool]

    @property
    def reads(self) -> str:
        """What a number must have: bytes and their like have no ``__float__``, and are read as text."""
        return "__index__" if self.convert is index else "__float__"


Positive: TypeAlias = Annotated[float, _Field("a positive finite number", float, lambda x: 0.0 < x < math.inf)]
BelowOne: TypeAlias = Annotated[float, _Field("a number above 0 and below 1", float, lambda x: 0.0 < x < 1.0)]
Count: TypeAlias = Annotated[int, _Field("a whole number of at least 1", index, lambda x: x >= 1)]
NotNegative: TypeAlias = Annotated[float, _Field("a finite number of at least 0", float, lambda x: 0.0 <= x < math.inf)]
Rate: TypeAlias = Annotated[float, _Field("a number above 0 and at most 1", float, lambda x: 0.0 < x <= 1.0)]
Answers: TypeAlias = Annotated[int, _Field("a whole number of at least 2", index, lambda x: x >= 2)]


@cache
def _fields(kind: type) -> tuple[tuple[str, _Field], ...]:
    hints = get_type_hints(kind, include_extras=True)
    beside = ((name, part) for name, hint in hints.items() for part in getattr(hint, "__metadata__", ()))
    return tuple((name, part) for name, part in beside if isinstance(part, _Field))


class _Fact(Shown):
    """What every event can do."""

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, field in _fields(kind):
            given = getattr(self, name)
            number = math.nan
            if hasattr(type(given), field.reads) and not isinstance(given, (bool, str, bytes)):
                with suppress(TypeError, ValueError, OverflowError):
                    number = field.convert(given)
            # What is rounded to 0 is not 0.
            if not field.holds(number) or (number == 0 and given != 0):
                raise ParameterError(name, given, field.allowed)
            object.__setattr__(self, name, number)

    def times(self, count: int) -> Repeated:
        """Return this event, ``count`` times."""
        return Repeated(self, count)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Laplace(_Fact):
    """Noise of the continuous Laplace distribution, added to a statistic of L1 ``sensitivity``.

    Whatever is computed from the noisy real numbers, rounding among it, is post-processing: floats released by
    `dpfast.laplace`, and integers under wide noise, are this event. Integers under narrow noise are
    `DiscreteLaplace`, which composes worse.
    """

    scale: Positive
    sensitivity: Positive = 1.0


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(_Fact):
    """Integer noise with P(k) proportional to exp(-abs(k) / scale), on integers of L1 ``sensitivity``.

    The geometric mechanism (Ghosh, Roughgarden, Sundararajan 2009).
    """

    scale: Positive
    sensitivity: Count = 1


@dataclass(frozen=True, slots=True)
class Gaussian(_Fact):
    """Noise of standard deviation ``scale`` on a statistic of L2 ``sensitivity``; rounding is post-processing."""

    scale: Positive
    sensitivity: Positive = 1.0


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(_Fact):
    """The exponential mechanism at ``epsilon``, its winner's index alone released: bounded range epsilon."""

    epsilon: Positive


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(_Fact):
    """Permute-and-flip at ``epsilon`` (McKenna, Sheldon 2020): pure, with no bounded-range discount."""

    epsilon: Positive


@dataclass(frozen=True, slots=True)
class RandomizedResponse(_Fact):
    """The truth kept with odds exp(epsilon) against each other one of ``categories`` answers."""

    epsilon: Positive
    categories: Answers = 2


@dataclass(frozen=True, slots=True)
class Pure(_Fact):
    """Anything that is (epsilon, 0)-differentially private."""

    epsilon: Positive


@dataclass(frozen=True, slots=True)
class Approximate(_Fact):
    """Anything that is (epsilon, delta)-differentially private; epsilon may be 0."""

    epsilon: NotNegative
    delta: BelowOne


@dataclass(frozen=True, slots=True)
class KeySelection(_Fact):
    """Private selection of the keys of a histogram: (epsilon, delta) together over all keys of one unit."""

    epsilon: Positive
    delta: BelowOne


@dataclass(frozen=True, slots=True)
class ZeroConcentrated(_Fact):
    """Anything that is rho-zCDP (Bun, Steinke 2016)."""

    rho: Positive


@dataclass(frozen=True, slots=True)
class PoissonSubsampled(_Fact):
    """An event on a sample to which every unit belongs with probability ``rate``, apart from the others.

    For add/remove neighbours. It does not hold against anyone who sees which units were sampled.
    """

    event: Event
    rate: Rate

    def __post_init__(self) -> None:
        _check_events((self.event,), "event")
        _Fact.__post_init__(self)


@dataclass(frozen=True, slots=True)
class Repeated(_Fact):
    """One event, ``count`` times, each with fresh noise: a million equal queries are one such fact."""

    event: Event
    count: Count

    def __post_init__(self) -> None:
        _check_events((self.event,), "event")
        _Fact.__post_init__(self)


@dataclass(frozen=True, slots=True)
class Composed(_Fact):
    """Several events on the same data, in any order."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _check_events(self.events, "events"))


@dataclass(frozen=True, slots=True)
class Partitioned(_Fact):
    """Events on disjoint parts of the data, one each.

    Every unit lies in one part, and adding or removing it touches no other: the list of parts is public and
    neighbours are add/remove.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _check_events(self.events, "events"))


#: One run of one mechanism: what accountants have a formula for.
Single = (
    Laplace
    | DiscreteLaplace
    | Gaussian
    | ExponentialMechanism
    | PermuteAndFlip
    | RandomizedResponse
    | Pure
    | Approximate
    | KeySelection
    | ZeroConcentrated
    | PoissonSubsampled
    | Partitioned
)
Event = Single | Repeated | Composed
_EVENTS = (*get_args(Single), Repeated, Composed)


def _check_events(events: object, argument: str) -> tuple[Event, ...]:
    """Return one event or more as a tuple, or refuse what is none."""
    allowed = "one event or more, for example dpfast.accounting.events.Laplace(scale=2.0)"
    listed: tuple[Any, ...]
    try:
        listed = tuple(events)  # type: ignore[arg-type]
    except TypeError:
        listed = ()
    if not listed:
        raise ParameterError(argument, events, allowed)
    for event in listed:
        if type(event) not in _EVENTS:
            raise ParameterError(argument, event, allowed)
    return listed


def runs(events: Event | Iterable[Event]) -> dict[Single, int]:
    """Return how often each single mechanism ran: equal events merged, compositions opened.

    Guarantee
        Composition is commutative for every accountant here, so order does not matter and nothing is lost.

    Parameters
    ----------
    events
        An event, or one or more events in any iterable; an empty tuple for none.

    Returns
    -------
    dict
        Single event -> number of runs, in the order of first appearance.

    Raises
    ------
    ParameterError
        Something is no event.

    Examples
    --------
    >>> tenth = Laplace(scale=10.0)
    >>> runs([tenth, Composed((tenth.times(3), Gaussian(2.0)))])
    {Laplace(scale=10.0, sensitivity=1.0): 4, Gaussian(scale=2.0, sensitivity=1.0): 1}

    """
    if isinstance(events, _EVENTS):
        events = (events,)
    listed = () if type(events) is tuple and not events else _check_events(events, "events")
    counts: dict[Single, int] = {}

    def count(event: Event, times: int) -> None:
        if isinstance(event, Repeated):
            count(event.event, times * event.count)
        elif isinstance(event, Composed):
            for part in event.events:
                count(part, times)
        else:
            counts[event] = counts.get(event, 0) + times

    for event in listed:
        count(event, 1)
    return counts
