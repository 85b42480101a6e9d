"""Pages about what synthesis leaves: estimates, records, and marginals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dpfast.charts.text import joined, label_of, value_text
from dpfast.ledger.result_page import page_of_result
from dpfast.pages.bars import bars
from dpfast.pages.compared import MOST_BARS, Compared, answers_figure, compared_figures, known_bars
from dpfast.pages.facts import plan_section
from dpfast.pages.frames import frame_table
from dpfast.pages.markup import Html, definitions, figure, paragraph
from dpfast.pages.page import Page, Section
from dpfast.showing import number_of
from dpfast.workloads.marginals import Marginals

if TYPE_CHECKING:
    from dpfast.domain.domain import Domain
    from dpfast.synthesis.estimate import Estimate
    from dpfast.synthesis.graphical.estimate import ModelEstimate
    from dpfast.synthesis.residuals.marginals import MarginalsRelease

__all__ = ["labels_of", "page_of_estimate", "page_of_marginals", "page_of_model"]

_LONGEST = 80
_RECORDS = 10
_ROUNDS = "its frame of rounds"
_NOT_ALL = "Not everything was measured that was paid for: the estimate is as private, but less accurate."
_AGAIN = "What is read or drawn again, and worked with further, costs nothing more. Another measurement costs its own."


def page_of_estimate(estimate: Estimate, domain: Domain | None = None) -> Page:
    """Return the page about an estimate of every cell; with a domain, about records that are drawn from it."""
    cells, queries = estimate.histogram.size, len(estimate.workload)
    title = f"Estimated histogram of {number_of(cells, 'cell')}"
    answers = f"{number_of(queries, 'answer')} in the order of the queries; how far off they are depends on the data"
    parts = compared_figures(_of_rounds(estimate, domain))
    figures = [Section("Answers", [answers_figure(estimate.answers, answers)])]
    if parts:
        figures.insert(0, Section("Measured, and estimated", parts))
    if estimate.rounds.height:
        measured = frame_table(_listed(estimate.rounds), 1, "What was measured, in order", _ROUNDS)
        figures.append(Section("What was measured", measured))
    limits = ["How far an answer is off that was not measured depends on the data, and is not known.", _AGAIN]
    facts = [("Queries", repr(estimate.workload)), ("Measured", number_of(estimate.rounds.height, "time"))]
    tiles = [("Cells", f"{cells:,}"), ("Queries", f"{queries:,}")]
    return _page(estimate, domain, "Differentially private estimate", title, tiles, figures, limits, facts)


def page_of_model(estimate: ModelEstimate, domain: Domain | None = None) -> Page:
    """Return the page about a model of small tables; with a domain, about records that are drawn from it."""
    tables = estimate.cliques
    largest = joined([f"“{name}”" for name in max(tables, key=len)], " and ")
    facts = [
        ("Model", f"{number_of(len(tables), 'table')} of {number_of(estimate.cells, 'cell')} together, which agree"),
        ("Most columns", f"the table of most columns is over {largest}"),
        ("Measured", number_of(estimate.rounds.height, "marginal")),
    ]
    limits = [
        "Counts over columns that are in no table together follow from those that are: nothing else is known of them.",
        "Records are no people. What is computed from them errs by the noise as well as by the model, which formulas "
        "for samples do not know.",
        _AGAIN,
    ]
    figures = [
        Section("Measured, and synthetic", compared_figures(_of_held(estimate, domain))),
        Section("How far off other counts may be", list(_pairs(estimate))),
        Section("What was measured", frame_table(_listed(estimate.rounds), 1, "Marginals in their order", _ROUNDS)),
    ]
    title = f"Model of {joined(list(estimate.names), ' and ')}"
    tiles = [("Columns", f"{len(estimate.names):,}"), ("Records, about", f"{estimate.total:,.0f}")]
    return _page(estimate, domain, "Model for records", title, tiles, figures, limits, facts)


def _page(
    estimate: Estimate | ModelEstimate,
    domain: Domain | None,
    kind: str,
    title: str,
    tiles: list[tuple[str, str]],
    figures: list[Section],
    limits: list[str],
    facts: list[tuple[str, str]],
) -> Page:
    """Return the page about an estimate, or about records where there is a domain to draw them from."""
    return page_of_result(
        kind if domain is None else "Synthetic records",
        title if domain is None else f"Synthetic records of {joined(list(domain.names), ' and ')}",
        tiles,
        estimate.spent,
        estimate._paid,
        [*_records(estimate, domain), *figures],
        limits if estimate.complete else [_NOT_ALL, *limits],
        Section("How it was made", [definitions(facts, "plan")]),
    )


def page_of_marginals(released: MarginalsRelease) -> Page:
    """Return the page about marginals with errors that are known."""
    plan, domain = released.plan, released.plan.domain
    listed = _listed(plan.to_frame())
    limits = [
        "The deviation of each count's noise is known exactly, and was so before anything was paid. Of Gaussian noise "
        "95 of 100 counts are within two deviations, of Laplace noise most of them.",
        "Counts may be below zero, since noise goes both ways, and all marginals agree with each other.",
        _AGAIN,
    ]
    return page_of_result(
        "Differentially private marginals",
        f"Counts of {joined(list(domain.names), ' and ')}",
        [("Marginals", f"{len(plan.columns):,}"), ("Rows, about", f"{released.total:,.0f}")],
        released.spent,
        released._paid,
        [
            Section("Figures", compared_figures(_of_plan(released))),
            Section("All marginals", frame_table(listed, 1, "All marginals", "the plan's frame")),
        ],
        limits,
        plan_section(plan.explain()),
    )


def _records(estimate: Estimate | ModelEstimate, domain: Domain | None) -> Iterator[Section]:
    """Yield a few records and the values that they can have: neither costs anything."""
    if domain is None:
        return
    shown = frame_table(domain.records(estimate, _RECORDS), 0, "Ten records, drawn for this page", "the records")
    yield Section("A few of the records", shown)
    card = domain._card()
    declared = pl.DataFrame(list(map(list, card.rows)), schema=["column", "values", "declared"], orient="row")
    listed = frame_table(declared, 1, "What was declared of each column, without looking at the data", "the domain")
    yield Section("What records can hold", listed)


def _listed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose lists are words."""
    if "answers" in frame.columns:
        frame = frame.drop("answers")
    lists = [name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String)]
    return frame.with_columns(pl.col(name).list.join(", ") for name in lists)


