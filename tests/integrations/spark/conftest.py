"""One Spark session for all tests of this folder; they are skipped where Spark or Java is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Its examples would be looked for, and it imports Spark.
collect_ignore = [] if importlib.util.find_spec("pyspark") else ["cluster_job.py"]
HAS_SPARK = importlib.util.find_spec("pyspark") is not None and (
    shutil.which("java") is not None or bool(os.environ.get("JAVA_HOME"))
)


def pytest_collection_modifyitems(config, items):
    asked = os.environ.get("DPFAST_TEST_SPARK")
    if asked == "1" or (HAS_SPARK and asked != "0"):
        return
    skip = pytest.mark.skip(reason="needs pyspark and Java")
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and {"spark", "needs_spark"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(skip)


@pytest.fixture
def needs_spark():
    """Mark a test that starts Spark by itself."""


@dataclass(frozen=True)
class Spark:
    """A session on this machine, and the folders in which it leaves its traces."""

    session: Any
    events: Path
    scratch: Path


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Two executor threads, four attempts for a task, few partitions, and an event log that can be read."""
    from pyspark.sql import SparkSession

    events, scratch = (tmp_path_factory.mktemp(name) for name in ("events", "scratch"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "3",
            "spark.default.parallelism": "2",
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
            "spark.driver.memory": "1g",
            # Jobs are short: the optimizing compiler and the parallel collector take longer than they save.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        builder = SparkSession.builder.master("local[2,4]").appName("dpfast tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield Spark(session, events, scratch)
        session.stop()


@pytest.fixture
def session(spark):
    return spark.session


@pytest.fixture
def setting(session):
    """Return a function that changes a setting of the session for one test."""
    before: dict[str, str | None] = {}

    def change(name, value):
        before.setdefault(name, session.conf.get(name, None))
        session.conf.set(name, value)

    yield change
    for name, value in before.items():
        session.conf.unset(name) if value is None else session.conf.set(name, value)
