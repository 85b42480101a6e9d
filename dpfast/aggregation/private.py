"""What holds exact figures: it is not shown, and stays in this process."""

from __future__ import annotations

from typing import NoReturn

from dpfast.errors import DpfastError
from dpfast.showing import Facts, Shown

__all__ = ["Private"]


class Private(Shown):
    """An object that holds private data: its text has none of them, and no copy of it can be made or written."""

    __slots__ = ()

    def _facts(self) -> Facts:
        """Return nothing, whatever the fields are."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"

    def __reduce__(self) -> NoReturn:
        raise DpfastError(f"{type(self).__name__} cannot be pickled or copied: it holds private data")
