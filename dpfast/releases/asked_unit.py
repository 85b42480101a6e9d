"""Whose presence a request hides: a column, each row because that was said, or each row because nothing was said."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from pathlib import Path

from dpfast.accounting.privacy_unit import ALL_ROWS, BOUND, Neighbors, PrivacyUnit
from dpfast.errors import ParameterError, PrivacyUnitWarning

__all__ = ["ROW", "UNSAID", "check_row", "read_unit"]

#: What a user says, and the ledger writes, where each row is a unit.
ROW = "row"
#: What is told where nothing was said.
UNSAID = (
    "privacy_unit was left out, so that each row is a privacy unit, and whoever has several rows is protected for each "
    'of them alone; name the column that says whose row it is, or say privacy_unit="row" if nobody has two rows'
)
_PACKAGE = str(Path(__file__).parents[1])
_LEFT_OUT = "left out where each row is a unit"


def read_unit(
    column: str | None,
    max_groups: object,
    max_rows_per_group: object,
    neighbors: Neighbors,
    *,
    counts_rows: bool = True,
    told: bool = False,
) -> PrivacyUnit:
    """Return whose presence is hidden, and warn the caller where nobody said it, unless they were ``told`` already.

    ``"row"`` without bounds is each row, and with bounds a column of that name, as a column needs them. Unless
    ``counts_rows``, nothing depends on how many rows a unit has in a group, and no bound on these is needed.
    """
    bounds = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
    if column is None or (column == ROW and max_groups is None and max_rows_per_group is None):
        for name, bound in bounds.items():
            if bound is not None:
                raise ParameterError(name, bound, _LEFT_OUT, "give privacy_unit= as well")
        if column is None and not told:
            warnings.warn(UNSAID, PrivacyUnitWarning, stacklevel=_levels_to_caller())
        return PrivacyUnit(None, 1, 1, neighbors)
    if max_rows_per_group is None and not counts_rows:
        bounds["max_rows_per_group"] = ALL_ROWS
    for name, bound in bounds.items():
        if bound is None:
            allowed = f'{BOUND.allowed}, or "auto", where privacy_unit is given'
            raise ParameterError(name, bound, allowed, BOUND.mend.format(name=name))
    for name, bound in bounds.items():
        if bound == "auto":
            raise ParameterError(name, bound, f"{BOUND.allowed} here", BOUND.mend.format(name=name))
    groups, rows = (BOUND.read(name, bound) for name, bound in bounds.items())
    return PrivacyUnit(column, groups, rows, neighbors)


def check_row(max_groups: int | str | None, columns: Collection[str]) -> None:
    """Refuse ``"row"`` where it may mean two things: it is never taken for each row if a column has that name."""
    if max_groups is None and ROW in columns:
        allowed = f"given with max_groups= and max_rows_per_group= where the data have a column {ROW!r}"
        raise ParameterError("privacy_unit", ROW, allowed, "rename that column if each row is a unit")
    if max_groups is not None and ROW not in columns:
        raise ParameterError("max_groups", max_groups, _LEFT_OUT, "leave out max_rows_per_group as well")


def _levels_to_caller() -> int:
    """Return the ``stacklevel`` of the first frame outside this package: calls come by way of namespaces as well."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
