"""Who is told how far long work has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Special
from dpfast.errors import ParameterError

__all__ = ["PROGRESS", "TellCount", "TellParts", "TellStages", "TerminalLine", "read_progress", "silent"]

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

    Raises
    ------
    ParameterError
        It is neither a function nor None; ``told`` says of what it would be one.

    """
    if progress is None:
        return silent
    if not callable(progress):
        raise ParameterError("progress", progress, f"a function of {told}, or None", "write for example progress=print")
    return progress


class TerminalLine:
    """One line of a terminal that says how far long work has come; a pipe or a log gets none, nor does short work."""

    def __init__(self) -> None:
        self._began, self._shown = time.monotonic(), 0
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, stage: str) -> None:
        """Say what is being done now."""
        if self._terminal and time.monotonic() - self._began > _QUIET:
            line = f"dpfast: {stage}"
            print(f"\r{line:{self._shown}}", end="", file=sys.stderr, flush=True)
            self._shown = len(line)

    def close(self) -> None:
        """End the line, if there is one."""
        if self._shown:
            print(file=sys.stderr)
            self._shown = 0
