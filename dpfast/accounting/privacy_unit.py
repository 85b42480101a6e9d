"""Whose presence is hidden: neighbouring data, and how much one privacy unit may fill; one rule for every method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from dpfast.arguments import Choice, Whole
from dpfast.showing import Shown

__all__ = [
    "ALL_ROWS",
    "BOUND",
    "NEIGHBORS",
    "AskedBound",
    "Bound",
    "Neighbors",
    "OwnBound",
    "OwnNeighbors",
    "PrivacyUnit",
    "read_neighbors",
]

NEIGHBORS = Choice(("add_remove", "replace"))
#: One unit more or fewer, or one unit's rows exchanged for others.
Neighbors: TypeAlias = Annotated[Literal["add_remove", "replace"], NEIGHBORS]
OwnNeighbors: TypeAlias = Annotated[Literal["add_remove", "replace"] | None, replace(NEIGHBORS, optional=True)]

#: All rows that a unit has in a group, of which there are fewer.
ALL_ROWS = 2**40
#: What a privacy unit keeps: ``max_groups`` or ``max_rows_per_group``.
BOUND = Whole(1, ALL_ROWS, mend="write for example {name}=10")
Bound: TypeAlias = Annotated[int, BOUND]
OwnBound: TypeAlias = Annotated[int | None, replace(BOUND, optional=True)]


@dataclass(frozen=True)
class _WholeOrAuto(Whole):
    """A whole number, or ``"auto"``."""

    @property
    def allowed(self) -> str:
        """The range."""
        return f'{super().allowed}, or "auto"'

    def accepts(self, given: Any) -> bool:
        """Return whether it is such a number or the word."""
        return (type(given) is str and given == "auto") or super().accepts(given)

    def convert(self, given: Any) -> Any:
        """Return the number as Python's."""
        return given if isinstance(given, str) else super().convert(given)


#: A bound, or "auto" to have it chosen privately.
AskedBound: TypeAlias = Annotated[
    int | Literal["auto"] | None, _WholeOrAuto(BOUND.least, BOUND.most, optional=True, mend=BOUND.mend)
]


@dataclass(frozen=True)
class PrivacyUnit(Shown):
    """Whose presence is hidden, and how much of the data it may fill.

    Parameters
    ----------
    column
        The column that names the unit, or None if each row is a unit.
    max_groups, max_rows_per_group
        What a unit keeps; 1 and 1 where each row is a unit.
    neighbors
        ``"add_remove"``: one unit more or fewer; ``"replace"``: one unit's rows exchanged.

    """

    column: str | None
    max_groups: int
    max_rows_per_group: int
    neighbors: Neighbors

    @property
    def keeps_all_rows(self) -> bool:
        """Whether no limit on rows was given: the largest stands for it, which what depends on rows is scaled by."""
        return self.max_rows_per_group == ALL_ROWS


def read_neighbors(neighbors: object) -> Neighbors:
    """Return the neighbour relation that a user gave.

    Raises
    ------
    ParameterError
        It is neither "add_remove" nor "replace".

    Examples
    --------
    >>> read_neighbors("replace")
    'replace'

    """
    return "replace" if NEIGHBORS.read("neighbors", neighbors) == "replace" else "add_remove"


def moved_cells(neighbors: Neighbors) -> int:
    """Return in how many cells counts of rows change, by one each, between neighbours that differ in one row."""
    return 1 if neighbors == "add_remove" else 2
