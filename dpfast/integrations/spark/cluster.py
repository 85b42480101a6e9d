"""One release on a cluster: exact blocks written once and sealed, one job that draws, and the exact blocks deleted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import polars as pl

from dpfast.aggregation.guarding import without_engine_errors
from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import DpfastError
from dpfast.integrations.spark.aggregating import check_session, exact_groups
from dpfast.integrations.spark.jobs import SEALED_COLUMNS, DrawNoise, SealBlocks, TryOut
from dpfast.integrations.spark.schemas import quoted, spark_columns
from dpfast.integrations.spark.specification import NoiseSpecification
from dpfast.integrations.spark.storage import Folder
from dpfast.randomness import DRAW_VERSION, SystemRandom

__all__ = ["Cluster"]


@dataclass(frozen=True)
class Cluster:
    """Where a release is computed, and where it is written.

    Attributes
    ----------
    frame
        The data.
    folder
        Where the noisy figures are written.
    files
        In how many files at most.
    specification
        How noise is drawn.
    public
        The public keys; None if keys are selected.

    """

    frame: Any
    folder: Folder
    files: int
    specification: NoiseSpecification
    public: pl.DataFrame | None
    exact: Folder = field(init=False)

    def __post_init__(self) -> None:
        token = SystemRandom().key()[:8].hex()
        # Readers of the folder above do not look into what begins with an underscore.
        object.__setattr__(self, "exact", self.folder.beside(f"_dpfast-sealed-{token}"))

    @property
    def session(self) -> Any:
        """The Spark session."""
        return self.folder.session

    @property
    def columns(self) -> str:
        """What is written, in the words of Spark."""
        return spark_columns(self.specification.schema)

    def check(self, query: GroupQuery) -> None:
        """Refuse what would fail, as far as that is known without reading data; to be called before the charge."""
        self.folder.refuse_existing()
        failure = None
        try:
            self._try_out()
            check_session(self.session)
            # Spark checks names and types as it plans.
            exact_groups(self.frame, query, self.public)
        except DpfastError:
            raise
        except Exception as error:
            failure = _line_of(error)
        finally:
            self.exact.delete()
        if failure is not None:
            raise DpfastError(
                f"a job over no data failed in Spark, so that the release would: {failure}. dpfast {version('dpfast')} "
                "must be on every executor, and the path in a folder that they can write to"
            )

    def _try_out(self) -> None:
        """Run a job like those of a release, over no data, on about as many executors as there are."""
        tasks = self.session.range(self.session.sparkContext.defaultParallelism)
        nothing = tasks.mapInArrow(TryOut(self.specification, version("dpfast"), DRAW_VERSION), self.columns)
        self._write(nothing, self.exact)
        if not self.exact.parts():
            raise DpfastError("this Spark session's committer names files in another way than part-00000-...parquet")

    def run(self, query: GroupQuery) -> None:
        """Aggregate, draw and write; to be called once, after the charge.

        The exact blocks are gone when this returns or fails.
        """
        random = SystemRandom()
        sealing_key, release_key = random.key(), random.key()

        def work() -> None:
            self.write_exact(query, sealing_key)
            self.write_noise(release_key, sealing_key)

        try:
            without_engine_errors("Spark", work)
        finally:
            deleted = self.exact.delete()
        if not deleted:
            raise DpfastError(
                f"sealed exact figures, whose key is gone, could not be deleted: delete {self.exact.path}"
            )

    def write_exact(self, query: GroupQuery, sealing_key: bytes) -> None:
        """Write the exact blocks, once: one file for each partition."""
        exact = exact_groups(self.frame, query, self.public)
        keys = [name for name in self.specification.columns if name.startswith("key")]
        exact = exact.sortWithinPartitions(*keys) if keys else exact
        sealed = exact.mapInArrow(SealBlocks(sealing_key), SEALED_COLUMNS)
        options = {"compression": "uncompressed", "maxRecordsPerFile": 0}
        sealed.write.mode("errorifexists").options(**options).parquet(self.exact.path)

    def write_noise(self, release_key: bytes, sealing_key: bytes) -> None:
        """Draw the noise of the exact blocks and write what is released, in one job."""
        # These files and no others, one of each partition: what failed attempts left is not read.
        blocks = self.session.read.schema(SEALED_COLUMNS).parquet(*self.exact.parts())
        draw = DrawNoise(self.specification, release_key, sealing_key)
        self._write(blocks.mapInArrow(draw, self.columns), self.folder)

    def _write(self, noisy: Any, folder: Folder) -> None:
        """Write what is released: what is in a file, and in which order, tells of nothing but the rows themselves.

        Blocks, and so partitions, are cut by keys that were not selected too.
        """
        keys = [noisy[quoted(field.name)] for field in self.specification.keys]
        placed = noisy.repartition(self.files, *keys).sortWithinPartitions(*keys) if keys else noisy.coalesce(1)
        placed.write.mode("errorifexists").parquet(folder.path)

    def read(self) -> Any:
        """Return a Spark frame that reads what was written."""
        return self.session.read.schema(self.columns).parquet(self.folder.path)


def _line_of(error: Exception) -> str:
    """Return the line of an error that says most; it is of a job that saw no data."""
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return (telling[-1] if telling else lines[0] if lines else type(error).__name__)[:200]
