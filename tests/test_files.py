"""Many files as one source: what may differ between them, and what is refused before a charge, by name."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import threading
from datetime import date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_source, prepare
from dpfast.aggregation.footers import common_dtype
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.queries import Measure

ROWS, SUM = Measure("rows"), Measure("sum", "x", 0, 0, 1000, 0)
KEYS = pl.DataFrame({"k": ["a", "b"]})
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "csv": pl.DataFrame.write_csv,
    "csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
}
TYPED = ["parquet", "arrow"]
CSV = {"k": pl.String, "x": pl.Int64, "u": pl.Int64}


def words(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 2**64, number, dtype=np.uint64)


def frame(rows: int = 4) -> pl.DataFrame:
    return pl.DataFrame({"k": ["a", "b"] * (rows // 2), "x": range(rows), "u": range(rows)})


def write(folder: Path, frames: list[pl.DataFrame], suffix: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{i}.{suffix}" for i in range(len(frames))]
    for path, one in zip(paths, frames, strict=True):
        WRITERS[suffix](one, path)
    return paths


def ways(paths: list[Path]) -> dict[str, object]:
    """Every way to name these files, all of one folder."""
    folder, suffix = paths[0].parent, paths[0].name.split(".", 1)[1]
    return {
        "paths": paths,
        "strings": [str(path) for path in paths],
        "glob": str(folder / f"*.{suffix}"),
        "glob as a Path": folder / f"*.{suffix}",
        "everything": str(folder / "**" / f"*.{suffix}"),
        "folder": str(folder),
        "folder as a Path": folder,
        "addresses": [path.as_uri() for path in paths],
    }


def refused(data, schema=None) -> str:
    """Return the line of a plan that is refused, which charges nothing."""
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises((ParameterError, ColumnError)) as caught:
        dpf.plan(
            data,
            by="k",
            keys=KEYS,
            total=dpf.sum("x", bounds=(0, 9)),
            privacy_unit="row",
            epsilon=0.5,
            schema=schema,
            dataset="d",
        ).run(ledger)
    assert ledger.spent.epsilon == 0
    assert caught.value.__context__ is None or isinstance(caught.value.__context__, OSError)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What may differ.


@pytest.mark.parametrize("suffix", WRITERS)
def test_extra_and_reordered_columns_are_taken(tmp_path, suffix):
    schema = CSV if suffix.startswith("csv") else None
    one = frame()
    others = [one.select("u", "x", "k"), one.with_columns(note=pl.lit("n")), one.select(z=1, u="u", k="k", x="x")]
    for order in (*((one, other) for other in others), *((other, one) for other in others)):
        paths = write(tmp_path / "d", list(order), suffix)
        for name, data in ways(paths).items():
            found = aggregate(open_source(data, schema=schema), Grouping(("k",), KEYS), [ROWS, SUM], words)
            assert [m.tolist() for m in found.measures] == [[4, 4], [4, 8]], name
        shutil.rmtree(tmp_path / "d")


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
TEXTS = [pl.String, pl.Categorical, pl.Enum(["a", "b"]), pl.Enum(["b", "c", "a"])]
OTHERS = [pl.Boolean, pl.Date, pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("us", "UTC"), pl.Time, pl.Binary]
OTHERS += [pl.Duration("us"), pl.List(pl.Int8)]
DECIMALS = [pl.Decimal(10, 2), pl.Decimal(18, 2), pl.Decimal(18, 10), pl.Decimal(38, 0), pl.Decimal(38, 38)]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([[*INTEGERS, pl.Float32, pl.Float64, *TEXTS, *OTHERS, *DECIMALS, pl.Null], DECIMALS]).flatmap(
        lambda kinds: st.lists(st.sampled_from(kinds), min_size=1, max_size=4)
    )
)
def test_a_common_dtype_holds_every_value(dtypes):
    """The extremes of each dtype come back from the common one, which does not depend on the order."""
    dtypes = [pl.Series(dtype=dtype).dtype for dtype in dtypes]
    common = common_dtype(dtypes)
    assert all(common_dtype(order) == common for order in permutations(dtypes))
    if common is None:
        assert len(set(dtypes) - {pl.Null()}) > 1
        return
    for dtype in dtypes:
        if dtype.is_integer():
            low, high = pl.select(pl.lit(0).cast(dtype).lower_bound()).item(), dtype.max()
            high = pl.select(high).item()
            values = pl.Series([low, high, high - 1, low + 1, None], dtype=dtype)
        elif dtype.is_float():
            values = pl.Series([0.1, -1e30, float("inf"), float("nan"), None], dtype=dtype)
        elif dtype in DECIMALS:
            most = Decimal((0, (9,) * min(dtype.precision, 37), -dtype.scale))
            values = pl.Series([most, -most, Decimal(0), None], dtype=dtype)
        elif dtype in TEXTS:
            values = pl.Series(["a", "b", None], dtype=dtype)
        else:
            values = pl.Series([None], dtype=dtype)
        wide = values.cast(common)
        assert wide.cast(dtype).eq_missing(values).all()
        if dtype.is_integer() and common.is_float():
            assert [int(x) for x in wide.drop_nulls()] == values.drop_nulls().to_list()


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("unit", [None, "u"])
def test_decimals_widen(tmp_path, suffix, unit):
    """A sum counts last places: those of the decimals that hold all."""
    kinds = [pl.Decimal(9, 2), pl.Decimal(18, 4), pl.Decimal(20, 2)]
    numbers = [Decimal("1.25"), Decimal("1.25"), Decimal("9e17")]
    frames = [
        frame().with_columns(x=pl.Series([number] * 4, dtype=kind)) for number, kind in zip(numbers, kinds, strict=True)
    ]
    paths = write(tmp_path / "d", frames, suffix)
    grouping = Grouping(("k",), KEYS, *((unit, 1, 9) if unit else ()))
    cut = Measure("sum", "x", 0, 0, 20_000, 0)
    for name, data in ways(paths).items():
        found = aggregate(open_source(data), grouping, [ROWS, cut], words)
        assert [m.tolist() for m in found.measures] == [[6, 6], [90_000, 90_000]], name


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize(
    ("first", "second"),
    [(pl.Int8, pl.Int64), (pl.UInt32, pl.Int16), (pl.Float32, pl.Float64), (pl.Int32, pl.Float32), (pl.Null, pl.Int64)],
)
def test_numbers_widen(tmp_path, suffix, unit, first, second):
    one = frame()
    for dtypes in ((first, second), (second, first)):
        frames = [one.with_columns(pl.lit(None).alias("x") if d == pl.Null else pl.col("x").cast(d)) for d in dtypes]
        paths = write(tmp_path / "d", frames, suffix)
        grouping = Grouping(("k",), KEYS, *((unit, 1, 9) if unit else ()))
        for data in ways(paths).values():
            total = aggregate(open_source(data), grouping, [SUM], words).measures[0].sum()
            assert total == (6 if pl.Null in dtypes else 12)


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("selected", [False, True])
def test_strings_and_categories_are_one_key(tmp_path, suffix, selected):
    frames = [frame().with_columns(pl.col("k").cast(dtype)) for dtype in TEXTS]
    frames.append(frame().with_columns(k=pl.lit(None)))
    paths = write(tmp_path / "d", frames, suffix)
    for data in ways(paths).values():
        found = aggregate(open_source(data), Grouping(("k",), None if selected else KEYS), [ROWS], words)
        assert sorted(found.measures[0].tolist()) == ([4, 8, 8] if selected else [8, 8])


@pytest.mark.parametrize("suffix", TYPED)
def test_columns_that_are_not_used_may_differ(tmp_path, suffix):
    frames = [frame().with_columns(y=1), frame().with_columns(y=pl.lit("s")), frame().with_columns(z=1)]
    source = open_source(write(tmp_path, frames, suffix))
    assert aggregate(source, Grouping(("k",), KEYS), [SUM], words).measures[0].sum() == 18
    for name in ("y", "z"):
        with pytest.raises(ColumnError, match=rf"'{name}' is missing from the file '.*\.{suffix}', while '.*' has it"):
            prepare(source, Grouping((name,)), [ROWS])
    domain = dpf.Domain({"y": 3})
    with pytest.raises(ColumnError, match="'y' is missing from the file"):
        domain.open(source)


def test_too_many_schemas_are_refused(tmp_path):
    """Of Parquet files only the dtypes of common columns count, of Arrow files all columns."""
    frames = [frame().with_columns(pl.lit(1).alias(f"y{i}")) for i in range(70)]
    assert (
        aggregate(open_source(write(tmp_path / "p", frames, "parquet")), Grouping(()), [ROWS], words).measures[0] == 280
    )
    with pytest.raises(ParameterError, match="at most 64 different schemas"):
        open_source(write(tmp_path / "a", frames, "arrow"))


# What is refused, before the charge and by name.

DIFFERENT = {
    "string": pl.col("x").cast(pl.String),
    "uint64 beside int64": pl.col("x").cast(pl.UInt64),
    "float beside int64": pl.col("x").cast(pl.Float64),
    "date": pl.date(2024, 1, 1).alias("x"),
    "boolean": pl.lit(True).alias("x"),
    "list": pl.concat_list("x"),
}


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("expr", DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.parametrize("place", [0, 2])
def test_other_dtypes_are_refused(tmp_path, suffix, expr, place):
    frames = [frame(), frame(), frame()]
    frames[place] = frames[place].with_columns(expr)
    for name, data in ways(write(tmp_path, frames, suffix)).items():
        line = refused(data)
        assert f"{place}.{suffix}" in line, name
        assert "'x'" in line
        assert "Int64" in line
        assert str(frames[place].schema["x"])[:4] in line
        assert "cast it" in line


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("place", [0, 1])
def test_a_missing_column_is_refused(tmp_path, suffix, place):
    frames = [frame(), frame()]
    frames[place] = frames[place].drop("x")
    paths = write(tmp_path, frames, suffix)
    for data in ways(paths).values():
        assert re.search(rf"'x'.*{place}\.{suffix}", refused(data, CSV if suffix.startswith("csv") else None))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def behead(path: Path) -> None:
    path.write_bytes(path.read_bytes()[30:])


def text(path: Path) -> None:
    path.write_text("hello, this is no table\n")


def vanish(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES = [empty, cut, halve, behead, text, vanish, folder, pipe]


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", [0, 2])
def test_files_that_cannot_be_read_are_refused(tmp_path, suffix, damage, place):
    paths = write(tmp_path, [frame()] * 3, suffix)
    damage(paths[place])
    for name, data in ways(paths).items():
        if damage is folder and name.startswith("folder"):
            assert open_source(data).schema()  # an empty folder in a folder is nothing
            continue
        assert f"{place}.{suffix}" in refused(data), name


@pytest.mark.parametrize("damage", [empty, vanish, folder, pipe])
def test_csv_files_that_cannot_be_read_are_refused(tmp_path, damage):
    paths = write(tmp_path, [frame()] * 3, "csv")
    damage(paths[1])
    for name, data in ways(paths).items():
        if damage is folder and name.startswith("folder"):
            continue
        assert "1.csv" in refused(data, CSV), name


def test_files_that_may_not_be_read_are_refused(tmp_path, monkeypatch):
    """As root may read everything, the refusal is the system's as it would be."""
    paths = write(tmp_path, [frame()] * 3, "parquet")
    plan = dpf.plan(tmp_path, by="k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5)
    paths[1].chmod(0)
    if os.access(paths[1], os.R_OK):
        opening, access = open, os.access

        def refuse(path, *arguments, **options):
            if str(path).endswith("1.parquet"):
                raise PermissionError(13, "Permission denied", str(path))
            return opening(path, *arguments, **options)

        monkeypatch.setattr("builtins.open", refuse)
        monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("1.parquet") and access(path, mode))
    for data in ways(paths).values():
        assert "may read (Permission denied), but was" in refused(data)
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(ParameterError, match=r"1\.parquet"):
        plan.run(ledger)
    assert ledger.spent.epsilon == 0


