"""Which groups a chart shows, and their values as numbers: the same for every way of drawing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.arguments import Whole
from dpfast.charts.text import joined, label_of, measured_text, shortened, spoken, value_text
from dpfast.showing import number_of

__all__ = ["LONGEST_LABEL", "OWN_TOP", "TOP", "ChosenGroups", "choose_groups"]

LONGEST_LABEL = 42
MOST = 500
TOP = Whole(1, MOST)
OWN_TOP = replace(TOP, optional=True)
#: What values are told in: numbers, days since 1970 (dates and moments), or hours (durations and times of day).
Unit: TypeAlias = Literal["", "days", "hours"]
_Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChosenGroups:
    """The groups that a chart shows, in its order.

    Attributes
    ----------
    name, by
        The column of values, and the key columns.
    labels
        What stands beside each group.
    values, lower, upper
        As numbers; both ends are the value where no interval is known.
    texts, ends
        The values as they are written, and their intervals; None where there are none.
    known
        Whether there are intervals.
    bars
        Whether values are drawn as bars, which begin at 0: those of counts and of sums of whole numbers.
    unit
        What the numbers are of.
    places
        Of a mode, what stands at the places 0, 1, ... along the axis; else None.
    scales
        The least and the largest scale of the noise of these groups; None where it has none.
    groups
        How many groups there are.
    chosen
        Which of them these are, in a word.

    """

    name: str
    by: tuple[str, ...]
    labels: list[str]
    values: _Numbers
    lower: _Numbers
    upper: _Numbers
    texts: list[str]
    ends: list[tuple[str, str]] | None
    known: bool
    bars: bool
    unit: Unit
    places: list[str] | None
    scales: tuple[float, float] | None
    groups: int
    chosen: str

    @property
    def title(self) -> str:
        """What is shown of what."""
        by = joined(self.by, " and ")
        return f"{spoken(self.name)} by {by}" if by else spoken(self.name)

    @property
    def axis(self) -> str:
        """What stands below the axis."""
        return f"{spoken(self.name)} (hours)" if self.unit == "hours" else spoken(self.name)

    @property
    def with_zero(self) -> bool:
        """Whether the axis has a 0: always for bars, and never for dates; else where it is not far from the values."""
        if self.bars or self.unit == "days":
            return self.bars
        seen = np.concatenate([self.values, self.lower, self.upper])
        seen = seen[np.isfinite(seen)]
        far = 2 * float(np.ptp(seen)) if seen.size else 0.0
        return not far or bool(seen.min() <= far and seen.max() >= -far)

    def which(self, all_groups: str) -> str:
        """Say which groups are shown; ``all_groups`` is how to see the others."""
        if len(self.labels) == self.groups:
            return f"{number_of(self.groups, 'group')}."
        return f"The {len(self.labels):,} {self.chosen} of {self.groups:,} released groups; {all_groups}."

    @property
    def noise(self) -> str:
        """Say what noise is in the values."""
        if not self.labels:
            return "Differentially private: keys of few units are not shown."
        if self.scales is None:
            drawn = "most common values" if self.places is not None else "quantiles"
            return f"Differentially private: {drawn} drawn by the exponential mechanism."
        low, high = self.scales
        size = f"{low:,.3g}" if low == high else f"{low:,.3g} to {high:,.3g}"
        return f"Differentially private: noise of scale {size}; lines are 95% intervals of the noise."


def choose_groups(
    frame: pl.DataFrame,
    by: Sequence[str],
    name: str,
    top: int,
    *,
    candidates: Sequence[Any] | None = None,
    in_order: bool = False,
    as_bars: bool = False,
    longest: int = LONGEST_LABEL,
) -> ChosenGroups:
    """Return the groups of one released query that a chart shows.

    Parameters
    ----------
    frame
        A release's frame: the key columns ``by``, and ``name`` with ``_scale``, ``_lower`` and ``_upper``; quantiles
        have none of these.
    by
        The key columns.
    name
        The query's column, of numbers, decimals, dates or times, or of candidates.
    top
        How many groups at most. Where every group has the same noise, those of the largest values; where the noise
        differs (means), those of the least noise, which are the largest groups. Of a mode, the first.
    candidates
        The values that a mode may have; those that it has in the groups shown are the places of its dots.
    in_order
        Whether the first groups are shown as they come: bins, and points of a distribution.
    as_bars
        Whether values are counts that are no whole numbers.
    longest
        Characters of a label.

    """
    groups, places = frame.height, None
    if candidates is not None:
        frame = frame.head(top)
        original = frame[name]
        frame, places = _place_candidates(frame, name, candidates)
    scale, lower, upper = f"{name}_scale", f"{name}_lower", f"{name}_upper"
    known = scale in frame.columns or (lower in frame.columns and upper in frame.columns)
    counted = known and places is None and frame.schema[name].is_integer()
    numbers, unit = _as_numbers(frame, [column for column in (name, scale, lower, upper) if column in frame.columns])
    scales = numbers[scale] if scale in frame.columns else pl.Series([0.0] * groups if known else [], dtype=pl.Float64)
    varies = scales.len() > 0 and bool(scales.min() < scales.max())  # type: ignore[operator]
    rows = _rows(numbers.with_row_index("_row"), name, scale if varies else None, top, in_order or places is not None)
    shown, numbers = frame[rows], numbers[rows]
    values = _floats(numbers[name])
    # The interval of a clamped mean may leave its value outside by a rounding error.
    low, high = (_floats(numbers[end]) if known else values for end in (lower, upper))
    told = shown[name] if places is None else original[rows]
    low, high = np.fmin(low, values), np.fmax(high, values)
    errors = (high - low) / 2
    kept = scales.gather(rows) if scale in frame.columns else None
    return ChosenGroups(
        name=name,
        by=tuple(by),
        labels=[label_of(keys, longest) for keys in shown.select(by).iter_rows()] if by else ["all rows"] * len(rows),
        values=values,
        lower=low,
        upper=high,
        texts=[measured_text(value, error) for value, error in zip(told, errors.tolist(), strict=True)],
        ends=_ends(shown.select(lower, upper), errors) if known else None,
        known=known,
        bars=counted or as_bars,
        unit=unit,
        places=places,
        scales=None if kept is None or not len(rows) else (float(kept.min()), float(kept.max())),  # type: ignore[arg-type]
        groups=groups,
        chosen="first" if in_order or places is not None else "with the least noise" if varies else "largest",
    )


def _ends(ends: pl.DataFrame, errors: _Numbers) -> list[tuple[str, str]]:
    """Return the ends of intervals as they are written."""
    return [
        (measured_text(low, error), measured_text(high, error))
        for (low, high), error in zip(ends.iter_rows(), errors.tolist(), strict=True)
    ]


def _rows(numbers: pl.DataFrame, name: str, scale: str | None, top: int, in_order: bool) -> list[int]:
    """Return the numbers of the rows that are shown, in the chart's order."""
    if in_order:
        return numbers["_row"].head(top).to_list()
    by_size = numbers.sort(name, descending=True, nulls_last=True, maintain_order=True)
    shown = by_size if scale is None else numbers.sort(scale, maintain_order=True)
    shown = shown.head(top).sort(name, descending=True, nulls_last=True, maintain_order=True)
    return shown["_row"].to_list()


