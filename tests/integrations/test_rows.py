"""Rows of any library: the same figures as of a frame, read batch by batch, once, and not before the charge."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_source, reading_rows
from dpfast.aggregation.protocols import is_rows
from dpfast.aggregation.scans import Source
from dpfast.errors import ColumnError, DpfastError, LedgerError, ParameterError
from dpfast.queries import Bins, points_measure, sum_measure
from dpfast.releases.query_measures import of_columns

ROWS = 300_000


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    generator = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "k": pl.Series(generator.integers(0, 40, ROWS)).cast(pl.String),
            "n": generator.integers(-5, 6, ROWS),
            "x": pl.Series(generator.normal(size=ROWS)).set(pl.Series(np.arange(ROWS) % 7 == 0), None),
            "u": generator.integers(0, 20_000, ROWS),
            "unused": "x",
        }
    )


class Batches:
    """Rows of a frame in batches of one size, which counts how often and what is read."""

    refused: Mapping[str, str] = {}

    def __init__(self, frame: pl.DataFrame, size: int, *, repeatable: bool = True) -> None:
        self.table, self.size, self.repeatable = frame.to_arrow(), size, repeatable
        self.dtypes = frame.schema
        self.read: list[Sequence[str]] = []

    def schema(self) -> pl.Schema:
        return self.dtypes

    def check(self) -> None:
        pass

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        assert self.repeatable or not self.read
        self.read.append(list(columns))
        yield from self.table.select(list(columns)).to_batches(max_chunksize=self.size)


def reader(frame: pl.DataFrame, size: int = 10_000) -> pa.RecordBatchReader:
    table = frame.to_arrow()
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=size)))


def words(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**64, number, np.uint64)


MEASURES = [
    sum_measure(dpf.sum("x", bounds=(-1, 1))),
    sum_measure(of_columns(dpf.sum("n", bounds=(-3, 3)), {"n": pl.Int64()})),
]
KEYS = pl.DataFrame({"k": [str(key) for key in range(45)]})
GROUPINGS = {
    "one group": Grouping(()),
    "public keys": Grouping(("k",), KEYS),
    "keys found": Grouping(("k",)),
    "bins": Grouping((Bins("x", (-1, 0, 1)),)),
    "several columns": Grouping(("k", Bins("n", (-5, 0, 6)))),
    "units": Grouping(("k",), KEYS, "u", 2, 3),
    "units of keys found": Grouping(("k",), None, "u", 2, 3),
}


def figures(source: Any, grouping: Grouping, measures: Any) -> Any:
    found = aggregate(open_source(source), grouping, measures, words)
    columns = {f"m{i}": pl.Series(measure) for i, measure in enumerate(found.measures)}
    if found.units is not None:
        columns["units"] = pl.Series(found.units)
    return found.keys.with_columns(**columns).sort(pl.all())


@pytest.mark.parametrize("name", GROUPINGS)
@pytest.mark.parametrize("kind", ["small batches", "large batches", "once", "reader"])
def test_figures_are_those_of_the_frame(frame, name, kind):
    source = {
        "small batches": lambda: Batches(frame, 2048),
        "large batches": lambda: Batches(frame, ROWS),
        "once": lambda: Batches(frame, 50_000, repeatable=False),
        "reader": lambda: reader(frame),
    }[kind]()
    assert figures(source, GROUPINGS[name], MEASURES).equals(figures(frame.lazy(), GROUPINGS[name], MEASURES))


UNITS = {
    "near": lambda units: pl.Series(units - 7000),
    "far": lambda units: pl.Series(units * 90_000 - 10**9),
    "farther than 2**31": lambda units: pl.Series((units - 10_000) * 2**40),
    "the last one is far": lambda units: pl.Series(units).set(pl.Series(np.arange(ROWS) == ROWS - 1), 2**62),
    "unsigned": lambda units: pl.Series(units.astype(np.uint64) + np.uint64(2**64 - 20_000)),
    "unsigned and far": lambda units: pl.Series(units.astype(np.uint64) * np.uint64(2**49)),
    "sorted": lambda units: pl.Series(np.sort(units)),
    "with nulls": lambda units: pl.Series(units).set(pl.Series(np.arange(ROWS) < ROWS // 2), None),
    "none": lambda units: pl.Series([None] * ROWS, dtype=pl.Int64),
    "dates": lambda units: pl.Series(units.astype(np.int32)).cast(pl.Date),
    "truth values": lambda units: pl.Series(units % 2 == 0),
    "texts": lambda units: pl.Series(units).cast(pl.String),
}


@pytest.mark.parametrize("units", UNITS)
def test_units_keep_the_same_rows_however_the_rows_are_cut(frame, units):
    frame = frame.with_columns(u=UNITS[units](frame["u"].to_numpy()))
    expected = figures(frame, GROUPINGS["units"], MEASURES)
    assert (expected["m0"] != 0).any() == (units != "none")
    cuts = [frame.lazy(), reader(frame), Batches(frame, 2048), Batches(frame, 2**18 + 1, repeatable=False)]
    for data in (frame.rechunk(), pl.concat([frame[:5], frame[5:]], rechunk=False), *cuts):
        assert figures(data, GROUPINGS["units"], MEASURES).equals(expected)


def test_points_of_quantiles_are_those_of_the_frame(frame):
    measure = points_measure(of_columns(dpf.quantile("n", [0.5], bounds=(-5, 5)), {"n": pl.Int64()}))
    for grouping in (GROUPINGS["keys found"], GROUPINGS["public keys"], GROUPINGS["units of keys found"]):
        for source in (Batches(frame, 9999, repeatable=False), reader(frame)):
            theirs, ours = (aggregate(open_source(data), grouping, [measure], words) for data in (frame.lazy(), source))
            order, other = (found.keys["k"].arg_sort().to_numpy() for found in (theirs, ours))
            for one, two in zip(order, other, strict=True):
                (a,), (b,) = theirs.measures, ours.measures
                first = np.sort(a.points[a.starts[one] : a.stops[one]])
                assert (first == np.sort(b.points[b.starts[two] : b.stops[two]])).all()


def test_only_what_is_needed_is_read(frame):
    rows = Batches(frame, 5000)
    figures(rows, GROUPINGS["public keys"], MEASURES[:1])
    assert rows.read == [["k", "x"]]


@pytest.mark.parametrize("room", [0, 3_000_000])
def test_rows_read_once_are_kept_on_disk_where_they_outgrow_memory(frame, monkeypatch, tmp_path, room):
    monkeypatch.setattr(reading_rows, "room_for_rows", lambda: room)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    grouping = GROUPINGS["units of keys found"]
    rows = Batches(frame, 10_000, repeatable=False)
    assert figures(rows, grouping, MEASURES).equals(figures(frame.lazy(), grouping, MEASURES))
    assert len(rows.read) == 1
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_polars_own_source_supplies_rows_too(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    for source in (open_source(frame), open_source(frame.lazy()), open_source(tmp_path / "a.parquet")):
        assert is_rows(source)
        source.check()
        assert source.repeatable
        assert source.schema() == frame.schema
        batches = pa.Table.from_batches(source.batches(["n", "k"]))
        assert pl.DataFrame(batches).equals(frame.select("n", "k"))
        assert figures(_Outer(source), GROUPINGS["keys found"], MEASURES).height == 40


class _Outer:
    """A Polars source, used as any other supplier of rows."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def schema(self) -> pl.Schema:
        return self.source.schema()

    def check(self) -> None:
        self.source.check()

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return self.source.batches(columns)


