"""What a user's mistake looks like in a shell: one line that says how to mend it, and an exit code."""

from __future__ import annotations

import re
import sys
from enum import IntEnum

import click

from dpfast.errors import BudgetExceededError, ColumnError, DpfastError, FileError, LedgerError, ParameterError

__all__ = ["CommandError", "ExitCode", "FileTroubleError", "described", "exit_code", "reason_of", "shortened", "tell"]


class ExitCode(IntEnum):
    """How ``dpfast`` ends."""

    DONE = 0
    REFUTED = 1
    USAGE = 2
    BUDGET = 3
    FILES = 4
    INTERRUPTED = 130


class CommandError(DpfastError):
    """A mistake that only the command line can make: what is wrong and what to write instead."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        self.code = code
        super().__init__(message)


class FileTroubleError(CommandError):
    """A file cannot be read, written or replaced."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.FILES)


_NO_DTYPES = "a CSV file does not know its dtypes"
# What the library calls by its Python name, the shell knows by its option.
_SAME = (
    "max_groups", "epsilon", "rho", "delta", "neighbors", "mechanism", "key_selection", "population", "sensitivity",
    "value", "weight", "missing", "keys", "by", "schema", "dataset", "rounds", "selection", "workload",
    "samples", "confidence", "neighbour", "where", "cast", "report_cut", "error", "budget",
)  # fmt: skip
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME} | {
    "max_rows_per_group": "--max-rows",
    "privacy_unit": "--unit",
    "candidates": "--candidate",
    "k": "--top",
    "data": "FILES",
    "queries": "--count, --sum and --mean",
}


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code for an error."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, BudgetExceededError):
        return ExitCode.BUDGET
    if isinstance(error, (LedgerError, FileError, OSError, MemoryError)):
        return ExitCode.FILES
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return ExitCode.INTERRUPTED
    # The base class itself tells of a data file that is damaged.
    return ExitCode.FILES if type(error) is DpfastError else ExitCode.USAGE


def described(error: BaseException) -> str:
    """Return an error as one line, with options called as the shell calls them."""
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory; use a larger machine or fewer columns"
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "interrupted; nothing was charged"
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, ColumnError) and text.startswith(_NO_DTYPES):
        text = (
            f"{_NO_DTYPES}, and guessing them would look at the data; "
            "declare the columns used: --schema carrier=str,dep_delay=float64"
        )
    elif isinstance(error, DpfastError) and not isinstance(error, CommandError):
        text = _as_options(text, error.argument if isinstance(error, ParameterError) else None)
    return " ".join(text.split())


def reason_of(error: BaseException) -> str:
    """Return why something could not be written, without what a failure of another kind may quote."""
    return described(error) if isinstance(error, (OSError, DpfastError)) else type(error).__name__


def _usage(error: click.UsageError) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    text = text[:1].lower() + text[1:]
    command = error.ctx.command_path if error.ctx is not None else "dpfast"
    return f"{text}; see {command} --help"


def _as_options(text: str, argument: str | None) -> str:
    if argument in _OPTIONS and text.startswith(argument):
        text = _OPTIONS[argument] + text[len(argument) :]
    for name, option in _OPTIONS.items():
        text = re.sub(rf"\b{name}=None\b", f"no {option}", text)
        text = re.sub(rf"\b{name}=(?=\S)", f"{option} ", text)
        text = re.sub(rf"\b{name}=(?!\S)", option, text)
        text = re.sub(rf"\b{name} (?=names the column )", f"{option} ", text)
        text = re.sub(rf"\bwhere {name} is\b", f"where {option} is", text)
        text = re.sub(rf"\b(raise|lower) {name}\b(?! of)", rf"\1 {option}", text)
    return text


def tell(message: str) -> None:
    """Write one line to standard error, if anyone still reads it."""
    try:
        click.echo(f"dpfast: {message}", err=True)
        sys.stderr.flush()
    except OSError:
        pass


def shortened(text: str) -> str:
    """Return a text in one line of at most 60 characters."""
    shown = " ".join(text.split())
    return shown if len(shown) <= 60 else shown[:57] + "..."
