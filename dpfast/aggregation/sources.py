"""What data may be given as, and how it becomes a Polars frame without being read whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl

from dpfast.aggregation.addresses import shown_path
from dpfast.aggregation.arrow_datasets import find_dataset
from dpfast.aggregation.arrow_streams import ArrowStream, polars_schema
from dpfast.aggregation.finding import find_database
from dpfast.aggregation.lake_tables import open_table
from dpfast.aggregation.lost_threads import refuse_lost_threads
from dpfast.aggregation.paths import ALLOWED, name_dataset, name_files, paths_of
from dpfast.aggregation.protocols import Engine, is_engine, is_rows
from dpfast.aggregation.scans import Source, scan_files
from dpfast.arguments import Choice, Special
from dpfast.columns.tables import frame_of_table
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.showing import near_names

__all__ = [
    "AskedEngine",
    "Data",
    "Schema",
    "Source",
    "missing_column",
    "open_data",
    "open_source",
    "path_of",
    "refuse_pattern",
]

#: Frames of several libraries, which need not be there: no type but object is that of all.
Data: TypeAlias = Annotated[
    object,
    Special(lambda: (5, True, 0.5, b"a", object(), [], [5], {"a": [1], "b": [1, 2]}, "", "no.parquet")),
]
#: The dtypes of a CSV file's columns.
Schema: TypeAlias = Annotated[
    Mapping[str, pl.DataType | type[pl.DataType]] | None,
    Special(lambda: (5, True, "Int64", [pl.Int64], object(), {"a": 5}, {"a": "Int64"}, {1: pl.Int64}), optional=True),
]

#: Who aggregates.
AskedEngine: TypeAlias = Annotated[Literal["auto", "rows", "sql"], Choice(("auto", "rows", "sql"))]

_MASKED = {f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64)} | {"Float32", "Float64", "boolean"}


def open_source(data: Data, *, schema: Schema = None) -> Source:
    """Return the data as a Polars frame; files are scanned, not loaded.

    Guarantee: nothing but schemas is read, and no error here depends on a value in the data: names, sizes and times
    of files, and the names of folders, are taken to be public. In a CSV file a
    field has the declared dtype, or is null where it does not parse as that (dates are written 2024-02-29,
    moments 2024-02-29 23:59:00 or with a T), so that no row can change a dtype or another row's value or raise
    an error (Soundness rule 12). This assumes that the file's quoting is whole: a quote that is never closed
    swallows the rows after it, and the CSV format knows no better. Where rows come from strangers, use Parquet.

    What a LazyFrame does is its maker's part of the guarantee: ``polars.scan_csv`` and ``scan_ndjson`` infer
    dtypes from the first rows, so that one row changes the schema; give the path and ``schema`` instead. Of the
    files that a LazyFrame scans, nothing is known here: where one of them differs from the first, the run fails after
    its charge. Give the paths themselves, and all are checked.

    The footer or header of every file is read here. Columns may come in any order, and some files may have more than
    others; a column that is used must be in all of them, with dtypes that one dtype holds without loss: integers and
    floats of several widths, strings and categories, and columns without values beside any other.

    Parameters
    ----------
    data
        A Polars DataFrame (what is added to it later does not count) or LazyFrame, a pyarrow Table or
        RecordBatch, a pandas DataFrame (without its index, and without columns of ``object``, whose dtype does not say
        what they hold), a path, a glob pattern, a folder, or a list of these: ``.parquet``, ``.csv`` (also ``.csv.gz``,
        ``.csv.zst``), ``.avro``, or the Arrow file format as ``.arrow``, ``.ipc``, ``.feather``. Files given together
        are of one kind. Addresses such as ``s3://bucket/day*.parquet`` are read by Polars, with what the environment
        says of its store; their changes are not noticed, and no error, plan or ledger shows a user, password or
        signature that stands in them. A store that needs more than the environment says is opened by Polars' own scan:
        ``pl.scan_parquet("s3://bucket/day*.parquet", storage_options={"aws_region": "eu-west-1"})``, a LazyFrame as any
        other. Polars before 2.0 decompresses a CSV file in memory.

        A Delta table (a folder with ``_delta_log``, or an address such as ``delta+s3://bucket/table``) or an Iceberg
        table (its ``.metadata.json``, or a folder with a ``version-hint.text``), which need ``dpfast[delta]`` or
        ``dpfast[iceberg]``: the snapshot that is the newest now is read, whatever is written to the table after that.

        A dataset of ``pyarrow.dataset``, whose files are checked as if they were given by their paths, or a scanner,
        which is read once, with the memory that its own options take. Datasets of CSV and JSON, whose types depend on
        the first rows, are refused.

        Anything with ``__arrow_c_stream__`` (readers of DuckDB and ADBC, cuDF): it is opened here, its rows are read
        when the plan runs, and once: where they are needed a second time, as for keys that are selected, those columns
        wait in memory, or encrypted on the disk. A relation of DuckDB, a table of Ibis, or `dpfast.sql`. Or an object
        with the methods of `dpfast.aggregation.protocols.Rows`.

        Folders below the one that is given, or below a pattern's first wildcard, may name columns, as in
        ``year=2024/`` (hive partitions; not of CSV files). Such a column has the dtype that ``schema`` declares, or
        that it has in the files themselves, or is String: no name of a folder changes a dtype, and one that does not
        parse is null.
    schema
        The dtypes of a CSV file's columns, by name; required for CSV. Columns that it does not name cannot be used.
        Of other files only those of columns that folders name.

    Returns
    -------
    Source
        Its frame is a DataFrame for what is in memory, sharing its memory where Arrow and Polars agree on the
        layout; a LazyFrame for files, which are pinned.

    Raises
    ------
    ParameterError
        If a file is missing, empty, cut short, not to be read or of another kind, or a pattern matches nothing or a
        folder: the file is named. If one file is named twice, by links or overlapping patterns: each of its rows
        would count twice.
    ColumnError
        If a CSV file comes without ``schema``, or ``schema`` names a column that the file lacks; if a table
        has columns that cannot become Polars' without looking at their values.

    """
    opened = open_data(data, schema=schema, engine="rows")
    assert isinstance(opened, Source)
    return opened


def open_data(data: Data, *, schema: Schema = None, engine: AskedEngine = "auto") -> Source | Engine:
    """Return the data as rows, as `open_source` does, or as an engine that aggregates them where they are.

    Parameters
    ----------
    data, schema
        As for `open_source`.
    engine
        ``"rows"``: rows are read, and aggregated here. ``"sql"``: the database aggregates, and no row leaves it.
        ``"auto"``: rows, where the database gives them as Arrow.

    Raises
    ------
    ParameterError, ColumnError
        What `open_source` raises, or the data cannot be used in the way that was asked for.

    """
    refuse_lost_threads()
    if isinstance(data, Source):
        return data
    source: Source | Engine | None = open_table(data)
    files = None if source is not None else name_files(data)
    if source is not None:
        if schema is not None:
            raise ParameterError("schema", schema, "left out", "a table knows its dtypes")
    elif files is not None:
        source = scan_files(files, schema)
    else:
        source = _supplied(data, engine)
        if schema is not None:
            raise ParameterError("schema", schema, "left out", "it declares the columns of CSV files only")
    if engine == "sql" and isinstance(source, Source):
        allowed = '"auto" or "rows" for data that no database holds'
        raise ParameterError("engine", engine, allowed, "give dpf.sql(connection, query) as data")
    return source


def _supplied(data: object, engine: AskedEngine) -> Source | Engine:
    """Return what is in memory, or behind an object of another library."""
    if isinstance(data, pl.DataFrame | pl.LazyFrame) or _is_table(data):
        return _in_memory(data)
    database = find_database(data)
    if database is not None:
        rows = None if engine == "sql" else database.rows()
        if rows is not None:
            return Source.of_rows(rows)
        pushed = None if engine == "rows" else database.engine()
        if pushed is not None:
            return pushed
        mend = 'let the database aggregate: engine="sql"' if engine == "rows" else 'let rows be read: engine="rows"'
        raise ParameterError("engine", engine, f"something else for {type(data).__name__}", mend)
    if is_rows(data):
        return Source.of_rows(data)
    if is_engine(data):
        return data
    return _in_memory(data)


def _is_table(data: object) -> bool:
    return _is_from("pyarrow", data, "Table", "RecordBatch") or _is_from("pandas", data, "DataFrame")


def _in_memory(data: object) -> Source:
    if isinstance(data, pl.LazyFrame):
        return Source(data)
    if isinstance(data, pl.DataFrame):
        return Source(data.clone())
    if _is_from("pyarrow", data, "Table", "RecordBatch"):
        table: Any = data
        held, refused = polars_schema(table.schema, type(table).__name__)
        return Source(frame_of_table(table.select(list(held)) if refused else table), refused=refused)
    if _is_from("pandas", data, "DataFrame"):
        frame, refused = _without_objects(data)
        return Source(frame_of_table(frame), refused=refused)
    dataset = sys.modules.get("pyarrow.dataset")
    rows = None if dataset is None else find_dataset(data, dataset)
    if rows is not None:
        return Source.of_rows(rows, rows.pins)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, (type, pl.Series)):
        return Source.of_rows(ArrowStream(data))
    # What was meant as data may hold rows.
    given = Words(f"a {type(data).__name__}") if isinstance(data, (list, tuple, dict, bytes)) else data
    raise ParameterError("data", given, ALLOWED)


def path_of(data: object) -> str | None:
    """Return a path as the data's name, and several by one (`name_dataset`); what is in memory has none."""
    paths = paths_of(data)
    if paths is None:
        return None
    return shown_path(paths[0]) if isinstance(data, (str, os.PathLike)) else name_dataset(paths)


def refuse_pattern(name: str) -> None:
    """Refuse a column name that ``polars.col`` takes for a pattern: it would name other columns."""
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise ColumnError(f"the column {name[:60]!r} has a name that Polars takes for a pattern; rename it")


def missing_column(name: object, columns: Iterable[str], argument: str, of: str = "data") -> ColumnError:
    """Return the error for a column that does not exist, with names that data or a domain has."""
    lacks = f"names the column {str(name)[:60]!r}, which the {of} lacks"
    return ColumnError(f"{argument} {lacks}; {near_names(str(name), list(columns))}")


def _is_from(package: str, data: object, *names: str) -> bool:
    """Return whether an object is of one of a package's classes; the package is not imported for it."""
    module = sys.modules.get(package)
    return module is not None and isinstance(data, tuple(getattr(module, name) for name in names))


def _without_objects(frame: Any) -> tuple[Any, dict[str, str]]:
    """Return a pandas frame of the columns whose dtypes say what they hold, and a line for each of the others."""
    says = [_says_its_values(dtype) for dtype in frame.dtypes]
    refused = {
        str(name): f"the column {str(name)[:60]!r} of the pandas DataFrame is of dtype {str(dtype)[:60]}, which may "
        "hold anything; cast it, or convert the frame first: polars.from_pandas(data)"
        for name, dtype, said in zip(frame.columns, frame.dtypes, says, strict=True)
        if not said
    }
    return (frame.loc[:, says] if refused else frame), refused


def _says_its_values(dtype: Any) -> bool:
    """Return whether all columns of a pandas dtype convert, or none: numbers, times, and what Arrow holds."""
    pandas: Any = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype):
        return dtype.categories is not None and _says_its_values(dtype.categories.dtype)
    if isinstance(dtype, pandas.StringDtype):
        return bool(dtype.storage != "python")  # a str may hold more than UTF-8 does
    known = isinstance(dtype, (pandas.ArrowDtype, pandas.DatetimeTZDtype)) or str(dtype) in _MASKED
    return known or (getattr(dtype, "kind", "O") in "biufmM" and type(dtype).__module__.startswith("numpy"))
