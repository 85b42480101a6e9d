"""One release on a cluster: exact blocks written once and sealed, one job that draws, and the exact blocks deleted."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import polars as pl

from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import DpfastError, ParameterError
from dpfast.integrations.spark.aggregating import exact_groups
from dpfast.integrations.spark.jobs import SEALED_COLUMNS, DrawNoise, SealBlocks
from dpfast.integrations.spark.schemas import spark_columns
from dpfast.integrations.spark.specification import NoiseSpecification
from dpfast.integrations.spark.storage import Folder
from dpfast.randomness import SystemRandom

__all__ = ["Cluster"]

_FAILED = (
    "a job of Spark failed after the charge, which stays spent; Spark's own log says why, and may quote the data. What "
    "the job may have left at the path is noise"
)
_Made = TypeVar("_Made")


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
    query
        What is aggregated, without a salt.
    public
        The public keys; None if keys are selected.

    """

    frame: Any
    folder: Folder
    files: int
    specification: NoiseSpecification
    query: GroupQuery
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

    def check(self) -> None:
        """Refuse what would fail, as far as that is known without reading data; to be called before the charge."""
        self.folder.refuse_existing()
        self.exact.make()
        if not self.exact.delete():
            raise ParameterError("path", self.folder.path, "in a folder from which files can be deleted")
        _check_executors(self.session)
        # Spark checks names and types as it plans.
        self._groups(bytes(32))

    def run(self) -> None:
        """Aggregate, draw and write; to be called once, after the charge.

        The exact blocks are gone when this returns or fails.
        """
        try:
            _guarded(self._run)
        finally:
            deleted = self.exact.delete()
        if not deleted:
            raise DpfastError(
                f"sealed exact figures, whose key is gone, could not be deleted: delete {self.exact.path}"
            )

    def _groups(self, salt: bytes) -> Any:
        """Return the frame of exact groups, of which nothing is computed yet."""
        return exact_groups(self.frame, replace(self.query, salt=salt), self.public)

    def _run(self) -> None:
        random = SystemRandom()
        sealing_key, release_key = random.key(), random.key()
        names = [name for name in self.specification.columns if name.startswith("key")]
        exact = self._groups(random.key())
        exact = exact.sortWithinPartitions(*names) if names else exact
        sealed = exact.mapInArrow(SealBlocks(sealing_key), SEALED_COLUMNS)
        options = {"compression": "uncompressed", "maxRecordsPerFile": 0}
        sealed.write.mode("errorifexists").options(**options).parquet(self.exact.path)

        # These files and no others, one of each partition: what failed attempts left is not read.
        blocks = self.session.read.schema(SEALED_COLUMNS).parquet(*self.exact.parts())
        draw = DrawNoise(self.specification, release_key, sealing_key)
        noisy = blocks.mapInArrow(draw, spark_columns(self.specification.schema))
        # What is in a file, and in what order, must not tell of keys that were not selected, as the blocks do.
        shown = [field.name for field in self.specification.keys]
        columns = [noisy[_quoted(name)] for name in shown]
        placed = noisy.repartition(self.files, *columns).sortWithinPartitions(*columns) if shown else noisy.coalesce(1)
        placed.write.mode("errorifexists").parquet(self.folder.path)

    def read(self) -> Any:
        """Return a Spark frame that reads what was written."""
        return self.session.read.schema(spark_columns(self.specification.schema)).parquet(self.folder.path)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _guarded(run: Callable[[], _Made]) -> _Made:
    """Return what ``run`` returns, or fail with fixed words: Spark's quote data (Soundness rule 3)."""
    try:
        return run()
    except (KeyboardInterrupt, SystemExit, DpfastError):
        raise
    except Exception:
        pass
    # Out here, so that neither __cause__ nor __context__ holds the engine's error.
    raise DpfastError(_FAILED)


def _check_executors(session: Any) -> None:
    """Refuse a cluster whose workers lack dpfast, or have another version; a job over no data is run."""
    own = importlib.metadata.version("dpfast")
    try:
        probe = session.range(session.sparkContext.defaultParallelism).mapInArrow(_versions, "`version` string")
        found = {row.version for row in probe.distinct().collect()}
    except Exception:
        found = set()
    if found != {own}:
        raise DpfastError(
            f"dpfast {own} must be installed for Python on every executor of the cluster, with pyarrow; a job that "
            f"looked for it found {', '.join(sorted(found)) or 'none'}"
        )


def _versions(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the version of dpfast that a task would use; what it needs is imported here."""
    import pyarrow as pa

    import dpfast.integrations.spark.jobs  # noqa: F401

    for _ in batches:
        yield pa.record_batch({"version": [importlib.metadata.version("dpfast")]})
