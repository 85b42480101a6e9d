"""What a row contributes to a measure, as an exact int64: natively in Polars and block by block in a kernel.

Both ways compute the formula of ``dpfast.queries.Measure`` without rounding anywhere but where it says so,
and a test holds them together: sums of the results do not depend on the order of the rows (Soundness rule 16).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.choices import CandidateCoder, native_choices, plan_candidates
from dpfast.aggregation.conditions import are_present, is_present, native_bins, native_codes, native_matches, range_of
from dpfast.aggregation.keys import plan_keys
from dpfast.aggregation.sources import missing_column, refuse_pattern
from dpfast.columns.comparable import as_read, is_wide, narrowed
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.grid import MANTISSA
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.grouping.counting import (
    clip_integers,
    find_bins,
    find_values,
    number_floats,
    round_floats,
    round_integers,
    scale_integers,
)
from dpfast.queries import Measure

__all__ = ["ROWS", "Contribution", "plan_contributions"]

_SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)
_FAR = 2**62
_FARTHEST = 2.0**126
_MOST_SHIFT = 62
_CAP = 2**38  # rows; a contribution's magnitude times this stays below 2**62


@dataclass(frozen=True)
class Contribution:
    """How one measure's contributions are found.

    Attributes
    ----------
    measure
        The measure.
    native
        A Polars expression of Int64 contributions, never null; None for rows and units, which are only counted.
    block
        The expression of the column that ``fill`` reads block by block; None for rows.
    way
        What ``fill`` does with that column: ``"rows"`` nothing, ``"present"`` looks for NaN, ``"floats"`` and
        ``"integers"`` compute the sum's contribution, ``"numbers"`` finds the point where steps double,
        ``"choices"`` the candidate, ``"bins"`` the bin, ``"within"`` whether it is between two edges, ``"ready"`` takes
        it as it is; ``"units"`` is of what units contribute, which `dpfast.aggregation.unit_figures` adds up.
    coder
        What finds candidates.
    edges
        Of bins, float64.
    parts
        Of what units contribute: what rows add to it, and where that does not say which of them have a value, this.

    """

    measure: Measure
    native: pl.Expr | None
    block: pl.Expr | None
    way: Literal["rows", "present", "floats", "numbers", "integers", "choices", "bins", "within", "ready", "units"]
    coder: CandidateCoder | None = None
    edges: np.ndarray | None = None
    parts: tuple[Contribution, ...] = ()

    def fill(self, block: Block, column: str, out: np.ndarray) -> None:
        """Write the contributions (int64) of a block's rows into ``out``."""
        measure = self.measure
        limits = measure.lower, measure.upper, measure.centre
        if self.way == "ready":
            block.read_integers(column, out)
        elif self.coder is not None:
            self.coder.read(block, column, out)
        elif self.edges is not None:
            self._fill_by_edges(block, column, out)
        elif self.way == "integers":
            _fill_integers(block.integers(column), block.validity(column), measure.step_exponent, *limits, out)
        elif self.way == "present":
            find_values(block.floats(column), block.validity(column), out)
        elif self.way == "floats":
            factors = _factors(measure.step_exponent)
            round_floats(block.floats(column), block.validity(column), *factors, *limits, out)
        else:
            steps = MANTISSA, measure.grid.finest, measure.doublings
            number_floats(block.floats(column), block.validity(column), *steps, *limits, out)

    def _fill_by_edges(self, block: Block, column: str, out: np.ndarray) -> None:
        """Write the number of the bin from 1 on, 0 for none; or what is contributed within two edges, and outside."""
        assert self.edges is not None
        values, validity, inside = block.floats(column), block.validity(column), block.flags
        # The last bin holds infinity too where nothing else ends it.
        np.minimum(values, sys.float_info.max, out=values)
        find_bins(values, validity, self.edges, out, inside)
        if self.way == "bins":
            out += 1
            out *= inside
            return
        find_values(values, validity, out)
        least, most = self.measure.extremes
        out *= np.where(inside, most, least)


ROWS = Contribution(Measure("rows"), None, None, "rows")
"""What counts the rows themselves."""


