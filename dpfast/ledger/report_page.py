"""The page about a ledger: what its budget promises, what was charged, and what is left."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence

import polars as pl

from dpfast.accounting.budget import amount_text
from dpfast.charts.text import shortened
from dpfast.ledger.account import Account, Entry
from dpfast.ledger.budget_page import amount_texts, joined_amounts, meter, whole_of
from dpfast.ledger.burn_down import burn_down
from dpfast.ledger.filters import Renyi
from dpfast.ledger.shares import is_bounded, spent_share
from dpfast.pages.across import falling
from dpfast.pages.facts import promise_section, unit_words, versions_section
from dpfast.pages.frames import frame_table
from dpfast.pages.markup import Cell, Html, bullets, definitions, figure, paragraph, scrolled, table
from dpfast.pages.page import Page, Section
from dpfast.showing import number_of, percent_above, percent_below

__all__ = ["page_of_ledger"]


def page_of_ledger(
    account: Account,
    entries: Sequence[Entry],
    history: pl.DataFrame,
    report: pl.DataFrame,
    head: str | None,
    name: str,
) -> Page:
    """Return the page.

    Parameters
    ----------
    account
        The state of the account.
    entries
        Its own entries.
    history, report
        The frames of all entries, and of every accountant.
    head
        The digest of all entries, if there is one.
    name
        The allotment's; empty for the whole ledger.

    """
    about = account.identity
    dataset = "data that no release has named yet" if about.dataset is None else f"“{shortened(about.dataset, 100)}”"
    title = f"Privacy budget of {dataset}" + (f": {shortened(name, 60)}" if name else "")
    sections = [
        Section("What is spent, and what is left", _spent(account, entries)),
        _promised(account),
        Section("What was charged", _charged(history)),
        Section("The same, by every accountant", _accountants(report)),
        Section("This ledger", [definitions(_facts(account, head), "facts")]),
        versions_section(),
    ]
    lead = "Every release from these data is paid for from this budget, before any data is read."
    if is_bounded(account.filter):
        lead += " What it does not cover is refused."
    moment = datetime.datetime.now(datetime.UTC)
    return Page(
        "Ledger", title, [paragraph(lead, "lead"), definitions(_tiles(account, history), "tiles")], moment, sections
    )


def _tiles(account: Account, history: pl.DataFrame) -> Iterable[tuple[str, str]]:
    rule = account.filter
    share = spent_share(rule, account.spent)
    if math.isfinite(share):
        yield "Spent", percent_above(share)
    if is_bounded(rule):
        for name, said in amount_texts(rule.left(account.spent)).items():
            if name != "at order":
                yield f"Left ({name})", said
    else:
        yield "Spent (epsilon)", amount_texts(rule.shown(account.spent))["epsilon"]
    yield "Charges", f"{int(history['count'].sum()):,}"


def _promised(account: Account) -> Section:
    total, about = account.filter.total, account.identity
    if not is_bounded(account.filter):
        said = "This ledger has no bound on epsilon: what was spent so far is what holds, whenever one stops."
        return Section("What is promised", [paragraph(said, "large")])
    what = "all releases together, those to come as well"
    return promise_section(total, about.privacy_unit, about.neighbors, what=what)


def _spent(account: Account, entries: Sequence[Entry]) -> list[Html]:
    rule = account.filter
    rows = {
        "The whole budget": whole_of(rule, account.spent),
        "Spent": rule.shown(account.spent),
        "Left": rule.left(account.spent),
    }
    if isinstance(rule, Renyi):
        del rows["Spent"]  # which has an order of its own
    elif not is_bounded(rule):
        rows = {"Spent": rows["Spent"]}
    texts = {name: amount_texts(amounts) for name, amounts in rows.items()}
    headers = list(next(iter(texts.values())))
    share = spent_share(rule, account.spent)
    parts = [meter(share, share)] if math.isfinite(share) else []
    cells = [[Cell(name), *(Cell(held[header], True) for header in headers)] for name, held in texts.items()]
    shown = table("The budget", [Cell("part"), *(Cell(header, True) for header in headers)], cells)
    parts.append(scrolled(shown, "Table: the budget"))
    burnt = burn_down(entries, account)
    if burnt.left and entries:
        names = " and ".join(burnt.left)
        ends = ", ".join(f"{percent_below(left[-1])} of {name}" for name, left in burnt.left.items())
        said = f"What is left of {names} after each charge, in percent of the budget: {ends} in the end"
        drawn = falling([*burnt.left.values()], said, "before", number_of(int(burnt.charges[-1]), "charge"))
        kinds = " The dashed line is delta." * (len(burnt.left) > 1)
        parts.append(figure(drawn, f"{said}.{kinds}"))
    return parts


def _charged(history: pl.DataFrame) -> list[Html]:
    """Return all entries, the newest first."""
    if not history.height:
        return [paragraph("Nothing was charged yet.")]
    shown = history.reverse().select(
        "entry",
        pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S").alias("time (UTC)"),
        pl.col("description").alias("what was released"),
        pl.col("count").alias("charges"),
        pl.Series("epsilon", list(map(amount_text, history.reverse()["epsilon"]))),
        pl.Series("delta", list(map(amount_text, history.reverse()["delta"]))),
        pl.col("event").fill_null("not known"),
        pl.col("account").alias("allotment"),
    )
    if not (shown["allotment"] != "").any():
        shown = shown.drop("allotment")
    return frame_table(
        shown, 1, "All entries, the newest first", "the ledger: dpfast ledger show", numbers=("epsilon", "delta")
    )


def _accountants(report: pl.DataFrame) -> list[Html]:
    rows = [
        [
            Cell(name),
            Cell("left out" if epsilon is None else amount_text(epsilon, digits=6), True),
            Cell("yes" if holds else "no"),
            Cell(note),
        ]
        for name, epsilon, holds, note in report.iter_rows()
    ]
    headers = [Cell("accountant"), Cell("epsilon", True), Cell("a guarantee"), Cell("note")]
    shown = table("What was spent as each accountant adds it up", headers, rows)
    return [scrolled(shown, "Table: what was spent as each accountant adds it up"), bullets(_notes())]


def _notes() -> Iterable[str]:
    yield "Only rows with a yes are guarantees. The others describe what was charged, and bound nothing."


def _facts(account: Account, head: str | None) -> Iterable[tuple[str, str]]:
    about = account.identity
    yield "Dataset", about.dataset or "fixed by the first release"
    yield "Protected", unit_words(about.privacy_unit)
    neighbors = {"add_remove": "one more or fewer", "replace": "one exchanged for another"}
    yield "Neighbours", neighbors.get(about.neighbors or "", "fixed by the first release")
    yield "Accountant", account.filter.accountant
    yield "Altogether", joined_amounts(amount_texts(account.filter.total))
    if head is not None:
        yield "Head", head
