"""Domains on the command line: values and bins that options declare, and what becomes of other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.domain_files import OUTSIDE, DomainFile, read_domain_file, typed_values
from dpfast.cli.errors import CommandError, described, shortened
from dpfast.cli.options import combined
from dpfast.cli.queries import read_bins, split_values
from dpfast.errors import ParameterError
from dpfast.showing import number_of

if TYPE_CHECKING:
    from dpfast.domain import Domain

__all__ = [
    "declared_options",
    "declared_values",
    "domain_options",
    "left_out_lines",
    "names_of",
    "read_domain",
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
    click.option(
        "--outside",
        type=click.Choice(OUTSIDE),
        help="Rows with a value that is not declared: left out, counted under null, or given the nearest code or bin.  "
        "[default: as --domain says, else drop]",
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
            typed = (
                typed_values(values, dtypes.get(column), what)
                if option == "values"
                else read_bins(column, values, what)
            )
            declared[column] = typed
    return declared


def read_domain(
    names: list[str],
    written: dict[str, tuple[str, ...]],
    file: str | None,
    outside: str | None,
    nulls: str | None,
    dtypes: Mapping[str, Any],
) -> Domain:
    """Return the domain that a command line declares, its columns in the order of --columns.

    What --outside and --nulls say goes before what the file does.
    """
    from dpfast.aggregation.sources import missing_column
    from dpfast.domain import Domain

    own_nulls = [] if nulls is None else names_of(nulls, "--nulls")
    if unknown := [name for name in own_nulls if name not in names]:
        raise CommandError(f"--nulls names {unknown[0]!r}, which --columns does not; add it, or leave it out")
    if absent := [name for name in names if name not in dtypes]:
        raise missing_column(absent[0], dtypes, "--columns")
    held = DomainFile({}) if file is None else read_domain_file(file, names, dtypes)
    declared = held.attributes | declared_values(written, names, dtypes)
    missing = [name for name in names if name not in declared]
    if missing:
        raise CommandError(f"the values of {', '.join(missing)} are not declared; {_DOMAIN_MEND}")
    try:
        return Domain(
            {name: declared[name] for name in names},
            outside or held.outside or "drop",  # type: ignore[arg-type]  # one of OUTSIDE
            nulls=list(held.nulls) if nulls is None else own_nulls,
        )
    except ParameterError as error:
        raise CommandError(f"the domain does not serve: {described(error)}") from None


def left_out_lines(domain: Domain) -> list[str]:
    """Return a line that says which kinds of rows no cell counts, if there are any such kinds.

    It says what was declared: whether the data have such rows is private.
    """
    from dpfast.domain.domain import columns_left_out

    others, nulls = (len(names) for names in columns_left_out(domain))
    kinds = []
    if others:
        kinds.append(f"values that are not declared in {number_of(others, 'column')}")
    if nulls:
        kinds.append(f"nulls in {number_of(nulls, 'column')}")
    if not kinds:
        return []
    counted = number_of(len(kinds), "kind")
    return [f"left out are rows of {counted}, if there are any: {', '.join(kinds)}; --outside null counts them"]
