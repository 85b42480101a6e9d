"""Datasets of the accuracy suite: made-up families, what is held out, files of histograms, real tables."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from benchmarks.dpbench.datasets import folder_datasets, is_held_out, known, named
from benchmarks.dpbench.folder import read_counts
from benchmarks.dpbench.made_lines import MADE_LINES
from benchmarks.dpbench.made_planes import MADE_PLANES
from benchmarks.dpbench.made_tables import MADE_TABLES, SHAPES
from benchmarks.dpbench.questions import WORKLOADS, workload_named, workloads_for
from benchmarks.dpbench.real import REAL, real_counts
from benchmarks.dpbench.suite import chosen_datasets
from dpfast.errors import ParameterError

ROOT = Path(__file__).parents[2]
MADE = {name: dataset for name, dataset in known().items() if dataset.kind in ("made", "held out")}


@pytest.mark.parametrize("name", MADE)
def test_a_family_has_shares_of_any_size(name):
    lines, planes = [(256,), (1000,), (65_536,)], [(32, 32), (100, 100), (512, 512)]
    for shape in {1: lines, 2: planes}.get(MADE[name].axes, [MADE[name].finest]):
        shares = MADE[name].shares(shape)
        assert shares.shape == shape
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1.0, abs=1e-9)
        assert not shares.flags.writeable
        # The draws of samples refuse shares that make more than 1 but for rounding.
        assert np.random.default_rng(1).multinomial(10**8, shares.reshape(-1)).sum() == 10**8
    assert (MADE[name].shares(shape) == shares).all(), "the name fixes it"


def test_a_third_of_the_families_is_held_out_by_the_hash_of_their_names():
    assert len({*MADE_LINES, *MADE_PLANES, *MADE_TABLES}) == len(MADE_LINES) + len(MADE_PLANES) + len(MADE_TABLES)
    for families in (MADE_LINES, MADE_PLANES, MADE_TABLES):
        held_out = [name for name in families if is_held_out(name)]
        assert 0.25 < len(held_out) / len(families) < 0.42
        for name in families:
            assert is_held_out(name) == (int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0)
            shown = [name] if name in known() else [f"{name}, {len(shape)} axes" for shape in SHAPES]
            assert {known()[one].kind == "held out" for one in shown} == {is_held_out(name)}


def test_tables_have_questions():
    for shape in SHAPES:
        assert workloads_for(shape, WORKLOADS) == ["identity", "marginals", "pairs"]
        assert workload_named("pairs", shape).groups is not None


def test_nothing_that_is_held_out_is_measured_unless_that_is_said():
    assert {dataset.kind for dataset in chosen_datasets(None, False)} == {"made", "published shape"}
    assert {dataset.kind for dataset in chosen_datasets(None, True)} <= {"held out", "real"}
    name = next(name for name in MADE if is_held_out(name))
    with pytest.raises(ParameterError, match="not held out"):
        named([name], held_out=False)
    with pytest.raises(ParameterError, match="not held out"):
        chosen_datasets([name], False)
    assert named([name], held_out=True)[0].name == name


def test_no_other_file_takes_what_is_held_out():
    """Tuning scripts see made-up families through `named` and `chosen_datasets` alone, which refuse them."""
    allowed = {"datasets.py", "suite.py", "made_lines.py", "made_planes.py", "made_tables.py", Path(__file__).name}
    makers = re.compile(r"held_out\s*=\s*True|MADE_(LINES|PLANES|TABLES)|made_(lines|planes|tables)|--held-out")
    for folder in ("benchmarks", "scripts", "dpfast", "examples", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            assert path.name in allowed or not makers.search(path.read_text()), path


def write(path: Path, frame: pl.DataFrame) -> None:
    frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)


def test_histograms_come_from_files_of_three_kinds(tmp_path):
    plane = np.array([[0, 2], [3, 0], [0, 5]])
    np.save(tmp_path / "array.npy", plane)
    np.save(tmp_path / "floats.npy", np.array([1.0, 2.0]))
    for suffix in (".csv", ".parquet"):
        write(tmp_path / f"line{suffix[1:]}{suffix}", pl.DataFrame({"any": [5, 0, 7]}))
        cells = pl.DataFrame({"count": [2, 3, 5], "row": [0, 1, 2], "column": [1, 0, 1]})
        write(tmp_path / f"plane{suffix[1:]}{suffix}", cells)
    (tmp_path / "notes.txt").write_text("none of ours")
    found = folder_datasets(tmp_path)
    assert sorted(found) == ["array", "floats", "linecsv", "lineparquet", "planecsv", "planeparquet"]
    for name in ("planecsv", "planeparquet", "array"):
        assert (found[name].axes, found[name].finest) == (2, (3, 2))
        assert found[name].shares((3, 2)) == pytest.approx(plane / 10)
    assert read_counts(tmp_path / "linecsv.csv").tolist() == [5, 0, 7]
    assert found["floats"].shapes([256]) == [(2,)], "no finer than the data"
    assert found["floats"].shapes([2, 256]) == [(2,)]


WRONG = {
    "negative.csv": (pl.DataFrame({"n": [1, -3]}), "least count of -3"),
    "half.csv": (pl.DataFrame({"n": [1.0, 2.5]}), "2.5"),
    "empty.csv": (pl.DataFrame({"n": [0, 0]}), "not all 0"),
    "words.csv": (pl.DataFrame({"n": ["a", "b"]}), "numbers without nulls"),
    "null.parquet": (pl.DataFrame({"n": [1, None]}), "1 nulls"),
    "nan.parquet": (pl.DataFrame({"n": [1.0, float("nan")]}), "whole numbers"),
    "columns.csv": (pl.DataFrame({"x": [0], "y": [1]}), "one named count"),
    "many.csv": (pl.DataFrame({"x": [0], "y": [1], "z": [2], "count": [1]}), "one named count"),
    "twice.csv": (pl.DataFrame({"x": [0, 0], "count": [1, 1]}), "two rows of one cell"),
    "below.csv": (pl.DataFrame({"x": [-1, 0], "count": [1, 1]}), "cells from 0 on"),
    "wide.csv": (pl.DataFrame({"x": [0, 2**40], "count": [1, 1]}), "at most"),
    "none.parquet": (pl.DataFrame({"x": [], "count": []}, schema={"x": pl.Int64, "count": pl.Int64}), "at least one"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_hold_no_histogram_are_refused_by_name(name, tmp_path):
    frame, why = WRONG[name]
    write(tmp_path / name, frame)
    with pytest.raises(ParameterError, match=re.escape(why)) as caught:
        folder_datasets(tmp_path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_and_folders_without_files_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"\.npy, \.parquet, \.csv"):
        folder_datasets(tmp_path)
    with pytest.raises(ParameterError, match="a folder"):
        folder_datasets(tmp_path / "none")
    for name in ("broken.npy", "broken.parquet"):
        (tmp_path / name).write_bytes(b"nothing of this kind")
        with pytest.raises(ParameterError, match=name):
            read_counts(tmp_path / name)
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2), np.int64))
    with pytest.raises(ParameterError, match="one or two dimensions"):
        read_counts(tmp_path / "cube.npy")
    for name in ("a.csv", "a.parquet"):
        (tmp_path / name).write_bytes(b"x\n1\n2\n")
    with pytest.raises(ParameterError, match="without their ends"):
        folder_datasets(tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_columns_of_real_tables_are_counted(name):
    if not REAL[name].installed:
        pytest.skip(f"{REAL[name].package} is not installed")
    counts = real_counts(name)
    assert counts.shape == REAL[name].shape
    assert counts.sum() > 1_000
    assert (counts > 0).sum() > 30
    assert known()[name].kind == "real"
