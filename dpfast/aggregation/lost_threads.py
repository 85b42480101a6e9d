"""Polars' threads, which a fork does not take along: whether this process was forked without them.

What waits for a thread that is not there waits for ever, with a charge already spent. Linux tells which threads a
process has; elsewhere nothing is known, and nothing refused.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from dpfast.errors import DpfastError

__all__ = ["refuse_lost_threads"]

_TASKS = Path("/proc/self/task")
_OF_POLARS = re.compile(r"polars-\d|async-executor")
_started = _lost = False


def refuse_lost_threads() -> None:
    """Refuse to read data where Polars may hang; to be called before anything is charged.

    Raises
    ------
    DpfastError
        This process was forked from one in which Polars had started its threads.

    """
    if _lost:
        raise DpfastError(
            "this process was forked after Polars had started its threads, which are not in a fork: reading data could "
            'hang; start processes by "spawn" or "forkserver", as multiprocessing.get_context("spawn")'
        )


def _runs_threads() -> bool:
    """Return whether Polars has started threads in this process."""
    with suppress(OSError):
        for task in _TASKS.iterdir():
            with suppress(OSError):  # it has ended meanwhile
                if _OF_POLARS.match((task / "comm").read_text()):
                    return True
    return False


def _before_fork() -> None:
    global _started
    _started = _runs_threads()


def _after_fork_in_child() -> None:
    global _lost
    _lost = _lost or _started


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
