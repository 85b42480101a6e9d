"""What a row contributes to a measure, as SQL of int64; the same bits as `dpfast.aggregation.contributions`.

An engine may raise where float64 overflows or underflows (PostgreSQL) and where int64 overflows, and an error that
depends on a value is a leak: values are compared with the bounds before anything is computed of them, and tiny ones
are 0. What is left is scaled by a power of two, which is exact, and rounded by its floor and the rest, as every engine
rounds and casts in its own way.
"""

from __future__ import annotations

import sys
from fractions import Fraction

import polars as pl

from dpfast.columns.edges import floats_of
from dpfast.columns.values import values_of, whole_edges
from dpfast.errors import ParameterError
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.filters import Use, passes
from dpfast.integrations.sql.parameters import Parameters
from dpfast.queries import Bins, Measure

__all__ = ["bin_number", "contribution"]

_LARGEST_STEPS = 2**53
_INT64 = -(2**63), 2**63 - 1
_MOST_EDGES = 10_001


def contribution(measure: Measure, schema: pl.Schema, use: Use, dialect: Dialect, parameters: Parameters) -> str:
    """Return the int64 that a row adds to a measure; never null.

    Parameters
    ----------
    measure
        Of a kind that counts neither rows nor units.
    schema
        The dtypes of the columns.
    use
        Returns a column by its name, in the form of ``Dialect.values``, and what it holds.
    dialect, parameters
        The engine's words, and where values are bound.

    """
    missing = " OR ".join(_missing(*use(name)[:2], dialect) for name in measure.needed) or "1 = 0"
    if measure.condition is not None:
        holds = passes(measure.condition, schema, use, dialect, parameters)
        failing, fulfilling = measure.extremes
        return f"CASE WHEN {missing} THEN 0 WHEN {holds} THEN {fulfilling} ELSE {failing} END"
    if measure.kind == "product":
        first, second = (contribution(factor, schema, use, dialect, parameters) for factor in measure.factors)
        product = _shortened(f"({first}) * ({second})", measure.shift, dialect)
        return f"CASE WHEN {missing} THEN 0 ELSE {_minus(product, measure)} END"
    value, kind, _ = use(str(measure.column))
    if measure.kind == "values":
        return f"CASE WHEN {missing} THEN 0 ELSE 1 END"
    if measure.kind == "bins":
        return f"CASE WHEN {missing} THEN 0 WHEN {_inside(measure, value, dialect, parameters)} THEN 1 ELSE 0 END"
    if kind == "string":
        raise ParameterError("measure", kind, "a sum of numbers, dates or timestamps")
    if not -_LARGEST_STEPS <= measure.lower <= measure.upper <= _LARGEST_STEPS:
        raise ParameterError("measure", (measure.lower, measure.upper), "bounds of at most 2**53 steps")
    low, high = measure.lower - measure.centre, measure.upper - measure.centre
    if kind == "float":
        cases = _float_cases(measure, value, dialect, parameters)
    else:
        cases = _integer_cases(measure, value, dialect, unsigned=kind == "unsigned")
    above, below, steps = cases
    clipped = (f" WHEN {above} THEN {high}" if above else "") + (f" WHEN {below} THEN {low}" if below else "")
    return f"CASE WHEN {missing} THEN 0{clipped}{steps} END"


def _inside(measure: Measure, value: str, dialect: Dialect, parameters: Parameters) -> str:
    """Return the condition that a number lies in the only bin, of which an end may be infinite."""
    low, high = measure.edges
    if measure.ticks:
        above = _compared(value, ">=", int(low), *_INT64) or "1 = 0"
        return f"{above} AND {_compared(value, '<=', int(high) - 1, *_INT64) or '1 = 0'}"
    x = f"CAST({value} AS {dialect.double})"
    ends = [f"{x} >= {parameters.bind(low, 'double')}"] if low > -sys.float_info.max else []
    ends += [f"{x} < {parameters.bind(high, 'double')}"] if high <= sys.float_info.max else []
    return " AND ".join(ends) or "1 = 1"


def _missing(value: str, kind: Kind, dialect: Dialect) -> str:
    missing = f"{value} IS NULL"
    return f"{missing} OR {dialect.is_nan.format(value)}" if kind == "float" and dialect.is_nan else missing


def _shortened(product: str, shift: int, dialect: Dialect) -> str:
    """Return ``floor((product + 2**shift / 2) / 2**shift)`` of a product below 2**48 in magnitude.

    Engines divide towards zero: a multiple of the divisor is added, so that nothing is below zero.
    """
    if not shift:
        return product
    above = 2**25
    return f"({dialect.divided.format(f'{product} + {2 ** (shift - 1) + above * 2**shift}', 2**shift)}) - {above}"


def _minus(steps: str, measure: Measure) -> str:
    return f"{steps} - ({measure.centre})" if measure.centre else steps


