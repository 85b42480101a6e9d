"""Which keys are shown: the optimal rule, exactly, and nothing said of the rest (Soundness rules 3 and 18)."""

from __future__ import annotations

import re
from fractions import Fraction
from importlib import import_module
from itertools import pairwise

import mpmath
import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.mechanisms.keys import optimal as key_selection
from dpfast.mechanisms.keys.optimal import SelectionTable, select_keys, selection_table
from dpfast.randomness import SystemRandom, Words

from . import oracles

DRAWING = import_module("dpfast.releases.drawing")

GOLDENS = {1: 1e-5, 2: 3.718e-5, 5: 8.5791e-4, 11: 0.34844774, 12: 0.760311, 13: 0.91182702, 20: 0.99992541, 23: 1.0}
CASES = [
    (Fraction(1), Fraction(1, 100_000)),
    (Fraction(1, 10), Fraction(1, 10**10)),
    (Fraction(1, 7), Fraction(1, 3)),
    (Fraction(5), Fraction(1, 2)),
    (Fraction(1, 100), Fraction(1, 10**6)),
    (Fraction(30), Fraction(1, 10**18)),
    (Fraction(1, 2), Fraction(1, 10**21)),
    (Fraction(3), Fraction(1, 2**10)),
]


def floors_of(epsilon, delta):
    """Return the independent table and its floors at 64 bits."""
    with mpmath.workdps(120):
        table = oracles.selection_probabilities(epsilon, delta)
        return table, [int(mpmath.floor(p * 2**64)) for p in table if p < 1]


def test_golden_table():
    thresholds = selection_table(Fraction(1), Fraction(1, 100_000)).thresholds
    for n, p in GOLDENS.items():
        got = 1.0 if n >= len(thresholds) else int(thresholds[n]) / 2**64
        assert got == pytest.approx(p, rel=1e-4 if p < 1e-3 else 1e-7)
    assert len(thresholds) == 23


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_thresholds_are_floors_at_64_bits(epsilon, delta):
    """Soundness rule 18: compared in certified arithmetic, so every threshold is the exact floor."""
    assert SelectionTable(epsilon, delta).thresholds.tolist() == floors_of(epsilon, delta)[1]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_table_is_private_and_nothing_higher_is(epsilon, delta):
    """Soundness rule 18: both directions of (epsilon, delta) for shown and not shown; each p_n is at its limit."""
    thresholds = [*(Fraction(int(t), 2**64) for t in SelectionTable(epsilon, delta).thresholds), Fraction(1)]
    table, floors = floors_of(epsilon, delta)
    assert len(thresholds) == len(table) == len(floors) + 1
    with mpmath.workdps(120):
        growth, d = mpmath.exp(oracles.exact(epsilon)), oracles.exact(delta)
        tiny, word = mpmath.mpf(10) ** -100, mpmath.mpf(2) ** -64
        for n, (p, q) in enumerate(pairwise(table)):
            slacks = [growth * p + d - q, growth * (1 - q) + d - (1 - p)]
            assert min(slacks) >= -tiny
            assert q + d - p >= 0
            assert abs(min(*slacks, 1 - q)) <= tiny, n
            # And what dpfast compares with lies less than one word below p_n.
            assert 0 <= table[n] - oracles.exact(thresholds[n]) < word


class GivenWords:
    """Replaces the words that a call draws, leaving their continuations to the keystream."""

    def __init__(self, monkeypatch, words):
        def fill(_, chunk, buffer):
            start = chunk << 16
            buffer[:] = words[start : start + len(buffer)]

        monkeypatch.setattr(Words, "fill", fill)


def test_a_word_below_its_threshold_shows_the_key_and_one_above_does_not(monkeypatch):
    table = selection_table(Fraction(1), Fraction(1, 100_000))
    counts = np.arange(1, 40)
    thresholds = [int(table.thresholds[n]) if n < len(table.thresholds) else None for n in counts]
    for move, expected in ((-1, True), (1, False)):
        GivenWords(monkeypatch, np.array([0 if t is None else t + move for t in thresholds], np.uint64))
        shown = select_keys(counts, table, SystemRandom())
        assert shown.tolist() == [expected or t is None for t in thresholds]


