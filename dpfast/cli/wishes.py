"""Errors that are wished for, as they are written on a command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.errors import CommandError, shortened
from dpfast.cli.options import combined

if TYPE_CHECKING:
    from dpfast.queries import Query
    from dpfast.releases.wishes import Limit, Wishes

__all__ = ["WISH_MEND", "read_budget_limit", "read_errors", "wish_options"]

#: What to write.
WISH_MEND = "write for example --error count=50 --error late_mean=2:200, 200 being the rows of a group"

#: The options of what is planned by its errors.
wish_options: Callable[[Any], Any] = combined(
    click.option(
        "--error",
        "errors",
        multiple=True,
        metavar="NAME=ERROR[:ROWS],...",
        help="In place of --epsilon: how far each query may be off, with probability 0.95; of a mean or a proportion "
        "in groups of so many rows.",
    ),
    click.option(
        "--budget",
        metavar="EPSILON|rho[:RHO]",
        help="What --error may cost: a largest epsilon; rho or rho:0.1 to count in rho.  [default: no limit; "
        "counted as the ledger counts]",
    ),
)


def read_errors(given: Sequence[str], queries: Mapping[str, Query]) -> Wishes:
    """Read what is wished for queries, such as ``count=50,late_mean=2:200``; None where nothing is."""
    wishes: dict[str, Any] = {}
    for entry in (part.strip() for text in given for part in text.split(",")):
        name, equals, wish = entry.rpartition("=")
        error, colon, rows = wish.partition(":")
        try:
            amount: Any = float(error)
            group = int(rows) if colon else None
        except ValueError:
            equals = ""
        if not equals or not name:
            raise CommandError(f"--error {shortened(entry)} cannot be read; {WISH_MEND}")
        if name in wishes:
            raise CommandError(f"--error names {name!r} twice; leave one out")
        kind = queries[name].kind if name in queries else ""
        wishes[name] = amount if group is None else (kind, amount, group)
    for name, wish in wishes.items():
        if name in queries and queries[name].kind in ("mean", "proportion") and not isinstance(wish, tuple):
            raise CommandError(
                f"--error {name}={wish:g} needs the rows of a group, on which the error of a {queries[name].kind} "
                f"depends; write for example --error {name}={wish:g}:200"
            )
    return wishes or None


def read_budget_limit(text: str | None) -> Limit:
    """Read what wished errors may cost."""
    if text is None:
        return None
    kind, colon, amount = text.rpartition(":")
    if text in ("rho", "epsilon"):
        return "rho" if text == "rho" else "epsilon"
    try:
        number = float(amount)
    except ValueError:
        number = -1.0
    if (colon and kind not in ("rho", "epsilon")) or number <= 0:
        raise CommandError(
            f"--budget {shortened(text)} cannot be read; write for example --budget 1, or --budget rho:0.1"
        )
    return ("rho", number) if kind == "rho" else number
