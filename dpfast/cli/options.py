"""Options that several commands have, each declared once."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from dpfast.cli.errors import CommandError

__all__ = [
    "DATASET",
    "EPSILON",
    "FILES",
    "LIMIT",
    "NEIGHBORS",
    "RHO",
    "SCHEMA",
    "STANDARD_INPUT",
    "Destination",
    "choice",
    "combined",
    "complete_files",
    "dataset_name",
    "destination_options",
    "reading_options",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def choice(option: str, *choices: str, text: str) -> Callable[[_Command], _Command]:
    """Return an option with a few choices, of which the first is the default."""
    return click.option(option, type=click.Choice(choices), default=choices[0], show_default=True, help=text)


def combined(*declared: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Return one decorator for many, in the order in which help shows them."""
    return lambda command: functools.reduce(lambda wrapped, one: one(wrapped), reversed(declared), command)


class _Limit(click.ParamType):  # type: ignore[type-arg]  # generic in later versions
    """A whole number, or the word auto; which numbers are allowed, a plan says."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number or the word."""
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is no whole number, and not auto.", param, ctx)


#: What help calls files.
_OF_FILES = {"FILE", "FILES", "PATH", "LEDGER", "TABLE", "QUERIES", "OLD", "NEW"}


class _File(click.ParamType):  # type: ignore[type-arg]  # generic in later versions
    """A path, as it was written; shells complete it."""

    name = "text"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return that files come here."""
        return [CompletionItem(incomplete, type="file")]


def complete_files(command: click.Command) -> None:
    """Let shells complete what help calls a file, in a command and in those below it."""
    for param in command.params:
        called = param.metavar or str(param.name).upper()
        if _OF_FILES & set(re.split(r"\W+", called)):
            param.type = _File()
    for below in getattr(command, "commands", {}).values():
        complete_files(below)


LIMIT = _Limit()
#: What stands for CSV on standard input.
STANDARD_INPUT = "-"
FILES = click.argument("files", nargs=-1, required=True, metavar="FILES...")
EPSILON = click.option("--epsilon", type=float, help="The privacy loss of the whole release.")
RHO = click.option("--rho", type=float, help="The same in rho, for a ledger that adds up rho.")
NEIGHBORS = choice(
    "--neighbors", "add_remove", "replace", text="How neighbouring data differ: by one unit more, or one replaced."
)
DATASET = click.option(
    "--dataset",
    metavar="NAME",
    help="The data's name in the ledger.  [default: the file, of several FOLDER/*.parquet; none for -]",
)
SCHEMA = click.option(
    "--schema", metavar="COLUMN=DTYPE,...", help="Dtypes of CSV columns, and of folders, that are used."
)
#: How the rows are read, and what neighbours of them are.
reading_options: Callable[[Any], Any] = combined(NEIGHBORS, DATASET, SCHEMA)


@dataclass(frozen=True)
class Destination:
    """What a command charges and where it writes, as it was written."""

    ledger: str
    out: str
    overwrite: bool
    plot: str | None = None
    report: str | None = None
    budget_epsilon: float | None = None
    budget_delta: float | None = None

    @classmethod
    def taken(cls, given: dict[str, Any]) -> Destination:
        """Take the options of a destination out of all that were given."""
        return cls(**{one.name: given.pop(one.name) for one in fields(cls) if one.name in given})


def destination_options(
    content: str, *, plot: str = "", report: str = "", required: bool = True
) -> Callable[[_Command], _Command]:
    """Give a command the options of a `Destination`.

    ``plot`` says what a chart shows, if there may be one; ``report`` what a page is about, if there may be one.
    """
    several = "--out, --plot and --report" if report else "--out and --plot"
    written = f"{several} if they exist" if plot else "--out if it exists"
    what = f"Where to write the {content}: .parquet, .csv, .arrow, .json, .ndjson, or - for CSV on standard output."
    what += " In text bytes are hexadecimal digits."
    declared = [
        click.option("--ledger", required=required, metavar="FILE", help="The budget that is charged."),
        click.option("--out", required=required, metavar="FILE", help=what),
        click.option("--overwrite", is_flag=True, help=f"Replace {written}."),
    ]
    if plot:
        declared[1:1] = [
            click.option("--budget-epsilon", type=float, help="Create the ledger with this budget if there is none."),
            click.option("--budget-delta", type=float, help="The same for delta.  [default: 0]"),
        ]
        declared.insert(-1, click.option("--plot", metavar="FILE", help=f"Draw {plot}: .png, .svg or .pdf."))
    if report:
        told = f"Write a page of HTML about {report}, for people."
        declared.insert(-1, click.option("--report", metavar="FILE", help=told))
    return combined(*declared)


def dataset_name(files: tuple[str, ...], dataset: str | None) -> str:
    """Return the name under which the ledger knows the data: by default the files', whoever expands a pattern."""
    if dataset is not None:
        return dataset
    if STANDARD_INPUT in files:
        mend = "write for example --dataset flights"
        raise CommandError(f"--dataset is needed where the data come on standard input; {mend}")
    from dpfast.aggregation.paths import name_dataset

    return name_dataset(files)