def test_equal_words_are_decided_by_their_further_bits(monkeypatch):
    """Soundness rules 2 and 18: U < p_n is decided by the bits that follow, and those agree with the oracle's."""
    epsilon, delta = Fraction(1), Fraction(1, 100_000)
    table = selection_table(epsilon, delta)
    counts = np.tile(np.arange(1, 23), 200)
    GivenWords(monkeypatch, table.thresholds[counts])
    seen = {}

    class Tail(key_selection.Tail):
        def __init__(self, keystream, word, leading, known):
            super().__init__(keystream, word, leading, known)
            seen[word] = self

    monkeypatch.setattr(key_selection, "Tail", Tail)
    shown = select_keys(counts, table, SystemRandom())
    assert len(seen) == len(counts)
    with mpmath.workdps(200):
        p = oracles.selection_probabilities(epsilon, delta)
        for row, n in enumerate(counts.tolist()):
            bits = seen[row].leading(192)
            assert bits >> 128 == int(table.thresholds[n])
            assert bool(shown[row]) == (bits < p[n] * 2**192)
    assert 0 < shown.sum() < len(shown)


def test_equality_may_last_for_hundreds_of_bits():
    """Soundness rule 2: there is no cap on the depth."""
    epsilon, delta = Fraction(1), Fraction(1, 100_000)
    table = selection_table(epsilon, delta)
    with mpmath.workdps(400):
        p = oracles.selection_probabilities(epsilon, delta)[7]
        agreeing = int(mpmath.floor(p * 2**640))

    class Bits:
        known = 64

        def __init__(self, value):
            self.value = value

        def leading(self, count):
            assert count <= 640
            return self.value >> (640 - count)

    assert table.shows(7, Bits(agreeing - 1))
    assert not table.shows(7, Bits(agreeing + 1))


def test_keys_of_no_unit_are_never_shown(monkeypatch):
    """Soundness rule 18: p_0 = 0, even for a word of zeros."""
    table = selection_table(Fraction(10), Fraction(1, 3))
    assert not select_keys(np.zeros(100_000, np.int64), table, SystemRandom()).any()
    GivenWords(monkeypatch, np.zeros(50, np.uint64))
    assert not select_keys(np.zeros(50, np.int64), table, SystemRandom()).any()


def test_counts_beyond_the_table_are_always_shown(monkeypatch):
    table = selection_table(Fraction(1), Fraction(1, 100_000))
    GivenWords(monkeypatch, np.full(3, 2**64 - 1, np.uint64))
    assert select_keys(np.array([23, 24, 2**40]), table, SystemRandom()).all()


@pytest.mark.statistical
def test_frequencies_are_the_tables():
    """Chi-square over 12 counts of 200,000 keys each; false-failure rate 1e-12."""
    table = selection_table(Fraction(1), Fraction(1, 1000))
    with mpmath.workdps(50):
        p = [float(x) for x in oracles.selection_probabilities(Fraction(1), Fraction(1, 1000))]
    counts, repeats = np.arange(1, 13), 200_000
    shown = select_keys(np.repeat(counts, repeats), table, SystemRandom()).reshape(-1, repeats).sum(axis=1)
    observed = np.concatenate([shown, repeats - shown])
    expected = repeats * np.array([p[n] for n in counts] + [1 - p[n] for n in counts])
    # One free cell a count: the statistic over both cells has as many degrees of freedom as counts, not twice.
    statistic = ((observed - expected) ** 2 / expected)[np.tile([0 < p[n] < 1 for n in counts], 2)].sum()
    degrees = sum(0 < p[n] < 1 for n in counts)
    assert oracles.chi2.sf(statistic, degrees) > oracles.ALPHA
    # The test is sharp enough to reject a table with one p_n wrong by a twentieth.
    place = int(np.argmin([abs(p[n] - 0.5) for n in counts]))
    wrong = p[counts[place]] * 1.05
    off = shown[place] - repeats * wrong
    assert oracles.chi2.sf(off**2 / (repeats * wrong * (1 - wrong)), degrees) < oracles.ALPHA


FRAME = pl.DataFrame({"k": ["shown"] * 400 + ["lonely"], "u": range(401), "v": [1.0] * 401})


