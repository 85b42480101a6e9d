"""Subsample and aggregate: what an exchanged answer changes, the aggregators' laws, and the matrix of edges."""

from __future__ import annotations

import itertools
import struct
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.stability.aggregators import Mean, Median, SmoothMean, UnlistedMode, VotedMode, grid_of_means
from dpfast.stability.passing import PassingTest
from dpfast.stability.smooth import smooth_noise, smooth_sensitivity_of
from dpfast.stability.trimming import rank_sum
from dpfast.testing import SeededRandom

from . import functions
from .laws import excess

WAYS = ("median", "mean", "trimmed_mean", "winsorized_mean")


def packed(*numbers):
    return [struct.pack("<d", number) if number is not None else b"" for number in numbers]


@pytest.mark.parametrize("kind", WAYS[1:])
def test_noise_of_means_covers_what_one_answer_changes(kind):
    """Rows 7-1 and 7-2: the scale is the range times the largest weight over epsilon, for bounds on odd places."""
    for bounds in ((0, 10), (-3.7, 12.9), (1e-30, 3e-30), (-1e300, 1e300), (10**9, 10**9 + 1)):
        grid = grid_of_means(bounds)
        made = Mean(grid, 0.0, budget_units(0.5, "epsilon"), kind, 9, 0.25)
        change = rank_sum(kind, 9, 0.25).change * (grid.upper - grid.lower)
        assert Fraction(made._noise.scale) * Fraction(1, 2) >= change
        assert grid.step * (grid.upper - grid.lower) == pytest.approx(bounds[1] - bounds[0], rel=1e-6)
        assert made.points(packed(None, 1e308, -1e308))[::2] == [grid.lower, grid.upper]


@pytest.mark.parametrize("kind", WAYS[1:])
def test_means_are_what_they_are_called_where_noise_is_small(kind):
    """Row 7-2."""
    numbers = [3.0, 1.0, 2.0, None, 8.0, 50.0, -4.0]
    made = Mean(grid_of_means((0, 10)), 5.0, budget_units(10**6, "epsilon"), kind, 7, 0.2)
    own = [3.0, 1.0, 2.0, 5.0, 8.0, 10.0, 0.0]
    wanted = {
        "mean": np.mean(own),
        "trimmed_mean": dpf.stability.trimmed_mean(own, 0.2),
        "winsorized_mean": dpf.stability.winsorized_mean(own, 0.2),
    }[kind]
    assert made.run(packed(*numbers), SeededRandom(1)) == pytest.approx(wanted, abs=1e-4)


def test_trimmed_means_by_smooth_sensitivity_are_private():
    """Row 7-2: the law of the noisy mean of 5 answers on 4 steps, all exchanges of one."""
    epsilon, cut = 1.0, 1
    for delta in (0.0, 1e-3):
        noise = smooth_noise(Fraction(epsilon), Fraction(delta))
        worst = 0.0
        laws = {}
        for answers in itertools.combinations_with_replacement(range(4), 5):
            spread = smooth_sensitivity_of(np.array(answers), 0, 3, noise.beta, "replace", cut) / 3
            scale = spread / float(noise.alpha)
            edges = (np.arange(-30, 33, 0.25) - sum(answers[1:4]) / 3) / scale
            if delta:
                below = np.where(edges < 0, np.exp(edges) / 2, 1 - np.exp(-np.maximum(edges, 0)) / 2)
            else:
                below = 0.5 + np.arctan(edges) / np.pi
            laws[answers] = dict(enumerate(np.diff(np.concatenate(([0], below, [1]))).tolist()))
        for one, other in itertools.permutations(laws, 2):
            if sum((np.bincount(one, minlength=4) - np.bincount(other, minlength=4)).clip(0)) == 1:
                worst = max(worst, excess(laws[one], laws[other], epsilon))
        assert worst <= delta * (1 + 1e-6) + 1e-12


def test_smooth_means_are_near_where_answers_agree():
    """Row 7-2: with answers that differ by 2 of 1,000, noise is far below that for the range."""
    grid, epsilon = grid_of_means((0, 1000)), budget_units(1.0, "epsilon")
    answers = packed(*(500 + np.linspace(-1, 1, 200)))
    for delta in (0, budget_units(1e-6, "delta")):
        noise = smooth_noise(Fraction(1), Fraction(delta, UNITS_PER_ONE))
        made = SmoothMean(grid, 0.0, epsilon, delta, 200, 0.25, noise)
        errors = [abs(made.run(answers, SeededRandom(k)) - 500) for k in range(40)]
        assert np.median(errors) < 1.0


