"""What a plan does to public or made-up rows: no release, charged to nobody, and marked as what it is everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import polars as pl

from dpfast.arguments import Special
from dpfast.charts.chosen import OWN_TOP
from dpfast.charts.look import ChartPath, check_plot
from dpfast.charts.previews import draw_preview
from dpfast.errors import ParameterError
from dpfast.releases.showing import card_of_table, shown_table
from dpfast.showing import Card, Shown, number_of

if TYPE_CHECKING:
    import altair as alt

__all__ = ["MARK", "Preview"]

#: What every preview begins with.
MARK = "PREVIEW on public or made-up rows: no release, nothing was charged"

_Query: TypeAlias = Annotated[str | None, Special(lambda: (5, True, 0.5, b"n", "none such", ["n"]), optional=True)]


@dataclass(kw_only=True, eq=False, repr=False)
class Preview(Shown):
    """What noise, clipping and the selection of keys do to rows that are public or made up: what `dpf.preview` returns.

    Guarantee
        None: it was made of its rows as they are, which must be public. No ledger is charged, and none can be.

    Attributes
    ----------
    rows_of
        Which rows it was made of, in words.
    repeats
        How often it was drawn.
    keys_lost
        The share of groups that are not shown, on average; 0 where keys are public.
    rows_cut
        The share of rows that bounds on what a unit contributes leave out, on average; None where all rows count.

    """

    rows_of: str
    repeats: int
    keys_lost: float
    rows_cut: float | None
    _by: tuple[str, ...]
    _frame: pl.DataFrame
    _summary: pl.DataFrame

    @property
    def frame(self) -> pl.DataFrame:
        """A row for every group and figure.

        The keys; ``rows``; ``rows_cut``, the share of them that bounds leave out, on average; ``missing``, the share of
        draws in which the group is not shown; ``query``; ``exact``, the figure of these rows without bounds, clipping
        and noise; ``mean``, what is shown on average; ``bias``, by how much more that is; ``deviation`` of what is
        shown, from draw to draw; ``rmse``, the root mean square error of it all. Of lists, only ``rmse`` over their
        entries; of modes, ``right``, the share of draws that show the exact one.
        """
        return self._frame.clone()

    @property
    def summary(self) -> pl.DataFrame:
        """A row for every figure: ``rmse`` over all groups and draws, its parts ``bias`` and ``deviation``; ``right``.

        ``rmse`` squared is ``bias`` squared, what bounds and clipping lose, and ``deviation`` squared, the noise.
        """
        return self._summary.clone()

    def explain(self) -> str:
        """Return what was drawn, and how far off it is, as text."""
        return "\n".join([*self._about(), *shown_table(self._summary, "figures")])

    def plot(
        self, path: ChartPath = None, *, query: _Query = None, top: Annotated[int | None, OWN_TOP] = None
    ) -> alt.LayerChart:
        """Draw the exact figures of the largest groups, and what is shown of them.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for none.
        query
            A figure's name, by default the first.
        top
            How many of the largest groups to show, by default 30.

        Returns
        -------
        altair.LayerChart
            The chart.

        Raises
        ------
        ParameterError
            There is no such figure, or it is none that can be drawn, or Altair is not installed.

        """
        check_plot(path)
        drawable = self._summary.filter(pl.col("deviation").is_not_null())["query"].to_list()
        if not drawable:
            raise ParameterError("query", query, "a figure that is a number, of which there is none")
        name = drawable[0] if query is None else query
        if type(name) is not str or name not in drawable:
            raise ParameterError("query", query, f"one of {drawable}")
        shown = 30 if top is None else OWN_TOP.read("top", top)
        frame = self._frame.filter(query=name)
        return draw_preview(
            frame, self._by, name, shown, [f"{MARK}.", f"{number_of(self.repeats, 'draw')} of {self.rows_of}."], path
        )

    def _about(self) -> Iterator[str]:
        yield MARK
        yield f"made of {self.rows_of}; drawn {number_of(self.repeats, 'time')}, each as a release would be"
        yield f"groups that are not shown: {self.keys_lost:.1%}"
        yield "rows that bounds leave out: " + (
            "none, all rows count" if self.rows_cut is None else f"{self.rows_cut:.1%}"
        )

    def __repr__(self) -> str:
        """Say that it is a preview, and how far off figures are."""
        return self.explain()

    def _card(self) -> Card:
        return card_of_table([*self._about()], self._summary, "figures")
