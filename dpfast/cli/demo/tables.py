"""The tables that README works with: the flights in files of a month each, and small tables that are made up."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dpfast.cli.demo.flights import read_flights
from dpfast.cli.demo.placing import missing_tables, put_tables
from dpfast.cli.documents import wants_document, write_document
from dpfast.cli.errors import FileTroubleError
from dpfast.cli.terminal import console

__all__ = ["made_up_cases", "made_up_people", "write_tables"]

_PEOPLE = 60_000
_WARDS = ("north", "south", "east", "west", "children", "maternity")
_ILLNESSES = ("influenza", "asthma", "fracture", "burn", "migraine")


def _spread(step: float) -> pl.Expr:
    """Return numbers from 0 to 1 that fill it evenly: row times an irrational step, without its whole part."""
    moved = pl.int_range(pl.len()) * step
    return moved - moved.floor()


def made_up_people() -> pl.DataFrame:
    """Return 60,000 people who do not exist: sex, age and marital status, which depend on each other.

    Examples
    --------
    >>> made_up_people().columns
    ['person', 'sex', 'age', 'status']

    """
    people = pl.DataFrame({"person": pl.int_range(_PEOPLE, eager=True)}).with_columns(
        sex=pl.when(_spread(0.6180339887) < 0.51).then(pl.lit("f")).otherwise(pl.lit("m")),
        age=(16 + 79 * _spread(0.4142135624) ** 1.5).floor().cast(pl.Int64),
        chance=_spread(0.7320508076),
    )
    single = pl.col("age") < 22 + 25 * pl.col("chance")
    widowed = pl.col("age") > 98 - 30 * pl.col("chance") - 6 * (pl.col("sex") == "f")
    status = pl.when(single).then(pl.lit("single")).when(widowed).then(pl.lit("widowed")).otherwise(pl.lit("married"))
    return people.select("person", "sex", "age", status=status)


def made_up_cases() -> pl.DataFrame:
    """Return how often each illness was treated in each ward of a hospital that does not exist.

    Examples
    --------
    >>> made_up_cases().filter(ward="children").sort("cases")["illness"][-1]
    'migraine'

    """
    cells = [(ward, illness) for ward in range(len(_WARDS)) for illness in range(len(_ILLNESSES))]
    rows = [
        (_WARDS[ward], _ILLNESSES[illness], 20 + 37 * ((7 * ward + 3 * illness * illness + 2 * ward * illness) % 11))
        for ward, illness in cells
    ]
    return pl.DataFrame(rows, schema=["ward", "illness", "cases"], orient="row")


def write_tables(folder: Path) -> None:
    """Write the tables to a folder.

    No file of other contents is replaced; a table that is there already is left as it is.

    Files: ``flights/2013-01.parquet`` to ``-12``, real flights; ``queries.parquet``, how many flights each
    carrier had from each airport, with an epsilon for each; ``people.parquet`` and ``cases.parquet``, made up.

    Raises
    ------
    DpfastError
        The package of flights is missing, a file of such a name holds something else, or one cannot be written.

    """
    flights = read_flights()
    months = flights.with_columns(month=pl.col("date").dt.strftime("%Y-%m")).partition_by(
        "month", as_dict=True, include_key=False
    )
    queries = flights.group_by("origin", "carrier").agg(count=pl.len()).sort("origin", "carrier")
    tables = {f"flights/{month}.parquet": frame for (month,), frame in months.items()}
    tables |= {
        "queries.parquet": queries.with_columns(epsilon=pl.lit(0.02)),
        "people.parquet": made_up_people(),
        "cases.parquet": made_up_cases(),
    }
    missing = missing_tables(folder, tables)
    try:
        (folder / "flights").mkdir(parents=True, exist_ok=True)
        put_tables(folder, missing)
    except OSError as error:
        raise FileTroubleError(
            f"{str(folder)!r} cannot be written to ({error.strerror}); give another --data"
        ) from None
    if wants_document():
        write_document(folder=str(folder), files=[str(folder / name) for name in tables])
        return
    done = "Wrote to" if missing else "There already, in"
    console().print(
        f"{done} {folder}: flights/ ({flights.height:,} real flights, {len(months)} files), queries.parquet, and "
        "people.parquet and cases.parquet, which are made up."
    )
