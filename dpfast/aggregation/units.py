"""Contribution bounding: what each privacy unit keeps of its rows.

The proof that the sensitivities of Soundness rule 14 hold: the rows that a unit keeps are a function of this
unit's own rows (those with a public key, in the frame's order) and of words that no other unit reads; words
are independent and uniform. Couple two neighbouring frames so that the units they share read the same words:
those units then keep the same rows, and the aggregates differ by what the changed unit keeps, at most
``max_groups`` groups with ``max_rows_per_group`` rows in each. Any other rule of that kind would do as well:
how a unit's rows are ordered, and that a choice from n is uniform within 2**-64, do not touch the bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block, iterate_blocks, share_blocks
from dpfast.aggregation.holdings import Holdings
from dpfast.aggregation.losses import Losses, losses_of
from dpfast.aggregation.strings import StringNumbers
from dpfast.aggregation.unit_orders import UnitOrder, order_by_unit, shares_of_rows
from dpfast.columns.comparable import comparable, is_wide
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.kernels.grouping.bounding import bound_units
from dpfast.kernels.grouping.factorizing import factorize_values, offset_values, reinsert_values
from dpfast.threads import in_stretches, thread_count

__all__ = ["BoundedRows", "UnitNumbers", "bound_contributions", "express_unit"]

_WORDS = 1 << 16
_SPREAD = 4
_MOST_UNITS = 2**31 - 1
#: So many groups' tables each thread may have.
_MOST_SHARED = 1 << 16


@dataclass
class BoundedRows:
    """What bounding leaves.

    Attributes
    ----------
    units, rows : int64, one per group
        The distinct units and the rows kept in each group.
    holdings
        Which groups each unit keeps, where that is wanted.
    losses
        What each unit has and keeps, where that is wanted.
    order
        All rows unit by unit, where that is wanted.

    """

    units: np.ndarray = field(repr=False)
    rows: np.ndarray = field(repr=False)
    holdings: Holdings | None = None
    losses: Losses | None = None
    order: UnitOrder | None = None


def express_unit(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return the expression of the unit column, of a dtype that can name units: an integer of 64 bits, or a string.

    Raises
    ------
    ColumnError
        If it is of another dtype: what can be a key can name units.

    """
    column = pl.col(name)
    if dtype == pl.Null:
        return column.cast(pl.Int64)
    if comparable(dtype) is None:
        raise ColumnError(
            f"the column {name!r} of dtype {dtype_name(dtype)} cannot name privacy units; cast it to a string"
        )
    if dtype == pl.Binary:
        return column.bin.encode("hex")
    # Two units must not become one: numbers that int64 does not hold are told apart as text.
    return column.to_physical().cast(pl.String) if is_wide(dtype) else column


