"""Counters as users have them: columns of any library, budgets, ledgers, and edges."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Pure
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError
from dpfast.streaming.rows import sums_of_rows
from dpfast.testing import SeededRandom

BUDGETS = {
    "tree": ({"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.1}),
    "honaker": ({"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.1}),
    "square_root": ({"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.1}),
    "blt": ({"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.1}),
    "pan_private": ({"epsilon": 0.5},),
}
EACH = [(name, budget) for name, budgets in BUDGETS.items() for budget in budgets]


@pytest.mark.parametrize(("mechanism", "budget"), EACH)
@pytest.mark.parametrize("accountant", ["basic", "zcdp"])
def test_a_ledger_is_charged_once_for_the_whole_horizon(mechanism, budget, accountant):
    """The charge is in by the time that the counter is there, its event costs no more, and steps cost nothing."""
    if "rho" in budget and accountant == "basic":
        with pytest.raises(ParameterError, match="rho"):
            dpf.continual_count(16, mechanism=mechanism, ledger=dpf.Ledger(epsilon=1.0, delta=1e-5), **budget)
        return
    ledger = dpf.Ledger(epsilon=3.0, delta=1e-5, accountant=accountant)
    counter = dpf.continual_count(16, mechanism=mechanism, ledger=ledger, dataset="visits", **budget)
    history = ledger.history()
    assert history.height == 1
    assert counter.entry is not None
    for step in range(16):
        counter.step(step)
    with pytest.raises(BudgetExceededError, match="the horizon of 16 steps is over"):
        counter.step(1)
    assert ledger.history().equals(history)
    if accountant == "zcdp" and "rho" in budget:
        assert 0.0999999 <= ledger.spent.rho <= 0.1
    with pytest.raises(LedgerError):
        dpf.continual_count(16, mechanism=mechanism, ledger=ledger, dataset="other", **budget)


def test_nothing_is_charged_where_it_does_not_fit(tmp_path):
    ledger = dpf.Ledger(epsilon=0.4)
    with pytest.raises(BudgetExceededError):
        dpf.continual_count(16, epsilon=0.5, ledger=ledger, path=tmp_path / "kept")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="random must be left out"):
        dpf.continual_count(16, epsilon=0.1, ledger=ledger, random=SeededRandom(1))
    assert ledger.history().is_empty()


def test_the_best_mechanism_is_taken():
    assert dpf.continual_count(1000, epsilon=1.0).mechanism == "honaker"
    assert dpf.continual_count(1000, rho=0.5).mechanism == "blt"
    assert dpf.continual_count(1000, epsilon=1.0, delta=1e-6).mechanism == "blt"
    for horizon in (1, 2, 5, 1000):
        errors = {
            name: dpf.continual_count(horizon, rho=0.01, mechanism=name).error()
            for name in ("tree", "honaker", "square_root", "blt", "auto")
        }
        assert errors["auto"] <= min(errors["tree"], errors["honaker"], errors["blt"]) * (1 + 1e-9)
        assert errors["square_root"] <= errors["auto"] * 1.02


def test_events():
    assert isinstance(dpf.continual_count(9, epsilon=1.0, mechanism="tree").event, DiscreteLaplace)
    assert isinstance(dpf.continual_count(9, rho=1.0).event, Gaussian)
    assert dpf.continual_count(9, epsilon=0.3, mechanism="pan_private").event == Pure(0.3)


@pytest.mark.parametrize("mechanism", ["tree", "blt", "honaker", "square_root", "pan_private"])
def test_kinds_come_back(mechanism):
    budget = BUDGETS[mechanism][-1]
    for given, kind in (
        (np.array([1, 2, 3], np.int32), np.ndarray),
        (np.array([1, 2, 3], np.uint32), np.ndarray),
        ([1, 2, 3], np.ndarray),
        (pl.Series("n", [1, None, 3]), pl.Series),
        (pa.array([1, 2, None]), pa.Array),
        (pa.chunked_array([[1], [2, 3]]), pa.ChunkedArray),
        (pd.Series([1, 2, 3], index=[5, 6, 7], name="n"), pd.Series),
    ):
        counter = dpf.continual_count(4, mechanism=mechanism, counters=3, **budget)
        figures = counter.step(given)
        assert isinstance(figures, kind)
        assert len(figures) == 3
        if isinstance(figures, pl.Series):
            assert (figures.name, figures.dtype, figures.null_count()) == ("n", pl.Int64, 0)
        if isinstance(figures, pd.Series):
            assert figures.index.tolist() == [5, 6, 7]
        assert counter.released is None
    alone = dpf.continual_count(4, mechanism=mechanism, **budget)
    assert isinstance(alone.step(3), int)
    assert alone.released is None


def test_nulls_count_as_nothing():
    counter = dpf.continual_count(4, epsilon=1e6, counters=3)
    assert counter.step(pl.Series([1, None, 3])).to_list() == [1, 0, 3]
    assert counter.step([1, 1, 1]).tolist() == [2, 1, 4]


def test_rows_are_counted_and_added_up():
    """Histograms and bounded sums as streams."""
    counts = dpf.continual_count(4, epsilon=1e6, counters=3)
    assert counts.step_rows([0, 2, 2, 3, -1, 2**40]).tolist() == [1, 0, 2]
    assert counts.step_rows(pl.Series([1, None, 1])).tolist() == [1, 2, 2]
    assert counts.step_rows(np.empty(0, np.int64)).tolist() == [1, 2, 2]
    sums = dpf.continual_sum(4, (-2, 5), epsilon=1e6, counters=2)
    assert sums.step_rows([0, 1, 1, 0], [9, -9, 3, 1]).tolist() == [6, 1]
    with pytest.raises(ParameterError, match="values must be of 2"):
        sums.step_rows([0, 1], [1])
    assert sums.steps == 1


def test_what_is_wrong_is_refused_before_anything_happens():
    counter = dpf.continual_count(4, epsilon=1.0, counters=2)
    for given in (np.array([1.0, 2.0]), np.array([1.5, 2.5]), np.array(["a", "b"]), np.array([True, False])):
        with pytest.raises(ColumnError):
            counter.step(given)
    for given in ([1], [1, 2, 3], 5):
        with pytest.raises(ParameterError, match="increments must be of 2"):
            counter.step(given)
    with pytest.raises(ParameterError, match="single counter"):
        counter.run([1, 2])
    alone = dpf.continual_count(4, epsilon=1.0)
    with pytest.raises(BudgetExceededError, match="do not fit"):
        alone.run([1] * 5)
    assert counter.steps == alone.steps == 0
    with pytest.raises(ParameterError, match="mechanism must be one with Laplace"):
        dpf.continual_count(4, epsilon=1.0, mechanism="blt")
    with pytest.raises(ParameterError, match="step must be at most the horizon"):
        counter.error(5)


@pytest.mark.parametrize(("mechanism", "budget"), EACH)
def test_extreme_increments_saturate(mechanism, budget):
    counter = dpf.continual_count(3, mechanism=mechanism, counters=2, **budget)
    for _ in range(3):
        figures = counter.step([2**63 - 1, -(2**63)])
    top = 3 * counter.largest_increment
    assert top > 2**41
    reach = 1e-6 * top if mechanism in ("honaker", "square_root") else 1e3
    assert abs(int(figures[0]) - top) <= reach
    assert abs(int(figures[1]) + top) <= reach
    # What does not fit into 64 bits is clamped as well.
    other = dpf.continual_count(3, mechanism=mechanism, counters=1, **budget)
    other.step(2**63 - 1)


def test_user_level_costs_more_error():
    """Row 12-3: a unit in every step, against a unit in one."""
    event, user = (dpf.continual_count(64, rho=0.5, max_steps=most).error() for most in (1, 64))
    assert 5 < user / event < 64
    replaced = dpf.continual_count(64, rho=0.5, neighbors="replace").error()
    assert replaced == pytest.approx(math.sqrt(2) * event, rel=0.02)
    many = dpf.continual_count(64, rho=0.5, counters=100, max_counters=4).error()
    assert many == pytest.approx(2 * event, rel=0.02)


@pytest.mark.parametrize(("mechanism", "budget"), EACH)
def test_intervals_hold_the_truth(mechanism, budget):
    """95% intervals of 4,000 counters at three steps; false failure below 1e-6."""
    counter = dpf.continual_count(12, mechanism=mechanism, counters=4000, random=SeededRandom(4), **budget)
    for step in range(1, 12):
        figures = counter.step(np.full(4000, 7))
        if step in (1, 7, 11):
            inside = np.abs(figures - 7 * step) <= counter.half_width(step)
            assert inside.mean() > 0.95 - 5 * math.sqrt(0.05 * 0.95 / 4000)


def test_sums_of_wide_bounds():
    """Scales above 2**25: every mechanism but the pan-private one.

    A mean is 7 standard errors away with probability 3e-12; the deviation of 4,000 figures, of kurtosis 6 at most, is
    known to 2%, and a single one would have to be 70 scales of its noise away to change it by 30%.
    """
    for mechanism, budget in EACH:
        if mechanism == "pan_private":
            continue
        counter = dpf.continual_sum(20, (0, 2**33), mechanism=mechanism, counters=4000, **budget)
        for step in range(1, 4):
            figures = counter.step(np.full(4000, 2**34 + 1))
            expected = counter.error(step)
            assert abs(figures.mean() - step * (2**34 + 1)) < 7 * expected / math.sqrt(4000)
            assert 0.7 < figures.std() / expected < 1.3


@pytest.mark.parametrize("mechanism", ["tree", "blt"])
def test_a_million_counters_at_a_time(mechanism):
    counter = dpf.continual_count(1024, rho=0.5, mechanism=mechanism, counters=10**6)
    figures = counter.step(np.arange(10**6))
    assert abs((figures - np.arange(10**6)).std() / counter.error(1) - 1) < 0.01


def test_empty_steps_and_a_horizon_of_one():
    for mechanism, budget in EACH:
        counter = dpf.continual_count(1, mechanism=mechanism, **budget)
        assert abs(counter.step(0)) < 200
    assert dpf.continual_count(3, epsilon=1.0).run(np.empty(0, np.int64)).size == 0


def test_threads_from_outside():
    """Steps of several threads are taken one after the other: none is lost."""
    from concurrent.futures import ThreadPoolExecutor

    counter = dpf.continual_count(200, epsilon=1e6)
    with ThreadPoolExecutor(8) as pool:
        figures = sorted(pool.map(counter.step, itertools.repeat(1, 200)))
    assert figures == [*range(1, 201)]


def test_sums_of_rows_never_wrap():
    """Soundness rule 16: with 2**23 rows of 2**40 int64 would wrap, and one row more would move a figure by 2**62."""
    rows = 2**23
    for extra in (-1, 0, 1):
        many = rows + extra
        for sign in (1, -1):
            bounds = (0, 2**40) if sign > 0 else (-(2**40), 0)
            sums = sums_of_rows(np.zeros(many, np.int32), np.full(many, sign * 2**40), 1, bounds)
            assert sums[0] * sign >= 2**61
    exact = sums_of_rows(np.array([0, 1, 1, 0]), np.array([-5, 2**40, 2**40, 3]), 2, (-(2**40), 2**40))
    assert exact.tolist() == [-2, 2**41]


def test_sums_of_rows_are_those_of_whole_numbers(seed):
    generator = np.random.default_rng(seed)
    groups = generator.integers(-1, 4, 1000)
    values = generator.integers(-(2**41), 2**41, 1000)
    clipped = np.clip(values, -(2**40), 2**39).tolist()
    expected = [sum(v for g, v in zip(groups.tolist(), clipped, strict=True) if g == counter) for counter in range(3)]
    assert sums_of_rows(groups, values, 3, (-(2**40), 2**39)).tolist() == expected