def plan_contributions(measures: Sequence[Measure], schema: pl.Schema) -> list[Contribution]:
    """Return how each measure is computed on columns of these dtypes.

    Raises
    ------
    ColumnError
        If a column is missing, or a sum or points are asked of one that is neither integer, float nor Boolean, or
        choices of one that cannot be compared with the candidates.
    ParameterError
        If a measure's bounds could overflow: magnitude x 2**38 rows must stay below 2**62.

    """
    return [_plan_contribution(measure, schema) for measure in measures]


def _plan_contribution(measure: Measure, schema: pl.Schema) -> Contribution:
    if measure.kind in ("rows", "units"):
        return replace(ROWS, measure=measure)
    for name in measure.columns:
        if name not in schema:
            raise missing_column(name, schema.names(), "it")
        refuse_pattern(name)
    if measure.of_units:
        return _of_units(measure, schema)
    if measure.kind == "product":
        return _ready(measure, _product(measure, schema))
    if measure.kind == "passes":
        return _ready(measure, native_matches(measure, schema))
    if measure.kind == "matches":
        return _matches(measure, schema)
    if measure.given:
        alone = _plan_contribution(replace(measure, given=()), schema)
        assert alone.native is not None
        return _ready(measure, pl.when(are_present(measure.given, schema)).then(alone.native).otherwise(0))
    assert measure.column is not None
    dtype = schema[measure.column]
    column = pl.col(measure.column)
    if measure.kind == "values":
        if not dtype.is_float():
            native = column.is_not_null()
            return Contribution(measure, native.cast(pl.Int64), native, "ready")
        return Contribution(measure, is_present(column, dtype).cast(pl.Int64), column, "present")
    if measure.kind == "bins":
        native = native_bins(measure, dtype)
        if dtype == pl.Null or is_wide(dtype) or measure.ticks:
            return _ready(measure, native)
        return Contribution(measure, native, column, "bins", edges=np.array(measure.edges))
    if measure.kind == "distinct":
        return _ready(measure, native_codes(measure, dtype))
    if measure.kind == "found":
        return Contribution(measure, None, _listed(measure.column, dtype), "choices")
    if measure.kind == "choices":
        candidates, fitted = plan_candidates(measure.column, measure.candidates, dtype)
        native, coder = native_choices(candidates, fitted), CandidateCoder.of(candidates)
        if coder is None:
            return _ready(measure, native)
        return Contribution(measure, native, as_read(fitted, candidates.dtype), "choices", coder)
    if measure.kind == "sum":
        _check_bounds(measure)
    if dtype == pl.Null:
        column, dtype = column.cast(pl.Float64), pl.Float64()
    if dtype == pl.Boolean:
        column, dtype = column.cast(pl.UInt8), pl.UInt8()
    if dtype.is_float() and measure.doublings:
        return Contribution(measure, _number_floats(column, measure), column, "numbers")
    if dtype.is_float():
        return Contribution(measure, _sum_floats(column, measure), column, "floats")
    if not dtype.is_integer() and not isinstance(dtype, (pl.Decimal, pl.Date, pl.Datetime, pl.Duration, pl.Time)):
        verb = "sum" if measure.kind in ("sum", "addend") else "draw quantiles of"
        raise ColumnError(
            f"cannot {verb} the column {measure.column!r} of dtype {dtype_name(dtype)}; cast it to Float64 or Int64 "
            "first"
        )
    if is_wide(dtype):
        largest = max(abs(measure.lower), abs(measure.upper)) * 2.0**measure.step_exponent
        if largest >= _FAR:
            # Of integers beyond 128 bits there are none; what float64 rounds is far finer than these steps.
            far = largest >= _FARTHEST and dtype.is_integer()
            native = _sum_floats(column, measure) if far else _sum_wide(column, measure, dtype)
            return _ready(measure, native)
    native = _sum_integers(narrowed(column, dtype).to_physical(), measure, unsigned=dtype == pl.UInt64)
    if measure.step_exponent <= _MOST_SHIFT and dtype != pl.UInt64:
        return Contribution(measure, native, as_read(column, dtype), "integers")
    return _ready(measure, native)


