"""Asks what dpfast draws on this machine, in a process of its own: it may take too long, or crash, and is then ended.

In a new installation kernels have to be compiled, which takes a minute for all and cannot be interrupted. What has been
compiled until the process is ended is kept, so that the next time goes further.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Findings", "Message", "collect", "told_in_time", "told_of_everything"]

#: What is told, and of what: "facts", "begin", "done", "keystream", "kernels", "end", or "died".
Message = tuple[str, Any]


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


def _tell(pipe: Connection) -> None:
    for message in told_of_everything():
        pipe.send(message)


def told_in_time(seconds: float) -> Iterator[Message]:
    """Yield what another process tells, and end it after so many seconds."""
    end = time.perf_counter() + seconds
    spawned = multiprocessing.get_context("spawn")
    ours, theirs = spawned.Pipe(duplex=False)
    process = spawned.Process(target=_tell, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    message: Message = "", None
    try:
        while message[0] != "end" and ours.poll(None if math.isinf(end) else max(0.0, end - time.perf_counter())):
            message = ours.recv()
            yield message
    except EOFError:
        process.join()
        yield "died", process.exitcode
    finally:
        process.kill()
        process.join()
        ours.close()


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
