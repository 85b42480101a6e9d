"""What data may be given as, and how it becomes a Polars frame without being read whole."""

from __future__ import annotations

import difflib
import glob
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from dpfast.columns.tables import frame_of_table
from dpfast.errors import ColumnError, DpfastError, ParameterError

__all__ = ["FilePin", "Source", "missing_column", "open_source", "refuse_pattern"]

_SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
_ALLOWED = "a DataFrame, a LazyFrame, an Arrow table, or paths of " + ", ".join(_SUFFIXES)
_MASKED = {f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)} | {"Float32", "Float64", "boolean"}


@dataclass(frozen=True)
class FilePin:
    """A file as it was when it was opened: which one, how long, and when last written."""

    path: str
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: str) -> FilePin:
        """Return the pin of a file; OSError if there is none."""
        status = os.stat(path)
        return cls(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))

    def holds(self) -> bool:
        """Return whether the file is still the same."""
        try:
            return FilePin.of(self.path) == self
        except OSError:
            return False


@dataclass(frozen=True)
class Source:
    """Data as a Polars frame, with what is needed to notice that its files changed.

    Attributes
    ----------
    frame
        A DataFrame for what is in memory, a LazyFrame for files.
    pins
        The files that are scanned, as they were before their schema was read; none of a user's own LazyFrame.
    counted
        Whether the engine knows the number of rows without reading them (Parquet and Arrow files).

    """

    frame: pl.DataFrame | pl.LazyFrame = field(repr=False)
    pins: tuple[FilePin, ...] = ()
    counted: bool = False

    def collect_schema(self) -> pl.Schema:
        """Return the names and dtypes of the columns."""
        return self.frame.collect_schema()

    def check(self) -> None:
        """Refuse files that changed since they were opened.

        Raises
        ------
        ParameterError
            If a file was replaced, written to or removed.

        """
        for pin in self.pins:
            if not pin.holds():
                raise ParameterError("data", pin.path, "a file that did not change since the plan", "plan again")

    def __reduce__(self) -> NoReturn:
        raise DpfastError("a plan's data cannot be pickled or copied")


def open_source(data: object, *, schema: Mapping[str, pl.DataType | type[pl.DataType]] | None = None) -> Source:
    """Return the data as a Polars frame; files are scanned, not loaded.

    Guarantee: nothing but schemas is read, and no error here depends on a value in the data. In a CSV file a
    field has the declared dtype, or is null where it does not parse as that (dates are written 2024-02-29,
    moments 2024-02-29 23:59:00 or with a T), so that no row can change a dtype or another row's value or raise
    an error (Soundness rule 12). This assumes that the file's quoting is whole: a quote that is never closed
    swallows the rows after it, and the CSV format knows no better. Where rows come from strangers, use Parquet.

    What a LazyFrame does is its maker's part of the guarantee: ``polars.scan_csv`` and ``scan_ndjson`` infer
    dtypes from the first rows, so that one row changes the schema; give the path and ``schema`` instead.

    Parameters
    ----------
    data
        A Polars DataFrame (what is added to it later does not count) or LazyFrame, a pyarrow Table or
        RecordBatch, a pandas DataFrame of columns whose dtype says what they hold (no ``object``; its index is
        left out), a path, a glob pattern, or a list of paths: ``.parquet``, ``.csv`` (also ``.csv.gz``,
        ``.csv.zst``), or the Arrow file format as ``.arrow``, ``.ipc``, ``.feather``. Files given together are
        of one kind. Streams are refused, since opening one reads its rows.
    schema
        The dtypes of a CSV file's columns, by name; required for CSV and refused otherwise. Columns that it
        does not name cannot be used.

    Returns
    -------
    Source
        Its frame is a DataFrame for what is in memory, sharing its memory where Arrow and Polars agree on the
        layout; a LazyFrame for files, which are pinned.

    Raises
    ------
    ParameterError
        If a file is missing, the kind is unknown, a pattern matches nothing, or a file cannot be opened.
    ColumnError
        If a CSV file comes without ``schema``, or ``schema`` names a column that the file lacks; if a table
        has columns that cannot become Polars' without looking at their values.

    """
    paths = _as_paths(data)
    if paths is not None:
        return _scan_files(paths, schema)
    if schema is not None:
        raise ParameterError("schema", schema, "left out", "it declares the columns of CSV files only")
    if isinstance(data, pl.LazyFrame):
        return Source(data)
    if isinstance(data, pl.DataFrame):
        return Source(data.clone())
    if _is_from("pyarrow", data, "Table", "RecordBatch"):
        return Source(frame_of_table(data))
    if _is_from("pandas", data, "DataFrame"):
        _refuse_objects(data)
        return Source(frame_of_table(data))
    mend = "convert it first: polars.DataFrame(data)" if hasattr(data, "__arrow_c_stream__") else ""
    raise ParameterError("data", data, _ALLOWED, mend)


