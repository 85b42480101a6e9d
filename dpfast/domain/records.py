"""Cells of a histogram back into records: public labels, and numbers drawn within bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.edges import are_times
from dpfast.domain.attributes import Attribute
from dpfast.queries import Bins
from dpfast.randomness import fresh_words

__all__ = ["draw_records", "fill_columns", "label_cells"]


def label_cells(cells: NDArray[np.int64], labels: Sequence[pl.Series]) -> pl.DataFrame:
    """Return what stands for cells along each axis: a row for each number of a cell, a column for each axis."""
    places = np.unravel_index(cells, tuple(axis.len() for axis in labels))
    return pl.DataFrame({axis.name: axis.gather(place) for axis, place in zip(labels, places, strict=True)})


def draw_records(cells: NDArray[np.int64], attributes: Sequence[Attribute], source: Any) -> pl.DataFrame:
    """Return a record for each cell, with a number drawn evenly within its bin where there are bins."""
    places: list[NDArray[np.int64]] = []
    # Also of more cells than NumPy numbers.
    for attribute in reversed(attributes):
        cells, place = np.divmod(cells, attribute.size)
        places.append(place)
    return fill_columns(places[::-1], attributes, source)


def fill_columns(places: Sequence[NDArray[Any]], attributes: Sequence[Attribute], source: Any) -> pl.DataFrame:
    """Return records by each one's place along each attribute."""
    # By names: of a list, Polars would give a column without one another name.
    return pl.DataFrame(
        {
            attribute.name: (
                attribute.labels.gather(place)
                if attribute.bins is None
                else _draw_numbers(attribute.bins, place, source)
            )
            for attribute, place in zip(attributes, places, strict=True)
        }
    )


def _draw_numbers(bins: Bins, places: NDArray[Any], source: Any) -> pl.Series:
    """Return numbers within bins, whole ones if the edges are; null past the last bin."""
    words = fresh_words(source, places.size)
    shares = (words >> np.uint64(11)) * 2.0**-53
    times = pl.Series(bins.edges) if are_times(bins.edges) else None
    known = places < len(bins.labels)
    edges = np.array(bins.edges if times is None else times.to_physical())
    lower, upper = edges[np.where(known, places, 0)], edges[np.where(known, places + 1, 1)]
    if edges.dtype.kind == "i":
        # Of times, numbers that float64 does not hold: what is drawn is how far they are from the edge.
        width = upper - lower
        numbers = lower + np.minimum(np.floor(shares * width).astype(np.int64), width - 1)
        drawn = pl.Series(bins.column, numbers)
        drawn = drawn if times is None else drawn.cast(times.to_physical().dtype).cast(times.dtype)
    else:
        # Neither product overflows where the bin's width does, and what rounding moves outside is moved back.
        floats = lower * (1.0 - shares) + upper * shares
        drawn = pl.Series(bins.column, np.clip(floats, lower, np.nextafter(upper, -np.inf)))
    return drawn if known.all() else drawn.set(pl.Series(~known), None)