def labels_of(domain: Domain | None, names: Sequence[str], cells: int) -> list[str] | None:
    """Return what stands beside the counts over some columns, where these are few."""
    if cells > MOST_BARS:
        return None
    if not names:
        return ["all of them"]
    if domain is None:
        return [f"cell {place}" for place in range(cells)] if len(names) == 1 else None
    return [label_of(values, _LONGEST) for values in domain.frame(names).iter_rows()]


def _of_rounds(estimate: Estimate, domain: Domain | None) -> Iterator[Compared]:
    """Yield what was measured in rounds, beside the estimate's answers."""
    workload, rounds = estimate.workload, estimate.rounds
    if "answers" not in rounds.columns or workload.groups is None:
        return
    for group, start, size, noisy, within in rounds.select("group", "query", "queries", "answers", "error95").rows():
        title, labels = f"Queries {start:,} to {start + size - 1:,}", None
        if isinstance(workload, Marginals):
            places = workload.attributes[group]
            names = [f"x{place}" if domain is None else domain.names[place] for place in places]
            title, labels = joined(names, " and ") or "All of them", labels_of(domain, names, size)
        yield Compared(title, labels, estimate.answers[start : start + size], np.asarray(noisy, np.float64), within)


def _of_held(estimate: ModelEstimate, domain: Domain | None) -> Iterator[Compared]:
    """Yield what a model was fitted to, beside what it says: single columns first, and every set once.

    Rare values of a column are one there: a column shows the others.
    """
    for places, one in estimate._held.items():
        names = [estimate.names[place] for place in places]
        made, measured = estimate._marginals.marginal(places), one.values
        labels = labels_of(domain, names, math.prod(estimate.shape[place] for place in places))
        if len(places) == 1:
            kept = estimate._grouping.axes[places[0]].kept
            made, measured = made[: kept.size], measured[: kept.size]
            labels = None if labels is None else [labels[value] for value in kept]
        elif labels is not None and len(labels) != made.size:
            labels = None
        if places and made.size:
            # Of means of Gaussian noise that is exact, of Laplace noise it is somewhat more.
            yield Compared(joined(names, " and "), labels, made, measured, one.error95)


def _of_plan(released: MarginalsRelease) -> Iterator[Compared]:
    """Yield the marginals of a plan, each with twice its deviation."""
    for names in released.plan.columns:
        counts = released.marginal(names).reshape(-1)
        within = 2.0 * released.plan.deviation(names)
        labels = labels_of(released.plan.domain, names, counts.size)
        yield Compared(joined(list(names), " and "), labels, counts, counts, within, "two deviations of the noise")


def _pairs(estimate: ModelEstimate) -> Iterator[Html]:
    """Yield what is certain of the errors of all sets of columns that the model was made for."""
    errors = estimate.errors().sort("upper", descending=True)
    listed = errors.with_columns(pl.col("columns").list.join(", "))
    shown = listed.head(MOST_BARS)
    upper, lower = (100 * shown[end].to_numpy() for end in ("upper", "lower"))
    drawn = known_bars("error in percent", shown["columns"].to_list(), upper, lower, upper)
    which = f"The {shown.height} that may be farthest off, of {errors.height:,}. " if errors.height > MOST_BARS else ""
    yield paragraph(
        "Known without the data: how many of the records, in percent, would have to be others for these counts to be "
        "the data's. Where nothing is certain, the upper end is 100."
    )
    yield figure(bars(drawn), f"{which}Bars end at the upper ends; the lines begin at the lower ones.")
    yield from frame_table(_told(listed), 1, "All sets of columns that the model was made for", "errors()")


def _told(errors: pl.DataFrame) -> pl.DataFrame:
    """Return errors in words."""
    ends: Iterable[str] = (
        f"{value_text(100 * low)}% to {value_text(100 * high)}%" for low, high in errors.select("lower", "upper").rows()
    )
    measured = pl.Series("measured together", ["yes" if one else "no" for one in errors["measured"]])
    return errors.select("columns", measured, pl.Series("error", list(ends), dtype=pl.String))