@pytest.mark.statistical
def test_votes_are_of_permute_and_flip(seed):
    """Row 7-3: of 3 candidates, the runner-up by 2 votes, by exact binomial tests that all but 1e-10 of runs pass."""
    made, runs = VotedMode(("a", "b", "c"), budget_units(1.0, "epsilon")), 1500
    answers = [b"0"] * 4 + [b"1"] * 2 + [b""] * 3
    source = SeededRandom(seed)
    won = [made.run(answers, source) for _ in range(runs)]
    exact = dpf.selection_probabilities([4, 2, 0], 1.0, mechanism="permute_and_flip")
    events = [(name, won.count(name), runs, chance) for name, chance in zip("abc", exact, strict=True)]
    assert rejects(events, 1e-10) == ""


def test_a_mode_needs_many_blocks_even_if_all_agree():
    """Row 7-3: about ln(candidates) / epsilon of them; the chance is that of permute-and-flip, exactly."""
    for blocks, likely in ((2, False), (40, True)):
        scores = [blocks] + [0] * 199
        chance = dpf.selection_probabilities(scores, 1.0, mechanism="permute_and_flip")[0]
        assert bool(chance > 0.99) is likely


def test_unlisted_votes_need_a_lead():
    passing = PassingTest("optimal", budget_units(1.0, "epsilon"), budget_units(1e-9, "delta"))
    made = UnlistedMode(passing)
    assert made.run([b"'x'"] * 200 + [b""] * 50, SeededRandom(1)) == "x"
    assert made.run([b"'x'"] * 50 + [b"'y'"] * 50, SeededRandom(1)) is None
    assert made.run([b""] * 100, SeededRandom(1)) is None
    assert made.run([b"[" * 5000] * 200, SeededRandom(1)) is None


def test_medians_of_blocks_are_near_the_middle():
    grid = dpf.stability  # the public functions need no grid
    assert grid is not None
    made = Median(grid_of_means((0, 100)), 0.0, budget_units(5.0, "epsilon"))
    found = made.run(packed(*np.linspace(40, 60, 201)), SeededRandom(3))
    assert abs(found - 50) < 5


