"""Right calls of workloads, domains, strategies and synthesis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

from .calls import Call

COUNTS = np.array([5, 0, 2, 1])
LINE = dpf.workloads.prefix(4)
DOMAIN = dpf.Domain({"a": 2, "b": ["x", "y"]})
RECORDS = pl.DataFrame({"a": [0, 1], "b": ["x", "y"]})
FILE = Path(mkdtemp()) / "records.csv"
RECORDS.write_csv(FILE)


def of(call: str, function: Callable[..., Any], /, **given: Any) -> Call:
    """Return a call of what changes none of its arguments."""
    return Call(call, function, lambda: dict(given))


WORKLOADS = [
    of("identity", dpf.workloads.identity, shape=(2, 2)),
    of("total", dpf.workloads.total, shape=4),
    of("prefix", dpf.workloads.prefix, n=4),
    of("all_range", dpf.workloads.all_range, n=4),
    of("ranges", dpf.workloads.ranges, n=4, lower=[1], upper=[2]),
    of("random_ranges", dpf.workloads.random_ranges, n=4, count=2, seed=1),
    of("rectangles", dpf.workloads.rectangles, shape=(2, 2), lower=[[0, 1]], upper=[[1, 2]]),
    of("random_rectangles", dpf.workloads.random_rectangles, shape=(2, 2), count=2, seed=1),
    of("marginals", dpf.workloads.marginals, shape=(2, 2), k=1),
    of("marginals of sets", dpf.workloads.marginals, shape=(2, 2), attributes=[(0,)]),
    of("matrix", dpf.workloads.matrix, rows=[[1, 0, 1, 0]], shape=(2, 2)),
    *[
        of(f"{type(workload).__name__}.{method}", getattr(workload, method), **{argument: given})
        for workload in [
            dpf.workloads.identity(4),
            dpf.workloads.total(4),
            LINE,
            dpf.workloads.all_range(4),
            dpf.workloads.ranges(4, [0, 1], [1, 4]),
            dpf.workloads.rectangles(4, [[0]], [[2]]),
            dpf.workloads.marginals((2, 2), k=1),
            dpf.workloads.matrix(np.eye(4)),
            dpf.workloads.kronecker(dpf.workloads.prefix(2), dpf.workloads.total(2)),
            LINE + LINE,
        ]
        for method, argument, given in [
            ("answer", "histogram", COUNTS),
            ("transposed", "coefficients", np.ones(len(workload))),
        ]
    ],
]
DOMAINS = [
    of("Domain", dpf.Domain, attributes={"a": 2, "b": ["x", None]}, outside="drop"),
    of("Domain.open", DOMAIN.open, data=RECORDS),
    of("Domain.count", DOMAIN.count, data=RECORDS),
    Call(
        "Domain.count of a file",
        DOMAIN.count,
        lambda: {"data": FILE, "schema": {"a": pl.Int64, "b": pl.String}},
        skipped=frozenset({"data"}),
    ),
    of("Domain.records", DOMAIN.records, cells=[0, 3]),
    of("histogram", dpf.workloads.histogram, data=RECORDS, attributes={"a": 2}, outside="null"),
]
CALLS = [*WORKLOADS, *DOMAINS]
