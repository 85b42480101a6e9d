"""Bounds that are chosen privately, on the command line."""

from __future__ import annotations

import json

import polars as pl

from .conftest import one_line


def asked(*queries):
    return ["release", "rows.parquet", "--by", "k", "--keys", "keys.csv", "--unit", "row", "--ledger", "ledger.db",
            "--epsilon", "1", *queries]  # fmt: skip


def write_rows():
    rows = {"k": ["a", "b"] * 3000, "x": [i % 50 for i in range(6000)], "y": [i % 7 / 2 for i in range(6000)]}
    pl.DataFrame(rows).write_parquet("rows.parquet")
    pl.DataFrame({"k": ["a", "b"]}).write_csv("keys.csv")


def test_every_query_with_bounds_takes_auto_in_their_place(folder, run):
    write_rows()
    assert run("ledger", "create", "ledger.db", "--epsilon", "5").exit_code == 0
    queries = [f"--{kind}={kind}=x:auto" for kind in ("sum", "mean", "variance", "std", "minimum", "maximum")]
    result = run(*asked(*queries, "--quantile=q=x:auto:0.5", "--covariance=c=x:auto:y:auto", "--out", "out.parquet"))
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("chosen for ") == 8
    frame = pl.read_parquet("out.parquet")
    assert {"sum", "mean", "variance", "std", "minimum", "maximum", "q", "c"} <= set(frame.columns)
    result = run(*asked("--mean", "m=x:auto", "--out", "again.parquet", "--json"))
    low, high = json.loads(result.stdout)["chosen"]["m"]
    assert low < high


def test_what_is_no_bound_is_refused(folder, run):
    write_rows()
    assert run("ledger", "create", "ledger.db", "--epsilon", "5").exit_code == 0
    for query in ("x:Auto", "x:auto:auto", ":auto"):
        result = run(*asked("--mean", query, "--out", "out.parquet"))
        assert result.exit_code == 2
        assert one_line(result)
    assert "epsilon 5" in run("ledger", "show", "ledger.db").stdout
