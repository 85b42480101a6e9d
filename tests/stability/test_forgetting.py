"""An error after the charge carries frames, which a log may show: none of them holds an exact figure."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import dpfast as dpf
from dpfast.testing import SeededRandom

VALUES = np.linspace(0.0, 99.0, 1200)


class Failing(SeededRandom):
    """Fails when noise is to be drawn, which is when all exact figures are known."""

    def key(self):
        raise OSError("no randomness")


def mean(block):
    return float(np.mean(block))


FAIR = {"epsilon": 1.0, "delta": 1e-6}
CALLS = {
    "release_if_stable": lambda random: dpf.release_if_stable(["tea"] * 90, "mode", **FAIR, random=random),
    "propose_test_release": lambda random: dpf.propose_test_release(
        VALUES, "median", bounds=(0, 100), bound=1, **FAIR, random=random
    ),
    "interquartile_scale": lambda random: dpf.interquartile_scale(VALUES, **FAIR, random=random),
    "smooth_median": lambda random: dpf.smooth_median(VALUES, bounds=(0, 100), **FAIR, random=random),
    "subsample_and_aggregate": lambda random: dpf.subsample_and_aggregate(
        VALUES, mean, blocks=20, aggregator="median", bounds=(0, 100), epsilon=1.0, random=random
    ),
    "release_if_subsamples_agree": lambda random: dpf.release_if_subsamples_agree(
        VALUES, mean, blocks=40, **FAIR, random=random
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_that_leaves_holds_nothing_of_the_data(name):
    with pytest.raises(OSError, match="no randomness") as raised:
        CALLS[name](Failing(1))
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
    names = [frame.f_code.co_name for frame in frames]
    assert "draw" in names, names
    within = frames[names.index("draw") :]
    assert [sorted(frame.f_locals) for frame in within if frame.f_locals and frame.f_code.co_name != "key"] == []
