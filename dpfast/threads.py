"""Work shared among threads: pieces, numbered or handed over, each taken by whichever thread is free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from dpfast.arguments import THREADS
from dpfast.cores import core_count

__all__ = ["Crew", "in_parts", "in_stretches", "share", "thread_count"]

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")
#: Items below which a second thread costs more than it saves.
ITEMS_PER_THREAD = 1 << 18
#: A thread that a user asked for gets so many items at least.
_LEAST_ITEMS = 1 << 17
#: Parts for each thread: one that has to share its core takes fewer.
_PARTS = 8


def thread_count(threads: object, items: int, items_per_thread: int = ITEMS_PER_THREAD) -> int:
    """Return how many threads to use for so many rows, cells or candidates; ``None`` means as many as pay."""
    if threads is None:
        if items < 2 * items_per_thread:
            return 1
        return min(core_count(), items // items_per_thread)
    return max(1, min(THREADS.read("threads", threads), -(-items // _LEAST_ITEMS)))


def share(work: Callable[[Iterator[int]], None], pieces: int, threads: int) -> None:
    """Call ``work(numbers)`` in every thread, this one among them.

    ``numbers`` gives each number below ``pieces`` to one thread alone, and none any more where a thread has failed.
    The first error is raised when all threads have ended.
    """
    if min(threads, pieces) < 2:
        work(iter(range(pieces)))
        return
    errors: list[BaseException] = []
    left, taking = iter(range(pieces)), threading.Lock()

    def numbers() -> Iterator[int]:
        while not errors:
            with taking:
                number = next(left, None)
            if number is None:
                return
            yield number

    def guarded() -> None:
        try:
            work(numbers())
        except BaseException as error:
            errors.append(error)

    others = [threading.Thread(target=guarded, daemon=True) for _ in range(min(threads, pieces) - 1)]
    for thread in others:
        thread.start()
    guarded()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]


class Crew(Generic[_Piece]):
    """Calls of a function in other threads, at most so many at once. While all are busy, `hand` waits.

    Examples
    --------
    >>> done: list[str] = []
    >>> crew = Crew(done.append, 2)
    >>> crew.hand("one piece")
    >>> crew.finish()
    >>> done
    ['one piece']

    """

    def __init__(self, work: Callable[[_Piece], object], threads: int) -> None:
        self._work = work
        self._threads = threads
        self._free = threading.Semaphore(threads)
        self._errors: list[BaseException] = []

    def hand(self, piece: _Piece) -> None:
        """Have the function called with a piece. The next `hand` or `finish` raises the first error of any call."""
        self._free.acquire()
        try:
            if self._errors:
                raise self._errors[0]
            threading.Thread(target=self._guarded, args=(piece,), daemon=True).start()
        except BaseException:
            self._free.release()
            raise

    def finish(self) -> None:
        """Wait until all calls have ended, and raise the first error; nothing may be handed afterwards."""
        for _ in range(self._threads):
            self._free.acquire()
        try:
            if self._errors:
                raise self._errors[0]
        finally:
            # An error holds the frames that it came from, and pieces in them: nothing keeps it here.
            self._errors.clear()

    def _guarded(self, piece: _Piece) -> None:
        try:
            self._work(piece)
        except BaseException as error:
            self._errors.append(error)
        finally:
            self._free.release()


def in_parts(work: Callable[[int, int], object], blocks: int, threads: int) -> None:
    """Call ``work(start, stop)`` for parts of the blocks; the result must not depend on how they are parted."""
    parts = 1 if threads < 2 else min(_PARTS * threads, blocks)

    def take(numbers: Iterator[int]) -> None:
        for part in numbers:
            work(part * blocks // parts, (part + 1) * blocks // parts)

    share(take, parts, threads)


def in_stretches(work: Callable[[int, int], _Result], number: int, threads: int) -> list[_Result]:
    """Return what ``work(start, stop)`` gives for as many stretches of ``range(number)`` as there are threads."""
    threads = max(threads, 1)
    results: dict[int, _Result] = {}

    def take(numbers: Iterator[int]) -> None:
        for place in numbers:
            results[place] = work(place * number // threads, (place + 1) * number // threads)

    share(take, threads, threads)
    return [results[place] for place in range(threads)]
