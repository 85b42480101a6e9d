"""The command that writes the domain of files: from their schema, from what is declared, and from a private look."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.documents import JSON, ledger_facts, say, wants_document, write_document
from dpfast.cli.domain_files import domain_document
from dpfast.cli.domains import declared_options, declared_values, names_of
from dpfast.cli.errors import CommandError, FileTroubleError, described, reason_of
from dpfast.cli.files import open_files
from dpfast.cli.ledgers import open_or_create, shown_path
from dpfast.cli.options import EPSILON, FILES, RHO, Destination, choice, dataset_name, reading_options
from dpfast.cli.output import Target
from dpfast.cli.releasing import charge_line, cost_words, run_charged
from dpfast.cli.terminal import Progress
from dpfast.errors import ParameterError
from dpfast.showing import number_of

if TYPE_CHECKING:
    from dpfast.ledger import Ledger
    from dpfast.releases.domain_proposal import DomainProposal, PlannedProposal

__all__ = ["domain"]

#: What becomes of rows with other values.
_BECOMES = {"null": "counted under null", "drop": "left out", "clamp": "given the nearest bin; else left out"}
_MEND = "add --private --epsilon 0.5 --ledger FILE to look for them privately"


@click.command(
    short_help="Write the values and bins of files' columns; --private finds them at a price.",
    epilog="\b\nExample:\n"
    "  dpfast domain people.parquet --columns sex,age,city --values sex:f,m --private --epsilon 0.5 --delta 1e-8 \\\n"
    "    --ledger ledger.db --budget-epsilon 4 --budget-delta 1e-6 --out domain.json",
)
@FILES
@click.option("--columns", metavar="COLUMN,...", help="Which columns.  [default: all]")
@declared_options
@click.option("--private", is_flag=True, help="Find what is neither declared nor said by the schema by a private look.")
@EPSILON
@click.option("--delta", type=float, default=0.0, show_default=True, help="Needed to find categories.")
@RHO
@click.option("--number", type=int, default=16, show_default=True, help="About how many bins a column gets.")
@click.option("--categories", type=int, default=64, show_default=True, help="The most values that a column gets.")
@click.option("--listed", metavar="COLUMN,...", help="Columns of whole numbers whose values are categories.")
@choice(
    "--outside",
    "null",
    "drop",
    "clamp",
    text="Rows with another value, as --domain reads it: counted under null, left out, or given the nearest bin.",
)
@click.option("--nulls", metavar="COLUMN,...", help="Columns whose nulls are a category of their own.")
@reading_options
@click.option("--ledger", metavar="FILE", help="The budget that is charged, with --private.")
@click.option("--budget-epsilon", type=float, help="Create the ledger with this budget if there is none.")
@click.option("--budget-delta", type=float, help="The same for delta.  [default: 0]")
@click.option("--out", required=True, metavar="FILE", help="Where to write the domain: .json, which --domain reads.")
@click.option("--overwrite", is_flag=True, help="Replace --out if it exists.")
@JSON
def domain(
    files: tuple[str, ...],
    columns: str | None,
    values: tuple[str, ...],
    bins: tuple[str, ...],
    private: bool,
    listed: str | None,
    outside: str,
    nulls: str | None,
    number: int,
    dataset: str | None,
    schema: str | None,
    **given: Any,
) -> None:
    """Write which values and bins the columns of FILES have, for `dpfast synthesize --domain`.

    Values are declared, or said by the schema (Booleans, enums). With --private the rest is found by private quantiles
    and private categories, and the ledger is charged for it before any row is read. A charge is never given back.
    """
    from dpfast.domain.declaring import declare
    from dpfast.releases.domain_proposal import plan_proposal

    destination = Destination.taken(given)
    wanted = any(given[name] is not None for name in ("epsilon", "rho")) or bool(destination.ledger)
    if wanted and not private:
        raise CommandError("--epsilon, --rho and --ledger are for --private, which is missing; add it")
    if private and (not destination.ledger or (given["epsilon"] is None and given["rho"] is None)):
        raise CommandError("--private needs --ledger and --epsilon; write for example --epsilon 0.5 --ledger ledger.db")
    target = Target(
        destination.out, "--out", (".json",), overwrite=destination.overwrite, keep=(*files, destination.ledger or "")
    )
    try:
        name = dataset_name(files, dataset)
        asked_of = None if columns is None else names_of(columns)
        source = open_files(files, schema, asked_of or ())
        known = source.schema()
        names = asked_of or list(known)
        own_nulls = [] if nulls is None else names_of(nulls, "--nulls")
        if unknown := [one for one in own_nulls if one not in names]:
            raise CommandError(f"--nulls names {unknown[0]!r}, which --columns does not; add it, or leave it out")
        attributes = declared_values({"values": values, "bins": bins}, names, known)
        charge: list[str] = []
        facts: dict[str, Any] = {}
        if private:
            asked = {"columns": names, "bins": number, "outside": outside, "dataset": name, **given}
            asked["listed"] = None if listed is None else names_of(listed, "--listed")
            planned = plan_proposal(source, attributes or None, bounds=None, schema=None, **asked)
            account, place = open_or_create(destination, name), shown_path(destination.ledger)
            found = _found(planned, account, place, asked)
            written = found.attributes
            if found.spent is not None:
                charge = [charge_line(account, place, found.entry, found.spent)]
            facts["ledger"] = ledger_facts(account, place, entry=found.entry, charged=found.spent)
        else:
            try:
                written = declare(known, attributes or None, names)
            except ParameterError as error:
                raise CommandError(f"{described(error)}; {_MEND}") from None
        document = domain_document(written, outside, own_nulls)
        _save(target, document, charge)
    finally:
        target.discard()
    if wants_document():
        write_document(out=destination.out, **document, **facts)
        return
    shown = [f"{column}: {_described(axis)}" for column, axis in document["columns"].items()]
    shown.append(f"rows with other values: {_BECOMES[outside]}")
    say("\n".join([f"wrote {destination.out}: {number_of(len(written), 'column')}", *shown, *charge]))


def _found(planned: PlannedProposal, account: Ledger, place: str, asked: dict[str, Any]) -> DomainProposal:
    """Charge and look; whatever stops it says what that has cost."""
    cost = cost_words(asked["epsilon"], asked["rho"], asked["delta"])
    with Progress() as progress:
        return run_charged(lambda: planned.run(account, progress), cost, account, place, progress)


def _save(target: Target, document: dict[str, Any], charge: list[str]) -> None:
    """Write the domain; what was paid for is shown where it cannot be written."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    try:
        target.save(lambda path: path.write_text(text + "\n", encoding="utf-8"))
    except OSError as error:
        if charge:
            click.echo(text)
        raise FileTroubleError(f"{str(target.path)!r} could not be written ({reason_of(error)})") from None


def _described(axis: Any) -> str:
    """Return how many values or bins a column has."""
    return number_of(len(axis["bins"]) - 1, "bin") if isinstance(axis, dict) else number_of(len(axis), "value")
