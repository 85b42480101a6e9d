"""The command that writes a first program for a file, and the one for a shell's completion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from dpfast.cli.documents import JSON, wants_document, write_document
from dpfast.cli.errors import CommandError
from dpfast.cli.files import read_schema
from dpfast.cli.options import FILES, SCHEMA
from dpfast.cli.output import Target

if TYPE_CHECKING:
    import polars as pl

__all__ = ["completion", "init"]

#: Words in the name of a column that often says who a row is about.
_PEOPLE = ("user", "person", "patient", "customer", "client", "member", "visitor", "employee", "student", "household")
_MOST_VALUES = 3

_PROGRAM = '''\
"""A first private release. Only the names and dtypes of the columns were read to write this.

Run it: it shows what would be released, and charges nothing. Then say what is yours to say, and take the last lines in.
"""

{imports}import dpfast as dpf

FILES = {files!r}
{schema}
# Whose privacy is kept: a column that names people, or "row" where each row is another person's.{guessed}
PRIVACY_UNIT = {unit!r}

# What to group by, none for one group. The columns:
{columns}
BY = {by!r}

# What to ask of each group. "auto" chooses bounds privately, for a share of the budget; bounds that you know without
# looking at the data, as bounds=(0, 120) for an age, cost nothing.
QUERIES = {{
    {rows!r}: dpf.count(),
{queries}}}

plan = dpf.plan(
    FILES,
    by=BY,{schema_argument}
    **QUERIES,
    privacy_unit=PRIVACY_UNIT,{limits}
    epsilon=1.0,
    delta=1e-6,  # well below 1 / the number of people
)
print(plan.explain())

# ledger = dpf.Ledger.open("ledger.db", epsilon=4.0, delta=1e-5)  # all that may ever be spent on these data
# release = plan.run(ledger)  # charged first, drawn once
# print(release.frame)
# release.frame.write_parquet("release.parquet")
'''

_LIMITS = """
    max_groups=5,  # how many groups of one person count at most, chosen at random
    max_rows_per_group=10,  # and how many rows in each"""


def _unit(columns: dict[str, pl.DataType]) -> str | None:
    """Return a column that looks as if it named people."""
    lowered = {name: name.lower() for name, dtype in columns.items() if dtype.is_integer() or str(dtype) == "String"}
    for name, low in lowered.items():
        if any(word in low for word in _PEOPLE):
            return name
    return next((name for name, low in lowered.items() if low == "id" or low.endswith("_id")), None)


def _free(name: str, columns: dict[str, pl.DataType]) -> str:
    """Return a name that no column has."""
    while name in columns:
        name += "_"
    return name


def _program(files: tuple[str, ...], schema: dict[str, Any] | None, columns: dict[str, pl.DataType]) -> str:
    import polars as pl

    unit = _unit(columns)
    rest = {name: dtype for name, dtype in columns.items() if name != unit}
    keys = [name for name, dtype in rest.items() if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean)]
    values = [name for name, dtype in rest.items() if dtype.is_numeric()][:_MOST_VALUES]
    named = files[0] if len(files) == 1 else list(files)
    declared = "".join(f"    {name!r}: pl.{dtype!r},\n" for name, dtype in (schema or {}).items())
    return _PROGRAM.format(
        files=named,
        imports="import polars as pl\n\n" if schema else "",
        schema=f"SCHEMA = {{\n{declared}}}\n" if schema else "",
        schema_argument="\n    schema=SCHEMA," if schema else "",
        guessed=" This was guessed by its name." if unit else "",
        unit=unit or "row",
        columns="\n".join(f"#   {name!r}, {dtype!r}" for name, dtype in columns.items()),
        by=keys[:1],
        rows=_free("rows", columns),
        queries="".join(
            f'    {_free(f"{name}_mean", columns)!r}: dpf.mean({name!r}, bounds="auto"),\n' for name in values
        ),
        limits=_LIMITS if unit else "",
    )


@click.command(
    short_help="Write a first program for a file; reads names and dtypes of its columns.",
    epilog="\b\nExample:\n  dpfast init flights.parquet --out flights.py",
)
@FILES
@SCHEMA
@click.option(
    "--out", default="-", show_default=True, metavar="FILE", help="Where it goes: a .py file, or - to show it."
)
@click.option("--overwrite", is_flag=True, help="Replace --out if it exists.")
@JSON
def init(files: tuple[str, ...], schema: str | None, out: str, overwrite: bool) -> None:
    """Write a Python program that plans a release of FILES, with a comment on each choice that is yours.

    It runs as it is: it explains the release, and charges nothing until you take its last lines in.
    """
    from dpfast.aggregation.sources import open_source

    if out == "-" and wants_document():
        raise CommandError("--out - and --json both write to standard output; give --out FILE")
    target = None if out == "-" else Target(out, "--out", (".py",), overwrite=overwrite, keep=files)
    try:
        declared = read_schema(schema)
        columns = dict(open_source(list(files), schema=declared).schema())
        program = _program(files, declared, columns)
        if target is None:
            click.echo(program, nl=False)
            return
        target.save(lambda part: Path(part).write_text(program, encoding="utf-8"))
    finally:
        if target is not None:
            target.discard()
    if wants_document():
        write_document(out=out, columns=list(columns))
    else:
        click.echo(f"wrote {out}: run it with python {out}")


@click.command(
    short_help="Print what makes a shell complete commands and options.",
    epilog="\b\nExample:\n  dpfast completion bash",
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@JSON
def completion(shell: str) -> None:
    """Print a program for SHELL that completes what follows dpfast, to be put into its start-up file."""
    kind = get_completion_class(shell)
    assert kind is not None
    program = kind(click.get_current_context().find_root().command, {}, "dpfast", "_DPFAST_COMPLETE").source()
    if wants_document():
        write_document(shell=shell, program=program)
    else:
        click.echo(program)
