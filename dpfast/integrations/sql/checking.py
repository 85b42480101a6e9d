"""A small public table, on which a database shows that it computes as it must.

Databases round halves up, to even or away; they order, merge and pad strings by collations; they hold NaN for null, for
the largest number, or for 0. The template steps around all that was met so far; this table finds what was not, in a
later version or under a setting that nobody thought of. It goes through the very template that the data goes through.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import polars as pl

from dpfast.aggregation.protocols import GroupQuery
from dpfast.columns.edges import floats_of
from dpfast.errors import DpfastError
from dpfast.integrations.sql.dialects import SPARK, SQLITE, Dialect, Kind
from dpfast.queries import Bins, Measure, matches_measure, product_measure
from dpfast.rows.filters import Column, Comparison, Filter

__all__ = ["check_figures"]

Ask: TypeAlias = "Callable[[str, pl.Schema, GroupQuery], pl.DataFrame]"

_NAN, _INF = math.nan, math.inf
_FLOATS = (
    *(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 0.75, -0.25, 0.49999999999999994, 2.5000000000000004, -1.4999999999999998),
    *(
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        2.2250738585072014e-308,
        1e308,
        -1e308,
        1e15,
        -1e15,
        12345.678,
        0.1,
        _INF,
        -_INF,
        _NAN,
    ),
)
_INTEGERS = (0, 1, -1, 2, 3, -3, 5, 6, -6, 7, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62), 2**62 + 1, 2**63 - 1, -(2**63))
_STRINGS = ("a", "A", "a ", "", " a", "é", "e\u0301", "ß", "ss", "1", "01", "%", "_", "'", '"', "\\", "\\x41", "a\nb")

_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _between(name: str, *, above: bool) -> Filter:
    """Return limits next to which engines may err, that pass themselves or not."""
    column, low, high = Column(name), Fraction(1, 2), 2**53 + 1
    return (column > low) & (column < high) if above else column.between(low, high)


_NUMBERS = (
    *(
        Measure("sum", column, exponent, lower, upper, centre)
        for column in ("x", "i")
        for exponent, lower, upper, centre in (
            (0, -4, 4, 0),
            (1, -3, 3, 0),
            (-2, -(2**23), 2**23, 5),
            (-30, 0, 2**23, 2**22),
            (40, -9, 2**23, 0),
            (62, -2, 2, 0),
            (63, -2, 2, 1),
        )
    ),
    *(Measure("values", "x"), Measure("values", "i"), Measure("rows"), Measure("units")),
    *(
        product_measure(*2 * (Measure("sum", column, exponent, -(2**22), 2**23, 2**21),))
        for column, exponent in (("x", -20), ("i", 31))
    ),
    *(matches_measure(_between(column, above=above)) for column in ("x", "i") for above in (True, False)),
)
#: What units contribute, each number being a unit's only one.
_OF_UNITS = tuple(
    Measure("unit_sum", column, exponent, lower, upper, factors=(Measure("addend", column, finer, -(2**47), 2**47),))
    for column in ("x", "i")
    for exponent, finer, lower, upper in ((0, 0, -4, 4), (1, -10, -3, 3), (40, 29, -(2**23), 2**23))
)
_EDGES = Bins("x", (-1.5, 0.0, 0.5, 2.5, 1e300))

_PLACES = 4
#: Columns of other kinds: their dtype, and what is in them. Not every engine has each kind.
_KINDS: dict[Kind, tuple[pl.DataType, tuple[object, ...]]] = {
    "boolean": (pl.Boolean(), (True, False)),
    "date": (
        pl.Date(),
        (
            date(1970, 1, 1),
            date(1969, 12, 31),
            date(2020, 2, 29),
            date(1, 1, 1),
            date(9999, 12, 31),
            date(1582, 10, 10),
        ),
    ),
    "timestamp": (
        pl.Datetime("us"),
        (
            datetime(1970, 1, 1),
            datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(2038, 1, 19, 3, 14, 8, 1),
            datetime(1, 1, 1),
            datetime(9999, 12, 31, 23, 59, 59, 999_999),
        ),
    ),
    "decimal": (
        pl.Decimal(18, _PLACES),
        tuple(map(Decimal, ("0", "0.0001", "-0.0001", "1.5", "99999999999999.9999", "-99999999999999.9999"))),
    ),
    "unsigned": (pl.UInt64(), (0, 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)),
}

#: Everybody has the same rows: of equal contributions, groups of equal sums, and keys that only their bytes tell apart.
_PEOPLE = ("p", "P", "p ", None, "é")
_HELD = (
    *(("a", 3), ("A", 0), ("a ", 1), (None, 1), ("", 2), ("a", 3)),
    *(("b", 2), ("b", 2), ("b", 0), ("é", 1)),
)
_SUM = Measure("sum", "i", 0, -1, 3, 0)
_PUBLIC = pl.DataFrame({"key0": ["a", None, "b", "z"]})
_ADDED = Measure("unit_sum", "i", 1, -2, 2, factors=(Measure("addend", "i", 0, -(2**47), 2**47),))
_MEAN = Measure("unit_mean", "i", 0, 1, 9, 3, factors=(Measure("sum", "i", 0, 1, 9, 3),))
#: Units, sums and rows by key: the figures of two queries, by which a known text's md5 is checked as well; then what
#: units contribute, by all rows of the groups that they keep.
_BOUNDED: tuple[tuple[GroupQuery, dict[str | None, tuple[int, ...]]], ...] = (
    (
        GroupQuery(("k",), (_SUM, Measure("rows")), "u", 3, 2, None, b"\x01\x7f\xff"),
        {"": (2, 4, 2), "A": (2, 0, 2), "a ": (1, 1, 1), "a": (2, 12, 4), "b": (3, 8, 6), None: (2, 2, 2)},
    ),
    (
        GroupQuery(("k",), (_SUM, Measure("rows")), "u", 2, 2, _PUBLIC, b"\x01\x7f\xff"),
        {"a": (4, 24, 8), "b": (2, 4, 4), None: (2, 2, 2)},
    ),
    (
        GroupQuery(("k",), (_ADDED, _MEAN, Measure("unit_values", "i"), Measure("rows")), "u", 9, 1),
        {
            **dict.fromkeys(("a ", None, "é"), (4, 4, -8, 4, 4)),
            "a": (4, 8, 0, 4, 4),
            "A": (4, 0, -8, 4, 4),
            "": (4, 4, -4, 4, 4),
            "b": (4, 8, -4, 4, 4),
        },
    ),
)


def check_figures(dialect: Dialect, ask: Ask) -> None:
    """Refuse a database that differs from what dpfast computes by a bit.

    Parameters
    ----------
    dialect
        The engine's words.
    ask
        Returns the groups of a query over what may follow FROM.

    Raises
    ------
    DpfastError
        The row of the public table is named on which it differs.

    """
    _check_numbers(dialect, ask)
    _check_strings(dialect, ask)
    _check_kinds(dialect, ask)
    for query, figures in _BOUNDED:
        _check_bounding(dialect, ask, query, figures)


def _check_numbers(dialect: Dialect, ask: Ask) -> None:
    rows: list[tuple[float | None, int | None]] = [(x, None) for x in _FLOATS]
    rows += [(None, i) for i in _INTEGERS] + [(None, None)]
    schema = pl.Schema({"row": pl.Int64, "x": pl.Float64, "i": pl.Int64})
    source = _table(dialect, schema, [(place, x, i) for place, (x, i) in enumerate(rows)])
    found = ask(source, schema, GroupQuery(("row", _EDGES), _NUMBERS))
    figures = {row["key0"]: row for row in found.to_dicts()}
    for place, (x, i) in enumerate(rows):
        given: float | None = x if i is None else i
        row = figures.get(place, {})
        number = None if x is None or math.isnan(x) else _bin_of(x)
        expected = [number, 1, *(_contribution(measure, x, i) for measure in _NUMBERS)]
        computed = [row.get("key1"), row.get("units"), *(row.get(f"measure{m}") for m in range(len(_NUMBERS)))]
        if expected != computed:
            raise _differs(dialect, "the number", given)
    found = ask(source, schema, GroupQuery(("row",), _OF_UNITS, "row"))
    figures = {row["key0"]: row for row in found.to_dicts()}
    for place, (x, i) in enumerate(rows):
        added = [figures.get(place, {}).get(f"measure{m}") for m in range(len(_OF_UNITS))]
        if added != [_of_unit(measure, x, i) for measure in _OF_UNITS]:
            raise _differs(dialect, "the sum of", x if i is None else i)


def _check_strings(dialect: Dialect, ask: Ask) -> None:
    schema = pl.Schema({"k": pl.String, "i": pl.Int64})
    values = [*_STRINGS, None]
    rows = [(value, 3) for value in values for _ in range(2)]
    found = ask(_table(dialect, schema, rows), schema, GroupQuery(("k",), (_SUM, Measure("rows"))))
    figures = {row["key0"]: (row["units"], row["measure0"], row["measure1"]) for row in found.to_dicts()}
    for value in values:
        if figures.get(value) != (2, 6, 2):
            raise _differs(dialect, "two rows of the string", value)


def _check_kinds(dialect: Dialect, ask: Ask) -> None:
    """Look at the other kinds that the engine knows: each value is a key, and is counted or summed."""
    kinds = [kind for kind in _KINDS if kind in dialect.values and not (kind == "boolean" and dialect is SQLITE)]
    if not kinds:
        return
    schema = pl.Schema([("row", pl.Int64()), *((kind, _KINDS[kind][0]) for kind in kinds)])
    values = [(kind, value) for kind in kinds for value in (*_KINDS[kind][1], None)]
    rows = [
        (place, *(value if kind == other else None for other in kinds)) for place, (kind, value) in enumerate(values)
    ]
    summed = [Measure("sum", "boolean", 0, 0, 1, 0)] if "boolean" in kinds else []
    if "unsigned" in kinds:
        summed += [Measure("sum", "unsigned", *bounds) for bounds in ((0, 0, 9, 1), (40, 0, 2**23, 0), (62, 0, 3, 0))]
    measures = (*(Measure("values", kind) for kind in kinds), *summed)
    found = ask(_table(dialect, schema, rows), schema, GroupQuery(("row", *kinds), measures))
    # A wrong engine may say a day that Python has no date for.
    found = found.with_columns(pl.col(pl.Date).to_physical(), pl.col(pl.Datetime).dt.timestamp("us"))
    figures = {row["key0"]: [*map(_number, row.values())][1:] for row in found.to_dicts()}
    for place, (kind, value) in enumerate(values):
        counted = [int(kind == other and value is not None) for other in kinds]
        number = int(value) if isinstance(value, int) else None
        sums = [_contribution(measure, None, number if kind == measure.column else None) for measure in summed]
        if figures.get(place) != [*map(_number, rows[place][1:]), 1, *counted, *sums]:
            raise _differs(dialect, f"the {kind}", value)


def _number(value: object) -> object:
    """Return days or microseconds since 1970 of a date or timestamp, or last places; an engine may say these, too."""
    if isinstance(value, Decimal):
        return int(value.scaleb(_PLACES))
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def _check_bounding(dialect: Dialect, ask: Ask, query: GroupQuery, expected: dict[str | None, tuple[int, ...]]) -> None:
    people, held = pl.Schema({"u": pl.String}), pl.Schema({"k": pl.String, "i": pl.Int64})
    one, other = _table(dialect, people, [(unit,) for unit in _PEOPLE]), _table(dialect, held, _HELD)
    source = f"(SELECT u, k, i FROM {one} AS dpf_people CROSS JOIN {other} AS dpf_held)"
    found = ask(source, pl.Schema({**people, **held}), query)
    names = ["units", *(f"measure{m}" for m in range(len(query.measures)))]
    figures = {row["key0"]: tuple(row[name] for name in names) for row in found.to_dicts()}
    for key in sorted({*figures, *expected}, key=str):
        if figures.get(key) != expected.get(key):
            raise _differs(dialect, "what units keep of the key", key)


def _differs(dialect: Dialect, kind: str, value: object) -> DpfastError:
    shown = str(value) if isinstance(value, date) else repr(value)
    return DpfastError(
        f"{dialect.name} computes otherwise than dpfast for {kind} {shown} of a public table of constants: its "
        'version or a setting is not known to be right; let rows be read: engine="rows"'
    )


def _bin_of(x: float) -> int | None:
    place = sum(edge <= x for edge in floats_of(_EDGES.edges)) - 1
    return place if 0 <= place < len(_EDGES.labels) else None


def _contribution(measure: Measure, x: float | None, i: int | None) -> int:
    """Return what `Measure` says of one column, in fractions."""
    if measure.kind in ("rows", "units"):
        return 1
    value = x if measure.column == "x" else i
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return 0
    if measure.kind == "values":
        return 1
    if measure.condition is not None:
        tests = [test for test in measure.condition.tests() if isinstance(test, Comparison)]
        return measure.extremes[all(_OPERATORS[test.operator](value, test.value) for test in tests)]
    if measure.factors:
        root = _contribution(measure.factors[0], x, i)
        return math.floor(Fraction(root**2, 2**measure.shift) + Fraction(1, 2)) - measure.centre
    infinite = isinstance(value, float) and math.isinf(value)
    bound = measure.upper if value > 0 else measure.lower
    steps = bound if infinite else round(Fraction(value) / Fraction(2) ** measure.step_exponent)
    return min(max(steps, measure.lower), measure.upper) - measure.centre


def _of_unit(measure: Measure, x: float | None, i: int | None) -> int:
    """Return what a unit with one value adds, in fractions."""
    (factor,) = measure.factors
    shift = measure.step_exponent - factor.step_exponent
    steps = math.floor(Fraction(_contribution(factor, x, i), 2**shift) + Fraction(1, 2))
    return min(max(steps, measure.lower), measure.upper)


def _table(dialect: Dialect, schema: pl.Schema, rows: Iterable[tuple[object, ...]]) -> str:
    """Return constants as what may follow FROM: short, since most of a check's time goes into reading its text."""
    written: list[str] = []
    for row in rows:
        # The first row says what the columns are.
        cells = [
            "NULL" if value is None and written else _constant(dialect, value, dtype)
            for value, dtype in zip(row, schema.dtypes(), strict=True)
        ]
        written.append(f"({', '.join(cells)})")
    columns = ", ".join(schema)
    return f"(\nWITH dpf_given ({columns}) AS (VALUES {', '.join(written)}) SELECT {columns} FROM dpf_given\n)"


