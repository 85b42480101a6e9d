"""Calls of a user's function on many blocks, in processes of their own: what goes wrong there is a value of its block.

A function that raises, hangs, dies or gives nonsense answers b"". So does a block that cannot be pickled.
No error, and no message, tells which block it was.
"""

from __future__ import annotations

import os
import pickle
import pickletools
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Flag, Number, Real, Special, Whole
from dpfast.columns.lists import library_of
from dpfast.cores import core_count
from dpfast.errors import DpfastError, ParameterError, Words
from dpfast.progress import read_progress
from dpfast.randomness import process_mark
from dpfast.stability import worker
from dpfast.threads import share

__all__ = ["TIMEOUT", "WORKERS", "Calls", "FixedTime", "Function", "Timeout", "Workers", "prepare_calls"]

_NOT_CALLABLE = Special(lambda: (5, True, "sum", b"sum", 0.5, [len], object(), {}))
#: A function of one block of the data: its rows, as the kind that was given.
Function: TypeAlias = Annotated[Callable[..., object], _NOT_CALLABLE]
TIMEOUT = Number(0, 10**6, above=True, mend="write for example {name}=60.0")
#: Seconds after which a block's call is given up.
Timeout: TypeAlias = Annotated[Real, TIMEOUT]
WORKERS = Whole(0, 1024, optional=True, mend="leave it out to use all cores")
#: Processes that share the blocks; 0 for calls in this process.
Workers: TypeAlias = Annotated[int | None, WORKERS]
FIXED_TIME = Flag()
FixedTime: TypeAlias = Annotated[bool, FIXED_TIME]
#: Called with the number of blocks done.

#: What NumPy imports when it is first used: once, and not in every fork.
_LAZY = ("numpy", "numpy.ma", "numpy.random")
#: A process that imports what the function needs, and no data, is given this long.
_START_SECONDS = 1200.0


