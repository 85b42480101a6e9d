"""The command that answers a table of queries."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.documents import JSON, ledger_facts, say, wants_document, write_document
from dpfast.cli.files import read_typed_table
from dpfast.cli.ledgers import existing, shown_path
from dpfast.cli.options import Destination, destination_options
from dpfast.cli.output import Outputs
from dpfast.showing import number_of

if TYPE_CHECKING:
    import polars as pl

    from dpfast.ledger import Ledger

__all__ = ["answer", "answered_once"]


def _column_or_number(text: str) -> str | float:
    """Read a number, or else take the text for a column's name."""
    try:
        return float(text)
    except ValueError:
        if not text:
            raise click.BadParameter("it must be a number or a column's name") from None
        return text


#: For an option that takes a number for all rows, or a column of them.
_AMOUNT: dict[str, Any] = {"metavar": "COLUMN|NUMBER", "type": _column_or_number}


@click.command(
    short_help="Answer a table of queries, one a row.",
    epilog="\b\nExample:\n"
    "  dpfast answer queries.parquet --value count --sensitivity 1 --epsilon epsilon \\\n"
    "    --ledger ledger.db --out answers.parquet",
)
@click.argument("queries", metavar="QUERIES")
@click.option("--value", required=True, metavar="COLUMN", help="The true values: private, and not written.")
@click.option("--sensitivity", default="1", show_default=True, **_AMOUNT)
@click.option("--epsilon", **_AMOUNT, help="What a row is charged; with --weight the total.")
@click.option("--rho", **_AMOUNT, help="The same in rho, for a ledger that adds up rho.")
@click.option("--error", **_AMOUNT, help="In place of both: half of the width that an interval may have.")
@click.option("--delta", **_AMOUNT, help="For Gaussian noise by epsilon.")
@click.option("--weight", metavar="COLUMN", help="Rows share the total in proportion to it.")
@click.option("--mechanism", default="auto", show_default=True, metavar="auto|laplace|gaussian|COLUMN")
@click.option("--missing", type=float, default=0.0, show_default=True, help="What a null or NaN counts as.")
@click.option("--name", default="answer", show_default=True, help="What the new columns are called.")
@destination_options("answers")
@JSON
def answer(queries: str, **given: Any) -> None:
    """Answer QUERIES, a Parquet or Arrow file with one query a row, once, and charge the ledger for them.

    Mistakes in the arguments, the public columns, the ledger or the output are found before the charge. A charge is
    never given back.
    """
    import dpfast as dpf

    destination = Destination.taken(given)
    table = read_typed_table(queries, "QUERIES")
    what = f"queries of {Path(queries).name}"
    answered_once(lambda opened: dpf.answer(table, ledger=opened, description=what, **given), destination, queries)


def answered_once(ask: Callable[[Ledger], pl.DataFrame], destination: Destination, table: str) -> None:
    """Charge a ledger and draw answers, and write them: the place is taken before the charge."""
    opened = existing(destination.ledger)
    with Outputs(destination, keep=(table,)) as outputs:
        with suppress(ValueError):  # not in the main thread, which alone is interrupted
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is charged from here on is written first
        answered = ask(opened)
        outputs.save_frame(answered, "the answers were charged, and are")
    place = shown_path(destination.ledger)
    if wants_document():
        content = {"out": destination.out, "rows": answered.height, "columns": answered.columns}
        write_document(**content, ledger=ledger_facts(opened, place))
        return
    paid = f"charged {place}; left: {opened.remaining}"
    written = f"wrote {destination.out}: " if outputs.frame is not None else ""
    say(f"{written}{number_of(answered.height, 'answer')}; {paid}", err=outputs.frame is None)
