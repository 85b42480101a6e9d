"""A value that subsamples agree on: constants, what one row changes, and privacy by enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.exact.amounts import budget_units
from dpfast.stability.instability import gap_instability
from dpfast.stability.passing import PassingTest
from dpfast.stability.release_if_subsamples_agree import _Subsamples
from dpfast.stability.rows import Loaded
from dpfast.testing import SeededRandom

from . import functions
from .laws import excess

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def test_constants_of_the_reference():
    """Row 7-14: q and the number of runs, 21.6 million of them."""
    found = dpf.stability.subsampling_constants(1.0, 1e-6, 10**6)
    assert found.rate == pytest.approx(0.00113098, abs=5e-9)
    assert found.subsamples == 21_601_841


def test_constants_of_the_lemma():
    """Row 7-15: with a gap of m / 4 the distance is 4 ln(1/delta) / epsilon - 1, enough where that is above 1/2."""
    epsilon, delta, n = 1.0, 1e-6, 10**6
    found = dpf.stability.subsampling_constants(epsilon, delta, n)
    q, m, log = found.rate, found.subsamples, math.log(1 / delta)
    assert 1 / (16 * q) - 1 == pytest.approx(4 * log / epsilon - 1)
    assert 1 / (16 * q) - 1 == pytest.approx(54.262, abs=5e-4)
    assert 2 * log / epsilon == pytest.approx(27.631, abs=5e-4)
    # E: no row is in more than 2 m q subsamples (Chernoff), and the gap is as large with all but delta.
    assert n * math.exp(-m * q / 3) <= delta
    assert math.exp(-m / 32) < delta
    for ratio in (0.4, 0.6):
        assert (4 * ratio - 1 > 2 * ratio) is (ratio > 0.5)


def test_far_fewer_runs_do():
    """Rows 7-11 and 7-14: a function that three quarters of the subsamples agree on is shown from 60 blocks or so."""
    chance = PassingTest("optimal", budget_units(1.0, "epsilon"), budget_units(1e-6, "delta")).probability
    blocks = 4 * (next(far for far in range(99) if chance(far) >= 0.95) + 1)
    assert blocks < 100
    lead = math.ceil(0.75 * blocks) - math.floor(0.25 * blocks)
    assert chance(gap_instability(lead, 0, 2)) >= 0.95


def subsample_law(answers, changed, chance_of):
    votes = Counter(answers)
    first = min(votes, key=lambda one: (-votes[one], one))
    most = votes.pop(first)
    p = chance_of(gap_instability(most, max(votes.values(), default=0), 2 * changed))
    return {first: p, "none": 1 - p}


@pytest.mark.parametrize("changed", [1, 2])
def test_private_whatever_answers_change(changed):
    """Row 7-14: all answers of 6 subsamples from 3 values, and all changes of as many as a row is in."""
    epsilon, delta = 0.5, 0.01
    chance = PassingTest("optimal", budget_units(epsilon, "epsilon"), budget_units(delta, "delta")).probability

    def worst(distance_changed):
        found = 0.0
        for answers in itertools.combinations_with_replacement("abc", 6):
            own = subsample_law(answers, distance_changed, chance)
            for places in itertools.combinations(range(6), changed):
                for new in itertools.product("abc", repeat=changed):
                    other = list(answers)
                    for place, one in zip(places, new, strict=True):
                        other[place] = one
                    found = max(found, excess(own, subsample_law(other, distance_changed, chance), epsilon))
        return found

    assert worst(changed) <= delta * (1 + 1e-9)
    if changed == 2:
        assert worst(1) > 1.2 * delta  # as if each row were in one only


def test_a_row_is_in_no_more_subsamples_than_it_may():
    """Row 7-14, erratum E24: each row independently with probability q, and left out beyond 2 m q."""
    drawn = _Subsamples(Loaded(500, lambda rows: rows), Fraction(1, 5), 12, SeededRandom(1))
    sizes = np.zeros(500, int)
    for place in range(40):
        rows = drawn.rows(place)
        assert (np.diff(rows) > 0).all()
        sizes[rows] += 1
    assert sizes.max() == 12
    assert sizes.min() < 8
    few, more = (_Subsamples(Loaded(n, lambda rows: rows), Fraction(1, 5), 12, SeededRandom(1)) for n in (500, 501))
    assert all(few.rows(k).tolist() == [row for row in more.rows(k).tolist() if row < 500] for k in range(20))


@pytest.mark.statistical
def test_subsamples_have_their_rate(seed):
    """100 subsamples of 2,000 rows at 0.1, in all within 6.5 standard deviations: all but 8.2e-11 of runs pass."""
    drawn = _Subsamples(Loaded(2000, lambda rows: rows), Fraction(1, 10), 10**6, SeededRandom(seed))
    total = sum(drawn.rows(place).size for place in range(100))
    assert abs(total - 20_000) < 6.5 * math.sqrt(18_000)


def largest_column(rows):
    return int(np.asarray(rows).sum(axis=0).argmax())


@pytest.mark.parametrize(
    "form", [{}, {"blocks": 80, "repeats": 3}, {"subsamples": 300, "rate": 0.01}, {"subsamples": 200, "rate": 0.005}]
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_what_all_agree_on_is_released(form, neighbors):
    """Row 7-14."""
    votes = np.tile([3, 9, 4], (5000, 1))
    found = dpf.release_if_subsamples_agree(
        votes, largest_column, **BUDGET, **form, neighbors=neighbors, workers=0, random=SeededRandom(1)
    )
    assert found.value == 1
    split = dpf.release_if_subsamples_agree(
        np.arange(4000), functions.first, **BUDGET, **form, neighbors=neighbors, workers=0, random=SeededRandom(1)
    )
    assert split.value is None


def test_constants_of_the_book_run():
    """Row 7-14: with a large epsilon, so that there are few enough runs to wait for."""
    found = dpf.release_if_subsamples_agree(
        np.full(200, 7), functions.first, epsilon=4.0, delta=0.1, constants="book", neighbors="replace", workers=0
    )
    assert found.value == 7
    assert "subsamples of rate 0.0271" in found.explain()
    with pytest.raises(ParameterError, match='neighbors="replace"'):
        dpf.release_if_subsamples_agree([1], functions.first, **BUDGET, constants="book")


def test_units_and_edges():
    frame = pl.DataFrame({"who": [k // 5 for k in range(2000)], "x": [1] * 2000})
    for form in ({"blocks": 90}, {"subsamples": 150, "rate": 0.01}):
        found = dpf.release_if_subsamples_agree(
            frame, lambda rows: rows.height % 5, **BUDGET, **form, unit="who", workers=0, random=SeededRandom(2)
        )
        assert found.value == 0
        for data in ([], [1], pl.DataFrame({"who": []}, schema={"who": pl.String})):
            # One row alone is shown with a probability of delta.
            rarely = {**BUDGET, "delta": 1e-12}
            empty = dpf.release_if_subsamples_agree(data, functions.first, **rarely, **form, workers=0)
            assert empty.value is None


def panel_of(rows):
    """Return the verdict of most of three analysts, each of whom looks at the rows in a way of their own."""
    verdicts = [np.mean(rows) > 0.5, np.median(rows) > 0.5, (rows > 0.5).mean() > 0.5]
    return bool(sum(verdicts) >= 2)


def test_example_of_the_raw_data_problem():
    """Row 7-16, example 7.3: analysts with the raw data vote on a method; what it finds is computed anew, privately.

    A point beyond the means of all 200 blocks has the weight e**-50 in the exponential mechanism, those within 9e-4, as
    there are 4,480 means to a unit in the middle: false failure below 1e-18.
    """
    data = np.random.default_rng(4).beta(4, 2, 20_000)
    ledger = dpf.Ledger(epsilon=2.0, delta=1e-6)
    verdict = dpf.release_if_subsamples_agree(data, panel_of, **BUDGET, ledger=ledger, workers=0)
    assert verdict.value is True
    found = dpf.subsample_and_aggregate(
        data, functions.mean, blocks=200, bounds=(0, 1), epsilon=1.0, ledger=ledger, workers=0
    )
    assert abs(found.value - 2 / 3) < 0.2
    assert ledger.remaining.epsilon == 0


def test_too_little_epsilon_is_refused_before_the_charge():
    ledger = dpf.Ledger(epsilon=1, delta=1e-3)
    for epsilon, test in ((1e-5, "laplace"), (1e-9, "optimal")):
        with pytest.raises(ParameterError, match="epsilon must be larger"):
            dpf.release_if_subsamples_agree(
                [1], functions.first, epsilon=epsilon, delta=1e-6, test=test, workers=0, ledger=ledger
            )
    assert ledger.history().is_empty()
