"""Whose presence a counter hides, and how far that moves what is measured of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from dpfast.accounting.privacy_unit import BOUND, Neighbors
from dpfast.arguments import Special, Whole
from dpfast.errors import ParameterError

__all__ = ["Bounds", "Norms", "StreamUnit", "read_bounds"]

LARGEST_BOUND = 2**40
_BOUND = Whole(-LARGEST_BOUND, LARGEST_BOUND)


def _wrong_bounds() -> Iterator[object]:
    yield from (5, 1.5, True, "01", b"01", {0: 1}, {0, 1}, object(), [], [1], (0, 1, 2), (1, 0), (0, 0))
    yield from ((0.5, 1), ("0", "1"), (None, 1), (0, 2**41), (-(2**41), 0), (True, 5), [[0], [1]])


#: Two whole numbers, the first below the second.
Bounds: TypeAlias = Annotated[tuple[int, int], Special(_wrong_bounds)]


def read_bounds(bounds: Any) -> tuple[int, int]:
    """Return the least and the largest value of a row.

    Raises
    ------
    ParameterError
        They are no two different whole numbers in order, within 2**40 of 0.

    """
    pair = tuple(bounds) if isinstance(bounds, (tuple, list)) else ()
    if len(pair) != 2 or not all(map(_BOUND.accepts, pair)) or not pair[0] < pair[1]:
        allowed = "two whole numbers, the first below the second, from -2**40 to 2**40"
        raise ParameterError("bounds", bounds, allowed, "write for example bounds=(0, 100)")
    return _BOUND.convert(pair[0]), _BOUND.convert(pair[1])


@dataclass(frozen=True)
class Norms:
    """How far a unit that adds 1 to one counter, in each of its steps, moves what is measured: at most, from above."""

    l1: int
    l2_squared: Fraction


@dataclass(frozen=True)
class StreamUnit:
    """Whose presence is hidden, and how much of a stream it may fill.

    Attributes
    ----------
    bounds
        The least and the largest value of one of its rows.
    neighbors
        "add_remove" or "replace".
    max_counters, max_steps, max_rows_per_step
        In how many counters and steps it has rows, and how many in each step of each counter.

    """

    bounds: tuple[int, int]
    neighbors: Neighbors
    max_counters: int
    max_steps: int
    max_rows_per_step: int

    @classmethod
    def read(
        cls,
        bounds: tuple[int, int],
        neighbors: Neighbors,
        max_counters: object,
        max_steps: object,
        max_rows_per_step: object,
        *,
        counters: int,
        horizon: int,
    ) -> StreamUnit:
        """Return the unit that a user described; it cannot have more counters and steps than there are."""
        each = BOUND.read("max_counters", max_counters), BOUND.read("max_steps", max_steps)
        rows = BOUND.read("max_rows_per_step", max_rows_per_step)
        return cls(bounds, neighbors, min(each[0], counters), min(each[1], horizon), rows)

    @property
    def largest(self) -> int:
        """How far one counter moves in one step, where the unit is added or removed."""
        return self.max_rows_per_step * max(map(abs, self.bounds))

    @property
    def moved_counters(self) -> int:
        """How many counters move where the unit is added, removed or replaced."""
        return (2 if self.neighbors == "replace" else 1) * self.max_counters

    def l1(self, norms: Norms) -> int:
        """Return how far all that is measured moves together, each by its magnitude."""
        return self.moved_counters * self.largest * norms.l1

    def l2_squared(self, norms: Norms) -> Fraction:
        """Return the square of how far it moves in the Euclidean norm.

        Notes
        -----
        What is measured of a counter is A x, where A has no negative entry; let S be the largest norm of A u for u in
        {0, 1}, at most ``max_steps`` of them 1. For |x| <= M u, |A x| <= M A u entry by entry. Replaced, x goes from
        M u' to M u at most; where values have one sign, both images have it too, and |Au - Au'|**2 <= |Au|**2 +
        |Au'|**2 <= 2 S**2. In one step, with both signs: at two different steps a and b the norm of h A_a - l A_b is
        at most that of (|h| + |l|) A_a or sqrt(2) M S, and at the same step it is |h - l| S. Otherwise 2 M S. Counters
        are measured apart: their squares add up, and 2 G of them move where G are left and G others are entered.

        """
        low, high = (self.max_rows_per_step * bound for bound in self.bounds)
        each = self.largest**2
        if self.neighbors == "replace":
            if low >= 0 or high <= 0:
                each *= 2
            else:
                each = max((high - low) ** 2, 2 * each) if self.max_steps == 1 else 4 * each
        return self.max_counters * each * norms.l2_squared
