"""A filter on every route: what is released is what a release of the rows that pass would be."""

from __future__ import annotations

import io
import itertools
import random
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, open_data, prepare
from dpfast.aggregation.csv_streams import CsvStream
from dpfast.queries import Bins, Measure
from dpfast.releases.query_measures import measures_of, of_columns

UNIT = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": 4}
#: No choice is left to units, so that both ways agree.
LIMITS = (100, 10**6)
MEASURES = (
    Measure("rows"),
    Measure("values", "x"),
    Measure("sum", "x", -3, -10, 100, 20),
    Measure("choices", "c", lower=1, upper=2, candidates=("a", None)),
)
QUERIES = (
    dpf.count(),
    dpf.units(),
    dpf.mean("x", bounds=(0, 5)),
    dpf.variance("x", bounds=(0, 5)),
    dpf.covariance("x", "h", bounds=(0, 5), other_bounds=(-1, 9)),
    dpf.proportion("x", above=1),
    dpf.proportion("c", among=["a", "b"]),
    dpf.histogram("x", [0, 1, 5]),
    dpf.cdf("h", [0.5, 1.5]),
    dpf.count_distinct("c"),
    dpf.top_k("c", 2, candidates=["a", "z"]),
    dpf.quantile("x", [0.25, 0.5], bounds=(0, 5)),
)
WHERE = {
    "a value": dpf.column("x") > 1,
    "the key": dpf.column("k") != "b",
    "the unit": dpf.column("u") < 40,
    "a column of its own": dpf.column("late") | dpf.column("late").is_null(),
    "no row": dpf.column("x") < 0,
    "every row": ~(dpf.column("x") < 0),
}
BY = {
    "text": ("k",),
    "numbers": ("h", "k"),
    "far apart": ("far", "h"),
    "bins": (Bins("x", (0, 1, 2, 5)),),
    "nothing": (),
}
#: Every way that rows come, by what they are compared with below.
SOURCES = ["DataFrame", "LazyFrame", "Parquet", "Parquet files", "IPC", "CSV", "Avro", "Arrow table", "Arrow stream"]
SOURCES += ["Arrow dataset", "standard input", "Delta", "DuckDB"]
OF_TEXT = ("CSV", "standard input")


def rows(number, seed=1):
    draw = random.Random(seed)
    return pl.DataFrame(
        {
            "u": [draw.choice([None, *range(60)]) for _ in range(number)],
            "k": [draw.choice(["a", "b", "a key of more than twelve bytes", None]) for _ in range(number)],
            "h": [draw.choice([1, 2, None]) for _ in range(number)],
            "far": [draw.choice([-(2**62), 0, 2**62]) for _ in range(number)],
            "x": [draw.choice([0.5, 1.5, 4.0, float("nan"), float("inf"), None]) for _ in range(number)],
            "c": [draw.choice(["a", "z", None]) for _ in range(number)],
            "late": [draw.choice([True, False, None]) for _ in range(number)],
        },
        schema={
            "u": pl.Int64,
            "k": pl.String,
            "h": pl.Int8,
            "far": pl.Int64,
            "x": pl.Float64,
            "c": pl.String,
            "late": pl.Boolean,
        },
    )


def kept_of(frame, where):
    """Return what passes, by the words of the filters above."""
    conditions = {
        "a value": (pl.col("x") > 1) & pl.col("x").is_not_nan(),
        "the key": pl.col("k") != "b",
        "the unit": pl.col("u") < 40,
        "a column of its own": pl.col("late").fill_null(True),
        "no row": pl.lit(False),
        "every row": pl.lit(True),
    }
    return frame.filter(conditions[where])


def opened(frame, source, folder):
    if source == "DataFrame":
        return open_data(frame)
    if source == "LazyFrame":
        return open_data(frame.lazy())
    if source == "Arrow table":
        return open_data(frame.to_arrow())
    if source == "Arrow stream":
        table = frame.to_arrow()
        return open_data(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=37)))
    if source == "DuckDB":
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.register("rides", frame.to_arrow())
        return open_data(dpf.sql(connection, "rides"), engine="rows")
    if source == "standard input":
        return open_data(CsvStream(io.BytesIO(frame.write_csv().encode()), dict(frame.schema)))
    if source == "Delta":
        pytest.importorskip("deltalake").write_deltalake(folder / "table", frame.to_arrow(), mode="overwrite")
        return open_data(folder / "table")
    if source in ("Parquet files", "Arrow dataset"):
        (folder / "files").mkdir(exist_ok=True)
        for i in range(3):
            frame[i::3].write_parquet(folder / "files" / f"{i}.parquet")
        frame[frame.height :].write_parquet(folder / "files" / "none.parquet")
        return open_data(folder / "files" if source == "Parquet files" else pads.dataset(folder / "files"))
    if source == "Avro":
        frame.cast({"h": pl.Int32}).write_avro(folder / "rows.avro")
        return open_data(folder / "rows.avro")
    path = folder / f"rows.{source.lower()}"
    {"Parquet": frame.write_parquet, "IPC": frame.write_ipc, "CSV": frame.write_csv}[source](path)
    return open_data(path, schema=dict(frame.schema) if source == "CSV" else None)


