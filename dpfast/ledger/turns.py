"""One thread at a time, and never one call inside another of the same thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from dpfast.errors import LedgerError

__all__ = ["Turns"]

Result = TypeVar("Result")


class Turns:
    """A lock whose holder is refused a second turn.

    A signal handler or a finaliser may run in the middle of a charge, in the same thread. A plain lock would
    then wait for itself for ever; a re-entrant one alone would let the outer charge overwrite the inner one.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = False

    def take(self, work: Callable[[], Result]) -> Result:
        """Run some work alone, or raise where this thread is at such work already.

        A function, not a context manager in Python: an interrupt upon leaving that could leave the lock held.
        """
        with self._lock:
            if self._taken:
                raise LedgerError(
                    "this thread is in the middle of a call to a ledger; nothing was charged: "
                    "do not use a ledger in signal handlers or finalisers"
                )
            self._taken = True
            try:
                return work()
            finally:
                self._taken = False
