"""Results: one row for each contestant that was measured, as a frame and as a Parquet file."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from dpfast.bench.cases import BOUND, Case, Measured
from dpfast.bench.machine import Machine
from dpfast.bench.spread import spread_of
from dpfast.errors import FileError

__all__ = ["FORMAT", "SCHEMA", "About", "holds_results", "read_results", "rows_of", "to_frame"]

#: Raised where a column changes its meaning.
FORMAT = 1
SCHEMA: dict[str, Any] = {
    "format": pl.Int32,
    "suite": pl.String,
    "name": pl.String,
    "contestant": pl.String,
    "size": pl.Int64,
    "rounds": pl.Int32,
    "unit": pl.String,
    "median": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "ratio": pl.Float64,
    "ratio_low": pl.Float64,
    "ratio_high": pl.Float64,
    "peak_mb": pl.Float64,
    "failure": pl.String,
    "note": pl.String,
    "machine": pl.String,
    "versions": pl.String,
    "dpfast": pl.String,
    "commit": pl.String,
    "time": pl.Datetime("us", "UTC"),
}


@dataclass(frozen=True)
class About:
    """What is said of every row of one run: the machine, versions of packages, and the commit if it is known."""

    machine: Machine
    versions: dict[str, str]
    commit: str | None


def rows_of(case: Case, measured: Sequence[Measured], about: About) -> list[dict[str, Any]]:
    """Return the rows of one case: ratios are to what was measured first at this size, in the same round.

    A ratio above 1 says that the first one is better: that it takes less time, or errs less.
    """
    now = datetime.datetime.now(datetime.UTC)
    rows: list[dict[str, Any]] = []
    first = None
    for one in measured:
        first = one if one.is_first or first is None else first
        row: dict[str, Any] = dict.fromkeys(SCHEMA) | {
            "format": FORMAT,
            "suite": case.suite,
            "name": case.name,
            "contestant": one.contestant,
            "size": one.size,
            "rounds": len(one.figures),
            "unit": one.unit,
            "peak_mb": one.peak,
            "failure": one.failure,
            "note": one.note,
            "machine": str(about.machine),
            "versions": json.dumps(about.versions),
            "dpfast": _own_version(),
            "commit": about.commit,
            "time": now,
        }
        if one.figures:
            spread = spread_of(one.figures)
            row |= {"median": spread.median, "low": spread.low, "high": spread.high}
        if ratios := _ratios(first, one):
            spread = spread_of(ratios)
            row |= {"ratio": spread.median, "ratio_low": spread.low, "ratio_high": spread.high}
        rows.append(row)
    return rows


@cache
def _own_version() -> str:
    return version("dpfast")


def _ratios(first: Measured, one: Measured) -> list[float]:
    if one is first or len(first.figures) != len(one.figures) or one.unit != first.unit or one.unit == BOUND:
        return []
    share = first.size / one.size if one.per_value else 1.0
    pairs = zip(one.figures, first.figures, strict=True)
    return [share * theirs / ours for theirs, ours in pairs if ours > 0]


def to_frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a frame with all columns."""
    return pl.DataFrame(list(rows), schema=SCHEMA)


def holds_results(path: str | Path) -> bool:
    """Return whether a file is one that ``dpfast bench --out`` may replace: results of an earlier run, or empty."""
    try:
        return not Path(path).stat().st_size or list(pl.read_parquet_schema(path)) == list(SCHEMA)
    except (pl.exceptions.PolarsError, OSError):
        return False


def read_results(path: str | Path, argument: str = "path") -> pl.DataFrame:
    """Return what ``dpfast bench --out`` wrote; an error calls the file by the name of its argument.

    Raises
    ------
    FileError
        It is no such file, or one of another format.

    """
    allowed = "a file that dpfast bench --out wrote"
    if not Path(path).is_file():
        raise FileError(argument, str(path), f"{allowed}, but there is no such file")
    try:
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError):
        raise FileError(argument, str(path), f"{allowed}, but it cannot be read as Parquet") from None
    if frame.is_empty() or "format" not in frame.columns:
        raise FileError(argument, str(path), allowed)
    if (found := int(frame["format"].cast(pl.Int64).max() or 0)) != FORMAT:  # type: ignore[arg-type]
        mend = "compare files with the version that wrote the newer one, or measure again"
        raise FileError(argument, str(path), f"of format {FORMAT}, which this version reads, not {found}", mend)
    if lost := [name for name in SCHEMA if name not in frame.columns]:
        raise FileError(argument, str(path), f"{allowed}, but it lacks {', '.join(lost)}")
    return frame.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
