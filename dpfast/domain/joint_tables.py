"""Which tables many marginals are counted in: attributes of few values share a column of codes.

Of 14 attributes there are 91 pairs. Where several attributes together have few values, one code says them all, and a
table over two such codes holds the counts of all their pairs. What decides is public: sizes, and what is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_CELLS", "RECORDS", "JointTables", "plan_tables"]

Attributes = tuple[int, ...]
#: The columns of a table.
Table = tuple[Attributes, ...]

#: The most values that attributes may have together to share a column; the first says that none do.
_SHARED = (1, 16, 32, 64, 128)
#: Tables of so many cells are counted in 16 bits each, twice, in the first cache.
MOST_CELLS = 1 << 14
RECORDS = 1 << 17
"""So many records are counted at a time, and a cell costs once for them what a record does."""
#: Of more marginals than that fewer ways are compared, as each takes its time.
_FEW_SETS = 20_000
#: All tables together have at most so many cells, unless the marginals have more.
_ALL_CELLS = 1 << 22


@dataclass(frozen=True)
class JointTables:
    """Tables that hold marginals.

    Attributes
    ----------
    sizes
        How many values each attribute has.
    sets
        The attributes of each marginal.
    columns
        The attributes of each column of codes, ascending: the last one runs fastest.
    tables
        The columns of each table.
    homes
        The table of each marginal.

    """

    sizes: tuple[int, ...]
    sets: tuple[Attributes, ...]
    columns: tuple[Attributes, ...]
    tables: tuple[tuple[int, ...], ...]
    homes: tuple[int, ...]

    @cached_property
    def lengths(self) -> NDArray[np.uint64]:
        """How many codes each column has."""
        return np.array([_cells(self.sizes, column) for column in self.columns], np.uint64)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each table begins among all cells."""
        cells = [math.prod(int(self.lengths[column]) for column in table) for table in self.tables]
        return np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)

    def factors(self, attribute: int) -> list[tuple[int, int]]:
        """Return each column that an attribute is in, and what that is multiplied by before: 0 for its first one."""
        return [
            (place, 0 if column[0] == attribute else self.sizes[attribute])
            for place, column in enumerate(self.columns)
            if attribute in column
        ]

    def strides(self, marginal: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sizes of the attributes of a marginal's table, and how far apart their values are in the marginal.

        What is not in the marginal has 0. Neighbours that are one attribute to the marginal are taken as one.
        """
        held = self.sets[marginal]
        apart = {a: _cells(self.sizes, held[place + 1 :]) for place, a in enumerate(held)}
        sizes, strides = [1], [0]
        for a in (a for column in self.tables[self.homes[marginal]] for a in self.columns[column]):
            size, stride = self.sizes[a], apart.get(a, 0)
            if sizes[-1] == 1 or strides[-1] == stride * size:
                sizes[-1], strides[-1] = sizes[-1] * size, stride
            else:
                sizes.append(size)
                strides.append(stride)
        return np.array(sizes, np.int64), np.array(strides, np.int64)


def plan_tables(sizes: Sequence[int], sets: Sequence[Attributes]) -> JointTables:
    """Return the tables that cost least for many records, by how many there are and how large they are.

    Examples
    --------
    >>> planned = plan_tables((9, 7, 2, 100), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    >>> planned.columns, planned.tables
    (((0, 1, 2), (3,)), ((0, 1),))

    """
    own = [_cells(sizes, held) for held in sets]
    used = sorted({attribute for held in sets for attribute in held})
    best, least = list[Table](), math.inf
    before: dict[int, Attributes] | None = None
    for most in _SHARED if len(sets) <= _FEW_SETS else _SHARED[:2]:
        columns = _share(sizes, used, most)
        if columns == before:
            continue
        homes, cells, tables = _homes(sizes, sets, own, columns)
        cost, before = tables * RECORDS + cells, columns
        if cost < least and (most == 1 or cells <= max(sum(own), _ALL_CELLS)):
            best, least = homes, cost
    return _planned(tuple(sizes), tuple(sets), _absorbed(sizes, best))


def _cells(sizes: Sequence[int], attributes: Sequence[int]) -> int:
    return math.prod([sizes[attribute] for attribute in attributes])


def _homes(
    sizes: Sequence[int], sets: Sequence[Attributes], own: Sequence[int], columns: dict[int, Attributes]
) -> tuple[list[Table], int, int]:
    """Return the columns of each marginal's table: shared ones, or each attribute's own if these were too large.

    The others are how many cells all tables have, and how many tables there are.
    """
    lengths = {column: _cells(sizes, column) for column in columns.values()}
    # Columns as bits: whole tuples of them take several times as long to compare.
    bits = {column: 1 << place for place, column in enumerate(lengths)}
    bit_of = {attribute: bits[column] for attribute, column in columns.items()}
    known: dict[int, tuple[int, Table]] = {}
    found: dict[Table, int] = {}
    homes: list[Table] = []
    for held, cells in zip(sets, own, strict=True):
        key = 0
        for attribute in held:
            key |= bit_of[attribute]
        one = known.get(key)
        if one is None:
            together = tuple(sorted({columns[attribute] for attribute in held}))
            one = known[key] = math.prod([lengths[column] for column in together]), together
        size, home = one
        if size > MOST_CELLS and size > cells:
            size, home = cells, tuple([(attribute,) for attribute in held])
        found[home] = size
        homes.append(home)
    return homes, sum(found.values()), len(found)


def _planned(sizes: tuple[int, ...], sets: tuple[Attributes, ...], homes: list[Table]) -> JointTables:
    """Return the tables of marginals, by their columns."""
    tables = sorted(set(homes))
    columns = sorted({column for table in tables for column in table})
    number = {column: place for place, column in enumerate(columns)}
    place = {table: place for place, table in enumerate(tables)}
    return JointTables(
        sizes,
        sets,
        tuple(columns),
        tuple(tuple(number[column] for column in table) for table in tables),
        tuple(place[table] for table in homes),
    )


def _absorbed(sizes: Sequence[int], tables: list[Table]) -> list[Table]:
    """Return the tables with those over one column replaced by the smallest that has it beside another one."""
    holding: dict[Attributes, tuple[int, Table]] = {}
    for table in dict.fromkeys(tables):
        if len(table) == 2:
            cells = math.prod(_cells(sizes, column) for column in table)
            for column in table:
                holding[column] = min(holding.get(column, (cells, table)), (cells, table))
    return [holding[table[0]][1] if len(table) == 1 and table[0] in holding else table for table in tables]


def _share(sizes: Sequence[int], attributes: Sequence[int], most: int) -> dict[int, Attributes]:
    """Return each attribute's column: the largest are placed first, each where it fits most closely."""
    columns: list[tuple[int, list[int]]] = []
    for attribute in sorted(attributes, key=lambda a: -sizes[a]):
        size = sizes[attribute]
        fitting = [place for place, (cells, _) in enumerate(columns) if cells * size <= most]
        if fitting:
            place = max(fitting, key=lambda place: columns[place][0])
            cells, held = columns[place]
            columns[place] = cells * size, [*held, attribute]
        else:
            columns.append((size, [attribute]))
    return {a: tuple(sorted(held)) for _, held in columns for a in held}
