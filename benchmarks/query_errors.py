"""Errors of statistics by group, each beside what a newcomer would write with counts and sums at the same epsilon.

    python -m benchmarks.query_errors            write benchmarks/query_errors.md

Every line is the root mean square error over 200 groups of 1,000 rows, of people with up to 5 rows each in one group;
of the most common values, which part of the one or the five is not among those that are named. The last of each epsilon
is of 100,000 values, and of 20 runs. Below them stand the promises of `benchmarks.promises`.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.queries import Query, RankedQuery

from .promises import population_table, wishes_table

_GROUPS, _ROWS, _EACH = 200, 1000, 5
_VALUES, _MOST, _DELTA = 50, 5, 1e-6
_EDGES = np.linspace(-4, 4, 161).tolist()
_BOUNDS, _OF_UNITS = (-10.0, 10.0), (-30.0, 30.0)
_KEYS = pl.DataFrame({"key": np.arange(_GROUPS)})
_TARGET = Path(__file__).parent / "query_errors.md"


def made_up(seed: int) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    keys = np.repeat(np.arange(_GROUPS), _ROWS)
    x = generator.normal(generator.uniform(-3, 3, _GROUPS).repeat(_ROWS), 2)
    y = x + generator.normal(size=x.size)
    z = np.minimum(generator.geometric(0.15, x.size), _VALUES)
    return pl.DataFrame({"key": keys, "unit": np.arange(keys.size) // _EACH, "x": x, "y": y, "z": z})


def _released(frame: pl.DataFrame, epsilon: float, **queries: Query) -> pl.DataFrame:
    unit = {"privacy_unit": "unit", "max_groups": 1, "max_rows_per_group": _EACH}
    # Only what is found in the data needs a delta.
    delta = (
        _DELTA if any(isinstance(query, RankedQuery) and not query.candidates for query in queries.values()) else 0.0
    )
    ledger = dpf.Ledger(epsilon=epsilon, delta=delta)
    return dpf.release(frame, "key", keys=_KEYS, epsilon=epsilon, delta=delta, ledger=ledger, **unit, **queries).frame


def _missed(found: list[list[int]], exact: list[list[int]]) -> float:
    """Return which part of the most common values is not named."""
    return float(np.mean([len(set(right) - set(named)) / _MOST for named, right in zip(found, exact, strict=True)]))


def _value_lines(frame: pl.DataFrame, epsilon: float) -> list[tuple[str, str, float, float]]:
    """Return the same as `lines` of how many values there are, and of the most common ones."""
    truth = frame.group_by("key", maintain_order=True).agg(
        n=pl.col("z").n_unique(), t=pl.col("z").value_counts(sort=True).struct.field("z").head(_MOST)
    )
    common = truth["t"].to_list()
    candidates = list(range(1, _VALUES + 1))
    public = _released(frame, epsilon, t=dpf.top_k("z", _MOST, candidates=candidates))["t"].to_list()
    counts = np.array(_released(frame, epsilon, h=dpf.histogram("z", [*candidates, _VALUES + 1]))["h"].to_list())
    by_counts = (np.argsort(-counts, axis=1)[:, :_MOST] + 1).tolist()
    found = _released(frame, epsilon, t=dpf.top_k("z", _MOST))["t"].to_list()
    pairs = dpf.release(
        frame, ["key", "z"], n=dpf.count(), epsilon=epsilon, delta=_DELTA, privacy_unit="unit", max_groups=_EACH,
        max_rows_per_group=_EACH, ledger=dpf.Ledger(epsilon=epsilon, delta=_DELTA),
    ).frame.sort("n", descending=True)  # fmt: skip
    named: list[list[int]] = [pairs.filter(pl.col("key") == key)["z"].head(_MOST).to_list() for key in range(_GROUPS)]
    distinct = _released(frame, epsilon, n=dpf.count_distinct("z"))["n"]
    scale = dpf.plan(
        frame, "key", keys=_KEYS, h=dpf.histogram("z", [*candidates, _VALUES + 1]), epsilon=epsilon,
        privacy_unit="unit", max_groups=1, max_rows_per_group=_EACH,
    ).to_frame()["scale"][0]  # fmt: skip
    present = (counts > 2 * scale).sum(axis=1)
    mode, first = _released(frame, epsilon, o=dpf.mode("z", candidates=candidates))["o"], truth["t"].list.first()

    def error(numbers: Any) -> float:
        return float(np.sqrt(np.mean((np.array(numbers) - truth["n"].to_numpy()) ** 2)))

    return [
        ("different values", "counts of a histogram above 2 scales", error(distinct), error(present)),
        (
            "most common of 50",
            "the largest count of a histogram",
            float((mode != first).mean()),  # type: ignore[arg-type]  # of a share
            float(np.mean(counts.argmax(axis=1) + 1 != first.to_numpy())),
        ),
        (
            "5 most common of 50",
            "the largest counts of a histogram",
            _missed(public, common),
            _missed(by_counts, common),
        ),
        ("5 most common, found", "counts by key and value", _missed(found, common), _missed(named, common)),
    ]


def _moments(frame: pl.DataFrame, epsilon: float, second: pl.Expr, other: str) -> pl.Series:
    """Return a covariance by plain sums: of products, of both columns, and a count, each at a quarter of epsilon."""
    largest = max(map(abs, _BOUNDS))
    products = frame.with_columns(p=pl.col("x").clip(*_BOUNDS) * second.clip(*_BOUNDS))
    plain = _released(
        products, epsilon, n=dpf.count(), a=dpf.sum("x", bounds=_BOUNDS), b=dpf.sum(other, bounds=_BOUNDS),
        p=dpf.sum("p", bounds=(0 if other == "x" else -(largest**2), largest**2)),
    )  # fmt: skip
    n = plain["n"].clip(1)
    return plain["p"] / n - (plain["a"] / n) * (plain["b"] / n)


def lines(frame: pl.DataFrame, epsilon: float) -> list[tuple[str, str, float, float]]:
    """Return of every statistic what it is beside, its error, and that of the other."""
    x, y = pl.col("x"), pl.col("y")
    truth = frame.group_by("key", maintain_order=True).agg(
        v=x.var(), c=pl.cov("x", "y"), p=(x > 1).mean(), u=pl.col("unit").n_unique(),
        h=pl.concat_list(((x >= low) & (x < high)).sum() for low, high in pairwise(_EDGES[::8])),
        f=pl.concat_list((x <= edge).mean() for edge in _EDGES),
        d=x.std(), low=x.quantile(0.01), high=x.quantile(0.99), s=x.sum(), m=x.mean(),
    )  # fmt: skip
    few = _EDGES[::8]

    def error(found: pl.Series, exact: pl.Series) -> float:
        arrays = [np.array(one.to_list(), np.float64) for one in (found, exact)]
        return float(np.sqrt(np.mean((arrays[0] - arrays[1]) ** 2)))

    ours = {
        "v": dpf.variance("x", bounds=_BOUNDS), "p": dpf.proportion("x", above=1), "u": dpf.units(),
        "c": dpf.covariance("x", "y", bounds=_BOUNDS, other_bounds=_BOUNDS), "h": dpf.histogram("x", few),
        "f": dpf.cdf("x", _EDGES), "d": dpf.std("x", bounds=_BOUNDS), "low": dpf.minimum("x", bounds=_BOUNDS),
        "high": dpf.maximum("x", bounds=_BOUNDS), "s": dpf.sum("x", unit_bounds=_OF_UNITS),
        "m": dpf.mean("x", bounds=_BOUNDS, per="unit"),
    }  # fmt: skip
    errors = {
        name: error(_released(frame, epsilon, **{name: query})[name], truth[name]) for name, query in ours.items()
    }
    above = frame.with_columns(above=(x > 1).cast(pl.Int64))
    halves = _released(above, epsilon, n=dpf.count(), a=dpf.sum("above", bounds=(0, 1)))
    bins = [
        _released(
            frame.with_columns(b=((x >= low) & (x < high)).cast(pl.Int64)),
            epsilon / (len(few) - 1),
            q=dpf.sum("b", bounds=(0, 1)),
        )["q"]
        for low, high in pairwise(few)
    ]
    cells = _released(frame, epsilon, h=dpf.histogram("x", [-1e6, *_EDGES, 1e6]))["h"]
    counts = np.array(cells.to_list(), np.float64).cumsum(axis=1)
    prefix = pl.Series((counts[:, :-1] / np.maximum(counts[:, -1:], 1)).tolist())
    ends = np.concatenate([_EDGES, _EDGES[-1:]])
    low, high = (pl.Series(ends[(np.array(prefix.to_list()) < part).sum(axis=1)]) for part in (0.01, 0.99))
    rows = {"s": dpf.sum("x", bounds=_BOUNDS), "m": dpf.mean("x", bounds=_BOUNDS)}
    by_row = {name: _released(frame, epsilon, **{name: query})[name] for name, query in rows.items()}
    others = {
        "v": ("sums of squares and values, and a count", _moments(frame, epsilon, x, "x")),
        "c": ("sums of products and values, and a count", _moments(frame, epsilon, y, "y")),
        "p": ("a sum of 0 and 1, and a count", (halves["a"] / halves["n"].clip(1)).clip(0, 1)),
        "u": ("a count of rows, divided by 5", _released(frame, epsilon, n=dpf.count())["n"] / _EACH),
        "h": ("20 sums, at a twentieth of epsilon each", pl.Series(np.stack(bins, axis=1).tolist())),
        "f": ("a histogram, added up", prefix),
        "d": ("the root of such a variance", _moments(frame, epsilon, x, "x").clip(0).sqrt()),
        "low": ("where a histogram reaches 1%", low),
        "high": ("where a histogram reaches 99%", high),
        "s": ("a sum of rows, each within its bounds", by_row["s"]),
        "m": ("a mean of rows", by_row["m"]),
    }
    names = {
        "v": "variance",
        "c": "covariance",
        "p": "proportion",
        "u": "units",
        "h": "histogram, 20 bins",
        "f": "cdf, 161 points",
        "d": "standard deviation",
        "low": "minimum, the 1% quantile",
        "high": "maximum, the 99% quantile",
        "s": "sum of units' sums, within (-30, 30)",
        "m": "mean of units' means",
    }
    return [(names[name], told, errors[name], error(found, truth[name])) for name, (told, found) in others.items()]


def _sketch_line(epsilon: float) -> tuple[str, str, float, float]:
    """Return the same of values that are in two places, a third of those of each in both: 20 runs."""
    numbers = [np.arange(60_000), np.arange(40_000, 100_000)]
    sketched, added = [], []
    for _ in range(20):
        places = [pl.DataFrame({"v": some}) for some in numbers]
        asked = {"epsilon": epsilon, "privacy_unit": "row"}
        one, other = (
            dpf.distinct_sketch(place, "v", key=len(added), ledger=dpf.Ledger(epsilon=epsilon), **asked)
            for place in places
        )
        sketched.append(one.merge(other).estimate())
        counts = [
            dpf.release(place, n=dpf.count_distinct("v"), ledger=dpf.Ledger(epsilon=epsilon), **asked).frame["n"][0]
            for place in places
        ]
        added.append(sum(counts))
    errors = [float(np.sqrt(np.mean((np.array(found) - 100_000) ** 2))) for found in (sketched, added)]
    return "different values of two places", "their numbers, added up", errors[0], errors[1]


def main() -> None:
    """Write the table."""
    written = [
        "Errors of statistics by group, and of the same made of counts and sums (`python -m benchmarks.query_errors`)",
        "",
        "| statistic | epsilon | error | beside | its error |",
        "|---|---|---|---|---|",
    ]
    frame = made_up(20_261_123)
    for epsilon in (0.3, 1.0, 3.0):
        for name, told, mine, other in [*lines(frame, epsilon), *_value_lines(frame, epsilon), _sketch_line(epsilon)]:
            written.append(f"| {name} | {epsilon:g} | {mine:.3g} | {told} | {other:.3g} |")
    _TARGET.write_text("\n".join([*written, "", *population_table(), "", *wishes_table()]) + "\n")


if __name__ == "__main__":
    main()
