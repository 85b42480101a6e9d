"""Work on many blocks, shared among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dpfast.mechanisms.additive import in_threads, thread_count

__all__ = ["over_blocks"]

#: Parts for each thread, so that one that is held up does not hold up all.
_PARTS = 4


def over_blocks(work: Callable[[int, int], None], blocks: int, numbers: int, threads: object) -> None:
    """Call ``work(start, stop)`` for parts of the blocks, in as many threads as pay for so many numbers.

    The result must not depend on how the blocks are parted.
    """
    workers = min(thread_count(threads, numbers), blocks)
    if workers < 2:
        work(0, blocks)
        return
    parts = min(_PARTS * workers, blocks)
    left, taking, failed = iter(range(parts)), threading.Lock(), threading.Event()

    def share() -> None:
        while not failed.is_set():
            with taking:
                part = next(left, None)
            if part is None:
                return
            work(part * blocks // parts, (part + 1) * blocks // parts)

    in_threads(share, workers, failed)
