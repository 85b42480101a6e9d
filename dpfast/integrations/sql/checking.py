"""A small public table, on which a database shows that it computes as it must.

Databases round halves up, to even or away; they order, merge and pad strings by collations; they hold NaN for null, for
the largest number, or for 0. The template steps around all that was met so far; this table finds what was not, in a
later version or under a setting that nobody thought of. It goes through the very template that the data goes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

import polars as pl

from dpfast.aggregation.protocols import GroupQuery
from dpfast.errors import DpfastError
from dpfast.integrations.sql.dialects import SQLITE, Dialect
from dpfast.queries import Bins, Measure

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
    *(Measure("values", "x"), Measure("values", "i"), Measure("rows")),
)
_EDGES = Bins("x", (-1.5, 0.0, 0.5, 2.5, 1e300))

_PEOPLE = tuple(
    (unit, key, 7 * place % 5)
    for unit in ("p", "P", "p ", None, "é")
    for place, key in enumerate(("a", "A", "a ", None, "", "a", "b", "b", "b", "é"))
)
_BOUNDED = GroupQuery(("k",), (Measure("rows"), Measure("sum", "i", 0, -1, 3, 0)), "u", 3, 2, None, b"\x01\x7f\xff")
#: Units, rows and sums by key: the figures of `_BOUNDED`, by which a known text's md5 is checked as well.
_BOUNDED_FIGURES = {
    None: (2, 2, 2),
    "": (2, 2, 6),
    "A": (2, 2, 4),
    "a": (2, 4, 0),
    "a ": (1, 1, 3),
    "b": (3, 6, 12),
}


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
    _check_bounding(dialect, ask)


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


def _check_strings(dialect: Dialect, ask: Ask) -> None:
    schema = pl.Schema({"k": pl.String})
    values = [*_STRINGS, None]
    found = ask(_table(dialect, schema, [(value,) for value in values]), schema, GroupQuery(("k",), (Measure("rows"),)))
    counts = {row["key0"]: row["measure0"] for row in found.to_dicts()}
    for value in values:
        if counts.get(value) != 1:
            raise _differs(dialect, "the string", value)


def _check_bounding(dialect: Dialect, ask: Ask) -> None:
    schema = pl.Schema({"u": pl.String, "k": pl.String, "i": pl.Int64})
    found = ask(_table(dialect, schema, _PEOPLE), schema, _BOUNDED)
    figures = {row["key0"]: (row["units"], row["measure0"], row["measure1"]) for row in found.to_dicts()}
    for key in sorted({*figures, *_BOUNDED_FIGURES}, key=str):
        if figures.get(key) != _BOUNDED_FIGURES.get(key):
            raise _differs(dialect, "what units keep of the key", key)


def _differs(dialect: Dialect, kind: str, value: float | str | None) -> DpfastError:
    return DpfastError(
        f"{dialect.name} computes otherwise than dpfast for {kind} {value!r} of a public table of constants: its "
        'version or a setting is not known to be right; let rows be read: engine="rows"'
    )


def _bin_of(x: float) -> int | None:
    place = sum(edge <= x for edge in _EDGES.edges) - 1
    return place if 0 <= place < len(_EDGES.labels) else None


def _contribution(measure: Measure, x: float | None, i: int | None) -> int:
    """Return what `Measure` says, in fractions."""
    if measure.kind == "rows":
        return 1
    value = x if measure.column == "x" else i
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return 0
    if measure.kind == "values":
        return 1
    infinite = isinstance(value, float) and math.isinf(value)
    bound = measure.upper if value > 0 else measure.lower
    steps = bound if infinite else round(Fraction(value) / Fraction(2) ** measure.step_exponent)
    return min(max(steps, measure.lower), measure.upper) - measure.centre


def _table(dialect: Dialect, schema: pl.Schema, rows: Iterable[tuple[object, ...]]) -> str:
    """Return constants as what may follow FROM."""
    selects = []
    for row in rows:
        cells = [
            f"{_constant(dialect, value, dtype)} AS {name}"
            for value, (name, dtype) in zip(row, schema.items(), strict=True)
        ]
        selects.append(f"SELECT {', '.join(cells)}")
    return f"(\n{' UNION ALL '.join(selects)}\n)"


def _constant(dialect: Dialect, value: object, dtype: pl.DataType) -> str:
    if dtype == pl.String:
        null = f"CAST(NULL AS {dialect.text})"
        return null if value is None else dialect.constant.format(str(value).encode().hex())
    name = dialect.double if dtype == pl.Float64 else dialect.bigint
    text = "NULL" if value is None else f"'{value!r}'"
    if isinstance(value, float) and not math.isfinite(value):
        if dialect is SQLITE:
            text = "NULL" if math.isnan(value) else f"'{math.copysign(1, value):g}e999'"
        else:
            text = "'NaN'" if math.isnan(value) else f"'{'-' * (value < 0)}Infinity'"
    return f"CAST({text} AS {name})"
