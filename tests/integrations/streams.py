"""Rows for the tests of Arrow streams, and readers that give them in batches of any size."""

from __future__ import annotations

import traceback

import numpy as np
import pyarrow as pa

import dpfast.integrations.arrow as dpa

SECRET = "SECRET00"
ROWS = 5_000


def table(rows=ROWS, nulls=True):
    generator = np.random.default_rng(5)
    missing = generator.random(rows) < 0.1 if nulls else np.zeros(rows, bool)
    return pa.table(
        {
            "id": np.arange(rows),
            "n": pa.array(generator.integers(0, 1000, rows), mask=missing),
            "x": pa.array(generator.normal(0, 100, rows), mask=missing[::-1]),
            "b": generator.uniform(1, 9, rows),
            "name": [f"name {row % 7}" for row in range(rows)],
        }
    )


NOISE = {"x": dpa.gaussian(scale="b"), "n": dpa.laplace(scale=10.0)}


def batches_of(rows, sizes):
    """Return a reader whose batches have these sizes, again and again; 0 is an empty batch."""

    def cut():
        start = turn = 0
        while start < len(rows):
            size = sizes[turn % len(sizes)]
            turn += 1
            yield from rows.slice(start, size).combine_chunks().to_batches() or [empty]
            start += size

    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in rows.schema], schema=rows.schema)
    return pa.RecordBatchReader.from_batches(rows.schema, cut())


def masked(array, valid):
    """Return an array with nulls whose bytes are still there, as some engines leave them."""
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(array.type, len(array), [bits, *array.buffers()[1:]])


def never():
    raise AssertionError("a row was read")
    yield


def shown(error):
    """Return all that an error and what hangs on it can show."""
    assert error.__cause__ is None
    assert error.__context__ is None
    return "".join(traceback.format_exception(error))
