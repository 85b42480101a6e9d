"""Calling a mechanism many times: one output a call, or batches of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from dpfast.auditing.batches import Halves, form_of_batch, rows_of_batch
from dpfast.auditing.leaves import Raised
from dpfast.errors import ParameterError, Words

__all__ = ["Progress", "draw_batches", "draw_batches_of_one", "draw_outputs"]

#: Is told how many outputs were drawn, of how many.
Progress = Callable[[int, int], object]

_STEPS = 200
_SHOWN = 300
_UNCHANGING = (float, int, str, bytes, type(None), np.generic)


def draw_outputs(
    mechanism: Callable[..., Any], inputs: tuple[Any, Any], samples: int, progress: Progress
) -> tuple[list[Any], list[Any]]:
    """Return the outputs of both inputs, one a call.

    Raises
    ------
    ParameterError
        Every call raises an error.

    """
    drawn = []
    for number, given in enumerate(inputs):
        drawn.append(_one_by_one(mechanism, given, samples, partial(_told, progress, number * samples, 2 * samples)))
    if all(isinstance(output, Raised) for outputs in drawn for output in outputs):
        first = drawn[0][0]
        raise _refused(f"one of which every call raises {first.kind}", f"call it once by hand{_saying(first.message)}")
    return drawn[0], drawn[1]


def draw_batches(
    mechanism: Callable[..., Any], inputs: tuple[Any, Any], samples: int, progress: Progress
) -> tuple[Halves, Halves]:
    """Return two batches of both inputs: the outputs that teach and choose, and those that measure.

    Raises
    ------
    ParameterError
        A batch has another number of outputs than was asked for, or raises an error.

    """
    sizes = samples // 2, samples - samples // 2
    drawn = []
    for number, given in enumerate(inputs):
        halves = []
        for size in sizes:
            halves.append(_kept(_batch(mechanism, given, size)))
            progress(number * samples + sum(sizes[: len(halves)]), 2 * samples)
        drawn.append((halves[0], halves[1]))
    return drawn[0], drawn[1]


def draw_batches_of_one(
    mechanism: Callable[..., Any], inputs: tuple[Any, Any], calls: int
) -> tuple[list[Any], list[Any]]:
    """Return the outputs of both inputs, each drawn as a batch by itself, with the form of that batch.

    Raises
    ------
    ParameterError
        A batch has another number of outputs than one, or raises an error.

    """
    drawn: tuple[list[Any], list[Any]] = [], []
    for outputs, given in zip(drawn, inputs, strict=True):
        for _ in range(calls):
            batch = _kept(_batch(mechanism, given, 1, " for n = 1, where batches differ in form"))
            outputs.append({"form": form_of_batch(batch), "value": rows_of_batch(batch)[0]})
    return drawn


def _told(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _one_by_one(mechanism: Callable[..., Any], given: Any, samples: int, tell: Callable[[int], object]) -> list[Any]:
    outputs: list[Any] = []
    step = max(1, samples // _STEPS)
    for number in range(samples):
        if number % step == 0:
            tell(number)
        try:
            output = mechanism(given)
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:  # also of a class that the mechanism has made itself
            outputs.append(Raised(type(error).__name__, _message(error)))
        else:
            outputs.append(_kept(output))
    tell(samples)
    return outputs


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # of a class that cannot say it
        return ""


def _saying(message: str) -> str:
    """Return what an error says, in one line, ended between two words where it is long."""
    shown = textwrap.shorten(message, _SHOWN, placeholder=" ...")
    return f" ({shown})" if shown else ""


def _kept(output: Any) -> Any:
    """Return an output that the mechanism cannot change any more: it may return the same list or array every time."""
    if isinstance(output, _UNCHANGING):
        return output
    try:
        return deepcopy(output)
    except Exception:  # of a kind that cannot be compared either
        return output


def _batch(mechanism: Callable[..., Any], given: Any, samples: int, when: str = "") -> Any:
    try:
        outputs = mechanism(given, samples)
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        mend = "let mechanism(x, n) return n outputs, or leave batched out: then an error is an output"
        raise _refused(f"one that raised {type(error).__name__}{when}", mend + _saying(_message(error))) from error
    size = _length(outputs)
    if size != samples:
        shown = f"a {type(outputs).__name__}" if size is None else f"{size} outputs"
        asked = "1 was asked for" if samples == 1 else f"{samples} were asked for"
        raise _refused(f"one that returned {shown} where {asked}", "let mechanism(x, n) return n")
    return outputs


def _length(batch: Any) -> int | None:
    """Return how many outputs a batch has; None of what is no batch."""
    for name in ("height", "num_rows"):  # frames of Polars and PyArrow, whose length is no number of columns
        if hasattr(batch, name):
            return int(getattr(batch, name))
    if isinstance(batch, (str, bytes, dict)) or getattr(batch, "ndim", 1) == 0 or not hasattr(batch, "__len__"):
        return None
    return len(batch)


def _refused(what: str, mend: str) -> ParameterError:
    return ParameterError("mechanism", Words(what), "a function whose outputs can be compared", mend)
