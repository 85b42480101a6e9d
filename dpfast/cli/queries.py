"""What a command line asks for -> the queries of `dpfast.plan`."""

from __future__ import annotations

import csv
import datetime
import inspect
import math
import re
import zoneinfo
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from dpfast.cli.errors import CommandError, described, shortened
from dpfast.cli.files import FILE_SUFFIXES
from dpfast.cli.filters import read_filters
from dpfast.cli.values import Plain, find_bounds, find_edges, read_plain, read_value
from dpfast.errors import ParameterError

if TYPE_CHECKING:
    import polars as pl

    from dpfast.queries import Bins, QuantileQuery, Query

__all__ = ["read_bins", "read_queries", "split_values"]

#: Returns the data's columns; files are opened if it is called.
Columns: TypeAlias = "Callable[[], Mapping[str, pl.DataType]]"

_NOTHING = (
    "nothing is asked for; add --count, --units, --sum COLUMN:LOW:HIGH or --mean COLUMN:LOW:HIGH, "
    "--proportion CONDITION, --quantile COLUMN:LOW:HIGH:Q,... or --mode COLUMN:CANDIDATE,..."
)
_MENDS = {
    "sum": "write [NAME=]COLUMN:LOW:HIGH, for example --sum dep_delay:-60:600 or --sum waited:0s:90m; "
    "COLUMN:auto has bounds chosen privately",
    "mean": "write [NAME=]COLUMN:LOW:HIGH, for example --mean dep_delay:-60:600 or --mean day:2024-01-01:2024-12-31; "
    "COLUMN:auto has bounds chosen privately",
    "unit_sum": "write [NAME=]COLUMN:LOW:HIGH, for example --unit-sum dep_delay:0:5000",
    "unit_mean": "write [NAME=]COLUMN:LOW:HIGH, for example --unit-mean dep_delay:-60:600",
    "variance": "write [NAME=]COLUMN:LOW:HIGH, for example --variance dep_delay:-60:600",
    "std": "write [NAME=]COLUMN:LOW:HIGH, for example --std dep_delay:-60:600",
    "covariance": "write [NAME=]COLUMN:LOW:HIGH:OTHER:LOW:HIGH, for example --covariance "
    "distance:0:5000:air_time:0:700",
    "histogram": "write [NAME=]COLUMN:EDGE,EDGE,..., for example --histogram dep_delay:-60,0,15,60,600",
    "cdf": "write [NAME=]COLUMN:POINT,POINT,..., for example --cdf dep_delay:0,15,60,600",
    "count_distinct": "write [NAME=]COLUMN, for example --count-distinct dest",
    "top_k": "write [NAME=]COLUMN:K for values found in the data, or [NAME=]COLUMN:K:CANDIDATE,..., for example "
    "--top-k dest:2:ATL,IAH,MIA",
    "minimum": "write [NAME=]COLUMN:LOW:HIGH, for example --minimum dep_delay:-60:600",
    "maximum": "write [NAME=]COLUMN:LOW:HIGH, for example --maximum dep_delay:-60:600",
    "quantile": "write [NAME=]COLUMN:LOW:HIGH:Q,Q,..., for example --quantile dep_delay:-60:600:0.5,0.9",
    "mode": "write [NAME=]COLUMN:CANDIDATE,CANDIDATE,..., for example --mode dest:IAH,MIA",
}

#: A name before a condition, which has equal signs of its own.
_NAMED = re.compile(r"\s*([^\s=<>!\"'(),]+)\s*=(?!=)")

_BOTH_AUTO = re.compile(r"([^:]+):auto:([^:]+):auto")


