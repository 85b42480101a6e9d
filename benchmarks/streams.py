"""Rows of the table: noise on streams of Arrow batches and in DuckDB queries, beside one call of the mechanism."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import dpfast as dpf
from benchmarks.prepared import Prepared


def prepare_arrow_stream(batch_rows: int) -> Callable[[int], Prepared]:
    """Return what prepares a stream whose batches have so many rows, beside `dpf.laplace` over all of them."""

    def prepare(size: int) -> Prepared:
        import dpfast.integrations.arrow as dpa

        values = np.random.default_rng(20_261_121).integers(0, 1000, size)
        column = pa.array(values)
        batches = pa.table({"n": column}).to_batches(max_chunksize=batch_rows)

        def stream() -> int:
            reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
            noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(scale=10.0)}, threads=1)
            return sum(len(batch) for batch in noisy)

        return Prepared(stream, lambda: len(dpf.laplace(column, 10.0, threads=1)))

    return prepare
