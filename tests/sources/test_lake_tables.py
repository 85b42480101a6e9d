"""Delta and Iceberg tables: one snapshot is read, its files are checked, and no library's words are shown."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from importlib import util
from pathlib import Path

import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, lake_tables, open_source
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure

from .kinds import KEYS, delta, frame, iceberg, words

MAKERS = {"delta": delta, "iceberg": iceberg}
ROWS = [Measure("rows")]


def rows(data: object, keys: pl.DataFrame | None = None, by: tuple[str, ...] = ()) -> list[int]:
    return aggregate(open_source(data), Grouping(by, keys), ROWS, words).measures[0].tolist()


def refused(data: object, **asked: object) -> str:
    ledger = dpf.Ledger(epsilon=1.0)
    asked = {"s": dpf.sum("x", bounds=(0, 9)), "keys": KEYS, "epsilon": 0.5, "dataset": "d"} | asked
    with pytest.raises((ParameterError, ColumnError)) as caught:
        dpf.release(data, "k", ledger=ledger, **{"privacy_unit": "row", **asked})
    assert ledger.spent.epsilon == 0
    assert caught.value.__context__ is None
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


@pytest.mark.parametrize("kind", MAKERS)
def test_the_snapshot_is_that_of_the_plan(tmp_path, kind):
    """What is appended between plan and release is not read, and is no error."""
    table = MAKERS[kind](tmp_path, [frame()])
    plan = dpf.plan(table, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=100.0, dataset="d")
    if kind == "delta":
        delta(tmp_path, [frame()])
        assert rows(table) == [80]
    released = plan.run(dpf.Ledger(epsilon=100.0)).frame
    assert dict(released.select("k", "n").iter_rows()) == {"a": 26, "b": 14, "none": 0}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("damage", ["gone", "cut", "empty"])
def test_a_file_of_the_snapshot_that_cannot_be_read_is_refused(tmp_path, kind, damage):
    table = MAKERS[kind](tmp_path, [frame(), frame()])
    plan = dpf.plan(table, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, dataset="d")
    path = data_files(tmp_path)[1]
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-9] if damage == "cut" else b"")
    assert path.name[-20:] in refused(table)
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(ParameterError, match="did not change since the plan"):
        plan.run(ledger)
    assert ledger.spent.epsilon == 0


def test_a_file_of_a_delta_table_that_has_another_type_than_its_log_is_refused(tmp_path):
    table = delta(tmp_path, [frame(), frame()])
    path = data_files(tmp_path)[0]
    frame().with_columns(x=pl.lit("SECRET")).write_parquet(path)
    line = refused(table)
    assert "'x' is of dtype String in the file" in line
    assert "but of Int64 in the table's log" in line


def test_columns_that_were_added_to_a_table_are_null_before(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    table = delta(tmp_path, [frame()])
    added = frame().with_columns(z=pl.lit(1.0)).to_arrow()
    deltalake.write_deltalake(str(table), added, mode="append", schema_mode="merge")
    found = aggregate(open_source(table), Grouping(()), [*ROWS, Measure("values", "z")], words)
    assert [measure.tolist() for measure in found.measures] == [[80], [40]]


def test_partitions_of_a_delta_table_are_keys(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    parted = frame().with_columns(r=pl.Series(["so uth", "n/x", None, "n=1"] * 10), d=pl.Series([2025, 2026] * 20))
    deltalake.write_deltalake(str(tmp_path / "t"), parted.to_arrow(), partition_by=["r", "d"])
    assert rows(tmp_path / "t", pl.DataFrame({"r": ["so uth", "n/x", None, "n=1"]}), ("r",)) == [10] * 4
    assert rows(tmp_path / "t", pl.DataFrame({"d": [2026, 2025, 1]}), ("d",)) == [20, 20, 0]


def test_ways_to_name_a_table(tmp_path):
    table = delta(tmp_path, [frame()])
    for data in (table, str(table), f"{table}/", [str(table)], table.as_uri(), f"delta+{table.as_uri()}"):
        assert rows(data) == [40]
    assert "given alone" in refused([table, table])
    assert "given alone" in refused([table, "a.parquet"])
    other = tmp_path / "i"
    other.mkdir()
    metadata = iceberg(other, [frame()])
    place = Path(metadata.removeprefix("file://"))
    for data in (metadata, place, [str(place)]):
        assert rows(data) == [40]
    folder = place.parent.parent
    assert "an Iceberg table with a version-hint.text" in refused(folder)
    for hint in (place.name, place.name.removesuffix(".metadata.json")):
        (place.parent / "version-hint.text").write_text(f"{hint}\n")
        assert rows(folder) == [40]
    (place.parent / "version-hint.text").write_text("../../elsewhere")
    assert "version-hint.text" in refused(folder)


def test_what_is_no_table_is_refused_without_the_librarys_words(tmp_path):
    """A log holds the least and greatest values of columns."""
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    assert "a Delta table that can be opened" in refused(tmp_path / "t")
    (tmp_path / "t" / "_delta_log" / "00000000000000000000.json").write_text('{"add": {"stats": "SECRET"}}\nSECRET')
    assert "a Delta table that can be opened" in refused(tmp_path / "t")
    (tmp_path / "a.metadata.json").write_text(json.dumps({"SECRET": "SECRET", "format-version": "SECRET"}))
    assert "an Iceberg table that can be opened" in refused(tmp_path / "a.metadata.json")
    assert "an Iceberg table that can be opened" in refused(tmp_path / "gone.metadata.json")


@pytest.mark.parametrize(("kind", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch, kind, package):
    table = MAKERS[kind](tmp_path, [frame()])
    found = util.find_spec
    monkeypatch.setattr(lake_tables, "find_spec", lambda name: None if name == package else found(name))
    line = refused(table)
    assert package in line
    assert line.endswith(f"run pip install 'dpfast[{kind}]'")


def test_nothing_of_the_libraries_is_imported_for_other_data(tmp_path):
    frame().write_parquet(tmp_path / "a.parquet")
    code = (
        "import sys; from dpfast.aggregation import open_source; open_source(sys.argv[1]);"
        "assert not {'deltalake', 'pyiceberg', 'pyarrow.dataset'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.parquet")], check=True)