def read_queries(
    given: Mapping[str, Any], read_columns: Callable[[], Mapping[str, pl.DataType]], written: dict[str, str]
) -> dict[str, Query]:
    """Return the queries by name; of the data only a schema is read, and only for candidates of modes.

    What stands on the command line for each of them is put into ``written``.

    Raises
    ------
    DpfastError
        Something cannot be read as a query, or nothing is asked for.

    """
    import dpfast as dpf

    queries: dict[str, Query] = {}
    for option, ask in (("count", dpf.count), ("units", dpf.units)):
        name = given[option]
        if name is None:
            continue
        if name.lower().endswith(FILE_SUFFIXES):
            raise CommandError(f"--{option} took the file {name!r} for its name; write FILES first, or --{option} NAME")
        if name.isdecimal():
            mend = f"write --{option} alone, or --{option} NAME; a preview's made-up units are --made-up-units {name}"
            raise CommandError(f"--{option} took the number {name} for its name; {mend}")
        if name in queries:
            raise CommandError(f"two queries are called {name!r}; name one of them: --{option} NAME")
        queries[name], written[name] = ask(), f"--{option}"
    found: list[Mapping[str, pl.DataType]] = []

    def columns() -> Mapping[str, pl.DataType]:
        if not found:
            found.append(read_columns())
        return found[0]

    readers: dict[str, Callable[[str], tuple[str, Query]]] = {
        "sum": lambda text: _read_measure(text, "sum", columns),
        "mean": lambda text: _read_measure(text, "mean", columns),
        "unit_sum": lambda text: _read_measure(text, "unit_sum", columns),
        "unit_mean": lambda text: _read_measure(text, "unit_mean", columns),
        "variance": lambda text: _read_measure(text, "variance", columns),
        "std": lambda text: _read_measure(text, "std", columns),
        "covariance": _read_covariance,
        "proportion": lambda text: _read_condition(text, "proportion"),
        "count_where": lambda text: _read_condition(text, "count_where"),
        "histogram": lambda text: _read_distribution(text, "histogram", columns),
        "cdf": lambda text: _read_distribution(text, "cdf", columns),
        "quantile": lambda text: _read_quantile(text, columns),
        "minimum": lambda text: _read_measure(text, "minimum", columns),
        "maximum": lambda text: _read_measure(text, "maximum", columns),
        "mode": lambda text: _read_mode(text, columns()),
        "top_k": lambda text: _read_mode(text, columns(), ranked=True),
        "count_distinct": _read_distinct,
    }
    for kind, read in readers.items():
        for text in given[f"{kind}s"]:
            name, query = read(text)
            option = kind.replace("_", "-")
            if name in queries:
                raise CommandError(f"two queries are called {name!r}; name one of them: --{option} NAME={text}")
            queries[name], written[name] = query, f"--{option} {shortened(text)}"
    if not queries:
        raise CommandError(_NOTHING)
    # Queries are keyword arguments of `dpfast.plan`, whose own parameters they must not be mistaken for.
    for name in queries.keys() & (inspect.signature(dpf.plan).parameters.keys() - {"queries"}):
        raise CommandError(f"a query cannot be called {name!r}; choose another name")
    return queries


def _unreadable(kind: str, text: str) -> CommandError:
    return CommandError(f"--{kind.replace('_', '-')} {shortened(text)} cannot be read; {_MENDS[kind]}")


def _read_name(text: str, kind: str) -> tuple[str, str]:
    """Read ``[NAME=]REST``; values may have equal signs, and so a name ends before the column's colon."""
    name, equals, rest = text.partition("=")
    if not equals or (kind in ("mode", "top_k") and ":" in name):
        return "", text
    if not name:
        raise _unreadable(kind, text)
    return name, rest


def _read_bounds(low: str, high: str, kind: str, text: str) -> tuple[float, float]:
    what = f"the bounds of --{kind.replace('_', '-')} {shortened(text)}"
    try:
        bounds = float(low), float(high)
    except ValueError:
        raise CommandError(f"{what} are no numbers, nor dates or times written alike; {_MENDS[kind]}") from None
    if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] < bounds[1]):
        raise CommandError(f"{what} must be finite, the lower one first; {_MENDS[kind]}")
    return bounds


def _find_bounds(rest: str, kind: str, text: str, columns: Columns) -> tuple[str, Any]:
    """Read ``COLUMN:LOW:HIGH``: two numbers, or two dates, moments, durations or times; or ``COLUMN:auto``."""
    automatic, _, last = rest.rpartition(":")
    if last == "auto" and automatic:
        return automatic, last
    found = find_bounds(rest)
    if found is None:
        column, *others = rest.rsplit(":", 2)
        if len(others) != 2 or not column:
            raise _unreadable(kind, text)
        return column, _read_bounds(others[0], others[1], kind, text)
    column, low, high = found
    if all(isinstance(read_plain(bound), (int, float)) for bound in (low, high)):
        return column, _read_bounds(low, high, kind, text)
    return column, tuple(_placed([read_plain(low), read_plain(high)], column, columns))


