"""A limit on work: figures that nobody asked for by name are given up where they would take long.

Work is counted, in values of a vectorised function (some 3 * 10**7 a second), and not timed: what is left out depends
on the events alone, never on how busy a machine is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["TooMuchWork", "at_most", "spend"]

_left: ContextVar[float | None] = ContextVar("left", default=None)


class TooMuchWork(Exception):  # noqa: N818  # it tells of a limit that was set, not of an error
    """The limit of `at_most` was reached."""


@contextmanager
def at_most(work: float) -> Iterator[None]:
    """Give up with `TooMuchWork` what takes more than so much work inside the block.

    Examples
    --------
    >>> with at_most(10.0):
    ...     spend(11.0)
    Traceback (most recent call last):
    ...
    dpfast.accounting.work.TooMuchWork

    """
    token = _left.set(work)
    try:
        yield
    finally:
        _left.reset(token)


def spend(work: float) -> None:
    """Count work that is about to be done; without a limit nothing happens."""
    left = _left.get()
    if left is not None:
        _left.set(left - work)
        if work > left:
            raise TooMuchWork
