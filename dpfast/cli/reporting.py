"""The command that writes a page about a ledger."""

from __future__ import annotations

import click

from dpfast.cli.documents import JSON, ledger_facts, say, wants_document, write_document
from dpfast.cli.errors import FileTroubleError, reason_of
from dpfast.cli.ledgers import existing, shown_path
from dpfast.cli.output import page_target

__all__ = ["report"]


@click.command(
    short_help="Write a page about a ledger, for people.",
    epilog="\b\nExample:\n  dpfast report ledger.db --out budget.html",
)
@click.argument("path", metavar="LEDGER")
@click.option("--out", required=True, metavar="FILE", help="Where to write the page: .html.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier page.")
@click.option("--allotment", metavar="NAME", help="Report on this allotment.")
@JSON
def report(path: str, out: str, overwrite: bool, allotment: str | None) -> None:
    """Write a page of HTML about LEDGER: what its budget promises, what was charged, and what is left.

    The page needs no network. Of a single release, dpfast release writes one with --report.
    """
    target = page_target(out, "--out", overwrite=overwrite, keep=(path,))
    try:
        opened = existing(path)
        if allotment is not None:
            opened = opened.allotment(allotment)
        html = opened._page().html()
        try:
            target.save(lambda part: part.write_text(html, encoding="utf-8", errors="replace"))
        except OSError as error:
            raise FileTroubleError(f"the page {out!r} could not be written ({reason_of(error)})") from None
    finally:
        target.discard()
    if wants_document():
        write_document(ledger=ledger_facts(opened, shown_path(path)), allotment=allotment, out=out)
        return
    say(f"wrote {out}: the budget of {shown_path(path)}")
