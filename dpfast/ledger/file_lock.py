"""One lock for one file, whatever it is called: among threads, processes and the containers of a machine.

The lock (flock) is on the file itself, not on a name, so that all names share it; it is let go when its process
ends, however it ends. SQLite's own locks are lost where anything in the process closes the file; this one is not.

A name can still mislead in three ways, and each is refused or followed:

- SQLite keeps its journal beside the name. A file with two hard links, or one that is mounted by itself, has a
  second folder, where a journal that a crash left would not be found. Such a file is refused (`check_place`, and
  `hold` for every transaction). A folder that is mounted twice is one folder; so are names that differ in case where
  the file system takes them for the same.
- A symbolic link is followed once, when the ledger is opened. The file's own name must not become one.
- A name may be given to another file, or to none. `hold` looks again once it has the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from dpfast.errors import LedgerError
from dpfast.ledger.turns import Turns
from dpfast.randomness import process_mark

__all__ = ["PATIENCE_SECONDS", "after_fork_in_child", "check_place", "hold"]

Result = TypeVar("Result")

PATIENCE_SECONDS = 30.0
_MOUNTS = "/proc/self/fdinfo/{}"
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0001, 0.002

#: Whose turn it is among the threads of this process, by device and inode.
_TURNS: dict[tuple[int, int], Turns] = {}
#: The files that are open for their lock.
_DESCRIPTORS: set[int] = set()


def after_fork_in_child() -> None:
    """Let go of what threads held that this process does not have; the parent keeps its locks."""
    _TURNS.clear()
    for descriptor in tuple(_DESCRIPTORS):
        _close(descriptor)


def hold(path: Path, work: Callable[[int], Result], *, alone: bool) -> Result:
    """Do some work with the descriptor of a file, locked: alone, or together with others who only read.

    Raises
    ------
    LedgerError
        If the file is missing, has a second name, or is held by others too long.

    """
    while True:
        found = _identity(path)
        turns = _TURNS.setdefault(found, Turns())  # one step, so that threads agree
        done = turns.take(lambda found=found: _locked(path, found, work, alone))  # type: ignore[misc]
        if done is not None:
            return done[0]


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise LedgerError(
            f"the ledger {str(path)!r} cannot be opened; see whether it is still there, under this very name"
        ) from error
    return status.st_dev, status.st_ino


def _locked(path: Path, found: tuple[int, int], work: Callable[[int], Result], alone: bool) -> tuple[Result] | None:
    """Return the work's result, or None where the name is another file's by now."""
    process = process_mark()
    descriptor = _opened(path)
    try:
        _wait(path, descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != found or _identity(path) != found:
            return None
        if status.st_nlink > 1:
            _remove_first_name(path, found)
            if os.fstat(descriptor).st_nlink > 1:
                raise LedgerError(
                    f"the ledger {str(path)!r} has a second name (a hard link), and its journal would stand beside "
                    "one of them alone; remove all names but one"
                )
        return (work(descriptor),)
    finally:
        if process_mark() == process:  # else the lock is the parent's
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        _close(descriptor)


def _opened(path: Path) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            descriptor = os.open(path, flags | os.O_RDWR)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            descriptor = os.open(path, flags | os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            what = "has become a symbolic link; open the file that it leads to"
        else:
            what = "cannot be opened; see whether it is still there and may be read and written"
        raise LedgerError(f"the ledger {str(path)!r} {what}") from error
    _DESCRIPTORS.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    if descriptor in _DESCRIPTORS:
        _DESCRIPTORS.discard(descriptor)
        os.close(descriptor)


def _wait(path: Path, descriptor: int, kind: int) -> None:
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, _SHORTEST_PAUSE
    while True:
        try:
            return fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LedgerError(
                    f"the ledger {str(path)!r} is held by another process for over {PATIENCE_SECONDS:g} s; try again"
                ) from None
        except OSError as error:
            raise LedgerError(
                f"the ledger {str(path)!r} cannot be locked where it is ({error.strerror}); keep it on a local disk"
            ) from error
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _remove_first_name(path: Path, identity: tuple[int, int]) -> None:
    """Remove the name under which a ledger was made, where its maker was cut off before that."""
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if name.startswith(f".{path.name}.") and name.endswith(".new"):
                other = path.with_name(name)
                status = os.stat(other, follow_symlinks=False)
                if (status.st_dev, status.st_ino) == identity:
                    os.unlink(other)


def check_place(path: Path, descriptor: int) -> None:
    """Refuse a file that is mounted by itself, as containers mount a single file.

    Its journal would stand in another folder than that of the file's own name. Linux tells which mount an open file
    is in; where the system does not tell, there is nothing to see.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        of_file, of_folder = _mount(descriptor), _mount(folder)
    finally:
        os.close(folder)
    if of_file != of_folder:
        raise LedgerError(
            f"the ledger {str(path)!r} is mounted as a single file, apart from its folder, where a journal that a "
            "crash left would not be found; mount its folder instead"
        )


def _mount(descriptor: int) -> str | None:
    try:
        with open(_MOUNTS.format(descriptor)) as lines:
            return next((line for line in lines if line.startswith("mnt_id:")), None)
    except OSError:
        return None