def _of_units(measure: Measure, schema: pl.Schema) -> Contribution:
    """Return what rows add to what units contribute, and which of them have a value."""
    present = _plan_contribution(Measure("values", measure.column), schema)
    added = [_plan_contribution(factor, schema) for factor in measure.factors]
    parts = added if added and added[0].way in ("floats", "integers") else [*added, present]
    return Contribution(measure, None, None, "units", parts=tuple(parts))


def _fill_integers(
    values: np.ndarray, valid: np.ndarray, exponent: int, lower: int, upper: int, centre: int, out: np.ndarray
) -> None:
    """Write the contributions of int64 values."""
    if exponent == 0:
        clip_integers(values, valid, lower, upper, centre, out)
    elif exponent > 0:
        round_integers(values, valid, np.int64(exponent), lower, upper, centre, out)
    else:
        scale_integers(values, valid, np.int64(min(-exponent, _MOST_SHIFT)), lower, upper, centre, out)


def _listed(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column whose values are to be shown, where these are of a dtype that keys may have."""
    try:
        (column,) = plan_keys((name,), pl.Schema({name: dtype}))
    except ColumnError:
        raise ColumnError(
            f"cannot list the values of the column {name!r} of dtype {dtype_name(dtype)}; cast it to a string, an "
            "integer, a Boolean, a date or a categorical"
        ) from None
    return column.native


def _matches(measure: Measure, schema: pl.Schema) -> Contribution:
    """Return how contributions to a proportion are found: of numbers that float64 holds, by their limits."""
    native = native_matches(measure, schema)
    assert measure.condition is not None
    dtype = schema[str(measure.column)]
    limits = range_of(measure.condition, schema) if dtype.is_float() or dtype in _SMALL_INTEGERS else None
    if limits is None:
        return _ready(measure, native)
    least, most = limits
    if not (least <= most and least < math.inf and most not in (-math.inf, sys.float_info.max)):
        return _ready(measure, native)
    return Contribution(
        measure, native, pl.col(str(measure.column)), "within", edges=np.array([least, math.nextafter(most, math.inf)])
    )


def _ready(measure: Measure, native: pl.Expr) -> Contribution:
    """Return contributions that Polars computes row by row."""
    return Contribution(measure, native, native, "ready")


def _product(measure: Measure, schema: pl.Schema) -> pl.Expr:
    """Return the contributions of products: of numbers below 2**24, and so below 2**48 before they are shortened."""
    _check_bounds(measure)
    first, second = (_plan_contribution(factor, schema).native for factor in measure.factors)
    assert first is not None
    assert second is not None
    shift = measure.shift
    half = (1 << shift) >> 1
    shortened = (first * second + half) // (1 << shift) if shift else first * second
    present = are_present(measure.needed, schema)
    return pl.when(present).then(shortened - measure.centre).otherwise(0)


def _check_bounds(measure: Measure) -> None:
    """Refuse bounds under which a sum of int64 contributions could overflow."""
    numbers = (measure.lower, measure.upper, measure.centre)
    largest = max(abs(measure.upper - measure.centre), abs(measure.lower - measure.centre))
    if measure.lower > measure.upper or largest * _CAP >= _FAR or max(map(abs, numbers)) > _FAR:
        raise ParameterError("measure", numbers, "lower <= upper, each less than 2**24 steps from centre")


def _factors(step_exponent: int) -> tuple[float, float]:
    """Return two powers of two whose product is ``2**-step_exponent``, each within the range of float64."""
    half = -step_exponent // 2
    if not -1022 <= half <= 1022:
        raise ParameterError("step_exponent", step_exponent, "between -2044 and 2044")
    return 2.0**half, 2.0 ** (-step_exponent - half)


def _clipped(steps: pl.Expr, measure: Measure) -> pl.Expr:
    """Return ``clip(steps, lower, upper) - centre`` of Int64 steps, 0 where null."""
    return (steps.clip(measure.lower, measure.upper) - measure.centre).fill_null(0)


def _sum_floats(column: pl.Expr, measure: Measure) -> pl.Expr:
    first, second = _factors(measure.step_exponent)
    steps = (column.cast(pl.Float64).fill_nan(None) * first * second).round(0, mode="half_to_even")
    return _clipped(steps.clip(-float(_FAR), float(_FAR)).cast(pl.Int64), measure)


def _number_floats(column: pl.Expr, measure: Measure) -> pl.Expr:
    """Return the contribution of points near which steps double, by the formula of `number_floats`."""
    first = MANTISSA + measure.grid.finest
    x = column.cast(pl.Float64).fill_nan(None)
    size = x.abs().clip(2.0**first, 2.0**1023)
    # A logarithm next to a whole number may be rounded to it.
    guess = size.log(2).floor().cast(pl.Int64)
    guess = guess + (size >= _power(guess + 1)).cast(pl.Int64) - (size < _power(guess)).cast(pl.Int64)
    doubled = (guess - first).clip(0, measure.doublings)
    # Two factors, each within the range of float64; the product is exact, or rounds to 0, or is far beyond the bounds.
    exponent = -(doubled + measure.grid.finest)
    half = exponent // 2
    steps = (x.abs() * _power(half) * _power(exponent - half)).round(0, mode="half_to_even")
    number = steps.clip(upper_bound=float(_FAR)).cast(pl.Int64) + doubled * (1 << MANTISSA)
    return _clipped(pl.when(x < 0).then(-number).otherwise(number), measure)


def _power(exponent: pl.Expr) -> pl.Expr:
    """Return a power of two, exactly."""
    return pl.lit(2.0).pow(exponent)


def _sum_integers(column: pl.Expr, measure: Measure, *, unsigned: bool) -> pl.Expr:
    shift = measure.step_exponent
    wide = pl.UInt64 if unsigned else pl.Int64
    x = column.cast(wide)
    if shift <= 0:
        # Beyond these limits the shifted value is beyond 2**62, and so beyond every bound.
        shift = min(-shift, 62)
        x = x.clip(pl.lit(0 if unsigned else -(_FAR >> shift), wide), pl.lit(_FAR >> shift, wide))
        return _clipped(x.cast(pl.Int64) * (1 << shift), measure)
    if shift > (63 if unsigned else 62):
        # |x| <= 2**shift: rounding half to even gives -1, 0 or 1; one half itself gives 0.
        half = 1 << (shift - 1)
        above = (x > pl.lit(half, wide)) if half < (2**64 if unsigned else 2**63) else (x != x)
        below = (x < pl.lit(-half, wide)) if not unsigned and half < 2**63 else (x != x)
        return _clipped(above.cast(pl.Int64) - below.cast(pl.Int64), measure)
    floor = x // pl.lit(1 << shift, wide)
    rest = x - floor * pl.lit(1 << shift, wide)
    tie = pl.lit(1 << (shift - 1), wide)
    up = (rest > tie) | ((rest == tie) & (floor % 2 != 0))
    # Clipped before the rounding, since (2**64 - 1) / 2 rounds to 2**63, which Int64 lacks.
    return _clipped(floor.cast(pl.Int64).clip(upper_bound=_FAR) + up.cast(pl.Int64), measure)


def _sum_wide(column: pl.Expr, measure: Measure, dtype: pl.DataType) -> pl.Expr:
    """Return the contribution of integers of 128 bits, between bounds that int64 does not hold: steps are above 1."""
    x = column.to_physical() if isinstance(dtype, pl.Decimal) else column
    if dtype == pl.UInt128:
        x = x.clip(upper_bound=pl.lit(2**127 - 1, pl.UInt128)).cast(pl.Int128)
    step = 1 << measure.step_exponent
    # What is far beyond the bounds is taken for a step beyond, which its rounding cannot make too large.
    x = x.clip(pl.lit((measure.lower - 1) * step, pl.Int128), pl.lit((measure.upper + 1) * step, pl.Int128))
    floor = x // pl.lit(step, pl.Int128)
    rest = x - floor * pl.lit(step, pl.Int128)
    tie = pl.lit(step >> 1, pl.Int128)
    up = (rest > tie) | ((rest == tie) & (floor % 2 != 0))
    return _clipped(floor.cast(pl.Int64) + up.cast(pl.Int64), measure)
