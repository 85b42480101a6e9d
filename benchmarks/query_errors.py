"""Errors of statistics by group, each beside what a newcomer would write with counts and sums at the same epsilon.

    python -m benchmarks.query_errors            write benchmarks/query_errors.md

Every line is the root mean square error over 200 groups of 1,000 rows, of people with up to 5 rows each in one group;
of the most common values, which part of the one or the five is not among those that are named. The last of each epsilon
is of 100,000 values, and of 20 runs. Below them stand the promises of `benchmarks.promises`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.queries import Query, RankedQuery

from .cells import OURS, Cell, Errors
from .promises import population_table, wishes_table

_GROUPS, _ROWS, _EACH = 200, 1000, 5
_VALUES, _MOST, _DELTA = 50, 5, 1e-6
_EDGES = np.linspace(-4, 4, 161).tolist()
_BOUNDS, _OF_UNITS = (-10.0, 10.0), (-30.0, 30.0)
_EPSILONS = (0.3, 1.0, 3.0)
#: What a statistic stands beside, and the errors of a run of ours and of one of the other.
Pair: TypeAlias = tuple[str, Callable[[], float], Callable[[], float]]
Pairs: TypeAlias = dict[str, Pair]
_TARGET = Path(__file__).parent / "query_errors.md"


def made_up(seed: int, groups: int = _GROUPS) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    keys = np.repeat(np.arange(groups), _ROWS)
    x = generator.normal(generator.uniform(-3, 3, groups).repeat(_ROWS), 2)
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
    return dpf.release(
        frame, "key", keys=_keys(frame), epsilon=epsilon, delta=delta, ledger=ledger, **unit, **queries
    ).frame


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame({"key": np.arange(frame["key"].n_unique())})


def _missed(found: list[list[int]], exact: list[list[int]]) -> float:
    """Return which part of the most common values is not named."""
    return float(np.mean([len(set(right) - set(named)) / _MOST for named, right in zip(found, exact, strict=True)]))


def _of_values(frame: pl.DataFrame, epsilon: float) -> Pairs:
    """Return the same as `_of_numbers` of how many values there are, and of the most common ones."""
    truth = frame.group_by("key", maintain_order=True).agg(
        n=pl.col("z").n_unique(), t=pl.col("z").value_counts(sort=True).struct.field("z").head(_MOST)
    )
    common, first = truth["t"].to_list(), truth["t"].list.first()
    candidates = list(range(1, _VALUES + 1))
    edges = [*candidates, _VALUES + 1]

    def counts() -> NDArray[np.int64]:
        return np.array(_released(frame, epsilon, h=dpf.histogram("z", edges))["h"].to_list())

    def named(**more: Any) -> list[list[int]]:
        return _released(frame, epsilon, t=dpf.top_k("z", _MOST, **more))["t"].to_list()

    def by_pairs() -> list[list[int]]:
        pairs = dpf.release(
            frame, ["key", "z"], n=dpf.count(), epsilon=epsilon, delta=_DELTA, privacy_unit="unit", max_groups=_EACH,
            max_rows_per_group=_EACH, ledger=dpf.Ledger(epsilon=epsilon, delta=_DELTA),
        ).frame.sort("n", descending=True)  # fmt: skip
        return [pairs.filter(pl.col("key") == key)["z"].head(_MOST).to_list() for key in range(truth.height)]

    def present() -> NDArray[np.int64]:
        scale = dpf.plan(
            frame, "key", keys=_keys(frame), h=dpf.histogram("z", edges), epsilon=epsilon, privacy_unit="unit",
            max_groups=1, max_rows_per_group=_EACH,
        ).to_frame()["scale"][0]  # fmt: skip
        return (counts() > 2 * scale).sum(axis=1)

    def mode() -> float:
        wrong = _released(frame, epsilon, o=dpf.mode("z", candidates=candidates))["o"] != first
        return float(wrong.mean())  # type: ignore[arg-type]  # of a share

    def error(numbers: Any) -> float:
        return float(np.sqrt(np.mean((np.array(numbers) - truth["n"].to_numpy()) ** 2)))

    return {
        "different values": (
            "counts of a histogram above 2 scales",
            lambda: error(_released(frame, epsilon, n=dpf.count_distinct("z"))["n"]),
            lambda: error(present()),
        ),
        "most common of 50": (
            "the largest count of a histogram",
            mode,
            lambda: float(np.mean(counts().argmax(axis=1) + 1 != first.to_numpy())),
        ),
        "5 most common of 50": (
            "the largest counts of a histogram",
            lambda: _missed(named(candidates=candidates), common),
            lambda: _missed((np.argsort(-counts(), axis=1)[:, :_MOST] + 1).tolist(), common),
        ),
        "5 most common, found": (
            "counts by key and value",
            lambda: _missed(named(), common),
            lambda: _missed(by_pairs(), common),
        ),
    }


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


def _of_numbers(frame: pl.DataFrame, epsilon: float) -> Pairs:
    """Return by statistic what it stands beside, a run of ours and one of the other: their errors."""
    x, y = pl.col("x"), pl.col("y")
    few = _EDGES[::8]
    truth = frame.group_by("key", maintain_order=True).agg(
        v=x.var(), c=pl.cov("x", "y"), p=(x > 1).mean(), u=pl.col("unit").n_unique(),
        h=pl.concat_list(((x >= low) & (x < high)).sum() for low, high in pairwise(few)),
        f=pl.concat_list((x <= edge).mean() for edge in _EDGES),
        d=x.std(), low=x.quantile(0.01), high=x.quantile(0.99), s=x.sum(), m=x.mean(),
    )  # fmt: skip

    def error(name: str, found: pl.Series) -> float:
        arrays = [np.array(one.to_list(), np.float64) for one in (found, truth[name])]
        return float(np.sqrt(np.mean((arrays[0] - arrays[1]) ** 2)))

    def halves() -> pl.Series:
        above = frame.with_columns(above=(x > 1).cast(pl.Int64))
        found = _released(above, epsilon, n=dpf.count(), a=dpf.sum("above", bounds=(0, 1)))
        return (found["a"] / found["n"].clip(1)).clip(0, 1)

    def bins() -> pl.Series:
        each = [
            _released(
                frame.with_columns(b=((x >= low) & (x < high)).cast(pl.Int64)),
                epsilon / (len(few) - 1),
                q=dpf.sum("b", bounds=(0, 1)),
            )["q"]
            for low, high in pairwise(few)
        ]
        return pl.Series(np.stack(each, axis=1).tolist())

    def added() -> pl.Series:
        cells = _released(frame, epsilon, h=dpf.histogram("x", [-1e6, *_EDGES, 1e6]))["h"]
        counts = np.array(cells.to_list(), np.float64).cumsum(axis=1)
        return pl.Series((counts[:, :-1] / np.maximum(counts[:, -1:], 1)).tolist())

    def reached(part: float) -> pl.Series:
        ends = np.concatenate([_EDGES, _EDGES[-1:]])
        return pl.Series(ends[(np.array(added().to_list()) < part).sum(axis=1)])

    def of(query: Query) -> pl.Series:
        return _released(frame, epsilon, q=query)["q"]

    covariance = dpf.covariance("x", "y", bounds=_BOUNDS, other_bounds=_BOUNDS)
    rows: dict[str, tuple[str, str, Query, Callable[[], pl.Series]]] = {
        "variance": (
            "v", "sums of squares and values, and a count", dpf.variance("x", bounds=_BOUNDS),
            lambda: _moments(frame, epsilon, x, "x"),
        ),
        "covariance": (
            "c", "sums of products and values, and a count", covariance, lambda: _moments(frame, epsilon, y, "y"),
        ),
        "proportion": ("p", "a sum of 0 and 1, and a count", dpf.proportion("x", above=1), halves),
        "units": ("u", "a count of rows, divided by 5", dpf.units(), lambda: of(dpf.count()) / _EACH),
        "histogram, 20 bins": (
            "h", "20 sums, at a twentieth of epsilon each", dpf.histogram("x", few), bins,
        ),
        "cdf, 161 points": ("f", "a histogram, added up", dpf.cdf("x", _EDGES), added),
        "standard deviation": (
            "d", "the root of such a variance", dpf.std("x", bounds=_BOUNDS),
            lambda: _moments(frame, epsilon, x, "x").clip(0).sqrt(),
        ),
        "minimum, the 1% quantile": (
            "low", "where a histogram reaches 1%", dpf.minimum("x", bounds=_BOUNDS), lambda: reached(0.01),
        ),
        "maximum, the 99% quantile": (
            "high", "where a histogram reaches 99%", dpf.maximum("x", bounds=_BOUNDS), lambda: reached(0.99),
        ),
        "sum of units' sums, within (-30, 30)": (
            "s", "a sum of rows, each within its bounds", dpf.sum("x", unit_bounds=_OF_UNITS),
            lambda: of(dpf.sum("x", bounds=_BOUNDS)),
        ),
        "mean of units' means": (
            "m", "a mean of rows", dpf.mean("x", bounds=_BOUNDS, per="unit"), lambda: of(dpf.mean("x", bounds=_BOUNDS)),
        ),
    }  # fmt: skip

    def pair(name: str, told: str, query: Query, other: Callable[[], pl.Series]) -> Pair:
        return told, lambda: error(name, of(query)), lambda: error(name, other())

    return {statistic: pair(*row) for statistic, row in rows.items()}


def _of_places(frame: pl.DataFrame, epsilon: float) -> Pairs:
    """Return the same of values that are in two places, a third of those of each in both."""
    places = [pl.DataFrame({"v": numbers}) for numbers in (np.arange(60_000), np.arange(40_000, 100_000))]
    asked: dict[str, Any] = {"epsilon": epsilon, "privacy_unit": "row"}
    keys = count()

    def sketched() -> float:
        key = next(keys)
        one, other = (
            dpf.distinct_sketch(place, "v", key=key, ledger=dpf.Ledger(epsilon=epsilon), **asked) for place in places
        )
        return abs(one.merge(other).estimate() - 100_000)

    def added() -> float:
        found = (
            dpf.release(place, n=dpf.count_distinct("v"), ledger=dpf.Ledger(epsilon=epsilon), **asked).frame["n"][0]
            for place in places
        )
        return abs(float(sum(found)) - 100_000)

    return {"different values of two places": ("their numbers, added up", sketched, added)}


#: Statistics, by what makes their pairs.
STATISTICS: dict[Callable[[pl.DataFrame, float], Pairs], tuple[str, ...]] = {
    _of_numbers: (
        "variance", "covariance", "proportion", "units", "histogram, 20 bins", "cdf, 161 points", "standard deviation",
        "minimum, the 1% quantile", "maximum, the 99% quantile", "sum of units' sums, within (-30, 30)",
        "mean of units' means",
    ),
    _of_values: ("different values", "most common of 50", "5 most common of 50", "5 most common, found"),
    _of_places: ("different values of two places",),
}  # fmt: skip


def cells() -> Iterator[Cell]:
    """Yield a cell for every line of the table."""
    for epsilon in _EPSILONS:
        for pairs, names in STATISTICS.items():
            for name in names:
                is_quick = epsilon == 1 and name in ("variance", "proportion", "cdf, 161 points")
                told = f"By groups, epsilon {epsilon:g}: {name}"
                yield Cell(told, "error", partial(_errors, pairs, name, epsilon), is_quick)


def _errors(pairs: Callable[[pl.DataFrame, float], Pairs], name: str, epsilon: float, is_quick: bool) -> Errors:
    told, ours, other = pairs(made_up(20_261_123, 20 if is_quick else _GROUPS), epsilon)[name]
    return {OURS: ours, f"{OURS}: {told}": other}


def _lines(frame: pl.DataFrame, epsilon: float) -> Iterator[tuple[str, float, str, float]]:
    """Yield a line of each statistic: of two places the root mean square of 20 runs, of others one run."""
    for pairs, names in STATISTICS.items():
        runs = 20 if pairs is _of_places else 1
        found = pairs(frame, epsilon)
        for name in names:
            told, ours, other = found[name]
            mine, theirs = (float(np.sqrt(np.mean([one() ** 2 for _ in range(runs)]))) for one in (ours, other))
            yield name, mine, told, theirs


def main() -> None:
    """Write the table."""
    written = [
        "Errors of statistics by group, and of the same made of counts and sums (`python -m benchmarks.query_errors`)",
        "",
        "| statistic | epsilon | error | beside | its error |",
        "|---|---|---|---|---|",
    ]
    frame = made_up(20_261_123)
    for epsilon in _EPSILONS:
        for name, mine, told, other in _lines(frame, epsilon):
            written.append(f"| {name} | {epsilon:g} | {mine:.3g} | {told} | {other:.3g} |")
    _TARGET.write_text("\n".join([*written, "", *population_table(), "", *wishes_table()]) + "\n")


if __name__ == "__main__":
    main()