@pytest.mark.parametrize("name", GROUPINGS)
def test_streams_without_rows(frame, name):
    empty = frame.clear()
    for source in (reader(empty), Batches(empty, 10), pa.RecordBatchReader.from_batches(empty.to_arrow().schema, [])):
        assert figures(source, GROUPINGS[name], MEASURES).equals(figures(empty, GROUPINGS[name], MEASURES))


def test_empty_batches_dictionaries_and_slices():
    text = pa.array(["b", None, "a", "b"]).dictionary_encode()
    table = pa.table({"k": text, "n": pa.array([9, 1, 2, 3, None]).slice(1)})
    batches = [table.slice(0, 0), table.slice(0, 1), table.slice(1, 0), table.slice(1)]
    source = pa.RecordBatchReader.from_batches(
        table.schema, [batch for part in batches for batch in (part.to_batches() or [_no_rows(table.schema)])]
    )
    found = figures(source, Grouping(("k",)), MEASURES[1:])
    assert found.with_columns(pl.col("k").cast(pl.String)).sort("k").rows() == [(None, 2, 1), ("a", 3, 1), ("b", 1, 2)]


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return (
        schema.empty_table().to_batches()[0]
        if schema.empty_table().to_batches()
        else pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    )


def test_the_charge_comes_before_the_first_row(frame):
    ledger = dpf.Ledger(epsilon=1)
    spent = []

    class Watched(Batches):
        def batches(self, columns: Sequence[str]) -> Iterator[Any]:
            spent.append(ledger.spent.epsilon)
            return super().batches(columns)

    plan = dpf.plan(Watched(frame, 1000), "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5)
    plan.explain()
    assert not spent
    release = plan.run(ledger)
    assert spent == [0.5]
    assert plan.run(ledger) is release
    assert spent == [0.5]


def test_a_stream_serves_one_run(frame):
    stream = reader(frame)
    first, second = (dpf.plan(stream, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5) for _ in range(2))
    ledger = dpf.Ledger(epsilon=1)
    first.run(ledger)
    with pytest.raises(ParameterError, match="a RecordBatchReader that was read"):
        second.run(ledger)
    with pytest.raises(ParameterError, match="a RecordBatchReader that was read"):
        dpf.release(stream, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0.5


@pytest.mark.parametrize("grouping", ["public keys", "keys found", "units of keys found"])
def test_a_reader_that_fails_leaves_a_dead_plan_and_no_word_of_the_data(frame, grouping):
    def batches() -> Iterator[pa.RecordBatch]:
        yield from frame.to_arrow().to_batches(max_chunksize=100_000)[:1]
        raise ValueError("secret of row 100000")

    asked = GROUPINGS[grouping]
    bounds = {"max_groups": asked.max_groups, "max_rows_per_group": asked.max_rows_per_group}
    stream = pa.RecordBatchReader.from_batches(frame.to_arrow().schema, batches())
    plan = dpf.plan(
        stream,
        "k",
        keys=asked.keys,
        n=dpf.count(),
        epsilon=0.5,
        delta=1e-6,
        privacy_unit=asked.privacy_unit or "row",
        **bounds,
    )
    ledger = dpf.Ledger(epsilon=1, delta=1e-5)
    with pytest.raises(DpfastError, match="cannot be read to its end") as caught:
        plan.run(ledger)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or error.__context__
    assert ledger.spent.epsilon == 0.5
    with pytest.raises(LedgerError, match="failed after it was charged"):
        plan.run(ledger)


def test_a_batch_of_other_types_than_the_schema_is_no_answer(frame):
    class Lying(Batches):
        def schema(self) -> pl.Schema:
            return pl.Schema({**self.dtypes, "n": pl.Int32})

    with pytest.raises(DpfastError, match="other columns or types than the schema"):
        figures(Lying(frame, 1000), GROUPINGS["public keys"], MEASURES[1:])


def test_columns_that_cannot_be_used_are_refused_where_they_are_used():
    union = pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])])
    table = pa.table({"k": ["a", "b"], "odd": union})
    stream = table.to_reader()
    assert figures(stream, Grouping(("k",)), []).height == 2
    with pytest.raises(ColumnError, match=r"the column 'odd' of the RecordBatchReader is of the Arrow type .*cast it"):
        aggregate(open_source(table.to_reader()), Grouping(("odd",)), [], words)
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ColumnError, match="more than one column of the name 'a'"):
        open_source(twice.to_reader())


