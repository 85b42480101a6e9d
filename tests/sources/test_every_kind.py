"""Every kind of data against every edge: the same figures as of a frame, or a line before the charge.

The matrix. Kinds: Parquet, Arrow, Avro and CSV files (plain, gzip, zstd), datasets of Arrow (of files, of folders that
name columns, in memory, several in one, with a filter) and their scanners, Delta and Iceberg tables, CSV that comes
once, and streams of Arrow from pandas, Polars, PyArrow, DuckDB, Ibis, nanoarrow and a class of one's own. Edges: keys
given and selected, with and without a unit; no row, one file without a row; a second file that lacks a column or has it
of another type; a change between plan and release; names with wildcards; files that are cut short or gone; a schema
where there is one already; a database asked for. Peak memory stands in test_memory.py, what only tables have in
test_lake_tables.py, addresses in test_addresses.py.
"""

from __future__ import annotations

import traceback
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_source
from dpfast.errors import ColumnError, ParameterError

from .kinds import GROUPINGS, KEYS, KINDS, MEASURES, OF_FILES, dtypes, figures, frame, refused, words


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouping", GROUPINGS.values(), ids=GROUPINGS)
def test_the_figures_are_those_of_a_frame(tmp_path, kind, grouping):
    parts = [frame(), frame(30, 40)]
    assert figures(KINDS[kind](tmp_path, parts), kind, grouping) == figures(pl.concat(parts), "frame", grouping)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouping", GROUPINGS.values(), ids=GROUPINGS)
def test_no_row_at_all_and_a_file_without_one(tmp_path, kind, grouping):
    """Soundness rule 12: whether there are rows is no error."""
    if kind == "record batch":
        pytest.skip("a table without a row has no batch")
    for i, parts in enumerate(([frame(0)], [frame(0), frame()], [frame(), frame(0)])):
        folder = tmp_path / str(i)
        folder.mkdir()
        found = figures(KINDS[kind](folder, parts), kind, grouping)
        assert found == figures(pl.concat(parts), "frame", grouping)


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_charged_once_and_has_no_error_by_values(tmp_path, kind):
    """NaN, infinities and extremes of a type are values like others."""
    wild = frame(8).with_columns(
        x=pl.Series([2**63 - 1, -(2**63), 0, None, 1, 2, 3, 4]),
        y=pl.Series([float("nan"), float("inf"), float("-inf"), None, 1e308, -1e308, 5e-324, 0.0]),
        u=pl.Series([None, 0, -1, 2**63 - 1, 1, 1, 1, 1]),
    )
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6)
    released = dpf.release(
        KINDS[kind](tmp_path, [frame(), wild]),
        "k",
        n=dpf.count(),
        total=dpf.sum("x", bounds=(0, 9)),
        late=dpf.mean("y", bounds=(0, 9)),
        epsilon=0.5,
        delta=1e-7,
        privacy_unit="u",
        max_groups=2,
        max_rows_per_group=2,
        dataset="d",
        schema=dtypes(kind),
        ledger=ledger,
    )
    assert ledger.spent.epsilon == 0.5
    assert set(released.frame["k"]) <= {"a", "b"}


@pytest.mark.parametrize("kind", OF_FILES)
@pytest.mark.parametrize("place", [0, 1])
def test_a_file_that_lacks_a_column_is_refused(tmp_path, kind, place):
    parts = [frame(), frame()]
    parts[place] = parts[place].drop("x")
    data = OF_FILES[kind](tmp_path, parts)
    assert "'x'" in refused(data, kind)
    # Of what is not used nothing is said.
    if not kind.startswith("csv"):
        dpf.plan(data, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, dataset="d").run(
            dpf.Ledger(epsilon=1.0)
        )


@pytest.mark.parametrize("kind", [kind for kind in OF_FILES if not kind.startswith("csv")])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("other", [pl.String, pl.Boolean, pl.Date])
def test_a_file_that_has_a_column_of_another_type_is_refused(tmp_path, kind, place, other):
    parts = [frame(), frame()]
    parts[place] = parts[place].with_columns(x=pl.lit(None, other))
    line = refused(OF_FILES[kind](tmp_path, parts), kind)
    assert "'x'" in line
    assert "cast it" in line


@pytest.mark.parametrize("kind", ["dataset", "dataset of feather"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_dataset_casts_no_value_that_might_not_fit(tmp_path, kind, order):
    """PyArrow takes the types of the first file, and fails at the first value of another that is too large."""
    parts = [frame().with_columns(pl.col("x").cast(pl.Int32)), frame()][::order]
    data = OF_FILES[kind](tmp_path, parts)
    if order == 1:
        assert "'x' is of type int64 in the file" in refused(data, kind)
    else:
        assert [row[1] for row in figures(data, kind, GROUPINGS["keys"])] == [52, 28]


@pytest.mark.parametrize("kind", [*OF_FILES, "datasets", "filtered dataset"])
def test_a_file_that_changes_between_plan_and_release_is_refused(tmp_path, kind):
    data = KINDS[kind](tmp_path, [frame(), frame(30, 40)])
    asked = {"n": dpf.count(), "epsilon": 0.5, "dataset": "d", "schema": dtypes(kind)}
    plan = dpf.plan(data, "k", keys=KEYS, **{"privacy_unit": "row", **asked})
    changed = max(path for path in tmp_path.rglob("*") if path.is_file())
    changed.write_bytes(changed.read_bytes() + b"\n")
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(ParameterError, match=r"a file that did not change since the plan, but was .*; plan again"):
        plan.run(ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("kind", [kind for kind in OF_FILES if not kind.startswith("csv")])
@pytest.mark.parametrize("damage", ["empty", "halved", "gone"])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path, kind, damage):
    data = OF_FILES[kind](tmp_path, [frame(200), frame(200)])
    path = max(path for path in tmp_path.rglob("*") if path.is_file())
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "halved" and kind != "avro" else b"")
    assert path.name in refused(data, kind)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("csv")])
