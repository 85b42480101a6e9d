"""A ledger's entries as a frame, and what they amount to by every accountant that applies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast import accounting
from dpfast.accounting.accountants.accountant import checked_delta
from dpfast.accounting.events import Event
from dpfast.accounting.work import TooMuchWork, at_most
from dpfast.arguments import Choice, Real, Special, no_numbers
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, to_float
from dpfast.exact.balls import round_up_written
from dpfast.ledger.account import Account, AnyItem, Entry
from dpfast.ledger.charges import Charge, ChargeColumns
from dpfast.ledger.costs import plain_amounts

__all__ = ["Accountants", "ReportDelta", "history", "report"]

#: The names of accountants.
Accountants: TypeAlias = Annotated[
    Iterable[str] | None,
    Special(
        lambda: (5, True, 0.5, "none such", b"zCDP", ["none such"], [5], [["zCDP"]], object(), {"a": 1}), optional=True
    ),
]
#: Where to read the accountants' curves.
ReportDelta: TypeAlias = Annotated[
    Real | None, Special(lambda: (*no_numbers(), [0.5], -1, -1e-9, 1, 1.5), optional=True)
]

_SCHEMA = dict.fromkeys(("entry", "count", "time"), pl.Int64) | {
    "account": pl.String,
    "epsilon": pl.Float64,
    "delta": pl.Float64,
    "event": pl.String,
    "description": pl.String,
}
_REPORT_SCHEMA = {"accountant": pl.String, "epsilon": pl.Float64, "holds": pl.Boolean, "note": pl.String}

#: What an accountant may take of a report that does not ask for it by name: about a second in all.
_WORK, _MOST_WORK = 5e6, {"privacy loss distribution": 2.5e7}
_ADAPTIVE_DELTAS = (
    "no guarantee: charged in several calls at a delta below what events may have, so deltas may depend on answers"
)
_UNDERSTATED = (
    "no guarantee: an earlier dpfast recorded a charge of less than its event costs, and this adds charges up"
)

#: More distinct parameters than these are rounded to fewer before they are composed.
_MOST_DISTINCT = 1000
_KEPT_BITS = 10


def history(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return entries as a frame; amounts are sums over an entry's ``count`` charges."""
    rows = []
    for entry in entries:
        item = entry.item
        times = item.count if isinstance(item, Charge) else 1
        epsilon, delta = to_float(item.epsilon_units * times), to_float(item.delta_units * times)
        about = (entry.number, item.count, entry.time, entry.account)
        rows.append((*about, epsilon, delta, _event_name(item), item.description))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").cast({"time": pl.Datetime("us", "UTC")})


def _event_name(item: AnyItem) -> str | None:
    if isinstance(item, Charge):
        return None if item.event is None else repr(item.event)
    return item.kind.__name__ if isinstance(item, ChargeColumns) else item.event


def report(
    entries: Sequence[Entry], account: Account, delta: Real | None, accountants: Iterable[str] | None = None
) -> pl.DataFrame:
    """Return what the entries of an account amount to at a delta, by every accountant.

    Guarantee
        Where ``holds`` is true, all answers together are (epsilon, delta)-differentially private at that
        figure. It is true for the filter's own budget (row "budget", whose delta is the ledger's), unless an
        earlier dpfast recorded a charge of less than its event costs where charges are added up. It is true for
        basic composition, whose sum of epsilons bounds the loss at any time apart from the events' deltas: if a
        single call charged everything, or at a delta that is at least what these deltas may come to, whatever is
        asked (the sum on the path taken does not bound what an analyst expected to spend who chose deltas by the
        answers). It is true for the others only where a single call charged everything, so that no parameter was
        chosen after reading an answer (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers, Wu 2023): else
        their figures describe these parameters, and guarantee nothing.

        No row says more than basic composition, whose sums are exact: a budget that is wholly spent is no more
        than spent.
    """
    rule = account.filter
    total = rule.total
    at = Fraction(rule.terms[1], UNITS_PER_ONE) if delta is None else checked_delta(delta)
    agree = all(_agrees(entry.item) for entry in entries)
    note = f"the ledger's own bound, at delta {total.text('delta')}, whatever is still asked"
    if not agree and rule.accountant == "basic":
        note = _UNDERSTATED
    rows: list[tuple[str, float | None, bool, str]] = [("budget", total.epsilon, note != _UNDERSTATED, note)]
    one_call = len({entry.call for entry in entries}) <= 1
    facts = _facts(entries) if entries else []
    sums = _plain_sums(entries, rule.accountant) if facts and agree else None
    plain = math.inf
    if sums is not None:
        within = sums[1] <= at * UNITS_PER_ONE
        plain = round_up_written(Fraction(sums[0], UNITS_PER_ONE)) if within else math.inf
        holds = one_call or at * UNITS_PER_ONE >= rule.event_delta_units
        rows.append(("basic composition", plain, holds, "" if holds else _ADAPTIVE_DELTAS))
    asked = None if accountants is None else _asked(accountants)
    for name, accountant in _accountants():
        if not facts or at == 0 or (asked is not None and name not in asked):
            continue
        try:
            with nullcontext() if asked is not None else at_most(_MOST_WORK.get(name, _WORK)):
                if not accountant.applies(facts):
                    continue
                figure = accountant(facts).epsilon(at)
        except TooMuchWork:
            rows.append((name, None, False, f"left out, for it takes long: ask by report(accountants=[{name!r}])"))
            continue
        note = "" if one_call else "no guarantee: charged in several calls, so parameters may depend on answers"
        rows.append((name, min(figure, plain), one_call, note))
    return pl.DataFrame(rows, schema=_REPORT_SCHEMA, orient="row")


