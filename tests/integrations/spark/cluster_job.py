"""A release on two workers with speculation, an executor of which is killed while it draws; run by test_cluster.py.

Prints the released figures of the disturbed job and of an undisturbed one from the same exact blocks, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
import pyspark

import dpfast as dpf
from dpfast.aggregation.protocols import GroupQuery
from dpfast.integrations.spark import cluster as cluster_module
from dpfast.integrations.spark.blueprint import draw_up
from dpfast.integrations.spark.jobs import DrawNoise, SealBlocks
from dpfast.integrations.spark.storage import Folder

GROUPS = 1200
RELEASE, SEALING = bytes(range(32)), bytes(range(100, 132))


@dataclass(frozen=True)
class Disturbed(DrawNoise):
    """Kills the executor of the first task, and is slow in one attempt of another, so that a second one is started."""

    folder: str = ""

    def __call__(self, batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        task, attempt = context.partitionId(), context.attemptNumber()
        blocks = list(super().__call__(batches))
        seen = Path(self.folder) / f"{task}-{attempt}-{os.getpid()}"
        seen.write_text("".join(f"{block.to_pydict()}\n" for block in blocks), encoding="utf-8")
        if task == 0 and attempt == 0:
            os.kill(_executor(), signal.SIGKILL)
            time.sleep(600)
        if task == 1 and attempt == 0:
            # Until another attempt has drawn the same; the job ends with that one, and kills this.
            while len(list(Path(self.folder).glob("1-*"))) < 2:
                time.sleep(0.1)
            time.sleep(5)
        yield from blocks


def _executor() -> int:
    """Return the process above this one that is a Java machine."""
    pid = os.getpid()
    while pid > 1:
        if Path(f"/proc/{pid}/exe").resolve().name == "java":
            return pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    raise SystemExit("no executor")


HOME = Path(pyspark.__file__).parent


@contextmanager
def standalone(folder: Path):
    """Start a master and two workers; on addresses of their own, since no attempt is repeated on the same host."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
    limits = ["--webui-port", "0", "--cores", "1", "--memory", "600m", "--work-dir", str(folder / "work")]
    workers = [
        [f"{deploy}.worker.Worker", "--host", host, *limits, f"spark://127.0.0.1:{port}"]
        for host in ("127.0.0.2", "127.0.0.3")
    ]
    running = []
    with (folder / "daemons").open("wb") as log:
        for command in (master, *workers):
            environment = {**os.environ, "SPARK_DAEMON_MEMORY": "200m", "SPARK_LOCAL_IP": "127.0.0.1"}
            started = subprocess.Popen(
                [HOME / "bin" / "spark-class", *command], env=environment, stdout=log, stderr=log
            )
            running.append(started)
    try:
        yield f"spark://127.0.0.1:{port}"
    finally:
        for started in running:
            started.terminate()
        for started in running:
            started.wait()


def main(folder: Path) -> None:
    """Run both jobs."""
    os.environ["SPARK_HOME"] = str(HOME)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with standalone(folder) as master:
        print(json.dumps(run(folder, master)))


def run(folder: Path, master: str) -> dict[str, object]:
    """Return the figures of both jobs, and what the attempts of the second one drew."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.enabled": "false",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "100ms",
        # One file is one task.
        "spark.sql.files.openCostInBytes": str(2**27),
    }
    builder = pyspark.sql.SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    cluster_module.SealBlocks = partial(SealBlocks, groups=100)
    rows = session.range(5 * GROUPS).selectExpr("concat('city ', id % 1200) city", "CAST(id % 100 AS DOUBLE) x")
    keys = pl.DataFrame({"city": [f"city {number}" for number in range(GROUPS)]})
    asked = {
        "by": "city",
        "epsilon": 1e-3,
        "delta": 0.0,
        "rho": None,
        "split": "even",
        "keys": keys,
        "privacy_unit": None,
        "max_groups": None,
        "max_rows_per_group": None,
        "neighbors": "add_remove",
        "mechanism": "laplace",
        "key_selection": "auto",
        "population": None,
        "dataset": None,
        "queries": {"s": dpf.sum("x", bounds=(0, 2**20))},
    }
    blueprint = draw_up(rows, Folder.of(session, str(folder / "calm")), 2, asked)
    cluster = blueprint.cluster
    cluster.write_exact(GroupQuery(("city",), blueprint.aggregation.measures), SEALING)
    cluster.write_noise(RELEASE, SEALING)
    (folder / "seen").mkdir()
    cluster_module.DrawNoise = partial(Disturbed, folder=str(folder / "seen"))
    object.__setattr__(cluster, "folder", Folder.of(session, str(folder / "disturbed")))
    cluster.write_noise(RELEASE, SEALING)
    attempts: dict[str, list[str]] = {}
    for path in sorted((folder / "seen").iterdir()):
        attempts.setdefault(path.name.partition("-")[0], []).append(path.read_text())
    shown = {name: sorted(pl.read_parquet(folder / name / "*.parquet").rows()) for name in ("calm", "disturbed")}
    session.stop()
    return {**shown, "attempts": attempts}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
