"""What may go wrong between a source and its aggregates, and what then leaves: one fixed line."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import traceback
import warnings
from datetime import datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from polars.io.plugins import register_io_source

from dpfast.aggregation import Grouping, aggregate, open_source, prepare
from dpfast.aggregation import units as unit_numbering
from dpfast.aggregation.scans import Source
from dpfast.aggregation.scatter import feed
from dpfast.errors import BudgetExceededError, ColumnError, DpfastError, ParameterError
from dpfast.queries import Measure

ROWS = Measure("rows")
KEYS = pl.DataFrame({"k": ["a", "b"]})
GROUPINGS = {
    "keys": Grouping(("k",), KEYS),
    "no keys": Grouping(("k",)),
    "unit": Grouping(("k",), KEYS, "u", 1, 1),
    "unit, no keys": Grouping(("k",), None, "u", 1, 1),
}
SUM = Measure("sum", "x", 0, 0, 1000, 0)
LONG = 300_000


def words(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**64, number, dtype=np.uint64)


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame({"k": ["a", "b"] * 50, "x": [*range(99), 300], "u": range(100), "s": ["1"] * 99 + ["secret"]})


def refused(source, grouping, measures=(ROWS, SUM)) -> DpfastError:
    """Return the error of an aggregation that must fail, and hold nothing of the engine's own."""
    with pytest.raises(DpfastError, match="the data") as caught:
        aggregate(source, grouping, list(measures), words)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    text = "".join(traceback.format_exception(error))
    assert "secret" not in text
    assert "300" not in str(error)
    return error


# Rows are not lost.


@pytest.mark.parametrize("grouping", GROUPINGS.values(), ids=GROUPINGS)
def test_a_panic_of_the_engine_loses_no_rows(grouping):
    """Polars' collect_batches ends as if complete; neighbouring frames would differ by half of their rows."""
    days = pl.Series([0] * 2000 + [2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    frame = pl.DataFrame({"k": ["a"] * 2001, "u": range(2001), "day": days})
    lazy = frame.lazy().with_columns(x=pl.col("day").dt.month_end().is_not_null())
    assert aggregate(lazy.head(2000), grouping, [ROWS, SUM], words).measures[0].sum() == 2000
    refused(lazy, grouping)


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt, SystemExit, BudgetExceededError])
@pytest.mark.parametrize("in_order", [False, True])
def test_an_error_while_batches_are_used_stops_the_engine(error, in_order):
    source = Source(pl.LazyFrame({"x": range(3 * 10**6)}))
    seen = []

    def use(batch: pl.DataFrame) -> None:
        seen.append(batch.height)
        raise error("stop")

    with pytest.raises(error, match="stop"):
        feed(source, [pl.col("x") + 1], use, in_order=in_order)
    assert len(seen) == 1
    assert feed(source, [pl.col("x") + 1], lambda batch: seen.append(batch.height), in_order=in_order) == 3 * 10**6
    assert sum(seen[1:]) == 3 * 10**6
    assert len(seen) > 2


def test_batches_come_one_at_a_time_and_in_order():
    source, busy, last = Source(pl.LazyFrame({"x": range(3 * 10**6)})), threading.Lock(), [-1]

    def use(batch: pl.DataFrame) -> None:
        assert busy.acquire(blocking=False)
        assert batch["x"][0] == last[0] + 1
        last[0] = batch["x"][-1]
        busy.release()

    feed(source, [pl.col("x") + 0], use, in_order=True)
    assert last == [3 * 10**6 - 1]


