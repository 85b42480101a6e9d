"""Budgets of many partitions as their users see them: charged by columns, shown as frames."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import DELTA, no_amounts
from dpfast.arguments import Real, Special
from dpfast.errors import ColumnError, LedgerError, ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, Coordinate, charge_units
from dpfast.exact.units import Units
from dpfast.ledger.account import Account, Identity
from dpfast.ledger.charges import check_text
from dpfast.ledger.history import history
from dpfast.ledger.partitioned import PartitionCharges, PartitionFilter, PartitionKeys, PartitionState
from dpfast.ledger.reading import Store
from dpfast.showing import Card, Shown, brief

__all__ = ["Keys", "Partitions", "keys_of"]

_MOST_KEYS = 2**31
_KINDS = (pl.String, pl.Boolean, pl.Date, pl.Datetime)


def _no_keys() -> Iterator[object]:
    yield from (5, True, 0.5, "a", b"a", ["a"], object(), {"a": 1}, np.ones(2), pl.LazyFrame(), pl.DataFrame())
    yield from (pl.Series([], dtype=pl.String), pl.Series(["a", None]), pl.Series([0.5]), pl.Series([["a"]]))
    yield from (pl.DataFrame({"a": ["a"], "b": [None]}), pl.DataFrame({"epsilon": [0.5]}))


def _no_lists() -> Iterator[object]:
    yield from (*_no_keys(), [], pl.Series(["a", "a"]), pl.Series("epsilon", [1]))
    yield pl.DataFrame({"a": [1, 1], "b": ["x", "x"]})


Keys: TypeAlias = Annotated[pl.Series | pl.DataFrame, Special(_no_lists)]
#: One amount, or one a row.
Amounts: TypeAlias = Real | pl.Series | NDArray[Any]

#: How many partitions a notebook shows.
_SHOWN = 10


class Partitions(Shown):
    """Budgets of the partitions of a ledger's data; `Ledger.partition` makes them.

    Guarantee
    ---------
    As for the ledger, whose budget bears what the partitions may spend from the moment they are made. Every
    partition's charges stay within its budget, whatever is asked in whatever order: a call charges all its rows,
    or none. For that, the list of partitions must be public (known without the data: a list of observed users is
    not), what is computed under a charge must read rows of its partition alone, and its (epsilon, delta) must hold
    for every change that one unit can make to the partition: that it is added, removed, or exchanged.

    Raises
    ------
    BudgetExceededError, ColumnError, LedgerError, ParameterError
        As its methods say.

    Examples
    --------
    >>> import polars as pl
    >>> from dpfast.ledger import Ledger
    >>> ledger = Ledger(epsilon=1.0, dataset="flights", privacy_unit="row", neighbors="add_remove")
    >>> regions = pl.Series("region", ["east", "north", "west"])
    >>> parts = ledger.partition("regions", keys=regions, epsilon=0.5, units_in_one_partition=True)
    >>> parts.charge(pl.Series(["west", "east"]), epsilon=pl.Series([0.1, 0.2]), description="counts")
    >>> parts.charge(epsilon=0.1)
    >>> parts.spent["epsilon"].to_list()
    [0.3, 0.1, 0.2]
    >>> ledger.spent.epsilon
    0.5

    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._keys = _frame_of(self._state()[1].keys)

    @property
    def keys(self) -> pl.DataFrame:
        """The public list of partitions."""
        return self._keys

    def charge(
        self,
        keys: Annotated[pl.Series | pl.DataFrame | None, Special(_no_keys, optional=True)] = None,
        *,
        epsilon: Annotated[Amounts, Special(no_amounts)],
        delta: Annotated[Amounts, DELTA] = 0,
        description: Annotated[str, Special(lambda: (5, True, b"a", ["a"], object(), "\ud800"))] = "",
    ) -> None:
        """Charge many partitions in one step: all rows, or none.

        Guarantee
        ---------
        When this returns, every row is recorded (a durable ledger: on the disk). When it raises
        BudgetExceededError, ColumnError or ParameterError, nothing was charged.

        Parameters
        ----------
        keys
            A partition a row, as they were listed; rows of one partition add up. None: every partition once, in
            the order of the list. Like the amounts it is a parameter, made without the data.
        epsilon
            A number for every row, or a column of them, each 0 or from 1e-18 to 1e6; rounded up to whole units.
        delta
            Likewise, 0 or from 1e-18 to below 1. No row may have 0 for both.
        description
            What is paid for; it stands in the ledger for anyone to read.

        Raises
        ------
        BudgetExceededError
            If a partition has not enough left.
        ColumnError
            If a column is of another kind.
        LedgerError
            If the ledger is forked, damaged or not writable.
        ParameterError
            If a key is null or unknown, or an amount out of range.

        """
        check_text(description, "description", empty=True)
        codes = None if keys is None else self._codes(keys)
        count = self._keys.height if codes is None else len(codes)
        amounts = [_amounts(epsilon, "epsilon", count), _amounts(delta, "delta", count)]
        zero = (amounts[0].whole == 0) & (amounts[0].part == 0) & (amounts[1].whole == 0) & (amounts[1].part == 0)
        if zero.any():
            raise ParameterError(f"epsilon[{int(np.argmax(zero))}]", 0, "above 0 where delta is 0")
        without_delta = not (amounts[1].whole.any() or amounts[1].part.any())
        item = PartitionCharges(codes, amounts[0], None if without_delta else amounts[1], count, description)
        self._store.append(self._name, (item,), Identity())

    @property
    def spent(self) -> pl.DataFrame:
        """What every partition has spent, beside its keys; the nearest floats."""
        state = self._state()[1]
        return self._shown(state.epsilon, state.delta)

    @property
    def remaining(self) -> pl.DataFrame:
        """What can still be charged to every partition; where they share one budget, what that has left."""
        rule, state, account = self._state()
        caps = (rule.epsilon_units, rule.delta_units)
        if rule.shared:
            left = [cap - spent for cap, spent in zip(caps, account.spent, strict=True)]
            amounts = [_equal(units, self._keys.height) for units in left]
        else:
            amounts = [_rest(cap, spent) for cap, spent in zip(caps, (state.epsilon, state.delta), strict=True)]
        return self._shown(*amounts)

    def history(self) -> pl.DataFrame:
        """Return the entries of these partitions, as `Ledger.history` does; amounts are sums over the rows."""
        return history([entry for entry in self._store.entries() if entry.account == self._name])

    def __repr__(self) -> str:
        return f"<Partitions {brief(self._name)}: {self._keys.height} of {brief(self._keys.columns)}>"

    def _card(self) -> Card:
        """Return what the first partitions have spent, and what is left of them."""
        try:
            told = {"spent": self.spent.head(_SHOWN), "left": self.remaining.head(_SHOWN)}
        except LedgerError as error:
            return Card([f"{self!r}: {error}"])
        amounts = {f"{name} {word}": frame[name] for word, frame in told.items() for name in ("epsilon", "delta")}
        rows = [[*map(str, row)] for row in zip(*self._keys.head(_SHOWN), *amounts.values(), strict=True)]
        more = [f"and {self._keys.height - len(rows):,} more"] * (self._keys.height > len(rows))
        return Card([repr(self)], headers=[*self._keys.columns, *amounts], rows=rows, more=more)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("partitions cannot be copied or pickled; find them again with ledger.partitioning(name)")

    def _state(self) -> tuple[PartitionFilter, PartitionState, Account]:
        account = self._store.account(self._name)
        if not isinstance(account.filter, PartitionFilter) or account.partitions is None:
            raise LedgerError(f"{self._name!r} is an allotment; use ledger.allotment({self._name!r})")
        return account.filter, account.partitions, account

    def _shown(self, epsilon: Units, delta: Units) -> pl.DataFrame:
        named = (("epsilon", epsilon), ("delta", delta))
        return self._keys.with_columns(pl.Series(name, units.whole + units.part / 1e18) for name, units in named)

    def _codes(self, given: pl.Series | pl.DataFrame) -> NDArray[np.uint32] | None:
        """Return the places of keys in the list; None for the list as it stands."""
        frame = _plain_keys(given, self._keys.columns)
        if frame.schema != self._keys.schema:
            raise ColumnError(f"keys have the types {frame.schema}, but the partitions {self._keys.schema}; cast them")
        if frame.height == self._keys.height and frame.equals(self._keys):
            return None
        listed = self._keys.with_row_index("__code")
        found = frame.join(listed, on=self._keys.columns, how="left", maintain_order="left")["__code"]
        if found.null_count():
            row = int(found.is_null().arg_max() or 0)
            raise ParameterError(f"keys[{row}]", Words("a key that is not listed"), "a partition of the public list")
        codes: NDArray[np.uint32] = found.to_numpy().astype(np.uint32, copy=False)
        return codes