def test_a_folder_holds_files_of_one_kind(tmp_path):
    write(tmp_path, [frame()], "parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part.crc").touch()
    assert open_source(tmp_path).schema().names() == ["k", "x", "u"]
    (tmp_path / "sub").mkdir()
    frame().write_parquet(tmp_path / "sub" / "b.parquet")
    assert aggregate(open_source(tmp_path), Grouping(()), [ROWS], words).measures[0] == 8
    (tmp_path / "sub" / "notes.txt").touch()
    assert "notes.txt" in refused(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "empty" in refused(tmp_path / "empty")
    (tmp_path / "circle").mkdir()
    (tmp_path / "circle" / "back").symlink_to(tmp_path / "circle")
    assert "circle" in refused(tmp_path / "circle")
    (tmp_path / "lake" / "table" / "_delta_log").mkdir(parents=True)
    assert "give the table's folder alone" in refused(tmp_path / "lake")


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_that_is_named_twice_is_refused(tmp_path, suffix):
    """A row of it would count as two, where the noise is for one: by any two names of it."""
    schema = CSV if suffix.startswith("csv") else None
    (path,) = write(tmp_path / "d", [frame()], suffix)
    every = [[path, path], [path.parent, path], [path, str(path.parent / "*")], [path, path.as_uri()]]
    for make, name in ((Path.symlink_to, "soft"), (Path.hardlink_to, "hard")):
        other = tmp_path / name / f"b.{suffix}"
        other.parent.mkdir()
        make(other, path)
        every += [[path, other], [path.parent, other.parent]]
    (tmp_path / "linked").symlink_to(path.parent)
    for data in [*every, [path.parent, tmp_path / "linked"]]:
        assert "files that are given once each" in refused(data, schema)


def test_no_row_is_shown_of_what_is_not_taken_as_data():
    secret = pl.DataFrame({"name": ["secret"]})
    parts = [secret, secret["name"], secret.to_numpy(), secret.to_arrow(), secret.lazy(), secret.to_dicts()]
    parts += [secret.rows(), secret.to_dict(as_series=False), b"secret"]
    for part in parts:
        for data in ([part], (part, "a.parquet"), {"data": part}, {"data": [part]}):
            with pytest.raises(ParameterError, match=r"^data must be a DataFrame") as caught:
                open_source(data)
            assert "secret" not in str(caught.value)
    # Of any argument: what is a column is not shown.
    for part in parts[:5]:
        for argument in ([part], {"keys": (part,)}):
            assert "secret" not in str(ParameterError("keys", argument, "a frame"))


# Folders that name columns.


def hive(root: Path, suffix: str = "parquet", *, key: bool = False) -> None:
    for region in ("north", "so%20uth", "__HIVE_DEFAULT_PARTITION__"):
        for year in ("2023", "2024", "later"):
            place = root / f"region={region}" / f"year={year}"
            place.mkdir(parents=True)
            held = {"year": pl.lit(int(year) if year != "later" else 0, pl.Int16)} if key else {}
            WRITERS[suffix](frame().with_columns(**held), place / f"part.{suffix}")


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("way", ["", "**/*.{}", "region=*/*/*.{}", "*/**/*.{}"])
@pytest.mark.parametrize("above", ["", "r=9"])
def test_folders_name_columns(tmp_path, suffix, way, above):
    root = tmp_path / above / "h"
    hive(root, suffix)
    data = root / way.format(suffix)
    source = open_source(data, schema={"year": pl.Int16})
    assert source.schema() == {
        "k": pl.String,
        "x": pl.Int64,
        "u": pl.Int64,
        "region": pl.String,
        "year": pl.Int16,
    }
    for unit in ((), ("u", 9, 9)):
        regions = pl.DataFrame({"region": ["north", "so uth", None, "west"]})
        found = aggregate(source, Grouping(("region",), regions, *unit), [ROWS, SUM], words)
        assert [m.tolist() for m in found.measures] == [[12, 12, 12, 0], [18, 18, 18, 0]]
        years = pl.DataFrame({"year": [2024, 2023, None]})
        found = aggregate(source, Grouping(("year",), years, *unit), [ROWS], words)
        assert found.measures[0].tolist() == [12, 12, 12]
    # Without a declaration no folder's name decides a dtype.
    assert open_source(data).schema()["year"] == pl.String


def test_columns_of_folders_and_files(tmp_path):
    """The path says what the column holds, with the dtype that it has in the files."""
    hive(tmp_path / "h", key=True)
    source = open_source(tmp_path / "h")
    assert source.schema()["year"] == pl.Int16
    found = aggregate(source, Grouping(("year",), pl.DataFrame({"year": [2024, None]})), [ROWS], words)
    assert found.measures[0].tolist() == [12, 12]
    with pytest.raises(ParameterError, match="schema must be left out"):
        open_source(tmp_path / "h", schema={"x": pl.Int8})


@pytest.mark.parametrize("dtype", [pl.Date, pl.Datetime("us"), pl.Boolean, pl.Categorical, pl.UInt8, pl.Float64])
def test_a_folder_that_does_not_parse_is_null(tmp_path, dtype):
    values = {"2024-02-29": date(2024, 2, 29), "true": True, "7": 7, "x": None, "300": None, "": None}
    for text in values:
        place = tmp_path / f"v={text}"
        place.mkdir()
        frame().write_parquet(place / "a.parquet")
    read = open_source(tmp_path, schema={"v": dtype}).frame.collect()
    assert read.height == 4 * len(values)
    known = set(read["v"].drop_nulls().to_list())
    if dtype == pl.Boolean:
        assert known == {True}
    elif dtype == pl.Date:
        assert known == {date(2024, 2, 29)}
    elif dtype == pl.Datetime:
        assert known == {datetime(2024, 2, 29)}
    elif dtype == pl.UInt8:
        assert known == {7}
    elif dtype == pl.Float64:
        assert known == {7.0, 300.0}
    else:
        assert known >= {"2024-02-29", "true", "7", "x", "300"}


@pytest.mark.parametrize("place", ["month=1", "plain", "year=1=2", "year=1/year=2", "=3"])
def test_folders_of_other_columns_are_refused(tmp_path, place):
    for one in ("year=2024", place):
        (tmp_path / one).mkdir(parents=True)
        frame().write_parquet(tmp_path / one / "a.parquet")
    assert re.search(r"folders that name the columns .*/a\.parquet", refused(tmp_path))


def test_a_column_of_folders_that_files_have_differently(tmp_path):
    for year, held in ((2023, pl.lit(1)), (2024, pl.lit("s"))):
        (tmp_path / f"year={year}").mkdir()
        frame().with_columns(year=held).write_parquet(tmp_path / f"year={year}" / "a.parquet")
    assert open_source(tmp_path).schema()["year"] == pl.String
    found = aggregate(open_source(tmp_path, schema={"year": pl.Int32}), Grouping(("year",)), [ROWS], words)
    assert sorted(found.keys["year"].to_list()) == [2023, 2024]


# Addresses.


class Store(BaseHTTPRequestHandler):
    """Serves files by parts, as object stores do."""

    folder = Path()

    def do_HEAD(self):
        self._answer(send=False)

    def do_GET(self):
        self._answer(send=True)

    def _answer(self, *, send):
        path = self.folder / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        content, wanted = path.read_bytes(), self.headers.get("Range")
        total, first, last = len(content), 0, len(content) - 1
        if wanted:
            low, high = wanted.removeprefix("bytes=").split("-")
            first, last = (int(low), min(int(high or last), last)) if low else (max(total - int(high), 0), last)
        self.send_response(206 if wanted else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
        self.end_headers()
        if send:
            self.wfile.write(content[first : last + 1])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def store(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Store,), {"folder": tmp_path}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_objects_of_a_store_are_checked_too(tmp_path, store):
    write(tmp_path, [frame(), frame().select("u", "x", "k").with_columns(y=1)], "parquet")
    addresses = [f"{store}/{i}.parquet" for i in range(2)]
    source = open_source(addresses)
    assert source.pins == ()
    assert aggregate(source, Grouping(("k",), KEYS), [ROWS, SUM], words).measures[1].tolist() == [4, 8]
    frame().with_columns(pl.col("x").cast(pl.String)).write_parquet(tmp_path / "2.parquet")
    empty(tmp_path / "3.parquet")
    cut_off = tmp_path / "4.parquet"
    frame().write_parquet(cut_off)
    cut(cut_off)
    for i in (2, 3, 4, 5):
        assert f"{i}.parquet" in refused([*addresses, f"{store}/{i}.parquet"])


# After the charge.


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("damage", [empty, halve, vanish, text])
def test_a_file_that_changes_during_the_run_is_named(tmp_path, suffix, damage):
    """It is read after the charge, and no figure of it leaves."""
    paths = write(tmp_path, [frame(1000)] * 3, suffix)
    schema = CSV if suffix.startswith("csv") else None
    plan = dpf.plan(tmp_path, by="k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, schema=schema)

    def change(stage):
        if stage.startswith("reading"):
            damage(paths[1])

    with pytest.raises(DpfastError, match=rf"changed while it was read.*1\.{suffix}'$") as caught:
        plan.run(dpf.Ledger(epsilon=1.0), progress=change)
    assert caught.value.__context__ is None
    if not suffix.startswith("csv"):
        with pytest.raises(ParameterError):
            dpf.plan(tmp_path, by="k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5)


@pytest.mark.parametrize("suffix", TYPED)
@pytest.mark.parametrize("way", ["files", "folders"])
@pytest.mark.parametrize("unit", [{}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 2}])
def test_a_file_damaged_behind_a_good_footer_is_named(tmp_path, suffix, way, unit):
    """No footer tells of it, so it costs the charge; the line says which file to write again."""
    places = [tmp_path / (f"day={i}" if way == "folders" else f"{i}") for i in range(3)]
    paths = [write(place, [frame(2000).with_columns(x=pl.col("x") * 7919 % 10_007)], suffix)[0] for place in places]
    data = bytearray(paths[1].read_bytes())
    middle = range(len(data) // 4, len(data) // 2)
    data[middle.start : middle.stop] = bytes(255 - data[i] for i in middle)
    paths[1].write_bytes(data)
    plan = dpf.plan(
        tmp_path,
        by="k",
        keys=KEYS,
        total=dpf.sum("x", bounds=(0, 9)),
        epsilon=0.5,
        dataset="d",
        **{"privacy_unit": "row", **unit},
    )
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(DpfastError, match=rf"the file '.*1/0\.{suffix}' is damaged; write it again") as caught:
        plan.run(ledger)
    assert caught.value.__context__ is None
    assert "\n" not in str(caught.value)
    assert ledger.spent.epsilon == 0.5


def test_a_scan_of_ones_own_is_not_looked_into(tmp_path):
    """What polars.scan_parquet is given is its maker's; the docstring of open_source says so."""
    paths = write(tmp_path, [frame(), frame().with_columns(pl.col("x").cast(pl.String))], "parquet")
    source = open_source(pl.scan_parquet(tmp_path / "*.parquet"))
    assert source.pins == ()
    with pytest.raises(DpfastError, match="cannot be read to its end"):
        aggregate(source, Grouping(("k",), KEYS), [SUM], words)
    # The same scan made well: the engine's own options widen and drop.
    paths[1].unlink()
    frame().with_columns(pl.col("x").cast(pl.Int8), y=1).write_parquet(paths[1])
    options = {"extra_columns": "ignore", "cast_options": pl.ScanCastOptions(integer_cast="upcast")}
    assert aggregate(pl.scan_parquet(paths, **options), Grouping(("k",), KEYS), [SUM], words).measures[0].sum() == 12
