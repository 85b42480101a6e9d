"""The commands about ledgers: create one, show it, say what was spent, verify it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.documents import JSON, ledger_facts, wants_document, write_document
from dpfast.cli.errors import CommandError, FileTroubleError, name_of
from dpfast.cli.options import choice
from dpfast.errors import LedgerError, ParameterError
from dpfast.showing import number_of

if TYPE_CHECKING:
    from dpfast.cli.options import Destination
    from dpfast.ledger import Ledger

__all__ = ["accountant_of", "existing", "ledger", "open_or_create", "shown_path"]

_HEAD = click.option(
    "--expect-head", metavar="DIGEST", help="A head written down before: refuse a ledger that never had it."
)


@click.group(short_help="Create a ledger, show, report on, or verify one.")
def ledger() -> None:
    """Create a ledger, show what one has left, report on it, or verify it."""


@ledger.command(epilog="\b\nExample:\n  dpfast ledger create ledger.db --epsilon 4 --delta 1e-6 --dataset flights")
@click.argument("path")
@click.option("--epsilon", type=float, help="The whole budget; it cannot be raised later.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="The same for delta.")
@choice(
    "--accountant", "basic", "zcdp", "rdp", "odometer", text="What adds up: epsilons, rhos, or R\u00e9nyi divergences."
)
@click.option("--conversion-delta", type=float, help="For all but basic: the part of delta that converts.  [half]")
@click.option("--dataset", metavar="NAME", help="The only data it may be charged for.")
@click.option("--unit", metavar="COLUMN|row", help="The only privacy unit that it may be charged for.")
@click.option("--neighbors", type=click.Choice(["add_remove", "replace"]), help="The only neighbour relation.")
@JSON
def create(path: str, epsilon: float | None, delta: float, accountant: str, unit: str | None, **given: Any) -> None:
    """Create a ledger with a budget.

    The first release fixes what is left open of dataset, unit and neighbours.
    """
    from dpfast.ledger import Ledger
    from dpfast.ledger.opening import is_there

    if epsilon is None and accountant != "odometer":
        raise CommandError("missing option '--epsilon'; write for example --epsilon 1")
    _check_place(path)
    if is_there(path):
        raise FileTroubleError(f"{shown_path(path)!r} exists; give another name, or see dpfast ledger show")
    privacy_unit = unit if unit in (None, "row") else f"column:{unit}"
    made = Ledger.open(path, epsilon, delta, accountant=accountant, privacy_unit=privacy_unit, **given)
    _close_at_the_end(made)
    if wants_document():
        write_document(ledger=ledger_facts(made, shown_path(path)))
        return
    click.echo(f"created {shown_path(path)}: {made.total} ({accountant})")


@ledger.command(
    short_help="Show what a ledger has left, and its entries.", epilog="\b\nExample:\n  dpfast ledger show ledger.db"
)
@click.argument("path")
@_HEAD
@JSON
def show(path: str, expect_head: str | None) -> None:
    """Show a ledger's budget, what is spent and left, what it is about, and its entries."""
    from dpfast.accounting.budget import amount_text
    from dpfast.cli.terminal import console, print_table

    opened = existing(path, expect_head)
    about, history = opened.identity, opened.history()
    if wants_document():
        write_document(
            ledger=ledger_facts(opened, shown_path(path), head=str(opened.head)),
            dataset=about.dataset,
            privacy_unit=about.privacy_unit,
            neighbors=about.neighbors,
            entries=history.to_dicts(),
        )
        return
    unfixed = "fixed by the first release"
    lines = {
        "ledger": shown_path(path),
        "budget": f"{opened.total} ({opened.accountant})",
        "spent": f"{opened.spent} in {number_of(history.height, 'entry', 'entries')}",
        "remaining": str(opened.remaining),
        "dataset": about.dataset or unfixed,
        "unit": about.privacy_unit or unfixed,
        "neighbors": about.neighbors or unfixed,
        "head": str(opened.head),
    }
    for name, value in lines.items():
        console().print(f"{name:<10} {value}")
    if history.height:
        shown = history.select("entry", "count", "time", "account", "description", "event", "epsilon", "delta")
        rows = [
            (
                f"{number}" if count == 1 else f"{number}-{number + count - 1}",
                f"{time:%Y-%m-%d %H:%M:%S}",
                f"{account}: {what}" if account else what,
                event or "",
                amount_text(epsilon),
                amount_text(delta),
            )
            for number, count, time, account, what, event, epsilon, delta in shown.iter_rows()
        ]
        print_table(("entry", "time (UTC)", "what was released", "event", "epsilon", "delta"), rows, left=4)


