"""Reading private data to its end, or failing without a word about it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar

import polars as pl

from dpfast.aggregation.footers import shorten_path
from dpfast.aggregation.sources import Source
from dpfast.errors import DpfastError

__all__ = ["check_rows", "read_guarded", "without_engine_errors"]

_Read = TypeVar("_Read")

_UNREADABLE = (
    "the data cannot be read to its end: a file is damaged or gone, or a reader or an expression of a LazyFrame fails"
)
_NO_MEMORY = "not enough memory to aggregate the data"


def read_guarded(source: Source, read: Callable[[], _Read]) -> _Read:
    """Return what ``read`` makes of the source.

    Raises
    ------
    DpfastError
        If the data cannot be read to its end, or a file changed since it was opened. The file that changed, or
        that cannot be read by itself, is named; the words are fixed otherwise, and no traceback holds the engine's
        error, which may quote the data (Soundness rule 3). What is raised tells which file's bytes are damaged, and
        of a user's LazyFrame, in one bit, whether its expressions fail, which must therefore be total.
    MemoryError
        If there is not enough memory; without NumPy's message, which shows a number of rows.

    """
    made, failure = _attempt(read)
    changed = None if failure == "memory" else source.changed()
    if changed is not None:
        raise _changed(changed)
    if failure is None:
        return made[0]
    if failure == "memory":
        raise MemoryError(_NO_MEMORY)
    with _without_warnings():
        damaged = source.damaged() if failure == "engine" else None
    raise DpfastError(_UNREADABLE) if damaged is None else _damaged(damaged)


def without_engine_errors(name: str, read: Callable[[], _Read]) -> _Read:
    """Return what ``read`` makes of an engine's answer; what it raises is replaced by fixed words.

    Raises
    ------
    DpfastError
        If anything fails: the engine, the connection to it, or its answer.
    MemoryError
        If there is not enough memory.

    """
    made, failure = _attempt(read)
    if failure is None:
        return made[0]
    if failure == "memory":
        raise MemoryError(_NO_MEMORY)
    raise DpfastError(
        f"{name} failed to aggregate the data; what it said is not shown, as it may quote them: look for it in the "
        "engine's own log"
    )


def _attempt(read: Callable[[], _Read]) -> tuple[list[_Read], Literal["memory", "engine", "other"] | None]:
    """Return what ``read`` makes, in a list, and what failed; no traceback of it is kept (see `read_guarded`)."""
    try:
        with _without_warnings():
            return [read()], None
    except (KeyboardInterrupt, SystemExit, DpfastError):
        raise
    except MemoryError:
        return [], "memory"
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return [], "engine"
    except Exception:
        return [], "other"


def _changed(path: str) -> DpfastError:
    """Return the error for a file that changed, whose name is public."""
    return DpfastError(
        f"the data changed while it was read, so that the aggregates are of no one state of it: {shorten_path(path)}"
    )


def _damaged(path: str) -> DpfastError:
    return DpfastError(
        f"the data cannot be read to its end: the file {shorten_path(path)} is damaged; write it again, or leave it out"
    )


def check_rows(source: Source, seen: int) -> None:
    """Refuse to go on if batches are missing, where the number of rows is known without reading them."""
    frame = source.frame
    rows: int | None
    if isinstance(frame, pl.DataFrame):
        rows = frame.height
    else:
        rows = None if source.unfiltered is not None else source.count_known_rows()
    if rows is not None and seen != rows:
        raise DpfastError(_UNREADABLE)


_SILENCE = ("ignore", re.compile("(?s:.*)"), Warning, None, 0)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Show no warnings meanwhile, in the whole process: Polars' quote the data and count its rows.

    Each run puts one filter in front and takes one away. Restoring the list of filters, as
    ``warnings.catch_warnings`` does, would let runs that overlap undo each other; only a ``catch_warnings`` in
    another thread can still take the filter away too early.
    """
    before: Any = warnings.filters
    before.insert(0, _SILENCE)
    try:
        yield
    finally:
        after: Any = warnings.filters
        for filters in (before, after) if before is not after else (before,):
            with suppress(ValueError):
                filters.remove(_SILENCE)
