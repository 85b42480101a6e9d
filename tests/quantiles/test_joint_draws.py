"""Joint quantiles as they are drawn: the fast path against ball arithmetic, frequencies, words, and edges."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numba
import numpy as np
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.columns.ranks import PARTS
from dpfast.kernels import wide_floats
from dpfast.mechanisms.quantiles import joint as joint_quantiles
from dpfast.mechanisms.quantiles import quantiles as quantiles_module
from dpfast.mechanisms.quantiles.joint import draw_joint_quantiles, joint_calibration
from dpfast.testing import SeededRandom

from .joint_oracles import law_of_counts, law_of_points
from .test_draws import ChosenWords, grouped, words_read

FOUR = [0.2, 0.4, 0.6, 0.8]
SETS = {"four": FOUR, "ends": [0.0, 0.1, 0.9, 1.0], "seven": [0.05, 0.1, 0.11, 0.5, 0.75, 0.9, 0.99]}


def calibrated(quantiles, epsilon=Fraction(1)):
    units = int(epsilon * 10**18)
    return joint_calibration([round(q * PARTS) for q in quantiles], units, 1, "add_remove", alone=True)


@pytest.fixture
def refined(monkeypatch):
    """Return a list that grows by one for every group that ball arithmetic decides."""
    seen = []
    exact = joint_quantiles.exact_blocks

    def spy(*arguments):
        seen.append(arguments)
        return exact(*arguments)

    monkeypatch.setattr(joint_quantiles, "exact_blocks", spy)
    return seen


def shapes(generator, points):
    """Return groups of values of every shape: empty, one, few, tied, spread, at the ends."""
    anywhere = generator.integers(1, points + 1, 120)
    return [
        [],
        [1],
        [points],
        [1, points],
        [points // 2 + 1] * 9,
        generator.integers(1, points + 1, 7),
        generator.integers(1, min(points, 4) + 1, 100),
        np.clip(np.rint(generator.normal(points / 3, points / 50, 90)), 1, points),
        np.where(anywhere % 3 == 0, points // 2, anywhere),
        np.full(60, 1),
        np.repeat([1, points // 3 + 1, points], [20, 15, 25]),
    ]


@pytest.mark.parametrize("points", [2, 661, 2**33, 2**60 + 5])
@pytest.mark.parametrize("quantiles", SETS.values(), ids=SETS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(20)])
def test_fast_and_exact_paths_agree_sample_by_sample(refined, points, quantiles, epsilon, seed):
    """Soundness rules 4, 5 and 8: the same words give the same points where every group goes to ball arithmetic.

    A group is in doubt with a probability below 1e-6, and two of 11 groups are with one below 1e-10.
    """
    lists = shapes(np.random.default_rng(seed), points)
    dtype = np.int32 if points < 2**31 else np.int64
    drawn = []
    for refine_all in (False, True):
        data = grouped(lists, dtype)
        arguments = (points, calibrated(quantiles, epsilon), SeededRandom(seed))
        drawn.append(draw_joint_quantiles(data, *arguments, refine_all=refine_all))
        if not refine_all:
            assert len(refined) <= 1
            refined.clear()
    assert np.array_equal(*drawn)
    assert len(refined) == len(lists)
    assert drawn[0].min() >= 1
    assert drawn[0].max() <= points
    assert (np.diff(drawn[0], axis=1) >= 0).all(), "quantiles rise"


@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1, 4)])
@pytest.mark.parametrize("quantiles", SETS.values(), ids=SETS)
def test_few_values_and_far_numbers_of_rows(refined, quantiles, epsilon, seed):
    """Groups of up to 8 values where noise makes them hundreds: all that is wanted lies beyond the values.

    Two of the 60 groups are in doubt of themselves with a probability below 1e-10.
    """
    generator = np.random.default_rng(seed)
    lists = [generator.integers(1, 40, int(generator.integers(0, 9))) for _ in range(60)]
    drawn = [
        draw_joint_quantiles(grouped(lists), 40, calibrated(quantiles, epsilon), SeededRandom(seed), refine_all=all_)
        for all_ in (False, True)
    ]
    assert np.array_equal(*drawn)
    assert len(refined) - len(lists) in (0, 1)


@pytest.mark.parametrize("kind", ["spread", "tied", "narrow"])
def test_windows_of_large_groups_change_nothing(refined, kind, seed):
    """At a steep slope only few of 1,200 ranks are looked at; more than 2**16 equal values share cells."""
    generator, points = np.random.default_rng(seed), 2**60
    values = {
        "spread": generator.integers(1, points, 1200),
        "tied": np.concatenate([np.full(70_000, 5), generator.integers(1, points, 1200)]),
        "narrow": generator.integers(2**40, 2**40 + 10**7, 1200),
    }[kind]
    drawn = [
        draw_joint_quantiles(
            grouped([values], np.int64), points, calibrated(FOUR, Fraction(32)), source, refine_all=all_
        )
        for source, all_ in ((SeededRandom(seed), False), (SeededRandom(seed), True))
    ]
    assert np.array_equal(*drawn)
    assert len(refined) in (1, 2)  # the group is hardly ever in doubt of itself


@pytest.mark.parametrize("refine_all", [False, True])
def test_a_word_at_a_boundary_reads_on(refined, refine_all):
    """Soundness rule 2: at U = 1/2 between two equal blocks the next bits decide, as deep as they are equal."""
    # One value in the middle of three points, its cell in the middle of that: two blocks of equal weight.
    calibration = calibrated([0.5])
    for bit, expected in ((0, 1), (1, 3)):
        words = [2**63 - 1 if bit == 0 else 2**63, 0, 2**62, 0] if bit == 0 else [2**63, 0, 2**63 + 2**62, 0]
        extension = {0: (2**1024 - 1) ^ (1 << 100) if bit == 0 else 1 << 100}
        keystream = ChosenWords(words, extension)
        data, counts = grouped([[2]]), np.array([1])
        drawn = joint_quantiles._draw(data, 3, calibration, counts, keystream, refine_all)
        assert drawn[0, 0] == expected
        assert max(depth for _, depth in keystream.read) >= 6
    assert len(refined) == 2


def test_a_place_at_a_boundary_reads_on():
    """V next to a third of three equal points: 128 bits leave it open, the 129th and later ones decide."""
    third = (2**128 - 1) // 3
    for word, extension, expected in ((third, 0, 1), (third, 2**1024 - 1, 2), (third + 1, 0, 2)):
        keystream = ChosenWords([12345, 0, word >> 64, word % 2**64], {2: extension})
        drawn = joint_quantiles._draw(grouped([[]]), 3, calibrated([0.5]), np.array([0]), keystream, False)
        assert drawn[0, 0] == expected


@pytest.mark.statistical
@pytest.mark.parametrize("refine_all", [False, True])
@pytest.mark.parametrize("values", [[], [2], [1, 1, 4], [2, 2, 2, 2, 4, 4]], ids=len)
def test_frequencies(values, refine_all):
    """Every outcome of four quantiles of four points, over all numbers of rows. False-failure rate 1e-12."""
    points, most = 4, 60
    draws = 200 if refine_all else 15_000
    calibration = calibrated(FOUR, Fraction(3))
    data = grouped([values] * draws)
    drawn = draw_joint_quantiles(data, points, calibration, SeededRandom(len(values)), refine_all=refine_all)
    shares = calibration.shares[0].tolist()
    expected: dict[tuple, float] = {}
    for t, chance in enumerate(law_of_counts(len(values), calibration.count_scale, most)):
        for outcome, p in law_of_points(values, points, t, shares, calibration.slope, 2**16).items():
            expected[outcome] = expected.get(outcome, 0) + chance * p
    assert sum(expected.values()) == pytest.approx(1, abs=1e-6)
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    happened = {tuple(outcome): int(count) for outcome, count in zip(found.tolist(), counts, strict=True)}
    assert set(happened) <= set(expected)
    assert not rejects([(str(outcome), happened.get(outcome, 0), draws, p) for outcome, p in expected.items()])


def test_words_do_not_depend_on_the_values(monkeypatch):
    """Four words a quantile and group, whatever is in the groups: the calls to the keystream are the same."""
    seen = words_read(monkeypatch, joint_quantiles, FOUR)
    assert seen == {((0, 5 * 16, np.dtype(np.uint64)),)}


def test_results_do_not_depend_on_order_or_threads(monkeypatch, seed):
    """A group's points are a set: the order of rows and the number of threads change nothing."""
    generator = np.random.default_rng(seed)
    values, ids = generator.normal(0, 50, 600_000), generator.integers(0, 40, 600_000)
    order = generator.permutation(600_000)
    results = []
    for column, groups, threads in ((values, ids, None), (values[order], ids[order], 1)):
        if threads:
            for module in (joint_quantiles, quantiles_module):
                monkeypatch.setattr(module, "thread_count", lambda given, rows: 1)
        parameters = {"bounds": (-90, 200), "epsilon": 2, "groups": groups, "group_count": 40}
        results.append(dpf.quantiles(column, FOUR, **parameters, random=SeededRandom(seed)))
    assert np.array_equal(*results)


