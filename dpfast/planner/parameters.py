"""What a user wrote of a release's budget, privacy unit and data -> checked parameters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfast.accounting.amounts import budget_units
from dpfast.errors import ParameterError
from dpfast.queries import Bins, PrivacyUnit

__all__ = ["GivenBudget", "read_budget", "read_by", "read_dataset", "read_unit"]

#: Beyond it, the (epsilon, delta) that is declared with a charge would exceed every ledger's.
LARGEST_RHO = 100_000


@dataclass(frozen=True)
class GivenBudget:
    """The whole budget in units of 1e-18: epsilons or rhos, and delta beside them."""

    kind: Literal["epsilon", "rho"]
    units: int
    delta_units: int
    given: object


def read_budget(epsilon: object, delta: object, rho: object) -> GivenBudget:
    """Return the budget that was given, as epsilon or as rho: rounded down, so that no charge exceeds it."""
    if rho is None:
        return GivenBudget("epsilon", budget_units(epsilon, "epsilon"), budget_units(delta, "delta"), epsilon)
    if epsilon is not None:
        raise ParameterError("rho", rho, "left out where epsilon is given", "give one of both")
    allowed = f"a number from 1e-18 to {LARGEST_RHO}"
    try:
        units = budget_units(rho, "epsilon", "rho")
    except ParameterError:
        units = 0
    if not 0 < units <= LARGEST_RHO * 10**18:
        raise ParameterError("rho", rho, allowed, "write for example rho=0.1")
    return GivenBudget("rho", units, budget_units(delta, "delta"), rho)


def _dataset_name(data: object) -> str | None:
    """Return a path as the data's name; what is in memory has none."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data) if isinstance(os.fspath(data), str) else None
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return ", ".join(str(os.fspath(path)) for path in data)
    return None


def read_unit(column: object, max_groups: object, max_rows_per_group: object, neighbors: object) -> PrivacyUnit:
    """Return whose presence is hidden."""
    if type(neighbors) is str and neighbors in ("add_remove", "replace"):
        relation: Literal["add_remove", "replace"] = "add_remove" if neighbors == "add_remove" else "replace"
    else:
        raise ParameterError("neighbors", neighbors, '"add_remove" or "replace"')
    bounds = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
    if column is None:
        for name, bound in bounds.items():
            if bound is not None:
                raise ParameterError(name, bound, "left out where each row is a unit", "give privacy_unit= as well")
        return PrivacyUnit(None, 1, 1, relation)
    if not isinstance(column, str):
        raise ParameterError("privacy_unit", column, "a column's name, or None for rows")
    for name, bound in bounds.items():
        if isinstance(bound, bool) or not isinstance(bound, (int, np.integer)) or not 1 <= bound <= 2**40:
            allowed = "a whole number from 1 to 2**40 where privacy_unit is given"
            raise ParameterError(name, bound, allowed, f"write for example {name}=10")
    return PrivacyUnit(column, int(str(max_groups)), int(str(max_rows_per_group)), relation)


def read_by(by: object) -> tuple[str | Bins, ...]:
    """Return the grouping columns that were given."""
    if not (by is None or isinstance(by, (str, Bins, list, tuple))):
        raise ParameterError("by", by, "a column's name, dpf.bins(column, edges), a list of these, or None")
    return () if by is None else (by,) if isinstance(by, (str, Bins)) else tuple(by)


def read_dataset(dataset: object, data: object) -> str | None:
    """Return the name under which the ledger knows the data; None for the ledger's own."""
    if dataset is not None and (not isinstance(dataset, str) or not dataset):
        raise ParameterError("dataset", dataset, "a name, or None")
    return dataset or _dataset_name(data)
