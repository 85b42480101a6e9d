"""Domains on the command line: values and bins that options declare, and files that hold them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.errors import CommandError, FileTroubleError, described, shortened
from dpfast.cli.files import check_file, read_typed_table
from dpfast.cli.options import choice, combined
from dpfast.cli.queries import read_bins, split_values
from dpfast.cli.values import read_value
from dpfast.errors import ParameterError
from dpfast.rows.durations import shown_duration

if TYPE_CHECKING:
    from dpfast.domain import Domain

__all__ = [
    "axis_document",
    "declared_options",
    "declared_values",
    "domain_options",
    "names_of",
    "read_domain",
    "read_domain_file",
]

_DOMAIN_MEND = "declare them: --values sex:f,m, or --bins age:0,30,60, or --domain FILE"

#: The options that declare columns one by one.
declared_options: Callable[[Any], Any] = combined(
    click.option(
        "--values", "values", multiple=True, metavar="COLUMN:VALUE,...", help="A column's public values; repeatable."
    ),
    click.option(
        "--bins", multiple=True, metavar="COLUMN:EDGE,...", help="Or a numeric column's public bins; repeatable."
    ),
)
#: The options that say what the columns of a result may hold.
domain_options: Callable[[Any], Any] = combined(
    declared_options,
    click.option(
        "--domain",
        metavar="FILE",
        help="Or all of them: a .json, as `dpfast domain` writes it, of "
        '{"sex": ["f", "m"], "age": {"bins": [0, 30]}}, or a public table (.parquet, .arrow), whose values they are.',
    ),
    choice(
        "--outside",
        "drop",
        "null",
        "clamp",
        text="Rows with a value that is not declared: left out, counted under null, or given the nearest code or bin.",
    ),
    click.option("--nulls", metavar="COLUMN,...", help="Columns whose nulls are a category of their own."),
)


def names_of(columns: str, option: str = "--columns") -> list[str]:
    """Return names of columns with commas between."""
    names = [name.strip() for name in columns.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise CommandError(f"{option} must be different columns with commas between, for example {option} sex,age")
    return names


def declared_values(
    written: Mapping[str, tuple[str, ...]], names: list[str], dtypes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what --values and --bins declare of some columns."""
    declared: dict[str, Any] = {}
    for option, example in (("values", "sex:f,m"), ("bins", "age:0,30,60")):
        for text in written[option]:
            column, values = split_values(text, names)
            what = f"--{option} {shortened(text)}"
            if not column or not all(values) or not values:
                raise CommandError(f"{what} cannot be read; write COLUMN:..., for example --{option} {example}")
            if column not in names:
                raise CommandError(f"--{option} names {column!r}, which --columns does not; add it")
            if column in declared:
                raise CommandError(f"--values and --bins name {column!r} twice; give all its values at once")
            typed = _typed(values, dtypes.get(column), what) if option == "values" else read_bins(column, values, what)
            declared[column] = typed
    return declared


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


def _typed(written: list[Any], dtype: Any, what: str) -> list[Any]:
    """Return values as the column's type has them: text, integers, Booleans or dates."""
    try:
        return [read_value(value, dtype) if isinstance(value, str) else value for value in written]
    except ValueError:
        raise CommandError(
            f"{what} needs values of the column's type {dtype}; write for example --values year:1,2, --values "
            "paid:true,false or --values day:2026-01-01"
        ) from None


def read_domain_file(path: str, names: list[str], dtypes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of columns from a public file."""
    check_file(path, "--domain", ".json", kinds="a JSON, Parquet or Arrow file")
    if not path.lower().endswith(".json"):
        frame = read_typed_table(path, "--domain")
        return {name: frame[name].drop_nulls().unique(maintain_order=True) for name in names if name in frame.columns}
    mend = 'write {"sex": ["f", "m"], "age": {"bins": [0, 30, 60]}}'
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise FileTroubleError(f"{path!r} cannot be read as JSON; {mend}") from None
    if not isinstance(read, dict):
        raise CommandError(f"--domain {path!r} must hold columns and their values; {mend}")
    declared: dict[str, Any] = {}
    for name, axis in read.items():
        if isinstance(axis, dict) and list(axis) == ["bins"] and isinstance(axis["bins"], list):
            declared[name] = read_bins(name, axis["bins"], f"the column {name!r} of --domain {path!r}")
        elif isinstance(axis, list) and axis:
            dtype = dtypes.get(name)
            declared[name] = axis if _is_text(dtype) else _typed(axis, dtype, f"{name!r} of --domain {path!r}")
        else:
            raise CommandError(f"the column {name!r} of --domain {path!r} must have values; {mend}")
    return {name: axis for name, axis in declared.items() if name in names}


def read_domain(
    names: list[str],
    written: dict[str, tuple[str, ...]],
    file: str | None,
    outside: str,
    nulls: list[str],
    dtypes: Mapping[str, Any],
) -> Domain:
    """Return the domain that a command line declares, its columns in the order of --columns."""
    from dpfast.aggregation.sources import missing_column
    from dpfast.domain import Domain

    if unknown := [name for name in nulls if name not in names]:
        raise CommandError(f"--nulls names {unknown[0]!r}, which --columns does not; add it, or leave it out")
    if absent := [name for name in names if name not in dtypes]:
        raise missing_column(absent[0], dtypes, "--columns")
    declared = {} if file is None else read_domain_file(file, names, dtypes)
    declared |= declared_values(written, names, dtypes)
    missing = [name for name in names if name not in declared]
    if missing:
        raise CommandError(f"the values of {', '.join(missing)} are not declared; {_DOMAIN_MEND}")
    try:
        return Domain({name: declared[name] for name in names}, outside=outside, nulls=nulls)  # type: ignore[arg-type]
    except ParameterError as error:
        raise CommandError(f"the domain does not serve: {described(error)}") from None
