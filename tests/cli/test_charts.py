"""Charts: what is shown, in which order, and where nothing can be."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from dpfast.charts import draw_answers, draw_errors, draw_groups
from dpfast.errors import ParameterError

alt = pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def frame(values, scales=None, keys=None):
    scales = [2.0] * len(values) if scales is None else scales
    return pl.DataFrame(
        {
            "city": keys or [f"city {place}" for place in range(len(values))],
            "n": values,
            "n_scale": scales,
            "n_lower": [value - 3 * scale for value, scale in zip(values, scales, strict=True)],
            "n_upper": [value + 3 * scale for value, scale in zip(values, scales, strict=True)],
        },
        strict=False,
    )


def rows(chart):
    """The rows of a chart, or of its first marks."""
    drawn = chart.to_dict()
    return (drawn.get("data") or drawn["layer"][0]["data"])["values"]


def labels(chart):
    """What stands beside the groups, without the marks of no width that tell equal ones apart."""
    return [row["group"].rstrip("\u200b") for row in rows(chart)]


def notes(chart):
    return " ".join(chart.to_dict()["title"]["subtitle"])


def test_the_largest_groups_come_first():
    assert labels(draw_groups(frame([3, 9, -5, 7]), ["city"], "n", 3)) == ["city 1", "city 3", "city 0"]


def test_where_the_noise_differs_the_least_noisy_are_shown():
    figure = draw_groups(frame([3.5, 99.0, 5.0], [1.0, 40.0, 2.0]), ["city"], "n", 2)
    assert labels(figure) == ["city 2", "city 0"]


@pytest.mark.parametrize(
    ("key", "label"), [("a$b$", "a$b$"), (None, "(null)"), ("", "(empty)"), ("x\ny", "x y"), ("x" * 90, "x" * 41 + "…")]
)
def test_keys_are_labels_whatever_they_hold(key, label, tmp_path):
    figure = draw_groups(frame([1, 2], keys=["Oslo", key]), ["city"], "n", 5, tmp_path / "chart.png")
    assert labels(figure) == [label, "Oslo"]


def test_two_keys_are_joined_by_an_arrow_more_by_commas():
    wide = frame([1]).with_columns(hour=pl.lit(3), day=pl.lit("Mon"))
    assert labels(draw_groups(wide, ["city", "hour"], "n", 5)) == ["city 0 → 3"]
    assert labels(draw_groups(wide, ["city", "hour", "day"], "n", 5)) == ["city 0, 3, Mon"]
    assert labels(draw_groups(wide, [], "n", 5)) == ["all rows"]


def test_no_group_at_all_is_said(tmp_path):
    figure = draw_groups(frame([1]).head(0), ["city"], "n", 5, tmp_path / "chart.svg")
    assert rows(figure) == [{"said": "No group was large enough to be shown."}]


def test_equal_releases_give_equal_pictures(tmp_path):
    for name in ("a.png", "b.png"):
        draw_groups(frame([3, 9, -5]), ["city"], "n", 3, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_nothing_is_set_for_other_charts():
    """Themes of Altair are global; these charts leave them alone, and so can stand beside and above others."""
    before = alt.theme.active if hasattr(alt, "theme") else alt.themes.active
    chart = draw_groups(frame([1, 2]), ["city"], "n", 2)
    assert (alt.theme.active if hasattr(alt, "theme") else alt.themes.active) == before
    assert (chart | chart).to_dict()["hconcat"]


def test_labels_that_are_cut_alike_stay_apart():
    figure = draw_groups(frame([3, 2], keys=["x" * 90 + "a", "x" * 90 + "b"]), ["city"], "n", 2)
    assert len({row["group"] for row in rows(figure)}) == 2
    assert len(set(labels(figure))) == 1


def test_answers_and_errors_say_what_they_are(tmp_path):
    answers = np.arange(30_000.0)
    for figure, told in (
        (draw_answers(answers), "one estimated histogram. 5,000 of 30,000 queries."),
        (draw_answers(answers[:5], (answers[:5] - 1, answers[:5] + 1)), "95% intervals. 5 queries."),
        (draw_errors(answers, answers + 2), "for public data only. 5,000 of 30,000 queries."),
    ):
        assert notes(figure).endswith(told)
        assert len(rows(figure)) <= 5000
    assert draw_errors(answers, answers + 2).to_dict()["layer"][2]["data"]["values"][0]["said"] == "mean 2"
    assert draw_answers(answers).to_dict()["title"]["text"] == "30,000 answers"
    with pytest.raises(ParameterError, match=r"\.png, \.svg, \.pdf"):
        draw_errors(answers, answers, tmp_path / "chart.gif")


@pytest.mark.parametrize("top", [0, -1, 501, True, 2.0, None])
def test_top_out_of_range(top):
    with pytest.raises(ParameterError, match="from 1 to 500"):
        draw_groups(frame([1]), ["city"], "n", top)


def test_unknown_kind_of_picture(tmp_path):
    with pytest.raises(ParameterError, match=r"\.png, \.svg, \.pdf"):
        draw_groups(frame([1]), ["city"], "n", 1, tmp_path / "chart.gif")


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_library_is_missing(monkeypatch, missing, tmp_path):
    """Without what writes files, charts in a notebook are drawn all the same."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else name)
    with pytest.raises(ParameterError, match=r'run pip install "dpfast\[plot\]"'):
        draw_groups(frame([1]), ["city"], "n", 1, tmp_path / "chart.png")
    if missing == "vl_convert":
        assert labels(draw_groups(frame([1]), ["city"], "n", 1)) == ["city 0"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_what_their_names_say(suffix, tmp_path):
    draw_groups(frame([3, 9, -5]), ["city"], "n", 3, tmp_path / f"chart{suffix}")
    beginning = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}[suffix]
    assert (tmp_path / f"chart{suffix}").read_bytes().startswith(beginning)


