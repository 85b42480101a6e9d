"""How many cores this process may use."""

from __future__ import annotations

import os

__all__ = ["core_count"]


def core_count() -> int:
    """Return how many cores this process may use: those that it is bound to, where the system says so.

    Examples
    --------
    >>> core_count() >= 1
    True

    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
