"""Rows of the table about rows that another library holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from benchmarks.prepared import Prepared, Run


def _frame(size: int) -> pl.DataFrame:
    generator = np.random.default_rng(31)
    return pl.DataFrame(
        {
            "key": generator.integers(0, 1_000, size),
            "unit": generator.integers(0, max(size // 20, 1), size),
            "value": generator.normal(size=size),
            "unused": generator.random(size),
        }
    )


def _connection(size: int) -> Any:
    import duckdb

    connection = duckdb.connect()
    frame = _frame(size).to_arrow()
    connection.register("frame", frame)
    connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
    connection.unregister("frame")
    return connection


def _release(data: Any, **unit: Any) -> Run:
    keys = pl.DataFrame({"key": range(1_000)})

    def run() -> pl.DataFrame:
        queries = {"n": dpf.count(), "total": dpf.sum("value", bounds=(-3, 3))}
        plan = dpf.plan(data(), by="key", keys=keys, epsilon=1.0, **unit, **queries)
        return plan.run(dpf.Ledger(epsilon=1.0)).frame

    return run


_UNIT = {"privacy_unit": "unit", "max_groups": 10, "max_rows_per_group": 2}


def from_duckdb(size: int) -> Prepared:
    """Release rows of a DuckDB relation, bounded by unit, beside the same rows in a Polars frame."""
    connection, frame = _connection(size), _frame(size)
    relation = connection.table("rows")
    return Prepared(_release(lambda: relation, **_UNIT), _release(lambda: frame, **_UNIT), agree=_same_keys)


def in_batches(size: int) -> Prepared:
    """Release rows of a DuckDB relation batch by batch, beside fetching the relation into a frame first."""
    connection = _connection(size)
    relation = connection.table("rows")
    return Prepared(_release(lambda: relation), _release(lambda: relation.pl()), agree=_same_keys)


def _same_keys(mine: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    return mine["key"].equals(theirs["key"])