def refuse_pattern(name: str) -> None:
    """Refuse a column name that ``polars.col`` takes for a pattern: it would name other columns."""
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise ColumnError(f"the column {name[:60]!r} has a name that Polars takes for a pattern; rename it")


def missing_column(name: object, columns: Iterable[str], argument: str) -> ColumnError:
    """Return the error for a column that does not exist, with the names that come near."""
    columns = list(columns)
    near = difflib.get_close_matches(str(name), columns, n=3) or columns[:8]
    return ColumnError(f"{argument} names the column {str(name)[:60]!r}, which the data lacks; near are {near}")


def _is_from(package: str, data: object, *names: str) -> bool:
    """Return whether an object is of one of a package's classes; the package is not imported for it."""
    module = sys.modules.get(package)
    return module is not None and isinstance(data, tuple(getattr(module, name) for name in names))


def _refuse_objects(frame: Any) -> None:
    """Refuse a pandas frame with a column whose dtype does not say what its values are."""
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if not _says_its_values(dtype):
            raise ColumnError(
                f"the column {str(name)[:60]!r} of the pandas DataFrame is of dtype {str(dtype)[:60]}, which may hold "
                "anything; cast it, or convert the frame first: polars.from_pandas(data)"
            )


def _says_its_values(dtype: Any) -> bool:
    """Return whether all columns of a pandas dtype convert, or none: numbers, times, and what Arrow holds."""
    pandas: Any = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype):
        return dtype.categories is not None and _says_its_values(dtype.categories.dtype)
    if isinstance(dtype, pandas.StringDtype):
        return bool(dtype.storage != "python")  # a str may hold more than UTF-8 does
    known = isinstance(dtype, (pandas.ArrowDtype, pandas.DatetimeTZDtype)) or str(dtype) in _MASKED
    return known or (getattr(dtype, "kind", "O") in "biufmM" and type(dtype).__module__.startswith("numpy"))


def _as_paths(data: object) -> list[str] | None:
    """Return the files that ``data`` names, or None if it is no path at all."""
    if isinstance(data, (str, os.PathLike)):
        path = os.path.expanduser(os.fspath(data))
        if isinstance(path, bytes):
            raise ParameterError("data", data, _ALLOWED)
        if glob.has_magic(path) and not os.path.exists(path):
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise ParameterError("data", path, "a pattern that matches files")
            return found
        return [path]
    if isinstance(data, Sequence) and all(isinstance(path, (str, os.PathLike)) for path in data):
        if not data:
            raise ParameterError("data", data, _ALLOWED)
        return [path for entry in data for path in _as_paths(entry) or ()]
    return None


