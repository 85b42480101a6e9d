"""The plugin's shared library: compiled and linked at its first use, and kept for all later processes.

Polars loads it as a plugin, DuckDB as an extension (duckdb_extension.py), and this process for its few settings.

It is kept in the user's own cache folder, which nobody else may write to: whoever could would run code here. Its name
has a hash of the kernels' sources, of what compiles them and of the processor, so that an old one is never loaded. It
appears there whole, and is never replaced: processes that build it at once agree on the first one.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import inspect
import os
import shutil
import stat
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import polars as pl
from polars.plugins import register_plugin_function

import dpfast.kernels as kernels
from dpfast.kernels.plugin.layout import MAGIC

__all__ = ["Library", "UnavailableError", "library", "open_kept", "plugin_expression"]

_FOLDER_MODE = 0o700
_DIGEST_BYTES = 32
_FOOTER_BYTES = 512
_MOST_KEPT = 8
_SECONDS_TO_END = 10.0
_MOST_TOLD = 300
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


#: Laplace noise of scale 1.
_TRIED = MAGIC + struct.pack("<d", 1.0)


class UnavailableError(Exception):
    """The library cannot be had here, for the reason in words."""


class _LinkError(OSError):
    """The linker fails, in this folder or in all."""


class Library:
    """The loaded library, which Polars has loaded too and asked for a type.

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
        self.functions.dpfast_set_callback.argtypes = self.functions.dpfast_set_allocator.argtypes = [ctypes.c_int64]
        self.functions.dpfast_set_callback.restype = self.functions.dpfast_make_function.restype = ctypes.c_int64
        self.functions.dpfast_make_function.argtypes = [ctypes.c_int64]
        self.functions.dpfast_set_callback(ctypes.cast(CALLBACK, ctypes.c_void_p).value or 0)
        atexit.register(_let_go, self.functions, os.getpid())
        self.functions.dpfast_set_allocator(_allocator())
        # Polars loads it now, where its file is. Nothing is evaluated: Polars' threads would not outlive a fork.
        tried = plugin_expression(path, "laplace", [pl.col("n")], _TRIED)
        try:
            schema = dict(pl.LazyFrame(schema={"n": pl.UInt32}).select(tried).collect_schema())
        except (Exception, pl.exceptions.PanicException):
            schema = {}
        if schema != {"n": pl.Int64}:
            raise UnavailableError("the installed version of Polars does not call it")


def _let_go(functions: ctypes.CDLL, owner: int) -> None:
    """Take Python's callback away while Python still runs: a thread that called it later would end in an abort."""
    last = time.monotonic() + _SECONDS_TO_END
    inside = functions.dpfast_set_callback(0)
    # The threads that a forked child's count stands for are not there.
    while inside and os.getpid() == owner and time.monotonic() < last:
        time.sleep(0.001)
        inside = functions.dpfast_set_callback(0)


def _allocator() -> int:
    """Return the address of Polars' functions for memory, which it publishes for plugins; 0 without them."""
    import polars._plr

    capsule, name = getattr(polars._plr, "_allocator", None), b"polars.polars._allocator"
    python = ctypes.pythonapi
    python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    if capsule is None or not python.PyCapsule_IsValid(capsule, name):
        return 0
    return int(python.PyCapsule_GetPointer(capsule, name) or 0)


def plugin_expression(path: Path, operation: str, columns: Sequence[pl.Expr], parameters: bytes) -> pl.Expr:
    """Return the expression that calls a library; see `calls.call`."""
    return register_plugin_function(
        plugin_path=path,
        function_name=operation,
        args=columns,
        kwargs={"parameters": parameters} if parameters else None,
        is_elementwise=True,
        use_abs_path=True,
        **_undetermined(),
    )


@cache
def _undetermined() -> dict[str, bool]:
    """Return the argument that keeps Polars from merging equal calls, where the installed version has it."""
    known = inspect.signature(register_plugin_function).parameters
    return {"is_deterministic": False} if "is_deterministic" in known else {}


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
        raise UnavailableError(str(_made))
    return _made


def open_kept() -> None:
    """Open the library if an earlier process left it in the user's cache folder; build nothing, and raise nothing.

    A query that another process made may run here before any expression is made.
    """
    global _made
    from dpfast.kernels.plugin.building import can_compile

    with suppress(Exception), _making:
        if _made is None and can_compile():
            folder = _cache_folder()
            if folder.is_absolute() and _is_private(folder):
                path = folder / f"plugin-{_fingerprint()}.so"
                if _is_whole(path):
                    _made = Library(path)


