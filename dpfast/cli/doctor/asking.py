"""Asks what dpfast draws on this machine, in a process of its own: it may take too long, or crash.

In a new installation kernels have to be compiled, which takes minutes for all and cannot be interrupted. So who asks
does not wait for the process that compiles: that one finishes what it is at, keeps it, and ends by itself. The next
time goes further by at least one call, however slow the machine.
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

__all__ = ["Findings", "Message", "collect", "tell", "told_in_time", "told_of_everything"]

#: What is told, and of what: "facts", "begin", "done", "keystream", "kernels", "end", or "died".
Message = tuple[str, Any]

_PROGRAM = "from dpfast.cli.doctor.asking import tell; tell()"
#: How long the other process may go on when nobody waits for it: far longer than one compilation takes.
_SECONDS_MORE = 180.0


@dataclass
class Findings:
    """What was found.

    Attributes
    ----------
    facts
        Versions and the like, by name.
    right, not_asked
        The names of what is as it must be, and of what there was no time for.
    wrong
        What is wrong, a line each.
    keystream
        Random bytes a second, or None where there was no time for it.
    kernels
        How many were loaded, how many compiled, and where they are kept.

    """

    facts: dict[str, str] = field(default_factory=dict)
    right: list[str] = field(default_factory=list)
    not_asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    keystream: float | None = None
    kernels: tuple[int, int, str | None] = (0, 0, None)


def told_of_everything() -> Iterator[Message]:
    """Make all calls, in this process, and tell of each: noise of Laplace first, which most people draw first."""
    from dpfast.cli.doctor.checks import CHECKS, Check
    from dpfast.cli.doctor.machine import compiled_kernels, facts, keystream_speed
    from dpfast.cli.doctor.noise import KINDS, wrong_noise

    def wrong_answer(check: Check) -> Iterator[str]:
        if check.answer() != check.expected():
            yield "another answer than it must be"

    calls: dict[str, Callable[[], Iterable[str]]] = {
        **{f"{kind} noise with fresh keys": partial(wrong_noise, kind) for kind in KINDS},
        **{check.name: partial(wrong_answer, check) for check in CHECKS},
    }
    yield "names", list(calls)
    yield "facts", facts()
    for number, (name, call) in enumerate(calls.items()):
        yield "begin", name
        try:
            wrong = list(call())
        except Exception as error:
            wrong = [f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"]
        yield "done", (name, wrong)
        if number == 0:
            yield "keystream", keystream_speed()
        yield "kernels", compiled_kernels()
    yield "end", None


def tell() -> None:
    """Tell everything on standard output, a line of JSON each; the process that asks starts this one with it.

    When nobody listens any more, what is at work is finished, so that what it has compiled is kept, and nothing more is
    begun. Whatever that is, the process ends some time after the one that asks.
    """
    threading.Thread(target=_end_after_the_asking, daemon=True).start()
    # What libraries print is no message.
    with open(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            for message in told_of_everything():
                told.write(json.dumps(message) + "\n")
                told.flush()
        except BrokenPipeError:
            os._exit(0)


def _end_after_the_asking() -> None:
    """Wait until the process that asks has ended, whose end of standard input is closed then, and some time more."""
    sys.stdin.buffer.read()
    time.sleep(_SECONDS_MORE)
    os._exit(0)


def told_in_time(seconds: float) -> Iterator[Message]:
    """Yield what another process tells within so many seconds; what it is at then, it finishes by itself."""
    end = time.perf_counter() + seconds
    # Modules are found where they are found here. No stream is shared: who reads ours would wait for the other's end.
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = queue.SimpleQueue[bytes]()
    threading.Thread(target=_pass_on, args=(process.stdout, lines), daemon=True).start()
    late = False
    try:
        while True:
            try:
                line = lines.get(timeout=None if math.isinf(seconds) else max(0.0, end - time.perf_counter()))
            except queue.Empty:
                late = True
                return
            if not line:
                yield "died", process.wait()
                return
            kind, what = json.loads(line)
            yield kind, what
            if kind == "end":
                return
    finally:
        if not late:
            process.kill()
            process.wait()
        process.stdin.close()


def _pass_on(stream: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Put lines into a queue as they come, and an empty one at the end."""
    for line in stream:
        lines.put(line)
    lines.put(b"")


def collect(messages: Iterable[Message], begin: Callable[[str, int], None]) -> Findings:
    """Put together what is told; tell the name of each call as it begins, and how many there are."""
    found, current = Findings(), "start"
    for kind, what in messages:
        if kind == "names":
            found.not_asked = list(what)
        elif kind == "facts":
            found.facts = what
        elif kind == "keystream":
            found.keystream = what
        elif kind == "kernels":
            found.kernels = what
        elif kind == "begin":
            current = what
            begin(current, len(found.not_asked) + len(found.right) + len(found.wrong))
        elif kind == "done":
            name, wrong = what
            found.not_asked.remove(name)
            found.wrong += [f"{name}: {line}" for line in wrong]
            found.right += [name] * (not wrong)
        elif kind == "died":
            found.wrong.append(f"{current}: the process that drew it died with exit code {what}")
    return found
