"""Spark's types and those of Polars, by which a release is planned."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpfast.errors import ColumnError, ParameterError

__all__ = ["empty_frame", "quoted", "read_frame", "spark_columns"]

_DTYPES: dict[str, pl.DataType] = {
    "byte": pl.Int8(),
    "short": pl.Int16(),
    "integer": pl.Int32(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
    "string": pl.String(),
    "date": pl.Date(),
    "binary": pl.Binary(),
    "timestamp": pl.Datetime("us", "UTC"),
    # Its microseconds would depend on the session's time zone: the plan refuses it.
    "timestamp_ntz": pl.Datetime("ns"),
}
#: What has no dtype of its own here can be neither a key nor added up; the plan refuses it by this name.
_OTHER = pl.Struct([])
_TYPES = {
    pl.Int8: "tinyint",
    pl.Int16: "smallint",
    pl.Int32: "int",
    pl.Int64: "bigint",
    pl.Float64: "double",
    pl.Boolean: "boolean",
    pl.String: "string",
    pl.Date: "date",
    pl.Duration: "interval day to second",
}


def read_frame(frame: object) -> Any:
    """Return a Spark DataFrame as it was given.

    Raises
    ------
    ParameterError
        It is none, or one of Spark Connect, from which files cannot be deleted.

    """
    names = {f"{kind.__module__}.{kind.__name__}" for kind in type(frame).__mro__}
    if not any(name.startswith("pyspark.sql.") and name.endswith(".DataFrame") for name in names):
        raise ParameterError("data", frame, "a pyspark.sql.DataFrame", "use dpf.release for what is not in Spark")
    session = frame.sparkSession  # type: ignore[attr-defined]
    if any(".connect." in name for name in names) or not hasattr(session, "_jsc"):
        allowed = "a DataFrame of a session with a driver of its own, not of Spark Connect"
        raise ParameterError("data", frame, allowed, "run the release in the driver's process")
    if frame.isStreaming:  # type: ignore[attr-defined]
        raise ParameterError("data", frame, "a DataFrame of a batch, not of a stream", "release what a batch wrote")
    return frame


def empty_frame(frame: Any) -> pl.DataFrame:
    """Return a Polars frame of a Spark frame's columns and no rows; nothing is read."""
    dtypes: dict[str, pl.DataType] = {}
    for field in frame.schema.fields:
        if field.name in dtypes:
            raise ColumnError(f"the frame has two columns of the name {field.name[:60]!r}; rename one of them")
        dtypes[field.name] = _dtype(field.dataType)
    return pl.DataFrame(schema=dtypes)


def _dtype(kind: Any) -> pl.DataType:
    name = str(kind.typeName())
    if name.startswith("decimal"):
        return pl.Decimal(kind.precision, kind.scale)
    # A string's name may say its collation or length.
    return _DTYPES.get("string" if name.startswith(("string", "char", "varchar")) else name, _OTHER)


def spark_columns(schema: pl.Schema) -> str:
    """Return columns in the words of Spark.

    Examples
    --------
    >>> spark_columns(pl.Schema({"city": pl.String(), "n": pl.Int64()}))
    '`city` string, `n` bigint'
    >>> spark_columns(pl.Schema({"late": pl.List(pl.Int64())}))
    '`late` array<bigint>'

    """
    return ", ".join(f"{quoted(name)} {_type(name, dtype)}" for name, dtype in schema.items())


def quoted(name: str) -> str:
    """Return a column's name as Spark takes any."""
    return "`" + name.replace("`", "``") + "`"


def _type(name: str, dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Datetime):
        return "timestamp"
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision}, {dtype.scale})"
    if isinstance(dtype, pl.List):
        # What it is a list of may be a class, of which there is one dtype.
        return f"array<{_type(name, pl.Series(dtype=dtype.inner).dtype)}>"
    try:
        return _TYPES[type(dtype)]
    except KeyError:
        mend = "make it a string, a number, a date or a timestamp"
        raise ColumnError(f"a column {name[:60]!r} of dtype {dtype} cannot be released by Spark; {mend}") from None
