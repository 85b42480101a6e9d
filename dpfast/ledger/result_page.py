"""The page about a result that was paid for: the parts that all of them have, around figures of their own."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from dpfast.accounting.budget import Amounts, ShownAmounts
from dpfast.charts.text import shortened
from dpfast.ledger.budget_page import amount_texts, budget_section, charged_at
from dpfast.ledger.receipt import Receipt
from dpfast.pages.facts import loss_words, promise_section, unit_words, versions_section
from dpfast.pages.markup import bullets, definitions, paragraph
from dpfast.pages.page import Page, Section
from dpfast.pages.promise import chance_words

__all__ = ["page_of_result"]

_LONGEST = 160


def page_of_result(
    kind: str,
    title: str,
    tiles: Iterable[tuple[str, str]],
    spent: ShownAmounts,
    paid: Receipt | None,
    figures: Sequence[Section],
    limits: Iterable[str],
    made: Section,
    *,
    beside: Iterable[str] = (),
) -> Page:
    """Return the page.

    Parameters
    ----------
    kind, title
        What it is about, in a few words, and by name.
    tiles
        Figures that stand first.
    spent
        What it cost.
    paid
        What the ledger said of the charge; None where no ledger was charged once for all of it.
    figures
        The parts about what was found.
    limits
        What figures and intervals do not say.
    made
        The part about how it was made.
    beside
        What is to be known of whom the promise is for.

    """
    about = None if paid is None else paid.about
    unit = None if about is None else about.privacy_unit
    neighbors = None if about is None else about.neighbors
    sections = [
        promise_section(spent, unit, neighbors, beside),
        *figures,
        Section("What to keep in mind", [bullets(limits)]),
        budget_section(paid),
        made,
        versions_section(),
    ]
    shown = definitions([*tiles, *_tiles(spent, paid, unit)], "tiles")
    begun = shortened(title[:1].upper() + title[1:], _LONGEST)
    return Page(kind, begun, [paragraph(_lead(paid), "lead"), shown], datetime.datetime.now(datetime.UTC), sections)


def _lead(paid: Receipt | None) -> str:
    said = "Every figure on this page has random noise in it, on purpose"
    if paid is None:
        return f"{said}."
    return (
        f"From the dataset “{shortened(str(paid.about.dataset), 100)}”, released on {charged_at(paid):%Y-%m-%d}. "
        f"{said}: the noise hides what {unit_words(paid.about.privacy_unit)} adds to it."
    )


def _tiles(spent: ShownAmounts, paid: Receipt | None, unit: str | None) -> Iterable[tuple[str, str]]:
    yield "Protected", unit_words(unit)
    yield "Privacy loss", loss_words(spent)
    yield (
        "Delta",
        chance_words(spent.delta) if spent.delta else "0" if isinstance(spent, Amounts) else "none beside rho",
    )
    if paid is not None:
        left = amount_texts(paid.rule.left(paid.after))
        name = next(name for name in left if name != "at order")
        yield f"Left in the budget ({name})", left[name]