def _open() -> Library:
    from dpfast.kernels.plugin.building import can_compile

    if not can_compile():
        raise UnavailableError("the processor or the system is none that it is written for")
    if not reads_glue():
        raise UnavailableError("the installed version of Numba cannot read it; install 0.62 or later")
    name, linker, reason = f"plugin-{_fingerprint()}.so", _linker(), "there is no folder for it that is this user's own"
    for folder in _folders():
        path = folder / name
        for _ in range(2):
            step = "written"
            try:
                _provide(path, linker)
                step = "loaded"
                return Library(path)
            except OSError as error:
                # A damaged file, a file system without programs, or a linker that does not do.
                told = str(error) if isinstance(error, _LinkError) else f"it could not be {step} ({error})"
                reason = " ".join(told.split())[:_MOST_TOLD]
                with suppress(OSError):
                    path.unlink()
    raise UnavailableError(reason)


def reads_glue() -> bool:
    """Return whether the LLVM of the installed Numba has pointers without a type: else kernels are compiled in vain."""
    major, minor = version("llvmlite").split(".")[:2]
    return (int(major), int(minor)) >= (0, 45)


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


def _cache_folder() -> Path:
    kept = os.environ.get("XDG_CACHE_HOME") or ""
    home = Path(kept) if os.path.isabs(kept) else Path(os.path.expanduser("~")) / ".cache"
    return home / "dpfast"


def _folders() -> Iterator[Path]:
    """Yield folders of this user alone: the cache, then a temporary one that goes with the process."""
    folder = _cache_folder()
    if folder.is_absolute():
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


def _is_whole(path: Path) -> bool:
    """Return whether there is a library of this user's alone, with the digest at its end that it was written with.

    Loading a file that a crash cut off could end the process.
    """
    # Reading what is no file, such as a pipe, could wait forever.
    if not path.exists() or not _is_private(path) or not stat.S_ISREG(os.lstat(path).st_mode):
        return False
    code = path.read_bytes()
    return hashlib.sha256(code[:-_DIGEST_BYTES]).digest() == code[-_DIGEST_BYTES:]


def _provide(path: Path, linker: list[str] | None) -> None:
    """Have the library at a path: as it is, or built there."""
    if _is_whole(path):
        return
    if linker is None:
        raise UnavailableError("there is no linker: install a C compiler (cc) or binutils (ld)")
    with _turn(path.with_suffix(".lock")):
        if _is_whole(path):
            return
        with suppress(FileNotFoundError):
            path.unlink()
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="building-") as building:
            linked = _link(Path(building), linker)
            try:
                os.link(linked, path)
            except FileExistsError:
                if not _is_whole(path):
                    raise OSError("the library at hand is not this user's own") from None
            except OSError:  # a file system without links
                os.replace(linked, path)
    _forget_old(path.parent)


def _forget_old(folder: Path) -> None:
    """Delete all libraries but a few: of earlier versions, and of other processors. Who has one loaded keeps it."""
    with suppress(OSError):
        libraries = sorted(folder.glob("plugin-*.so"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in libraries[_MOST_KEPT:]:
            old.unlink(missing_ok=True)
            old.with_suffix(".lock").unlink(missing_ok=True)


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
    given, made = folder / "plugin.o", folder / "plugin.so"
    given.write_bytes(_compiled())
    program = Path(linker[0]).name
    try:
        run = subprocess.run(
            [*linker, made, given], stdin=subprocess.DEVNULL, capture_output=True, check=False, errors="replace"
        )
    except OSError as error:
        raise _LinkError(f"{program} cannot be run ({error.strerror})") from None
    if run.returncode != 0 or not made.exists():
        said = run.stderr.strip().splitlines()[:1]
        raise _LinkError(f"{program} could not link it{''.join(f' ({line})' for line in said)}")
    made.chmod(0o700)
    # What stands behind its last section no loader reads, but DuckDB does: what extension this is, and a signature. In
    # place of the signature's end stands a digest.
    fields = "4", "linux_amd64", "v1.2.0", "v1", "C_STRUCT", "", "", ""
    described = b"".join(field.encode().ljust(32, b"\0") for field in reversed(fields))
    with made.open("r+b") as file:
        code = file.read()
        written = described.ljust(_FOOTER_BYTES - _DIGEST_BYTES, b"\0")
        file.write(written + hashlib.sha256(code + written).digest())
        file.flush()
        os.fsync(file.fileno())
    return made


@cache
def _compiled() -> bytes:
    """Return the object file; a second folder is not worth a second compilation."""
    from dpfast.kernels.plugin.building import object_code

    try:
        return object_code()
    except Exception as error:  # of whatever kind: Numba may be told not to compile, or to check bounds
        raise UnavailableError(f"it could not be compiled ({type(error).__name__})") from None
