"""The rule of the ledger, apart from where it is kept: what is charged, for whom, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from dpfast.accounting.facts import for_add_remove_only
from dpfast.accounting.privacy_unit import read_neighbors
from dpfast.arguments import Text
from dpfast.errors import LedgerError
from dpfast.ledger.charges import Charge, ChargeColumns, Item, check_text
from dpfast.ledger.filters import Filter
from dpfast.ledger.partitioned import PartitionCharges, PartitionFilter, PartitionKeys, PartitionState
from dpfast.showing import Shown

__all__ = [
    "MAIN",
    "Account",
    "AnyItem",
    "Entry",
    "Identity",
    "Name",
    "OwnName",
    "already_allotted",
    "cost_of",
    "damaged",
    "no_allotment",
]

#: A name, as `check_text` reads it.
Name: TypeAlias = Annotated[str, Text()]
OwnName: TypeAlias = Annotated[str | None, Text(optional=True)]

#: What an entry records; those of partitions stand in accounts of their own.
AnyItem = Item | PartitionKeys | PartitionCharges
#: The account that bears the ledger's own budget; allotments have names.
MAIN = ""

_MOST_CHARGES = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Identity(Shown):
    """What a ledger's guarantee is about; None is what the first charge will settle.

    Parameters
    ----------
    dataset
        The name of the data.
    privacy_unit
        Whose presence is hidden: ``"row"``, or a column as ``"column:tailnum"``.
    neighbors
        ``"add_remove"``, one unit more or fewer, or ``"replace"``, one unit exchanged.

    """

    dataset: str | None = None
    privacy_unit: str | None = None
    neighbors: str | None = None

    def __post_init__(self) -> None:
        for argument in ("dataset", "privacy_unit"):
            if getattr(self, argument) is not None:
                check_text(getattr(self, argument), argument, empty=False)
        if self.neighbors is not None:
            read_neighbors(self.neighbors)

    def joined(self, given: Identity) -> Identity:
        """Return this identity with what it leaves open taken from another; refuse a contradiction."""
        settled = {}
        for name, phrase in (
            ("dataset", "dataset"),
            ("privacy_unit", "privacy unit"),
            ("neighbors", "neighbour relation"),
        ):
            mine, theirs = getattr(self, name), getattr(given, name)
            if mine is not None and theirs is not None and mine != theirs:
                raise LedgerError(
                    f"this ledger's {phrase} is {mine!r}, but {theirs!r} was given; nothing was charged: "
                    f"keep another {phrase} in a ledger of its own"
                )
            settled[name] = theirs if mine is None else mine
        return Identity(**settled)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger: equal charges, or many as columns, recorded in one step.

    Parameters
    ----------
    number
        The number of its first charge; ``item.count`` charges have numbers from there on.
    call
        The number of the first charge of the same call: what one call declares was known before any answer.
    time
        Microseconds since 1970 (UTC).
    account
        Whose budget it is: `MAIN` or an allotment's name.
    item, cost
        What was charged, and its cost by the account's filter.

    """

    number: int
    call: int
    time: int
    account: str
    item: AnyItem
    cost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """The state of one account of a ledger: its filter, what it has spent, and how far the ledger has come."""

    filter: Filter
    spent: tuple[int, ...]
    entries: int = 0
    identity: Identity = Identity()
    partitions: PartitionState | None = None

    @classmethod
    def new(cls, rule: Filter, identity: Identity) -> Account:
        """Return an account that has spent nothing."""
        return cls(rule, rule.nothing, 0, identity)

    def charged(
        self, items: Sequence[AnyItem], identity: Identity, account: str, time: int
    ) -> tuple[Account, tuple[Entry, ...]]:
        """Return the account after these charges, all of them or none, and their entries."""
        settled = self.identity if identity == self.identity else self.identity.joined(identity)
        if settled.neighbors == "replace":
            _check_replaceable(items)
        entries = []
        spent, number, partitions = self.spent, self.entries + 1, self.partitions
        for item in _merged(items):
            cost = self.filter.cost(item)  # type: ignore[arg-type]  # a filter refuses what is not its own
            spent = tuple(map(sum, zip(spent, cost, strict=True)))
            entries.append(Entry(number, self.entries + 1, time, account, item, cost))
            number += item.count
        if not self.filter.admits(spent):
            asked = tuple(after - before for after, before in zip(spent, self.spent, strict=True))
            raise self.filter.refusal(asked, self.spent)
        if number - 1 > _MOST_CHARGES:
            raise LedgerError("a ledger has at most 2**63 - 1 charges; nothing was charged: go on in another one")
        if isinstance(self.filter, PartitionFilter):
            for item in items:
                partitions = self.filter.after(partitions, item)
        after = replace(self, spent=spent, entries=number - 1, identity=settled, partitions=partitions)
        return after, tuple(entries)


def cost_of(rule: Filter, items: Sequence[AnyItem]) -> tuple[int, ...]:
    """Return what charges cost that were recorded in one step, as an account has added them up."""
    costs = [rule.cost(item) for item in _merged(items)]  # type: ignore[arg-type]
    return tuple(map(sum, zip(rule.nothing, *costs, strict=True)))


def _check_replaceable(items: Sequence[AnyItem]) -> None:
    """Refuse events that are for add/remove alone: an exchanged unit is in two parts, or twice in the sampling."""
    for item in items:
        if isinstance(item, Charge) and item.event is not None and for_add_remove_only(item.event):
            raise LedgerError(
                f"a {type(item.event).__name__} event is for add_remove neighbours, but this ledger's are replace; "
                "nothing was charged: charge the sum over the parts, or the mechanism without the sampling"
            )


def _merged(items: Sequence[AnyItem]) -> Sequence[AnyItem]:
    """Return the same charges with equal neighbours as one, so that a million equal ones are one entry."""
    if len(items) == 1 and type(items[0]) is Charge:
        return items
    merged: list[AnyItem] = []
    for item in items:
        if isinstance(item, ChargeColumns):
            item = item.as_one() or item
        last = merged[-1] if merged else None
        if isinstance(item, Charge) and isinstance(last, Charge) and replace(item, count=last.count) == last:
            merged[-1] = replace(last, count=last.count + item.count)
        else:
            merged.append(item)
    return merged


def no_allotment(name: str) -> LedgerError:
    """Return the error for an account that is not there."""
    return LedgerError(f"this ledger has no allotment {name!r}; in Python ledger.allot({name!r}, epsilon=...) makes it")


def already_allotted(name: str) -> LedgerError:
    """Return the error for an account that is there already."""
    return LedgerError(f"this ledger has an allotment {name!r} already; use it with ledger.allotment({name!r})")


def damaged(place: str, what: str) -> LedgerError:
    """Return the error for a ledger that is not as it was written."""
    return LedgerError(
        f"the ledger {place} is damaged ({what}); "
        "do not release anything on it: restore its newest copy and charge again what that copy lacks"
    )
