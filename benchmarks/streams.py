"""Rows of the table: noise on streams of Arrow batches and in DuckDB queries, beside one call of the mechanism."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import dpfast as dpf

from .prepared import Prepared


def _same(ours: int, theirs: int) -> bool:
    """Return whether as many values came out."""
    return ours == theirs


def prepare_arrow_stream(batch_rows: int) -> Callable[[int], Prepared]:
    """Return what prepares a stream whose batches have so many rows, beside `dpf.laplace` over all of them.

    Noise is drawn for 2**17 rows at a time, whose words and values fit into the cache; where they come in batches of
    2**16 rows, they are copied together first, which takes .2 of the baseline's time.
    """

    def prepare(size: int) -> Prepared:
        import dpfast.integrations.arrow as dpa

        values = np.random.default_rng(20_261_121).integers(0, 1000, size)
        column = pa.array(values)
        batches = pa.table({"n": column}).to_batches(max_chunksize=batch_rows)

        def stream() -> int:
            reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
            noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(scale=10.0)}, threads=1)
            return sum(len(batch) for batch in noisy)

        return Prepared(stream, lambda: len(dpf.laplace(column, 10.0, threads=1)), agree=_same)

    return prepare


def prepare_duckdb_function(size: int) -> Prepared:
    """Return `dpf_laplace` in a query of one thread, compiled and in Python, beside `dpf.laplace`."""
    import duckdb

    from dpfast.integrations.duckdb import register_functions

    values = np.random.default_rng(20_261_121).integers(0, 1000, size)
    rows = pa.table({"n": values})

    def prepare(unsigned: bool) -> Callable[[], int]:
        connection = duckdb.connect(config={"allow_unsigned_extensions": unsigned})
        connection.execute("SET threads = 1")
        connection.register("rows", rows)
        connection.execute("CREATE TABLE counts AS SELECT n FROM rows")
        register_functions(connection)
        query = "SELECT count(dpf_laplace(n, 10.0)) FROM counts"
        return lambda: int(connection.sql(query).fetchall()[0][0])

    return Prepared(
        prepare(unsigned=True),
        lambda: len(dpf.laplace(values, 10.0, threads=1)),
        peers={"the function in Python": (prepare(unsigned=False), size)},
        agree=_same,
    )