def _scan_files(paths: list[str], schema: Mapping[str, pl.DataType | type[pl.DataType]] | None) -> Source:
    """Return a lazy scan of files of one kind."""
    kinds, pins = set(), []
    for path in paths:
        kind = _SUFFIXES.get("".join(Path(path).suffixes[-2:]).lower())
        kind = kind or _SUFFIXES.get(Path(path).suffix.lower())
        if kind is None:
            raise ParameterError("data", path, "a path that ends in one of " + ", ".join(_SUFFIXES))
        if not os.path.isfile(path):
            raise ParameterError("data", path, "an existing file")
        kinds.add(kind)
        try:
            pins.append(FilePin.of(os.path.abspath(path)))
        except OSError:
            raise ParameterError("data", path, "an existing file") from None
    if len(kinds) > 1:
        raise ParameterError("data", paths, "files of one kind")
    paths = [pin.path for pin in pins]
    kind = kinds.pop()
    if kind == "csv":
        return Source(_scan_csv(paths, schema), tuple(pins))
    if schema is not None:
        raise ParameterError("schema", schema, "left out", "only CSV files do not know their own dtypes")
    scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    return Source(_probed(lambda: scan(paths, glob=False), paths)[0], tuple(pins), counted=True)


def _scan_csv(paths: list[str], schema: Mapping[str, pl.DataType | type[pl.DataType]] | None) -> pl.LazyFrame:
    """Return a lazy scan of CSV files in which no dtype is inferred and no field can fail."""
    if schema is None:
        raise ColumnError(
            "a CSV file does not know its dtypes, and inferring them would let one row change them; "
            'declare them: schema={"carrier": polars.String, "dep_delay": polars.Float64}'
        )
    try:
        declared = {name: pl.Series(dtype=dtype).dtype for name, dtype in schema.items()}
    except (AttributeError, TypeError):
        declared = {}
    if not declared or any(not isinstance(name, str) or schema[name] is None for name in declared):
        raise ParameterError(
            "schema",
            schema,
            "the dtypes of a CSV file's columns, at least one",
            'write for example schema={"carrier": polars.String}',
        )
    parsed = {name: _parse_text(name, dtype) for name, dtype in declared.items()}

    def scan() -> pl.LazyFrame:
        return pl.scan_csv(
            paths,
            glob=False,
            # Polars parses numbers itself, field by field; the rest stays text until it is parsed below.
            schema_overrides={name: declared[name] for name, expr in parsed.items() if expr is None},
            infer_schema=False,
            ignore_errors=True,
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
        )

    frame, names = _probed(scan, paths)
    for name in declared:
        if name not in names:
            raise missing_column(name, names, "schema")
    return frame.select([pl.col(name) if expr is None else expr for name, expr in parsed.items()])


def _parse_text(name: str, dtype: pl.DataType) -> pl.Expr | None:
    """Return how a column of text becomes the dtype, field by field; None where Polars' reader does that.

    The reader would take the format of all dates from the first, so that one row could change the others.
    """
    text = pl.col(name)
    if dtype in (pl.String, pl.Boolean) or (dtype.is_numeric() and not dtype.is_decimal()):
        return None
    if isinstance(dtype, pl.Categorical) and dtype.categories.physical() != pl.UInt32:
        raise ColumnError(
            f"schema declares the column {name!r} as a Categorical with room for few categories, which the data "
            "could exceed; declare it String"
        )
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return text.cast(dtype, strict=False)
    if dtype == pl.Date:
        return text.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        spaced = text.str.replace("T", " ", literal=True)
        coarse, moment = (
            spaced.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit=unit, strict=False)
            for unit in ("ms", dtype.time_unit)
        )
        # Polars wraps a moment that nanoseconds cannot hold into another year.
        held = pl.when(coarse.cast(dtype, strict=False).is_not_null()).then(moment)
        return pl.coalesce(held, text.str.to_date("%Y-%m-%d", strict=False).cast(dtype, strict=False)).alias(name)
    raise ColumnError(
        f"schema declares the column {name!r} with dtype {dtype}, which is not read from CSV: declare numbers, "
        "Boolean, String, Categorical, Enum, Date or Datetime without a time zone"
    )


def _probed(scan: Callable[[], pl.LazyFrame], paths: list[str]) -> tuple[pl.LazyFrame, list[str]]:
    """Return the scan and its column names; one line instead of the engine's report if that fails."""
    try:
        frame = scan()
        return frame, frame.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ParameterError("data", paths, f"files that can be opened ({reason})") from None