def words(number):
    return np.random.default_rng(3).integers(0, 2**64, number, dtype=np.uint64)


def as_lists(measure):
    """Return a number for each group, or the counts of candidates as text; where they were not counted, of lists."""
    if not isinstance(measure, np.ndarray):
        chosen = [measure.points[start:stop] for start, stop in zip(measure.starts, measure.stops, strict=True)]
        return [str(dict(sorted(Counter(map(int, some)).items()))) for some in chosen]
    return measure if measure.ndim == 1 else [str(row.tolist()) for row in measure]


def figures(aggregates):
    frame = aggregates.keys.with_columns(
        **{f"m{i}": pl.Series(as_lists(measure)) for i, measure in enumerate(aggregates.measures)},
        **({} if aggregates.units is None else {"units": aggregates.units}),
    )
    # Avro has no Int8.
    frame = frame.cast({pl.Int32: pl.Int8}) if "h" in frame.columns else frame
    return frame.sort(frame.columns[: aggregates.keys.width], nulls_last=True) if aggregates.keys.width else frame


def by_unit_of(sums):
    """Return what units have, whatever their numbers are."""
    pairs = zip(sums.units, sums.groups, *sums.figures, strict=True)
    units = {}
    for unit, *figures_of_pair in pairs:
        units.setdefault(int(unit), []).append(tuple(map(int, figures_of_pair)))
    return sums.number, sorted(sorted(held) for held in units.values())


def keys_of(by, frame):
    if by == "bins":
        return pl.DataFrame({"x": [0, 2, None]})
    return frame.select(BY[by]).unique(maintain_order=True).head(4) if BY[by] else None


@cache
def rows_of(text):
    """Return rows, of which text has no null where it could not be told from an empty one."""
    frame = rows(400)
    return frame.with_columns(pl.col("k").fill_null("none"), pl.col("c").fill_null("none")) if text else frame


def asked_of(by, unit, given, frame):
    return Grouping(BY[by], keys_of(by, frame) if given else None, unit, *(LIMITS if unit else (None, None)))


@cache
def expected_of(where, by, unit, given, text):
    """Return the figures of the rows that pass, which no source has a say in."""
    frame = rows_of(text)
    return figures(prepare(kept_of(frame, where), asked_of(by, unit, given, frame), MEASURES).run(words))


#: Kinds of keys, the unit, and whether keys are given.
KINDS = list(itertools.product(BY, (None, "u"), (False, True)))


def check_figures(source, where, kinds, folder):
    frame = rows_of(source in OF_TEXT)
    for by, unit, given in kinds:
        filtered = replace(asked_of(by, unit, given, frame), where=WHERE[where])
        found = prepare(opened(frame, source, folder), filtered, MEASURES).run(words)
        assert figures(found).equals(expected_of(where, by, unit, given, source in OF_TEXT)), (by, unit, given)


def kinds_of(source, where):
    """Return every third kind, all of them for a frame: each source meets each filter, and both of them each kind."""
    first = SOURCES.index(source) + list(WHERE).index(where)
    return KINDS if source == "DataFrame" else KINDS[first % 3 :: 3]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("where", list(WHERE))
def test_figures_are_those_of_the_rows_that_pass(source, where, tmp_path):
    """Pairs of source, filter and kind of keys, and all three in the long test."""
    check_figures(source, where, kinds_of(source, where), tmp_path)


def test_every_pair_of_source_filter_and_kind_meets():
    met = [(source, where, kind) for source in SOURCES for where in WHERE for kind in kinds_of(source, where)]
    assert {(source, kind) for source, _, kind in met} == set(itertools.product(SOURCES, KINDS))
    assert {(where, kind) for _, where, kind in met} == set(itertools.product(WHERE, KINDS))
    assert {(source, where) for source, where, _ in met} == set(itertools.product(SOURCES, WHERE))


@pytest.mark.long
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("where", list(WHERE))
def test_figures_of_every_kind_are_those_of_the_rows_that_pass(source, where, tmp_path):
    check_figures(source, where, KINDS, tmp_path)


