"""What a user's mistake looks like in a shell: one line that says how to mend it, and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import click

from dpfast.errors import BudgetExceededError, ColumnError, DpfastError, FileError, LedgerError

__all__ = [
    "CommandError",
    "ExitCode",
    "FileTroubleError",
    "described",
    "exit_code",
    "name_of",
    "reason_of",
    "shortened",
    "tell",
]


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
#: What the library calls otherwise than the option of the command that has one.
_OTHERWISE = {
    "max_rows_per_group": "--max-rows",
    "privacy_unit": "--unit",
    "candidates": "--candidate",
    "k": "--top",
    "units": "--made-up-units",
    "bins": "--number",
    "data": "FILES",
    "queries": "--count, --sum and --mean",
}
#: A call that is written out is Python's, and its arguments are not the shell's.
_CALL = re.compile(r"[\w.]+\([^()]*\)")


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


def described(error: BaseException, command: click.Command | None = None) -> str:
    """Return an error as one line, with arguments called as the options of a command are, by default the running one.

    Examples
    --------
    >>> from dpfast.errors import ParameterError
    >>> command = click.Command("plan", params=[click.Option(["--max-groups"])])
    >>> described(ParameterError("max_groups", None, "a whole number, or None", "write max_groups=10"), command)
    '--max-groups must be a whole number, but is missing; write --max-groups 10'

    """
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
        context = click.get_current_context(silent=True)
        running = command if command is not None else context.command if context is not None else None
        text = _as_options(text, _options_of(running))
    return " ".join(text.split())


def reason_of(error: BaseException) -> str:
    """Return why something could not be written, without what a failure of another kind may quote."""
    return described(error) if isinstance(error, (OSError, DpfastError)) else type(error).__name__


def _usage(error: click.UsageError) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    text = text[:1].lower() + text[1:]
    param = error.param if isinstance(error, click.BadParameter) else None
    if param is not None and (allowed := _allowed(param.type)) and not isinstance(error, click.MissingParameter):
        option = name_of(param)
        given = re.match(r"'?(.*?)'? (?:is (?:not|no) |could not )", " ".join(error.message.split()))
        text = f"{option} must be {allowed}" + (f", but was {shortened(given[1])!r}" if given else "")
    command = error.ctx.command_path if error.ctx is not None else "dpfast"
    return f"{text}; see {command} --help"


def name_of(param: click.Parameter) -> str:
    """Return an option as it is written, an argument as help calls it."""
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.human_readable_name


def _allowed(kind: Any) -> str | None:
    """Return what an option of a kind may be; None of a kind whose own words say it."""
    if isinstance(kind, click.IntRange):
        return f"a whole number from {kind.min} to {kind.max}"
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(map(str, kind.choices))}"
    words = {"float": "a number, such as 0.5", "integer": "a whole number", "limit": "a whole number, or auto"}
    return words.get(kind.name)


def _options_of(command: click.Command | None) -> dict[str, str]:
    """Return what a command calls the arguments of the library."""
    if command is None:
        return {}
    options: dict[str, str] = {}
    for one in command.params:
        written = name_of(one)
        options |= dict.fromkeys((str(one.name), written.lstrip("-").replace("-", "_")), written)
    asked = set(options.values())
    if "--count" in asked:
        asked.add(_OTHERWISE["queries"])
    return options | {name: option for name, option in _OTHERWISE.items() if option in asked or option == "FILES"}


def _as_options(text: str, options: Mapping[str, str]) -> str:
    """Return a message with the shell's names for what stands in it as an argument, calls in Python apart."""
    first = re.match(r"\w+(?=( must| names| compares| needs| is|:|\[))", text)
    if first is not None and first[0] in options:
        text = options[first[0]] + text[first.end() :]
    between = [_renamed(part, options) for part in _CALL.split(text)]
    calls = [*_CALL.findall(text), ""]
    text = "".join(part + call for part, call in zip(between, calls, strict=True))
    text = re.sub(r"\b(give \w+)=(?!\S)", r"\1", text)
    # An option is left out where an argument is None.
    text = re.sub(r", or None\b(?=[ ,;]|$)", "", text)
    text = re.sub(r"\bmust be None(?= (?:where|here|beside)\b|,|;)", "must be left out", text)
    return re.sub(r", but was None(?=;|$)", ", but is missing", text)


def _renamed(text: str, options: Mapping[str, str]) -> str:
    for name, option in options.items():
        text = re.sub(rf"(?<![-\w]){name}=None\b", f"no {option}", text)
        text = re.sub(rf"(?<![-\w]){name}=(?=\S)", f"{option} ", text)
        text = re.sub(rf"(?<![-\w]){name}=(?!\S)", option, text)
        text = re.sub(rf"(?<![-\w]){name} (?=names the column )", f"{option} ", text)
        text = re.sub(rf"\bwhere {name} is\b", f"where {option} is", text)
        text = re.sub(rf"\b(raise|lower|without) {name}\b(?! of)", rf"\1 {option}", text)
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
