"""From counts of reports to frequencies, their standard errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["Spread", "Support", "frame_of", "support_spread"]


class Support(NamedTuple):
    """The probability that a report supports its own value, that it supports another one, and their exact difference.

    Attributes
    ----------
    own, other, gap
        Floats; the difference of the first two alone would lose a small epsilon.

    """

    own: float
    other: float
    gap: float


@dataclass(frozen=True)
class Spread:
    """The variance of one report's contribution to a frequency f: constant + linear f + quadratic f**2.

    ``quadratic`` is at most 0; ``constant`` may be an array, one entry a value.
    """

    constant: Any
    linear: float
    quadratic: float = 0.0


def support_spread(support: Support, *, population: bool) -> Spread:
    """Return the spread where a report supports its own value with one probability, each other with another.

    Of these rows alone a report is a coin of one probability or the other; rows that are themselves a sample of a
    ``population`` add f (1 - f).

    Examples
    --------
    >>> spread = support_spread(Support(0.75, 0.25, 0.5), population=True)
    >>> round(spread.constant + spread.linear * 0.3 + spread.quadratic * 0.3**2, 12), 4 * 0.4 * 0.6
    (0.96, 0.96)

    """
    own, other, gap = support
    constant = other * (1 - other) / gap**2
    if population:
        return Spread(constant, (1 - 2 * other) / gap, -1.0)
    return Spread(constant, (1 - own - other) / gap)


def frame_of(
    values: pl.Series, frequencies: NDArray[np.float64], rows: int, spread: Spread, confidence: float
) -> pl.DataFrame:
    """Return the frame that an oracle's ``estimate`` returns.

    The interval holds each f with rows * (estimate - f)**2 <= z**2 * spread(f): Wilson's score interval, in which the
    variance is that of the frequency that is tried, not of the estimate.
    """
    if rows == 0:
        nothing = np.full(len(values), np.nan)
        empty = {"frequency": nothing, "standard_error": nothing}
        ends = {"low": np.zeros(len(values)), "high": np.ones(len(values))}
        frame = pl.DataFrame({"value": values.alias("value"), **empty, **ends})
        return frame.with_columns(pl.col("frequency", "standard_error").fill_nan(None))
    likely = np.clip(frequencies, 0.0, 1.0)
    variance = (spread.constant + spread.linear * likely + spread.quadratic * likely**2) / rows
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    # (rows - z2 quadratic) f**2 - 2 half f + rows estimate**2 - z2 constant = 0 at both ends
    leading = rows - z2 * spread.quadratic
    half = rows * frequencies + z2 * spread.linear / 2
    root = np.sqrt(np.maximum(half**2 - leading * (rows * frequencies**2 - z2 * spread.constant), 0.0))
    return pl.DataFrame(
        {
            "value": values.alias("value"),
            "frequency": frequencies,
            "standard_error": np.sqrt(np.maximum(variance, 0.0)),
            "low": np.clip((half - root) / leading, 0.0, 1.0),
            "high": np.clip((half + root) / leading, 0.0, 1.0),
        }
    )
