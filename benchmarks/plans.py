"""Rows of the table about plans: wished errors beside a budget, a preview beside the draws, and what bounding cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

from .prepared import Prepared

__all__ = ["CHOSEN", "chosen", "cut_report", "preview", "wished_answers", "wished_plan"]

_GROUPS, _REPEATS = 100, 20
CHOSEN = "bounds of rows", "bounds of units", "limits"


def _rows(size: int) -> pl.DataFrame:
    generator = np.random.default_rng(20_261_123)
    return pl.DataFrame(
        {
            "key": generator.integers(0, _GROUPS, size),
            "unit": generator.integers(0, max(1, size // 10), size),
            "x": generator.uniform(0, 10, size),
        }
    )


def _plan(frame: pl.DataFrame, **more: Any) -> Any:
    asked = {"keys": pl.DataFrame({"key": np.arange(_GROUPS)}), "privacy_unit": "unit"} | more
    limits = {"max_groups": 5, "max_rows_per_group": 2}
    return dpf.plan(frame, "key", n=dpf.count(), m=dpf.mean("x", bounds=(0, 10)), **limits, **asked)


def chosen(what: str) -> Callable[[int], Prepared]:
    """Return the row of bounds or limits that are chosen privately, beside given ones: 100 rows a unit.

    Bounds of rows are chosen by two histograms, the second of which depends on what the first one told: each counts all
    values anew, in half of the baseline's time, and which keys count takes .2. Choosing and planning takes 17 ms of
    processor time whatever the rows are, another half: 2.7 in all, and as much more as the histograms' threads wait.
    """

    def prepare(size: int) -> Prepared:
        generator = np.random.default_rng(20_261_125)
        columns = {
            "key": generator.integers(0, _GROUPS, size),
            "unit": generator.integers(0, max(1, size // 100), size),
        }
        frame = pl.DataFrame({**columns, "x": generator.normal(1, 3, size)})
        keys = pl.DataFrame({"key": np.arange(_GROUPS)})
        given: dict[str, Any] = {"privacy_unit": "unit", "max_groups": 10, "max_rows_per_group": 5}
        auto = given | {"max_groups": "auto", "max_rows_per_group": "auto"}
        query, open_query = dpf.mean("x", bounds=(-10, 10)), dpf.mean("x", bounds="auto")
        if what == "bounds of rows":
            given = {"privacy_unit": "row"}
        if what == "limits":
            query = open_query = dpf.count()

        def run(answer: Any, asked: dict[str, Any]) -> Any:
            # Clipping a unit as a whole needs no limits.
            plan = dpf.plan(frame, "key", keys=keys, epsilon=1.0, mechanism="laplace", answer=answer, **asked)
            return plan.run(dpf.Ledger(epsilon=1.0)).frame

        return Prepared(
            lambda: run(open_query, auto if what == "limits" else given),
            lambda: run(query, given),
            agree=lambda mine, theirs: mine.height == theirs.height == _GROUPS,
        )

    return prepare


def wished_answers(size: int) -> Prepared:
    """Answer queries by the errors that are wished for each, beside an epsilon for each."""
    table = pl.DataFrame({"n": np.arange(size)}).with_columns(wish=(pl.col("n") % 90 + 10).cast(pl.Float64))
    # At that epsilon the noise exceeds the wish with probability 0.05 at most.
    table = table.with_columns(epsilon=3.0 / pl.col("wish"))

    def ours() -> Any:
        return dpf.answer(table, value="n", error="wish", ledger=dpf.Ledger(epsilon=float(size)))

    def baseline() -> Any:
        return dpf.answer(table, value="n", epsilon="epsilon", ledger=dpf.Ledger(epsilon=float(size)))

    return Prepared(ours, baseline, agree=lambda mine, theirs: mine.height == theirs.height == size)


def wished_plan(size: int) -> Prepared:
    """Plan a count and five means by the errors that are wished, beside a given epsilon: no row is read."""
    rows = pl.int_range(size, eager=True)
    frame = pl.DataFrame({"key": rows % 2, "unit": rows, **{f"x{number}": rows % 7 for number in range(5)}})
    means: dict[str, Any] = {f"m{number}": dpf.mean(f"x{number}", bounds=(0, 2 + number)) for number in range(5)}
    wishes = {"n": 50} | {name: ("mean", query.bounds[1] / 20, 500) for name, query in means.items()}
    keys = pl.DataFrame({"key": [0, 1]})
    asked: dict[str, Any] = {"keys": keys, "privacy_unit": "unit", "max_groups": 2, "n": dpf.count()}
    asked |= {"max_rows_per_group": 3, "delta": 1e-6, **means}

    def plan(**more: Any) -> Any:
        return dpf.plan(frame, "key", **asked, **more)

    return Prepared(
        lambda: plan(error=wishes),
        lambda: plan(epsilon=1.0),
        agree=lambda mine, theirs: mine.to_frame().height == theirs.to_frame().height,
    )


def preview(size: int) -> Prepared:
    """Preview a plan on public rows, beside as many releases of them."""
    frame, sample = _rows(10), _rows(size)

    def ours() -> Any:
        return dpf.preview(_plan(frame, epsilon=1.0), sample, repeats=_REPEATS)

    def baseline() -> Any:
        return [_plan(sample, epsilon=1.0).run(dpf.Ledger(epsilon=1.0)) for _ in range(_REPEATS)]

    return Prepared(ours, baseline, agree=lambda mine, theirs: mine.repeats == len(theirs))


def cut_report(share: float) -> Callable[[int], Prepared]:
    """Return the row of a release that tells what bounding cut, for a share of the budget, beside one that does not."""

    def prepare(size: int) -> Prepared:
        frame = _rows(size)

        def ours() -> Any:
            return _plan(frame, epsilon=1.0, report_cut=share).run(dpf.Ledger(epsilon=1.0)).frame

        def baseline() -> Any:
            return _plan(frame, epsilon=1.0).run(dpf.Ledger(epsilon=1.0)).frame

        return Prepared(ours, baseline, agree=lambda mine, theirs: mine.height == theirs.height == _GROUPS)

    return prepare
