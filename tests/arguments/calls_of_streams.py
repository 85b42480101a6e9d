"""Right calls of streams of Arrow batches and of functions for DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

import dpfast.integrations.arrow as dpa
from dpfast.integrations.duckdb import register_functions

from .calls import Call


def of_stream() -> dict[str, Any]:
    rows = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})
    return {"reader": rows, "noise": {"a": dpa.laplace(1.0)}, "public": ["b"]}


CALLS = [
    Call("arrow.laplace", dpa.laplace, lambda: {"scale": 1.0}),
    Call("arrow.gaussian", dpa.gaussian, lambda: {"scale": "b"}),
    Call("arrow.randomized_response", dpa.randomized_response, lambda: {"categories": ["a", "b"], "epsilon": 1.0}),
    Call("arrow.noisy_stream", dpa.noisy_stream, of_stream),
    Call("duckdb.register_functions", register_functions, lambda: {"connection": duckdb.connect()}),
]