def _placed(values: list[Plain], column: str, columns: Columns) -> list[Plain]:
    """Return values as a column holds them: of moments, a date is midnight; those without a zone are in the column's.

    What does not fit is the query's to refuse.
    """
    import polars as pl

    if not any(isinstance(value, datetime.date) for value in values):
        return values
    dtype = columns().get(column)
    if not isinstance(dtype, pl.Datetime):
        return values
    zone = None if dtype.time_zone is None else zoneinfo.ZoneInfo(dtype.time_zone)
    placed = [
        datetime.datetime.combine(value, datetime.time()) if type(value) is datetime.date else value for value in values
    ]
    return [
        value.replace(tzinfo=zone) if isinstance(value, datetime.datetime) and value.tzinfo is None else value
        for value in placed
    ]


def _read_measure(text: str, kind: str, columns: Columns) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:LOW:HIGH``."""
    import dpfast as dpf

    name, rest = _read_name(text, kind)
    column, limits = _find_bounds(rest, kind, text, columns)
    of_units: dict[str, Callable[[], Query]] = {
        "unit_sum": lambda: dpf.sum(column, unit_bounds=limits),
        "unit_mean": lambda: dpf.mean(column, bounds=limits, per="unit"),
    }
    try:
        query = of_units[kind]() if kind in of_units else getattr(dpf, kind)(column, bounds=limits)
    except ParameterError as error:
        raise CommandError(f"--{kind.replace('_', '-')} {shortened(text)} does not serve: {described(error)}") from None
    return name or f"{column}_{kind}", query


def _read_covariance(text: str) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:LOW:HIGH:OTHER:LOW:HIGH``, or ``[NAME=]COLUMN:auto:OTHER:auto``."""
    import dpfast as dpf

    name, rest = _read_name(text, "covariance")
    automatic = _BOTH_AUTO.fullmatch(rest)
    if automatic is not None:
        column, other = automatic.groups()
        return name or f"{column}_{other}_covariance", dpf.covariance(column, other, bounds="auto", other_bounds="auto")
    column, *others = rest.rsplit(":", 5)
    if len(others) != 5 or not column or not others[2]:
        raise _unreadable("covariance", text)
    low, high, other, other_low, other_high = others
    bounds = _read_bounds(low, high, "covariance", text), _read_bounds(other_low, other_high, "covariance", text)
    try:
        query = dpf.covariance(column, other, bounds=bounds[0], other_bounds=bounds[1])
    except ParameterError as error:
        raise CommandError(f"--covariance {shortened(text)} does not serve: {described(error)}") from None
    return name or f"{column}_{other}_covariance", query


def _read_distribution(text: str, kind: str, columns: Columns) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:EDGE,EDGE,...``."""
    import dpfast as dpf

    name, rest = _read_name(text, kind)
    found = find_edges(rest)
    if found is None:
        if not rest.rpartition(":")[0]:
            raise _unreadable(kind, text)
        raise CommandError(
            f"the edges of --{kind} {shortened(text)} are no numbers, nor dates or times; {_MENDS[kind]}"
        )
    column, edges = found[0], _placed(found[1], found[0], columns)
    try:
        return name or f"{column}_{kind}", getattr(dpf, kind)(column, edges)
    except ParameterError as error:
        raise CommandError(f"--{kind} {shortened(text)} does not serve: {described(error)}; {_MENDS[kind]}") from None


def _read_condition(text: str, kind: str) -> tuple[str, Query]:
    """Read ``[NAME=]CONDITION``, a condition as that of ``--where``."""
    import dpfast as dpf

    option = f"--{kind.replace('_', '-')}"
    named = _NAMED.match(text)
    name, rest = ("", text) if named is None else (named[1], text[named.end() :])
    condition = read_filters((rest,), option)
    assert condition is not None
    try:
        query = dpf.proportion(condition) if kind == "proportion" else dpf.count(where=condition)
    except ParameterError as error:
        raise CommandError(f"{option} {shortened(text)} does not serve: {described(error)}") from None
    return name or "_".join((*condition.columns, kind.removesuffix("_where"))), query


def _read_quantile(text: str, columns: Columns) -> tuple[str, QuantileQuery]:
    """Read ``[NAME=]COLUMN:LOW:HIGH:Q,Q,...``; a single Q is one number, whose column has the query's own name."""
    import dpfast as dpf

    name, rest = _read_name(text, "quantile")
    bounded, _, written = rest.rpartition(":")
    column, bounds = _find_bounds(bounded, "quantile", text, columns)
    try:
        quantiles = [float(q) for q in written.split(",")]
        query = dpf.quantile(column, quantiles if len(quantiles) > 1 else quantiles[0], bounds=bounds)
    except (ValueError, ParameterError):
        allowed = "must be different numbers from 0 to 1"
        raise CommandError(f"the quantiles of --quantile {shortened(text)} {allowed}; {_MENDS['quantile']}") from None
    return name or f"{column}_quantile", query


