"""Files of domains: the columns' values and bins, and what becomes of all other values."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfast.cli.errors import CommandError, FileTroubleError, shortened
from dpfast.cli.files import check_file, read_typed_table
from dpfast.cli.queries import read_bins
from dpfast.cli.values import read_value
from dpfast.rows.durations import shown_duration

__all__ = ["OUTSIDE", "DomainFile", "axis_document", "domain_document", "read_domain_file", "typed_values"]

#: What may become of a row with a value that is not declared.
OUTSIDE = ("drop", "null", "clamp")
_MEND = 'write {"sex": ["f", "m"], "age": {"bins": [0, 30, 60]}}'


@dataclass(frozen=True)
class DomainFile:
    """What a public file says of columns.

    Attributes
    ----------
    attributes
        Their values and bins, by their names.
    outside
        What becomes of other values; None where the file does not say it.
    nulls
        The columns whose nulls are a category of their own.

    """

    attributes: dict[str, Any]
    outside: str | None = None
    nulls: tuple[str, ...] = ()


def domain_document(attributes: Mapping[str, Any], outside: str, nulls: Sequence[str]) -> dict[str, Any]:
    """Return what the file of a domain holds.

    Examples
    --------
    >>> domain_document({"sex": ["f", "m"]}, "null", [])
    {'outside': 'null', 'nulls': [], 'columns': {'sex': ['f', 'm']}}

    """
    columns = {name: axis_document(axis) for name, axis in attributes.items()}
    return {"outside": outside, "nulls": list(nulls), "columns": columns}


def axis_document(axis: Any) -> Any:
    """Return a column's values, or its bins, as a file of a domain has them; dates and times are text."""
    import polars as pl

    from dpfast.queries import Bins

    if isinstance(axis, Bins):
        return {"bins": [_plain(edge) for edge in axis.edges]}
    return [_plain(value) for value in (axis.to_list() if isinstance(axis, pl.Series) else axis)]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return shown_duration(value)
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _is_text(dtype: Any) -> bool:
    import polars as pl

    return dtype is None or isinstance(dtype, (pl.String, pl.Categorical, pl.Enum))


def typed_values(written: list[Any], dtype: Any, what: str) -> list[Any]:
    """Return values as the column's type has them: text, integers, Booleans or dates."""
    try:
        return [read_value(value, dtype) if isinstance(value, str) else value for value in written]
    except ValueError:
        raise CommandError(
            f"{what} needs values of the column's type {dtype}; write for example --values year:1,2, --values "
            "paid:true,false or --values day:2026-01-01"
        ) from None


def read_domain_file(path: str, names: list[str], dtypes: Mapping[str, Any]) -> DomainFile:
    """Return what a public file says of these columns; a table, and an older file, say the values alone."""
    check_file(path, "--domain", ".json", kinds="a JSON, Parquet or Arrow file")
    if not path.lower().endswith(".json"):
        frame = read_typed_table(path, "--domain")
        held = [name for name in names if name in frame.columns]
        return DomainFile({name: frame[name].drop_nulls().unique(maintain_order=True) for name in held})
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_named_once)
    except (OSError, ValueError, RecursionError):
        raise FileTroubleError(f"{path!r} cannot be read as JSON, with each name once; {_MEND}") from None
    if not isinstance(read, dict):
        raise CommandError(f"--domain {path!r} must hold columns and their values; {_MEND}")
    outside: str | None = None
    nulls: list[str] = []
    # The values of a column are never text alone: a file of nothing but columns may have one of this name.
    if isinstance(read.get("outside"), str):
        outside, nulls, read = _settings(path, read)
    attributes = {name: _axis(path, name, axis, dtypes.get(name)) for name, axis in read.items()}
    known = {name: axis for name, axis in attributes.items() if name in names}
    return DomainFile(known, outside, tuple(name for name in nulls if name in known))


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, of which Python would keep the last of two values of one name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _settings(path: str, read: dict[str, Any]) -> tuple[str, list[str], dict[str, Any]]:
    """Return what becomes of other values, the columns whose nulls are a category, and the columns."""
    outside, nulls, columns = read["outside"], read.get("nulls", []), read.get("columns")
    if unknown := [name for name in read if name not in ("outside", "nulls", "columns")]:
        raise CommandError(
            f'--domain {path!r} may hold "outside", "nulls" and "columns", but holds {shortened(unknown[0])}'
        )
    if outside not in OUTSIDE:
        raise CommandError(f'"outside" of --domain {path!r} must be drop, null or clamp, but was {shortened(outside)}')
    if not isinstance(columns, dict) or not columns:
        raise CommandError(f'"columns" of --domain {path!r} must hold columns and their values; {_MEND}')
    if not isinstance(nulls, list) or not all(isinstance(name, str) and name in columns for name in nulls):
        raise CommandError(f'"nulls" of --domain {path!r} must be a list of its columns')
    return outside, nulls, columns


def _axis(path: str, name: str, axis: Any, dtype: Any) -> Any:
    """Return a column's values or bins."""
    if isinstance(axis, dict) and list(axis) == ["bins"] and isinstance(axis["bins"], list):
        return read_bins(name, axis["bins"], f"the column {name!r} of --domain {path!r}")
    if isinstance(axis, list) and axis:
        return axis if _is_text(dtype) else typed_values(axis, dtype, f"{name!r} of --domain {path!r}")
    raise CommandError(f"the column {name!r} of --domain {path!r} must have values; {_MEND}")
