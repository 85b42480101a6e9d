"""The command that selects the best of many candidates, for many groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpfast.cli.answering import answered_once
from dpfast.cli.documents import JSON
from dpfast.cli.errors import CommandError
from dpfast.cli.files import read_typed_table
from dpfast.cli.options import RHO, Destination, choice, destination_options

if TYPE_CHECKING:
    import polars as pl

__all__ = ["select"]


@click.command(
    short_help="Select the best candidate of every group.",
    epilog="\b\nExample:\n"
    "  dpfast select cases.parquet --by ward --candidate illness --score cases --monotonic \\\n"
    "    --epsilon 0.5 --ledger ledger.db --out most-common.parquet",
)
@click.argument("table", metavar="TABLE")
@click.option("--score", required=True, metavar="COLUMN", help="The higher the better: private, and not written.")
@click.option("--candidate", required=True, metavar="COLUMN", help="What is chosen among: public.")
@click.option("--by", multiple=True, metavar="COLUMN,...", help="A selection for each group; none for one in all.")
@click.option("--sensitivity", default=1.0, show_default=True, type=float, help="How much a unit changes a score.")
@click.option("--monotonic", is_flag=True, help="No two scores can move in opposite directions, as counts cannot.")
@click.option("--epsilon", type=float, help="What each selection is charged.")
@RHO
@click.option("--top", type=int, metavar="K", help="Select K in order; epsilon is for all of them.")
@choice("--mechanism", "auto", "exponential", "permute_and_flip", "noisy_max", text="How winners are selected.")
@destination_options("winners")
@JSON
def select(table: str, score: str, candidate: str, by: tuple[str, ...], top: int | None, **given: Any) -> None:
    """Select the best candidates of TABLE, a Parquet or Arrow file with one candidate a row, and charge the ledger.

    All candidates stand in the table, also those of score 0: which there are is public. Mistakes in the arguments,
    the public columns, the ledger or the output are found before the charge.
    """
    import dpfast as dpf

    destination = Destination.taken(given)
    keys = [name for names in by for name in names.split(",")]
    lists = _gathered(read_typed_table(table, "TABLE"), keys, candidate, score)
    given |= {"value": score, "candidates": candidate, "name": candidate, "k": top}
    what = f"selections of {Path(table).name}"
    answered_once(
        lambda opened: _ranked(dpf.answer(lists, ledger=opened, description=what, **given), candidate, top),
        destination,
        table,
    )


def _gathered(frame: pl.DataFrame, keys: list[str], candidate: str, score: str) -> pl.DataFrame:
    """Return a row for each selection, with lists of its candidates and scores."""
    import polars as pl

    for option, name in (("score", score), ("candidate", candidate), *(("by", key) for key in keys)):
        if name not in frame.columns:
            raise CommandError(f"--{option}: there is no column {name!r}, only {', '.join(frame.columns)}")
    names = [*keys, candidate, score]
    if len(set(names)) < len(names):
        raise CommandError("--by, --candidate and --score must be columns of their own")
    if "rank" in keys:
        raise CommandError("--by cannot be called 'rank', which is a column of the result; rename it")
    if not (frame.schema[score].is_numeric() or frame.schema[score] == pl.Boolean):
        raise CommandError(f"--score must be a column of numbers, but {score!r} is {frame.schema[score]}")
    if not keys:
        return frame.select(pl.col(candidate, score).implode())
    return frame.group_by(keys, maintain_order=True).agg(candidate, score)


def _ranked(answered: pl.DataFrame, candidate: str, top: int | None) -> pl.DataFrame:
    """Return a row for each winner, in order."""
    import polars as pl

    if top is None:
        return answered
    ranks = pl.int_ranges(1, pl.col(candidate).list.len() + 1).alias("rank")
    return answered.with_columns(ranks).explode(candidate, "rank")
