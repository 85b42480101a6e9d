"""A counter's state in a file: written whole before a figure is handed out, and held by one process at a time.

The file is an Arrow IPC file with a row for each counter, and what is public beside the columns, with the secret of the
noise. Except for a pan-private counter it holds private data, exact counts among them, and it may be read by its owner
alone (mode 0600). It is written under another name in the same folder, brought to the disk, and given its name in one
step, so that whenever a process ends there is the state before a step or the state after it, never a part of one. Which
process may continue it is settled by a lock on the file itself (flock), which ends with its process. A checksum finds
what changed on the disk; it is no seal.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.private import Private
from dpfast.arguments import Special
from dpfast.errors import LedgerError, ParameterError

__all__ = ["PATH", "StateFile", "check_new_path", "read_path"]

PATH = Special(lambda: (5, True, b"", "", 1.5, ["a"], object()))

_MARK = b"dpfast counter"
_FORMAT = 1
#: How many bytes more than without a secret and an entry's number a first state may have.
_ROOM = 1024


def read_path(path: object) -> Path:
    """Return the name of a file that a user gave."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise ParameterError("path", path, "the name of a file", 'write for example path="counter.arrow"')
    return Path(path)


def check_new_path(path: Path) -> None:
    """Refuse a name that is taken, or a folder that cannot be written to."""
    if os.path.lexists(path):
        raise LedgerError(f"the file {str(path)!r} exists already; continue it by dpf.restore_counter, or take another")
    if not os.access(path.parent, os.W_OK | os.X_OK) or not path.parent.is_dir():
        raise LedgerError(f"the folder {str(path.parent)!r} is missing or cannot be written to; make it first")
    longest = os.pathconf(path.parent, "PC_NAME_MAX")
    if len(os.fsencode(_beside(path).name)) > longest:
        raise LedgerError(f"the name {path.name!r} is too long; {longest - 5} bytes are the most")


def _beside(path: Path) -> Path:
    """Return the name under which the next state is written."""
    return path.with_name(f".{path.name}.new")


class StateFile(Private):
    """The file that one counter is kept in; to be closed.

    Parameters
    ----------
    path
        Its name.

    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._descriptor: int | None = None

    def try_room(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Refuse a disk that has no room for a first state like this one, by writing it under another name."""
        check_new_path(self.path)
        beside, reason = _beside(self.path), ""
        try:
            descriptor = _open_new(beside)
            try:
                _write_all(descriptor, _packed(facts, arrays) + bytes(_ROOM))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
                beside.unlink()
        except OSError as error:
            reason = os.strerror(error.errno or 0)
        if reason:
            raise self._unwritten(reason)

    def create(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write the first state; there must be no file of this name, and is none if that fails."""
        check_new_path(self.path)
        try:
            self._write(facts, arrays, new=True)
        except BaseException:
            self._take_back()
            raise

    def write(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write the state after a step in the place of the one before.

        Raises
        ------
        LedgerError
            The disk refuses it, or the name has become another file's.

        """
        self._check_own()
        self._write(facts, arrays, new=False)

    def open(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Lock the file and return what is in it.

        Raises
        ------
        LedgerError
            There is no such file, another process or object has it, or it is damaged.

        """
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise LedgerError(
                f"the file {str(self.path)!r} cannot be opened: {os.strerror(error.errno or 0)}"
            ) from None
        try:
            self._lock(self._descriptor)
            with suppress(OSError):
                # Left by whoever was killed between giving the first state its name and taking the other one away.
                if os.path.samefile(_beside(self.path), self.path):
                    _beside(self.path).unlink()
            self._check_own()
            with open(self._descriptor, "rb", closefd=False) as file:
                content = file.read()
            return self._parsed(content)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _take_back(self) -> None:
        """Let go of a file that was not finished, and take its name away: nobody shall go on from it."""
        if self._descriptor is not None:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._descriptor), os.stat(self.path, follow_symlinks=False)):
                    self.path.unlink()
        self.close()

    def _unwritten(self, reason: str) -> LedgerError:
        return LedgerError(f"the counter's file {str(self.path)!r} cannot be written: {reason}")

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"the counter in {str(self.path)!r} is open elsewhere; close it there first"
            raise LedgerError(message) from None

    def _check_own(self) -> None:
        """Refuse to go on where the name is another file's by now."""
        if self._descriptor is None:
            raise LedgerError(f"the counter in {str(self.path)!r} was closed; restore it from its file")
        own = os.fstat(self._descriptor)
        with suppress(OSError):
            named = os.stat(self.path, follow_symlinks=False)
            if (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino):
                if own.st_nlink == 1:
                    return
                other = f"the file {str(self.path)!r} has another name, under which the counter would go on once more"
                raise LedgerError(f"{other}; take that hard link away")
        raise LedgerError(f"the file {str(self.path)!r} was moved or replaced by others; open it by its name again")

    def _write(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]], *, new: bool) -> None:
        content = _packed(facts, arrays)
        beside = _beside(self.path)
        reason = ""
        try:
            descriptor = _open_new(beside)
            earlier, self._descriptor = self._descriptor, descriptor if new else self._descriptor
            try:
                _write_all(descriptor, content)
                os.fsync(descriptor)
                # The new file is ours before it has the name.
                self._lock(descriptor)
                if new:
                    os.link(beside, self.path)  # fails where the name is taken
                    beside.unlink()
                else:
                    os.replace(beside, self.path)
            except BaseException:
                if not new:
                    os.close(descriptor)
                raise
            self._descriptor = descriptor
            if earlier is not None:
                os.close(earlier)
            self._check_own()
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            with suppress(OSError):
                beside.unlink()
        if reason:
            raise self._unwritten(reason)

    def _parsed(self, content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        import pyarrow as pa

        try:
            table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
            facts = json.loads(table.schema.metadata[_MARK])
            columns = {name: table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in table.column_names}
            if facts["format"] == _FORMAT and facts.pop("checksum") == _checksum(facts, columns):
                return facts, _stacked(facts["rows"], columns)
        except Exception:  # whatever stands in the file
            pass
        raise LedgerError(f"the file {str(self.path)!r} holds no counter of this version of dpfast, or it is damaged")


def _open_new(path: Path) -> int:
    """Open a new file for its owner alone, in the place of what was left by whoever was killed."""
    with suppress(FileNotFoundError):
        path.unlink()
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _checksum(facts: dict[str, Any], columns: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, column in columns.items():
        digest.update(name.encode() + str(column.dtype).encode() + np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _packed(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a file: a column for each row of an array, long as there are counters."""
    import pyarrow as pa

    columns: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns.update({f"{name}.{row}": array[row] for row in range(len(array))})
    facts = {**facts, "format": _FORMAT, "rows": {name: len(x) for name, x in arrays.items() if x.ndim == 2}}
    facts["checksum"] = _checksum(facts, columns)
    schema_facts = {_MARK: json.dumps(facts).encode()}
    table = pa.table({name: pa.array(column) for name, column in columns.items()}).replace_schema_metadata(schema_facts)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _stacked(rows: dict[str, int], columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays that columns were made of."""
    arrays = {name: column.copy() for name, column in columns.items() if name.rpartition(".")[0] not in rows}
    for name, count in rows.items():
        arrays[name] = np.stack([columns[f"{name}.{row}"] for row in range(count)]) if count else np.zeros((0, 0))
    return arrays
