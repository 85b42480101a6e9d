"""Turns on a connection: another statement would end, or wait for, a result that is being read from it.

Whatever runs while a result is read may itself read a database: DuckDB reads LazyFrames, and a LazyFrame may be a
release. So nobody waits for ever. A release that is not charged yet is refused after a short while, and a charged one
ends with fixed words after a long one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dpfast.errors import ParameterError, Words

__all__ = ["busy", "turn"]

#: Seconds that a statement waits before the charge, and after it.
_BEFORE_THE_CHARGE = 20.0
_AFTER_THE_CHARGE = 3600.0


class _Line:
    """Who waits for one connection, and its lock."""

    def __init__(self) -> None:
        self.lock, self.people = threading.Lock(), 0


# Connections of sqlite3 take no weak references: an entry is there while somebody holds or waits for its connection.
_LINES: dict[int, _Line] = {}
_GUARD = threading.Lock()


@contextmanager
def turn(connection: object, *, charged: bool = False) -> Iterator[None]:
    """Have a connection alone meanwhile.

    Parameters
    ----------
    connection
        The connection; others run at the same time.
    charged
        Whether the release may be charged already: then it waits longer.

    Raises
    ------
    ParameterError
        If another release keeps the connection for too long.

    """
    key = id(connection)
    with _GUARD:
        line = _LINES.setdefault(key, _Line())
        line.people += 1
    try:
        if not line.lock.acquire(timeout=_AFTER_THE_CHARGE if charged else _BEFORE_THE_CHARGE):
            raise busy("one that another release is reading")
        try:
            yield
        finally:
            line.lock.release()
    finally:
        with _GUARD:
            line.people -= 1
            if not line.people:
                del _LINES[key]


def busy(given: str) -> ParameterError:
    """Return the error for a connection that cannot be asked now."""
    mend = "read its result to the end first, or use a connection or cursor of its own for each reader"
    return ParameterError("connection", Words(given), "ready for a statement", mend)
