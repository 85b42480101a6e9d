"""The other end of a call: a process that runs a user's function on one block after the other.

It is run as a script and imports nothing of the package, so that it starts fast. On Linux each block gets a process of
its own, forked from this one, which has called nothing yet: whatever a function leaves behind (a global, a cache, a
seed) ends with its block. Elsewhere this process ends after one block, and another one is started.

Messages are eight bytes of length and as many bytes. The first is the setup; an empty one asks whether the function can
be loaded; any other is a pickled tuple of arguments. The answer is b"" for a value that is none.
"""

from __future__ import annotations

import math
import numbers
import os
import pickle
import select
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from typing import Any

__all__ = ["LENGTH", "attempt", "attempt_message", "label_of", "number_of", "read_answer"]

LENGTH = struct.Struct("<Q")
_NUMBER = struct.Struct("<d")
#: Answers are short: what is longer is none.
LONGEST_ANSWER = 1 << 16
_LARGEST_WHOLE = 2.0**53
FORKS = sys.platform == "linux"


def number_of(result: Any) -> float | None:
    """Return a finite number of Python, NumPy or Arrow as a float; None for anything else."""
    if hasattr(result, "as_py"):
        result = result.as_py()
    # What has a length is a column, a text or a list, even of one number.
    if isinstance(result, numbers.Complex) and not isinstance(result, numbers.Real):
        return None
    if hasattr(type(result), "__len__") and getattr(result, "ndim", 1) != 0:
        return None
    number = float(result)
    return number if math.isfinite(number) else None


def label_of(result: Any) -> str | None:
    """Return a value as a text that equal values share; None for what is no plain value.

    Plain are strings, bytes, truth values, finite numbers, dates and times, and lists, tuples and arrays of these. A
    whole number is the same as the equal float, a list the same as a tuple, a date the same as its text, and a decimal
    with a fraction the same as the nearest float.
    """
    try:
        plain = _plain(result)
        return None if plain is None else repr(plain)
    except KeyboardInterrupt:
        raise
    except BaseException:
        # Too deep, too many digits, a date beyond the year 9999: an error would quote the value.
        return None


def _plain(result: Any) -> Any:
    """Return a value in types that `ast.literal_eval` reads; None for what is no plain value."""
    if hasattr(result, "as_py"):
        result = result.as_py()
    if hasattr(result, "tolist"):
        result = result.tolist()
    if isinstance(result, bool):
        return bool(result)
    if isinstance(result, str):
        return str.__str__(result)
    if hasattr(result, "isoformat"):
        text = result.isoformat()
        return None if text == "NaT" else str(text)
    if isinstance(result, bytes):
        return bytes(result)
    if isinstance(result, int):
        return int(result)
    if isinstance(result, Decimal) and result.is_finite() and math.isfinite(float(result)):
        return int(result) if result == int(result) else float(result)
    if isinstance(result, float):
        number = float(result)
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() and abs(number) <= _LARGEST_WHOLE else number
    if isinstance(result, (list, tuple)):
        parts = tuple(map(_plain, result))
        return None if None in parts else parts
    return None


def read_answer(result: Any, choices: Sequence[str] | None, *, numeric: bool) -> bytes:
    """Return what a function gave as bytes: a number, the place of a choice, or a label; b"" for none of these."""
    if numeric:
        number = number_of(result)
        return b"" if number is None else _NUMBER.pack(number)
    label = label_of(result)
    if label is None:
        return b""
    if choices is not None:
        return str(choices.index(label)).encode() if label in choices else b""
    answer = label.encode()
    return answer if len(answer) <= LONGEST_ANSWER else b""


def attempt(
    function: Callable[..., object], arguments: tuple[Any, ...], choices: Sequence[str] | None, *, numeric: bool
) -> bytes:
    """Return the answer of one call; whatever it raises is an answer of b""."""
    try:
        return read_answer(function(*arguments), choices, numeric=numeric)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return b""


def attempt_message(
    function: Callable[..., object], message: bytes, choices: Sequence[str] | None, *, numeric: bool
) -> bytes:
    """Return the answer of one call on pickled arguments: copies, so that a block shows no memory of others."""
    return attempt(lambda: function(*pickle.loads(message)), (), choices, numeric=numeric)


def _read(source: int, length: int) -> bytes:
    """Return so many bytes, or fewer at the end."""
    parts = []
    while length:
        part = os.read(source, min(length, 1 << 20))
        if not part:
            break
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _read_message(source: int) -> bytes | None:
    head = _read(source, LENGTH.size)
    return None if len(head) < LENGTH.size else _read(source, *LENGTH.unpack(head))


def _write_message(target: int, message: bytes) -> None:
    view = memoryview(LENGTH.pack(len(message)) + message)
    while view:
        view = view[os.write(target, view) :]


def _answer(setup: dict[str, Any], message: bytes) -> bytes:
    """Return what a function gives for one block, or whether it can be loaded."""
    try:
        function = pickle.loads(setup["function"])
        if not message:
            return b"loaded" if callable(function) else b""
        arguments = pickle.loads(message)
    except BaseException:
        return b""
    # Forked processes would all draw the same numbers.
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed()
    try:
        return attempt(function, arguments, setup["choices"], numeric=setup["numeric"])
    except KeyboardInterrupt:
        return b""


def _answer_in_fork(setup: dict[str, Any], message: bytes, source: int, target: int) -> bytes:
    """Return the answer of a process forked for it; b"" if it dies."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reads)
            os.close(source)
            os.close(target)
            _write_message(writes, _answer(setup, message))
        finally:
            os._exit(0)
    os.close(writes)
    waiting = select.poll()
    waiting.register(reads, select.POLLIN)
    waiting.register(source, select.POLLIN)
    # Nothing is sent before the answer: what can be read there is the end of whoever asked.
    if any(ready == source for ready, _ in waiting.poll()):
        os.killpg(0, 9)
    answer = _read_message(reads)
    os.close(reads)
    with suppress(OSError):
        os.kill(child, 9)
    os.waitpid(child, 0)
    return b"" if answer is None or len(answer) > LONGEST_ANSWER else answer


def serve() -> None:
    """Answer messages until they end."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    # What a function prints may quote the data.
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    first = _read_message(source)
    if first is None:
        return
    setup = pickle.loads(first)
    sys.path[:] = setup["path"]
    # Imported once and inherited by every fork; nothing of the user's is called.
    for module in setup["modules"]:
        with suppress(Exception):
            import_module(module)
    _write_message(target, b"ready")
    while (message := _read_message(source)) is not None:
        answer = _answer_in_fork(setup, message, source, target) if FORKS else _answer(setup, message)
        _write_message(target, answer)
        if not FORKS:
            return


if __name__ == "__main__":
    serve()
