"""Rounds in turns, and the spread of what they measure."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from dpfast.bench.bends import told_bend
from dpfast.bench.cases import measured_in_turns
from dpfast.bench.rounds import in_turns, seconds_of
from dpfast.bench.spread import COVERAGE, false_alarm, rank_of, spread_of


def test_contestants_take_turns():
    order = []
    in_turns({name: lambda name=name: order.append(name) or 1.0 for name in "abc"}, 3)
    assert "".join(order) == "abcabcabc"


def test_one_that_raises_is_noted_and_the_rest_goes_on():
    failures = {}
    times = iter([1.0])
    found = in_turns({"a": lambda: next(times), "b": lambda: 2.0}, 3, failures=failures)
    assert found == {"a": [], "b": [2.0, 2.0, 2.0]}
    assert failures == {"a": "raised StopIteration"}
    with pytest.raises(ZeroDivisionError):
        in_turns({"a": lambda: 1 / 0}, 1)


def test_an_interrupt_is_no_failure():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_turns({"a": interrupted}, 1, failures={})


def test_one_that_raises_at_first_is_not_asked_again():
    calls = []
    [one] = measured_in_turns({"a": (lambda: calls.append(1) or 1 / 0, 10)}, 5)
    assert (len(calls), one.failure, one.figures) == (1, "raised", ())


def test_seconds_are_those_of_a_call():
    assert 0 <= seconds_of(lambda: None)() < 60


@pytest.mark.parametrize("rounds", [1, 2, 7, 8, 15, 31, 101])
def test_the_interval_covers_the_median_by_counting(rounds):
    """Below the interval's lower end lie fewer than k figures: both tails of a binomial, and k + 1 would miss more."""

    def miss(rank):
        return 2 * sum(math.comb(rounds, below) for below in range(rank)) / 2**rounds

    rank = rank_of(rounds)
    assert rank == 1 or miss(rank) <= 1 - COVERAGE
    assert miss(rank + 1) > 1 - COVERAGE
    figures = random.Random(rounds).sample(range(1000), rounds)
    found = spread_of(figures)
    assert (found.low, found.high) == (sorted(figures)[rank - 1], sorted(figures)[-rank])


@pytest.mark.parametrize(("old", "new"), [(3, 3), (5, 4), (7, 3)])
def test_false_alarms_are_counted_over_all_orders(old, new):
    """Every way to choose which of the ordered figures are new is equally likely, if nothing changed."""
    hits = total = 0
    for places in itertools.combinations(range(old + new), new):
        others = [place for place in range(old + new) if place not in places]
        hits += spread_of(places).low > spread_of(others).high
        total += 1
    assert false_alarm(old, new) == hits / total


def test_false_alarms_of_many_rounds_are_counted_by_simulation():
    """False-failure rate below 1e-9: of 20,000 pairs of 8 and 9 rounds a share of 1e-4 is called worse, 2 expected.

    A Poisson number of mean 2 is above 25 with a probability of 1e-18.
    """
    draw = random.Random(20_261_123)
    worse = sum(
        spread_of([draw.random() for _ in range(9)]).low > spread_of([draw.random() for _ in range(8)]).high
        for _ in range(20_000)
    )
    assert false_alarm(8, 9) < 1.3e-4
    assert worse <= 25


def test_where_a_cost_bends():
    assert told_bend({1_000: [1.0]}) == ""
    told = told_bend({10**3: [1e-5], 10**4: [2e-5], 10**5: [1e-4], 10**6: [2e-3]})
    assert told.startswith(
        "a call takes 10 us at least; a value 1 ns at 100,000, twice that from 10,000 down, 2.00 times"
    )
