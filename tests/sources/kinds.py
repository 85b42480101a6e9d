"""Data of every kind, made of the same frames, and what is asked of all."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_source
from dpfast.aggregation.csv_streams import CsvStream
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure

MEASURES = [Measure("rows"), Measure("sum", "x", 0, 0, 1000, 0), Measure("values", "y")]
KEYS = pl.DataFrame({"k": ["a", "b", "none"]})
SCHEMA = {"k": pl.String, "x": pl.Int64, "y": pl.Float64, "u": pl.Int64}


def words(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**64, number, dtype=np.uint64)


def frame(rows: int = 40, start: int = 0) -> pl.DataFrame:
    number = pl.int_range(start, start + rows, eager=True)
    return pl.DataFrame(
        {
            "k": pl.Series(["a" if n % 3 else "b" for n in number], dtype=pl.String),
            "x": number,
            "y": pl.Series([None if n % 5 == 0 else n / 4 for n in number], dtype=pl.Float64),
            "u": number // 2,
        }
    )


def zstd(text: bytes) -> bytes:
    return pa.Codec("zstd").compress(text, asbytes=True)


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "avro": lambda part, path: part.write_avro(path, compression="deflate"),
    "csv": pl.DataFrame.write_csv,
    "csv.gz": lambda part, path: path.write_bytes(gzip.compress(part.write_csv().encode())),
    "csv.zst": lambda part, path: path.write_bytes(zstd(part.write_csv().encode())),
}


def files(suffix: str) -> Callable[[Path, list[pl.DataFrame]], Any]:
    def make(folder: Path, parts: list[pl.DataFrame]) -> list[Path]:
        paths = [folder / f"part [{i}]*.{suffix}" for i in range(len(parts))]
        for part, path in zip(parts, paths, strict=True):
            WRITERS[suffix](part, path)
        return paths

    return make


def parquet_dataset(folder: Path, parts: list[pl.DataFrame]) -> ds.Dataset:
    for i, part in enumerate(parts):
        pq.write_table(part.to_arrow(), folder / f"{i} [a]*.parquet")
    return ds.dataset(folder)


def feather_dataset(folder: Path, parts: list[pl.DataFrame]) -> ds.Dataset:
    for i, part in enumerate(parts):
        pyarrow.feather.write_feather(part.to_arrow(), folder / f"{i}.feather")
    return ds.dataset(folder, format="feather")


def hive_dataset(folder: Path, parts: list[pl.DataFrame]) -> ds.Dataset:
    for i, part in enumerate(parts):
        (folder / f"day={i}").mkdir()
        pq.write_table(part.to_arrow(), folder / f"day={i}" / "a.parquet")
    return ds.dataset(folder, partitioning="hive")


def union(folder: Path, parts: list[pl.DataFrame]) -> ds.Dataset:
    sets = [ds.dataset(part.to_arrow()) for part in parts[:1]]
    return ds.dataset([*sets, parquet_dataset(folder, parts[1:])] if parts[1:] else sets)


def filtered(folder: Path, parts: list[pl.DataFrame]) -> ds.Dataset:
    other = frame(10).with_columns(x=pl.lit(-1, pl.Int64))
    return parquet_dataset(folder, [*parts, other]).filter(ds.field("x") >= 0)


def delta(folder: Path, parts: list[pl.DataFrame]) -> Path:
    deltalake = pytest.importorskip("deltalake")
    for part in parts:
        deltalake.write_deltalake(str(folder / "table"), part.to_arrow(), mode="append")
    return folder / "table"


def iceberg(folder: Path, parts: list[pl.DataFrame]) -> str:
    catalog = pytest.importorskip("pyiceberg.catalog.sql")
    made = catalog.SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/lake")
    made.create_namespace("n")
    narrow = pa.schema([("k", pa.string()), ("x", pa.int64()), ("y", pa.float64()), ("u", pa.int64())])
    table = made.create_table("n.t", schema=narrow)
    for part in parts:
        table.append(part.to_arrow().cast(narrow))
    made.close()
    return table.metadata_location


class Exporter:
    """A class of one's own that exports a stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def ibis_table(_: Path, parts: list[pl.DataFrame]) -> Any:
    ibis = pytest.importorskip("ibis")
    connection = pytest.importorskip("duckdb").connect()
    connection.from_arrow(pl.concat(parts).to_arrow()).create("t")
    return ibis.duckdb.from_connection(connection).table("t")


