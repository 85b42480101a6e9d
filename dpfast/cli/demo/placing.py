"""Tables put into a user's folder: beside the user's own files, and over none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import polars as pl

from dpfast.cli.errors import FileTroubleError
from dpfast.cli.output import Target, write_frame

__all__ = ["missing_tables", "put_tables"]


def missing_tables(folder: Path, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the tables, by file name, that a folder does not hold yet.

    Raises
    ------
    FileTroubleError
        A file of such a name holds something else.

    """
    missing = {}
    for name, frame in tables.items():
        path = folder / name
        if not os.path.lexists(path):
            missing[name] = frame
        elif not _holds(path, frame):
            raise FileTroubleError(
                f"{str(path)!r} is there already, with other contents; give another folder to --data"
            )
    return missing


def put_tables(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write Parquet files, each whole or not at all; one that somebody made meanwhile is left alone.

    Raises
    ------
    OSError
        One cannot be written.
    FileTroubleError
        The folder cannot be written to.

    """
    for name, frame in tables.items():
        target = Target(str(folder / name), "--data", [".parquet"], overwrite=False)
        try:
            target.save(partial(write_frame, frame))
        finally:
            target.discard()


def _holds(path: Path, frame: pl.DataFrame) -> bool:
    """Return whether a file is a table of these columns and rows."""
    try:
        # Opened here: of a path, Polars would take brackets for a pattern.
        with path.open("rb") as file:
            if pl.read_parquet_schema(file) != frame.schema:
                return False
            file.seek(0)
            return pl.read_parquet(file, hive_partitioning=False).equals(frame)
    except (pl.exceptions.PolarsError, OSError):
        return False
