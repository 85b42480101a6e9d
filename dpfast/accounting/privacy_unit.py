"""Whose presence is hidden: neighbouring data, and how much one privacy unit may fill; one rule for every method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dpfast.errors import ParameterError

__all__ = ["Neighbors", "PrivacyUnit", "read_bound", "read_neighbors"]

#: One unit more or fewer, or one unit's rows exchanged for others.
Neighbors: TypeAlias = Literal["add_remove", "replace"]

_LARGEST_BOUND = 2**40


@dataclass(frozen=True)
class PrivacyUnit:
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
    if type(neighbors) is not str or neighbors not in ("add_remove", "replace"):
        raise ParameterError("neighbors", neighbors, '"add_remove" or "replace"')
    return "replace" if neighbors == "replace" else "add_remove"


def read_bound(bound: object, argument: str) -> int:
    """Return a bound on what a privacy unit keeps, ``max_groups`` or ``max_rows_per_group``.

    Raises
    ------
    ParameterError
        It is no whole number from 1 to 2**40.

    Examples
    --------
    >>> read_bound(10, "max_groups")
    10

    """
    if isinstance(bound, bool) or not isinstance(bound, (int, np.integer)) or not 1 <= bound <= _LARGEST_BOUND:
        raise ParameterError(argument, bound, "a whole number from 1 to 2**40", f"write for example {argument}=10")
    return int(bound)
