"""Rows that do not fit into memory, in a file that only this process can read.

The rows are private. The file has no name: it is unlinked as it is made (``O_TMPFILE`` where the system has it), so
that nothing of it is left when the process ends, however it ends; its mode is 0600; and what is written is encrypted
by AES-256 in counter mode under a fresh key that is in memory alone, so that a copy of the disk shows only how much
was written. The key serves one file, and each place in it is written once, so that no keystream is used twice.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dpfast.aggregation.memory import megabytes
from dpfast.aggregation.private import Private
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.randomness import SystemRandom

__all__ = ["SpillFile", "check_disk", "find_folder"]

_BLOCK = 16
_MOUNTS = Path("/proc/self/mounts")


class SpillFile(Private):
    """A nameless, encrypted file of frames; to be closed.

    Parameters
    ----------
    folder
        A folder on a disk.

    Raises
    ------
    DpfastError
        If the file cannot be made or written, which is a fact of the disk.

    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._key = SystemRandom().key()
        self._end = 0
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            reason = os.strerror(error.errno or 0)
        else:
            return
        raise self._failed(reason)

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def closer(self) -> Callable[[], None]:
        """Return what closes the file, and does not keep this object alive."""
        return self._file.close

    def write(self, frame: pl.DataFrame) -> tuple[int, int]:
        """Append a frame of numbers and strings, and return its place."""
        buffer = io.BytesIO()
        # The newest layout of strings would carry along the buffers of rows that are not in the frame.
        frame.write_ipc_stream(buffer, compression="lz4", compat_level=pl.CompatLevel.oldest())
        data = self._cipher(self._end, buffer.getvalue())
        place = self._end, len(data)
        reason = ""
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file.fileno(), memoryview(data)[done:], place[0] + done)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
        if reason:
            raise self._failed(reason)
        self._end += -(-len(data) // _BLOCK) * _BLOCK
        return place

    def read(self, place: tuple[int, int]) -> pl.DataFrame:
        """Return the frame at a place."""
        offset, length = place
        data = os.pread(self._file.fileno(), length, offset)
        while len(data) < length:
            more = os.pread(self._file.fileno(), length - len(data), offset + len(data))
            if not more:
                raise self._failed("it was cut short")
            data += more
        return pl.read_ipc_stream(io.BytesIO(self._cipher(offset, data)))

    def _cipher(self, offset: int, data: bytes) -> bytes:
        """Encrypt or decrypt what stands at a place, a multiple of a block."""
        counter = modes.CTR((offset // _BLOCK).to_bytes(_BLOCK, "big"))
        return Cipher(algorithms.AES(self._key), counter).encryptor().update(data)

    def _failed(self, reason: str) -> DpfastError:
        return DpfastError(
            f"rows that do not fit into memory cannot be kept in the folder {self._folder!r} ({reason}): "
            "set TMPDIR to a folder with room"
        )


def find_folder() -> str | None:
    """Return a folder on a disk where rows may be kept: TMPDIR's, else the system's; None if none serves."""
    given = os.environ.get("TMPDIR")
    folders = [given] if given else [tempfile.gettempdir(), "/var/tmp"]
    for folder in folders:
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK) and not _is_memory(folder):
            return folder
    return None


def check_disk(needed: int) -> None:
    """Refuse to begin if no folder has so many bytes free.

    Raises
    ------
    ParameterError
        If no folder is writable and on a disk, or the disk has less room.

    """
    folder = find_folder()
    mend = "set TMPDIR to a folder on a disk with room, or give the process more memory"
    if folder is None:
        tried = os.environ.get("TMPDIR") or tempfile.gettempdir()
        raise ParameterError("TMPDIR", tried, "a writable folder on a disk, for rows that do not fit into memory", mend)
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free < needed:
        given = Words(f"{folder} with {megabytes(free)} free")
        raise ParameterError("TMPDIR", given, f"a folder with {megabytes(needed)} free, as the data's files have", mend)


def _is_memory(folder: str) -> bool:
    """Return whether a folder is a file system that lives in memory, where nothing is won."""
    try:
        lines = [line.split(" ") for line in _MOUNTS.read_text().splitlines()]
    except OSError:
        return False
    real, kind, longest = os.path.realpath(folder), "", -1
    for _, place, system, *_ in _whole(lines):
        inside = real == place or real.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= longest:
            kind, longest = system, len(place)
    return kind in ("tmpfs", "ramfs")


def _whole(lines: list[list[str]]) -> Iterator[list[str]]:
    for fields in lines:
        if len(fields) >= 3:
            yield [fields[0], fields[1].replace("\\040", " "), *fields[2:]]
