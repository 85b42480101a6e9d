"""Records drawn from weights in a tree: clique by clique, each given what it has in common with those before.

Threads draw several parts at once. A part takes a clique's records when the part before has taken its own, and by then
that one is at the next clique. Each part has words of its own for each clique. So records do not depend on threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import DpfastError
from dpfast.graphical.balancing import balances, draw_balanced_codes
from dpfast.graphical.support import kept_within
from dpfast.graphical.tree_weights import TreeWeights
from dpfast.kernels.graphical.drawing import draw_conditionally, order_by_code, share_records
from dpfast.randomness import Keystream, Purpose, RandomSource, fresh_words, process_mark
from dpfast.threads import Crew, thread_count

__all__ = ["PART", "TreeRecords", "draw_parts"]

Attributes = tuple[int, ...]
#: What a thread needs for a part: three numbers for each record, and words.
_Scratch: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint64]]

#: Records that are drawn at once, unless somebody asks for another number: what is made of them stays in the cache.
PART = 1 << 18


@dataclass(eq=False)
class _Part:
    """Records that are drawn together.

    Attributes
    ----------
    number, records
        Which part it is, and how many records it has.
    before, done
        For each clique whether the part before has taken its records, and whether this one has; and at the end whether
        the part is drawn. Where drawing fails all of them are set, so that nobody waits for ever.
    codes
        Of the records.
    is_drawn
        Whether the codes are set.

    """

    number: int
    records: int
    before: list[threading.Event]
    done: list[threading.Event]
    codes: NDArray[np.uint32]
    is_drawn: bool = False


class TreeRecords:
    """Records that weights stand for: whole numbers in every clique's table, taken out part by part.

    Of the records that agree in what a clique has in common with its parent, each value of the clique's other
    attributes gets its share, rounded down or up and right on average. So each clique's counts are those of its parent
    spread without bias, and within 1 for each value of what they have in common, however many parts they come in. What
    records get is in random order within each part, and every part has its share of every cell.

    Parameters
    ----------
    weights
        What is drawn from.
    records
        How many there are, below 2**32.
    source
        Where keys come from.

    """

    def __init__(self, weights: TreeWeights, records: int, source: RandomSource) -> None:
        self._tree = weights.tree
        self._left = records
        self._keystream = Keystream(source.key())
        self._free: list[_Scratch] = []
        self._new = [
            tuple(a for a in clique if a not in common)
            for clique, common in zip(self._tree.cliques, self._tree.separators, strict=True)
        ]
        self._counts: list[NDArray[np.uint32]] = []
        for clique, table in enumerate(weights.tables):
            totals = self._totals(clique) if clique else np.array([records], np.int64)
            shares = self._by_rows(clique, table, totals.size)
            if weights.support is not None:
                shares = kept_within(shares, self._by_rows(clique, weights.support[clique], totals.size))
            counts = np.empty(shares.shape, np.uint32)
            share_records(shares, totals, fresh_words(source, totals.size), counts)
            self._counts.append(counts)

    def parts(self, most: int = PART, threads: int | None = None) -> Iterator[NDArray[np.uint32]]:
        """Give the codes of at most so many records at a time, a row for each attribute; one empty part of none.

        So many threads draw a part each, while this one has what was drawn; None for as many as pay.

        Raises
        ------
        DpfastError
            The process was forked in between: the words would serve twice, and a fork has none of the threads.

        """
        workers = max(min(thread_count(threads, self._left), -(-self._left // most)), 1)
        crew, under_way, process = Crew(self._draw, workers), deque[_Part](), process_mark()
        hand = crew.hand if workers > 1 else self._draw
        try:
            for part in self._cut(most):
                hand(part)
                under_way.append(part)
                if len(under_way) == workers:
                    yield _codes_of(under_way.popleft())
                    _refuse_fork(process)
            while under_way:
                yield _codes_of(under_way.popleft())
                _refuse_fork(process)
        finally:
            if process_mark() == process:
                crew.finish()

    def _cut(self, most: int) -> Iterator[_Part]:
        """Give parts of the records that are left, in order; one empty part of none."""
        number, before = 0, list[threading.Event]()
        while number == 0 or self._left:
            records = min(self._left, most)
            self._left -= records
            done = [threading.Event() for _ in range(len(self._counts) + 1)]
            # Of the caller's memory: what a thread allocates goes back to the system when the thread ends.
            codes = np.empty((len(self._tree.sizes), records), np.uint32)
            part = _Part(number, records, before, done, codes)
            number, before = number + 1, part.done
            yield part

    def _draw(self, part: _Part) -> None:
        """Set the codes of a part, the parts before which are drawn or being drawn."""
        try:
            self._draw_cliques(part, self._scratch(part.records))
            part.is_drawn = True
        finally:
            for event in part.done:
                event.set()

    def _scratch(self, records: int) -> _Scratch:
        """Return room for a part of so many records, which no other thread has."""
        try:
            scratch = self._free.pop()
        except IndexError:
            scratch = None
        if scratch is None or scratch[0].shape[1] < records:
            most = records + max(map(len, self._counts))
            scratch = np.empty((3, records), np.int64), np.empty(most, np.uint64)
        return scratch

    def _draw_cliques(self, part: _Part, scratch: _Scratch) -> None:
        """Set the codes of a part, clique by clique."""
        sizes, records, codes = self._tree.sizes, part.records, part.codes
        given, places, drawn = (own[:records] for own in scratch[0])
        words = self._keystream.words(Purpose.NOISE)
        for clique, counts in enumerate(self._counts):
            given[:] = 0
            for attribute in self._tree.separators[clique]:
                given *= sizes[attribute]
                given += codes[attribute]
            starts = np.zeros(len(counts) + 1, np.int64)
            order_by_code(given, starts, places)
            own = scratch[1][: records + len(counts)]
            words.fill(part.number * len(self._counts) + clique, own)
            if part.before:
                part.before[clique].wait()
            draw_conditionally(counts, starts, places, own, drawn)
            part.done[clique].set()
            for attribute in self._new[clique][:0:-1]:
                np.divmod(drawn, sizes[attribute], out=(drawn, given))
                codes[attribute] = given
            codes[self._new[clique][0]] = drawn
        self._free.append(scratch)

    def _by_rows(self, clique: int, cells: NDArray[Any], rows: int) -> NDArray[Any]:
        """Return a clique's cells with a row for each value of what it has in common with its parent."""
        attributes = self._tree.cliques[clique]
        order = [attributes.index(a) for a in self._axes(clique)]
        return np.ascontiguousarray(cells.reshape(self._shape(attributes)).transpose(order)).reshape(rows, -1)

    def _axes(self, clique: int) -> Attributes:
        """Return a clique's attributes, those that it has in common with its parent first."""
        return (*self._tree.separators[clique], *self._new[clique])

    def _shape(self, attributes: Attributes) -> list[int]:
        return [self._tree.sizes[a] for a in attributes]

    def _totals(self, clique: int) -> NDArray[np.int64]:
        """Return how many of the parent's records have each value of what a clique has in common with it."""
        parent, common = self._tree.parents[clique], self._tree.separators[clique]
        axes = self._axes(parent)
        table = self._counts[parent].reshape(self._shape(axes))
        sums = table.sum(axis=tuple(place for place, a in enumerate(axes) if a not in common), dtype=np.int64)
        left = [a for a in axes if a in common]
        return np.ascontiguousarray(np.transpose(sums, [left.index(a) for a in common])).reshape(-1)


def _codes_of(part: _Part) -> NDArray[np.uint32]:
    """Return the codes of a part as soon as they are drawn."""
    part.done[-1].wait()
    if not part.is_drawn:
        message = "a part of the records was not drawn"
        raise RuntimeError(message)
    return part.codes


def _refuse_fork(process: tuple[int, int]) -> None:
    """Refuse to go on in another process than that of an earlier mark."""
    if process_mark() != process:
        raise DpfastError("the process was forked while records were drawn; draw them anew in each process")


def draw_parts(
    weights: TreeWeights, records: int, source: RandomSource, most: int = PART, threads: int | None = None
) -> Iterator[NDArray[np.uint32]]:
    """Give the codes of records, a row for each attribute, at most so many records at a time.

    Few records are drawn so that all pairs of attributes are near their expected counts
    (`dpfast.graphical.balancing`); of more of them, whose counts err less, every clique's counts are (`TreeRecords`).
    The former take one thread, as each value depends on those of all records before.
    """
    if not balances(weights, records):
        yield from TreeRecords(weights, records, source).parts(most, threads)
        return
    codes = draw_balanced_codes(weights, records, source)
    for start in range(0, max(records, 1), most):
        yield np.ascontiguousarray(codes[:, start : start + most])