@ledger.command(
    short_help="Say what was spent, by every accountant.",
    epilog="\b\nExample:\n  dpfast ledger report ledger.db --delta 1e-6",
)
@click.argument("path")
@click.option("--delta", type=float, help="Where to read the accountants' curves.  [the ledger's delta]")
@click.option("--allotment", metavar="NAME", help="Report on this allotment.")
@JSON
def report(path: str, delta: float | None, allotment: str | None) -> None:
    """Say what was spent, by every accountant that applies, and which figures are guarantees."""
    from dpfast.accounting.budget import amount_text
    from dpfast.cli.terminal import print_table

    opened = existing(path)
    if allotment is not None:
        opened = opened.allotment(allotment)
    found = opened.report(delta)
    if wants_document():
        write_document(ledger=ledger_facts(opened, shown_path(path)), allotment=allotment, figures=found.to_dicts())
        return
    rows = [
        (accountant, "-" if epsilon is None else amount_text(epsilon, digits=6), "yes" if holds else "no", note)
        for accountant, epsilon, holds, note in found.iter_rows()
    ]
    print_table(("accountant", "epsilon", "guarantee", "note"), rows, left=1)


@ledger.command(
    short_help="Check every seal, and add every charge up again.",
    epilog="\b\nExample:\n  dpfast ledger verify ledger.db --expect-head DIGEST",
)
@click.argument("path")
@_HEAD
@JSON
def verify(path: str, expect_head: str | None) -> None:
    """Read a ledger in full, check every seal and add every charge up again."""
    opened = existing(path, expect_head)
    opened.verify()
    charges = int(opened.history()["count"].sum())
    if wants_document():
        write_document(ledger=ledger_facts(opened, shown_path(path), head=str(opened.head)), charges=charges)
        return
    click.echo(
        f"{shown_path(path)} is in order: {number_of(charges, 'charge')}, {opened.remaining} left, head {opened.head}"
    )


def shown_path(path: str) -> str:
    """Return what messages call a ledger: of a URL what is no password."""
    from dpfast.ledger.opening import is_database, server_of

    return server_of(path).place if is_database(path) else path


def _is_missing(path: str) -> bool:
    from dpfast.ledger.opening import is_database

    return not is_database(path) and not Path(path).exists()


def accountant_of(path: str | None) -> str:
    """Return what adds up in a ledger; of one that is still to be created, what a release creates it with."""
    from dpfast.ledger import Ledger

    if path is None or _is_missing(path):
        return "basic"
    opened = Ledger.open(path)
    try:
        return opened.accountant
    finally:
        opened.close()


def _check_place(path: str) -> None:
    """Refuse a place where no ledger can be: a folder, or a file in a folder that is not there.

    The argument is called as the running command calls it.
    """
    from dpfast.ledger.opening import is_database

    place = Path(path)
    if is_database(path) or place.is_file():
        return
    options = [one for one in click.get_current_context().command.params if one.name in ("ledger", "path")]
    name = name_of(options[0])
    if place.is_dir():
        raise FileTroubleError(f"{name} {path!r} is a folder; give a file: {place / 'ledger.db'}")
    if not place.parent.is_dir():
        missing = f"the folder {str(place.parent)!r}, which is missing"
        raise FileTroubleError(f"{name} {path!r} is in {missing}; create it first: mkdir -p {place.parent}")


def existing(path: str, expect_head: str | None = None) -> Ledger:
    """Open a ledger that must be there."""
    from dpfast.ledger import Ledger

    _check_place(path)
    if _is_missing(path):
        raise LedgerError(
            f"there is no ledger {path!r}; create it: dpfast ledger create {path} --epsilon 1 --delta 1e-6"
        )
    opened = Ledger.open(path, expect_head=expect_head)
    _close_at_the_end(opened)
    return opened


def _close_at_the_end(opened: Ledger) -> None:
    """Let go of a ledger's files when the command ends."""
    click.get_current_context().call_on_close(opened.close)


def open_or_create(destination: Destination, dataset: str) -> Ledger:
    """Open the ledger of a release, or create it where a budget is given."""
    from dpfast.ledger import Ledger

    path, epsilon, delta = destination.ledger, destination.budget_epsilon, destination.budget_delta
    if epsilon is None and delta is not None:
        raise CommandError("--budget-delta needs --budget-epsilon; give both to create the ledger")
    _check_place(path)
    if epsilon is None and _is_missing(path):
        raise LedgerError(
            f"there is no ledger {path!r}; create it with --budget-epsilon 1 --budget-delta 1e-6, "
            "or with dpfast ledger create"
        )
    try:
        opened = Ledger.open(path, epsilon, delta)
    except ParameterError as error:
        if error.argument in ("epsilon", "delta"):
            raise CommandError(
                f"--budget-{error}".replace(f"{error.argument}=", f"--budget-{error.argument} ")
            ) from None
        raise
    except LedgerError as error:
        told, changed, part = str(error).partition("open it without ")
        if not changed:
            raise
        raise FileTroubleError(f"{told}leave out --budget-{part}") from None
    _close_at_the_end(opened)
    name = opened.identity.dataset
    if name is not None and name != dataset:
        raise LedgerError(
            f"the ledger {shown_path(path)!r} is about the dataset {name!r}, not {dataset!r}; nothing was "
            f"charged: say --dataset {name!r} if these are the same data, or use another ledger"
        )
    return opened
