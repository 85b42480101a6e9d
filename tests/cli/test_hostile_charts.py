"""Charts with texts of others, which must not end the process; and charts over files of others, which must stay."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import polars as pl
import pytest

import dpfast as dpf
from dpfast.charts import check_plot, draw_groups
from dpfast.charts.seen import seen
from dpfast.errors import ParameterError

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

#: Every character of which some drawing library dies, in one text and in many; what Vega cuts between two halves.
PROGRAM = r"""
import sys
from dataclasses import dataclass
import numpy as np, polars as pl
import dpfast as dpf
from dpfast.charts import (
    draw_answers, draw_errors, draw_groups, draw_left, draw_marginals, draw_planned_errors, draw_recovery
)
from dpfast.charts.previews import draw_preview

kind, whole = sys.argv[1], sys.argv[2] == "whole"
BAD = "\0\x01\x08\x0b\x1b\x7f\x85\u202e\u2028\ufffe\uffff\ufdd0\U0001fffe"
HALF = "\ud800x\udfff"
KEYS = ["a", "b\x01c", "b\\x01c", *(f"k{c}" for c in BAD), BAD, "\U0001f600" * 42, "x" + "\U0001f600" * 41, "<&\"'>]]>"]
count = drawn = 0

def place():
    global count
    count += 1
    return f"{count}.{kind}"

def same(draw):
    "Draw to a file, and have Altair write the chart that comes back; of other pictures than SVG by turns."
    global drawn
    drawn += 1
    both = whole or kind == "svg"
    chart = draw(place() if both or drawn % 2 else None)
    if both or not drawn % 2:
        chart.save(place())

size = len(KEYS)
shown = pl.DataFrame({"key": KEYS, "n\x01": range(size)}).with_columns(
    (pl.lit(2.0)).alias("n\x01_scale"), (pl.col("n\x01") - 3.0).alias("n\x01_lower"),
    (pl.col("n\x01") + 3.0).alias("n\x01_upper"))
same(lambda path: draw_groups(shown, ["key"], "n\x01", 500, path))
same(lambda path: draw_groups(shown.rename({"key": "key" + BAD}), ["key" + BAD], "n\x01", 500, path))
modes = pl.DataFrame({"key": KEYS, "m": KEYS[::-1]})
for name in ("n\\", 'n\\"x', "n\\u0001"):
    same(lambda path: draw_groups(pl.DataFrame({"key": KEYS, name: range(size)}), ["key"], name, 5, path))
same(lambda path: draw_groups(modes, ["key"], "m", 500, path, candidates=KEYS))
numbers = np.arange(5.0)
for title in (BAD + HALF, "\U0001f600" * 200, "x" + "\U0001f600" * 200):
    same(lambda path: draw_answers(numbers, None, path, title=title))
    same(lambda path: draw_errors(numbers, numbers + 1, path, title=title))
    same(lambda path: draw_marginals(numbers, numbers, path, title=title))
    same(lambda path: draw_recovery([1.0, 2.0], [0.5, 0.6], 0.5, 100, path, title=title))
    left = {title: np.array([1.0, 0.5]), "b" + title: np.array([1.0, 0.2])}
    same(lambda path: draw_left(np.array([0, 1]), ["", title], left, title, path))
    errors = {title: [1.0, 0.5], "other" + title: [2.0, 1.0]}
    same(lambda path: draw_planned_errors([0.1, 1.0], errors, "epsilon", title, title, path))
    drawn += 1  # whatever the one has of this title, the other has of the next
figures = {name: pl.lit(3.0) for name in ("rows", "exact", "mean", "deviation")}
exact = pl.DataFrame({"key": KEYS}).with_columns(**figures)
same(lambda path: draw_preview(exact, ["key"], BAD, 500, [BAD], path))

# Where users meet them.
hostile = ["a", "b\x01c", BAD]
rows = pl.DataFrame({"k\x01": hostile * 50, "c": hostile * 50, "x": [1.0, 2.0, 3.0] * 50, "u": range(150)})
ledger = dpf.Ledger(epsilon=1000, delta=0.5, dataset="trips\x01\ufffe")
asked = {"n\x01": dpf.count(), "m\x1b": dpf.mode("c", candidates=hostile)}
plan = dpf.plan(rows, by="k\x01", keys=pl.DataFrame({"k\x01": hostile}), **asked, privacy_unit="u",
                max_groups=1, max_rows_per_group=1, epsilon=50)
