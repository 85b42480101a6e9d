"""Releases of rows that a database holds, beside the same release of a Polars frame."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

from .prepared import Prepared

_GROUPS = 1000
_UNIT: dict[str, Any] = {"privacy_unit": "person", "max_groups": 5, "max_rows_per_group": 1}


def _release(data: Any, **more: Any) -> pl.DataFrame:
    return dpf.release(
        data,
        "key",
        keys=pl.DataFrame({"key": np.arange(_GROUPS)}),
        n=dpf.count(),
        total=dpf.sum("value", bounds=(-100, 100)),
        epsilon=1.0,
        ledger=dpf.Ledger(epsilon=2.0),
        **{"privacy_unit": "row", **more},
    ).frame


def _prepare(size: int, **asked: Any) -> Prepared:
    import duckdb

    generator = np.random.default_rng(20_261_122)
    frame = pl.DataFrame(
        {
            "person": generator.integers(0, max(size // 20, 1), size),
            "key": generator.integers(0, _GROUPS, size),
            "value": generator.normal(0.0, 30.0, size),
        }
    )
    connection = duckdb.connect()
    connection.register("given", frame.to_arrow())
    connection.execute("CREATE TABLE rides AS SELECT * FROM given")
    connection.unregister("given")
    unit = {name: value for name, value in asked.items() if name != "engine"}
    ours, baseline = partial(_release, dpf.sql(connection, "rides"), **asked), partial(_release, frame, **unit)
    return Prepared(ours, baseline, agree=_agree)


def _agree(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Return whether both have about the same counts, which differ by e**-35 of all draws more than that."""
    both = ours["n"] - theirs["n"]
    return ours["key"].equals(theirs["key"]) and bool((both.abs() <= 70 * ours["n_scale"] + 1).all())


def prepare_duckdb_rows(size: int) -> Prepared:
    """DuckDB's rows, aggregated here, beside those of a frame.

    The export alone, two columns of 10^7 rows to Arrow, takes 2.5 of the release of the frame: 76 ms of processor time
    beside 31 ms, and as long by the clock, since the threads of DuckDB wait for each other; with one thread it takes
    half of that, but their number belongs to the whole database. One after the other is 3.4, the goal a little more:
    blocks of rows are wrapped, and fresh pages are cleared. A thread that reads, or two that aggregate, took 1.2 to 1.4
    times as long as none.
    """
    return _prepare(size, engine="rows")


def prepare_duckdb_rows_by_unit(size: int) -> Prepared:
    """The same where each person's contribution is bounded, for which the rows are kept in memory.

    Exporting and keeping them, three columns, took 0.10 of the time of the release of the frame.
    """
    return _prepare(size, engine="rows", **_UNIT)


def prepare_bounding_in_duckdb(size: int) -> Prepared:
    """DuckDB bounds and aggregates, beside a frame's rows that are bounded here."""
    return _prepare(size, engine="sql", **_UNIT)
