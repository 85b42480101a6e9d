"""What Spark's tasks do in Python: seal the exact blocks of a partition, and draw the noise of sealed blocks.

Both are objects that Spark pickles into a job. They hold the keys of one release and public facts, and neither shows
them: the plan and the event log know the name of the class alone. Errors are replaced by fixed words (Soundness rule
3): the text of an exception goes to the driver, its log and the page of the application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa

from dpfast.errors import DpfastError
from dpfast.integrations.spark.block_keys import BlockKeys
from dpfast.integrations.spark.sealing import BLOCK_GROUPS, Sealed, blocks_of, pack, seal, unpack, unseal
from dpfast.integrations.spark.specification import NoiseSpecification
from dpfast.randomness import DRAW_VERSION

__all__ = ["SEALED_COLUMNS", "DrawNoise", "SealBlocks", "TryOut"]

#: The columns of sealed blocks, as Spark reads them.
SEALED_COLUMNS = "`partition` bigint, `block` bigint, `payload` binary"

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class SealBlocks:
    """Turns the exact aggregates of one partition, in order, into sealed blocks, one a row."""

    sealing_key: bytes = field(repr=False)
    groups: int = BLOCK_GROUPS

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield a batch for each block."""
        partition = _partition()
        blocks = enumerate(blocks_of(batches, self.groups))
        # The engine's own errors, raised while a batch is awaited, pass as they are: they are its to tell.
        for number, block in blocks:
            sealed = _silently(self._seal, block, partition, number)
            yield pa.record_batch(
                {"partition": [sealed.partition], "block": [sealed.block], "payload": [sealed.payload]}
            )

    def _seal(self, block: Any, partition: int, number: int) -> Sealed:
        return seal(self.sealing_key, partition, number, pack(block))


@dataclass(frozen=True)
class DrawNoise:
    """Turns sealed blocks into what is released of them."""

    specification: NoiseSpecification
    release_key: bytes = field(repr=False)
    sealing_key: bytes = field(repr=False)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield a batch for each block, of the groups that are shown."""
        for batch in batches:
            for row in range(batch.num_rows):
                shown = _silently(self._draw, batch, row)
                yield from shown.to_batches()

    def _draw(self, batch: Any, row: int) -> Any:
        partition, block, payload = (batch.column(name)[row].as_py() for name in ("partition", "block", "payload"))
        packed = unseal(self.sealing_key, Sealed(partition, block, payload))
        keys = BlockKeys(self.release_key, partition, block, sha256(packed).digest())
        shown = self.specification.draw(unpack(packed), keys)
        table = shown.to_arrow(compat_level=pl.CompatLevel.oldest())
        small = [_with_small_offsets(column.type) for column in table.schema]
        return table.cast(pa.schema(list(zip(table.column_names, small, strict=True))))


@dataclass(frozen=True)
class TryOut:
    """Fails where `DrawNoise` would: on an executor whose dpfast is not the driver's, or draws other noise."""

    specification: NoiseSpecification
    version: str
    draw_version: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield nothing."""
        for _ in batches:
            found = version("dpfast")
            if found != self.version:
                raise DpfastError(f"an executor has dpfast {found}, the driver {self.version}")
            if self.draw_version != DRAW_VERSION:
                raise DpfastError(f"an executor's dpfast {found} draws other noise than the driver's")
        yield from ()


def _with_small_offsets(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column for Spark, whose strings and lists have offsets of 32 bits."""
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.list_(_with_small_offsets(kind.value_type)) if pa.types.is_large_list(kind) else kind


def _partition() -> int:
    """Return the number of the partition that this task works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise DpfastError("blocks are sealed in a task of Spark alone")
    return int(context.partitionId())


def _silently(make: Callable[..., _Made], *given: Any) -> _Made:
    """Return what ``make`` makes, or fail without a word about the data."""
    try:
        return make(*given)
    except Exception:
        pass
    # Out here, so that neither __cause__ nor __context__ holds the error.
    raise DpfastError("a block of groups could not be worked on: is the same version of dpfast on every executor?")
