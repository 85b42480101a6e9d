"""The name under which a ledger knows files: the same whether a shell has expanded a pattern or not."""

from __future__ import annotations

import glob
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import dpfast as dpf
from dpfast.aggregation.paths import name_dataset, name_files
from dpfast.aggregation.sources import path_of
from dpfast.cli import main

from .kinds import frame

PATTERNS = ["data/*.parquet", "data/*", "./data/a*.parquet", "data/[ab]*.parquet", "data/?1.parquet", "*/*.parquet",
            "data//*.parquet", "data/year=*/*.parquet", "data/*/*", "deep/*/*/*.csv.gz", "none/*.parquet"]  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("data/a1.parquet", "data/b1.parquet", "data/a2.parquet", "data/year=1/x.parquet",
                 "data/year=2/x.parquet", "deep/a/b/x.csv.gz", "deep/a/c/y.csv.gz"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_shell_that_expands_makes_no_difference(files, pattern):
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {pattern}"], capture_output=True, text=True, check=True).stdout
    expanded = said.splitlines()
    assert set(map(os.path.normpath, expanded)) == set(map(os.path.normpath, glob.glob(pattern) or [pattern]))
    assert name_dataset(expanded) == name_dataset([pattern]) == name_dataset(expanded[::-1])
    assert path_of([pattern]) == path_of(expanded) == path_of(tuple(map(Path, expanded)))


def test_names(files):
    assert name_dataset(["data/*.parquet"]) == "data/*.parquet"
    assert name_dataset(["data/b*.parquet"]) == name_dataset(["./data/b1.parquet"]) == "data/b1.parquet"
    assert name_dataset(["data/year=*/*.parquet"]) == "data/**/*.parquet"
    assert name_dataset(["deep/*/*/*.csv.gz"]) == "deep/a/**/*.csv.gz"
    assert name_dataset(["data", "data/"]) == "data"
    assert name_dataset(["data/a1.parquet", "deep/a/b/x.csv.gz"]) == "**/*"
    assert name_dataset([str(files / "data" / "*.parquet")]) == str(files / "data" / "*.parquet")
    assert name_dataset(["a.parquet", "/b.parquet"]) == "/b.parquet, a.parquet"
    assert name_dataset(["s3://b/x.parquet", "data/a1.parquet"]) == "data/a1.parquet, s3://b/x.parquet"
    assert name_dataset(["no*such.parquet"]) == "no*such.parquet"
    # One path stays as it was written.
    assert path_of("data/2026*.parquet") == "data/2026*.parquet"
    assert path_of(5) is path_of([]) is path_of([b"a"]) is path_of(pl.DataFrame()) is None


def test_a_file_whose_name_is_a_pattern(files):
    (files / "data" / "[a]*.csv").touch()
    assert name_dataset(["data/[a]*.csv"]) == "data/[a]*.csv"


@pytest.mark.parametrize("more", [False, True])
def test_one_ledger_serves_both(tmp_path, monkeypatch, more):
    """And the files that are added to a folder later."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    for i in range(3):
        frame().write_parquet(f"data/{i}.parquet")
    options = ["--count", "--epsilon", "1", "--ledger", "l.db", "--budget-epsilon", "9", "--out", "-"]
    for given in (["data/*.parquet"], sorted(map(str, Path("data").iterdir()))):
        done = CliRunner().invoke(main, ["release", *given, *options])
        assert done.exit_code == 0, done.output
        if more:
            frame().write_parquet("data/9.parquet")
    with dpf.Ledger.open("l.db") as ledger:
        assert ledger.identity.dataset == "data/*.parquet"
        assert ledger.history().height == 2


def test_every_form_of_a_path(tmp_path, monkeypatch):
    """Each names the same files, and the folders below it that name columns."""
    home = tmp_path / "home"
    (home / "data" / "y=1" / "z=2").mkdir(parents=True)
    for place in ("x.parquet", "y=1/a.parquet", "y=1/z=2/b.parquet"):
        pl.DataFrame({"k": ["a"]}).write_parquet(home / "data" / place)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "data")
    top = [("x.parquet", ())]
    whole = [*top, ("y=1/a.parquet", ("y",)), ("y=1/z=2/b.parquet", ("y", "z"))]
    forms = [
        (["x.parquet", "./x.parquet", "../data/x.parquet", "~/data/x.parquet", "../*/x.parquet"], top),
        (["*.parquet", "./*.parquet", "?.parquet", "[x].parquet", "~/data/*.parquet"], top),
        ([str(home / "data" / "*.parquet"), f"file://{home}/data/*.parquet"], top),
        (["**/*.parquet", "./**/*.parquet", "../data/**/*.parquet", "~/data/**/*.parquet", "**"], whole),
        ([".", "./", "../data", "../data/", "~/data", "~/data/", "..", str(home / "data")], whole),
        (["y=*/*.parquet"], whole[1:2]),
        (["y=*/**/*.parquet"], whole[1:]),
        (["y=1/*.parquet"], [("y=1/a.parquet", ())]),
        (["y=1", "y=1/"], [("y=1/a.parquet", ()), ("y=1/z=2/b.parquet", ("z",))]),
    ]
    for form, expected in ((form, expected) for given, expected in forms for form in given):
        for given in (form, Path(form)) if "://" not in form else (form,):
            found = [(str(Path(file.path).relative_to(home / "data")), file.partition) for file in name_files(given)]
            assert found == expected, given
