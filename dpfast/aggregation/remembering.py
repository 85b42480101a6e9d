"""What was found of rows that stand in memory, kept for those who read the same rows again in the same release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dpfast.aggregation.private import Private

__all__ = ["Remembered"]

_Found = TypeVar("_Found")


class Remembered(Private):
    """Private findings, each with what it is about; of one frame that does not change.

    Parameters
    ----------
    sorts
        About what the last one who reads will ask for the rows unit by unit, and which rows they are; None for nothing.

    """

    def __init__(self, sorts: object = None) -> None:
        self.sorts = sorts
        self._found: list[tuple[object, Any]] = []

    def find(self, about: object, make: Callable[[], _Found]) -> _Found:
        """Return what is known about something; what is not is made, and kept.

        Examples
        --------
        >>> known = Remembered()
        >>> known.find("units", lambda: [1, 2]) is known.find("units", list)
        True

        """
        for other, found in self._found:
            if other == about:
                return found  # type: ignore[no-any-return]
        made = make()
        self._found.append((about, made))
        return made

    def forget(self) -> None:
        """Keep nothing any more."""
        self._found.clear()
