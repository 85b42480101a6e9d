"""What is drawn: exact probabilities, uniform where nothing is known, and the error that a plan tells."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.mechanisms.selection.modes import count_error, count_slope
from dpfast.mechanisms.selection.probabilities import selection_probabilities

from .oracles import ALPHA, chi_square_p

GROUPS = 20_000
KEYS = pl.DataFrame({"g": np.arange(GROUPS)})


def drawn(data, candidates, **arguments):
    """Return how often each candidate is the mode of a group."""
    released = dpf.release(
        data,
        "g",
        keys=KEYS,
        m=dpf.mode("x", candidates=candidates),
        ledger=dpf.Ledger(epsilon=9),
        **{"privacy_unit": "row", **arguments},
    ).frame
    counts = dict(released["m"].value_counts().rows())
    assert set(counts) <= set(candidates)
    return [counts.get(candidate, 0) for candidate in candidates]


def weights(slope, counts):
    exact = np.exp(slope * np.array(counts, float))
    return GROUPS * exact / exact.sum()


PERSON = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 2}
CASES = {
    "rows": ({}, 0.5),
    "rows replaced": ({"neighbors": "replace"}, 0.25),
    "units of two rows": (PERSON, 0.25),
    "units replaced": ({**PERSON, "neighbors": "replace"}, 0.125),
    "units in three groups": ({**PERSON, "max_groups": 3}, 0.25 / 3),
}


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_frequencies_are_the_exact_probabilities(case):
    """3, 2, 1 and 0 rows of four candidates, 2 of none, in 20,000 groups. False-failure rate 1e-12 each."""
    arguments, slope = CASES[case]
    values = pl.Series(["a", "b", "a", "c", "b", "a", "other", None])
    data = pl.DataFrame({"g": np.repeat(np.arange(GROUPS), 8)}).with_columns(
        x=values.gather(np.tile(np.arange(8), GROUPS)), u=pl.int_range(8 * GROUPS)
    )
    observed = drawn(data, ["c", "nothing", "a", "b"], epsilon=0.5, **arguments)
    assert chi_square_p(observed, weights(slope, [1, 0, 3, 2])) > ALPHA


@pytest.mark.statistical
@pytest.mark.parametrize("candidates", [[5, 3, 8], [False, True, None]])
def test_groups_without_rows_are_uniform(candidates):
    """An empty frame, and values that are all none of the candidates. False-failure rate 1e-12 each."""
    dtype = pl.Boolean if True in candidates else pl.Int64
    nothing = pl.DataFrame(schema={"g": pl.Int64, "x": dtype})
    assert chi_square_p(drawn(nothing, candidates, epsilon=1), np.full(3, GROUPS / 3)) > ALPHA
    if dtype == pl.Int64:
        others = pl.DataFrame({"g": np.arange(GROUPS), "x": [7] * GROUPS})
        assert chi_square_p(drawn(others, candidates, epsilon=1), np.full(3, GROUPS / 3)) > ALPHA


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("candidates", [1, 2, 7, 300])
def test_the_error_is_the_least_that_holds(candidates, neighbors):
    """The worst counts are all alike but the best; exact probabilities of straying by more, and by one row less."""
    for epsilon, rows in ((1.0, 1), (0.1, 1), (3.0, 5)):
        for miss in (0.5, 0.05, 1e-6):
            error = count_error(candidates, epsilon, rows, neighbors, miss)
            slope = count_slope(epsilon, rows, neighbors)

            def strays(error, slope=slope):
                scores = np.array([error + 1] + [0] * (candidates - 1))
                # a = epsilon / (2 sensitivity) is the slope.
                return math.fsum(selection_probabilities(scores, epsilon=2 * slope)[1:])

            assert strays(error) <= miss + 1e-12
            assert not error or strays(error - 1) > miss


@pytest.mark.statistical
def test_the_error_of_a_plan_covers_as_often_as_it_says():
    """The worst counts in 20,000 groups: 5% stray further at most, 0.7% more with probability 1e-12."""
    names = [f"c{i}" for i in range(6)]
    data = pl.DataFrame({"g": np.arange(GROUPS), "x": ["c2"] * GROUPS})
    plan = dpf.plan(data, "g", keys=KEYS, m=dpf.mode("x", candidates=names), privacy_unit="row", epsilon=1)
    error = int(plan.error()["one"][0])
    assert plan.error()["one"].to_list() == plan.to_frame()["error95"].to_list()
    assert plan.error()["all"][0] > error
    # One row more than the error.
    data = pl.concat([data] * (error + 1))
    released = dpf.release(
        data,
        "g",
        keys=KEYS,
        m=dpf.mode("x", candidates=names),
        privacy_unit="row",
        epsilon=1,
        ledger=dpf.Ledger(epsilon=1),
    ).frame
    assert (released["m_rows"] == error).all()
    # Five others of six each miss the error: (1 - 0.95) * 20,000 = 1,000, with a deviation of 31.
    strays = (released["m"] != "c2").sum()
    print(f"{strays} of {GROUPS}")
    assert strays < 1000 + 7.1 * 31


def test_huge_counts_and_slopes_are_decided():
    """The largest epsilon over the largest counts: the mode itself."""
    data = pl.DataFrame({"g": [0] * 3001, "x": ["a"] * 1500 + ["b"] * 1501})
    released = dpf.release(
        data,
        "g",
        keys=KEYS[:2],
        m=dpf.mode("x", candidates=["a", "b"]),
        privacy_unit="row",
        epsilon=1e6,
        ledger=dpf.Ledger(epsilon=1e6),
    ).frame
    assert released["m"][0] == "b"
    tiny = dpf.plan(data, "g", keys=KEYS[:2], m=dpf.mode("x", candidates=["a", "b"]), privacy_unit="row", epsilon=4e-18)
    assert tiny.run(dpf.Ledger(epsilon=1)).frame["m_rows"].to_list() == [2**38] * 2
