"""What a command line asks for -> the queries of `dpfast.plan`."""

from __future__ import annotations

import csv
import datetime
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dpfast.cli.errors import CommandError, shortened
from dpfast.cli.files import FILE_SUFFIXES
from dpfast.errors import ParameterError

if TYPE_CHECKING:
    import polars as pl

    from dpfast.queries import Bins, ModeQuery, QuantileQuery, Query

__all__ = ["read_bins", "read_queries", "read_value", "split_values"]

_NOTHING = (
    "nothing is asked for; add --count, --sum COLUMN:LOW:HIGH or --mean COLUMN:LOW:HIGH, "
    "--quantile COLUMN:LOW:HIGH:Q,... or --mode COLUMN:CANDIDATE,..."
)
_MENDS = {
    "sum": "write [NAME=]COLUMN:LOW:HIGH, for example --sum dep_delay:-60:600",
    "mean": "write [NAME=]COLUMN:LOW:HIGH, for example --mean dep_delay:-60:600",
    "quantile": "write [NAME=]COLUMN:LOW:HIGH:Q,Q,..., for example --quantile dep_delay:-60:600:0.5,0.9",
    "mode": "write [NAME=]COLUMN:CANDIDATE,CANDIDATE,..., for example --mode dest:IAH,MIA",
}


def read_queries(
    given: Mapping[str, Any], schema: Mapping[str, Any] | None, casts: Mapping[str, Any]
) -> dict[str, Query]:
    """Return the queries by name; of the files only schemas are read, and only for candidates of modes.

    Raises
    ------
    DpfastError
        Something cannot be read as a query, or nothing is asked for.

    """
    import dpfast as dpf
    from dpfast.aggregation.sources import open_source

    queries: dict[str, Query] = {}
    if given["count"] is not None:
        if given["count"].lower().endswith(FILE_SUFFIXES):
            raise CommandError(
                f"--count took the file {given['count']!r} for its name; write FILES first, or --count NAME"
            )
        queries[given["count"]] = dpf.count()
    columns: Mapping[str, pl.DataType] = {}
    if given["modes"]:
        columns = open_source(list(given["files"]), schema=schema).cast(casts).schema()
    readers: dict[str, Callable[[str], tuple[str, Query]]] = {
        "sum": lambda text: _read_measure(text, "sum"),
        "mean": lambda text: _read_measure(text, "mean"),
        "quantile": _read_quantile,
        "mode": lambda text: _read_mode(text, columns),
    }
    for kind, read in readers.items():
        for text in given[f"{kind}s"]:
            name, query = read(text)
            if name in queries:
                raise CommandError(f"two queries are called {name!r}; name one of them: --{kind} NAME={text}")
            queries[name] = query
    if not queries:
        raise CommandError(_NOTHING)
    # Queries are keyword arguments of `dpfast.plan`, whose own parameters they must not be mistaken for.
    for name in queries.keys() & (inspect.signature(dpf.plan).parameters.keys() - {"queries"}):
        raise CommandError(f"a query cannot be called {name!r}; choose another name")
    return queries


def _unreadable(kind: str, text: str) -> CommandError:
    return CommandError(f"--{kind} {shortened(text)} cannot be read; {_MENDS[kind]}")


def _read_name(text: str, kind: str) -> tuple[str, str]:
    """Read ``[NAME=]REST``; candidates may have equal signs, and so a mode's name ends before the column's colon."""
    name, equals, rest = text.partition("=")
    if not equals or (kind == "mode" and ":" in name):
        return "", text
    if not name:
        raise _unreadable(kind, text)
    return name, rest


def _read_bounds(low: str, high: str, kind: str, text: str) -> tuple[float, float]:
    try:
        bounds = float(low), float(high)
    except ValueError:
        raise CommandError(f"the bounds of --{kind} {shortened(text)} are no numbers; {_MENDS[kind]}") from None
    if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] < bounds[1]):
        raise CommandError(
            f"the bounds of --{kind} {shortened(text)} must be finite, the lower one first; {_MENDS[kind]}"
        )
    return bounds


def _read_measure(text: str, kind: str) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:LOW:HIGH``."""
    import dpfast as dpf

    name, rest = _read_name(text, kind)
    column, *bounds = rest.rsplit(":", 2)
    if len(bounds) != 2 or not column:
        raise _unreadable(kind, text)
    ask = dpf.sum if kind == "sum" else dpf.mean
    return name or f"{column}_{kind}", ask(column, bounds=_read_bounds(bounds[0], bounds[1], kind, text))


def _read_quantile(text: str) -> tuple[str, QuantileQuery]:
    """Read ``[NAME=]COLUMN:LOW:HIGH:Q,Q,...``; a single Q is one number, whose column has the query's own name."""
    import dpfast as dpf

    name, rest = _read_name(text, "quantile")
    column, *others = rest.rsplit(":", 3)
    if len(others) != 3 or not column:
        raise _unreadable("quantile", text)
    low, high, written = others
    bounds = _read_bounds(low, high, "quantile", text)
    try:
        quantiles = [float(q) for q in written.split(",")]
        query = dpf.quantile(column, quantiles if len(quantiles) > 1 else quantiles[0], bounds=bounds)
    except (ValueError, ParameterError):
        allowed = "must be different numbers from 0 to 1"
        raise CommandError(f"the quantiles of --quantile {shortened(text)} {allowed}; {_MENDS['quantile']}") from None
    return name or f"{column}_quantile", query


def _read_mode(text: str, schema: Mapping[str, pl.DataType]) -> tuple[str, ModeQuery]:
    """Read ``[NAME=]COLUMN:CANDIDATE,...``, candidates by the column's dtype, quoted as in a CSV file if need be."""
    import dpfast as dpf

    name, rest = _read_name(text, "mode")
    column, written = split_values(rest, schema)
    if not column or not all(written) or not written:
        raise _unreadable("mode", text)
    # A column that is not there is the plan's to refuse.
    dtype = schema.get(column)
    try:
        candidates = [read_value(entry, dtype) for entry in written]
    except ValueError:
        raise CommandError(
            f"the candidates of --mode {shortened(text)} must be values of the column's dtype {dtype}: whole numbers, "
            "dates as 2024-02-29, or true and false"
        ) from None
    try:
        query = dpf.mode(column, candidates=candidates)
    except ParameterError as error:
        raise CommandError(f"--mode {shortened(text)} does not serve: {error}") from None
    return name or f"{column}_mode", query


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
        edges = [_number(str(edge)) for edge in written]
    except ValueError:
        raise CommandError(f"the edges of {what} are no numbers; {mend}") from None
    try:
        return dpf.bins(column, edges)
    except ParameterError:
        raise CommandError(f"{what} does not serve; {mend}") from None


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def read_value(text: str, dtype: pl.DataType | None) -> str | int | bool | datetime.date:
    """Read a value of a column, or raise ValueError."""
    import polars as pl

    if dtype is None or isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return text
    if dtype.is_integer():
        return int(text)
    if dtype == pl.Boolean:
        return ("false", "true").index(text.strip().lower()) == 1
    if dtype == pl.Date:
        return datetime.date.fromisoformat(text.strip())
    return text
