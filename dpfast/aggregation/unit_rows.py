"""Rows of privacy units: what is read of them, and each row's unit and group, as long as they fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.guarding import check_rows
from dpfast.aggregation.remembering import Remembered
from dpfast.aggregation.scatter import feed, stands, value_exprs
from dpfast.aggregation.sources import Source
from dpfast.aggregation.unit_orders import NumberedRows
from dpfast.aggregation.units import UnitNumbers

__all__ = ["OutgrownError", "UnitRows", "read_rows", "values_of"]


@dataclass(frozen=True)
class UnitRows:
    """Rows to be bounded and aggregated.

    Attributes
    ----------
    source
        The data.
    columns
        The expressions of the keys' columns, and of the unit, named ``unit``.
    find_groups
        Writes each row's group (int32, -1 for none) from a batch of these columns.
    groups
        All groups are below this.
    contributions
        What rows add.
    max_groups, max_rows
        What a unit keeps.
    lists_groups
        Whether the groups that each unit keeps are wanted.
    tells_losses
        Whether it is wanted how much units lose.
    mark
        Writes which rows of a block of these columns have a group (uint8); None where that is only found by groups.
    about
        Which rows, units and groups these are: what is remembered of others with the same is true of them.

    """

    source: Source
    columns: Sequence[pl.Expr]
    find_groups: Callable[[pl.DataFrame, np.ndarray], None]
    groups: int
    contributions: Sequence[Contribution]
    max_groups: int
    max_rows: int
    lists_groups: bool = False
    tells_losses: bool = False
    mark: Callable[[Block, np.ndarray], None] | None = None
    about: object = None

    @property
    def exprs(self) -> list[pl.Expr]:
        """All columns that are read."""
        return [*self.columns, *value_exprs(self.contributions)]

    @property
    def marks_rows(self) -> bool:
        """Whether the rows kept are wanted, not only their numbers."""
        return any(contribution.way not in ("rows", "units") for contribution in self.contributions)

    @property
    def remembered(self) -> Remembered | None:
        """What is remembered of the rows, where they stand in memory and are read more than once."""
        stand = isinstance(self.source.frame, pl.DataFrame) and stands(self.exprs)
        return self.source.remembered if stand else None


class OutgrownError(Exception):
    """Rows take more than the memory that they may."""


def read_rows(rows: UnitRows, room: int | None) -> tuple[NumberedRows, pl.DataFrame]:
    """Return each row's unit and group, and the measured columns.

    Raises
    ------
    OutgrownError
        If they take more than ``room`` bytes.

    """
    frame = rows.source.frame
    whole = isinstance(frame, pl.DataFrame) and stands(rows.exprs)
    remembered = rows.remembered
    numbers = UnitNumbers(whole=whole)
    read: list[NumberedRows] = []
    values: list[pl.DataFrame] = []
    count = taken = 0

    def add(batch: pl.DataFrame) -> None:
        nonlocal count, taken
        value = values_of(batch)
        count += batch.height
        # What stands in memory already is not taken anew.
        taken += 0 if whole else int(value.estimated_size())
        # Unit and group, and both again as they are joined or sorted.
        if room is not None and 16 * count + taken + numbers.nbytes > room:
            raise OutgrownError
        values.append(value)
        if remembered is not None:
            read.append(remembered.find(rows.about, lambda: _number(batch, rows, remembered)))
            return
        unit, group = np.empty(batch.height, np.int32), np.empty(batch.height, np.int32)
        numbers.number(batch["unit"], unit)
        rows.find_groups(batch, group)
        read.append(NumberedRows(unit, 0, group))

    # In order, so that what a unit keeps is a function of the frame and the words, and of no thread's speed.
    check_rows(rows.source, feed(rows.source, rows.exprs, add, in_order=True))
    if remembered is not None:
        return read[0], values[0]
    numbers.finish()
    if not read:
        nothing = np.empty(0, np.int32)
        return NumberedRows(nothing, 0, nothing), pl.DataFrame()
    if len(read) == 1:
        return NumberedRows(read[0].units, numbers.known, read[0].groups), values[0]
    units, groups = (np.concatenate([getattr(one, name) for one in read]) for name in ("units", "groups"))
    return NumberedRows(units, numbers.known, groups), pl.concat(values, rechunk=False)


def _number(batch: pl.DataFrame, rows: UnitRows, remembered: Remembered) -> NumberedRows:
    """Return the numbers of all rows, of which units may be known from rows with other groups."""

    def number() -> tuple[np.ndarray, int]:
        units, numbers = np.empty(batch.height, np.int32), UnitNumbers(whole=True)
        numbers.number(batch["unit"], units)
        numbers.finish()
        return units, numbers.known

    units, known = remembered.find("units", number)
    groups = np.empty(batch.height, np.int32)
    rows.find_groups(batch, groups)
    return NumberedRows(units, known, groups, sorts=rows.about == remembered.sorts)


def values_of(batch: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of what rows add."""
    return batch.select([name for name in batch.columns if name.startswith("value")])
