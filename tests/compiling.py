"""Each kernel is compiled by one process of the tests at a time; the others wait for it, and load what it kept.

Where no kernel is in the cache yet, the workers of a run collect the same tests at the same moment, and would each
compile the same kernels. Processes that a test starts, and what keeps nothing on disk, compile as they do elsewhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

#: A byte of this file stands for a signature of a kernel. The file is empty: bytes beyond its end can be locked too.
LOCKS = Path(__file__).parent / "__pycache__" / "compiling"


def place(dispatcher: Dispatcher, signature: object) -> int:
    """Return the byte that stands for what is compiled: two that share one wait for each other without need."""
    name = repr((dispatcher._cache._cache_file._index_path, signature))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])


@contextmanager
def alone(file: int, byte: int) -> Iterator[None]:
    """Wait until no other process is here for this byte.

    A process compiles in one thread at a time, and a kernel before those that call it. So no two processes wait for
    each other. The system frees what a process held when it ends.
    """
    fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


def compile_once() -> None:
    """Have this process wait where another one compiles the same."""
    compile_here = Dispatcher.compile
    LOCKS.parent.mkdir(exist_ok=True)
    # It stays open: a process that closes any descriptor of a file gives up all its locks on it.
    file = os.open(LOCKS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    @wraps(compile_here)
    def compile_or_wait(dispatcher, signature):
        if signature in dispatcher.overloads or not hasattr(dispatcher._cache, "_cache_file"):
            return compile_here(dispatcher, signature)
        # Numba's own lock first, which it takes again: threads of this process, too, take locks in one order.
        with global_compiler_lock, alone(file, place(dispatcher, signature)):
            return compile_here(dispatcher, signature)

    Dispatcher.compile = compile_or_wait