class UnitNumbers:
    """Number privacy units: the same number (int32) for the same unit, -1 for null.

    Integers in a narrow range are numbered by their distance to the smallest, other units in the order they are met,
    however the rows are cut. At most 2**31 - 1 different units; DpfastError if there are more.

    Parameters
    ----------
    whole
        Whether all rows come in one call.

    """

    def __init__(self, *, whole: bool) -> None:
        self.known = 0
        self._whole = whole
        self._rows = 0
        self._smallest, self._largest = 2**64, -(2**63)
        # Of every call the smallest unit and the distances to it, as long as they may become numbers.
        self._near: list[tuple[int, np.ndarray]] = []
        self._met = False
        self._strings: StringNumbers | None = None
        self._values, self._numbers = np.zeros(1 << 12, np.int64), np.full(1 << 12, -1, np.int32)

    @property
    def nbytes(self) -> int:
        """About how much memory the tables take, strings of more than 12 bytes counted as 64."""
        strings = 0 if self._strings is None else self._strings.nbytes + 64 * self.known
        known = min(self._spread, self._most_spread) if self._near else self.known
        return strings + self._values.nbytes + self._numbers.nbytes + 8 * known

    @property
    def _spread(self) -> int:
        return self._largest - self._smallest + 1

    @property
    def _most_spread(self) -> int:
        """The largest range in which units are numbered by distance, given the rows so far."""
        return min(max(_SPREAD * self._rows, 1 << 16), _MOST_UNITS)

    def number(self, units: pl.Series, out: np.ndarray) -> None:
        """Write each row's unit number, which stands after `finish`: until then ``out`` belongs to this object."""
        frame = units.alias("unit").to_frame()
        self._rows += len(units)
        if units.dtype == pl.String:
            self._strings = self._strings or StringNumbers()
            for block in iterate_blocks(frame):
                self._strings.number(block, "unit", block.numbers)
                _refuse_more(self._strings.known)
                out[block.start : block.stop] = block.numbers
            self.known = self._strings.known
            return
        units = units.to_physical()
        lowest, largest = units.min(), units.max()
        if lowest is None:
            out[:] = -1
            return
        smallest = int(lowest)  # type: ignore[arg-type]
        self._smallest, self._largest = min(self._smallest, smallest), max(self._largest, int(largest))  # type: ignore[arg-type]
        if not self._met and self._spread <= (self._most_spread if self._whole else _MOST_UNITS):
            self._offset(frame, _bits(smallest), out)
            self._near.append((smallest, out))
            return
        self._meet_near()
        self._meet(frame, out)

    def finish(self) -> None:
        """Make the numbers of all rows final: they are below ``known``."""
        if self._spread > self._most_spread:
            self._meet_near()
        if self._near:
            self.known = self._spread
        for smallest, out in self._near:
            if smallest > self._smallest:
                np.add(out, np.int32(smallest - self._smallest), out=out, where=out >= 0)
        self._near = []

    def _meet_near(self) -> None:
        """Give the rows so far, whose units turn out to be far apart, numbers in the order they were met."""
        near, self._near, self._met = self._near, [], True
        for smallest, out in near:
            unit = pl.lit(_bits(smallest)) + pl.col("unit").cast(pl.Int64)
            found = pl.DataFrame({"unit": out}).select(unit=pl.when(pl.col("unit") >= 0).then(unit))
            self._meet(found, out)

    def _meet(self, frame: pl.DataFrame, out: np.ndarray) -> None:
        for block in iterate_blocks(frame):
            self._factorize(block, out[block.start : block.stop])

    @staticmethod
    def _offset(frame: pl.DataFrame, lowest: np.int64, out: np.ndarray) -> None:
        def subtract(block: Block, start: int, stop: int) -> None:
            for _ in block.walk(start, stop):
                part = out[block.start : block.stop]
                offset_values(block.integers("unit"), block.validity("unit"), lowest, part)

        share_blocks(frame, 64, subtract)

    def _factorize(self, block: Block, out: np.ndarray) -> None:
        values, valid = block.integers("unit"), block.validity("unit")
        done = 0
        while True:
            step, self.known = factorize_values(
                values[done:], valid[done:], self.known, self._values, self._numbers, out[done:]
            )
            # A table has at least two places a number, so that none has passed 2**31 - 1 unseen.
            _refuse_more(self.known)
            done += step
            if done == block.rows:
                return
            room = 2 * len(self._numbers)
            larger_values, larger_numbers = np.zeros(room, np.int64), np.full(room, -1, np.int32)
            reinsert_values(self._values, self._numbers, larger_values, larger_numbers)
            self._values, self._numbers = larger_values, larger_numbers


def _bits(number: int) -> np.int64:
    """Return the bits of an integer of 64 bits, signed or not, as those of a signed one."""
    return np.uint64(number % 2**64).view(np.int64)


def _refuse_more(units: int) -> None:
    if units > _MOST_UNITS:
        raise DpfastError("privacy units are too many to be numbered: there may be 2**31 - 1 at most")


