"""How a column's values become places along an axis, block by block, without a look at more than one row at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.coding import KeyCoder
from dpfast.aggregation.keys import code_keys
from dpfast.columns.comparable import has_room, is_integer
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.edges import are_times
from dpfast.columns.values import values_of, whole_edges
from dpfast.domain.attributes import Attribute
from dpfast.errors import ColumnError
from dpfast.kernels.grouping.counting import find_bins, look_up_slots
from dpfast.queries import Bins

__all__ = ["Reader", "reader_of"]

_LEAST_TICK, _LARGEST_TICK = -(2**63), 2**63 - 1


class Reader(ABC):
    """Reads one column of one dtype.

    Attributes
    ----------
    expression
        What is read of the data: the column itself wherever its memory serves as it is.

    """

    def __init__(self, expression: pl.Expr) -> None:
        self.expression = expression

    @abstractmethod
    def read(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's place (int64), and 0 (uint8) where it counts as null.

        A place that was not declared, beside 1, is in no cell. Both are to be read only, before the block is used
        again.
        """

    def read_bytes(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Return what `read` does, with places of uint8 that stand in the data's own memory; None where none do.

        The flags are None where the column has no null at all.
        """
        return None


class _Codes(Reader):
    """Integers that are places already."""

    def __init__(self, expression: pl.Expr, attribute: Attribute, dtype: pl.DataType, *, clamps: bool) -> None:
        super().__init__(expression)
        self._count = attribute.declared
        self._clamps = clamps
        self._drops = attribute.other is None or attribute.nulls_only
        self._unsigned = dtype == pl.UInt64

    def read(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray]:
        codes = block.view_integers(name)
        if not self._clamps:
            valid = block.validity(name)
            return codes, valid if self._drops else _declared(codes, self._count, block, valid)
        if self._unsigned:
            # By its bits a uint64 above int64 is negative, but it is above all codes.
            np.minimum(codes.view(np.uint64), np.uint64(self._count - 1), out=block.numbers.view(np.uint64))
        else:
            np.clip(codes, 0, self._count - 1, out=block.numbers)
        return block.numbers, block.validity(name)

    def read_bytes(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray | None] | None:
        places = None if self._clamps or not self._drops else block.view_bytes(name)
        return None if places is None else (places, block.validity_of_nullable(name))


class _BinNumbers(Reader):
    """Numbers, each in the bin between two edges."""

    def __init__(self, expression: pl.Expr, edges: np.ndarray, *, clamps: bool, nulls_only: bool) -> None:
        super().__init__(expression)
        self._edges = edges
        self._clamps = clamps
        self._nulls_only = nulls_only

    def read(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray]:
        numbers, valid, edges = self._numbers(block, name), block.validity(name), self._edges
        find_bins(numbers, valid, edges, block.numbers, block.flags)
        if self._clamps:
            # What lies above all edges was found in the last place of the search, which is no bin.
            np.clip(block.numbers, 0, len(edges) - 2, out=block.numbers)
        elif self._nulls_only:
            # What lies outside is in no cell, and not among the nulls.
            np.copyto(block.numbers, -1, where=block.flags == 0)
        if self._clamps or self._nulls_only:
            np.multiply(valid, numbers == numbers, out=block.flags)
        return block.numbers, block.flags

    def _numbers(self, block: Block, name: str) -> np.ndarray:
        return block.floats(name)


class _BinTimes(_BinNumbers):
    """Times by their ticks, which float64 does not hold: a nanosecond before midnight is not midnight."""

    def __init__(self, expression: pl.Expr, ticks: Sequence[int], *, clamps: bool, nulls_only: bool) -> None:
        edges = np.array([min(max(tick, _LEAST_TICK), _LARGEST_TICK) for tick in ticks], np.int64)
        super().__init__(expression, edges, clamps=clamps, nulls_only=nulls_only)
        self._beyond = ticks[-1] > _LARGEST_TICK

    def _numbers(self, block: Block, name: str) -> np.ndarray:
        # The largest tick lies below an edge that is larger still.
        ticks = block.view_integers(name)
        ticks = np.minimum(ticks, _LARGEST_TICK - 1) if self._beyond else ticks.view()
        # Some stand in the data's own memory; the kernel is compiled once for all.
        ticks.setflags(write=False)
        return ticks


class _Listed(Reader):
    """Values of a list, found by their integers or in a hash table of these."""

    def __init__(self, expression: pl.Expr, coder: KeyCoder, places: np.ndarray, attribute: Attribute) -> None:
        super().__init__(expression)
        self._count = attribute.declared
        self._coder = coder
        # A slot of no key has the row -1, the last.
        held = np.append(places.astype(np.int32), np.int32(-1))[coder.key_rows()]
        self._places = None if np.array_equal(held, np.arange(held.size)) else held

    def read(self, block: Block, name: str) -> tuple[np.ndarray, np.ndarray]:
        slots = self._coder.read_slots(block, [name])
        if self._places is None:
            found = slots.view(np.int64)
        else:
            places = np.empty(block.rows, np.int32)
            look_up_slots(slots, self._places, places)
            found = block.numbers
            found[:] = places
        return found, _declared(found, self._count, block)


def reader_of(attribute: Attribute, dtype: pl.DataType, *, clamps: bool) -> Reader:
    """Return what reads a column of this dtype as an attribute.

    Raises
    ------
    ColumnError
        The dtype cannot hold the attribute's values: a fact of the schema.

    """
    column = pl.col(attribute.name)
    if attribute.bins is not None:
        return _bins_of(column, attribute, attribute.bins, dtype, clamps=clamps)
    if attribute.values is None:
        _check(is_integer(dtype), attribute, dtype, "integers")
        return _Codes(column, attribute, dtype, clamps=clamps)
    values = attribute.values
    kind, held = {
        pl.String: ("strings", dtype in (pl.String, pl.Categorical, pl.Enum)),
        pl.Boolean: ("Booleans", dtype == pl.Boolean),
        pl.Date: ("dates", dtype == pl.Date),
    }.get(type(values.dtype), ("integers", is_integer(dtype)))
    _check(held, attribute, dtype, kind)
    if isinstance(dtype, pl.Categorical) and not has_room(dtype):
        column, dtype = column.cast(pl.String), pl.String()
    # A value that the dtype cannot hold is in no row.
    fitted = values.cast(dtype, strict=False)
    kept = values.is_null() | fitted.is_not_null()
    fitted, places = fitted.filter(kept), np.flatnonzero(kept.to_numpy())
    coded = code_keys(fitted)
    if coded is not None and KeyCoder.fits([coded]):
        return _Listed(column, KeyCoder([coded], fitted.len()), places, attribute)
    # Integers further apart than 2**63.
    found = column.replace_strict(fitted, pl.Series(places), default=None, return_dtype=pl.Int64)
    return _Codes(found, attribute, pl.Int64(), clamps=False)


def _bins_of(column: pl.Expr, attribute: Attribute, bins: Bins, dtype: pl.DataType, *, clamps: bool) -> Reader:
    """Return what reads numbers, or times by the ticks of the column's own unit."""
    if not are_times(bins.edges):
        _check(dtype.is_float() or is_integer(dtype), attribute, dtype, "integers or floats")
        edges = np.array(bins.edges, np.float64)
        return _BinNumbers(column, edges, clamps=clamps, nulls_only=attribute.nulls_only)
    held = pl.Series(bins.edges).dtype
    if isinstance(held, pl.Datetime):
        zoned = isinstance(dtype, pl.Datetime) and (dtype.time_zone is None) == (held.time_zone is None)
        _check(zoned, attribute, dtype, "datetimes" + " with a time zone" * (held.time_zone is not None))
    else:
        _check(isinstance(dtype, type(held)), attribute, dtype, f"values of {dtype_name(held)}")
    ticks = whole_edges(values_of(dtype), bins.edges, attribute.name)
    assert ticks is not None
    return _BinTimes(column, ticks, clamps=clamps, nulls_only=attribute.nulls_only)


def _declared(places: np.ndarray, count: int, block: Block, valid: np.ndarray | None = None) -> np.ndarray:
    """Write 1 where a place is from 0 to ``count - 1``, and valid, else 0 (uint8)."""
    # Negative places are large by their bits.
    np.less(places.view(np.uint64), np.uint64(count), out=block.flags.view(np.bool_))
    if valid is not None:
        np.bitwise_and(block.flags, valid, out=block.flags)
    return block.flags


def _check(held: bool, attribute: Attribute, dtype: pl.DataType, kind: str) -> None:
    if not held:
        raise ColumnError(
            f"the column {attribute.name!r} must hold {kind}, as its attribute says, but was of {dtype_name(dtype)}"
        )
