"""Rides of a week that one machine does not hold, released by Spark: only noisy figures reach the disk.

python examples/spark_job.py

On a cluster, submit it with dpfast and pyarrow in the executors' Python, and with spark.io.encryption.enabled and
spark.network.crypto.enabled set, since shuffles hold rows.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import dpfast as dpf
from dpfast.integrations import spark


def start() -> SparkSession:
    """Return a session on this machine; on a cluster, take the one that spark-submit gives."""
    # The Python of this program, for the executors of this machine as well.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("rides")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rides(session: SparkSession, rows: int) -> Any:
    """Return made-up rides: 20 zones that many use, and one of a single rider."""
    return session.range(rows).selectExpr(
        "IF(id % 5000 = 0, 'zone of one', concat('zone ', (id % 30011 + id DIV 30011 % 3) % 20)) AS zone",
        "IF(id % 5000 = 0, 0, id % 30011) AS rider",
        "(id * 37 % 1000) / 10 AS fare",
    )


def main(folder: Path, rows: int = 200_000) -> spark.SparkRelease:
    """Release the rides by zone; the ledger stands beside the figures."""
    with dpf.Ledger.open(folder / "ledger.db", epsilon=1.0, delta=1e-6) as ledger:
        return spark.release(
            rides(start(), rows),
            by="zone",
            path=folder / "released",
            ledger=ledger,
            rides=dpf.count(),
            fare=dpf.mean("fare", bounds=(0, 100)),
            privacy_unit="rider",
            max_groups=3,
            max_rows_per_group=5,
            epsilon=0.5,
            delta=1e-10,
            dataset="rides",
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        release = main(Path(folder))
        print(release.explain())
        release.frame.orderBy("rides", ascending=False).show(10)
