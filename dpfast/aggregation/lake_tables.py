"""Delta and Iceberg tables as lazy scans of one snapshot, through Polars' own readers.

A table's log says which files belong to a snapshot, and what their columns are. The snapshot is the one that was the
newest when the table was opened: what is written to the table after that is not read. The libraries' own errors are
never shown, as a log holds the least and greatest values of columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from dpfast.aggregation.addresses import is_address, shown_path
from dpfast.aggregation.footers import common_dtype, read_schemas, shorten_path
from dpfast.aggregation.paths import FilePin, NamedFile, local_path, paths_of
from dpfast.aggregation.scans import Source
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import FileError, ParameterError

__all__ = ["open_table"]

_DELTA, _METADATA = "delta+", ".metadata.json"


def open_table(data: object) -> Source | None:
    """Return the Delta or Iceberg table that a path names, or None if it names none.

    Parameters
    ----------
    data
        What may be a path or a list of one: a folder with ``_delta_log``, an address such as ``delta+s3://bucket/table``,
        a file ``*.metadata.json`` of an Iceberg table, or a folder with such files and a ``version-hint.text``.

    Raises
    ------
    ParameterError
        If the table cannot be opened, a file of its snapshot is missing, or it is one of several paths.

    """
    paths = paths_of(data) or []
    tables = [found for found in map(_find, paths) if found is not None]
    if not tables:
        return None
    name, read, place = tables[0]
    shown = shown_path(place)
    if len(paths) > 1:
        raise ParameterError("data", shown, f"given alone, as it is {_ARTICLES[name]} {name} table")
    package = _PACKAGES[name]
    if find_spec(package) is None:
        allowed = f"a kind of file that can be read here, and {name} tables need {package}"
        raise ParameterError("data", shown, allowed, f"run pip install 'dpfast[{name.lower()}]'")
    failure = None
    try:
        frame, files = read(place)
        # What the reader does not know of the table's format is an error here, and not after the charge.
        frame.select(pl.len()).explain()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        failure = type(error).__name__
    # Out here no traceback holds the library's error.
    if failure is not None:
        raise FileError("data", shown, f"{_ARTICLES[name]} {name} table that can be opened (it raises {failure})")
    return _source(frame, [NamedFile(local_path(file)) for file in files], checked=name == "Delta")


_PACKAGES = {"Delta": "deltalake", "Iceberg": "pyiceberg"}
_ARTICLES = {"Delta": "a", "Iceberg": "an"}


def _find(path: str) -> tuple[str, Callable[[str], tuple[pl.LazyFrame, list[str]]], str] | None:
    """Return the kind of table that a path names, what reads it, and where it is."""
    if path.lower().startswith(_DELTA):
        return "Delta", _read_delta, local_path(path[len(_DELTA) :])
    place = local_path(path)
    if place.lower().endswith(_METADATA):
        return "Iceberg", _read_iceberg, place
    if is_address(place) or not os.path.isdir(place):
        return None
    if os.path.isdir(os.path.join(place, "_delta_log")):
        return "Delta", _read_delta, place
    if any(Path(place, "metadata").glob(f"*{_METADATA}")):
        return "Iceberg", _read_iceberg, _newest_metadata(place)
    return None


def _newest_metadata(folder: str) -> str:
    """Return the metadata that a table's hint names: without it only a catalogue knows which is in force."""
    metadata = Path(folder, "metadata")
    try:
        hint = (metadata / "version-hint.text").read_text().strip()
    except OSError:
        hint = ""
    for name in (hint, f"v{hint}{_METADATA}", f"{hint}{_METADATA}"):
        if hint and name.endswith(_METADATA) and (metadata / name).is_file():
            return str(metadata / name)
    mend = f"give the path of its {_METADATA} file that is in force, which its catalogue knows"
    raise FileError("data", folder, "an Iceberg table with a version-hint.text", mend)


def _read_delta(place: str) -> tuple[pl.LazyFrame, list[str]]:
    from deltalake import DeltaTable  # type: ignore[import-not-found,unused-ignore]

    # The object stays at the version that it was opened at.
    table: Any = DeltaTable(place)
    return pl.scan_delta(table), list(table.file_uris())


def _read_iceberg(place: str) -> tuple[pl.LazyFrame, list[str]]:
    from pyiceberg.table import StaticTable  # type: ignore[import-not-found,unused-ignore]

    table: Any = StaticTable.from_metadata(place)
    tasks = list(table.scan().plan_files())
    files = dict.fromkeys(file.file_path for task in tasks for file in (task.file, *task.delete_files))
    return pl.scan_iceberg(table), list(files)


def _source(frame: pl.LazyFrame, files: Sequence[NamedFile], *, checked: bool) -> Source:
    """Return a snapshot with its files as they are now; ``checked``: their columns are compared by their names."""
    local = [file for file in files if not file.is_remote]
    for file in local:
        if not os.path.isfile(file.path):
            raise FileError("data", file.path, "an existing file, as the table's log names it")
    scan_one = partial(pl.scan_parquet, glob=False, hive_partitioning=False)
    plain = [file for file in files if file.path.lower().endswith(".parquet")]
    held = read_schemas(plain, "parquet", scan_one) if plain else []
    refused: dict[str, str] = {}
    for file, schema in zip(plain, held, strict=True):
        refused = _differences(file.path, schema, frame.collect_schema()) | refused if checked else refused
    pins = tuple(FilePin.of(file.path) for file in local)
    return Source(frame, pins, refused=refused, scan_one=scan_one)


def _differences(path: str, held: pl.Schema, wanted: pl.Schema) -> dict[str, str]:
    """Return the columns of a file that some values might not survive; one that it lacks is null by definition."""
    return {
        name: f"the column {name[:60]!r} is of dtype {dtype_name(held[name])[:60]} in the file {shorten_path(path)}, "
        f"but of {dtype_name(dtype)[:60]} in the table's log; write the file again"
        for name, dtype in wanted.items()
        if name in held and held[name] != dtype and not _widens(held[name], dtype)
    }


def _widens(held: pl.DataType, wanted: pl.DataType) -> bool:
    """Return whether Polars widens a number without loss, which it does among integers and among floats."""
    same = (held.is_integer() and wanted.is_integer()) or (held.is_float() and wanted.is_float())
    return same and common_dtype([held, wanted]) == wanted
