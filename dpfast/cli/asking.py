"""What a command line asks for -> the queries of `dpfast.plan`."""

from __future__ import annotations

import csv
import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpfast.cli.errors import CommandError
from dpfast.errors import ParameterError

if TYPE_CHECKING:
    import polars as pl

    from dpfast.queries import ModeQuery, QuantileQuery, Query

__all__ = ["CSV_SUFFIXES", "FILE_SUFFIXES", "Asked", "read_queries", "shortened"]

CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.zst")
FILE_SUFFIXES = (*CSV_SUFFIXES, ".parquet", ".arrow", ".ipc", ".feather")

_ASK = (
    "add --count, --sum COLUMN:LOW:HIGH or --mean COLUMN:LOW:HIGH, --quantile COLUMN:LOW:HIGH:Q,... or "
    "--mode COLUMN:CANDIDATE,..."
)
_MENDS = {
    "sum": "write [NAME=]COLUMN:LOW:HIGH, for example --sum dep_delay:-60:600",
    "mean": "write [NAME=]COLUMN:LOW:HIGH, for example --mean dep_delay:-60:600",
    "quantile": "write [NAME=]COLUMN:LOW:HIGH:Q,Q,..., for example --quantile dep_delay:-60:600:0.5,0.9",
    "mode": "write [NAME=]COLUMN:CANDIDATE,CANDIDATE,..., for example --mode dest:IAH,MIA",
}

# Queries are keyword arguments of `dpfast.plan`, whose own parameters they must not be mistaken for.
_RESERVED = frozenset(
    [
        "data",
        "by",
        "epsilon",
        "delta",
        "rho",
        "split",
        "keys",
        "privacy_unit",
        "max_groups",
        "max_rows_per_group",
        "neighbors",
        "mechanism",
        "key_selection",
        "population",
        "dataset",
        "schema",
        "workload",
        "strategy",
    ]
)


@dataclass(frozen=True)
class Asked:
    """The files, and the options that ask for something, as they were written."""

    files: tuple[str, ...]
    count: str | None
    sums: tuple[str, ...]
    means: tuple[str, ...]
    quantiles: tuple[str, ...]
    modes: tuple[str, ...]


def read_queries(asked: Asked, schema: Mapping[str, Any] | None) -> dict[str, Query]:
    """Return the queries by name; of the files only schemas are read, and only for candidates of modes.

    Raises
    ------
    DpfastError
        Something cannot be read as a query, or nothing is asked for.

    """
    import dpfast as dpf

    queries: dict[str, Query] = {}
    if asked.count is not None:
        if asked.count.lower().endswith(FILE_SUFFIXES):
            raise CommandError(
                f"--count took the file {asked.count!r} for its name; write FILES first, or --count NAME"
            )
        queries[asked.count] = dpf.count()
    columns = _schema(asked.files, schema) if asked.modes else {}
    kinds: list[tuple[str, Callable[[str], tuple[str, Query]], Sequence[str]]] = [
        ("sum", lambda text: _read_measure(text, "sum"), asked.sums),
        ("mean", lambda text: _read_measure(text, "mean"), asked.means),
        ("quantile", _read_quantile, asked.quantiles),
        ("mode", lambda text: _read_mode(text, columns), asked.modes),
    ]
    for kind, read, written in kinds:
        for text in written:
            name, query = read(text)
            if name in queries:
                raise CommandError(f"two queries are called {name!r}; name one of them: --{kind} NAME={text}")
            queries[name] = query
    if not queries:
        raise CommandError(f"nothing is asked for; {_ASK}")
    for name in queries:
        if name in _RESERVED:
            raise CommandError(f"a query cannot be called {name!r}; choose another name")
    return queries


def _schema(files: Sequence[str], schema: Mapping[str, Any] | None) -> Mapping[str, pl.DataType]:
    from dpfast.aggregation.sources import open_source

    return open_source(list(files), schema=schema).collect_schema()


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
    # A column with a colon in its name is found by it, where there is one.
    known = [column for column in schema if rest.startswith(f"{column}:")]
    column = max(known, key=len, default=rest.partition(":")[0])
    written = next(csv.reader([rest[len(column) + 1 :]]), [])
    if not column or not all(written) or not written:
        raise _unreadable("mode", text)
    # A column that is not there is the plan's to refuse.
    dtype = schema.get(column)
    try:
        candidates = [_read_candidate(entry, dtype) for entry in written]
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


def _read_candidate(text: str, dtype: pl.DataType | None) -> str | int | bool | datetime.date:
    """Read a candidate, or raise ValueError."""
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


def shortened(text: str) -> str:
    """Return a text in one line of at most 60 characters."""
    shown = " ".join(text.split())
    return shown if len(shown) <= 60 else shown[:57] + "..."
