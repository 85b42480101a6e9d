"""Small data, their neighbours, and how far two laws on finitely many outcomes are apart: the oracle of these tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache

Data = tuple[int, ...]


def every(universe: Iterable[int], most: int, least: int = 0) -> Iterator[Data]:
    """Yield all multisets of so many values, in order."""
    for size in range(least, most + 1):
        yield from itertools.combinations_with_replacement(sorted(universe), size)


def neighbors_of(data: Data, universe: Iterable[int], relation: str) -> frozenset[Data]:
    """Return all data that differ in one row. The walks of these tests come to the same data again and again."""
    return _neighbors_of(data, tuple(universe), relation)


@lru_cache(maxsize=2**18)
def _neighbors_of(data: Data, universe: tuple[int, ...], relation: str) -> frozenset[Data]:
    fewer = {data[:k] + data[k + 1 :] for k in range(len(data))}
    if relation == "replace":
        return frozenset(tuple(sorted((*rest, value))) for rest in fewer for value in universe)
    return frozenset(fewer | {tuple(sorted((*data, value))) for value in universe})


def steps_until(data: Data, holds: Callable[[Data], bool], universe: Iterable[int], relation: str, most: int) -> int:
    """Return the least number of rows to change until something holds; one more than ``most`` if more are needed."""
    universe = list(universe)
    seen, front = {data}, {data}
    for steps in range(most + 1):
        if any(map(holds, front)):
            return steps
        front = set().union(*(neighbors_of(one, universe, relation) for one in front)) - seen
        seen |= front
    return most + 1


def excess(p: dict[Hashable, float], q: dict[Hashable, float], epsilon: float) -> float:
    """Return the least delta for which p is within exp(epsilon) of q."""
    return math.fsum(max(0.0, chance - math.exp(epsilon) * q.get(outcome, 0.0)) for outcome, chance in p.items())
