"""How results stand in tables, in words and numbers that a person reads."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["HEADERS", "cells", "figure", "human", "noted", "ratio"]

HEADERS = ("what", "who", "values", "median", "beside ours")


def human(seconds: float) -> str:
    """Return a time in the unit that suits it.

    Examples
    --------
    >>> human(0.00123), human(4.2e-10)
    ('1.23 ms', '0.42 ns')

    """
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def figure(value: float | None, unit: str) -> str:
    """Return a figure with its unit.

    Examples
    --------
    >>> figure(0.5, "s"), figure(3.14159, "mean error"), figure(None, "s")
    ('500 ms', '3.142 mean error', '')

    """
    if value is None or not math.isfinite(value):
        return ""
    if unit == "s":
        return human(value)
    return f"epsilon is {value:.3g} at least" if unit == "epsilon" else f"{value:.4g} {unit}"


def ratio(row: dict[str, Any]) -> str:
    """Return a ratio to ours and its spread.

    Examples
    --------
    >>> ratio({"ratio": 14.24, "ratio_low": 13.9, "ratio_high": 14.61})
    '14.2x (13.9 to 14.6)'

    """
    if row["ratio"] is None:
        return ""
    middle, low, high = (
        f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        for value in (row["ratio"], row["ratio_low"], row["ratio_high"])
    )
    return f"{middle}x ({low} to {high})"


def cells(row: dict[str, Any]) -> list[str]:
    """Return what a table shows of a row of results."""
    peak = f", {row['peak_mb']:,.0f} MB" if row["peak_mb"] is not None else ""
    return [
        row["name"],
        row["contestant"],
        f"{row['size']:,}" if row["size"] != 1 else "",  # a run of one thing
        figure(row.get("median"), row["unit"]) + peak,
        row["failure"] or ratio(row),
    ]


def noted(row: dict[str, Any]) -> str:
    """Return what there is to say of a row beside its figures."""
    who = "" if row["name"].startswith(row["contestant"]) else f", {row['contestant']}"
    return f"{row['name']}{who}: {row['note']}"
