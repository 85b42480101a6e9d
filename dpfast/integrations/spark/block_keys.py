"""The key of a block of noise: a function of the release's key, the place of the noise and the block's exact content.

Why noise may be a function here, where it is drawn afresh everywhere else: Spark runs a task again when it fails, when
its executor is lost, and, speculatively, when it is slow. Fresh noise would be a second draw for one charge, and who
sees both outputs has two noisy values of one figure. So noise must be the same in every attempt, and two groups must
never have the same noise, since it cancels on subtraction.

Proof. Let K be the release's key, 32 fresh bytes. The block with number b of partition p, with content C, gets for
part m of what is drawn the words of AES under the key HMAC-SHA-256(K, e(m, p, b, SHA-256(C))), where e is injective.

1. *The exact blocks are fixed before any noise.* They are written once, and one committed file is read for each
   partition (`dpfast.integrations.spark.storage`). A block is one row of such a file: how Spark splits files among
   tasks, how it batches rows, and which attempt of a task is the last cannot change what is in a block, or its numbers.
   A group is in exactly one block.
2. *Every attempt computes the same bytes.* The words for a group are a function of K, m and its block; the place of
   its words is its row in the block. So whatever attempts ran, whatever of their output was seen, all of it is one
   function of K and of the exact blocks. It tells no more than one attempt does.
3. *No two figures share a word.* Two parts, or two groups in different blocks, have different (m, p, b), so different
   inputs of HMAC, so keys that nobody can tell from independent ones who cannot tell HMAC under a random key
   from a random function. Two groups of one block read different words under its key.
4. Hence, for fixed data, the output has the law of independent fresh noise, up to the advantage in 3 and that of
   AES: the guarantee of the mechanism, which is about this law for any data, holds as it is.

The content's hash in the key is for what 1 excludes. Should a block with these numbers ever exist twice with different
content (a second write of the exact blocks, files that were put back), the two get independent noise: one budget is
spent twice, but no exact difference can be computed. If it exists twice with the same content, it gets the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from dpfast.randomness import RandomSource

__all__ = ["BlockKeys", "encode"]

_LABEL = b"dpfast: the key of a block of noise, 2"


def encode(*fields: bytes) -> bytes:
    """Return fields as one string of bytes, from which they can be read back: each after its length.

    Examples
    --------
    >>> encode(b"a", b"bc") == encode(b"ab", b"c")
    False

    """
    return b"".join(len(each).to_bytes(8, "big") + each for each in fields)


@dataclass(frozen=True)
class BlockKeys:
    """What gives the keys of one block's noise, one for every part.

    Parameters
    ----------
    release_key
        32 bytes, fresh for every release.
    partition, block
        The block's numbers.
    content
        SHA-256 of the block's group keys and exact aggregates.

    """

    release_key: bytes = field(repr=False)
    partition: int
    block: int
    content: bytes = field(repr=False)

    def __call__(self, part: str) -> RandomSource:
        """Return a source of one key, that of this part of what is drawn."""
        place = (part.encode(), self.partition.to_bytes(8, "big"), self.block.to_bytes(8, "big"))
        return _OneKey(hmac.digest(self.release_key, encode(_LABEL, *place, self.content), hashlib.sha256))


class _OneKey:
    """A source that gives its key once: a second kernel call under one key would repeat words (Soundness rule 1)."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key: bytes | None = key

    def key(self) -> bytes:
        key, self._key = self._key, None
        if key is None:
            message = "the key of a block's measure serves one kernel call"
            raise ValueError(message)
        return key