def _agrees(item: AnyItem) -> bool:
    """Return whether an entry's events cost no more than was charged for them."""
    try:
        if isinstance(item, (Charge, ChargeColumns)):
            item.check()
    except ParameterError:
        return False
    return True


def _asked(accountants: Iterable[str]) -> set[str]:
    """Return the names of accountants that were asked for, or refuse them."""
    known = Choice(tuple(name for name, _ in _accountants()))
    single = isinstance(accountants, str) or not isinstance(accountants, Iterable)
    names: list[Any] = [accountants] if single else list(accountants)
    return {known.read("accountants", name) for name in names}


def _plain_sums(entries: Iterable[Entry], accountant: str) -> tuple[int, int] | None:
    """Return the exact sums of epsilon and delta, in units of 1e-18; None where something has no epsilon.

    An event with an epsilon of its own counts for that; any other, in a ledger that adds up epsilons, for what it was
    charged.
    """
    sums = 0, 0
    for entry in entries:
        if isinstance(entry.item, (Charge, ChargeColumns)):
            amounts = plain_amounts(entry.item)
            if amounts is None:
                if accountant != "basic":
                    return None
                amounts = entry.cost[0], entry.cost[1]
            sums = sums[0] + amounts[0], sums[1] + amounts[1]
    return sums


def _accountants() -> Iterable[tuple[str, Any]]:
    yield "advanced composition", accounting.advanced
    yield "optimal composition", accounting.optimal
    yield "Gaussian (GDP)", accounting.gdp
    yield "zCDP", accounting.zcdp
    yield "Rényi (RDP)", accounting.rdp
    yield "privacy loss distribution", accounting.pld


def _facts(entries: Iterable[Entry]) -> list[Event]:
    facts: list[Event] = []
    for entry in entries:
        item = entry.item
        if isinstance(item, Charge):
            facts.append(item.fact.times(item.count))
        elif isinstance(item, ChargeColumns):
            facts += _distinct(item)
    return facts


def _distinct(item: ChargeColumns) -> list[Event]:
    """Return the events of columns with their counts, noise rounded down where they are too many."""
    columns = item.parameters
    rows, counts = np.unique(np.stack(list(columns.values()), axis=1), axis=0, return_counts=True)
    if len(rows) > _MOST_DISTINCT:
        rounded = [
            column if name == "sensitivity" else _fewer_bits(column, up=name == "epsilon")
            for name, column in columns.items()
        ]
        rows, counts = np.unique(np.stack(rounded, axis=1), axis=0, return_counts=True)
    return [item.event_of(row).times(count) for row, count in zip(rows.tolist(), counts.tolist(), strict=True)]


def _fewer_bits(column: NDArray[np.float64], *, up: bool) -> NDArray[np.float64]:
    """Round to a mantissa of few bits toward more loss: a scale down, an epsilon up."""
    mantissa, exponent = np.frexp(column)
    few = mantissa * 2.0**_KEPT_BITS
    rounded: NDArray[np.float64] = np.ldexp(np.ceil(few) if up else np.floor(few), exponent - _KEPT_BITS)
    return rounded
