"""A release by Spark beside the same aggregation in plain Spark, which bounds nothing and draws no noise.

What bounds people must meet all rows of a person in one place: ``pairs`` is plain Spark that counts by person and zone
first, the least of such work that can be written by hand.

python -m benchmarks.spark [ROWS ...]

Both read the same Parquet files and write theirs, in turns in one session of local[2]; the median of three each.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession, functions

import dpfast as dpf
from dpfast.bench import in_turns, seconds_of
from dpfast.integrations import spark

_RUNS = 3
WORKS = ("plain", "pairs", "released", "bounded")
#: People of a hundred rows, of whom each has too many groups, and of ten rows but for a few with a thousand.
PEOPLE = {
    "all crowded": "pmod(hash(id, 1), {1})",
    "few crowded": "CASE WHEN id % 100 = 0 THEN -1 - pmod(hash(id, 2), {1} div 1000) ELSE pmod(hash(id, 1), {0}) END",
}


def _session() -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
    }
    # The Python of this program, for the executors of this machine as well.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def measured(
    rows: int, folder: Path, who: str, runs: int = _RUNS, works: Collection[str] = WORKS
) -> dict[str, list[float]]:
    """Return the seconds of each run: plain Spark, its count of pairs, and releases where rows or people are units.

    Parameters
    ----------
    rows
        How many.
    folder
        Where data are written.
    who
        The person of a row, as an expression of its ``id``.
    runs
        How often each runs, in turns.
    works
        Which of `WORKS` run.

    """
    session = _session()
    made = session.range(rows).selectExpr("pmod(hash(id), 10000) AS zone", "id % 9973 / 100 AS fare", f"{who} AS who")
    made.write.parquet(str(folder / "rows"))
    data = session.read.parquet(str(folder / "rows"))
    ledgers = {by_unit: dpf.Ledger(epsilon=100, delta=0.01) for by_unit in (False, True)}
    sums = functions.count("*").alias("n"), functions.sum("fare").alias("s")

    def plain(path: Path) -> None:
        data.groupBy("zone").agg(*sums).write.parquet(str(path))

    def pairs(path: Path) -> None:
        found = data.groupBy("who", "zone").agg(*sums)
        groups = found.groupBy("zone").agg(functions.count("*").alias("units"), functions.sum("n"), functions.sum("s"))
        groups.write.parquet(str(path))

    def released(path: Path, **unit: object) -> None:
        asked = {"n": dpf.count(), "s": dpf.sum("fare", bounds=(0, 100)), "epsilon": 1.0, "delta": 1e-7, **unit}
        spark.release(data, "zone", path=path, ledger=ledgers[bool(unit)], **asked)

    def bounded(path: Path) -> None:
        released(path, privacy_unit="who", max_groups=50, max_rows_per_group=2)

    chosen = {work.__name__: work for work in (plain, pairs, released, bounded) if work.__name__ in works}
    for name, work in chosen.items():
        # The first is for what is made once: compiled code, and processes of Python.
        work(folder / f"{name} first")
    paths = {name: iter([folder / f"{name} {run}" for run in range(runs)]) for name in chosen}
    trials = {name: seconds_of(partial(_next, work, paths[name])) for name, work in chosen.items()}
    return in_turns(trials, runs)


def _next(work: Callable[[Path], object], paths: Iterator[Path]) -> None:
    work(next(paths))


def main() -> None:
    """Print a line for each number of rows."""
    for rows in map(int, sys.argv[1:] or ["1000000", "10000000"]):
        for label, who in PEOPLE.items():
            with tempfile.TemporaryDirectory() as folder:
                each_run = measured(rows, Path(folder), who.format(rows // 10, rows // 100))
            took = {name: statistics.median(seconds) for name, seconds in each_run.items()}
            shown = ", ".join(f"{name} {each:.2f} s ({each / took['plain']:.1f}x)" for name, each in took.items())
            print(f"{rows} rows, {label}: {shown}", flush=True)


if __name__ == "__main__":
    main()
