"""A ledger's entries, walked from the newest to the first and held against their seals.

Going back, every entry is held against the seal in the head or in the entry that follows it, so a walk may stop
anywhere, or go on in another transaction: entries are only ever added at the other end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dpfast.ledger.earlier import completed
from dpfast.ledger.encoding import seal

__all__ = ["Walk"]


@lru_cache(maxsize=256)  # most charges cost what others did
def _cost(text: str) -> tuple[int, ...]:
    return tuple(map(int, json.loads(text)))


class Walk:
    """How far back the chain has been read.

    Parameters
    ----------
    ledger
        The first seal, which no entry has.
    entries, last_seal
        What the head says: how many charges there are, and the seal of the last entry.
    lengths
        By account, of how many sums a cost consists today.

    """

    def __init__(self, ledger: str, entries: int, last_seal: str, lengths: Mapping[str, int]) -> None:
        self._ledger, self._lengths = ledger, lengths
        self._expected: str | None = last_seal
        self._held: Sequence[Any] | None = None
        #: The first number that was read so far.
        self.following = entries + 1
        #: By account, what the entries that were read so far have cost.
        self.spent: dict[str, tuple[int, ...]] = {}
        self.is_complete = False

    def read(self, row: Sequence[Any]) -> Sequence[Any] | None:
        """Take the next older row; return the one after it, which is now sure. ValueError where one is not."""
        number, count, digest = row[0], row[1], row[-1]
        try:
            follows = number >= 1 and number + count == self.following
        except TypeError:
            follows = False
        if not follows:
            raise ValueError(f"entry {number}")
        sure = self._held
        self._settle(digest)
        self._held, self.following = row, number
        return sure

    def end(self) -> Sequence[Any] | None:
        """Say that there is no older row; return the first one. ValueError where rows are missing."""
        if self.following != 1:
            raise ValueError(f"what is before entry {self.following}")
        sure = self._held
        self._settle(self._ledger)
        self._held, self.is_complete = None, True
        return sure

    def _settle(self, before: str) -> None:
        """Check the row that is held, or the head, against the seal before it."""
        row = self._held
        if row is None:
            if before != self._expected:
                raise ValueError("the last entry")
            return
        if seal(before, *row[:-1]) != row[-1]:
            raise ValueError(f"entry {row[0]}")
        account, cost = row[4], _cost(row[7])
        cost = completed(cost, self._lengths.get(account, len(cost)))
        sofar = self.spent.setdefault(account, (0,) * len(cost))
        self.spent[account] = tuple(map(sum, zip(sofar, cost, strict=True)))
