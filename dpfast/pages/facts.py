"""Parts that pages of releases, records and ledgers have in common: promises, plans, versions."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

from dpfast.accounting.budget import ShownAmounts
from dpfast.pages.markup import definitions, paragraph
from dpfast.pages.page import Section
from dpfast.pages.promise import amount_text, promise

__all__ = ["loss_words", "plan_section", "promise_section", "unit_words", "versions_section"]

_PACKAGES = ("dpfast", "numpy", "numba", "polars", "pyarrow")
#: Where the words of a line of a plan begin.
_COLUMN = 16


def unit_words(privacy_unit: str | None) -> str:
    """Return what one privacy unit is, by its name for the ledger.

    Examples
    --------
    >>> unit_words("row"), unit_words("column:tailnum")
    ('one row', 'one “tailnum” with all its rows')

    """
    if privacy_unit is None:
        return "one privacy unit"
    return "one row" if privacy_unit == "row" else f"one “{privacy_unit.removeprefix('column:')}” with all its rows"


def loss_words(spent: ShownAmounts) -> str:
    """Return the privacy loss in a word and a number."""
    return f"ρ = {amount_text(spent, 'rho')}" if hasattr(spent, "rho") else f"ε = {amount_text(spent, 'epsilon')}"


def promise_section(
    spent: ShownAmounts,
    privacy_unit: str | None,
    neighbors: str | None,
    more: Iterable[str] = (),
    what: str = "this page",
) -> Section:
    """Return what is promised, in plain words."""
    first, *others = promise(spent, unit_words(privacy_unit), neighbors, what)
    said = [paragraph(first, "large"), *map(paragraph, others), *map(paragraph, more)]
    return Section("What is promised", said)


def plan_section(explained: str, warnings: Sequence[str] = ()) -> Section:
    """Return an explanation: a line with a name before its words is a row, and what goes on below belongs to it."""
    rows: list[tuple[str, str]] = []
    lead = []
    for line in explained.splitlines():
        name, words = line[:_COLUMN].strip(), line[_COLUMN:].strip()
        if not line.startswith("  "):
            lead.append(line.strip())
        elif not name and rows:
            rows[-1] = rows[-1][0], f"{rows[-1][1]}; {words}"
        elif name == "warning" and words in warnings:
            continue  # it stands above
        elif line[_COLUMN - 1 : _COLUMN] == " " and words:
            rows.append((name, words))
        else:
            rows.append(("", line.strip()))
    told = [paragraph(f"Warning: {warning}.", "warning") for warning in warnings]
    return Section("How it was made", [*told, *map(paragraph, lead), definitions(rows, "plan")])


def versions_section() -> Section:
    """Return what the page was made with."""
    found = [("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    for package in _PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return Section("Versions", [definitions(found, "facts")])
