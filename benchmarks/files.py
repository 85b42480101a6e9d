"""Rows of the table about files: many at once, one that is larger than the memory for it, and a stream."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import dpfast as dpf
from dpfast.aggregation import open_source

from .prepared import Prepared

_FREE = 300_000_000


class _Folder:
    """A folder that lasts as long as what refers to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def footers(size: int) -> Prepared:
    """Open many small Parquet files, beside reading their schemas one by one."""
    folder = _Folder()
    first = folder.path / "0.parquet"
    pl.DataFrame({f"column{i}": range(20) for i in range(12)}).write_parquet(first)
    content = first.read_bytes()
    paths = [folder.path / f"{i}.parquet" for i in range(size)]
    for path in paths:
        path.write_bytes(content)

    def ours() -> Any:
        return open_source(folder.path)

    def baseline() -> Any:
        return [pl.read_parquet_schema(path) for path in paths]

    return Prepared(ours, baseline, agree=lambda mine, theirs: mine.schema() == theirs[0])


def outgrown(size: int) -> Prepared:
    """Bound and sum rows of units in a file, with 300 MB of memory to take and with all that there is."""
    folder = _Folder()
    generator = np.random.default_rng(20_261_122)
    path = folder.path / "rows.parquet"
    frame = {
        "key": generator.integers(0, 1000, size),
        "unit": generator.integers(0, max(1, size // 8), size),
        "value": generator.normal(size=size),
    }
    pl.DataFrame(frame).write_parquet(path, row_group_size=250_000)
    del frame
    keys = pl.DataFrame({"key": range(1000)})

    def unbounded() -> Any:
        plan = dpf.plan(
            path,
            by="key",
            keys=keys,
            total=dpf.sum("value", bounds=(-3, 3)),
            privacy_unit="unit",
            max_groups=4,
            max_rows_per_group=2,
            epsilon=0.5,
        )
        return folder and plan.run(dpf.Ledger(epsilon=1.0)).frame

    def bounded() -> Any:
        used = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        os.environ["DPFAST_MEMORY_LIMIT"] = str(used + _FREE)
        try:
            return unbounded()
        finally:
            del os.environ["DPFAST_MEMORY_LIMIT"]

    return Prepared(bounded, unbounded, agree=lambda mine, theirs: mine.height == theirs.height)


def streamed(size: int) -> Prepared:
    """Sum a stream of Arrow batches by key, beside reading all of it first."""
    folder = _Folder()
    generator = np.random.default_rng(20_261_123)
    path = folder.path / "rows.parquet"
    columns = {"key": generator.integers(0, 1000, size), "value": generator.normal(size=size)}
    pl.DataFrame(columns).write_parquet(path, row_group_size=250_000)
    del columns
    keys = pl.DataFrame({"key": range(1000)})

    def release(data: Any) -> pl.DataFrame:
        total = dpf.sum("value", bounds=(-3, 3))
        ledger = dpf.Ledger(epsilon=1.0)
        return (
            folder
            and dpf.release(
                data, by="key", keys=keys, total=total, privacy_unit="row", epsilon=0.5, ledger=ledger
            ).frame
        )

    def reader() -> pa.RecordBatchReader:
        file = pq.ParquetFile(path)
        return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(2**16))

    return Prepared(
        lambda: release(reader()),
        lambda: release(reader().read_all()),
        agree=lambda mine, theirs: mine["key"].equals(theirs["key"]),
    )
