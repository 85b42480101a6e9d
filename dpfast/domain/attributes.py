"""The attributes of a domain: public values, each with a place along an axis of the histogram."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.sources import refuse_pattern
from dpfast.columns.candidates import as_series, read_candidates
from dpfast.domain.shapes import CELLS, check_size
from dpfast.errors import ParameterError
from dpfast.queries import Bins
from dpfast.showing import brief

__all__ = ["Attribute", "Values", "read_attribute"]

#: How many codes there are, the values, or bins of numbers.
Values: TypeAlias = int | Sequence[str | int | bool | datetime.date | None] | NDArray[Any] | pl.Series | Bins

_ALLOWED = "a number of codes, a list of values (strings, integers, Booleans or dates, each once), or dpf.bins"


@dataclass(frozen=True)
class Attribute:
    """One attribute of a domain: codes, unless it has a list of values or bins.

    Attributes
    ----------
    name
        The column.
    declared
        How many codes, values or bins were declared: the first cells along the axis.
    values
        The values of a list, null among them if that was declared.
    bins
        The bins.
    other
        The cell of all that was not declared, which null stands for; None if that is in no cell.
    nulls_only
        Whether that is the cell of nulls and NaN alone, and all else that was not declared is in no cell.

    """

    name: str
    declared: int
    values: pl.Series | None = None
    bins: Bins | None = None
    other: int | None = None
    nulls_only: bool = False

    @property
    def size(self) -> int:
        """How many cells there are along the axis."""
        return self.declared + (self.other == self.declared)

    @property
    def labels(self) -> pl.Series:
        """What stands for each cell: codes, values, the left edges of bins; null for what was not declared."""
        if self.bins is not None:
            labels = pl.Series(self.name, self.bins.labels)
        else:
            labels = pl.Series(self.name, range(self.declared)) if self.values is None else self.values
        return labels.extend_constant(None, self.size - self.declared)

    @property
    def counts_nulls(self) -> bool:
        """Whether a null has a cell."""
        return self.other is not None or (self.values is not None and self.values.null_count() > 0)

    def drops_others(self, *, clamps: bool) -> bool:
        """Return whether a value, no null, that was not declared is in no cell, and may be in the data at all."""
        if self.values is None:
            return not clamps and (self.other is None or self.nulls_only)
        both = self.values.dtype == pl.Boolean and self.values.drop_nulls().len() == 2
        return self.other is None and not both

    @property
    def in_words(self) -> str:
        """What is declared, in a few words."""
        if self.bins is not None:
            return f"bins of {brief(list(self.bins.edges))}"
        return f"codes 0 to {self.declared - 1:,}" if self.values is None else brief(self.values.to_list())


def read_attribute(name: object, values: Values, *, null: bool, nulls: bool) -> Attribute:
    """Return a declared attribute, checked.

    Parameters
    ----------
    name, values
        As `Domain` takes them.
    null
        Whether there is a cell for null and all that was not declared.
    nulls
        Or one for null and NaN alone.

    """
    if not isinstance(name, str):
        raise ParameterError("attributes", name, "a dictionary with a column's name for each attribute")
    refuse_pattern(name)
    argument = f"attributes[{name!r}]"
    if isinstance(values, Bins):
        count = len(values.labels)
        return _with_other(Attribute(name, count, bins=replace(values, column=name)), null=null, nulls=nulls)
    if isinstance(values, (int, np.integer)):
        count = CELLS.read(argument, values)
        check_size(count, argument, "values")
        return _with_other(Attribute(name, count), null=null, nulls=nulls)
    try:
        series = as_series(read_candidates(values, plain=True)).alias(name)
    except ParameterError:
        raise ParameterError(argument, values, _ALLOWED, f'write for example {{"{name}": ["a", "b"]}}') from None
    if nulls and not null and not series.null_count():
        series = series.extend_constant(None, 1)
    count = series.len()
    at = int(series.is_null().arg_max() or 0) if series.null_count() else count
    return Attribute(name, count, values=series, other=at if null else None)


def _with_other(attribute: Attribute, *, null: bool, nulls: bool) -> Attribute:
    """Return an attribute with a cell more: for null and all that was not declared, or for null and NaN alone."""
    if not null and not nulls:
        return attribute
    return replace(attribute, other=attribute.declared, nulls_only=not null)
