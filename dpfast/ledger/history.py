"""What a ledger tells: its entries as a frame, and what they amount to by every accountant that applies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.accountant import checked_delta
from dpfast.accounting.amounts import to_float
from dpfast.accounting.events import Event
from dpfast.ledger.account import Account, AnyItem, Entry
from dpfast.ledger.charges import Charge, ChargeColumns

__all__ = ["history", "report"]

_SCHEMA = pl.Schema(
    {
        "entry": pl.Int64(),
        "count": pl.Int64(),
        "time": pl.Datetime("us", "UTC"),
        "account": pl.String(),
        "epsilon": pl.Float64(),
        "delta": pl.Float64(),
        "event": pl.String(),
        "description": pl.String(),
    }
)
_REPORT_SCHEMA = {"accountant": pl.String, "epsilon": pl.Float64, "holds": pl.Boolean, "note": pl.String}

#: More distinct parameters than these are rounded to fewer before they are composed.
_MOST_DISTINCT = 1000
_KEPT_BITS = 10


def history(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return entries as a frame; amounts are sums over an entry's ``count`` charges."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA}
    for entry in entries:
        item = entry.item
        times = item.count if isinstance(item, Charge) else 1
        row = (
            entry.number,
            item.count,
            entry.time,
            entry.account,
            to_float(item.epsilon_units * times),
            to_float(item.delta_units * times),
            _event_name(item),
            item.description,
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    stored = {**_SCHEMA, "time": pl.Int64()}
    return pl.DataFrame(columns, schema=stored).cast({"time": _SCHEMA["time"]})


def _event_name(item: AnyItem) -> str | None:
    if isinstance(item, Charge):
        return None if item.event is None else repr(item.event)
    return item.kind.__name__ if isinstance(item, ChargeColumns) else item.event


def report(entries: Sequence[Entry], account: Account, delta: float | None) -> pl.DataFrame:
    """Return what the entries of an account amount to at a delta, by every accountant.

    Guarantee
        Where ``holds`` is true, all answers together are (epsilon, delta)-differentially private at that
        figure. It is true for the filter's own budget (row "budget", whose delta is the ledger's); for basic
        composition, whose sum bounds the loss at any time; and for the others only where a single call charged
        everything, so that no parameter was chosen after reading an answer (Rogers, Roth, Ullman, Vadhan 2016;
        Whitehouse, Ramdas, Rogers, Wu 2023): else their figures describe these parameters, and guarantee
        nothing.
    """
    total = account.filter.total
    at = to_float(account.filter.terms[1]) if delta is None else delta
    checked_delta(at)
    rows: list[tuple[str, float | None, bool, str]] = [
        ("budget", total.epsilon, True, f"the ledger's own bound, at delta {total.delta:g}, whatever is still asked")
    ]
    one_call = len({entry.call for entry in entries}) <= 1
    facts = _facts(entries) if entries else []
    for name, accountant in _accountants():
        always = name == "basic composition"
        if not facts or (at == 0 and not always) or not accountant.applies(facts):
            continue
        holds = one_call or always
        note = "" if holds else "no guarantee: charged in several calls, so parameters may depend on answers"
        rows.append((name, accountant(facts).epsilon(at), holds, note))
    return pl.DataFrame(rows, schema=_REPORT_SCHEMA, orient="row")


def _accountants() -> Iterable[tuple[str, Any]]:
    # Not at the top: a ledger that only charges does without them.
    from dpfast.accounting.advanced import Advanced
    from dpfast.accounting.basic import Basic
    from dpfast.accounting.gdp import GDP
    from dpfast.accounting.optimal import Optimal
    from dpfast.accounting.pld import PLD
    from dpfast.accounting.rdp import RDP
    from dpfast.accounting.zcdp import ZCDP

    yield "basic composition", Basic
    yield "advanced composition", Advanced
    yield "optimal composition", Optimal
    yield "Gaussian (GDP)", GDP
    yield "zCDP", ZCDP
    yield "Rényi (RDP)", RDP
    yield "privacy loss distribution", PLD


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
    columns = dict(item.parameters)
    table = np.stack(list(columns.values()), axis=1)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    if len(rows) > _MOST_DISTINCT:
        rounded = {
            name: _fewer_bits(column, up=name == "epsilon") if name != "sensitivity" else column
            for name, column in columns.items()
        }
        rows, counts = np.unique(np.stack(list(rounded.values()), axis=1), axis=0, return_counts=True)
    names = list(columns)
    return [
        item.kind(**{name: _plain(value) for name, value in zip(names, row, strict=True)}).times(int(count))
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
    ]


def _plain(value: float) -> float | int:
    return int(value) if value.is_integer() else value


def _fewer_bits(column: NDArray[np.float64], *, up: bool) -> NDArray[np.float64]:
    """Round to a mantissa of few bits toward more loss: a scale down, an epsilon up."""
    mantissa, exponent = np.frexp(column)
    few = mantissa * 2.0**_KEPT_BITS
    rounded: NDArray[np.float64] = np.ldexp(np.ceil(few) if up else np.floor(few), exponent - _KEPT_BITS)
    return rounded
