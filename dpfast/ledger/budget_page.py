"""What pages show of a budget: before a charge, the charge, and what is left."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from dpfast.accounting.budget import ShownAmounts
from dpfast.ledger.filters import Filter, Renyi
from dpfast.ledger.receipt import Receipt
from dpfast.ledger.shares import is_bounded, spent_share
from dpfast.pages.markup import Cell, Html, join, paragraph, scrolled, table
from dpfast.pages.page import Section
from dpfast.pages.promise import amount_text
from dpfast.showing import percent_above, percent_below

__all__ = ["amount_texts", "budget_section", "charged_at", "joined_amounts", "meter", "whole_of"]

_NAMES = {"epsilon": "epsilon", "rho": "rho", "divergence": "divergence", "order": "at order", "delta": "delta"}


def amount_texts(amounts: ShownAmounts) -> dict[str, str]:
    """Return the amounts that there are, by name."""
    return {said: amount_text(amounts, name) for name, said in _NAMES.items() if hasattr(amounts, name)}


def budget_section(receipt: Receipt | None) -> Section:
    """Return the section about a budget before and after a charge, as the ledger added it up in one step."""
    if receipt is None:
        return Section("Budget", [paragraph("This object has no receipt of a ledger.", "note")])
    rule = receipt.rule
    rows = {
        "The whole budget": whole_of(rule, receipt.after),
        "Spent before": rule.shown(receipt.before),
        "This release": rule.shown(receipt.cost),
        "Spent afterwards": rule.shown(receipt.after),
        "Left afterwards": rule.left(receipt.after),
    }
    if isinstance(rule, Renyi):
        # At the order that leaves most afterwards; other sums have orders of their own.
        shown_rows = ["The whole budget", "Left afterwards"]
    elif not is_bounded(rule):
        # What several releases spend together is less than their sum.
        shown_rows = ["Spent before", "Spent afterwards"]
    else:
        shown_rows = [name for name in rows if name != "Spent afterwards"]
    texts = {name: amount_texts(rows[name]) for name in shown_rows}
    headers = list(next(iter(texts.values())))
    shown = table(
        f"The budget when this was charged as entry {receipt.entry:,}",
        [Cell("part"), *(Cell(name, True) for name in headers)],
        [[Cell(name), *(Cell(held[header], True) for header in headers)] for name, held in texts.items()],
    )
    parts = [scrolled(shown, "Table: the budget")]
    before, after = (spent_share(rule, spent) for spent in (receipt.before, receipt.after))
    if math.isfinite(before) and math.isfinite(after):
        parts.insert(0, meter(before, after))
    if is_bounded(rule):
        whole = joined_amounts(amount_texts(rule.total))
        said = (
            f"All releases that are charged to this ledger together keep {whole}, by "
            f"the accountant “{rule.accountant}”: what would go beyond that is refused before any data is read."
        )
    else:
        said = "This ledger has no bound on epsilon. It says what all releases so far keep together, and refuses none."
    return Section("Budget", [*parts, paragraph(said, "note")])


def joined_amounts(texts: dict[str, str]) -> str:
    """Return amounts in a row."""
    return " and ".join(f"{name} {value}" for name, value in texts.items())


def whole_of(rule: Filter, spent: Sequence[int]) -> ShownAmounts:
    """Return the whole budget; of Rényi divergences, at the order that leaves most of it."""
    return rule.whole(spent) if isinstance(rule, Renyi) else rule.left(rule.nothing)


def meter(before: float, after: float) -> Html:
    """Return a bar of what was spent before, of what was charged now if anything was, and of what is left."""
    spent, charged, left = before, after - before, 1.0 - after
    if after == before:
        said = f"{percent_above(before)} of the budget is spent, {percent_below(left)} is left."
    else:
        said = (
            f"{percent_above(before)} of the budget was spent before, {percent_above(charged)} is charged here, "
            f"{percent_below(left)} is left."
        )
    drawn = Html(
        f'<svg class="meter" role="img" aria-label="{said}" width="100%" height="26">'
        f'<rect class="before" x="0" y="0" width="{100 * spent:.3f}%" height="100%"/>'
        f'<rect class="now" x="{100 * spent:.3f}%" y="0" width="{100 * charged:.3f}%" height="100%"/></svg>'
    )
    shown = percent_above(spent), percent_above(charged), percent_below(left)
    named = [("before", "Spent before", shown[0]), ("now", "This release", shown[1]), ("after", "Left", shown[2])]
    if after == before:
        named = [("before", "Spent", shown[0]), ("after", "Left", shown[2])]
    keys = [
        Html(f'<span class="item"><span class="key {kind}" aria-hidden="true"></span>{name} {part}</span> ')
        for kind, name, part in named
    ]
    return join([drawn, Html(f'<p class="keys">{join(keys)}</p>')])


def charged_at(receipt: Receipt) -> datetime.datetime:
    """Return when it was charged, by the machine's clock."""
    return datetime.datetime.fromtimestamp(receipt.time / 1e6, datetime.UTC)
