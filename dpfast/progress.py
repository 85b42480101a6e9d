"""Who is told how far long work has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Special
from dpfast.errors import ParameterError

__all__ = ["PROGRESS", "TellCount", "TellParts", "TellStages", "read_progress", "silent"]

PROGRESS = Special(lambda: (3, 0.5, True, "text", [print], object()), optional=True)
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
