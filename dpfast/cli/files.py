"""Files that a command reads besides the data, and the dtypes of CSV columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfast.cli.errors import CommandError, FileTroubleError, shortened
from dpfast.cli.options import STANDARD_INPUT

if TYPE_CHECKING:
    import polars as pl

    from dpfast.aggregation.sources import Source

__all__ = [
    "CSV_SUFFIXES",
    "FILE_SUFFIXES",
    "check_file",
    "is_csv",
    "open_files",
    "read_keys",
    "read_schema",
    "read_typed_table",
    "take_data",
]

CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.zst")
_TYPED_SUFFIXES = (".parquet", ".arrow", ".ipc", ".feather")
FILE_SUFFIXES = (*CSV_SUFFIXES, *_TYPED_SUFFIXES, ".avro")
#: What stands between commas, those in double quotes apart.
_ENTRY = re.compile(r'(?:"(?:[^"]|"")*"|[^,])+|(?<=,)(?=,|$)')


def is_csv(path: str) -> bool:
    """Return whether a path is of CSV, or stands for standard input."""
    return path == STANDARD_INPUT or path.lower().endswith(CSV_SUFFIXES)


def take_data(
    files: Sequence[str], schema: dict[str, Any] | None, casts: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any] | None]:
    """Return the data that FILES name, with columns cast, and the dtypes that must be given beside them."""
    if casts:
        from dpfast.aggregation.sources import open_source

        data, declared = take_data(files, schema)
        return open_source(data, schema=declared).cast(casts), None
    if STANDARD_INPUT not in files:
        return list(files), schema
    if len(files) > 1:
        raise CommandError("FILES - is CSV on standard input, which is read alone; leave out - or the other files")
    if sys.stdin is None or sys.stdin.closed:
        raise FileTroubleError("there is no standard input to read; give a file")
    from dpfast.aggregation.csv_streams import CsvStream

    return CsvStream(sys.stdin.buffer, schema), None


def open_files(files: Sequence[str], schema: str | None, columns: Iterable[str]) -> Source:
    """Return the data that FILES name, with the dtypes of --schema; nothing but their schema was read.

    Where files differ in one of the columns, the error names them: the schema that they share lacks it.
    """
    from dpfast.aggregation.sources import open_source

    data, dtypes = take_data(files, read_schema(schema))
    source = open_source(data, schema=dtypes)
    source.require(columns)
    return source


def check_file(path: str, option: str, *others: str, kinds: str = "a Parquet or Arrow file") -> None:
    """Refuse a file that is missing, or neither a table whose columns have types nor of one of the other kinds."""
    allowed = (*others, *_TYPED_SUFFIXES)
    mend = "" if others else "; write CSV as Parquet first"
    if not path.lower().endswith(allowed):
        raise CommandError(f"{option} {path!r} must end in one of {', '.join(allowed)}{mend}")
    if not Path(path).is_file():
        raise FileTroubleError(f"there is no file {path!r} for {option}; give {kinds}")


def read_typed_table(path: str, option: str) -> pl.DataFrame:
    """Read a file whose columns have types of their own; it may hold private values."""
    import polars as pl

    # The types of a CSV file's columns depend on its values, and a wrong one is an error that tells of them.
    check_file(path, option)
    suffix = Path(path).suffix.lower()
    try:
        return pl.read_parquet(path) if suffix == ".parquet" else pl.read_ipc(path)
    except (pl.exceptions.PolarsError, OSError):
        # What the reader says may quote private values.
        raise FileTroubleError(f"{path!r} cannot be read as {suffix}; see whether it is whole") from None


def read_keys(path: str, schema: dict[str, Any] | None) -> pl.DataFrame:
    """Read the public keys; in a CSV file they are strings where ``--schema`` says nothing else."""
    import polars as pl

    check_file(path, "--keys", *CSV_SUFFIXES, kinds="a Parquet, CSV or Arrow file")
    if not path.lower().endswith(CSV_SUFFIXES):
        return read_typed_table(path, "--keys")
    try:
        columns = pl.read_csv(path, infer_schema=False, n_rows=0).columns
        dtypes = {name: dtype for name, dtype in (schema or {}).items() if name in columns}
        return pl.read_csv(path, infer_schema=False, schema_overrides=dtypes)
    except (pl.exceptions.PolarsError, OSError) as error:
        # Public keys are public: the reason may be shown.
        reason = " ".join(str(error).split())[:160]
        raise FileTroubleError(f"the keys in {path!r} cannot be read ({reason}); mend the file or --schema") from None


def read_schema(text: str | None, option: str = "--schema") -> dict[str, Any] | None:
    """Read ``COLUMN=DTYPE,...``; ``decimal(4)`` has 4 digits after the point, and ``decimal`` alone 2.

    A name may stand in double quotes, as in a CSV file's header.
    """
    if text is None:
        return None
    import polars as pl

    dtypes: dict[str, Any] = {
        "str": pl.String,
        "string": pl.String,
        "cat": pl.Categorical,
        "bool": pl.Boolean,
        "date": pl.Date,
        "datetime": pl.Datetime("us"),
        "time": pl.Time,
        "duration": pl.Duration("us"),
        "decimal": pl.Decimal(38, 2),
        "binary": pl.Binary,
        "int": pl.Int64,
        "float": pl.Float64,
    }
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64"):
        dtypes[name.lower()] = getattr(pl, name)
    dtypes |= {f"decimal({scale})": pl.Decimal(38, scale) for scale in range(38)}
    schema: dict[str, Any] = {}
    for entry in _ENTRY.findall(text) or [text]:
        name, equals, dtype = entry.strip().rpartition("=")
        if len(name) > 1 and name[0] == name[-1] == '"':
            name = name[1:-1].replace('""', '"')
        if not equals or not name:
            example = f"{option} carrier=str,dep_delay=float64"
            raise CommandError(f"{option} {shortened(entry)} cannot be read; write COLUMN=DTYPE,..., as in {example}")
        if dtype.strip().lower() not in dtypes:
            shown = [known for known in dtypes if "(" not in known or known == "decimal(4)"]
            wrong = f"{option} {shortened(entry)} names no dtype: {shortened(dtype)!r} is none"
            raise CommandError(f"{wrong}; choose one of {', '.join(shown)}")
        if name in schema:
            raise CommandError(f"{option} names {name!r} twice; leave one out")
        schema[name] = dtypes[dtype.strip().lower()]
    return schema
