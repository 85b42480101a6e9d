"""Charts: what is shown, in which order, and where nothing can be."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from dpfast.charts import draw_answers, draw_errors, draw_groups
from dpfast.errors import ParameterError

pytest.importorskip("matplotlib")


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


def labels(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


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
    assert figure.axes[0].texts[0].get_text() == "No group was large enough to be shown."


def test_equal_releases_give_equal_pictures(tmp_path):
    for name in ("a.png", "b.png"):
        draw_groups(frame([3, 9, -5]), ["city"], "n", 3, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_no_figure_is_left_behind():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    draw_groups(frame([1, 2]), ["city"], "n", 2)
    assert plt.get_fignums() == before


def test_answers_and_errors_say_what_they_are(tmp_path):
    answers = np.arange(30_000.0)
    for figure, told in (
        (draw_answers(answers), "one estimated histogram. 20,000 of 30,000 queries."),
        (draw_answers(answers[:5], (answers[:5] - 1, answers[:5] + 1)), "95% intervals. 5 queries."),
        (draw_errors(answers, answers + 2), "for public data only. 20,000 of 30,000 queries."),
    ):
        assert figure.get_supxlabel().endswith(told)
    assert draw_errors(answers, answers + 2).axes[0].texts[0].get_text() == "mean 2"
    assert draw_answers(answers).axes[0].get_title(loc="left") == "30,000 answers"
    with pytest.raises(ParameterError, match=r"\.png, \.svg, \.pdf"):
        draw_errors(answers, answers, tmp_path / "chart.gif")


@pytest.mark.parametrize("top", [0, -1, 501, True, 2.0, None])
def test_top_out_of_range(top):
    with pytest.raises(ParameterError, match="from 1 to 500"):
        draw_groups(frame([1]), ["city"], "n", top)


def test_unknown_kind_of_picture(tmp_path):
    with pytest.raises(ParameterError, match=r"\.png, \.svg, \.pdf"):
        draw_groups(frame([1]), ["city"], "n", 1, tmp_path / "chart.gif")


def test_matplotlib_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r'run pip install "dpfast\[plot\]"'):
        draw_groups(frame([1]), ["city"], "n", 1)


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
    axes = figure.axes[0]
    assert axes.get_xlabel() == label
    low, high = axes.get_xlim()
    assert low < where < high
    assert high - low < 300