def _floats(numbers: pl.Series) -> _Numbers:
    return numbers.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _as_numbers(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, Unit]:
    """Return the frame with numbers in these columns, the first of which has the values, and what they are of."""
    dtype = frame.schema[columns[0]]
    if isinstance(dtype, pl.Decimal):
        return frame.with_columns(pl.col(*columns).cast(pl.Float64)), ""
    if not dtype.is_temporal():
        return frame, ""
    unit: Unit = "days" if isinstance(dtype, (pl.Date, pl.Datetime)) else "hours"
    a_unit = 86_400e6 if unit == "days" else 3600e6
    numbers = {}
    for column in columns:
        held = frame[column]
        if isinstance(held.dtype, (pl.Date, pl.Datetime)):
            numbers[column] = held.dt.epoch("us") / a_unit
        elif held.dtype.is_temporal():
            numbers[column] = held.cast(pl.Duration("us")).dt.total_microseconds() / a_unit
    return frame.with_columns(**numbers), unit


def _place_candidates(frame: pl.DataFrame, name: str, candidates: Sequence[Any]) -> tuple[pl.DataFrame, list[str]]:
    """Return the frame with places along the axis for candidates, and what stands at these: those that there are."""
    found = frame[name].to_list()
    seen = [candidate for candidate in candidates if candidate in found]
    places = pl.Series(name, [seen.index(value) for value in found], dtype=pl.Int64)
    return frame.with_columns(places), [shortened(value_text(value), LONGEST_LABEL) for value in seen]