def test_what_knows_its_types_takes_no_schema(tmp_path, kind):
    assert refused(KINDS[kind](tmp_path, [frame()]), kind, schema={"x": pl.Int64}).startswith("schema must be left out")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("duckdb", "ibis")])
def test_what_no_database_holds_is_not_asked_of_one(tmp_path, kind):
    assert refused(KINDS[kind](tmp_path, [frame()]), kind, engine="sql").startswith("engine must be")


@pytest.mark.parametrize("kind", ["scanner", "scanner of batches", "reader", "standard input", "nanoarrow"])
def test_what_comes_once_is_released_once(tmp_path, kind):
    data = KINDS[kind](tmp_path, [frame()])
    plan = partial(dpf.plan, data, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, dataset="d")
    first, second = plan(), None if kind == "nanoarrow" else plan()  # which gives one reader only
    ledger = dpf.Ledger(epsilon=1.0)
    first.run(ledger)
    for again in (plan(), second) if second else ():
        with pytest.raises(ParameterError, match=r"data must be .* that nobody has read"):
            again.run(ledger)
    if kind == "nanoarrow":
        with pytest.raises(ColumnError, match="cannot be opened as an Arrow stream"):
            plan()
    assert ledger.spent.epsilon == 0.5


# Datasets.


@pytest.mark.parametrize("form", ["csv", "json"])
def test_datasets_whose_types_are_inferred_from_rows_are_refused(tmp_path, form):
    """One row would change them, or fail."""
    if form == "csv":
        frame().write_csv(tmp_path / "a.csv")
    else:
        frame().write_ndjson(tmp_path / "a.json")
    assert "inferring them would let one row change them" in refused(ds.dataset(tmp_path, format=form))


def test_columns_of_folders_are_keys(tmp_path):
    for year in ("2025", "2026", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(frame().to_arrow(), tmp_path / f"year={year}" / "a.parquet")
    for infer in (False, True):  # as numbers, or as a dictionary of them
        part = ds.HivePartitioning.discover(infer_dictionary=infer)
        data = ds.dataset(tmp_path, partitioning=part)
        found = aggregate(open_source(data), Grouping(("year",)), MEASURES[:1], words)
        assert found.keys["year"].sort().to_list() == [None, 2025, 2026]
        assert found.measures[0].tolist() == [40, 40, 40]


def test_a_dataset_that_fails_in_the_middle_shows_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(frame(20_000).to_arrow(), path, use_dictionary=False, compression="none", row_group_size=1000)
    content = bytearray(path.read_bytes())
    middle = slice(len(content) // 3, len(content) // 2)
    content[middle] = bytes(255 - byte for byte in content[middle])
    path.write_bytes(content)
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(dpf.errors.DpfastError, match=r"cannot be read to its end|is damaged") as caught:
        dpf.release(
            ds.dataset(path), "k", keys=KEYS, n=dpf.count(), epsilon=0.5, dataset="d", ledger=ledger, privacy_unit="u",
            max_groups=1, max_rows_per_group=1,
        )  # fmt: skip
    assert "Arrow" not in "".join(traceback.format_exception(caught.value))


# Avro.


def test_avro_of_several_blocks_and_compressions(tmp_path):
    """Blocks are read a few at a time, whatever writes them, those without a row among them."""
    fastavro = pytest.importorskip("fastavro")
    schema = fastavro.parse_schema(
        {
            "type": "record",
            "name": "row",
            "fields": [{"name": "k", "type": ["null", "string"]}, {"name": "x", "type": "long"}],
        }
    )
    rows = [{"k": "a" if n % 3 else None, "x": n} for n in range(5000)]
    for codec in ("null", "deflate"):
        path = tmp_path / f"{codec}.avro"
        with path.open("wb") as file:
            fastavro.writer(file, schema, rows, codec=codec, sync_interval=500)
        read = open_source(path).frame.collect()
        assert read.rows() == [(row["k"], row["x"]) for row in rows]
    assert "Polars reads deflate and snappy" in refused(unknown_codec(tmp_path))


def unknown_codec(folder: Path) -> Path:
    frame().write_avro(folder / "a.avro", compression="deflate")
    content = (folder / "a.avro").read_bytes()
    (folder / "b.avro").write_bytes(content.replace(b"deflate", b"bzip2xx"))
    return folder / "b.avro"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_avro_that_is_cut_short_fails_without_a_word_of_it(tmp_path, cut):
    frame(3000).with_columns(k=pl.lit("SECRET")).write_avro(tmp_path / "a.avro")
    content = (tmp_path / "a.avro").read_bytes()
    (tmp_path / "a.avro").write_bytes(content[:-cut])
    with pytest.raises(dpf.errors.DpfastError, match="is damaged; write it again") as caught:
        aggregate(open_source(tmp_path / "a.avro"), GROUPINGS["keys"], MEASURES, words)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_an_object_that_exports_no_columns_is_refused():
    for array in (pa.chunked_array([[1, 2]]), pa.array([1])):
        assert "data must be" in refused(array) or "cannot be opened" in refused(array)
