"""What a plan's run leaves: figures that were drawn once and can be read as often as anyone likes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from textwrap import shorten
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import polars as pl

from dpfast import charts
from dpfast.accounting.budget import ShownAmounts
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.arguments import Special
from dpfast.charts.chosen import OWN_TOP
from dpfast.charts.look import ChartPath
from dpfast.errors import DpfastError, ParameterError
from dpfast.ledger.receipt import Receipt
from dpfast.pages.page import Page
from dpfast.pages.reported import Reported
from dpfast.releases.cut_report import Cut
from dpfast.releases.layout import ANSWER, Layout
from dpfast.releases.lazy import Figures, scan_figures
from dpfast.releases.report import page_of_release
from dpfast.releases.showing import card_of_release, shown_release
from dpfast.showing import Card, Shown
from dpfast.synthesis.estimate import Estimate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Release"]

#: How many groups a chart shows, and the ends of a workload's intervals.
_TOP, _ENDS = 30, (f"{ANSWER}_lower", f"{ANSWER}_upper")

_Query: TypeAlias = Annotated[str | None, Special(lambda: (5, True, 0.5, b"n", "none such", ["n"]), optional=True)]


class _NoSuchFiguresError(DpfastError, AttributeError):
    """Releases of this kind have no such figures."""


@dataclass(kw_only=True, eq=False, repr=False)
class Release(Reported, Shown):
    """Released figures: computed once, the same however often they are read.

    Guarantee
        What `frame`, `histogram` and `estimate` hold is differentially private as `explain` says, and everything made
        of it is too (post-processing). No exact figure is kept, and no byte of a key that was not selected.

    Attributes
    ----------
    spent
        What this release was charged, all its charges together: `Amounts` of (epsilon, delta), or of (rho,
        delta) where the plan was made with rho.
    entry
        The number of its first charge in the ledger. Queries by group have one for every measure, and one for
        selecting keys; a workload has one.

    """

    spent: ShownAmounts
    entry: int
    _about: str
    _make_frame: Callable[[], pl.DataFrame]
    _layout: Layout
    #: Or what makes it, of public facts alone: few ask for it.
    _explained: str | Callable[[], str]
    _why_empty: str = "there are no queries"
    _make_histogram: Callable[[], pl.DataFrame] | None = None
    _estimate: Estimate | None = None
    _cut: Cut | None = None
    _chosen: Mapping[str, Any] | None = None
    _unit: PrivacyUnit | None = None
    _warnings: tuple[str, ...] = ()
    #: What the ledger said of the charge.
    _paid: Receipt | None = None

    @cached_property
    def _frame(self) -> pl.DataFrame:
        return self._make_frame()

    @cached_property
    def _histogram(self) -> pl.DataFrame:
        if self._make_histogram is None:
            message = "this release has no histogram: its frame has one row per group, and a workload= has a histogram"
            raise _NoSuchFiguresError(message)
        return self._make_histogram()

    @property
    def frame(self) -> pl.DataFrame:
        """The released figures, in a frame that shares the memory of what is remembered.

        By group: one row per group, sorted by key if the keys were selected: the keys, and for every query ``q`` its
        value ``q`` (Int64 for counts and sums of integers, decimals for sums of these, dates and times for means and
        quantiles of these; may be negative, since cutting off at zero would bias sums of groups), the noise's scale
        ``q_scale`` (of times a duration) and a 95% interval ``q_lower`` to ``q_upper`` of the noise alone; with
        ``interval="population"`` also ``q_population_lower`` and ``q_population_upper``. Quantiles have a column ``q``,
        or ``q_p25``, ``q_p50`` and so on, and ``q_ranks``: all of a group's are drawn within so many ranks of the exact
        ones with probability 0.95 (and a 65,536th of the values equal to one of them). A mode has the column ``q``, one
        of its candidates, and ``q_rows``: with probability 0.95 it has at most so many rows fewer than the most common
        candidate.

        With ``report_cut``, last of all ``q_corrected`` for counts, sums and numbers of units: about what the value
        would be without bounding, as far as that is the same part in all groups. It has no interval.

        Of a workload: one row per query: what it asks, ``answer``, ``scale`` (standard deviation), ``answer_lower`` and
        ``answer_upper`` (95%). Answers are sums over one histogram, so they agree with each other: the sum of two
        neighbouring ranges is the answer to their union. They are not cut off at zero, since that would bias them. An
        adaptive strategy has ``answer`` alone: its error depends on the data.
        """
        return self._frame.clone()

    @property
    def histogram(self) -> pl.DataFrame:
        """One row per cell of a workload: its keys, and ``estimate``, the count that all answers are sums of.

        Raises
        ------
        DpfastError
            The release is by group.

        """
        return self._histogram.clone()

    @property
    def estimate(self) -> Estimate:
        """What the histogram is of where the strategy was adaptive.

        ``to_frame(n)`` makes synthetic records, ``rounds`` says what was measured.

        Raises
        ------
        DpfastError
            The strategy was another one.

        """
        if self._estimate is None:
            has = "its frame" if self._make_histogram is None else "its frame and histogram"
            raise _NoSuchFiguresError(f'this release has no estimate but {has}: strategy="adaptive" has one')
        return self._estimate

    @property
    def cut(self) -> Cut | None:
        """About how many units lost rows to bounding, and which part was kept; None unless ``report_cut`` was given.

        Its fields are ``units``, ``units_cut``, ``units_within``, ``rows_kept`` and ``groups_kept``. They are
        post-processing of noisy numbers, paid for by that share of the budget.
        """
        return self._cut

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What was chosen privately before figures were drawn, by what it is of: bounds by the name of their query.

        Empty where all of it was given. It is post-processing of noisy histograms, paid for by a share of the budget.
        """
        return MappingProxyType(dict(self._chosen or {}))

    def lazy(self) -> pl.LazyFrame:
        """Return the frame as a LazyFrame: whatever an engine does with it reads what was drawn once.

        Guarantee
            Post-processing: collecting it, joining it and writing it cost nothing, however often.

        Notes
        -----
        It is an IO source of Polars, which takes filters, columns and slices over. A workload's answers are worked out
        when it is first collected. Its bytes (`polars.LazyFrame.serialize`, for which Polars needs cloudpickle) hold
        the released frame alone.

        Examples
        --------
        >>> import dpfast as dpf
        >>> trips = pl.DataFrame({"city": ["Rome", "Oslo"] * 50})
        >>> asked = dpf.plan(trips, "city", rides=dpf.count(), keys=trips.head(2), privacy_unit="row", epsilon=0.5)
        >>> release = asked.run(dpf.Ledger(epsilon=1.0))
        >>> release.lazy().filter(pl.col("city") == "Rome").select("rides_scale").collect().item()
        2.0

        """
        return scan_figures(Figures(lambda: self.frame, lambda: self._frame.schema))

    @property
    def why_empty(self) -> str | None:
        """Where no group is shown, one line of why, and what would help; None where there are some."""
        return None if self._frame.height else f"no group is shown: {self._why_empty}"

    def explain(self) -> str:
        """Return what was done and why, as text."""
        explained = self._explained  # read once: another thread may put the text there meanwhile
        if not isinstance(explained, str):
            explained = self._explained = explained()
        return explained

    def __getstate__(self) -> dict[str, Any]:
        self.explain()
        return self.__dict__

    def plot(
        self, path: ChartPath = None, *, query: _Query = None, top: Annotated[int | None, OWN_TOP] = None
    ) -> alt.LayerChart:
        """Draw one query's groups with their intervals, or a workload's answers in the order of its queries.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for
            none.
        query
            The query's name, or a quantile's column; by default the first. Left out for a workload.
        top
            How many of the largest groups to show, by default 30; of a mode, the first. Left out for a workload.

        Returns
        -------
        altair.LayerChart
            The chart.

        Raises
        ------
        ParameterError
            The query is not one of this release, or Altair is not installed.

        """
        charts.check_plot(path)
        most = OWN_TOP.read_optional("top", top)
        if self._layout.asks:
            for name, given in (("query", query), ("top", top)):
                if given is not None:
                    raise ParameterError(name, given, "left out for a workload, of which all answers are drawn")
            answers, *bounds = (
                self._frame[name].to_numpy() for name in (ANSWER, *_ENDS) if name in self._frame.columns
            )
            return charts.draw_answers(answers, (bounds[0], bounds[1]) if bounds else None, path)
        frame, by, name, candidates, in_order = self._layout.drawn(self._frame, query)
        top = _TOP if most is None else most
        return charts.draw_groups(frame, by, name, top, path, candidates=candidates, in_order=in_order)

    def _page(self) -> Page:
        return page_of_release(self)

    def __repr__(self) -> str:
        """Show the first rows, each value with its interval, and what they cost."""
        return "\n".join(shown_release(self._heading, self._frame))

    def _card(self) -> Card:
        return card_of_release(self._heading, self._frame)

    @property
    def _heading(self) -> str:
        empty = "" if self.why_empty is None else f"; {self.why_empty}"
        return f"Release of {shorten(self._about, 200)}; spent {self.spent} (entry {self.entry}){empty}"