def test_several_batches_are_used_at_once_and_no_more():
    """The first waits until a second is there; a third never comes meanwhile."""
    source, second, counting = Source(pl.LazyFrame({"x": range(3 * 10**6)})), threading.Event(), threading.Lock()
    busy = most = total = 0

    def use(batch: pl.DataFrame) -> None:
        nonlocal busy, most, total
        with counting:
            busy += 1
            most = max(most, busy)
            if busy == 2:
                second.set()
        assert second.wait(60)
        with counting:
            busy -= 1
            total += batch["x"].sum()

    assert feed(source, [pl.col("x") + 0], use, threads=2) == 3 * 10**6
    assert most == 2
    assert total == 3 * 10**6 * (3 * 10**6 - 1) // 2


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt, SystemExit, BudgetExceededError])
@pytest.mark.parametrize("last", [False, True])
def test_an_error_in_another_thread_is_raised_as_it_was(error, last):
    """Also that of the last batch, which ends after the engine does."""
    source, seen = Source(pl.LazyFrame({"x": range(10**6)})), []

    def use(batch: pl.DataFrame) -> None:
        seen.append(batch.height)
        if not last or batch["x"][-1] == 10**6 - 1:
            raise error("stop")

    with pytest.raises(error, match="stop"):
        feed(source, [pl.col("x") + 1 - 1], use, threads=2)
    assert sum(seen) <= 10**6


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "memory"])
def test_missing_batches_are_noticed(tmp_path, monkeypatch, unit, suffix):
    frame = pl.DataFrame({"k": np.arange(LONG) % 3, "u": range(LONG)}).with_columns(pl.col("k").cast(pl.String))
    # Categories of a small space are cast as they are read: frames in memory go through the engine, too.
    few = pl.Categorical(pl.Categories("three", physical=pl.UInt8))
    frame, path = frame.with_columns(pl.col("k").cast(few)), tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        frame.write_parquet(path)
    elif suffix == "arrow":
        frame.write_ipc(path)
    source = open_source(frame if suffix == "memory" else path)
    grouping = Grouping(("k",), pl.DataFrame({"k": ["0", "1", "2"]}), *(("u", 1, 1) if unit else ()))
    assert aggregate(source, grouping, [ROWS], words).measures[0].sum() == LONG
    sink = pl.LazyFrame.sink_batches

    def lose(self, function, **options):
        batches: list[pl.DataFrame] = []
        sink(self, batches.append, **options)
        for batch in batches[:-1]:
            function(batch)

    monkeypatch.setattr(pl.LazyFrame, "sink_batches", lose)
    refused(source, grouping, [ROWS])


# Errors after the charge.


def raising(value):
    if value == 300:
        raise ValueError(f"secret value {value}")
    return value


def failing_sources(frame: pl.DataFrame) -> dict[str, pl.LazyFrame]:
    def stop(with_columns, predicate, n_rows, batch_size):
        yield frame.select(with_columns) if with_columns else frame
        raise RuntimeError("secret in row 300")

    def lie(with_columns, predicate, n_rows, batch_size):
        other = frame.with_columns(pl.col("x").cast(pl.String))
        yield other.select(with_columns) if with_columns else other

    def fail(given):
        raise KeyError("secret 300")

    return {
        "strict cast": frame.lazy().with_columns(pl.col("x").cast(pl.Int8)),
        "strict text": frame.lazy().with_columns(pl.col("s").cast(pl.Int64).alias("x")),
        "function": frame.lazy().with_columns(pl.col("x").map_elements(raising, return_dtype=pl.Int64)),
        "scan": register_io_source(stop, schema=frame.schema),
        "scan of another schema": register_io_source(lie, schema=frame.schema),
        "batches": frame.lazy().map_batches(fail, schema=frame.schema),
    }


@pytest.mark.parametrize("grouping", GROUPINGS.values(), ids=GROUPINGS)
@pytest.mark.parametrize(
    "name", ["strict cast", "strict text", "function", "scan", "scan of another schema", "batches"]
)
def test_errors_of_the_engine_show_nothing(frame, name, grouping):
    """Soundness rules 3 and 12: a fixed line, and no traceback with the engine's error in it."""
    assert "LazyFrame fails" in str(refused(failing_sources(frame)[name], grouping))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, BudgetExceededError])
def test_what_is_not_about_the_data_passes(frame, error):
    def stop(number):
        raise error("stop")

    with pytest.raises(error, match="stop"):
        aggregate(frame, GROUPINGS["unit"], [ROWS], stop)


@pytest.mark.parametrize("error", [ValueError, pl.exceptions.PanicException, MemoryError])
def test_errors_over_a_frame_in_memory_show_nothing(frame, error):
    def fail(number):
        raise error("Unable to allocate an array with shape (300,)")

    expected = MemoryError if error is MemoryError else DpfastError
    with pytest.raises(expected) as caught:
        aggregate(frame, GROUPINGS["unit"], [ROWS], fail)
    assert type(caught.value) is expected
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert "300" not in str(caught.value)


