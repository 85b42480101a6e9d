"""What holds exact figures: it is not shown, and stays in this process."""

from __future__ import annotations

from typing import NoReturn

from dpfast.errors import DpfastError

__all__ = ["Private"]


class Private:
    """An object that holds private data: its text has none of them, and no copy of it can be made or written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"

    def __reduce__(self) -> NoReturn:
        raise DpfastError(f"{type(self).__name__} cannot be pickled or copied: it holds private data")