EDGES = {
    "empty": np.empty(0),
    "null": np.full(7, np.nan),
    "infinite": np.array([-np.inf, np.inf] * 3),
    "one": np.array([4.0]),
    "fewer rows than quantiles": np.array([1.0, 2.0]),
    "far": np.array([-1e300, 1e300, 5e-324]),
    "tied": np.full(1000, 3.0),
}


@pytest.mark.parametrize("values", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("bounds", [(0, 10), (-1e300, 1e300), (1.0, 1.0000001)])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_edges(values, bounds, relation):
    for rows in (1, 7):
        drawn = dpf.quantiles(
            values, [0.9, *FOUR], bounds=bounds, epsilon=1, neighbors=relation, max_rows_per_group=rows
        )
        assert drawn.shape == (5,)
        assert (np.diff(np.sort(drawn)) == np.diff(drawn[[1, 2, 3, 4, 0]])).all()
        assert drawn.min() >= bounds[0] - 1e-9
        assert drawn.max() <= bounds[1] + 1e-9


def test_whole_numbers_and_no_groups():
    far = dpf.quantiles(np.array([2**62, -(2**62)]), FOUR, bounds=(-(2**62), 2**62), epsilon=1)
    assert far.dtype == np.int64
    nothing = np.empty(0, np.int64)
    assert dpf.quantiles(nothing, FOUR, bounds=(0, 9), epsilon=1, groups=nothing, group_count=0).shape == (0, 4)
    narrow = dpf.quantiles([5, 5, 5, 7] * 1000, FOUR, bounds=(0, 1000), epsilon=10)
    assert narrow.tolist() == [5, 5, 5, 7]


@pytest.mark.statistical
def test_errors_are_far_below_those_by_halves(monkeypatch):
    """Deciles of 1,000 values, 300 groups: 3.7 ranks, and 5.5 by halves; a mean's deviation is below 0.1.

    False-failure rate below 1e-12.
    """
    size, groups = 1000, 300
    values, ids = np.tile(np.arange(float(size)), groups), np.repeat(np.arange(groups), size)
    deciles = [k / 10 for k in range(1, 10)]
    errors = []
    for least in (4, 100):
        monkeypatch.setattr(joint_quantiles, "FEWEST", least)
        drawn = dpf.quantiles(values, deciles, bounds=(0, size), epsilon=1, groups=ids, group_count=groups)
        errors.append(np.abs(drawn - np.asarray(deciles) * size).mean())
    print("mean errors in ranks", errors)
    assert errors[0] < 0.85 * errors[1]


@numba.njit
def _decays(slopes, distances):
    mantissas, exponents = np.empty(slopes.size), np.empty(slopes.size, np.int64)
    for i in range(slopes.size):
        mantissas[i], exponents[i] = wide_floats.wide_decay(slopes[i], distances[i])
    return mantissas, exponents


def test_wide_exponentials_are_within_79_roundings(seed):
    """wide_floats.py: exp(-x) for x from 0 to 8192, x a rounded product, and 0 beyond."""
    generator = np.random.default_rng(seed)
    distances = np.concatenate([[0, 1, 8192, 8193, 2**40], generator.integers(0, 10**7, 3000)])
    slopes = np.concatenate([[1.0, 1e-300, 1.0, 1.0, 2.0**-27], generator.uniform(0, 1e-3, 3000)])
    mantissas, exponents = _decays(slopes, distances)
    worst = 0.0
    with mpmath.workprec(300):
        for slope, distance, m, e in zip(slopes, distances.tolist(), mantissas, exponents.tolist(), strict=True):
            x = float(slope) * float(distance)
            if x > wide_floats.LARGEST_DECAY:
                assert m == 0
                continue
            assert 1 <= m < 2
            exact = mpmath.exp(-mpmath.mpf(x))
            worst = max(worst, float(abs(mpmath.ldexp(mpmath.mpf(float(m)), e) - exact) / exact) * 2**53)
    print(f"worst error {worst:.2f} u")
    assert worst < 79


def test_the_order_of_the_values_does_not_matter():
    """Long groups are sorted by NumPy, others by the kernel: sizes on both sides of the border, every order."""
    generator = np.random.default_rng(5)
    for size in (3, 63, 64, 65, 66, 1000):
        values = generator.normal(0.0, 1.0, size)
        drawn = [
            dpf.quantiles(order, FOUR, bounds=(-5, 5), epsilon=1.0, random=SeededRandom(6)).tolist()
            for order in (values, np.sort(values), np.sort(values)[::-1], generator.permutation(values))
        ]
        assert drawn.count(drawn[0]) == len(drawn), size


def test_very_many_equal_values_need_no_balls(refined):
    """A cell holds 15 of a million zeros, so that every output is far from what is wanted: wider windows decide."""
    values = np.concatenate([np.zeros(10**6, np.int32), np.arange(10**6, dtype=np.int32) % 1000])
    nine = [k / 10 for k in range(1, 10)]
    drawn = dpf.quantiles(values, nine, bounds=(0, 1000), epsilon=40.0, random=SeededRandom(1))
    assert not refined
    assert drawn[:4].tolist() == [0, 0, 0, 0]
    assert (np.diff(drawn[5:]) > 100).all()