def _read_distinct(text: str) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN``."""
    import dpfast as dpf

    name, column = _read_name(text, "count_distinct")
    if not column:
        raise _unreadable("count_distinct", text)
    return name or f"{column}_distinct", dpf.count_distinct(column)


def _read_mode(text: str, schema: Mapping[str, pl.DataType], *, ranked: bool = False) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:CANDIDATE,...``, candidates by the column's dtype, quoted as in a CSV file if need be.

    Of ranked ones, ``K:`` stands before the candidates; ``K`` alone is of values that are found in the data.
    """
    import dpfast as dpf

    kind = "top_k" if ranked else "mode"
    option = kind.replace("_", "-")
    name, rest = _read_name(text, kind)
    column, written = split_values(rest, schema)
    winners = 1
    if ranked and written:
        number, colon, first = written[0].partition(":")
        if not number.isdecimal() or (not colon and len(written) > 1):
            raise _unreadable(kind, text)
        winners = int(number)
        if column and not colon:
            return _read_found(name or f"{column}_top_{winners}", column, winners, text)
        written = [first, *written[1:]]
    if not column or not all(written) or not written:
        raise _unreadable(kind, text)
    # A column that is not there is the plan's to refuse.
    dtype = schema.get(column)
    try:
        candidates = [read_value(entry, dtype) for entry in written]
    except ValueError:
        raise CommandError(
            f"the candidates of --{option} {shortened(text)} must be values of the column's dtype {dtype}: "
            "numbers, dates as 2024-02-29, times as 2024-02-29T06:30, 06:30 or 90m, or true and false"
        ) from None
    try:
        if ranked:
            return name or f"{column}_top_{winners}", dpf.top_k(column, winners, candidates=candidates)
        return name or f"{column}_mode", dpf.mode(column, candidates=candidates)
    except ParameterError as error:
        raise CommandError(f"--{option} {shortened(text)} does not serve: {described(error)}") from None


def _read_found(name: str, column: str, winners: int, text: str) -> tuple[str, Query]:
    import dpfast as dpf

    try:
        return name, dpf.top_k(column, winners)
    except ParameterError as error:
        raise CommandError(f"--top-k {shortened(text)} does not serve: {described(error)}") from None


def split_values(text: str, columns: Iterable[str]) -> tuple[str, list[str]]:
    """Split ``COLUMN:VALUE,...``, values quoted as in a CSV file if need be.

    A column with a colon in its name is found by it, where there is one.
    """
    known = [column for column in columns if text.startswith(f"{column}:")]
    column = max(known, key=len, default=text.partition(":")[0])
    return column, next(csv.reader([text[len(column) + 1 :]]), [])


def read_bins(column: str, written: Iterable[object], what: str) -> Bins:
    """Read the edges of a column's bins."""
    import dpfast as dpf

    mend = "write two edges or more, increasing, as in --bins distance:0,500,1000"
    try:
        edges = [read_plain(str(edge)) for edge in written]
    except ValueError:
        raise CommandError(f"the edges of {what} are no numbers, nor dates or times; {mend}") from None
    try:
        return dpf.bins(column, edges)  # type: ignore[arg-type]  # of one kind, or refused
    except ParameterError:
        raise CommandError(f"{what} does not serve; {mend}") from None
