"""The page about pseudo-marginals: what they are not stands first."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from dpfast.charts.text import joined
from dpfast.ledger.budget_page import budget_section
from dpfast.ledger.result_page import page_of_result
from dpfast.pages.compared import Compared, compared_figures
from dpfast.pages.facts import plan_section, versions_section
from dpfast.pages.frames import frame_table
from dpfast.pages.markup import bullets, definitions, paragraph
from dpfast.pages.page import Page, Section
from dpfast.synthesis.report import labels_of
from dpfast.synthesis.ways import NORMAL95

if TYPE_CHECKING:
    from dpfast.synthesis.relaxed.estimate import PseudoMarginals

__all__ = ["page_of_pseudo_marginals"]


def page_of_pseudo_marginals(fitted: PseudoMarginals) -> Page:
    """Return the page; without what they cost where that is not known."""
    names, domain = list(fitted.columns), fitted.domain
    kind = "Approximate marginals" if fitted.approximate else "Fitted marginals"
    title = f"Fitted counts of {joined(list(domain.names), ' and ')}"
    tiles = [
        ("Marginals", f"{len(names):,}"),
        ("Records, about", f"{fitted.total:,.0f}"),
        ("Differ by at most", f"{fitted.residual:.3g}"),
    ]
    listed = pl.DataFrame(
        {
            "columns": [", ".join(held) for held in names],
            "cells": [math.prod(domain.shape[domain.names.index(name)] for name in held) for held in names],
            "deviation": list(fitted._measured.deviations),
        }
    )
    figures = [
        Section("Measured, and fitted", compared_figures(_compared(fitted))),
        Section(
            "All marginals", frame_table(listed, 1, "All marginals, and the noise of what was measured", "columns")
        ),
    ]
    limits = [
        f"Guarantee: {fitted.guarantee}.",
        f"Two marginals differ by at most {fitted.residual:.3g} in a count that both have.",
        "Nothing is said of columns that no marginal has together.",
        "How far a fitted count is off is not known: the fit took noise out, and may have taken more.",
        "What is read or drawn again, and worked with further, costs nothing more.",
    ]
    made = plan_section(fitted.explain())
    if fitted.spent is not None:
        return page_of_result(kind, title, tiles, fitted.spent, fitted._paid, figures, limits, made)
    promised = (
        "These counts were made of noisy ones alone, and are as private as those are. What those cost is not known."
    )
    sections = [
        Section("What is promised", [paragraph(promised, "large")]),
        *figures,
        Section("What to keep in mind", [bullets(limits)]),
        budget_section(None),
        made,
        versions_section(),
    ]
    return Page(kind, title[:160], [definitions(tiles, "tiles")], datetime.datetime.now(datetime.UTC), sections)


def _compared(fitted: PseudoMarginals) -> Iterator[Compared]:
    """Yield each marginal as it was measured, and as it was fitted."""
    measured = fitted._measured
    for names, made, noisy, deviation in zip(
        fitted.columns, fitted._tables, measured.values, measured.deviations, strict=True
    ):
        labels = labels_of(fitted.domain, names, made.size)
        yield Compared(joined(list(names), " and "), labels, made, noisy, NORMAL95 * deviation)