def test_histograms_of_streams(frame):
    domain = dpf.Domain({"k": [str(key) for key in range(40)]})
    assert (domain.count(reader(frame)) == domain.count(frame)).all()


def test_readers_of_duckdb_and_adbc(frame):
    duckdb = pytest.importorskip("duckdb")
    grouping = GROUPINGS["units of keys found"]
    with duckdb.connect() as connection:
        connection.register("rows", frame.to_arrow())
        found = figures(connection.sql("SELECT * FROM rows").to_arrow_reader(10_000), grouping, MEASURES)
    assert found.equals(figures(frame.lazy(), grouping, MEASURES))
    driver = pytest.importorskip("adbc_driver_sqlite.dbapi")
    few = frame.head(20_000)
    with driver.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("rows", few.to_arrow())
        cursor.execute("SELECT * FROM rows")
        found = figures(cursor.fetch_record_batch(), grouping, MEASURES)
    assert found.equals(figures(few.lazy(), grouping, MEASURES))


def test_a_slice_before_a_filter_and_after_one():
    frame = pl.DataFrame({"n": range(1000)})
    lazy = open_source(Batches(frame, 64)).frame.lazy()
    for query in (
        lambda data: data.head(10).filter(pl.col("n") % 2 == 0),
        lambda data: data.filter(pl.col("n") % 2 == 0).head(10),
        lambda data: data.filter(pl.col("n") > 500).select(pl.len()),
        lambda data: data.slice(100, 50).select(pl.col("n").sum()),
    ):
        for engine in ("in-memory", "streaming"):
            assert query(lazy).collect(engine=engine).equals(query(frame.lazy()).collect())


