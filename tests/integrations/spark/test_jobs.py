"""Sealed once, drawn once: whatever Spark repeats, splits or batches, the same bytes, and no noise shared."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.protocols import GroupQuery
from dpfast.integrations.spark import cluster as cluster_module
from dpfast.integrations.spark.blueprint import draw_up
from dpfast.integrations.spark.jobs import DrawNoise, SealBlocks
from dpfast.integrations.spark.storage import Folder

RELEASE, SEALING = bytes(range(32)), bytes(range(100, 132))
GROUPS = 3000


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of 100 groups, so that a partition has several."""
    monkeypatch.setattr(cluster_module, "SealBlocks", partial(SealBlocks, groups=100))


@pytest.fixture(scope="module")
def rows(spark):
    """Return rows of so many groups, number g of g % 7 + 1 rows, which are worth the number's last digits."""
    from pyspark.sql import functions

    numbers = spark.session.range(GROUPS, numPartitions=5)
    copies = numbers.select("id", functions.explode(functions.sequence(functions.lit(0), functions.col("id") % 7)))
    city = functions.concat(functions.lit("city "), functions.col("id").cast("string"))
    return copies.select(city.alias("city"), (functions.col("id") % 100).cast("double").alias("x"), "id")


EXACT = pl.DataFrame({"city": [f"city {g}" for g in range(GROUPS)]}).with_columns(
    pl.Series("exact", [(g % 7 + 1) * (g % 100) for g in range(GROUPS)], dtype=pl.Float64)
)
#: Noise so fine, and so wide, that two equal values have one origin. Bounds that differ make two measurements.
WIDE = {"s": dpf.sum("x", bounds=(0, 2**20)), "t": dpf.sum("x", bounds=(-1, 2**20)), "epsilon": 1e-4}


def clusters(session, rows, folder, **asked):
    """Return what works for a request at two paths or more, to be driven by hand."""
    given = {
        "by": "city",
        "epsilon": 1.0,
        "delta": 0.0,
        "rho": None,
        "error": None,
        "budget": None,
        "interval": "noise",
        "where": None,
        "split": "even",
        "keys": EXACT.select("city"),
        "privacy_unit": "row",
        "max_groups": None,
        "max_rows_per_group": None,
        "neighbors": "add_remove",
        "mechanism": "laplace",
        "key_selection": "auto",
        "population": None,
        "dataset": None,
    }
    given |= {name: asked.pop(name) for name in list(asked) if name in given}
    blueprint = draw_up(rows, Folder.of(session, str(folder)), 3, {**given, "queries": asked})
    return blueprint.cluster, GroupQuery(("city",), blueprint.aggregation.measures)


def written(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "*.parquet").sort("city", nulls_last=True)


def noise_of(frame: pl.DataFrame, query: str) -> dict[str, float]:
    joined = frame.join(EXACT, on="city")
    assert joined.height == frame.height
    return dict(zip(joined["city"], joined[query] - joined["exact"], strict=True))


def redraw(cluster, folder, release_key=RELEASE) -> pl.DataFrame:
    """Draw again from the same exact blocks, into another folder."""
    again = cluster_module.Cluster(
        cluster.frame, Folder.of(cluster.session, str(folder)), cluster.files, cluster.specification, cluster.public
    )
    object.__setattr__(again, "exact", cluster.exact)
    again.write_noise(release_key, SEALING)
    return written(folder)


