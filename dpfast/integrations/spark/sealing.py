"""Exact blocks as ciphertext: what stands in storage between the aggregation and the noise.

A block is a run of rows of one partition: group keys, units, exact measures. It is written as one Arrow stream and
sealed by AES-256-GCM under a key of its own, derived from the sealing key of the release and 32 fresh random bytes that
stand beside the ciphertext; so a block that is sealed twice, by two attempts of a task, shares no key with itself. The
sealing key lives in the memory of the driver, and of the executors while they work. With it goes what was sealed: a
driver that is killed leaves bytes that nobody can read. Their length still tells about how many groups there were.

The block's numbers are authenticated with it: a block that was moved to another place is not opened.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpfast.integrations.spark.block_keys import encode
from dpfast.randomness import SystemRandom

if TYPE_CHECKING:
    from typing import Any

__all__ = ["BLOCK_GROUPS", "Sealed", "blocks_of", "pack", "seal", "unpack", "unseal"]

#: How many groups a block has; the last one of a partition has fewer.
BLOCK_GROUPS = 1 << 16

_LABEL = b"dpfast: the key of a sealed block, 1"
_SALT_BYTES, _NONCE = 32, bytes(12)


@dataclass(frozen=True)
class Sealed:
    """A sealed block and where it stands."""

    partition: int
    block: int
    payload: bytes


def blocks_of(batches: Iterable[Any], groups: int = BLOCK_GROUPS) -> Iterator[Any]:
    """Yield tables of exactly ``groups`` rows, the last one of fewer, whatever the batches were; none of no rows."""
    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        start = 0
        while rows + batch.num_rows - start >= groups:
            taken = groups - rows
            yield pa.Table.from_batches([*waiting, batch.slice(start, taken)])
            waiting, rows, start = [], 0, start + taken
        if start < batch.num_rows:
            waiting.append(batch.slice(start))
            rows += batch.num_rows - start
    if rows:
        yield pa.Table.from_batches(waiting)


def pack(table: Any) -> bytes:
    """Return a block as bytes: its rows and nothing else of the buffers that they stood in."""
    sink = pa.BufferOutputStream()
    whole = pa.table({name: _alone(table[name]) for name in table.column_names})
    with pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _alone(column: Any) -> Any:
    """Return a column as one array on buffers of its own."""
    return pa.concat_arrays([*column.chunks, pa.array([], column.type)]) if column.num_chunks else column


def unpack(packed: bytes) -> Any:
    """Return the table that was packed."""
    with pa.ipc.open_stream(packed) as stream:
        return stream.read_all()


def seal(key: bytes, partition: int, block: int, packed: bytes) -> Sealed:
    """Return a packed block as ciphertext."""
    salt = SystemRandom().key()
    return Sealed(partition, block, salt + _cipher(key, salt).encrypt(_NONCE, packed, _place(partition, block)))


def unseal(key: bytes, sealed: Sealed) -> bytes:
    """Return the packed block.

    Raises
    ------
    cryptography.exceptions.InvalidTag
        It is not what `seal` made with this key for this place.

    """
    salt, ciphertext = sealed.payload[:_SALT_BYTES], sealed.payload[_SALT_BYTES:]
    return _cipher(key, salt).decrypt(_NONCE, ciphertext, _place(sealed.partition, sealed.block))


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    """Return the cipher of one block; its key serves one message, so the nonce may be fixed."""
    return AESGCM(hmac.digest(key, encode(_LABEL, salt), hashlib.sha256))


def _place(partition: int, block: int) -> bytes:
    return partition.to_bytes(8, "big") + block.to_bytes(8, "big")
