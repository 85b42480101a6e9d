"""Random words: AES-256 in counter mode, under a fresh key for every kernel call.

A keystream is a key and nothing else: word ``j`` of chunk ``c`` for a purpose is a fixed function of
(key, purpose, c, j), so results do not depend on threads or on the order in which chunks are drawn. The
128-bit counter of AES-CTR starts at

    purpose * 2**96 + chunk * 2**32

and a chunk reads fewer than 2**32 blocks, so no block of the cipher serves twice under one key; and as every
kernel call has its own key, none serves twice at all. Nothing random is global and nothing is kept between calls,
which makes fork, threads, pickling and copying harmless by construction. The few objects that keep randomness between
calls remember their `process_mark`, and keep it from forks.

The guarantees of dpfast are computational in this one place: they hold against anyone who cannot tell
AES-256 under a random key from random bits. The running time is outside them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError

__all__ = [
    "DRAW_VERSION",
    "RANDOM",
    "Keystream",
    "Purpose",
    "Random",
    "RandomSource",
    "SystemRandom",
    "Tail",
    "Words",
    "fresh_words",
    "process_mark",
    "random_source",
]

DRAW_VERSION = 3
"""Raised whenever a key gives other noise than before (tests/noise/test_randomness.py says when).

What keeps a key to draw from later keeps this number too, and refuses another one. The same key would give other noise
for the same figures: a second draw that nothing has paid for, from the same words, so that the two may cancel.
"""


_KEY_BYTES = 32
_BLOCK_BYTES = 16
_ZEROS = memoryview(bytes(1 << 20))
#: From so many bytes on the compiled cipher is worth loading, or from so many calls for fewer words on.
_MANY_BYTES, _MANY_CALLS = 1 << 18, 64
#: Counters of chunks below it are positive numbers of 64 bits, as kernels take them.
_MANY_CHUNKS = 1 << 31
_short_calls = 0

#: How many forks lie between the first process and this one.
_forks = 0


def _after_fork_in_child() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork_in_child)


def process_mark() -> tuple[int, int]:
    """Return what tells this process from all that it was forked from.

    A process id alone does not: a child may have its parent's, in a PID namespace of its own or where the id is used
    again. Forks are counted for that. The id tells of a fork that Python did not make.

    Examples
    --------
    >>> process_mark() == process_mark()
    True

    """
    return os.getpid(), _forks


class Purpose(IntEnum):
    """What a word is for: disjoint parts of the counter."""

    NOISE = 0
    REFINEMENT = 1
    BOUNDING = 2
    KEY_SELECTION = 3


#: How ciphers mostly begin: nothing changes these, and to make one takes as long as to encrypt a kilobyte.
_BEGINNINGS = {purpose << 96: modes.CTR((purpose << 96).to_bytes(_BLOCK_BYTES, "big")) for purpose in Purpose}


class RandomSource(Protocol):
    """Where keys come from."""

    def key(self) -> bytes:
        """Return 32 bytes that no other call returns."""


class SystemRandom:
    """Fresh keys from the operating system: the only source that a ledger accepts."""

    __slots__ = ()

    def key(self) -> bytes:
        """Return 32 fresh bytes from the operating system's generator."""
        return os.urandom(_KEY_BYTES)


class Words:
    """The words of one purpose, chunk by chunk; one object for each thread.

    OpenSSL makes them, or a kernel (kernels/keystream.py), the same words without the interpreter's lock: where they
    are many and the processor encrypts several blocks at once, in half the time; and where they are few, as to make a
    cipher of OpenSSL's takes longer than to encrypt ten kilobytes.

    Examples
    --------
    >>> import numpy as np
    >>> words = Keystream(bytes(32)).words(Purpose.NOISE)
    >>> buffer = np.empty(4, np.uint32)
    >>> words.fill(0, buffer)
    >>> [f"{word:08x}" for word in buffer.byteswap().tolist()]
    ['dc95c078', 'a2408989', 'ad48a214', '92842087']

    """

    __slots__ = ("_encryptor", "_key", "_purpose", "_schedule")

    def __init__(self, key: bytes, purpose: Purpose) -> None:
        self._key, self._purpose = key, int(purpose) << 96
        self._schedule: NDArray[np.uint64] | None = None
        self._encryptor: CipherContext | None = None

    def __del__(self) -> None:
        """Wipe the round keys, the first two of which are the key."""
        if self._schedule is not None:
            self._schedule.fill(0)

    def fill(self, chunk: int, buffer: NDArray[Any]) -> None:
        """Fill a contiguous buffer of at most 2**32 blocks, or of nothing, with the first words of a chunk."""
        if not buffer.size:
            return
        buffer = buffer.reshape(-1)  # kernels index bytes
        if self._purpose == 0 and chunk < _MANY_CHUNKS and self._fill_compiled(chunk, buffer):
            return
        start, encryptor = self._purpose + (chunk << 32), self._encryptor
        if encryptor is None:
            beginning = _BEGINNINGS.get(start) or modes.CTR(start.to_bytes(_BLOCK_BYTES, "big"))
            encryptor = self._encryptor = Cipher(algorithms.AES(self._key), beginning).encryptor()
        else:
            encryptor.reset_nonce(start.to_bytes(_BLOCK_BYTES, "big"))
        target = buffer.view(np.uint8).data
        size = len(target)
        if size <= len(_ZEROS):
            encryptor.update_into(_ZEROS[:size], target)
            return
        for begin in range(0, size, len(_ZEROS)):
            part = target[begin : begin + len(_ZEROS)]
            encryptor.update_into(_ZEROS[: len(part)], part)

    def single_blocks(self, chunk: int, size: int) -> tuple[NDArray[np.uint64], np.int64] | None:
        """Return what kernels make single blocks of a chunk with: round keys, and the counter of its first block.

        None where kernels do not make the first ``size`` bytes of a chunk. Then `fill` makes all that is needed.
        """
        from dpfast.kernels import keystream  # as in `_fill_compiled`

        if self._purpose or chunk >= _MANY_CHUNKS or size < _MANY_BYTES or not keystream.can_fill():
            return None
        return self._round_keys(), np.int64(chunk << 32)

    def _round_keys(self) -> NDArray[np.uint64]:
        from dpfast.kernels import keystream  # as in `_fill_compiled`

        if self._schedule is None:
            self._schedule = np.empty(keystream.SCHEDULE_WORDS, np.uint64)
            keystream.prepare_key(np.frombuffer(self._key, np.uint8), self._schedule)
        return self._schedule

    def _fill_compiled(self, chunk: int, buffer: NDArray[Any]) -> bool:
        """Fill a buffer by a kernel, where there is one for so many words; return whether it did."""
        is_short = buffer.nbytes < _MANY_BYTES
        if is_short and not _serves_short_calls():
            return False
        from dpfast.kernels import keystream  # not at the top: few words do without numba

        counter, target = np.int64(chunk << 32), buffer.view(np.uint8)
        if is_short:
            if keystream.can_encrypt():
                keystream.fill_at_once(np.frombuffer(self._key, np.uint8), counter, target)
                return True
            return False
        if not keystream.can_fill():
            return False
        keystream.fill_words(self._round_keys(), counter, target)
        return True