class TestNoise:
    def test_splits_batches_and_files_change_nothing(self, session, setting, rows, tmp_path):
        """The numbers of a block are its own: how its file is read cannot change them (rule 26)."""
        cluster, query = clusters(session, rows, tmp_path / "first", **WIDE)
        cluster.write_exact(query, SEALING)
        cluster.write_noise(RELEASE, SEALING)
        first = written(tmp_path / "first")
        assert first.height == GROUPS
        batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
        changes = [
            {batch: "1", "spark.sql.shuffle.partitions": "5", "spark.sql.adaptive.enabled": "false"},
            {batch: "7", "spark.sql.files.maxPartitionBytes": "16384", "spark.sql.files.openCostInBytes": "1"},
        ]
        for number, changed in enumerate(changes):
            for name, value in changed.items():
                setting(name, value)
            assert redraw(cluster, tmp_path / f"again {number}").equals(first)
        other = redraw(cluster, tmp_path / "another key", bytes(32))
        assert (other["s"] != first["s"]).all()

    def test_no_two_groups_share_noise_whatever_is_cut_otherwise(self, session, setting, rows, tmp_path):
        """One release key and three ways to cut partitions and blocks: no noise is that of another group.

        Keys from the number of the partition alone gave half of the groups another group's noise. Each group has two
        noises here, on a grid of which two draws hit the same point with probability 2**-22: some two of the 9,000
        groups have equal pairs by chance with probability 3e-6, and some three of them equal noises in one pair, 1e-9.
        """
        owners: dict[tuple[float, float], set[str]] = {}
        equal = 0
        for number, (partitions, batch, groups) in enumerate(
            [("3", "10000", 100), ("2", "3", 100), ("3", "10000", 64)]
        ):
            setting("spark.sql.shuffle.partitions", partitions)
            setting("spark.sql.adaptive.enabled", "false")
            setting("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cluster_module, "SealBlocks", partial(SealBlocks, groups=groups))
                cluster, query = clusters(session, rows, tmp_path / f"way {number}", **WIDE)
                cluster.write_exact(query, SEALING)
                cluster.write_noise(RELEASE, SEALING)
            frame = written(tmp_path / f"way {number}")
            first, second = noise_of(frame, "s"), noise_of(frame, "t")
            equal += sum(first[city] == second[city] for city in first)
            for city in first:
                owners.setdefault((first[city], second[city]), set()).add(city)
        assert max(map(len, owners.values())) == 1
        assert len(owners) > 2 * GROUPS
        assert equal < 3

    def test_the_same_partitions_give_the_same_blocks(self, session, setting, rows, tmp_path):
        """Exact blocks are a function of the aggregates: other rows orders and batches give the same noise."""
        setting("spark.sql.adaptive.enabled", "false")
        frames = []
        for number, (frame, batch) in enumerate(
            [(rows, "10000"), (rows.repartition(7), "11"), (rows.orderBy("x"), "3")]
        ):
            setting("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
            cluster, query = clusters(session, frame, tmp_path / str(number), **WIDE)
            cluster.write_exact(query, SEALING)
            cluster.write_noise(RELEASE, SEALING)
            frames.append(written(tmp_path / str(number)))
        assert frames[1].equals(frames[0])
        assert frames[2].equals(frames[0])


@dataclass(frozen=True)
class Faulty(DrawNoise):
    """Fails in the middle of the first attempt of every task, and keeps what each attempt drew."""

    folder: str = ""

    def __call__(self, batches):
        from pyspark import TaskContext

        context = TaskContext.get()
        task, attempt = context.partitionId(), context.attemptNumber()
        with (Path(self.folder) / f"{task}-{attempt}").open("w", encoding="utf-8") as file:
            for number, shown in enumerate(super().__call__(batches)):
                file.write(f"{shown.to_pydict()}\n")
                if attempt == 0 and number == 2:
                    file.flush()
                    if task % 2:
                        os._exit(1)
                    raise RuntimeError("city 1 has 7 rows")
                yield shown


def test_a_task_that_fails_draws_the_same_again(session, setting, rows, tmp_path, monkeypatch):
    """Half of the tasks raise in their third block, and of half the Python process is killed."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    setting("spark.sql.adaptive.enabled", "false")
    cluster, query = clusters(session, rows, tmp_path / "first", **WIDE)
    cluster.write_exact(query, SEALING)
    cluster.write_noise(RELEASE, SEALING)
    seen = tmp_path / "seen"
    seen.mkdir()
    monkeypatch.setattr(cluster_module, "DrawNoise", partial(Faulty, folder=str(seen)))
    setting("spark.sql.files.maxPartitionBytes", "65536")
    setting("spark.sql.files.openCostInBytes", "65536")
    assert redraw(cluster, tmp_path / "again").equals(written(tmp_path / "first"))
    attempts = {path.name: path.read_text().splitlines() for path in seen.iterdir()}
    failed = [name for name in attempts if name.endswith("-0") and len(attempts[name]) == 3]
    assert len(failed) >= 2
    for name in failed:
        again = attempts[name.removesuffix("0") + "1"]
        assert again[:3] == attempts[name]
