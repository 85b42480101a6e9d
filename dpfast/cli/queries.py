"""What a command line asks for -> the queries of `dpfast.plan`."""

from __future__ import annotations

import csv
import datetime
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dpfast.cli.errors import CommandError, shortened
from dpfast.cli.files import FILE_SUFFIXES
from dpfast.cli.filters import read_filters
from dpfast.errors import ParameterError

if TYPE_CHECKING:
    import polars as pl

    from dpfast.queries import Bins, ModeQuery, QuantileQuery, Query

__all__ = ["read_bins", "read_queries", "read_value", "split_values"]

_NOTHING = (
    "nothing is asked for; add --count, --units, --sum COLUMN:LOW:HIGH or --mean COLUMN:LOW:HIGH, "
    "--proportion CONDITION, --quantile COLUMN:LOW:HIGH:Q,... or --mode COLUMN:CANDIDATE,..."
)
_MENDS = {
    "sum": "write [NAME=]COLUMN:LOW:HIGH, for example --sum dep_delay:-60:600",
    "mean": "write [NAME=]COLUMN:LOW:HIGH, for example --mean dep_delay:-60:600",
    "variance": "write [NAME=]COLUMN:LOW:HIGH, for example --variance dep_delay:-60:600",
    "std": "write [NAME=]COLUMN:LOW:HIGH, for example --std dep_delay:-60:600",
    "covariance": "write [NAME=]COLUMN:LOW:HIGH:OTHER:LOW:HIGH, for example --covariance "
    "distance:0:5000:air_time:0:700",
    "histogram": "write [NAME=]COLUMN:EDGE,EDGE,..., for example --histogram dep_delay:-60,0,15,60,600",
    "cdf": "write [NAME=]COLUMN:POINT,POINT,..., for example --cdf dep_delay:0,15,60,600",
    "count_distinct": "write [NAME=]COLUMN, for example --count-distinct dest",
    "top_k": "write [NAME=]COLUMN:K:CANDIDATE,..., for example --top-k dest:2:ATL,IAH,MIA",
    "minimum": "write [NAME=]COLUMN:LOW:HIGH, for example --minimum dep_delay:-60:600",
    "maximum": "write [NAME=]COLUMN:LOW:HIGH, for example --maximum dep_delay:-60:600",
    "quantile": "write [NAME=]COLUMN:LOW:HIGH:Q,Q,..., for example --quantile dep_delay:-60:600:0.5,0.9",
    "mode": "write [NAME=]COLUMN:CANDIDATE,CANDIDATE,..., for example --mode dest:IAH,MIA",
}

#: A name before a condition, which has equal signs of its own.
_NAMED = re.compile(r"\s*([^\s=<>!\"'(),]+)\s*=(?!=)")


