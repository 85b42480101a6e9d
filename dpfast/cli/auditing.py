"""The command that tries to refute that a function is private."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import click

from dpfast.cli.documents import JSON, wants_document, write_document
from dpfast.cli.errors import CommandError, ExitCode, shortened
from dpfast.cli.output import FRAME_SUFFIXES, Target, write_frame
from dpfast.cli.terminal import Progress
from dpfast.errors import ParameterError

__all__ = ["audit", "found_function", "working_folder_first"]

_MEND = "write for example my_module:my_function or path/to/file.py:my_function"


@click.command(
    short_help="Try to refute that a function is private; exit code 1 if it is not.",
    epilog="\b\nExample:\n"
    "  dpfast audit mine.py:noisy_count --x 10 --neighbour 11 --epsilon 1\n\n"
    "\b\nExample of a mechanism that is shipped, by its name and its arguments:\n"
    "  dpfast audit dpfast:laplace --x 10 --neighbour 11 --epsilon 0.5 --set scale=2.0",
)
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option("--x", required=True, metavar="VALUE", help="An input, written as in Python: 10, [3, 4] or '\"yes\"'.")
@click.option("--neighbour", "--neighbor", required=True, metavar="VALUE", help="A neighbouring input.")
@click.option("--epsilon", type=float, required=True, help="What the function claims.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="What it claims beside it.")
@click.option("--samples", type=int, default=100_000, show_default=True, help="How many outputs of each input to draw.")
@click.option(
    "--confidence",
    type=float,
    default=0.999999,
    show_default=True,
    help="A private function is not refuted with this probability, at least.",
)
@click.option("--batched", is_flag=True, help="FUNCTION(x, n) returns n outputs; without it, FUNCTION(x) returns one.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another argument of FUNCTION, by name; repeatable."
)
@click.option("--out", metavar="FILE", help="Also write the figures: .parquet, .csv, .arrow, .json or .ndjson.")
@click.option("--overwrite", is_flag=True, help="Replace --out if it exists.")
@JSON
def audit(
    function: str,
    x: str,
    neighbour: str,
    settings: tuple[str, ...],
    out: str | None,
    overwrite: bool,
    **given: Any,
) -> ExitCode:
    """Run FUNCTION many times on two neighbouring inputs, and bound epsilon and delta from below by what it returns.

    MODULE is imported from the working folder, or is a .py file. What it prints is not private: audit with inputs that
    may be known. Nothing is charged.
    """
    import dpfast as dpf

    one, other = _read_value("--x", x), _read_value("--neighbour", neighbour)
    target = None if out is None else Target(out, "--out", FRAME_SUFFIXES, overwrite=overwrite)
    try:
        with working_folder_first(), _prints_beside(), Progress() as shown:

            def tell(done: int, total: int) -> None:
                shown(f"drawing outputs: {done / total:.0%}")

            named = dict(map(_read_setting, settings))
            mechanism = functools.partial(_fitting(found_function(function), named, batched=given["batched"]), **named)
            found = _audited(lambda: dpf.audit(mechanism, one, other, progress=tell, **given))
        if not wants_document():
            click.echo(found.explain())
        if target is not None:
            target.save(lambda part: write_frame(found.to_frame(), part))
            if not wants_document():
                click.echo(f"wrote {out}")
        if wants_document():
            write_document(passed=found.passed, out=out, figures=found.to_frame().to_dicts(), text=found.explain())
    finally:
        if target is not None:
            target.discard()
    return ExitCode.DONE if found.passed else ExitCode.REFUTED


def _prints_beside() -> AbstractContextManager[object]:
    """Have what a function prints stand beside a document, and not in it."""
    return redirect_stdout(sys.stderr) if wants_document() else nullcontext()


def _audited(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except ParameterError as error:
        if error.argument != "mechanism":
            raise
        told = str(error).removeprefix("mechanism").replace("mechanism(", "FUNCTION(")
        raise CommandError(f"FUNCTION{told.replace('leave batched out', 'leave --batched out')}") from None


def _read_value(option: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        quoted = f"{option} '\"{shortened(text)}\"'"
        raise CommandError(
            f"{option} must be written as in Python, but was {shortened(text)}; write a string as {quoted}"
        ) from None


def _read_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise CommandError(f"--set {shortened(text)} cannot be read; write for example --set scale=2.0")
    return name, _read_value(f"--set {name}", value)


def found_function(text: str) -> Callable[..., Any]:
    """Import a function.

    Raises
    ------
    CommandError
        There is none, or what holds it cannot be imported.

    """
    place, colon, name = text.rpartition(":")
    if not colon or not place or not all(part.isidentifier() for part in name.split(".")):
        raise CommandError(f"MODULE:FUNCTION cannot be read of {shortened(text)}; {_MEND}")
    try:
        thing: Any = _imported(place)
        for part in name.split("."):
            thing = getattr(thing, part)
    except AttributeError:
        raise CommandError(f"{shortened(place)} has no {shortened(name)}; {_MEND}") from None
    except CommandError:
        raise
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also of a class that the module has made itself
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise CommandError(f"{shortened(place)} cannot be imported ({why[:160]}); {_MEND}") from None
    if not callable(thing):
        raise CommandError(f"{shortened(text)} is no function; {_MEND}")
    function: Callable[..., Any] = thing
    return function


def _fitting(function: Callable[..., Any], settings: dict[str, Any], *, batched: bool) -> Callable[..., Any]:
    """Return a function that can be called with an input and these settings, or say why it cannot be."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of a function that does not tell
        return function
    try:
        signature.bind(*([None] * (2 if batched else 1)), **settings)
    except TypeError as error:
        called = ", ".join(["x", *(["n"] if batched else []), *(f"{name}=..." for name in settings)])
        mend = "leave --batched out, or let FUNCTION(x, n) return n outputs" if batched else "give others with --set"
        if settings:
            mend = "--set names its other arguments" + (
                ", not x and n, which --batched gives" if batched else ", not x"
            )
        raise CommandError(f"FUNCTION cannot be called as FUNCTION({called}): {error}; {mend}") from None
    return function


def _imported(place: str) -> Any:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise CommandError(f"there is no file {shortened(place)}; {_MEND}", ExitCode.FILES)
    described = importlib.util.spec_from_file_location(path.stem, path)
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


@contextmanager
def working_folder_first() -> Iterator[None]:
    """Let modules of the working folder be imported, also by what runs."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)