def test_runs_that_overlap_leave_the_filters_of_warnings(frame):
    before = list(warnings.filters)
    inside, go = threading.Barrier(3), threading.Event()

    def wait(number):
        inside.wait()
        go.wait()
        warnings.warn("secret", UserWarning, stacklevel=1)
        return words(number)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        within = list(warnings.filters)
        threads = [threading.Thread(target=aggregate, args=(frame, GROUPINGS["unit"], [ROWS], wait)) for _ in range(2)]
        for thread in threads:
            thread.start()
        inside.wait()
        go.set()
        for thread in threads:
            thread.join()
        assert warnings.filters == within
        assert not shown
        warnings.warn("shown", UserWarning, stacklevel=1)
        assert len(shown) == 1
    assert warnings.filters == before


def test_too_many_units_do_not_wrap(monkeypatch):
    monkeypatch.setattr(unit_numbering, "_MOST_UNITS", 1000)
    for units, allowed in ((1000, True), (1001, False)):
        for dtype in (pl.Int64, pl.String):
            frame = pl.DataFrame({"k": ["a"] * units, "u": pl.Series(range(units)).cast(dtype)})
            lazy = pl.concat([frame[:500].lazy(), frame[500:].lazy()])
            if allowed:
                assert aggregate(lazy, GROUPINGS["unit"], [ROWS], words).units.sum() == units
                continue
            with pytest.raises(DpfastError, match="too many"):
                aggregate(lazy, GROUPINGS["unit"], [ROWS], words)


# CSV fields.


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_no_date_in_a_csv_file_fails(tmp_path, unit):
    """Soundness rule 12: nanoseconds hold the years 1677 to 2262 only; the rest is null, not an error."""
    path = tmp_path / "days.csv"
    fields = [
        "9999-12-31",
        "1600-01-01",
        "9999-12-31 00:00:00",
        "1600-01-01T00:00:00",
        "2024-02-29",
        "2024-02-29 12:00:00.5",
    ]
    path.write_text("t\n" + "\n".join(fields) + "\n")
    read = open_source(path, schema={"t": pl.Datetime(unit)}).frame.collect()["t"].to_list()
    far = [datetime(9999, 12, 31), datetime(1600, 1, 1)] * 2
    assert read == [
        *([None] * 4 if unit == "ns" else far),
        datetime(2024, 2, 29),
        datetime(2024, 2, 29, 12, 0, 0, 500000),
    ]


def test_a_small_category_space_is_no_dtype_for_csv(tmp_path):
    """Its overflow would be an error that depends on values."""
    path = tmp_path / "a.csv"
    path.write_text("k\n" + "\n".join(f"secret{i}" for i in range(400)) + "\n")
    for physical in (pl.UInt8, pl.UInt16):
        with pytest.raises(ColumnError, match="String"):
            open_source(path, schema={"k": pl.Categorical(pl.Categories(f"few {physical}", physical=physical))})
    schema = {"k": pl.Categorical(pl.Categories("many"))}
    assert aggregate(open_source(path, schema=schema), Grouping(()), [ROWS], words).measures[0].tolist() == [400]


# Nothing is read before the charge.


def test_streams_are_opened_unread(frame):
    """Soundness rule 12: only schema probes are free."""
    read = []

    def batches():
        for batch in frame.to_arrow().to_batches():
            read.append(batch)
            yield batch
        raise ValueError("secret")

    reader = pa.RecordBatchReader.from_batches(frame.to_arrow().schema, batches())
    source = open_source(reader)
    source.check()
    assert source.schema().names() == frame.columns
    assert not read


def test_a_stream_that_cannot_be_opened_is_refused():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            raise AssertionError("secret")

    with pytest.raises(ColumnError, match="the Stream cannot be opened") as caught:
        open_source(Stream())
    assert caught.value.__context__ is None


def test_pandas_frames(frame):
    pandas = pytest.importorskip("pandas")
    good = pandas.DataFrame(
        {"k": ["a", "b"] * 50, "x": range(100), "t": pandas.Timestamp("2024-01-01")}, index=[1, "x"] * 50
    )
    good = good.astype({"k": pandas.StringDtype("pyarrow")})
    good["m"] = good["x"].astype("Int64")
    good["c"] = good["k"].astype("category")
    good["d"] = good["x"].astype(pandas.ArrowDtype(pa.int32()))
    source = open_source(good)
    assert source.frame.columns == list(good.columns)
    assert aggregate(source, GROUPINGS["keys"], [ROWS], words).measures[0].tolist() == [50, 50]
    for values in (["a", 1], [1, 2], [None, b"secret"]):
        for column in (pandas.Series(values, dtype=object), pandas.Series(values, dtype=object).astype("category")):
            if str(column.dtype) == "category" and column.cat.categories.dtype != object:
                continue
            source = open_source(pandas.DataFrame({"x": column, "k": 1}))
            assert source.schema().names() == ["k"]
            with pytest.raises(ColumnError, match=r"'x' .*polars\.from_pandas") as caught:
                source.require(["x"])
            assert "secret" not in str(caught.value)
    for dtype in (pandas.StringDtype("python"), "period[D]", "complex128"):
        with pytest.raises(ColumnError, match="dtype"):
            open_source(pandas.DataFrame({"x": pandas.Series([], dtype=dtype)})).require(["x"])


