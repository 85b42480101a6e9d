"""The plugin's shared library: compiled and linked at its first use, and kept for all later processes.

It is kept in the user's own cache folder, which nobody else may write to: whoever could would run code here. Its name
has a hash of the kernels' sources, of what compiles them and of the processor, so that an old one is never loaded. It
appears there whole, and is never replaced: processes that build it at once agree on the first one.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import dpfast.kernels as kernels

__all__ = ["Library", "UnavailableError", "library"]

_FOLDER_MODE = 0o700
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UnavailableError(Exception):
    """The library cannot be had here, for the reason in words."""


class Library:
    """The loaded library.

    Attributes
    ----------
    path
        Where it is.
    functions
        Its C functions.

    """

    def __init__(self, path: Path) -> None:
        from dpfast.integrations.plugin.refining import CALLBACK

        self.path = path
        self.functions = ctypes.CDLL(str(path))
        set_callback = self.functions.dpfast_set_callback
        set_callback.argtypes, set_callback.restype = [ctypes.c_int64], None
        set_callback(ctypes.cast(CALLBACK, ctypes.c_void_p).value)


_made: Library | UnavailableError | None = None
_making = threading.Lock()


def library() -> Library:
    """Return the library, built if it is not there.

    Raises
    ------
    UnavailableError
        It cannot be built or loaded on this machine; the same reason is given every time.

    """
    global _made
    if _made is None:
        with _making:
            if _made is None:
                try:
                    _made = _open()
                except UnavailableError as error:
                    _made = error
    if isinstance(_made, UnavailableError):
        raise _made
    return _made


def _open() -> Library:
    from dpfast.kernels.plugin.building import can_compile

    if not can_compile():
        raise UnavailableError("the processor or the system is none that it is written for")
    name, linker = f"plugin-{_fingerprint()}.so", _linker()
    for folder in _folders():
        path = folder / name
        for _ in range(2):
            try:
                _provide(path, linker)
                return Library(path)
            except OSError:
                # A damaged file, or a file system without programs.
                with suppress(OSError):
                    path.unlink()
    raise UnavailableError("no folder could be written to, or none that programs may be loaded from")


def _fingerprint() -> str:
    """Return a hash of all that decides what the library does."""
    from dpfast.kernels.plugin.building import processor

    digest = hashlib.sha256()
    for source in sorted(Path(kernels.__path__[0]).rglob("*.py")):
        digest.update(source.read_bytes() + b"\0")
    digest.update("\0".join([version("numba"), version("llvmlite"), version("numpy"), processor()]).encode())
    return digest.hexdigest()[:32]


def _linker() -> list[str] | None:
    """Return the command that links an object file into a library, up to the names; None where there is none."""
    for program in ("cc", "gcc", "clang", "ld"):
        found = shutil.which(program)
        if found is not None:
            return [found, "-shared", "-o"]
    return None


def _folders() -> Iterator[Path]:
    """Yield folders of this user alone: the cache, then a temporary one that goes with the process."""
    kept = os.environ.get("XDG_CACHE_HOME") or ""
    home = Path(kept) if os.path.isabs(kept) else Path(os.path.expanduser("~")) / ".cache"
    if home.is_absolute():
        folder = home / "dpfast"
        with suppress(OSError):
            folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            if _is_private(folder) and os.access(folder, os.W_OK | os.X_OK):
                yield folder
    with suppress(OSError):
        temporary = tempfile.mkdtemp(prefix="dpfast-")
        atexit.register(_remove, temporary, os.getpid())
        yield Path(temporary)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a child that was forked
        shutil.rmtree(folder, ignore_errors=True)


def _is_private(path: Path) -> bool:
    """Return whether something is this user's own, and nobody else may write to it."""
    found = os.lstat(path)
    own = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
    return own and not found.st_mode & _OTHERS_MAY_WRITE


def _provide(path: Path, linker: list[str] | None) -> None:
    """Have the library at a path: as it is, or built there."""
    if path.exists() and _is_private(path):
        return
    if linker is None:
        raise UnavailableError("there is no linker: install a C compiler (cc) or binutils (ld)")
    with _turn(path.with_suffix(".lock")):
        if path.exists() and _is_private(path):
            return
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="building-") as building:
            linked = _link(Path(building), linker)
            try:
                os.link(linked, path)
            except FileExistsError:
                if not _is_private(path):
                    raise OSError("the library at hand is not this user's own") from None
            except OSError:  # a file system without links
                os.replace(linked, path)


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait for other processes that build the same; go on without waiting where files cannot be locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError, ImportError):
            import fcntl  # not at the top: Windows, where nothing is built, has none

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _link(folder: Path, linker: list[str]) -> Path:
    """Compile and link the library in a folder; return where it is."""
    from dpfast.kernels.plugin.building import object_code

    given, made = folder / "plugin.o", folder / "plugin.so"
    given.write_bytes(object_code())
    run = subprocess.run([*linker, made, given], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if run.returncode != 0 or not made.exists():
        raise UnavailableError(f"{Path(linker[0]).name} could not link it")
    made.chmod(0o700)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    return made
