"""The command that shows what answers with too little noise give away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from dpfast.cli.documents import JSON, wants_document, write_document
from dpfast.cli.errors import CommandError
from dpfast.cli.files import read_schema
from dpfast.cli.options import FILES, SCHEMA
from dpfast.cli.output import chart_target
from dpfast.cli.terminal import Progress, print_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpfast.aggregation.sources import Source
    from dpfast.attacks import Reconstruction

__all__ = ["attack"]

#: Scales of the noise, as multiples of the square root of the number of records.
_FACTORS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_ANSWERS_A_RECORD = 4


@click.command(
    short_help="Show what too little noise gives away; charges nothing.",
    epilog="\b\nExample:\n  dpfast attack people.parquet --column smoker --value yes --plot attack.png",
)
@FILES
@click.option("--column", required=True, metavar="COLUMN", help="What the attack finds out of every record.")
@click.option("--value", metavar="VALUE", help="Whether the column has this value; not needed for a column of 0 and 1.")
@click.option("--rows", type=click.IntRange(2, 1000), default=200, show_default=True, help="Attack the first N rows.")
@SCHEMA
@click.option("--plot", metavar="FILE", help="Draw the share recovered against the noise: .png, .svg or .pdf.")
@click.option("--overwrite", is_flag=True, help="Replace --plot if it exists.")
@JSON
def attack(
    files: tuple[str, ...],
    column: str,
    value: str | None,
    rows: int,
    schema: str | None,
    plot: str | None,
    overwrite: bool,
) -> None:
    """Ask for counts over random subsets of the rows of FILES, add noise, and find the rows from the answers.

    Four answers a row suffice, for each of several scales of Laplace noise. What is printed is not private: the true
    rows were used to say how many are right. Run it on data that you may see.
    """
    from dpfast.aggregation.sources import open_source

    target = chart_target(plot, overwrite=overwrite, keep=files)
    try:
        source = open_source(list(files), schema=read_schema(schema))
        bits = _read_bits(source, column, value, rows)
        with Progress() as progress:
            progress("attacking")
            found = [_attacked(bits, factor * math.sqrt(bits.size)) for factor in _FACTORS]
        if not wants_document():
            _show(bits.size, found)
        if target is not None:
            from dpfast.charts import draw_recovery

            scales, shares = [scale for scale, _ in found], [one.recovered for _, one in found]
            target.save(lambda part: draw_recovery(scales, shares, found[0][1].guessing, bits.size, part))
            if not wants_document():
                click.echo(f"wrote {plot}")
        if wants_document():
            _write(bits.size, found, plot)
    finally:
        if target is not None:
            target.discard()


def _read_bits(source: Source, column: str, value: str | None, rows: int) -> NDArray[np.uint8]:
    """Return a bit of each of the first rows that have a value."""
    import polars as pl

    columns = source.schema()
    if column not in columns:
        raise CommandError(f"--column: there is no column {column!r}, only {', '.join(columns)}")
    source.require([column])
    read = pl.col(column)
    if columns[column].is_nested():
        raise CommandError(f"--column: {column!r} is {columns[column]}; choose a column of plain values")
    if value is not None:
        read = (read.cast(pl.String) == value).cast(pl.UInt8)
    elif columns[column] == pl.Boolean:
        read = read.cast(pl.UInt8)
    elif not columns[column].is_numeric():
        raise CommandError(f"--value is missing: {column!r} is {columns[column]}; write for example --value yes")
    kept = source.frame.lazy().select(read.alias("bit")).drop_nulls().head(rows).collect()["bit"]
    if not ((kept == 0) | (kept == 1)).all():
        raise CommandError(
            f"--value is missing: {column!r} has other numbers than 0 and 1; write for example --value 1"
        )
    if kept.len() < 2 or kept.n_unique() < 2:
        few = kept.len() < 2
        told = "there are fewer than two rows" if few else f"all of the first {kept.len():,} rows have one answer"
        mend = "choose a larger file" if few else "choose another --column or --value"
        raise CommandError(f"--column: {told}, so that there is nothing to find; {mend}")
    return kept.cast(pl.UInt8).to_numpy()


def _attacked(bits: NDArray[np.uint8], scale: float) -> tuple[float, Reconstruction]:
    import dpfast as dpf

    return scale, dpf.attacks.reconstruction(lambda counts: dpf.laplace(counts, scale), bits)


def _write(records: int, found: list[tuple[float, Reconstruction]], plot: str | None) -> None:
    answers, guessing = found[0][1].queries, found[0][1].guessing
    attacks = [
        {"scale": scale, "epsilon_of_one": 1 / scale, "epsilon_of_all": answers / scale, "recovered": one.recovered}
        for scale, one in found
    ]
    write_document(records=records, answers=answers, guessing=guessing, attacks=attacks, plot=plot)


def _show(records: int, found: list[tuple[float, Reconstruction]]) -> None:
    answers, guessing = found[0][1].queries, found[0][1].guessing
    print_table(
        ("noise of each answer", "epsilon of one", "epsilon of all", "recovered"),
        (
            (f"{scale:.3g}", f"{1 / scale:.3g}", f"{answers / scale:.4g}", f"{one.recovered:.1%}")
            for scale, one in found
        ),
        left=0,
    )
    enough = _ANSWERS_A_RECORD * records
    click.echo(
        f"{answers:,} counts over random subsets of {records:,} rows; guessing the frequent value is right for"
        f" {guessing:.1%}.\nA ledger with epsilon 1 for all of them asks for Laplace noise of scale {enough:,}."
    )
