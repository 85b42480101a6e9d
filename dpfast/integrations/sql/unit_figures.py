"""What privacy units contribute themselves, as SQL of int64: the same bits as `dpfast.kernels.grouping.unit_figures`.

Each row adds two numbers to the sum of its unit in its group, its bits from 24 on and the 24 below, so that no sum of
2**38 rows leaves int64 in an engine that raises, or wraps, beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dpfast.integrations.sql.contributions import contribution
from dpfast.integrations.sql.dialects import Dialect
from dpfast.integrations.sql.filters import Use
from dpfast.integrations.sql.parameters import Parameters
from dpfast.queries import Measure

__all__ = ["UnitFigure"]

_PART = 2**24
_ABOVE = 2**24


@dataclass(frozen=True)
class UnitFigure:
    """A measure of what units contribute.

    Attributes
    ----------
    measure, name
        Which, and the column of its figures.
    dialect
        The engine's words.

    """

    measure: Measure
    name: str
    dialect: Dialect

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that rows have for it, and of which each unit's sum in each group is taken."""
        parts = ("h", "l") if self.measure.factors else ()
        return tuple(f"{self.name}{part}" for part in (*parts, "c"))

    def of_rows(self, schema: pl.Schema, use: Use, parameters: Parameters) -> list[str]:
        """Return what rows add, as the columns `added`."""
        dialect = self.dialect
        found = [contribution(Measure("values", self.measure.column), schema, use, dialect, parameters)]
        for factor in self.measure.factors:
            value = contribution(factor, schema, use, dialect, parameters)
            # Engines divide towards zero: a multiple of the divisor is added, so that nothing is below zero.
            lifted = f"({value}) + {_ABOVE * _PART}"
            found[:0] = [f"({dialect.divided.format(lifted, _PART)}) - {_ABOVE}", f"({lifted}) % {_PART}"]
        return [f"{text} AS {name}" for text, name in zip(found, self.added, strict=True)]

    def of_unit(self) -> str:
        """Return what a unit contributes, of the sums of the columns `added`."""
        measure, divided = self.measure, self.dialect.divided
        *sums, count = self.added
        if not sums:
            return f"CASE WHEN {count} > 0 THEN 1 ELSE 0 END AS {self.name}"
        first, second = sums
        high, low = f"({first} + {divided.format(second, _PART)})", f"({second} % {_PART})"
        if measure.kind == "unit_mean":
            total, number = f"({first} * {_PART} + {second})", f"CASE WHEN {count} > 0 THEN {count} ELSE 1 END"
            rest = f"((({total} % ({number})) + ({number})) % ({number}))"
            mean = f"({divided.format(f'{total} - {rest}', number)})"
            rounded = f"{mean} + CASE WHEN {rest} + {rest} >= {count} THEN 1 ELSE 0 END"
            return f"CASE WHEN {count} > 0 THEN {rounded} ELSE 0 END AS {self.name}"
        shift = measure.step_exponent - measure.factors[0].step_exponent
        half, far = (1 << shift) >> 1, (1 << shift) + 2
        # What is as far is beyond all bounds, which are below 2**24; an engine may compute what it does not take.
        near = f"CASE WHEN {high} > {far} THEN {far} WHEN {high} < {-far} THEN {-far} ELSE {high} END"
        rounded = f"(({near}) * {_PART >> shift} + ({divided.format(f'{low} + {half}', 1 << shift)}))"
        lower, upper = measure.lower, measure.upper
        return (
            f"CASE WHEN {count} = 0 THEN 0 WHEN {rounded} > {upper} THEN {upper} "
            f"WHEN {rounded} < {lower} THEN {lower} ELSE {rounded} END AS {self.name}"
        )