@pytest.mark.parametrize("source", SOURCES)
def test_every_query_is_of_the_rows_that_pass(source, seed, tmp_path):
    """Whatever rows are measured by, with units and without, keys given and found, and all rows of units as well."""
    frame = rows(400, seed)
    if source in OF_TEXT:
        frame = frame.with_columns(pl.col("k").fill_null("none"), pl.col("c").fill_null("none"))
    where = random.Random(seed).choice(list(WHERE))
    plain = kept_of(frame, where)
    for gaussian in (False, True):
        found = [one for query in QUERIES for one in measures_of(of_columns(query, frame.schema), gaussian=gaussian)]
        measures = [*dict.fromkeys(found)]
        for unit, keys in ((None, None), (None, keys_of("text", frame)), ("u", None), ("u", keys_of("text", frame))):
            asked = Grouping(("k",), keys, unit, *(LIMITS if unit else (None, None)))
            expected = prepare(plain, asked, measures).run(words)
            filtered = prepare(opened(frame, source, tmp_path), replace(asked, where=WHERE[where]), measures).run(words)
            assert figures(filtered).equals(figures(expected)), (unit, keys)
    asked = Grouping(("k",), keys_of("text", frame), "u", by_unit=True)
    sums = [Measure("rows"), Measure("sum", "x", -3, -10, 100, 20)]
    expected = prepare(plain, asked, sums).run(words)
    filtered = prepare(opened(frame, source, tmp_path), replace(asked, where=WHERE[where]), sums).run(words)
    assert by_unit_of(filtered.by_unit) == by_unit_of(expected.by_unit)


@pytest.mark.parametrize("where", list(WHERE))
def test_rows_that_wait_on_the_disk_are_those_that_pass(where, monkeypatch, tmp_path):
    """No choice is left where units keep all that they have: both ways must agree."""
    from dpfast.aggregation import by_unit

    frame = rows(3000)
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    asked = Grouping(("k",), None, "u", *LIMITS)
    expected = prepare(kept_of(frame, where), asked, MEASURES[:3]).run(words)
    monkeypatch.setattr(by_unit.memory, "room_for_rows", lambda: 20_000)
    filtered = Grouping(("k",), None, "u", *LIMITS, where=WHERE[where])
    found = prepare(opened(frame, "Parquet", tmp_path), filtered, MEASURES[:3]).run(words)
    assert figures(found).equals(figures(expected))


def test_nothing_is_read_before_the_charge():
    """A filter whose rows would be counted beforehand tells how many pass."""
    read = []

    def look(batch):
        read.append(batch.height)
        return batch

    frame = rows(50).lazy().map_batches(look, schema=rows(0).schema)
    plan = dpf.plan(frame, "k", n=dpf.count(), where=dpf.column("x") > 1, epsilon=1.0, delta=1e-6, **UNIT)
    plan.explain(), plan.error(), plan.to_frame(), plan.lazy(dpf.Ledger(epsilon=1.0, delta=1e-6)).collect_schema()
    with pytest.raises(dpf.errors.BudgetExceededError):
        plan.run(dpf.Ledger(epsilon=0.5, delta=1e-6))
    assert read == []
    plan.run(dpf.Ledger(epsilon=1.0, delta=1e-6))
    assert read


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("unit", [{}, UNIT])
def test_plans_are_those_without_a_filter(neighbors, unit):
    """No sensitivity, scale or charge knows of it."""
    frame = rows(10)
    queries = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 5)), "q": dpf.quantile("x", 0.5, bounds=(0, 5))}
    given = {"privacy_unit": "row", "epsilon": 1.0, "delta": 1e-6, "neighbors": neighbors}
    asked = {"by": "k", **given, **unit, **queries}
    plain, filtered = dpf.plan(frame, **asked), dpf.plan(frame, where=dpf.column("x") > 1, **asked)
    assert filtered.to_frame().equals(plain.to_frame())


def test_workloads_and_namespaces_take_it():
    """Noise of scale 1 / 1000 is 0, or rounds to it, but for 6e**-500 together."""
    import dpfast.integrations.polars

    assert dpfast.integrations.polars
    people = pl.DataFrame({"age": [20, 21, 21, 22], "sex": ["f", "m", "f", "f"]})
    asked = {"by": "age", "keys": pl.DataFrame({"age": [20, 21, 22]}), "epsilon": 1000.0}
    asked |= {"workload": dpf.workloads.identity(3), "where": dpf.column("sex") == "f"}
    release = people.dpf.release(ledger=dpf.Ledger(epsilon=1000), privacy_unit="row", **asked)
    assert release.frame["answer"].round().to_list() == [1, 1, 1]
    lazy = people.lazy().dpf.plan(n=dpf.count(), where=dpf.column("sex") == "f", privacy_unit="row", epsilon=1000.0)
    assert lazy.run(dpf.Ledger(epsilon=1000)).frame["n"].to_list() == [3]


def test_neighbours_stay_neighbours():
    """Whatever one unit's rows are, what a filter leaves differs in rows of this unit alone, in the same order."""
    draw = random.Random(5)
    for _ in range(50):
        frame = rows(30, draw.random())
        changed = frame["u"].drop_nulls()[0]
        fresh = rows(3, draw.random()).with_columns(u=pl.lit(changed, pl.Int64))
        other = pl.concat([frame.filter(pl.col("u").ne_missing(changed)), fresh])
        where = draw.choice(list(WHERE))
        left = [kept_of(data, where).filter(pl.col("u").ne_missing(changed)) for data in (frame, other)]
        assert left[0].equals(left[1])
