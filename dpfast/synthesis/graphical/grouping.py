"""Rare values of an attribute counted as one: a model's tables are smaller, and less of what they hold is noise.

What is rare is decided by noisy counts (as McKenna, Miklau, Sheldon 2021 do). Within a group, values keep the shares
that these counts give them, whatever the other attributes are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpfast.domain.impossible import Possible
from dpfast.randomness import RandomSource, fresh_words

__all__ = ["Axis", "Grouping"]

Attributes = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """An attribute of which some values count as one.

    Attributes
    ----------
    kept
        The values that stand alone, ascending.
    rare
        Those that are counted together, after the kept ones: none, or several.
    shares
        Of the rare ones, which add up to 1.

    """

    kept: NDArray[np.int64]
    rare: NDArray[np.int64]
    shares: Floats

    @classmethod
    def of(cls, noisy: Floats, model: Floats, least: float, kinds: NDArray[np.int64] | None = None) -> Axis:
        """Return the axis on which all values are grouped whose noisy counts are below ``least``.

        Of values of several kinds, those of the kind that has most of them are grouped.
        """
        rare = np.flatnonzero(noisy < least)
        if kinds is not None and rare.size:
            rare = rare[kinds[rare] == np.bincount(kinds[rare]).argmax()]
        if rare.size < 2:
            rare = rare[:0]
        shares = np.maximum(model[rare], 1e-9)
        alone = np.ones(noisy.size, np.bool_)
        alone[rare] = False
        return cls(np.flatnonzero(alone), rare, shares / shares.sum() if rare.size else shares)

    @classmethod
    def whole(cls, values: int) -> Axis:
        """Return the axis on which all of so many values stand alone."""
        return cls(np.arange(values), np.empty(0, np.int64), np.empty(0))

    @property
    def values(self) -> int:
        """How many values there are."""
        return self.kept.size + self.rare.size

    @property
    def size(self) -> int:
        """How many there are when the rare ones are one."""
        return self.kept.size + (self.rare.size > 0)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """All values, the rare ones last."""
        return np.concatenate([self.kept, self.rare])

    @cached_property
    def spread(self) -> Floats:
        """What part each value has of its group, in the order of values."""
        parts = np.ones(self.values)
        parts[self.rare] = self.shares
        return parts

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The group of each value."""
        groups = np.full(self.values, self.kept.size, np.int64)
        groups[self.kept] = np.arange(self.kept.size)
        return groups

    def grouped(self, values: Floats) -> Floats:
        """Return counts of groups from counts of values."""
        return np.append(values[self.kept], values[self.rare].sum()) if self.rare.size else values

    def sums(self, table: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        """Return a table with the values along one of its axes grouped."""
        if not self.rare.size:
            return table
        starts = np.arange(self.size)
        ordered: NDArray[np.int64] = np.add.reduceat(table.take(self.order, axis=place), starts, axis=place)
        return ordered


@dataclass(frozen=True)
class Grouping:
    """All attributes' axes.

    Guarantee
        A record is in one cell of grouped counts, as it is in one cell of the counts: what neighbours change stays the
        same. The groups themselves are made of noisy counts.

    """

    axes: tuple[Axis, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each attribute has."""
        return tuple(axis.size for axis in self.axes)

    def counts(self, attributes: Attributes, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return exact counts of some attributes by groups: private as they are."""
        table = exact.reshape([self.axes[a].values for a in attributes])
        for place, attribute in enumerate(attributes):
            table = self.axes[attribute].sums(table, place)
        return np.ascontiguousarray(table).reshape(-1)

    def possible(self, one: Possible) -> Possible:
        """Return which groups' cells records can be in; all values of a group are possible beside the same others."""
        table = one.flags.reshape([self.axes[a].values for a in one.attributes])
        values = [np.append(self.axes[a].kept, self.axes[a].rare[:1]) for a in one.attributes]
        return Possible(one.attributes, table[np.ix_(*values)].reshape(-1))

    def spread(self, attributes: Attributes, grouped: Floats) -> Floats:
        """Return counts of values from counts of groups, an axis for each attribute."""
        table = grouped.reshape([self.sizes[a] for a in attributes])
        for place, attribute in enumerate(attributes):
            axis = self.axes[attribute]
            if axis.rare.size:
                parts = axis.spread.reshape([-1 if own == place else 1 for own in range(table.ndim)])
                table = table.take(axis.groups, axis=place) * parts
        return table

    def grouped_share(self, attributes: Attributes, grouped: Floats) -> float:
        """Return the counts in cells with some value that stands for several."""
        table = grouped.reshape([self.sizes[a] for a in attributes])
        alone = table[tuple(slice(self.axes[a].kept.size) for a in attributes)]
        return float(table.sum() - alone.sum())

    def draw(self, codes: NDArray[np.uint32], source: RandomSource) -> NDArray[np.uint32]:
        """Return values of records, of which the groups are given for each attribute; groups are spread by shares.

        Of the records of a group each value gets its share, rounded down or up and right on average, in random order
        (systematic sampling).
        """
        found = codes.copy()
        for own, axis in zip(found, self.axes, strict=True):
            if not axis.rare.size:
                continue
            together = np.flatnonzero(own == axis.kept.size)
            words = fresh_words(source, together.size + 1)
            begins = np.append(0.0, np.cumsum(axis.shares)[:-1]) / axis.shares.sum()
            places = (np.arange(together.size) + math.ldexp(float(words[-1] >> np.uint64(11)), -53)) / together.size
            drawn = np.searchsorted(begins, places, side="right") - 1
            own[:] = axis.order[own]
            own[together[np.argsort(words[:-1])]] = axis.rare[drawn]
        return found


def deviations_of(axis: Axis, deviation: float) -> Floats:
    """Return the deviation of each group's sum of noisy counts."""
    found = np.full(axis.size, deviation)
    if axis.rare.size:
        found[-1] *= math.sqrt(axis.rare.size)
    return found


def kinds_of(attribute: int, sizes: Sequence[int], possible: Sequence[Possible]) -> NDArray[np.int64] | None:
    """Return a number for each value of an attribute, equal where they are possible beside the same other values."""
    rows = []
    for one in possible:
        if attribute in one.attributes:
            table = one.flags.reshape([sizes[a] for a in one.attributes])
            own = np.moveaxis(table, one.attributes.index(attribute), 0).reshape(sizes[attribute], -1)
            rows.append(np.packbits(own, axis=1))
    if not rows:
        return None
    kinds: NDArray[np.int64] = np.unique(np.concatenate(rows, axis=1), axis=0, return_inverse=True)[1]
    return kinds.reshape(-1)
