"""Run the protocol on published shapes alone: ``python -m benchmarks.dpbench.published``; ``--write`` writes tables."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import polars as pl

from .protocol import FULL, QUICK, measured
from .summary import report

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dpbench.published", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few shapes, once: to see that everything runs")
    parser.add_argument("--only", metavar="NAME", help="measure one algorithm again; results.csv has the others")
    parser.add_argument("--write", action="store_true", help="write results.csv and results.md")
    arguments = parser.parse_args()
    started = time.perf_counter()
    results = measured(QUICK if arguments.quick else FULL, only=arguments.only)
    if arguments.only is not None:
        if results.is_empty():
            parser.error(f"--only {arguments.only!r} names no algorithm; results.csv has their names")
        before = pl.read_csv(HERE / "results.csv", schema_overrides={"domain": pl.String})
        results = pl.concat([before.filter(pl.col("algorithm") != arguments.only), results.select(before.columns)])
        # Rows stay where they were: so do the algorithms in the tables.
        key = ["shape", "domain", "scale", "algorithm"]
        results = results.join(before.select(key).with_row_index("row"), on=key, how="left")
        results = results.sort("row", nulls_last=True).drop("row")
    text = report(results)
    if arguments.write:
        results.write_csv(HERE / "results.csv", float_scientific=True, float_precision=3)
        (HERE / "results.md").write_text(text)
    print(text)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
