"""Whether an event is as private as its charge says: a ledger must not count less than what runs.

A ledger that adds up epsilons counts the charge, one that adds up rho or divergences the event. Where no theorem that
is known here says that the event costs no more than the charge, both are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpfast import accounting
from dpfast.accounting.accountants import basic
from dpfast.accounting.accountants.accountant import Accountant
from dpfast.accounting.events import Event, Partitioned, PoissonSubsampled, Single, runs
from dpfast.accounting.facts import FACTS
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, to_float
from dpfast.exact.elementary import Floats

__all__ = ["check_columns", "check_event"]

# A scale is a float, rounded once or twice on its way from an epsilon, and profiles are evaluated in floats.
_ROUNDED = 1.0 + 2.0**-49
_NEARLY = 1.0 + 1e-9
_BLOCK = 16_384


def check_event(event: Single, epsilon_units: int, delta_units: int) -> None:
    """Refuse an event that is not (epsilon, delta)-private, for amounts in units of 1e-18.

    Guarantee
        An event passes only if some theorem says that it is (epsilon, delta)-private, where its figure may be above
        the charge by the rounding of floats (a relative 1e-9 of delta, 2**-49 of epsilon): basic composition, a
        profile in closed form (`check_columns`), the conversions of zCDP and of Rényi divergences, or the privacy
        loss distribution.

        Of the last it is the lower bound that counts where the events' pairs are the losses of what the events
        allow: what it refuses does cost more, and what it lets pass costs at most a relative 5e-4 more. Of other
        events (the exponential mechanism, permute-and-flip, the selection of keys, and what is sampled of them) the
        pair is worse than the event, its lower bound says nothing of the event, and the upper bound counts.

    Raises
    ------
    ParameterError
        The event costs more, or its parameters are out of their ranges (unpickling goes around their check).

    Examples
    --------
    >>> from dpfast.accounting.events import Laplace
    >>> check_event(Laplace(1.0), 10**18, 0)
    >>> check_event(Laplace(1.0), 10**15, 0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    dpfast.errors.ParameterError: event must be one that is private at the epsilon 0.001 and delta 0 that are charged

    """
    if not _agrees(event, epsilon_units, delta_units):
        raise ParameterError(
            "event",
            event,
            f"one that is private at the epsilon {to_float(epsilon_units):g} and delta {to_float(delta_units):g} that "
            "are charged",
            "charge what it costs, or draw more noise",
        )


def _check_fields(event: Event) -> None:
    """Read all parameters again, since unpickling goes around their check."""
    replace(event)
    inner = event.events if isinstance(event, Partitioned) else ()
    for part in (event.event,) if isinstance(event, PoissonSubsampled) else inner:
        for single in runs(part):
            _check_fields(single)


@lru_cache(maxsize=4096)
def _agrees(event: Single, epsilon_units: int, delta_units: int) -> bool:
    _check_fields(event)
    if basic.Basic.applies(event):
        own_epsilon, own_delta = basic.cost(event)
        if own_epsilon <= epsilon_units * Fraction(_ROUNDED) + 1 and own_delta <= delta_units:
            return True
    if not delta_units:
        return False
    epsilon, allowed = Fraction(epsilon_units, UNITS_PER_ONE), Fraction(delta_units, UNITS_PER_ONE) * Fraction(_NEARLY)
    facts = FACTS[type(event)]
    if facts.profile is not None and facts.epsilons is not None:
        columns = [np.array([float(getattr(event, one.name))]) for one in fields(event)]
        with np.errstate(all="ignore"):
            delta = float(facts.profile(facts.epsilons(*columns), np.array([float(epsilon)]), *columns)[0])
        if not math.isnan(delta):
            return delta <= allowed
    return any(_own_delta(accountant, event, epsilon) <= allowed for accountant in _profiles())


def _own_delta(accountant: type[Accountant], event: Single, epsilon: Fraction) -> float:
    """Return what an accountant says of an event at an epsilon, rounded down where that is sound; 1 for nothing."""
    if not accountant.applies(event):
        return 1.0
    profile = accountant(event)
    lower = getattr(profile, "delta_lower", None) if _is_its_pair(event) else None
    return float((lower or profile.delta)(epsilon))


def _is_its_pair(event: Event) -> bool:
    """Return whether an event allows a mechanism, or is one, whose loss is that of its dominating pair."""
    if isinstance(event, Partitioned):
        return all(_is_its_pair(single) for part in event.events for single in runs(part))
    if isinstance(event, PoissonSubsampled):
        return all(FACTS[type(single)].loss_is == "its own" for single in runs(event.event))
    return FACTS[type(event)].loss_is != "a bound"


def _profiles() -> tuple[type[Accountant], ...]:
    # From the fastest to the tightest.
    return accounting.gdp, accounting.zcdp, accounting.rdp, accounting.pld


def check_columns(
    kind: type,
    parameters: dict[str, Floats],
    epsilon: Floats | None,
    delta: Floats | None,
) -> None:
    """Refuse columns of events of which one is not private at what its row is charged.

    Guarantee
        As for `check_event`, row by row, by the events' profiles in closed form: 1 - exp((epsilon - e)/2) for
        Laplace noise, the tails of discrete Laplace and of Gaussian noise, (exp(e/2) - exp(epsilon/2))**2 /
        (exp(e) - 1) for a bounded range e, and (exp(e) - exp(epsilon)) / (exp(e) + 1) for whatever is e-private.

    Raises
    ------
    ParameterError
        Some row's event costs more.

    """
    if epsilon is None:
        return
    columns, facts = list(parameters.values()), FACTS[kind]
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        if facts.epsilons is None or facts.profile is None:
            # Of these, ledgers take columns of Gaussian noise alone.
            rows = np.arange(epsilon.size) if delta is None else _gaussians_above(parameters, epsilon, delta)
        else:
            rows = _rows_above(facts.epsilons, columns, epsilon)
            if delta is not None and rows.size:
                some = [column[rows] for column in columns]
                above = ~(facts.profile(facts.epsilons(*some), epsilon[rows], *some) <= delta[rows] * _NEARLY)
                rows = rows[above]
    if rows.size:
        row = int(rows[0])
        given = ", ".join(f"{name} {float(column[row])!r}" for name, column in parameters.items())
        raise ParameterError(
            f"parameters[{row}]",
            Words(f"a {kind.__name__} of {given}"),
            f"such that its event is private at the epsilon {float(epsilon[row])!r} and delta "
            f"{0.0 if delta is None else float(delta[row])!r} that are charged",
            "charge what it costs, or draw more noise",
        )


def _rows_above(own: Callable[..., Floats], columns: list[Floats], epsilon: Floats) -> NDArray[np.int64]:
    """Return the rows whose event costs more than their epsilon, looked for in blocks that stay in the cache."""
    found = []
    for start in range(0, epsilon.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        above = own(*(column[block] for column in columns)) > epsilon[block] * _ROUNDED
        if above.any():
            found.append(start + np.flatnonzero(above))
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _gaussians_above(parameters: dict[str, Floats], epsilon: Floats, delta: Floats) -> NDArray[np.int64]:
    """Return the Gaussian events with a delta above the one charged: Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m)."""
    mean = parameters["sensitivity"] / parameters["scale"]
    if (epsilon == epsilon[0]).all() and (delta == delta[0]).all():
        # Of equal charges the event of the least noise decides for all: delta grows with the mean.
        worst = int(np.argmax(mean))
        if not _gaussians_above_each(mean[worst:][:1], epsilon[:1], delta[:1])[0]:
            return np.empty(0, np.int64)
    return np.flatnonzero(_gaussians_above_each(mean, epsilon, delta))


def _gaussians_above_each(mean: Floats, epsilon: Floats, delta: Floats) -> NDArray[np.bool_]:
    near, far = ((epsilon / mean + sign * mean / 2.0) / math.sqrt(2.0) for sign in (-1.0, 1.0))
    above, beside = (np.array(list(map(math.erfc, x.tolist()))) / 2.0 for x in (near, far))
    beside = np.where(beside > 0.0, np.exp(epsilon) * beside, 0.0)
    # The argument of erfc, x, is off by a few roundings of its two terms, which change the tail by 2x times as much.
    error = 2.0**-48 * (above + beside) * (1.0 + far * far)
    return np.asarray(above - beside - error > delta * _NEARLY)