FRAME = pl.DataFrame({"a": np.arange(3000) % 100, "who": np.arange(3000) // 3})
DATA = {
    "Polars frame": (FRAME, lambda rows: rows["a"].mean()),
    "lazy frame": (FRAME.lazy(), lambda rows: rows["a"].mean()),
    "series": (FRAME["a"], lambda rows: rows.mean()),
    "Arrow table": (FRAME.to_arrow(), lambda rows: np.mean(rows["a"].to_numpy())),
    "Arrow array": (FRAME["a"].to_arrow(), lambda rows: np.mean(rows.to_numpy())),
    "pandas": (FRAME.to_pandas(), lambda rows: rows["a"].mean()),
    "pandas series": (FRAME.to_pandas()["a"], lambda rows: rows.mean()),
    "NumPy": (FRAME["a"].to_numpy(), functions.mean),
    "two dimensions": (FRAME.to_numpy(), lambda rows: rows[:, 0].mean()),
    "list": (FRAME["a"].to_list(), functions.mean),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_every_kind_of_data(name, neighbors):
    """Row 7-1: the same kind of answer for every library."""
    data, function = DATA[name]
    found = dpf.subsample_and_aggregate(
        data, function, blocks=60, bounds=(0, 99), epsilon=20.0, neighbors=neighbors, workers=0, random=SeededRandom(1)
    )
    assert abs(found.value - 49.5) < 10


def test_units():
    for data in (FRAME, FRAME.lazy(), FRAME.to_arrow(), FRAME.to_pandas()):
        found = dpf.subsample_and_aggregate(
            data,
            lambda rows: len(rows) % 3,
            blocks=20,
            bounds=(0, 2),
            epsilon=50.0,
            aggregator="mean",
            unit="who",
            workers=0,
        )
        assert abs(found.value) < 0.2
    ledger = dpf.Ledger(epsilon=1)
    dpf.subsample_and_aggregate(FRAME, len, blocks=2, bounds=(0, 9), epsilon=1, unit="who", workers=0, ledger=ledger)
    assert ledger.identity.privacy_unit == "who"


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("aggregator", [*WAYS, "mode", "unlisted", "smooth"])
def test_edges_of_the_data(aggregator, neighbors):
    """Row 7-1: nothing, one row, nulls, more blocks than rows, one block: never an error, always a value or None."""
    given = {"bounds": (0, 9), "aggregator": aggregator}
    if aggregator == "mode":
        given = {"candidates": [1, 2], "aggregator": "mode"}
    if aggregator == "unlisted":
        given = {"delta": 1e-6, "aggregator": "mode"}
    if aggregator == "smooth":
        given |= {"aggregator": "trimmed_mean", "sensitivity": "smooth"}
    for data in (
        [],
        [5],
        pl.Series([None] * 5, dtype=pl.Int64),
        np.full(5, np.nan),
        pd.Series([], dtype=float),
        pa.array([1]),
    ):
        for blocks in (1, 2, 7):
            found = dpf.subsample_and_aggregate(
                data, functions.mean, blocks=blocks, epsilon=1.0, neighbors=neighbors, workers=0, **given
            )
            if aggregator == "mode":
                assert found.value in (1, 2)
            elif aggregator != "unlisted":
                assert 0 <= found.value <= 9


def test_budgets_are_charged_as_given():
    for aggregator, given in (
        ("median", {"bounds": (0, 9)}),
        ("mean", {"bounds": (0, 9)}),
        ("mode", {"candidates": ["a"]}),
        ("mode", {"delta": 1e-7}),
        ("trimmed_mean", {"bounds": (0, 9), "sensitivity": "smooth", "delta": 1e-7}),
        ("trimmed_mean", {"bounds": (0, 9), "sensitivity": "smooth"}),
    ):
        ledger = dpf.Ledger(epsilon=0.3, delta=1e-6)
        found = dpf.subsample_and_aggregate(
            [1, 2], functions.mean, blocks=3, epsilon=0.3, aggregator=aggregator, workers=0, ledger=ledger, **given
        )
        assert (
            (ledger.spent.epsilon, ledger.spent.delta) == (found.epsilon, found.delta) == (0.3, given.get("delta", 0))
        )
        assert "0.3" in found.explain()


def select_model(rows):
    """Return the degree of the polynomial with the least error on every second row."""
    x, y = rows[:, 0], rows[:, 1]
    fits = [np.polyfit(x[::2], y[::2], degree) for degree in (0, 1, 2)]
    return int(np.argmin([np.mean((np.polyval(fit, x[1::2]) - y[1::2]) ** 2) for fit in fits]))


def test_example_of_model_selection():
    """Row 7-4, example 7.1: blocks vote for the degree of a polynomial."""
    generator = np.random.default_rng(1)
    x = generator.uniform(-1, 1, 20_000)
    data = np.column_stack([x, 3 * x**2 + generator.normal(0, 0.3, x.size)])
    found = dpf.subsample_and_aggregate(
        data, select_model, blocks=60, aggregator="mode", candidates=[0, 1, 2], epsilon=1.0, random=SeededRandom(1)
    )
    assert found.value == 2


def two_features(rows):
    """Return the two columns that are most correlated with the last."""
    strength = np.abs(np.corrcoef(rows.T)[-1, :-1])
    return tuple(sorted(np.argsort(strength)[-2:].tolist()))


def test_example_of_significant_features():
    """Row 7-4, example 7.2: one vote for all features, over all pairs, and one for each feature by itself."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(30_000, 5))
    data = np.column_stack([x, x[:, 1] + 0.7 * x[:, 3] + generator.normal(size=30_000)])
    pairs = list(itertools.combinations(range(5), 2))
    found = dpf.subsample_and_aggregate(
        data, two_features, blocks=60, aggregator="mode", candidates=pairs, epsilon=1.0, random=SeededRandom(1)
    )
    assert found.value == (1, 3)
    single = [
        dpf.subsample_and_aggregate(
            data,
            lambda rows, k=k: k in two_features(rows),
            blocks=100,
            aggregator="mode",
            candidates=[False, True],
            epsilon=0.2,
            workers=0,
            random=SeededRandom(k),
        ).value
        for k in range(5)
    ]
    assert single == [False, True, False, True, False]


def test_wrong_combinations_are_refused():
    for given, name in (
        ({"aggregator": "mode"}, "delta"),
        ({"aggregator": "mode", "candidates": ["a"], "delta": 1e-6}, "delta"),
        ({"bounds": (0, 1), "delta": 1e-6}, "delta"),
        ({"bounds": (0, 1), "sensitivity": "smooth"}, "sensitivity"),
        ({"bounds": (0, 1), "candidates": ["a"]}, "candidates"),
        ({"bounds": (0, 1), "aggregator": "mean", "grid": 1}, "grid"),
        ({"aggregator": "mode", "candidates": ["a"], "bounds": (0, 1)}, "bounds"),
    ):
        with pytest.raises(dpf.errors.ParameterError, match=f"^{name} must be"):
            dpf.subsample_and_aggregate([1], functions.mean, blocks=3, epsilon=1.0, workers=0, **given)