@dataclass(frozen=True)
class Calls:
    """A function and how it is called on blocks.

    Attributes
    ----------
    function
        The user's.
    setup
        What a process is told first; None for calls in this process.
    choices
        The labels that may be answered, or None for any.
    numeric
        Whether answers are numbers.
    timeout, workers, fixed_time, progress
        As the user gave them.

    """

    function: Callable[..., object]
    setup: bytes | None
    choices: tuple[str, ...] | None
    numeric: bool
    timeout: float
    workers: int
    fixed_time: bool
    progress: Callable[[int], object]
    _checked: list[_Worker] = field(default_factory=list)

    def run(self, arguments: Callable[[int], tuple[Any, ...]], count: int) -> list[bytes]:
        """Return the answers to ``arguments(0)``, ``arguments(1)``, ..., each from a call of its own.

        With ``fixed_time`` it takes as long as if every call ran into its timeout, if none takes longer.
        """
        workers = min(max(self.workers, 1), max(count, 1))
        end = time.monotonic() + -(-count // workers) * self.timeout
        answers = [b""] * count
        done = _Done(self.progress)
        pool: list[_Worker] = []
        if self.setup is not None:
            pool = [self._checked.pop() if self._checked else _Worker(self.setup) for _ in range(workers)]
        left = list(pool)

        def work(numbers: Iterator[int]) -> None:
            own = left.pop() if left else None
            for number in numbers:
                message = _message(arguments, number)
                if message is None:
                    answers[number] = b""
                elif own is None:
                    answers[number] = worker.attempt_message(self.function, message, self.choices, numeric=self.numeric)
                else:
                    answers[number] = own.ask(message, self.timeout)
                done.one_more()

        try:
            share(work, count, workers)
        finally:
            for one in pool:
                one.end()
        if self.fixed_time:
            time.sleep(max(0.0, end - time.monotonic()))
        return answers

    def check(self) -> None:
        """Refuse a function that a process cannot load: found without any data."""
        if self.setup is None:
            return
        one = _Worker(self.setup)
        if one.ask(b"", _START_SECONDS) != b"loaded":
            one.end()
            raise _not_sent()
        self._checked.append(one)  # the first to be used


def _message(arguments: Callable[[int], tuple[Any, ...]], number: int) -> bytes | None:
    """Return the arguments of a call as bytes, which share no memory with other blocks; None if that cannot be.

    An error would quote a row, or tell that there is one that cannot be sent: none leaves this function.
    """
    try:
        return pickle.dumps(arguments(number), protocol=5)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


@dataclass
class _Done:
    """How many blocks are done, told to the user one call at a time."""

    progress: Callable[[int], object]
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def one_more(self) -> None:
        with self.lock:
            self.count += 1
            self.progress(self.count)


class _LateError(Exception):
    """No answer came in time, or none will come."""


class _Worker:
    """A process of `dpfast.stability.worker`, started when it is needed, and anew after one that was killed."""

    def __init__(self, setup: bytes) -> None:
        self._setup = setup
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = process_mark()

    def ask(self, message: bytes, seconds: float) -> bytes:
        """Return the answer to a message; b"" if none comes in time, or the process dies."""
        process = self._process or self._start()
        try:
            _send(process, message)
            answer = _receive(process, seconds)
        except (OSError, _LateError):
            answer = b""
            self.end()
        if not worker.FORKS:
            self.end()
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", worker.__file__]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._process = process
        try:
            _send(process, self._setup)
            started = _receive(process, _START_SECONDS) == b"ready"
        except (OSError, _LateError):
            started = False
        if not started:
            self.end()
            raise DpfastError("no process for the function could be started; write workers=0 to call it in this one")
        return process

    def __del__(self) -> None:
        """Leave no process behind where it was not used after all."""
        self.end()

    def end(self) -> None:
        """Kill the process and whatever it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if process_mark() == self._mark:  # a fork of this process has no say in its children
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()


def _send(process: subprocess.Popen[bytes], message: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(worker.LENGTH.pack(len(message)))
    process.stdin.write(message)
    process.stdin.flush()


def _receive(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return a message that comes within so many seconds."""
    assert process.stdout is not None
    source, end = process.stdout.fileno(), time.monotonic() + seconds
    received = bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(source, selectors.EVENT_READ)
        while True:
            if len(received) >= worker.LENGTH.size:
                (length,) = worker.LENGTH.unpack(received[: worker.LENGTH.size])
                if len(received) == worker.LENGTH.size + length:
                    return bytes(received[worker.LENGTH.size :])
            if not waiting.select(max(0.0, end - time.monotonic())):
                raise _LateError
            part = os.read(source, 1 << 16)
            if not part:
                raise _LateError
            received += part


def prepare_calls(
    function: object,
    *,
    timeout: object,
    workers: object,
    progress: object,
    fixed_time: object = False,
    choices: Sequence[str] | None = None,
    numeric: bool = True,
    data: object = None,
    argument: str = "function",
) -> Calls:
    """Read how a function shall be called, and see whether it can be: before anything is charged.

    ``data`` tell which library a process imports beforehand.

    Raises
    ------
    ParameterError
        An argument is of another kind, or the function cannot be sent to a process.

    """
    if not callable(function):
        raise ParameterError(argument, function, "a function of one block of the data")
    seconds, asked = TIMEOUT.read("timeout", timeout), WORKERS.read_optional("workers", workers)
    show = read_progress(progress, "the number of blocks done")
    waits = FIXED_TIME.read("fixed_time", fixed_time)
    if asked is None:
        asked = core_count()
    told = None if choices is None else tuple(choices)
    setup = None
    if asked:
        pickled = _pickled(function, argument)
        setup = pickle.dumps(
            {
                "path": [*sys.path],
                "modules": sorted({*_LAZY, library_of(data), *_modules_of(pickled)} - {""}),
                "function": pickled,
                "choices": told,
                "numeric": numeric,
            }
        )
    calls = Calls(function, setup, told, numeric, seconds, asked, waits, show)
    calls.check()
    return calls


def _pickled(function: object, argument: str) -> bytes:
    """Return a function as bytes that another process can read: what is defined in a script goes by value."""
    with suppress(Exception):
        pickled = pickle.dumps(function)
        if "__main__" not in _strings_of(pickled):
            return pickled
    with suppress(Exception):
        return bytes(import_module("cloudpickle").dumps(function))
    raise _not_sent(argument)


def _not_sent(argument: str = "function") -> ParameterError:
    return ParameterError(
        argument,
        Words("one that another process cannot load"),
        "a function that can be sent to another process",
        "define it in a module, install cloudpickle, or write workers=0 to call it in this process, without a timeout",
    )


def _strings_of(pickled: bytes) -> set[str]:
    """Return the texts in a pickle: the modules that it names are among them."""
    texts = set()
    for _, argument, _ in pickletools.genops(pickled):
        if isinstance(argument, str):
            texts |= {argument, argument.partition(" ")[0]}
    return texts


def _modules_of(pickled: bytes) -> set[str]:
    """Return the modules that a pickle names, which a process imports before it is forked."""
    return (_strings_of(pickled) & sys.modules.keys()) - {"__main__"}