def keys_of(given: object) -> PartitionKeys:
    """Return the public list of partitions, each once."""
    frame = _plain_keys(given, None)
    if frame.is_duplicated().any():
        raise ParameterError("keys", Words("a list with repetitions"), "every partition once")
    reserved = {"epsilon", "delta", "__code"} & set(frame.columns)
    if reserved:
        raise ParameterError("keys", Words(f"a column called {min(reserved)}"), "columns of other names")
    buffer = io.BytesIO()
    # The oldest layout copies text: a view could take bytes of other rows along.
    frame.write_ipc(buffer, compression="zstd", compat_level=pl.CompatLevel.oldest())
    return PartitionKeys(buffer.getvalue(), frame.height, f"{frame.height} partitions")


def _frame_of(keys: PartitionKeys) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(keys.payload))


def _plain_keys(given: object, names: list[str] | None) -> pl.DataFrame:
    """Return key columns of plain types and without nulls."""
    if isinstance(given, pl.Series):
        given = given.to_frame(names[0] if names and len(names) == 1 else given.name or "key")
    if not isinstance(given, pl.DataFrame) or not (0 < given.height < _MOST_KEYS) or not given.width:
        raise ParameterError("keys", given, "a Polars series or frame of keys, one or more")
    if names is not None:
        if set(given.columns) != set(names):
            raise ColumnError(f"keys have the columns {given.columns}, but the partitions {names}")
        given = given.select(names)
    frame = given.with_columns(
        column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column for column in given
    )
    for column in frame:
        if not (column.dtype.is_integer() or column.dtype in _KINDS):
            raise ColumnError(f"keys have a column of {column.dtype}; give integers, text, booleans or dates")
        if column.null_count():
            raise ParameterError("keys", Words(f"a column {column.name} with nulls"), "without nulls")
    return frame