def nanoarrow_stream(_: Path, parts: list[pl.DataFrame]) -> Any:
    nanoarrow = pytest.importorskip("nanoarrow")
    return nanoarrow.ArrayStream(pl.concat(parts).to_arrow())


def duckdb_relation(_: Path, parts: list[pl.DataFrame]) -> Any:
    duckdb = pytest.importorskip("duckdb")
    table = pl.concat(parts).to_arrow()
    return duckdb.connect().from_arrow(table)


def pandas_frame(_: Path, parts: list[pl.DataFrame]) -> Any:
    pytest.importorskip("pandas")
    import pandas

    return pl.concat(parts).to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)


FILES = {suffix: files(suffix) for suffix in WRITERS}
DATASETS = {
    "dataset": parquet_dataset,
    "dataset of feather": feather_dataset,
    "dataset of folders": hive_dataset,
    "datasets": union,
    "filtered dataset": filtered,
    "dataset in memory": lambda _, parts: ds.dataset(pl.concat(parts).to_arrow()),
}
STREAMS = {
    "scanner": lambda folder, parts: parquet_dataset(folder, parts).scanner(),
    "scanner of batches": lambda _, parts: ds.Scanner.from_batches(pl.concat(parts).to_arrow().to_reader()),
    "reader": lambda _, parts: pl.concat(parts).to_arrow().to_reader(),
    "record batch": lambda _, parts: pl.concat(parts).to_arrow().combine_chunks().to_batches()[0],
    "own class": lambda _, parts: Exporter(pl.concat(parts).to_arrow()),
    "nanoarrow": nanoarrow_stream,
    "pandas": pandas_frame,
    "duckdb": duckdb_relation,
    "ibis": ibis_table,
    "standard input": lambda _, parts: CsvStream(BytesIO(pl.concat(parts).write_csv().encode()), SCHEMA),
}
TABLES = {"delta": delta, "iceberg": iceberg}
KINDS = FILES | DATASETS | STREAMS | TABLES
#: What consists of files, one for each part, that are known by name.
OF_FILES = {**FILES, **{name: DATASETS[name] for name in ("dataset", "dataset of feather", "dataset of folders")}}


def dtypes(kind: str) -> dict[str, Any] | None:
    return SCHEMA if kind.startswith("csv") else None


def figures(data: Any, kind: str, grouping: Grouping) -> list[Any]:
    source = open_source(data, schema=dtypes(kind))
    source.check()
    found = aggregate(source, grouping, MEASURES, words)
    columns = {f"m{i}": measure for i, measure in enumerate(found.measures)}
    if not grouping.by:
        return [measure.tolist() for measure in found.measures]
    return found.keys.with_columns(**columns).filter(pl.col("m0") > 0).sort("k").rows()


def refused(data: Any, kind: str = "", **asked: Any) -> str:
    """Return the line of a plan that is refused, with nothing spent and nothing of a library in the traceback."""
    ledger = dpf.Ledger(epsilon=1.0)
    query = dpf.sum("x", bounds=(0, 9))
    with pytest.raises((ParameterError, ColumnError)) as caught:
        dpf.release(
            data, "k", keys=KEYS, s=query, epsilon=0.5, dataset="d", ledger=ledger,
            **{"privacy_unit": "row", "schema": dtypes(kind), **asked},
        )  # fmt: skip
    assert ledger.spent.epsilon == 0
    assert caught.value.__context__ is None
    assert "\n" not in str(caught.value)
    return str(caught.value)


GROUPINGS = {
    "keys": Grouping(("k",), KEYS),
    "keys found": Grouping(("k",)),
    "no keys": Grouping(()),
    "unit": Grouping(("k",), KEYS, "u", 2, 5),
    "unit, keys found": Grouping(("k",), None, "u", 2, 5),
}
