"""What ``--json`` writes: one document on standard output, whose keys stay what they are from version to version.

A document has ``command`` and what the command did. Amounts are objects such as ``{"epsilon": 0.5, "delta": 0.0}``, and
every number is what the library holds, not rounded for reading; what has no finite value is null. Warnings stand on
standard error. A command that fails writes no document: one line on standard error, and its exit code.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpfast.cli.errors import CommandError

if TYPE_CHECKING:
    from dpfast.ledger import Ledger

__all__ = ["JSON", "ledger_facts", "refuse_two_outputs", "say", "wants_document", "write_document"]

_WANTED = "dpfast.json"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _take(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    context.meta[_WANTED] = wanted


#: The option that every command has.
JSON: Callable[[_Command], _Command] = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_take,
    help="Write what was done as one JSON document on standard output, and nothing else there.",
)


def wants_document() -> bool:
    """Return whether the command that runs was asked for a document."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_WANTED))


def say(lines: str, *, err: bool = False) -> None:
    """Tell a person: on standard output, or beside it where a document or a release stands there."""
    click.echo(lines, err=err or wants_document())


def write_document(**content: Any) -> None:
    """Write a document about the command that runs: its name first."""
    context: click.Context | None = click.get_current_context()
    names: list[str] = []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    click.echo(json.dumps(_plain({"command": " ".join(names), **content}), ensure_ascii=False, allow_nan=False))


def ledger_facts(opened: Ledger, path: str, **more: Any) -> dict[str, Any]:
    """Return what a document says of a ledger, and ``more`` of a charge."""
    total, spent, remaining = opened.total, opened.spent, opened.remaining
    kept = {"accountant": opened.accountant, "total": total, "spent": spent, "remaining": remaining}
    return {"path": path, **kept, **more}


def refuse_two_outputs(out: str | None) -> None:
    """Refuse a release and a document on one standard output."""
    if out == "-" and wants_document():
        raise CommandError("--out - and --json both write to standard output; give --out FILE")


def _plain(value: Any) -> Any:
    """Return a value of JSON's own kinds."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Iterable):
        return [_plain(one) for one in value]
    return str(value)
