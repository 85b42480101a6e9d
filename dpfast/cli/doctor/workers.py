"""Calls made in processes of their own, as many at once as there are cores: each may compile for long, or crash.

In a new installation kernels have to be compiled, which takes minutes of a processor for all and cannot be interrupted.
A process compiles one kernel at a time, and keeps it where all others load it from. Whoever asks gives each process the
name of its next call when it is free, and does not wait for calls that take too long: a process finishes the call that
it is at, keeps what it has compiled, and ends by itself. So each run goes further than the last by at least one call
for each core, however slow the machine.
"""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import IO, Any

from dpfast.cores import core_count

__all__ = ["Message", "make_calls", "make_calls_here", "serve", "told_death"]

#: What is told, and of what: "names" of all calls; "begin" NAME; "done" (NAME, RESULT); "raised" (NAME, LINE); "died"
#: (NAME, EXIT CODE), without a name where the process was at no call; "kernels" (LOADED, COMPILED, PLACE).
Message = tuple[str, Any]
#: For their memory: a process holds the packages and what it compiles, from 0.3 GB up to 0.9 GB.
_MOST_PROCESSES = 8
#: How long a process may go on when nobody waits for it: far longer than one compilation takes.
_SECONDS_MORE = 180.0


def process_count() -> int:
    """Return how many processes share the calls."""
    return min(core_count(), _MOST_PROCESSES)


def make_calls_here(calls: Mapping[str, Callable[[], Any]]) -> Iterator[Message]:
    """Make all calls, in this process, and tell of each."""
    yield "names", list(calls)
    for name in calls:
        yield "begin", name
        yield from _make_call(calls, name)


def _make_call(calls: Mapping[str, Callable[[], Any]], name: str) -> Iterator[Message]:
    from dpfast.cli.doctor.machine import compiled_kernels

    try:
        told: Message = "done", (name, calls[name]())
    except Exception as error:
        told = "raised", (name, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    yield "kernels", compiled_kernels()
    yield told


def serve(module: str) -> None:
    """Make the calls of a module's ``calls()`` whose names come on standard input, and tell of them on standard output.

    Each line is JSON; the first one that is told has the names of all calls. When standard input ends, the call that is
    being made is finished, so that what it has compiled is kept. If it takes too long, the process ends without it.
    """
    asked = queue.SimpleQueue[str | None]()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    calls = import_module(module).calls()
    # What libraries print is no message.
    with open(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            _tell(told, ("names", list(calls)))
            while (name := asked.get()) is not None:
                for message in _make_call(calls, name):
                    _tell(told, message)
        except BrokenPipeError:
            os._exit(0)


def _listen(asked: queue.SimpleQueue[str | None]) -> None:
    """Pass on the names of calls as they come; after the last one, end the process if it does not end soon."""
    for line in sys.stdin:
        asked.put(json.loads(line))
    asked.put(None)
    time.sleep(_SECONDS_MORE)
    os._exit(0)


def _tell(told: IO[str], message: Message) -> None:
    told.write(json.dumps(message) + "\n")
    told.flush()


class _Worker:
    """A process that makes calls, and the one that it is at."""

    def __init__(self, module: str, lines: queue.SimpleQueue[tuple[_Worker, bytes]]) -> None:
        # Modules are found where they are found here. No stream is shared: who reads ours would wait for its end.
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
        program = f"from dpfast.cli.doctor.workers import serve; serve({module!r})"
        self.at: str | None = None
        self.is_ready = False
        self.kernels: tuple[int, int, str | None] = (0, 0, None)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
        )
        threading.Thread(target=self._pass_on, args=(lines,), daemon=True).start()

    def _pass_on(self, lines: queue.SimpleQueue[tuple[_Worker, bytes]]) -> None:
        """Put lines into a queue as they come, and an empty one at the end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.put((self, line))
        lines.put((self, b""))

    def begin(self, name: str) -> None:
        """Ask for a call. If the process has died, the end of its lines tells so."""
        assert self.process.stdin is not None
        self.at = name
        try:
            self.process.stdin.write(json.dumps(name).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return

    def leave(self, *, late: bool) -> None:
        """Ask for nothing more: end the process, or leave it to its last call if that is late."""
        assert self.process.stdin is not None
        if not late:
            self.process.kill()
            self.process.wait()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            return


def told_death(name: str | None, code: int) -> str:
    """Return a line about a process that died at a call, or at none: while it started, or waited."""
    return f"{name or 'between two calls'}: the process died with exit code {code}"


def make_calls(module: str, seconds: float = math.inf) -> Iterator[Message]:
    """Have processes make the calls of a module's ``calls()``; yield what they tell within so many seconds.

    What they are at then, they finish by themselves.
    """
    end = time.perf_counter() + seconds
    lines = queue.SimpleQueue[tuple[_Worker, bytes]]()
    workers = [_Worker(module, lines) for _ in range(process_count())]
    waiting: deque[str] | None = None
    late = False
    try:
        while waiting is None or waiting or any(worker.at or not worker.is_ready for worker in workers):
            try:
                left = None if math.isinf(seconds) else max(0.0, end - time.perf_counter())
                worker, line = lines.get(timeout=left)
            except queue.Empty:
                late = True
                return
            if not line:
                yield "died", (worker.at, worker.process.wait())
                worker.at = None
                workers.remove(worker)
                if not workers:
                    return
                continue
            kind, what = json.loads(line)
            worker.is_ready = True
            if kind == "kernels":
                worker.kernels = tuple(what)
                yield kind, _sum_of([one.kernels for one in workers])
                continue
            if kind == "names" and waiting is None:
                waiting = deque(what)
                yield kind, what
            elif kind != "names":
                yield kind, what
            worker.at = None
            if waiting:
                name = waiting.popleft()
                worker.begin(name)
                yield "begin", name
    finally:
        for worker in workers:
            worker.leave(late=late)


def _sum_of(kernels: Sequence[tuple[int, int, str | None]]) -> tuple[int, int, str | None]:
    """Return how many kernels all processes have loaded and compiled, and the folder that they are kept in."""
    places = [place for _, _, place in kernels if place is not None]
    place = os.path.commonpath(places) if places else None
    return sum(one[0] for one in kernels), sum(one[1] for one in kernels), place
