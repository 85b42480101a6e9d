"""The rule of budgets by partition: what one call charges to many of them, and whether it fits.

Parallel composition (soundness rule 13) takes the maximum over partitions in the place of the sum only where the
list of partitions is public and fixed at creation and a unit lies in one of them. What a ledger pays for its
partitions it pays at their creation, once and for good (`charges_for`); here each partition is held to its share.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import BudgetExceededError, LedgerError
from dpfast.exact.amounts import LARGEST_DELTA_UNITS, LARGEST_EPSILON_UNITS, UNITS_PER_ONE, exact_text
from dpfast.exact.units import Units
from dpfast.ledger.charges import Charge
from dpfast.ledger.filters import Basic

__all__ = ["PARTITIONS", "PartitionCharges", "PartitionFilter", "PartitionKeys", "PartitionState", "charges_for"]

#: The name of this rule in the place of an accountant's.
PARTITIONS = "partitions"
_Limbs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PartitionKeys:
    """The public list of partitions, as the bytes of an Arrow file: the first entry of their account."""

    event: ClassVar[str] = "partition keys"
    payload: bytes
    size: int
    description: str = ""
    count: ClassVar[int] = 1
    epsilon_units: ClassVar[int] = 0
    delta_units: ClassVar[int] = 0

    def packed(self) -> bytes:
        """Return all of it as bytes."""
        return b"%d\n%b" % (self.size, self.payload)

    @classmethod
    def unpacked(cls, packed: bytes, description: str) -> PartitionKeys:
        """Return what was packed."""
        size, _, payload = packed.partition(b"\n")
        return cls(payload, int(size), description)


@dataclass(frozen=True, eq=False)
class PartitionCharges:
    """What one call charges to partitions.

    Parameters
    ----------
    codes
        The partitions' places in the list (uint32), a row each, or None: every partition once, in order.
    epsilon, delta
        An amount a row, or one for all rows; delta may be None.
    count
        How many rows.
    description
        What is paid for.

    """

    event: ClassVar[str] = "partition charges"
    codes: NDArray[np.uint32] | None
    epsilon: Units
    delta: Units | None
    count: int
    description: str = ""

    @property
    def epsilon_units(self) -> int:
        """The sum over all rows, exactly."""
        return self._sum(self.epsilon)

    @property
    def delta_units(self) -> int:
        """The sum over all rows, exactly."""
        return 0 if self.delta is None else self._sum(self.delta)

    def _sum(self, units: Units) -> int:
        return units.total() * (self.count if len(units) == 1 else 1)

    def packed(self) -> bytes:
        """Return all of it as bytes: a line of JSON, then the columns; one number stands for equal ones."""
        columns: dict[str, NDArray[Any]] = {} if self.codes is None else {"code": self.codes}
        for name, units in (("epsilon", self.epsilon), ("delta", self.delta)):
            if units is not None:
                columns |= {f"{name}_whole": units.whole, f"{name}_part": units.part}
        described, bodies = {}, []
        for name, column in columns.items():
            # Whole parts are mostly zero.
            body = column[:1] if column[0] == column[-1] and (column == column[0]).all() else column
            described[name] = [body.size, column.size, body.dtype.str]
            bodies.append(body.data)
        header = json.dumps({"rows": self.count, "columns": described}).encode()
        return b"".join([header, b"\n", *bodies])

    @classmethod
    def unpacked(cls, packed: bytes, description: str) -> PartitionCharges:
        """Return what was packed."""
        end = packed.index(b"\n")
        header = json.loads(packed[:end])
        offset, columns = end + 1, {}
        for name, (stored, size, dtype) in header["columns"].items():
            column = np.frombuffer(packed, dtype, stored, offset)
            offset += column.nbytes
            columns[name] = column if stored == size else np.repeat(column, size)
        rows, codes = header["rows"], columns.get("code")
        amounts = [column for name, column in columns.items() if name != "code"]
        if offset != len(packed) or any(column.size not in (1, rows) for column in amounts):
            raise ValueError("the payload has another length")
        if codes is not None and codes.size != rows:
            raise ValueError("the payload has another number of codes")
        delta = Units(columns["delta_whole"], columns["delta_part"]) if "delta_whole" in columns else None
        return cls(codes, Units(columns["epsilon_whole"], columns["epsilon_part"]), delta, rows, description)


@dataclass(eq=False)
class PartitionState:
    """What every partition has spent, in limbs."""

    keys: PartitionKeys
    epsilon: Units
    delta: Units

    @property
    def total(self) -> tuple[int, int]:
        """The sums over all partitions."""
        return self.epsilon.total(), self.delta.total()

    @classmethod
    def new(cls, keys: PartitionKeys) -> PartitionState:
        """Return partitions that have spent nothing."""
        columns = (np.zeros(keys.size, np.int64) for _ in range(4))
        return cls(keys, Units(next(columns), next(columns)), Units(next(columns), next(columns)))

    def copy(self) -> PartitionState:
        """Return a state that can be changed by itself."""
        epsilon, delta = (Units(units.whole.copy(), units.part.copy()) for units in (self.epsilon, self.delta))
        return PartitionState(self.keys, epsilon, delta)

    def add(self, item: PartitionCharges) -> None:
        """Add charges to this very state."""
        from dpfast.kernels.amounts.partition_budgets import (
            add_amounts,  # not at the top: most ledgers do without numba
        )

        codes = np.empty(0, np.uint32) if item.codes is None else item.codes
        for spent, asked in ((self.epsilon, item.epsilon), (self.delta, item.delta)):
            if asked is not None and add_amounts(codes, asked.whole, asked.part, spent.whole, spent.part):
                raise LedgerError("a charge names a partition that there is not; nothing was charged")

    def first_above(self, epsilon_units: int, delta_units: int) -> tuple[int, int]:
        """Return the first partition that spent more, and how many did; -1 where none did."""
        from dpfast.kernels.amounts.partition_budgets import first_above

        found = (-1, 0)
        for spent, cap in ((self.epsilon, epsilon_units), (self.delta, delta_units)):
            if found[0] < 0:
                found = first_above(spent.whole, spent.part, cap // UNITS_PER_ONE, cap % UNITS_PER_ONE)
        return int(found[0]), int(found[1])


@dataclass(frozen=True, slots=True)
class PartitionFilter(Basic):
    """Basic composition within each partition, or where units span partitions over all of them together.

    Guarantee
        No partition's charges exceed its budget; with ``shared``, nor does the sum over all partitions.
    """

    accountant: ClassVar[str] = PARTITIONS
    shared: bool = False

    @property
    def terms(self) -> tuple[int, ...]:
        """What a store keeps."""
        return self.epsilon_units, self.delta_units, int(self.shared)

    def cost(self, item: Any) -> tuple[int, ...]:
        """Return what a call charges, over all partitions."""
        if not isinstance(item, (PartitionKeys, PartitionCharges)):
            raise LedgerError("these are budgets of partitions; nothing was charged: use ledger.partitioning(name)")
        return item.epsilon_units, item.delta_units

    def admits(self, spent: Any) -> bool:
        """Return whether so much may be spent over all partitions."""
        return not self.shared or Basic.admits(self, spent)

    def after(self, state: PartitionState | None, item: Any) -> PartitionState:
        """Return the partitions' state after an item, or refuse it; the state given stays as it is."""
        if state is None or isinstance(item, PartitionKeys):
            if state is not None or not isinstance(item, PartitionKeys):
                raise LedgerError("the list of partitions is given once, at the beginning")
            return PartitionState.new(item)
        after = state.copy()
        after.add(item)
        place, count = after.first_above(self.epsilon_units, self.delta_units)
        if count and not self.shared:
            left = [
                exact_text(cap - units[place])
                for cap, units in ((self.epsilon_units, state.epsilon), (self.delta_units, state.delta))
            ]
            raise BudgetExceededError(
                f"{count} partition{'s have' if count > 1 else ' has'} not enough left (the first, number {place} of "
                f"the list, epsilon {left[0]} and delta {left[1]}); nothing was charged: ask for no more than is left"
            )
        return after


def charges_for(rule: PartitionFilter, name: str, neighbors: str | None) -> tuple[Charge, ...]:
    """Return what the whole ledger is charged for its partitions (soundness rule 13).

    A unit that is added or removed touches one partition; one that is exchanged may touch two, the one that it
    leaves and the one that it enters. Where units span partitions, all share one budget.
    """
    times = 2 if neighbors == "replace" and not rule.shared else 1
    epsilon, delta = rule.epsilon_units * times, rule.delta_units * times
    if epsilon > LARGEST_EPSILON_UNITS or delta > LARGEST_DELTA_UNITS:
        raise BudgetExceededError("twice this budget is more than any ledger has; nothing was charged: ask for less")
    return (Charge(epsilon, delta, f"partitions {name}"),)
