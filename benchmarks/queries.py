"""Rows of the table about statistics by group, each beside its plain expression in Polars."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.queries import Query

from .prepared import Prepared

__all__ = ["ASKED", "calendar_keys", "filtered_by_group", "filtered_count", "of_units", "sketch", "statistic"]

_GROUPS = 100
_X = pl.col("x")
_EDGES = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]
#: What is asked, beside what Polars computes.
ASKED: dict[str, tuple[Query, pl.Expr]] = {
    "sum": (dpf.sum("x", bounds=(-10, 10)), _X.sum()),
    "mean": (dpf.mean("x", bounds=(-10, 10)), _X.mean()),
    "mean, with intervals for a population": (dpf.mean("x", bounds=(-10, 10)), _X.mean()),
    "proportion": (dpf.proportion(dpf.column("x") > 1), (_X > 1).mean()),
    "count of some rows": (dpf.count(where=dpf.column("x") > 1), (_X > 1).sum()),
    "variance": (dpf.variance("x", bounds=(-10, 10)), _X.var()),
    "std": (dpf.std("x", bounds=(-10, 10)), _X.std()),
    "covariance": (
        dpf.covariance("x", "y", bounds=(-10, 10), other_bounds=(0, 1000)),
        pl.cov("x", "y"),
    ),
    "histogram": (
        dpf.histogram("x", _EDGES),
        pl.concat_list(((low <= _X) & (high > _X)).sum() for low, high in pairwise(_EDGES)),
    ),
    "distribution function": (dpf.cdf("x", _EDGES), pl.concat_list((edge >= _X).mean() for edge in _EDGES)),
    "minimum": (dpf.minimum("x", bounds=(-10, 10)), _X.quantile(0.01)),
    "different values": (dpf.count_distinct("y"), pl.col("y").n_unique()),
    "most common": (dpf.top_k("y", 3, candidates=list(range(20))), pl.col("y").value_counts(sort=True).head(3)),
    "most common, found in the data": (dpf.top_k("y", 3), pl.col("y").value_counts(sort=True).head(3)),
    "most common texts, found in the data": (dpf.top_k("z", 3), pl.col("z").value_counts(sort=True).head(3)),
    "units": (dpf.units(), pl.col("unit").n_unique()),
}


def statistic(kind: str) -> Callable[[int], Prepared]:
    """Return the row of one statistic by 100 groups."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_123)
        frame = pl.DataFrame(
            {
                "key": generator.integers(0, _GROUPS, size),
                "unit": generator.integers(0, max(1, size // 10), size),
                "x": generator.normal(size=size),
                "y": generator.integers(0, 1000, size),
            }
        )
        if "texts" in kind:
            frame = frame.with_columns(z="place " + pl.col("y").cast(pl.String))
        keys = pl.DataFrame({"key": np.arange(_GROUPS)})
        query, expression = ASKED[kind]
        asked: dict[str, Any] = {"privacy_unit": "row"}
        if kind == "units":
            asked = {"privacy_unit": "unit", "max_groups": 10, "max_rows_per_group": 1}
        if kind.endswith("population"):
            asked["interval"] = "population"
        if kind.endswith("found in the data"):
            asked["delta"] = 1e-6

        def ours() -> Any:
            plan = dpf.plan(frame, "key", keys=keys, answer=query, epsilon=0.5, **asked)
            return plan.run(dpf.Ledger(epsilon=1.0, delta=1e-6)).frame

        def baseline() -> Any:
            return frame.group_by("key").agg(expression.alias("exact"))

        return Prepared(ours, baseline, agree=_agree)

    return prepare


def sketch(texts: bool) -> Callable[[int], Prepared]:
    """Return the row of a sketch of different values, nearly all of which are different, numbers or texts."""

    def prepare(size: int) -> Prepared:
        values = pl.Series("v", np.random.default_rng(20_261_123).integers(0, 2**40, size))
        frame = values.to_frame().with_columns(v="visitor " + pl.col("v").cast(pl.String) if texts else pl.col("v"))

        def ours() -> Any:
            ledger = dpf.Ledger(epsilon=1.0)
            return dpf.distinct_sketch(frame, "v", epsilon=1.0, privacy_unit="row", ledger=ledger)

        def agree(mine: Any, theirs: int) -> bool:
            # 14 of its standard deviations.
            return bool(abs(mine.estimate() / theirs - 1) < 0.4)

        return Prepared(ours, frame["v"].n_unique, agree=agree)

    return prepare


def _rows(size: int) -> pl.DataFrame:
    generator = np.random.default_rng(20_261_124)
    seconds = pl.Series(generator.integers(0, 365 * 86_400, size), dtype=pl.Int64) * 1_000_000
    start = datetime.datetime(2026, 1, 1)
    return pl.DataFrame(
        {
            "key": generator.integers(0, _GROUPS, size),
            "x": generator.normal(size=size),
            "at": seconds.cast(pl.Duration("us")) + start,
        }
    )


def filtered_count(size: int) -> Prepared:
    """Count the rows that pass a filter, without keys: beside the expression that leaves out NaN, as ours does."""
    frame, where = _rows(size), dpf.column("x") > 1

    def ours() -> Any:
        return _released(dpf.plan(frame, answer=dpf.count(), where=where, epsilon=0.5, privacy_unit="row"))

    def baseline() -> Any:
        return frame.lazy().filter((_X > 1) & _X.is_not_nan()).select(exact=pl.len()).collect(engine="streaming")

    return Prepared(ours, baseline, agree=lambda mine, theirs: abs(mine["answer"][0] - theirs["exact"][0]) < 1000)


def of_units(kind: str) -> Callable[[int], Prepared]:
    """Return the row of sums or means of a tenth as many units as rows, by 100 groups; each has rows in few."""

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_123)
        units = generator.integers(0, max(1, size // 10), size)
        groups = (units + generator.integers(0, 4, size)) % _GROUPS
        frame = pl.DataFrame({"key": groups, "unit": units, "x": generator.normal(size=size)})
        keys = pl.DataFrame({"key": np.arange(_GROUPS)})
        query = dpf.sum("x", unit_bounds=(-3, 5)) if kind == "sum" else dpf.mean("x", bounds=(-2, 2), per="unit")
        each = _X.sum().clip(-3, 5) if kind == "sum" else _X.clip(-2, 2).mean()
        exact = _X.sum() if kind == "sum" else _X.mean()

        def ours() -> Any:
            asked: dict[str, Any] = {"privacy_unit": "unit", "max_groups": 4, "epsilon": 0.5}
            return dpf.plan(frame, "key", keys=keys, answer=query, **asked).run(dpf.Ledger(epsilon=1.0)).frame

        def baseline() -> Any:
            return frame.group_by("unit", "key").agg(each).group_by("key").agg(exact.alias("exact"))

        return Prepared(ours, baseline, agree=_agree)

    return prepare


def filtered_by_group(size: int) -> Prepared:
    """Count the rows that pass a filter by 100 groups."""
    frame, where = _rows(size), dpf.column("x") > 1
    keys = pl.DataFrame({"key": np.arange(_GROUPS)})

    def ours() -> Any:
        asked = {"by": "key", "keys": keys, "where": where, "answer": dpf.count()}
        return _released(dpf.plan(frame, **asked, epsilon=0.5, privacy_unit="row"))

    def baseline() -> Any:
        return frame.lazy().filter(_X > 1).group_by("key").agg(exact=pl.len()).collect(engine="streaming")

    return Prepared(ours, baseline, agree=_agree)


def calendar_keys(size: int) -> Prepared:
    """Count rows by the months of their moments."""
    frame = _rows(size)
    by, keys = dpf.calendar("at", "month"), pl.DataFrame({"at_month": np.arange(1, 13)})

    def ours() -> Any:
        return _released(dpf.plan(frame, by, keys=keys, answer=dpf.count(), epsilon=0.5, privacy_unit="row"))

    def baseline() -> Any:
        return frame.lazy().group_by(pl.col("at").dt.month()).agg(exact=pl.len()).collect(engine="streaming")

    return Prepared(ours, baseline, agree=lambda mine, theirs: mine.height == theirs.height == 12)


def _released(plan: Any) -> Any:
    return plan.run(dpf.Ledger(epsilon=1.0)).frame


def _agree(mine: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Return whether all groups are there, and numbers lie within 20 times their intervals of the exact ones.

    Noise is wider with a probability of e**-60 or less. Quantiles and lists have other columns, and are compared by
    tests of their own.
    """
    both = mine.join(theirs, on="key")
    if both.height != _GROUPS or "answer_lower" not in mine.columns or not both.schema["exact"].is_numeric():
        return both.height == _GROUPS
    reach = 20 * (both["answer_upper"] - both["answer_lower"]) + 1e-6
    return bool(((both["answer"] - both["exact"]).abs() <= reach).all())