def test_a_damaged_arrow_table_shows_nothing():
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), ["secret", "x"], safe=False)
    with pytest.raises(ColumnError, match="Table has columns") as caught:
        open_source(pa.table({"a": broken}))
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_frame_is_taken_as_it_is(frame):
    source = open_source(frame)
    aggregation = prepare(source, GROUPINGS["keys"], [ROWS, SUM])
    frame.extend(frame)
    frame.replace_column(1, pl.Series("x", ["secret"] * 200))
    assert aggregation.run(words).measures[0].tolist() == [50, 50]


# Files are pinned.


def overwrite(path, frame):
    frame.write_parquet(path)


def replace(path, frame):
    other = path.with_name("other.parquet")
    frame.write_parquet(other)
    os.replace(other, path)


def touch(path, frame):
    os.utime(path, ns=(1, 1))


def remove(path, frame):
    path.unlink()


@pytest.mark.parametrize("grouping", GROUPINGS.values(), ids=GROUPINGS)
@pytest.mark.parametrize("change", [overwrite, replace, touch, remove])
def test_files_that_change_are_refused(tmp_path, frame, change, grouping):
    """Of other dtypes, the engine would read them without a word, or panic."""
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        frame.write_parquet(path)
    aggregation = prepare(open_source(paths), grouping, [ROWS, SUM])
    aggregation.check_source()
    assert aggregation.run(words).measures[0].sum() == (100 if grouping.privacy_unit else 200)
    change(paths[1], frame.with_columns(pl.col("x").clip(0, 100).cast(pl.Int8)))
    with pytest.raises(ParameterError, match=r"did not change since .*b\.parquet.*plan again") as caught:
        aggregation.check_source()
    assert "\n" not in str(caught.value)
    with pytest.raises(DpfastError, match="changed while it was read") as caught:
        aggregation.run(words)
    assert caught.value.__context__ is None


def test_a_change_during_the_run_is_noticed(tmp_path, frame):
    path = tmp_path / "a.csv"
    frame.write_csv(path)
    source = open_source(path, schema={"k": pl.String, "u": pl.Int64})

    def grow(number):
        with path.open("a") as file:
            file.write("a,1,1,1\n")
        return words(number)

    with pytest.raises(DpfastError, match="changed while it was read"):
        aggregate(source, GROUPINGS["unit"], [ROWS], grow)


def test_paths_mean_one_file(tmp_path, monkeypatch, frame):
    """Neither brackets in a name nor another working directory lead to other files than those pinned."""
    other = tmp_path / "other"
    other.mkdir()
    for directory, rows in ((tmp_path, 2), (other, 7)):
        frame.head(rows).write_parquet(directory / "a[1].parquet")
        frame.write_parquet(directory / "a1.parquet")
        frame.head(rows).write_ipc(directory / "a[1].arrow")
        frame.head(rows).write_csv(directory / "a[1].csv")
    for name in ("a[1].parquet", "a[1].arrow", "a[1].csv"):
        monkeypatch.chdir(tmp_path)
        schema = {"k": pl.String} if name.endswith("csv") else None
        aggregation = prepare(open_source(name, schema=schema), Grouping(()), [ROWS])
        monkeypatch.chdir(other)
        aggregation.check_source()
        assert aggregation.run(words).measures[0].tolist() == [2]


# What holds data does not show it.


def test_nothing_private_is_shown_or_copied(frame):
    aggregation = prepare(frame.head(3), Grouping(("s",)), [ROWS])
    aggregates = aggregation.run(words)
    for thing in (aggregation, aggregates, aggregation.source):
        assert repr(thing) == str(thing)
        assert "shape" not in repr(thing)
        assert "3" not in repr(thing)
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(DpfastError, match="cannot be pickled or copied"):
                attempt(thing)
    assert "'s'" in repr(aggregation)
    assert "native" in repr(aggregation)
