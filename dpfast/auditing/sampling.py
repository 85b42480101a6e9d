"""Calling a mechanism many times: one output a call, or batches of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from dpfast.auditing.leaves import Raised
from dpfast.errors import ParameterError, Words

__all__ = ["Progress", "draw_outputs"]

#: Is told how many outputs were drawn, of how many.
Progress = Callable[[int, int], object]

_STEPS = 200
_SHOWN = 300
_UNCHANGING = (float, int, str, bytes, type(None), np.generic)


def draw_outputs(
    mechanism: Callable[..., Any], inputs: tuple[Any, Any], samples: int, *, batched: bool, progress: Progress
) -> tuple[Any, Any]:
    """Return the outputs of both inputs; each a list, or the batch that the mechanism returned.

    Raises
    ------
    ParameterError
        A batch has another number of outputs than was asked for, or raises an error; or every call raises one.

    """
    drawn = []
    for number, given in enumerate(inputs):
        before = number * samples
        if batched:
            drawn.append(_kept(_batch(mechanism, given, samples)))
            progress(before + samples, 2 * samples)
        else:
            drawn.append(_one_by_one(mechanism, given, samples, partial(_told, progress, before, 2 * samples)))
    if not batched and all(isinstance(output, Raised) for outputs in drawn for output in outputs):
        first = drawn[0][0]
        raise _refused(f"one of which every call raises {first.kind}", f"call it once by hand{_saying(first.message)}")
    return drawn[0], drawn[1]


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


def _batch(mechanism: Callable[..., Any], given: Any, samples: int) -> Any:
    try:
        outputs = mechanism(given, samples)
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        mend = "let mechanism(x, n) return n outputs, or leave batched out: then an error is an output"
        raise _refused(f"one that raised {type(error).__name__}", mend + _saying(_message(error))) from error
    size = _length(outputs)
    if size != samples:
        shown = f"a {type(outputs).__name__}" if size is None else f"{size} outputs"
        raise _refused(f"one that returned {shown} where {samples} were asked for", "let mechanism(x, n) return n")
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
