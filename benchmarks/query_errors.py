"""Errors of statistics by group, each beside what a newcomer would write with counts and sums at the same epsilon.

    python -m benchmarks.query_errors            write benchmarks/query_errors.md

Every line is the root mean square error over 200 groups of 1,000 rows, of people with up to 5 rows each in one group.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.queries import Query

_GROUPS, _ROWS, _EACH = 200, 1000, 5
_EDGES = np.linspace(-4, 4, 161).tolist()
_BOUNDS = (-10.0, 10.0)
_KEYS = pl.DataFrame({"key": np.arange(_GROUPS)})
_TARGET = Path(__file__).parent / "query_errors.md"


def _data(seed: int) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    keys = np.repeat(np.arange(_GROUPS), _ROWS)
    x = generator.normal(generator.uniform(-3, 3, _GROUPS).repeat(_ROWS), 2)
    return pl.DataFrame(
        {"key": keys, "unit": np.arange(keys.size) // _EACH, "x": x, "y": x + generator.normal(size=x.size)}
    )


def _released(frame: pl.DataFrame, epsilon: float, **queries: Query) -> pl.DataFrame:
    unit = {"privacy_unit": "unit", "max_groups": 1, "max_rows_per_group": _EACH}
    ledger = dpf.Ledger(epsilon=epsilon)
    return dpf.release(frame, "key", keys=_KEYS, epsilon=epsilon, ledger=ledger, **unit, **queries).frame


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


def _lines(frame: pl.DataFrame, epsilon: float) -> list[tuple[str, str, float, float]]:
    """Return of every statistic what it is beside, its error, and that of the other."""
    x, y = pl.col("x"), pl.col("y")
    truth = frame.group_by("key", maintain_order=True).agg(
        v=x.var(), c=pl.cov("x", "y"), p=(x > 1).mean(), u=pl.col("unit").n_unique(),
        h=pl.concat_list(((x >= low) & (x < high)).sum() for low, high in pairwise(_EDGES[::8])),
        f=pl.concat_list((x <= edge).mean() for edge in _EDGES),
    )  # fmt: skip
    few = _EDGES[::8]

    def error(found: pl.Series, exact: pl.Series) -> float:
        arrays = [np.array(one.to_list(), np.float64) for one in (found, exact)]
        return float(np.sqrt(np.mean((arrays[0] - arrays[1]) ** 2)))

    ours = {
        "v": dpf.variance("x", bounds=_BOUNDS), "p": dpf.proportion("x", above=1), "u": dpf.units(),
        "c": dpf.covariance("x", "y", bounds=_BOUNDS, other_bounds=_BOUNDS), "h": dpf.histogram("x", few),
        "f": dpf.cdf("x", _EDGES),
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
    others = {
        "v": ("sums of squares and values, and a count", _moments(frame, epsilon, x, "x")),
        "c": ("sums of products and values, and a count", _moments(frame, epsilon, y, "y")),
        "p": ("a sum of 0 and 1, and a count", (halves["a"] / halves["n"].clip(1)).clip(0, 1)),
        "u": ("a count of rows, divided by 5", _released(frame, epsilon, n=dpf.count())["n"] / _EACH),
        "h": ("20 sums, at a twentieth of epsilon each", pl.Series(np.stack(bins, axis=1).tolist())),
        "f": ("a histogram, added up", prefix),
    }
    names = {
        "v": "variance",
        "c": "covariance",
        "p": "proportion",
        "u": "units",
        "h": "histogram, 20 bins",
        "f": "cdf, 161 points",
    }
    return [(names[name], told, errors[name], error(found, truth[name])) for name, (told, found) in others.items()]


def main() -> None:
    """Write the table."""
    written = [
        "Errors of statistics by group, and of the same made of counts and sums (`python -m benchmarks.query_errors`)",
        "",
        "| statistic | epsilon | error | beside | its error |",
        "|---|---|---|---|---|",
    ]
    frame = _data(20_261_123)
    for epsilon in (0.3, 1.0, 3.0):
        for name, told, mine, other in _lines(frame, epsilon):
            written.append(f"| {name} | {epsilon:g} | {mine:.3g} | {told} | {other:.3g} |")
    _TARGET.write_text("\n".join(written) + "\n")


if __name__ == "__main__":
    main()