def test_columns_whose_names_are_those_of_methods(frame):
    """A library's columns may be attributes of its frames: what an object's class has counts."""
    names = ("rows", "engine", "schema", "check", "batches", "aggregate", "column_names")

    class Frame:
        def __init__(self, table: Any) -> None:
            self.table = table

        def __getattr__(self, name: str) -> Any:
            return self.table[name]

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.table.__arrow_c_stream__(requested_schema)

    table = frame.select("k", *(pl.col("n").alias(name) for name in names)).to_arrow()
    for source in (Frame(table), table, table.to_pandas().astype({"k": "string[pyarrow]"})):
        assert figures(source, Grouping(("k",)), []).equals(figures(frame.lazy(), Grouping(("k",)), []))


def test_an_object_that_gives_one_reader_twice_is_read_once(frame):
    class Handing:
        def __init__(self) -> None:
            self.reader = reader(frame)

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.reader.__arrow_c_stream__(requested_schema)

    handing, ledger = Handing(), dpf.Ledger(epsilon=1)
    asked = {"by": "k", "keys": KEYS, "n": dpf.count(), "epsilon": 0.25, "ledger": ledger}
    dpf.release(handing, **{"privacy_unit": "row", **asked})
    with pytest.raises((ParameterError, ColumnError)):
        dpf.release(handing, **{"privacy_unit": "row", **asked})
    assert ledger.spent.epsilon == 0.25


def test_columns_that_no_frame_can_hold_are_refused_where_they_are_used():
    table = pa.table({"k": ["a"], "wide": pa.array([None], pa.decimal256(60, 2))})
    assert figures(table.to_reader(), Grouping(("k",)), []).height == 1
    with pytest.raises(ColumnError, match="decimal256"):
        aggregate(open_source(table.to_reader()), Grouping(("wide",)), [], words)


def test_moments_that_would_wrap_are_null(frame):
    """Two privacy units that became one would move figures by what both contribute."""
    pandas = pytest.importorskip("pandas")
    seconds = pa.array([0, 2**62, 5, -(2**62) - 1, None], pa.timestamp("s"))
    table = pa.table({"t": seconds, "k": ["a"] * 5})
    frames = [pandas.DataFrame({"t": np.array([0, 2**62, 5, -(2**62), "NaT"], "M8[s]")}).assign(k=1), table]
    for source in (*frames, table.to_reader(), table.to_batches()[0]):
        found = aggregate(open_source(source), Grouping(("t",)), [], words)
        assert sorted(found.units.tolist()) == [1, 1, 3]
