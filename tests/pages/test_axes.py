"""What stands along the axes of charts: no number twice, none that cannot be, and none over another."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dpfast.charts import draw_answers, draw_left, draw_marginals

pytest.importorskip("vl_convert")


def labels(path, axis):
    """Return what stands along the axis of a chart in SVG."""
    drawn = path.read_text()
    found = re.search(
        rf'aria-label="{axis}-axis titled.*?(?=aria-label="[XY]-axis titled|mark-group role-legend|$)', drawn, re.S
    )
    groups = re.findall(r'role-axis-label".*?</g>', found[0], re.S)
    return re.findall(r"<text[^>]*?(?<!opacity=\"0\")>([^<]*)</text>", groups[0])


@pytest.mark.parametrize("number", [1, 2, 3, 5, 9, 12, 1000])
def test_queries_and_charges_are_whole_numbers(number, tmp_path):
    draw_answers(np.arange(number) * 1e6, path=tmp_path / "answers.svg")
    left = {"epsilon": np.linspace(1, 0, number + 1), "delta": np.ones(number + 1)}
    draw_left(np.arange(number + 1), ["x"] * (number + 1), left, "d", tmp_path / "left.svg")
    for name in ("answers", "left"):
        told = labels(tmp_path / f"{name}.svg", "X")
        assert told
        assert len(set(told)) == len(told)
        assert all(re.fullmatch(r"[\d,]+", one) for one in told)


@pytest.mark.parametrize("largest", [0.0, 3.0, 1e3, 1e6, 1e12])
def test_counts_of_a_model_have_powers_of_ten(largest, tmp_path):
    draw_marginals(np.array([-5.0, 0.0, largest]), np.array([0.0, 1.0, largest]), tmp_path / "counts.svg")
    for axis in "XY":
        told = [one for one in labels(tmp_path / "counts.svg", axis) if one]
        assert len(set(told)) == len(told)
        assert all(re.fullmatch(r"[−-]?(0|1[0,]*)", one) for one in told)
