"""A release by Spark beside the same aggregation in plain Spark, which bounds nothing and draws no noise.

python -m benchmarks.spark [ROWS ...]

Both read the same Parquet files and write theirs, in turns in one session of local[2]; the median of three each.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession, functions

import dpfast as dpf
from dpfast.integrations import spark

_RUNS = 3


def _session() -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
    }
    # The Python of this program, for the executors of this machine as well.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _seconds(work: Callable[[Path], object], folder: Path) -> float:
    begin = time.perf_counter()
    work(folder)
    return time.perf_counter() - begin


def measure(rows: int, folder: Path) -> dict[str, float]:
    """Return the seconds of plain Spark, of a release where rows are units, and of one that bounds a column."""
    session = _session()
    made = session.range(rows).selectExpr(
        "pmod(hash(id), 10000) AS zone", "id % 9973 / 100 AS fare", "pmod(hash(id, 1), 100000) AS who"
    )
    made.write.parquet(str(folder / "rows"))
    data = session.read.parquet(str(folder / "rows"))
    ledgers = {by_unit: dpf.Ledger(epsilon=100, delta=0.01) for by_unit in (False, True)}

    def plain(path: Path) -> None:
        sums = functions.count("*").alias("n"), functions.sum("fare").alias("s")
        data.groupBy("zone").agg(*sums).write.parquet(str(path))

    def released(path: Path, **unit: object) -> None:
        asked = {"n": dpf.count(), "s": dpf.sum("fare", bounds=(0, 100)), "epsilon": 1.0, "delta": 1e-7, **unit}
        spark.release(data, "zone", path=path, ledger=ledgers[bool(unit)], **asked)

    def bounded(path: Path) -> None:
        released(path, privacy_unit="who", max_groups=50, max_rows_per_group=2)

    seconds: dict[str, list[float]] = {}
    for run in range(_RUNS + 1):
        for work in (plain, released, bounded):
            took = _seconds(work, folder / f"{work.__name__} {run}")
            # The first is for what is made once: compiled code, and processes of Python.
            if run:
                seconds.setdefault(work.__name__, []).append(took)
    return {name: statistics.median(each) for name, each in seconds.items()}


def main() -> None:
    """Print a line for each number of rows."""
    for rows in map(int, sys.argv[1:] or ["1000000", "10000000"]):
        with tempfile.TemporaryDirectory() as folder:
            took = measure(rows, Path(folder))
        shown = ", ".join(f"{name} {each:.2f} s ({each / took['plain']:.1f}x)" for name, each in took.items())
        print(f"{rows} rows: {shown}")


if __name__ == "__main__":
    main()
