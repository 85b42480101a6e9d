"""What a user wrote of a release's budget, privacy unit and data -> checked parameters."""

from __future__ import annotations

import os

from dpfast.accounting.privacy_unit import BOUND, PrivacyUnit, read_neighbors
from dpfast.errors import ParameterError
from dpfast.queries import Bins

__all__ = ["read_by", "read_dataset", "read_unit"]


def _dataset_name(data: object) -> str | None:
    """Return a path as the data's name; what is in memory has none."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data) if isinstance(os.fspath(data), str) else None
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, os.PathLike)) for path in data):
        return ", ".join(str(os.fspath(path)) for path in data)
    return None


def read_unit(column: object, max_groups: object, max_rows_per_group: object, neighbors: object) -> PrivacyUnit:
    """Return whose presence is hidden."""
    relation = read_neighbors(neighbors)
    bounds = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
    if column is None:
        for name, bound in bounds.items():
            if bound is not None:
                raise ParameterError(name, bound, "left out where each row is a unit", "give privacy_unit= as well")
        return PrivacyUnit(None, 1, 1, relation)
    if not isinstance(column, str):
        raise ParameterError("privacy_unit", column, "a column's name, or None for rows")
    for name, bound in bounds.items():
        if bound is None:
            allowed = "a whole number from 1 to 2**40 where privacy_unit is given"
            raise ParameterError(name, bound, allowed, f"write for example {name}=10")
    groups, rows = (BOUND.read(name, bound) for name, bound in bounds.items())
    return PrivacyUnit(column, groups, rows, relation)


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