def bound_contributions(
    units: np.ndarray,
    number: int,
    groups: np.ndarray,
    keys: int,
    max_groups: int,
    max_rows: int,
    words: Callable[[int], np.ndarray],
    *,
    mark_rows: bool,
    list_groups: bool = False,
    tell_losses: bool = False,
    tell_order: bool = False,
    order: UnitOrder | None = None,
) -> BoundedRows:
    """Bound what each unit contributes; see the module's docstring for the guarantee.

    Each unit keeps ``min(max_groups, its groups)`` groups, chosen uniformly, and in each of them
    ``min(max_rows, its rows there)`` rows, chosen uniformly.

    Parameters
    ----------
    units : int32
        Each row's unit, -1 for none: such rows are dropped.
    number
        All units are below this.
    groups : int32
        Each row's group, -1 for none: such rows are dropped before anything is chosen. If ``mark_rows``, -1 is
        written where a row is not kept.
    keys
        All groups are below this.
    max_groups, max_rows
        At least 1.
    words
        ``words(n)`` gives n fresh uniform uint64.
    mark_rows
        Whether the rows themselves are wanted, not only their numbers.
    list_groups
        Whether the groups that each unit keeps are wanted.
    tell_losses
        Whether what each unit has and keeps is wanted.
    tell_order
        Whether all rows unit by unit are wanted.
    order
        The rows unit by unit where they were sorted before, and which rows they are if ``mark_rows`` or
        ``tell_order``: it may be overwritten.

    """
    if order is None:
        order = order_by_unit(units, number, groups, rows=mark_rows or tell_order)
    starts, sorted_groups, longest = order.starts, order.groups, order.longest
    sorted_rows: np.ndarray = np.empty(0, np.int32)
    if mark_rows:
        assert order.rows is not None
        sorted_rows = order.rows
        groups[units < 0] = -1
    if tell_order and list_groups:
        # Groups that are listed overwrite these.
        sorted_groups = sorted_groups.copy()

    room = max(1, min(longest, keys))
    # No unit needs more words at once than one per group it keeps and one per row.
    most_words = min(max_groups, longest) + (longest if mark_rows else 0)
    held = np.zeros(number if list_groups else 0, np.int64)
    kept_rows, all_groups = (np.zeros(number if tell_losses else 0, np.int64) for _ in range(2))
    # Groups are listed one unit after the other. Tables of each thread's own stay in the cache.
    threads = 1 if list_groups or keys > _MOST_SHARED else thread_count(None, sorted_groups.size)
    shares = shares_of_rows(order, threads)

    def bound(first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        last_unit, place = np.full(keys, -1, np.int32), np.empty(keys, np.int32)
        distinct, counts, wanted = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64)
        unit_table, row_table = np.zeros(keys + 1, np.int64), np.zeros(keys + 1, np.int64)
        unit, last = shares[first]
        while unit < last:
            unit = bound_units(
                unit,
                last,
                starts,
                sorted_groups,
                sorted_rows,
                # As Python numbers: each NumPy type would be compiled for anew, which takes a second.
                min(int(max_groups), 2**62),
                min(int(max_rows), 2**62),
                _draw(words, max(_WORDS, most_words)),
                last_unit,
                place,
                distinct,
                counts,
                wanted,
                unit_table,
                row_table,
                groups,
                held,
                kept_rows,
                all_groups,
            )
        return unit_table[:keys], row_table[:keys]

    tables = in_stretches(bound, threads, threads)
    unit_table, row_table = (functools.reduce(np.add, columns) for columns in zip(*tables, strict=True))
    holdings = losses = None
    if tell_losses:
        losses = losses_of(np.diff(starts), kept_rows, all_groups, max_groups)
    if list_groups:
        holdings = Holdings(held, sorted_groups[: held[-1] if number else 0].copy())
    return BoundedRows(unit_table, row_table, holdings, losses, order if tell_order else None)


def _draw(words: Callable[[int], np.ndarray], number: int) -> np.ndarray:
    """Return at least so many words; fewer would leave the kernel waiting for ever."""
    drawn = words(number)
    if drawn.dtype != np.uint64 or len(drawn) < number:
        raise ParameterError("words", drawn.dtype, f"a function that returns {number} uint64")
    return drawn
