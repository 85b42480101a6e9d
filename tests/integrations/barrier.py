"""What engines do with a LazyFrame (polars.md), and how often that charged, read and drew.

Run as a program it goes through all of it under the settings of its environment, which Polars reads once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
import dpfast.integrations.polars
from dpfast.aggregation.exact import Aggregation
from dpfast.mechanisms.noise.integer_noise import IntegerNoise

#: Before 2.0, Polars raises an error of its own, with our text, where a scan of ours raises one.
IS_OLD = int(pl.__version__.partition(".")[0]) < 2
#: Groups: no other column of noise in these tests is as long.
HEIGHT = 397
FLAGS = [name for name in vars(pl.QueryOptFlags) if isinstance(vars(pl.QueryOptFlags)[name], property)]
OPTIMISATIONS = {
    "default": pl.QueryOptFlags(),
    "none": pl.QueryOptFlags.none(),
    **{f"no {flag}": pl.QueryOptFlags(**{flag: False}) for flag in FLAGS},
}
ENGINES = ["in-memory", "streaming"]
MODES = ["eager", *((engine, name) for engine in ENGINES for name in OPTIMISATIONS)]
ROWS = pl.DataFrame({"k": np.arange(20 * HEIGHT) % HEIGHT})
DATA = pl.LazyFrame({"k": np.arange(3 * HEIGHT) % HEIGHT, "x": np.ones(3 * HEIGHT)})
KEYS = pl.DataFrame({"k": np.arange(HEIGHT)})
ASKED = {"keys": KEYS, "n": dpf.count(), "s": pl.col("x").dpf.sum(bounds=(0, 1)), "epsilon": 0.1}


@dataclass
class Case:
    """One plan and its ledger, and how figures are had of it."""

    plan: Any
    ledger: dpf.Ledger = field(default_factory=lambda: dpf.Ledger(epsilon=1))

    def figures(self, source: str) -> pl.LazyFrame:
        return self.plan.lazy(self.ledger) if source == "plan" else self.plan.run(self.ledger).lazy()


@contextmanager
def counting() -> Iterator[tuple[Case, list[str]]]:
    """Yield a case, and what it did of reading and drawing."""
    case, done = Case(DATA.dpf.plan("k", **{"privacy_unit": "row", **ASKED})), []
    run, add = Aggregation.run, IntegerNoise.add

    def spied_run(self: Aggregation, words: Any) -> Any:
        if self is case.plan._blueprint.aggregation:
            done.append("read")
        return run(self, words)

    def spied_add(self: IntegerNoise, values: Any, *given: Any, **named: Any) -> Any:
        if values.size == HEIGHT:
            done.append("draw")
        return add(self, values, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Aggregation, "run", spied_run)
        patch.setattr(IntegerNoise, "add", spied_add)
        yield case, done


Run = Callable[[Any], pl.DataFrame]


def one_each(frame: pl.DataFrame) -> None:
    """Check that each group has one value of each query."""
    assert frame.select("k", "n").unique().height == frame["k"].n_unique()
    assert frame.select("k", "s").unique().height == frame["k"].n_unique()


def collected_twice(figures: Any, run: Run) -> None:
    assert run(figures).sort("k").equals(run(figures).sort("k"))


def concatenated(figures: Any, run: Run) -> None:
    both = run(pl.concat([figures, figures, figures.filter(pl.col("k") > 9)]))
    assert both.height == 3 * HEIGHT - 10
    one_each(both)


def joined_with_itself(figures: Any, run: Run) -> None:
    joined = run(figures.join(figures, on="k", suffix="_again"))
    assert joined.height == HEIGHT
    assert (joined["n"] == joined["n_again"]).all()
    assert (joined["s"] == joined["s_again"]).all()


def joined_on_rows(figures: Any, run: Run) -> None:
    rows = ROWS if isinstance(figures, pl.DataFrame) else ROWS.lazy()
    joined = run(rows.join(figures, on="k").with_columns(mean=pl.col("n").mean().over("k")))
    assert joined.height == 20 * HEIGHT
    one_each(joined)
    assert (joined["mean"] == joined["n"]).all()


def used_in_many_expressions(figures: Any, run: Run) -> None:
    size = pl.when(pl.col("s") > 0).then(pl.col("s")).otherwise(-pl.col("s"))
    frame = run(figures.with_columns(size.alias("size"), (pl.col("s") - pl.col("s")).alias("zero")))
    assert frame["size"].min() >= 0
    assert (frame["size"] == frame["s"].abs()).all()
    assert (frame["zero"] == 0).all()


def summed_over_windows(figures: Any, run: Run) -> None:
    frame = run(figures.with_columns(total=pl.col("n").sum().over(pl.col("k") % 3)))
    assert frame.group_by(pl.col("k") % 3).agg(pl.col("total").n_unique())["total"].to_list() == [1, 1, 1]


def in_parts(figures: Any, run: Run) -> None:
    whole = run(figures.sort("k"))
    assert run(figures.filter(pl.col("k") % 7 == 0)).sort("k").equals(whole.filter(pl.col("k") % 7 == 0))
    assert run(figures.filter(pl.col("n") > 2).select("s")).height == (whole["n"] > 2).sum()
    assert run(figures.sort("k").head(11)).equals(whole.head(11))
    assert run(figures.head(11)).join(whole, on=whole.columns).height == 11
    assert run(figures.filter(pl.col("k") > 300).head(5).select("n")).height == 5
    assert run(figures.tail(3)).height == run(figures.slice(5, 3)).height == 3
    assert run(figures.select("s", "k")).sort("k").equals(whole.select("s", "k"))
    assert run(figures.select(pl.len())).item() == HEIGHT
    assert run(figures.select(pl.col("n").sum())).item() == whole["n"].sum()


def written_twice(figures: Any, run: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{place}.parquet" for place in range(2)]
        for path in paths:
            figures.lazy().sink_parquet(path)
        first, second = (pl.read_parquet(path).sort("k") for path in paths)
    assert first.equals(second)
    assert first.equals(run(figures).sort("k"))


def by_eight_at_once(figures: Any, run: Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(lambda _: run(figures).sort("k"), range(8))
    assert all(other.equals(first) for other in others)


def all_collected(figures: Any, run: Run) -> None:
    lazy = figures.lazy()
    parts = [lazy, lazy.select("k", "n"), lazy.filter(pl.col("k") > 5), pl.concat([lazy, lazy])]
    whole, *others = pl.collect_all(parts)
    assert all(other.select("k", "n").join(whole, on=["k", "n"]).height == other.height for other in others)


def otherwise_collected(figures: Any, run: Run) -> None:
    """By summaries, in the background, in batches."""
    lazy = figures.lazy()
    lazy.describe()
    assert lazy.cache().collect().height == HEIGHT
    assert lazy.collect(background=True).fetch_blocking().height == HEIGHT
    assert pl.concat(lazy.collect_batches()).sort("k").equals(run(figures).sort("k"))


PATTERNS = [
    collected_twice,
    concatenated,
    joined_with_itself,
    joined_on_rows,
    used_in_many_expressions,
    summed_over_windows,
    in_parts,
    written_twice,
    by_eight_at_once,
    all_collected,
    otherwise_collected,
]


def runner(mode: Any) -> Run:
    if mode == "eager":
        return lambda frame: frame
    engine, optimisations = mode
    return lambda frame: frame.collect(engine=engine, optimizations=OPTIMISATIONS[optimisations])


def check(pattern: Callable[[Any, Run], None], source: str, mode: Any) -> None:
    """Run one pattern over fresh figures: one charge, one reading, and one draw for each query."""
    with counting() as (case, done):
        lazy = case.figures(source)
        before = (0.0, []) if source == "plan" else (0.1, ["read", "draw", "draw"])
        for _ in range(2):
            lazy.explain()
            lazy.explain(engine="streaming")
            lazy.collect_schema()
            repr(lazy)
        assert (case.ledger.spent.epsilon, done) == before
        pattern(lazy.collect() if mode == "eager" else lazy, runner(mode))
        assert done == ["read", "draw", "draw"]
        assert case.ledger.spent.epsilon == 0.1
        assert case.ledger.history().height == 2
        assert case.plan.run(case.ledger).frame.schema == lazy.collect_schema()


if __name__ == "__main__":
    tried = 0
    for source in ("plan", "release"):
        for mode in ("eager", *((engine, name) for engine in ENGINES for name in ("default", "none"))):
            for pattern in PATTERNS:
                check(pattern, source, mode)
                tried += 1
    print(pl.thread_pool_size(), tried)
