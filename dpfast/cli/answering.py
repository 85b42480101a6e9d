"""The command that answers a table of queries."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.errors import CommandError, FileTroubleError
from dpfast.cli.ledgers import existing, told
from dpfast.cli.output import FRAME_SUFFIXES, Target, rescue_frame, write_frame

if TYPE_CHECKING:
    import polars as pl

    from dpfast.ledger import Ledger

__all__ = ["answer", "answered_once", "read_table"]

_COLUMN_OR_NUMBER = "COLUMN|NUMBER"
_SUFFIXES = (".parquet", ".arrow", ".ipc", ".feather")


@click.command(
    short_help="Answer a table of queries, one a row.",
    epilog="\b\nExample:\n"
    "  dpfast answer queries.parquet --value count --sensitivity 1 --epsilon epsilon \\\n"
    "    --ledger ledger.db --out answers.parquet",
)
@click.argument("queries", metavar="QUERIES")
@click.option("--value", required=True, metavar="COLUMN", help="The true values: private, and not written.")
@click.option("--sensitivity", default="1", show_default=True, metavar=_COLUMN_OR_NUMBER)
@click.option("--epsilon", metavar=_COLUMN_OR_NUMBER, help="What a row is charged; with --weight the total.")
@click.option("--rho", metavar=_COLUMN_OR_NUMBER, help="The same in rho, for a ledger that adds up rho.")
@click.option("--delta", metavar=_COLUMN_OR_NUMBER, help="For Gaussian noise by epsilon.")
@click.option("--weight", metavar="COLUMN", help="Rows share the total in proportion to it.")
@click.option("--mechanism", default="auto", show_default=True, metavar="auto|laplace|gaussian|COLUMN")
@click.option("--missing", type=float, default=0.0, show_default=True, help="What a null or NaN counts as.")
@click.option("--name", default="answer", show_default=True, help="What the new columns are called.")
@click.option("--ledger", required=True, metavar="FILE", help="The budget that is charged.")
@click.option("--out", required=True, metavar="FILE", help="Where the answers go; - for CSV on standard output.")
@click.option("--overwrite", is_flag=True, help="Replace --out if it exists.")
def answer(
    queries: str, ledger: str, out: str, overwrite: bool, sensitivity: str, missing: float, **given: Any
) -> None:
    """Answer QUERIES, a Parquet or Arrow file with one query a row, once, and charge the ledger for them.

    Whatever is wrong with the arguments, the public columns, the ledger or the output is found before the
    charge. A charge is never given back.
    """
    import dpfast as dpf

    for option in ("epsilon", "rho", "delta"):
        given[option] = None if given[option] is None else _column_or_number(given[option], option)
    table = read_table(queries, "QUERIES")
    answered_once(
        lambda opened: dpf.answer(
            table,
            ledger=opened,
            sensitivity=_column_or_number(sensitivity, "sensitivity"),
            missing=missing,
            description=f"queries of {Path(queries).name}",
            **given,
        ),
        ledger,
        out,
        overwrite=overwrite,
        keep=(queries, ledger),
    )


def answered_once(
    ask: Callable[[Ledger], pl.DataFrame], ledger: str, out: str, *, overwrite: bool, keep: Sequence[str]
) -> None:
    """Have a ledger charged and answers drawn, and write them: the place is taken before the charge."""
    opened = existing(ledger)
    target = None
    if out != "-":
        target = Target(out, "--out", FRAME_SUFFIXES, overwrite=overwrite, keep=keep)
    with suppress(ValueError):  # not in the main thread, which alone is interrupted
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is charged from here on is written first
    try:
        answered = ask(opened)
        if target is None:
            click.echo(answered.write_csv(), nl=False)
            return
        try:
            target.save(lambda path: write_frame(answered, path))
        except BaseException as error:
            where = rescue_frame(answered)
            raise FileTroubleError(
                f"{out!r} could not be written ({error}); the answers were charged, and are {where}"
            ) from error
    finally:
        if target is not None:
            target.discard()
    click.echo(f"wrote {out}: {answered.height:,} answers; charged {told(ledger)}; left: {opened.remaining}")


def _column_or_number(text: str, option: str) -> str | float:
    """Read a number, or else take the text for a column's name."""
    try:
        return float(text)
    except ValueError:
        pass
    if not text:
        raise CommandError(f"--{option} must be a number or a column's name")
    return text


def read_table(path: str, argument: str) -> pl.DataFrame:
    """Read a file whose columns have types of their own."""
    import polars as pl

    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        # The types of a CSV file's columns depend on its values, and a wrong one is an error that tells of them.
        raise CommandError(f"{argument} {path!r} must end in one of {', '.join(_SUFFIXES)}; write CSV as Parquet first")
    if not Path(path).is_file():
        raise FileTroubleError(f"there is no file {path!r}")
    try:
        return pl.read_parquet(path) if suffix == ".parquet" else pl.read_ipc(path)
    except (pl.exceptions.PolarsError, OSError):
        # What the reader says may quote private values.
        raise FileTroubleError(f"{path!r} cannot be read as {suffix}; see whether it is whole") from None