def read_queries(given: Mapping[str, Any], read_columns: Callable[[], Mapping[str, pl.DataType]]) -> dict[str, Query]:
    """Return the queries by name; of the data only a schema is read, and only for candidates of modes.

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
        if name in queries:
            raise CommandError(f"two queries are called {name!r}; name one of them: --{option} NAME")
        queries[name] = ask()
    columns: Mapping[str, pl.DataType] = {}
    if given["modes"] or given["top_ks"]:
        columns = read_columns()
    readers: dict[str, Callable[[str], tuple[str, Query]]] = {
        "sum": lambda text: _read_measure(text, "sum"),
        "mean": lambda text: _read_measure(text, "mean"),
        "variance": lambda text: _read_measure(text, "variance"),
        "std": lambda text: _read_measure(text, "std"),
        "covariance": _read_covariance,
        "proportion": lambda text: _read_condition(text, "proportion"),
        "count_where": lambda text: _read_condition(text, "count_where"),
        "histogram": lambda text: _read_distribution(text, "histogram"),
        "cdf": lambda text: _read_distribution(text, "cdf"),
        "quantile": _read_quantile,
        "minimum": lambda text: _read_measure(text, "minimum"),
        "maximum": lambda text: _read_measure(text, "maximum"),
        "mode": lambda text: _read_mode(text, columns),
        "top_k": lambda text: _read_mode(text, columns, ranked=True),
        "count_distinct": _read_distinct,
    }
    for kind, read in readers.items():
        for text in given[f"{kind}s"]:
            name, query = read(text)
            if name in queries:
                option = kind.replace("_", "-")
                raise CommandError(f"two queries are called {name!r}; name one of them: --{option} NAME={text}")
            queries[name] = query
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
    limits = _read_bounds(bounds[0], bounds[1], kind, text)
    try:
        return name or f"{column}_{kind}", getattr(dpf, kind)(column, bounds=limits)
    except ParameterError as error:
        raise CommandError(f"--{kind} {shortened(text)} does not serve: {error}") from None


def _read_covariance(text: str) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:LOW:HIGH:OTHER:LOW:HIGH``."""
    import dpfast as dpf

    name, rest = _read_name(text, "covariance")
    column, *others = rest.rsplit(":", 5)
    if len(others) != 5 or not column or not others[2]:
        raise _unreadable("covariance", text)
    low, high, other, other_low, other_high = others
    bounds = _read_bounds(low, high, "covariance", text), _read_bounds(other_low, other_high, "covariance", text)
    try:
        query = dpf.covariance(column, other, bounds=bounds[0], other_bounds=bounds[1])
    except ParameterError as error:
        raise CommandError(f"--covariance {shortened(text)} does not serve: {error}") from None
    return name or f"{column}_{other}_covariance", query


def _read_distribution(text: str, kind: str) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN:EDGE,EDGE,...``."""
    import dpfast as dpf

    name, rest = _read_name(text, kind)
    column, _, written = rest.rpartition(":")
    if not column:
        raise _unreadable(kind, text)
    try:
        edges = [_number(edge) for edge in written.split(",")]
    except ValueError:
        raise CommandError(f"the edges of --{kind} {shortened(text)} are no numbers; {_MENDS[kind]}") from None
    try:
        return name or f"{column}_{kind}", getattr(dpf, kind)(column, edges)
    except ParameterError as error:
        raise CommandError(f"--{kind} {shortened(text)} does not serve: {error}; {_MENDS[kind]}") from None


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
        raise CommandError(f"{option} {shortened(text)} does not serve: {error}") from None
    return name or "_".join((*condition.columns, kind.removesuffix("_where"))), query


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


def _read_distinct(text: str) -> tuple[str, Query]:
    """Read ``[NAME=]COLUMN``."""
    import dpfast as dpf

    name, column = _read_name(text, "count_distinct")
    if not column:
        raise _unreadable("count_distinct", text)
    return name or f"{column}_distinct", dpf.count_distinct(column)


def _read_mode(text: str, schema: Mapping[str, pl.DataType], *, ranked: bool = False) -> tuple[str, ModeQuery]:
    """Read ``[NAME=]COLUMN:CANDIDATE,...``, candidates by the column's dtype, quoted as in a CSV file if need be.

    Of ranked ones, ``K:`` stands before the candidates.
    """
    import dpfast as dpf

    kind = "top_k" if ranked else "mode"
    option = kind.replace("_", "-")
    name, rest = _read_name(text, kind)
    column, written = split_values(rest, schema)
    winners = 1
    if ranked and written:
        number, colon, first = written[0].partition(":")
        if not colon or not number.isdecimal():
            raise _unreadable(kind, text)
        winners, written = int(number), [first, *written[1:]]
    if not column or not all(written) or not written:
        raise _unreadable(kind, text)
    # A column that is not there is the plan's to refuse.
    dtype = schema.get(column)
    try:
        candidates = [read_value(entry, dtype) for entry in written]
    except ValueError:
        raise CommandError(
            f"the candidates of --{option} {shortened(text)} must be values of the column's dtype {dtype}: whole "
            "numbers, dates as 2024-02-29, or true and false"
        ) from None
    try:
        if ranked:
            return name or f"{column}_top_{winners}", dpf.top_k(column, winners, candidates=candidates)
        return name or f"{column}_mode", dpf.mode(column, candidates=candidates)
    except ParameterError as error:
        raise CommandError(f"--{option} {shortened(text)} does not serve: {error}") from None


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