def _amounts(given: object, coordinate: Coordinate, count: int) -> Units:
    """Return one amount, or one a row, rounded up to whole units."""
    largest = 1e6 if coordinate == "epsilon" else float(np.nextafter(1.0, 0.0))
    if isinstance(given, (pl.Series, np.ndarray)):
        if isinstance(given, pl.Series):
            if not given.dtype.is_numeric() or given.dtype.is_decimal():
                raise ColumnError(f"{coordinate} is a column of {given.dtype}; cast it to Float64")
            if given.null_count():
                raise ParameterError(coordinate, Words("a column with nulls"), "without nulls")
            given = given.to_numpy()
        if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8 or given.shape != (count,):
            raise ParameterError(coordinate, Words("a column"), f"a number, or a column of {count} numbers")
        from dpfast.kernels.amounts.partition_budgets import (
            units_of_amounts,  # not at the top: most ledgers do without numba
        )

        column = np.ascontiguousarray(given, np.float64)
        units = Units(np.empty(count, np.int64), np.empty(count, np.int64))
        if not units_of_amounts(column, largest, units.whole, units.part):
            raise ParameterError(coordinate, Words("a column"), f"amounts of 0, or from 1e-18 to {largest:g}")
        return units
    if coordinate == "epsilon" and type(given) in (int, float) and str(given) in ("0", "0.0"):
        return _equal(0, 1)
    return _equal(charge_units(given, coordinate), 1)


def _equal(units: int, count: int) -> Units:
    return Units(np.full(count, units // UNITS_PER_ONE, np.int64), np.full(count, units % UNITS_PER_ONE, np.int64))


def _rest(cap: int, spent: Units) -> Units:
    """Return a cap less what is spent of it, which is no more."""
    borrow = spent.part > cap % UNITS_PER_ONE
    whole = cap // UNITS_PER_ONE - spent.whole - borrow
    return Units(whole, cap % UNITS_PER_ONE - spent.part + borrow * np.int64(UNITS_PER_ONE))
