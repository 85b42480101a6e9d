"""One call at a time, in one process: for whatever was paid once and is spent over several calls.

Two threads that each see that something is left, before either has taken it, would spend it twice; so would a process
and its fork, and a call that a signal handler makes within another. A fork may also happen within a call, where it
calls what a user gave: then both processes would keep what is drawn.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from dpfast.errors import LedgerError
from dpfast.randomness import process_mark

__all__ = ["Turns"]


class Turns:
    """Lets in one call at a time, of the process in which it was made.

    Parameters
    ----------
    refusal
        What another process is told.

    Examples
    --------
    >>> turns = Turns("a counter does not outlive a fork")
    >>> with turns.turn():
    ...     left = 0
    >>> turns.refuse_other_process()

    """

    __slots__ = ("_lock", "_process", "_refusal")

    def __init__(self, refusal: str) -> None:
        self._refusal = refusal
        self._lock = threading.RLock()
        self._process = process_mark()

    def refuse_other_process(self) -> None:
        """Refuse to go on in a fork; to be called once more when all is drawn, before anything is handed out.

        Raises
        ------
        LedgerError
            This is another process.

        """
        if process_mark() != self._process:
            raise LedgerError(self._refusal)

    def turn(self) -> AbstractContextManager[bool]:
        """Return the lock, to stand in a ``with`` statement at once.

        It is Python's own, which takes and gives it back in one step: no signal that raises comes between. What says
        that this thread holds it is the lock as well, and nothing that would have to be kept in step with it. A handler
        that runs before it is taken may make its call first.

        Raises
        ------
        LedgerError
            This is another process, or a call within another one of the same thread.

        """
        self.refuse_other_process()  # before the lock: a thread lost in a fork may have held it
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise LedgerError("a call was made within another one, by a signal handler; make it when that has ended")
        return self._lock