@pytest.mark.parametrize(("neighbors", "factor"), [("add_remove", 1), ("replace", 2)])
@pytest.mark.parametrize("max_groups", [None, 1, 7])
def test_each_key_gets_its_share(neighbors, factor, max_groups):
    """Soundness rule 18: the table is at (epsilon_k / kappa, delta_k / kappa), kappa doubled under replace."""
    unit = {} if max_groups is None else {"privacy_unit": "u", "max_groups": max_groups, "max_rows_per_group": 3}
    plan = dpf.plan(
        FRAME, "k", n=dpf.count(), neighbors=neighbors, mechanism="laplace", epsilon=0.6, delta=1e-5,
        key_selection="optimal", **{"privacy_unit": "row", **unit},
    )  # fmt: skip
    share = plan._blueprint.key_share
    kappa = (max_groups or 1) * factor
    # Values cost extra: one query and the selection halve epsilon; delta is the selection's, the noise being Laplace.
    assert share.epsilon_units == 3 * 10**17
    assert share.rule.table.epsilon == Fraction(3, 10) / kappa
    assert share.rule.table.delta == Fraction(1, 10**5) / kappa
    assert plan._blueprint.epsilon_units == 6 * 10**17
    parts = [part for planned in plan._blueprint.queries for part in planned.parts]
    assert sum(part.epsilon_units for part in parts) + share.epsilon_units <= 6 * 10**17


def test_units_are_counted_not_rows(monkeypatch):
    """Soundness rule 18: n is the number of distinct units after bounding, whatever the number of rows."""
    given = []
    monkeypatch.setattr(
        DRAWING,
        "select_keys",
        lambda units, table, source: given.append(sorted(units.tolist())) or np.ones(len(units), bool),
    )
    frame = pl.DataFrame({"k": ["a"] * 900 + ["b"] * 3, "u": [1] * 500 + [2] * 400 + [1, 2, 3]})
    for max_groups, expected in ((2, [2, 3]), (1, None)):
        plan = dpf.plan(
            frame, "k", n=dpf.count(), privacy_unit="u", max_groups=max_groups, max_rows_per_group=5,
            epsilon=1, delta=1e-5, key_selection="optimal",
        )  # fmt: skip
        plan.run(dpf.Ledger(epsilon=1, delta=1e-5))
        counted = given.pop()
        assert sum(counted) == (5 if expected else 3)
        assert expected is None or counted == expected


def test_the_number_of_rejected_keys_is_never_told(monkeypatch, capfd):
    """Soundness rules 3 and 18: no text of plan, release, error or progress changes with the rejected keys."""
    texts = []
    for rejected in (0, 1, 777):
        names = ["shown"] * 400 + [f"rejected{i}" for i in range(rejected)]
        monkeypatch.setattr(DRAWING, "select_keys", lambda units, table, source: units >= 400)
        plan = dpf.plan(
            pl.DataFrame({"k": names}),
            "k",
            n=dpf.count(),
            privacy_unit="row",
            epsilon=1,
            delta=1e-9,
            mechanism="laplace",
        )
        said = [plan.explain(), repr(plan.epsilon), repr(plan.delta)]
        ledger = dpf.Ledger(epsilon=1, delta=1e-9)
        release = plan.run(ledger, progress=said.append)
        said += [
            release.explain(),
            re.sub(r"-?\d+", "#", repr(release)),
            str(ledger.history()["description"].to_list()),
        ]
        with pytest.raises(BudgetExceededError) as error:
            dpf.plan(pl.DataFrame({"k": names}), "k", n=dpf.count(), privacy_unit="row", epsilon=1, delta=1e-9).run(
                ledger
            )
        said.append(str(error.value))
        assert release.frame.height == 1
        texts.append(said)
    assert texts[0] == texts[1] == texts[2]
    captured = capfd.readouterr()
    assert not captured.out
    assert not captured.err


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"delta": 0.0}, "delta"),
        ({}, "delta"),
        ({"delta": 0.0, "key_selection": "optimal"}, "delta"),
        ({"epsilon": 1e-7, "delta": 1e-9, "key_selection": "optimal"}, "epsilon"),
        ({"delta": 1e-9, "key_selection": "best"}, "key_selection"),
        ({"delta": 1e-9, "key_selection": None}, "key_selection"),
        ({"delta": 1e-9, "key_selection": "weighted", "keys": pl.DataFrame({"k": ["a"]})}, "key_selection"),
    ],
)
def test_what_cannot_select_keys_is_refused(arguments, argument):
    with pytest.raises(ParameterError, match=rf"^{argument} "):
        dpf.plan(FRAME, "k", n=dpf.count(), **{"privacy_unit": "row", "epsilon": 1.0, **arguments})


@pytest.mark.parametrize("epsilon", [1e6, 5000.0])
def test_huge_epsilons_give_a_table(epsilon):
    """1 - p_2 is about e**-epsilon: the floor at 64 bits is certified all the same."""
    table = selection_table(Fraction(epsilon), Fraction(1, 10**6))
    assert table.thresholds.tolist() == [0, 2**64 // 10**6, 2**64 - 1]