def _float_cases(measure: Measure, x: str, dialect: Dialect, parameters: Parameters) -> tuple[str, str, str]:
    """Return what is above the bounds, what is below, and the rest of the CASE, of float64."""
    exponent = measure.step_exponent
    if not -960 <= exponent <= 1020:
        raise ParameterError("step_exponent", exponent, "from -960 to 1020")
    step = Fraction(2) ** exponent

    def bind(number: Fraction) -> str:
        # Beyond the largest float there are only infinities, which are clipped like it.
        largest = Fraction(sys.float_info.max)
        return parameters.bind(float(min(max(number, -largest), largest)), "double")

    above, below = f"{x} >= {bind(measure.upper * step)}", f"{x} <= {bind(measure.lower * step)}"
    # A quarter of a step is 0; the product of what is left with the scale is a normal float.
    tiny = f"{x} > {bind(-step / 4)} AND {x} < {bind(step / 4)}"
    y = f"({x} * {bind(1 / step)})"
    floor = dialect.floor.format(y)
    rest = f"({y} - {floor})"
    # The rest is exact, or, for a y between -1/2 and 0 where 0 is right, at least 1/2, and so rounded up to 0.
    odd = f"{floor} % 2 <> 0"
    rounded = f"{floor} + CASE WHEN {rest} + {rest} > 1 OR ({rest} + {rest} = 1 AND {odd}) THEN 1 ELSE 0 END"
    return above, below, f" WHEN {tiny} THEN {-measure.centre} ELSE {_minus(rounded, measure)}"


def _integer_cases(measure: Measure, x: str, dialect: Dialect, *, unsigned: bool) -> tuple[str, str, str]:
    """Return the same of integers, which never go through float64."""
    shift = measure.step_exponent
    least, largest = (0, 2**64 - 1) if unsigned else _INT64
    if shift <= 0:
        shift = -shift
        high, low = -(-measure.upper >> shift), measure.lower >> shift
        # Strictly between these, x is 0 or its steps are within 2**53.
        scaled = f"{_number(x, unsigned)} * {2 ** min(shift, 62)}"
        steps = f" ELSE {_minus(scaled, measure)}"
    else:
        high, low = measure.upper << shift, measure.lower << shift
        steps = f" ELSE {_minus(_shifted(x, shift, dialect, unsigned=unsigned), measure)}"
    above = _compared(x, ">=", high, least, largest)
    below = _compared(x, "<=", low, least, largest)
    return above, below, steps


def _number(x: str, unsigned: bool) -> str:
    """Return x as int64, where it is known to fit, or is not reached."""
    return f"CAST({x} AS BIGINT)" if unsigned else x


def _compared(x: str, sign: str, number: int, least: int, largest: int) -> str:
    """Return a comparison with an integer of any size; nothing where no x fulfils it."""
    if sign == ">=":
        if number > largest:
            return ""
        return "1 = 1" if number <= least else f"{x} >= {number}"
    if number < least:
        return ""
    # The smallest int64 is no literal.
    return "1 = 1" if number >= largest else f"{x} < {number + 1}"


def _shifted(x: str, shift: int, dialect: Dialect, *, unsigned: bool) -> str:
    """Return ``round_half_even(x / 2**shift)``."""
    if shift > 64:
        return "0"
    if unsigned:
        x = f"CAST({x} AS HUGEINT)"
    elif shift > 62:
        # |x| is at most 2**63: beyond one half in magnitude it is 1, and one half itself is 0.
        half = 2 ** (shift - 1)
        return "0" if shift > 63 else f"CASE WHEN {x} > {half} THEN 1 WHEN {x} < {-half} THEN -1 ELSE 0 END"
    step = 2**shift
    rest = f"((({x} % {step}) + {step}) % {step})"
    floor = f"({dialect.divided.format(f'{x} - {rest}', step)})"
    rounded = (
        f"{floor} + CASE WHEN {rest} > {step // 2} OR ({rest} = {step // 2} AND {floor} % 2 <> 0) THEN 1 ELSE 0 END"
    )
    return f"CAST({rounded} AS {dialect.bigint})" if unsigned else f"({rounded})"


def bin_number(bins: Bins, value: str, dtype: pl.DataType, dialect: Dialect, parameters: Parameters) -> str:
    """Return the number of the bin that a number lies in, from 0, null for none: a search by halves.

    NaN and null end in the last place, which is no bin: engines hold NaN for the largest number, or for null, or for
    unequal to everything, and a comparison with null is not true.
    """
    if len(bins.edges) > _MOST_EDGES:
        raise ParameterError("edges", len(bins.edges), f"at most {_MOST_EDGES} for an engine", 'write engine="rows"')
    ticks = whole_edges(values_of(dtype), bins.edges, bins.column)
    x = f"CAST({value} AS {dialect.double})" if ticks is None else value
    floats = [] if ticks is not None else [parameters.bind(edge, "double") for edge in floats_of(bins.edges)]

    def below(place: int) -> str:
        if ticks is None:
            return f"{x} < {floats[place]}"
        return _compared(x, "<=", ticks[place] - 1, *_INT64) or "1 = 0"

    def search(first: int, last: int) -> str:
        """Return the place among those from ``first`` to ``last``, place p being below edge p."""
        if first == last:
            return "NULL" if first in (0, len(bins.edges)) else str(first - 1)
        middle = (first + last) // 2
        return f"CASE WHEN {below(middle)} THEN {search(first, middle)} ELSE {search(middle + 1, last)} END"

    return f"CAST({search(0, len(bins.edges))} AS {dialect.bigint})"