def test_an_interval_without_an_end_reaches_the_farthest_number():
    endless = frame([3, 9]).with_columns(n_lower=pl.lit(float("-inf")), n_upper=pl.Series([float("inf"), 12.0]))
    drawn = rows(draw_groups(endless, ["city"], "n", 2))
    assert [(row["lower"], row["upper"]) for row in drawn] == [(3.0, 12.0), (3.0, 12.0)]


DAY, HOUR = datetime.date(2024, 5, 1), datetime.timedelta(hours=1)
MOMENT = datetime.datetime(2024, 5, 1)


@pytest.mark.parametrize(
    ("value", "scale", "where", "label"),
    [
        (Decimal("1.25"), 0.5, 1.25, "n"),
        (MOMENT, datetime.timedelta(days=1), 19_844.0, "n"),
        (DAY, None, 19_844.0, "n"),
        (90 * HOUR, HOUR, 90.0, "n (hours)"),
        (datetime.time(6, 30), HOUR, 6.5, "n (hours)"),
    ],
)
def test_decimals_and_times_are_drawn_where_they_lie(value, scale, where, label):
    """Of moments the axis shows dates."""
    shown = {"city": ["a"], "n": [value]}
    figure = draw_groups(
        pl.DataFrame(shown if scale is None else shown | {"n_scale": [scale], "n_lower": [value], "n_upper": [value]}),
        ["city"],
        "n",
        3,
    )
    mark = figure.to_dict()["layer"][-1]["encoding"]["x"]
    assert mark["axis"]["title"] == label
    day = 86_400_000 if mark["type"] == "temporal" else 1
    assert rows(figure)[0]["value"] == pytest.approx(where * day)
    if isinstance(value, datetime.date) and scale is None:
        # Around one moment there would be years.
        assert mark["scale"]["domain"] == [(where - 1) * day, (where + 1) * day]