def _serves_short_calls() -> bool:
    """Count a call for few words; return whether they have been so many that a kernel is worth loading for them.

    The words are the same.
    """
    global _short_calls
    if _short_calls >= _MANY_CALLS:
        return True
    _short_calls += 1
    return False


class Keystream:
    """Every random word of one kernel call.

    Parameters
    ----------
    key
        32 bytes, used for one kernel call and never again.

    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            message = f"a key has {_KEY_BYTES} bytes"
            raise ValueError(message)
        self._key = key

    def __repr__(self) -> str:
        """Show nothing of the key."""
        return "Keystream(...)"

    def words(self, purpose: Purpose) -> Words:
        """Return a reader of the words of one purpose; every thread needs its own."""
        return Words(self._key, purpose)

    def extension(self, indices: Sequence[int] | NDArray[np.int64], depth: int) -> bytes:
        """Return 16 further bytes for each word index: block ``depth`` of the word's infinite continuation.

        A fixed function of (key, index, depth): every reader of a word sees the same continuation.
        """
        start = int(Purpose.REFINEMENT) << 96
        counters = b"".join((start + (int(index) << 32) + depth).to_bytes(_BLOCK_BYTES, "big") for index in indices)
        # In counter mode a block of keystream is the cipher applied to the counter; ECB applies it to many.
        encryptor = Cipher(algorithms.AES(self._key), modes.ECB()).encryptor()
        return encryptor.update(counters)


def fresh_words(source: RandomSource, number: int, purpose: Purpose = Purpose.NOISE) -> NDArray[np.uint64]:
    """Return words under a key of their own, which is taken only if there are any.

    Examples
    --------
    >>> fresh_words(SystemRandom(), 3).dtype
    dtype('uint64')

    """
    words = np.empty(number, np.uint64)
    if number:
        Keystream(source.key()).words(purpose).fill(0, words)
    return words


class Tail:
    """The infinite bits of one word: those a kernel read, then blocks of the keystream's continuation.

    Parameters
    ----------
    keystream
        The kernel call's keystream.
    word
        The word's index in the call.
    leading, known
        The bits that were read, as an integer, and how many.

    """

    __slots__ = ("_bits", "_depth", "_keystream", "_length", "_word", "known")

    def __init__(self, keystream: Keystream, word: int, leading: int, known: int) -> None:
        self._keystream = keystream
        self._word = word
        self._bits = leading
        self._length = self.known = known
        self._depth = 0

    def leading(self, count: int) -> int:
        """Return the first ``count`` bits as an integer."""
        while self._length < count:
            block = self._keystream.extension((self._word,), self._depth)
            self._bits = (self._bits << 128) | int.from_bytes(block, "big")
            self._length += 128
            self._depth += 1
        return self._bits >> (self._length - count)


#: None for a fresh key from the operating system; tests give a source that can be repeated.
RANDOM = Special(lambda: (5, True, "seed", b"seed", 0.5, [1], object(), SystemRandom, np.ones(3)), optional=True)
Random: TypeAlias = Annotated[RandomSource | None, RANDOM]


def random_source(random: object) -> RandomSource:
    """Return the source of keys: the operating system, unless a test gives another."""
    if random is None:
        return SystemRandom()
    if isinstance(random, type) or not callable(getattr(random, "key", None)):
        raise ParameterError(
            "random", random, "None or a dpfast.testing.SeededRandom", "leave it out for secure randomness"
        )
    return random  # type: ignore[return-value]