def _constant(dialect: Dialect, value: object, dtype: pl.DataType) -> str:
    if dtype == pl.String:
        null = f"CAST(NULL AS {dialect.text})"
        return null if value is None else dialect.constant.format(str(value).encode().hex())
    if dtype == pl.Boolean:
        return "CAST(NULL AS BOOLEAN)" if value is None else f"(1 = {int(value is True)})"
    if dtype in (pl.Date, pl.Datetime):
        name = "DATE" if dtype == pl.Date else "TIMESTAMP"
        # Spark's timestamps are moments.
        moment = "Z" if dialect is SPARK and dtype == pl.Datetime else ""
        return f"CAST(NULL AS {name})" if value is None else f"{name} '{value}{moment}'"
    if isinstance(dtype, pl.Decimal):
        return f"CAST({'NULL' if value is None else repr(str(value))} AS DECIMAL(18, {_PLACES}))"
    if dtype == pl.UInt64:
        return "CAST(NULL AS UBIGINT)" if value is None else f"CAST('{value}' AS UBIGINT)"
    name = dialect.double if dtype == pl.Float64 else dialect.bigint
    text = "NULL" if value is None else f"'{value!r}'"
    if isinstance(value, float) and not math.isfinite(value):
        if dialect is SQLITE:
            text = "NULL" if math.isnan(value) else f"'{math.copysign(1, value):g}e999'"
        else:
            text = "'NaN'" if math.isnan(value) else f"'{'-' * (value < 0)}Infinity'"
    return f"CAST({text} AS {name})"
