"""Right calls of what stands in other people's pipelines."""

from __future__ import annotations

import sqlite3

import polars as pl

import dpfast as dpf
from dpfast.integrations import polars_plugin
from dpfast.integrations.polars import Expressions, Frames

from .calls import Call
from .calls_of_releases import FRAME, KEYS, NUMBERS, QUERIES, UNIT, a_ledger, of

COLUMN = Expressions(pl.col("v"))
PUBLIC = {"by": "k", "keys": KEYS, "epsilon": 1.0, **QUERIES, "privacy_unit": "row"}
DOMAIN = dpf.Domain({"k": ["a", "b"]})

CONNECTION = sqlite3.connect(":memory:")

CALLS = [
    of("Frames", Frames, frame=FRAME),
    of("Expressions", Expressions, expr=pl.col("v")),
    of("sql", dpf.sql, connection=CONNECTION, query="SELECT 1 AS x", schema={"x": pl.Int64}),
    of("lf.dpf.plan", Frames(FRAME.lazy()).plan, **PUBLIC),
    of("df.dpf.plan of units", Frames(FRAME).plan, by="k", epsilon=1.0, delta=1e-6, **UNIT, **QUERIES),
    Call("lf.dpf.release", Frames(FRAME.lazy()).release, lambda: {**PUBLIC, "ledger": a_ledger()}),
    Call("df.dpf.answer", Frames(NUMBERS).answer, lambda: {"value": "count", "epsilon": 0.1, "ledger": a_ledger()}),
    Call(
        "lf.dpf.synthesize",
        Frames(FRAME.lazy()).synthesize,
        lambda: {"domain": DOMAIN, "epsilon": 0.1, "rounds": 2, "rows": 3, "ledger": a_ledger()},
    ),
    of("col.dpf.count", COLUMN.count),
    of("col.dpf.sum", COLUMN.sum, bounds=(0, 1)),
    of("col.dpf.mean", COLUMN.mean, bounds=(0, 1), per="unit"),
    of("col.dpf.count_distinct", COLUMN.count_distinct),
    of("col.dpf.top_k", COLUMN.top_k, k=2, candidates=[1, 2]),
    of("col.dpf.histogram", COLUMN.histogram, edges=[0, 1]),
    of("col.dpf.cdf", COLUMN.cdf, edges=[0, 1]),
    of("col.dpf.variance", COLUMN.variance, bounds=(0, 1)),
    of("col.dpf.std", COLUMN.std, bounds=(0, 1)),
    of("col.dpf.covariance", COLUMN.covariance, other="b", bounds=(0, 1), other_bounds=(0, 2)),
    of("col.dpf.proportion", COLUMN.proportion, above=15),
    of("col.dpf.minimum", COLUMN.minimum, bounds=(0, 1)),
    of("col.dpf.maximum", COLUMN.maximum, bounds=(0, 1)),
    of("col.dpf.quantile", COLUMN.quantile, q=0.5, bounds=(0, 1)),
    of("col.dpf.mode", Expressions(pl.col("k")).mode, candidates=["a", "b"]),
    of("col.dpf.bins", COLUMN.bins, edges=[0, 1]),
    of("col.dpf.laplace", COLUMN.laplace, scale=1.0),
    of("col.dpf.gaussian", COLUMN.gaussian, scale=pl.col("v")),
    of("col.dpf.randomized_response", COLUMN.randomized_response, categories=3, epsilon=1.0),
    of("plugin.laplace", polars_plugin.laplace, expr=pl.col("v"), scale=1.0),
    of("plugin.gaussian", polars_plugin.gaussian, expr=pl.col("v"), scale=1),
    of(
        "plugin.randomized_response",
        polars_plugin.randomized_response,
        expr=pl.col("v"),
        categories=[1, 2],
        epsilon=1.0,
    ),
]
