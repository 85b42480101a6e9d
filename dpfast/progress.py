"""Who is told how far long work has come: code of the user's, that runs in the middle of ours.

It may fork, and it may raise. In a fork the same charge would be drawn a second time, so that the fork is refused
(`read_progress`); an error carries the frames through which it went, and what they hold (`forgetting`).
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Special
from dpfast.errors import LedgerError, ParameterError
from dpfast.randomness import process_mark

__all__ = [
    "PROGRESS",
    "TellCount",
    "TellParts",
    "TellStages",
    "TerminalLine",
    "forgetting",
    "read_progress",
    "refuse_fork",
    "silent",
]

PROGRESS = Special(lambda: (3, 0.5, True, "text", [print], object()), optional=True)
#: Work of so many seconds says nothing on a terminal.
_QUIET = 2.0
#: Told the name of each stage as it begins. A name reveals nothing of the data.
TellStages: TypeAlias = Annotated[Callable[[str], object] | None, PROGRESS]
#: Told how many are done: rounds, blocks, records.
TellCount: TypeAlias = Annotated[Callable[[int], object] | None, PROGRESS]
#: Told how many parts are done, and of how many.
TellParts: TypeAlias = Annotated[Callable[[int, int], object] | None, PROGRESS]


def silent(*told: object) -> None:
    """Tell nobody."""


def read_progress(progress: object, told: str) -> Callable[..., Any]:
    """Return what to tell: the function that was given, or one that does nothing.

    What is returned raises `LedgerError` in a process that the function has forked: only the first process goes on.

    Raises
    ------
    ParameterError
        It is neither a function nor None; ``told`` says of what it would be one.

    """
    if progress is None:
        return silent
    if not callable(progress):
        raise ParameterError("progress", progress, f"a function of {told}, or None", "write for example progress=print")

    def tell(*parts: object) -> object:
        process = process_mark()
        answer = progress(*parts)
        refuse_fork(process)
        return answer

    return tell


def refuse_fork(process: tuple[int, int]) -> None:
    """Refuse to go on in another process than that of an earlier mark.

    Raises
    ------
    LedgerError
        This is another process.

    """
    if process_mark() != process:
        raise LedgerError("the process was forked during a release: one charge would have been drawn twice")


@contextmanager
def forgetting() -> Iterator[None]:
    """Let go of what the frames of an error hold that leaves this block: exact figures, which a log may show.

    The lines of the traceback stay. What the function that has the block holds is its own matter, as it still runs.
    """
    handled = sys.exception()
    try:
        yield
    except BaseException as error:
        for one in _behind(error, handled):
            traceback.clear_frames(one.__traceback__)
        raise


def _behind(error: BaseException, handled: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and all that stand behind it: causes, contexts, and members of groups.

    What was being handled before, ``handled``, is none of them.
    """
    met, waiting = {id(handled)} - {id(error)}, [error]
    while waiting:
        one = waiting.pop()
        if id(one) in met:
            continue
        met.add(id(one))
        yield one
        members = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [other for other in (one.__cause__, one.__context__, *members) if other is not None]


class TerminalLine:
    """One line of a terminal that says how far long work has come; a pipe or a log gets none, nor does short work.

    It ends with the block of a ``with`` statement, by an error too, so that what is shown next has a line of its own.
    """

    def __init__(self) -> None:
        self._began, self._shown = time.monotonic(), 0
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, stage: str) -> None:
        """Say what is being done now."""
        if self._terminal and time.monotonic() - self._began > _QUIET:
            line = f"dpfast: {stage}"
            print(f"\r{line:{self._shown}}", end="", file=sys.stderr, flush=True)
            self._shown = len(line)

    def __enter__(self) -> TerminalLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the line, if there is one."""
        if self._shown:
            print(file=sys.stderr)
            self._shown = 0
