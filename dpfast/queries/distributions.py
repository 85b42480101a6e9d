"""How a column's values are distributed: histograms and distribution functions by group."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpfast.columns.edges import Edge, Edges, Points, floats_of, read_edges, show_edges
from dpfast.columns.grid import LARGEST_BOUND
from dpfast.columns.values import LARGEST_TICK, whole_edges, within
from dpfast.errors import ParameterError, Words
from dpfast.queries.basic import Name, Query
from dpfast.rows.values import NAME

__all__ = ["DistributionQuery", "cdf", "histogram"]

#: More are measured as keys: ``by=["key", dpf.bins(column, edges)]``.
MOST_BINS = 1000


@dataclass(frozen=True, repr=False)
class DistributionQuery(Query):
    """Figures for public edges, in every group: what `histogram` and `cdf` return."""

    edges: tuple[Edge, ...] = ()

    @property
    def in_words(self) -> str:
        """What is asked."""
        first, last = show_edges(self.edges[0], self.edges[-1])
        if self.kind == "histogram":
            return f"histogram of {self.column}, {len(self.edges) - 1} bins from {first} to below {last}"
        points = f"{len(self.edges)} points from {first} to {last}" if len(self.edges) > 1 else first
        return f"distribution function of {self.column} at {points}"

    @property
    def shown(self) -> tuple[Edge, ...]:
        """What every figure stands for: the left edge of its bin, or the point."""
        return self.edges[:-1] if self.kind == "histogram" else self.edges

    @property
    def cells(self) -> tuple[float, ...]:
        """The edges of the disjoint intervals that are counted, each closed on the left: as float64, or in ticks."""
        name = str(self.column)
        ticks = self.values.edges(self.edges, name)
        if ticks is not None:
            if self.kind == "histogram":
                return whole_edges(self.values, self.edges, name) or ()
            return -LARGEST_TICK, *(within(math.floor(edge) + 1) for edge in ticks), LARGEST_TICK
        floats = floats_of(self.edges)
        if self.kind == "histogram":
            return floats
        # Up to an edge and with it is below the next float; what is beyond all edges has an interval too.
        return -math.inf, *(math.nextafter(edge, math.inf) for edge in floats), math.inf


def histogram(column: Name, edges: Edges) -> DistributionQuery:
    """Ask for the number of a column's values in every bin, in every group.

    All bins together are one measurement: a row is in one of them, so that their noise is that of one count.

    Parameters
    ----------
    column
        A column of integers, floats, decimals or Booleans, or of dates, datetimes, durations or times. Nulls and NaN
        are in no bin, and neither are values below the first edge or from the last edge on.
    edges
        At least two finite numbers, increasing, 1,001 at most, or dates, datetimes, timedeltas or times; x is in the
        bin ``edges[i] <= x < edges[i + 1]``, as for `bins`. They are public: choose them without looking at the data.

    Notes
    -----
    A release has lists: ``name``, ``name_lower`` and ``name_upper`` with a number for each bin, ``name_bin`` with the
    bins' left edges, and one number ``name_scale``. An interval is that of its bin by itself.
    ``frame.explode("name", "name_bin", "name_lower", "name_upper")`` makes a row of every bin.

    Examples
    --------
    >>> histogram("dep_delay", [-60, 0, 15, 60, 600]).in_words
    'histogram of dep_delay, 4 bins from -60 to below 600'

    """
    return _distribution("histogram", column, edges, least=2)


def cdf(column: Name, edges: Points) -> DistributionQuery:
    """Ask for the part of a column's values at or below each of several points, in every group.

    The values between the points are counted as one measurement, and where that makes the error less, so are those of
    blocks of neighbouring intervals. From what is measured follow all figures, which never fall from a point to the
    next.

    Parameters
    ----------
    column
        A column as for `histogram`. Nulls and NaN are missing and left out.
    edges
        The points: at least one finite number, increasing, 999 at most, or dates or times as for `histogram`. They are
        public: choose them without looking at the data.

    Notes
    -----
    A release has lists: ``name``, ``name_lower`` and ``name_upper`` with a number from 0 to 1 for each point,
    ``name_scale`` with its standard deviation where half of the values lie below, and ``name_edge`` with the points. An
    interval is that of its point by itself.

    Examples
    --------
    >>> cdf("dep_delay", [-60, 0, 15, 60, 600]).in_words
    'distribution function of dep_delay at 5 points from -60 to 600'

    """
    return _distribution("cdf", column, edges, least=1)


def _distribution(kind: str, column: Name, edges: Edges | Points, *, least: int) -> DistributionQuery:
    NAME.read("column", column)
    read = read_edges(edges, least=least)
    if any(isinstance(edge, (int, float)) and abs(edge) > LARGEST_BOUND for edge in read):
        raise ParameterError("edges", edges, "of magnitude up to 1e300")
    if len(read) > MOST_BINS - 1 + (kind == "histogram") * 2:
        mend = "for more, group by dpf.bins(column, edges)"
        raise ParameterError("edges", Words(f"{len(read)} numbers"), f"at most {MOST_BINS} intervals", mend)
    return DistributionQuery("histogram" if kind == "histogram" else "cdf", column, edges=read)