release = plan.run(ledger)
same(release.plot)
same(lambda path: release.plot(path, query="m\x1b"))
same(ledger.plot)
counted = {"n\x01": dpf.count(), "h\uffff": dpf.histogram("x", [0.0, 1.5, 4.0])}
bins = dpf.plan(rows, **counted, privacy_unit="u", max_groups=1, max_rows_per_group=1, epsilon=50)
same(bins.run(ledger).plot)
same(lambda path: bins.run(ledger).plot(path, query="h\uffff"))
summed = {"n\x01": dpf.count(), "s\ufffe": dpf.sum("x", bounds=(0, 4))}
limits = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 1, "epsilon": 50}
same(dpf.plan(rows, **summed, **limits).plot_error)
print(count)
"""


@pytest.mark.parametrize("how", ["pairs", pytest.param("whole", marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_no_text_ends_the_process(kind, how, tmp_path):
    """All pairs of a text, a chart, a kind of picture and who writes it; the whole product takes longer."""
    command = [sys.executable, "-c", PROGRAM, kind, how]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    pictures = list(tmp_path.iterdir())
    assert len(pictures) == int(done.stdout)
    if kind == "svg":
        for picture in pictures:
            ElementTree.parse(picture)


def frame(keys=("a", "b")):
    return pl.DataFrame({"key": keys, "n": [3] * len(keys)})


def test_what_is_shown_of_hostile_texts():
    chart = draw_groups(frame(["b\x01c", r"b\x01c", "\u202ea"]), ["key"], "n", 5).to_dict()
    rows = chart.get("data", chart["layer"][0].get("data"))["values"]
    assert [row["group"] for row in rows] == [r"b\x01c", "b\\x01c\u200b", r"\u202ea"]  # no two groups become one
    assert seen("\ud800\ufffe\uffff\x7f\u2069") == r"\ud800\ufffe\uffff\x7f\u2069"
    assert seen("Zoë 東京\t\U0001f600") == "Zoë 東京 \U0001f600"


def draw(path):
    return draw_groups(frame(), ["key"], "n", 5, path)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_an_earlier_picture_is_replaced(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    draw(path)
    first = path.read_bytes()
    path.write_bytes(first[:20])
    draw(str(path))
    draw(path)
    assert path.stat().st_size > 20
    assert list(tmp_path.iterdir()) == [path]  # nothing unfinished stays


@pytest.mark.parametrize(
    "held",
    [
        b"",
        b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "a" "b">\n<svg>',
        b"\xef\xbb\xbf<!-- one --> <!-- two -->\n<svg>",
        b"%PDF-1.4",
    ],
)
def test_pictures_of_others_are_replaced_too(held, tmp_path):
    (tmp_path / "a.svg").write_bytes(held)
    draw(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<svg ")


@pytest.mark.parametrize(
    "held", [b"a,b\n1,2\n", b"<!doctype html><svg>", b"SQLite format 3\0", b"<!---->" * 500, b"<svgx>", b"\x89PNG"]
)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_what_is_no_picture_stays(held, suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(held)
    for act in (draw, check_plot):
        with pytest.raises(ParameterError, match="an earlier picture, and this file is none") as caught:
            act(path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == held
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_a_ledger_destroys_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dpf.Ledger.open("vic.db", epsilon=1) as ledger:
        os.symlink("vic.db", "vic.svg")
        held = (tmp_path / "vic.db").read_bytes()
        with pytest.raises(ParameterError, match="this file is none"):
            ledger.plot("vic.svg")
        assert os.path.islink("vic.svg")
        assert (tmp_path / "vic.db").read_bytes() == held


@pytest.mark.parametrize("held", [b"<svg>", None])
def test_a_link_is_replaced_and_what_it_leads_to_is_not(held, tmp_path):
    target, link = tmp_path / "target", tmp_path / "a.svg"
    if held is not None:
        target.write_bytes(held)
    link.symlink_to(target)
    draw(link)
    assert not link.is_symlink()
    assert link.read_bytes().startswith(b"<svg ")
    assert (target.read_bytes() if target.exists() else None) == held


def test_a_file_that_comes_while_the_chart_is_drawn_stays(tmp_path, monkeypatch):
    path, fsync = tmp_path / "a.svg", os.fsync
    monkeypatch.setattr("os.fsync", lambda file: (path.write_bytes(b"data"), fsync(file)))
    with pytest.raises(ParameterError, match="this file is none"):
        draw(path)
    assert path.read_bytes() == b"data"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no/a.svg", "in a folder that exists.*create the folder first"),
        ("file/a.svg", "in a folder that exists"),
        ("folder.svg", "a file's name, not a folder's"),
        ("pipe.svg", "this file is none"),
        ("loop.svg/a.svg", "can be written"),
        ("a\0.svg", "such a name cannot be"),
        ("\ud800.svg", "such a name cannot be"),
        ("x" * 300 + ".svg", "File name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_said_in_one_line(name, said, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder.svg").mkdir()
    os.mkfifo(tmp_path / "pipe.svg")
    os.symlink("loop.svg", tmp_path / "loop.svg")
    with pytest.raises(ParameterError, match=said) as caught:
        draw(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1


def test_a_full_disk_is_said_and_leaves_the_earlier_picture(tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_bytes(b"<svg>")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ParameterError, match=r"a file that can be written \(No space left on device\)"):
        draw(path)
    assert path.read_bytes() == b"<svg>"
    assert list(tmp_path.iterdir()) == [path]
