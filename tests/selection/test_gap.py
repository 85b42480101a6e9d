"""Noisy max with the gap: exact densities, the certified grid, and what the winner's own noisy score would leak."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from noise.goodness import rejects

import dpfast as dpf
from dpfast.auditing import lower_limit, upper_limit
from dpfast.errors import DataError, DpfastError
from dpfast.kernels.selection.argmax import EXPONENTIAL
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.noisy_max_with_gap import gap_steps
from dpfast.mechanisms.selection.ranking import rank_rows
from dpfast.randomness import Keystream
from dpfast.testing import SeededRandom

from .oracles import REST, ChosenKeystream, noise_of


def tail_of_gap(q, i, g):
    """Return the probability that candidate i wins by a gap above g, scores q in units of the noise, exactly.

    The winner's noise N has the density exp(-N), and each of the others is below q[i] + N - g with probability
    1 - exp(q[j] + g - q[i] - N). From where all of these are above 0, their product is a sum of exponentials. The
    result has 200 bits, so that differences of nearly equal ones are close as well.
    """
    with mpmath.workprec(200):
        q = [mpmath.mpf(float(x)) for x in q]
        lags = [x + mpmath.mpf(g) - q[i] for k, x in enumerate(q) if k != i]
        start = max(mpmath.mpf(0), *lags)
        tail = mpmath.mpf(0)
        for chosen in itertools.product((0, 1), repeat=len(lags)):
            some = sum(chosen)
            power = sum((lag for lag, one in zip(lags, chosen, strict=True) if one), mpmath.mpf(0))
            tail += (-1) ** some * mpmath.exp(power - (1 + some) * start) / (1 + some)
        return tail


SCORES = [0.0, 2.0, 3.5, 3.5]


@pytest.mark.parametrize("monotonic", [False, True])
def test_winners_and_gaps_have_the_exact_distribution(monotonic):
    """Winner and gap in cells of the grid, to exact probabilities. False-failure rate 1e-12."""
    draws, grid = 200_000, 1.0
    a = 0.5 * (2 if monotonic else 1)
    rows = np.broadcast_to(np.array(SCORES), (draws, 4))
    won, gaps = dpf.noisy_max_with_gap(rows, 1.0, 1.0, monotonic, grid=grid)
    assert np.array_equal(gaps, np.round(gaps))
    events, total = [], 0.0
    for i in range(4):
        q = [a * score for score in SCORES]
        cuts = [0.0, *(a * (step + 0.5) for step in range(6)), math.inf]
        tails = [float(tail_of_gap(q, i, cut)) if cut < math.inf else 0.0 for cut in cuts]
        for cell in range(7):
            p = tails[cell] - tails[cell + 1]
            count = int(((won == i) & ((gaps == cell) if cell < 6 else (gaps >= 6))).sum())
            events.append((f"candidate {i}, gap {cell}", count, draws, p))
            total += p
    assert total == pytest.approx(1, abs=1e-9)
    assert not rejects(events)
    # The mutant: noise of the other scale.
    wrong = [
        (name, count, n, float(tail_of_gap([score * 1.5 * a for score in SCORES], 3, 0)))
        for name, count, n, _ in events
    ]
    assert rejects([wrong[0]])


def density(q, i, g):
    step = 1e-5
    return float(tail_of_gap(q, i, g - step) - tail_of_gap(q, i, g + step)) / (2 * step)


@pytest.mark.parametrize("monotonic", [False, True])
def test_no_pair_of_neighbours_loses_more_than_epsilon(monotonic, seed):
    """Winner and gap together, by exact tails over cells of the grid: the proof of the docstring in numbers."""
    generator = np.random.default_rng(seed)
    worst = 0.0
    for trial in range(12):
        n = 2 if trial < 4 else int(generator.integers(2, 5))
        scores = np.round(generator.uniform(-3, 3, n), 1) * (4 if trial % 2 else 1)
        moves = generator.choice([-1.0, 1.0], n)
        moves = generator.choice([0.0, 1.0], n) if monotonic else moves
        a = 1.0 if monotonic else 0.5
        for g in (0.125, 1.0, 4.0):
            pair = [
                tail_of_gap(a * each, 0, a * (g - 0.125)) - tail_of_gap(a * each, 0, a * (g + 0.125))
                for each in (scores, scores + moves)
            ]
            worst = max(worst, abs(math.log(pair[0] / pair[1])))
    print(f"largest loss {worst:.4f} of 1")
    assert worst <= 1 + 1e-12


def test_monotonic_slopes_are_wrong_for_other_scores():
    """The mutant: a = epsilon / sensitivity where one score rises as the other falls loses nearly 2 epsilon."""
    one, other = (density(q, 0, 1.0) for q in ([0.0, 8.0], [1.0, 7.0]))
    assert math.log(other / one) > 1.99


def test_what_the_winners_noisy_score_would_leak():
    """Erratum E5: ten counts that all rise by 1 move the largest noisy one by 10 epsilon, the gap by at most epsilon.

    False-failure rate 1e-12: confidence bounds of the frequency of a small largest noisy score and of a small gap.
    """
    epsilon, m, draws, alpha = 1.0, 10, 300_000, 1e-12 / 4
    below = [(1 - math.exp(-1.0) / 2), 0.5]  # Laplace noise, and the event that none of ten is above 1
    assert m * math.log(below[0] / below[1]) == pytest.approx(4.9, abs=0.01)
    left = m * math.log(math.exp(-4.0) / math.exp(-5.0))  # far left every count gives a factor of e**epsilon
    assert left == pytest.approx(m * epsilon)
    generator = np.random.default_rng(20_261_125)
    largest = [(count + generator.laplace(0, 1 / epsilon, (draws, m))).max(1) for count in (0.0, 1.0)]
    often, rare = (int((noisy <= 1.0).sum()) for noisy in largest)
    assert math.log(lower_limit(often, draws, alpha) / upper_limit(rare, draws, alpha)) > 4 * epsilon
    gaps = [dpf.noisy_max_with_gap(np.full((draws, m), count), epsilon, 1.0, True)[1] for count in (0.0, 1.0)]
    one, other = (int((gap <= 0.5).sum()) for gap in gaps)
    assert math.log(lower_limit(one, draws, alpha) / upper_limit(other, draws, alpha)) < epsilon


def gaps_of(scores, a, grid, keystream, **options):
    candidates = borrow_candidates(scores)
    rows = np.arange(candidates.rows)
    first_two, words = rank_rows(candidates, a, EXPONENTIAL, 2, keystream)
    return gap_steps(candidates, a, grid, rows, first_two, words, keystream, **options)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "float64", "float32"])
@pytest.mark.parametrize(("a", "grid"), [(0.5, 2.0**-9), (0.5, 0.1), (1e-9, 3.0), (1e9, 2.0**-60), (0.5, 2.0**-29)])
def test_fast_path_is_the_exact_path(dtype, a, grid, seed):
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 40, (200, 5)).astype(dtype)
    if scores.dtype.kind == "f":
        scores += generator.standard_normal((200, 5)).astype(dtype)
    for own in ((a, grid), (np.full(200, a), np.full(200, grid))):
        keystream = Keystream(bytes(32))
        fast = gaps_of(scores, *own, keystream)
        assert np.array_equal(fast, gaps_of(scores, *own, keystream, refine_all=True))
    assert np.unique(fast).size > 1


@pytest.mark.parametrize(
    "row", [[1e308, -1e308], [2**63 - 1, -(2**63)], [5e-324, 0.0], [1e300, 1e300], [2.0**60, 2.0**60 + 256]], ids=str
)
def test_extreme_scores(row):
    for a in (2.0**-1021, 1e-19, 1.0, 3e100, 2.0**979):
        for grid in (2.0**-960, 1.0, 2.0**960):
            keystream = Keystream(bytes(32))
            fast = gaps_of(np.array([row] * 4), a, grid, keystream)
            assert np.array_equal(fast, gaps_of(np.array([row] * 4), a, grid, keystream, refine_all=True))
            assert (fast >= 0).all()
            assert np.isfinite(fast).all()


def test_gaps_against_mpmath(seed):
    """The second oracle; words that are next to the middle between two multiples, and equal ones, among them."""
    generator = np.random.default_rng(seed)
    words = generator.integers(1, REST, 600)
    words[generator.random(600) < 0.2] = 12_345
    extensions = [int.from_bytes(generator.bytes(128), "big") for _ in words]
    scores = generator.integers(0, 3, (300, 2)).astype(float)
    for a, grid in ((1.0, 2.0**-10), (0.3, 1.0), (1.0, 2.0**-27)):
        keystream = ChosenKeystream(words, dict(enumerate(extensions)))
        gaps = gaps_of(scores, a, grid, keystream)
        with mpmath.workprec(1200):
            for row in range(300):
                keys = [
                    mpmath.mpf(scores[row, i])
                    + noise_of(EXPONENTIAL, (int(words[j]) << 1024) | extensions[j], 1055, False) / mpmath.mpf(a)
                    for i, j in enumerate((2 * row, 2 * row + 1))
                ]
                steps = mpmath.floor(abs(keys[0] - keys[1]) / mpmath.mpf(grid) + mpmath.mpf(1) / 2)
                assert gaps[row] == float(int(steps) * Fraction(grid))


def test_default_grid_comes_from_the_scale():
    """Power of two, a thousandth of the noise: from the parameters, whatever the scores are."""
    for epsilon, grid in ((1.0, 2.0**-9), (2.0, 2.0**-10), (0.3, 2.0**-8)):
        for scores in (np.zeros((50, 3)), np.full((50, 3), 1e6) + np.arange(3)):
            _, gaps = dpf.noisy_max_with_gap(scores, epsilon)
            assert np.array_equal(gaps % grid, np.zeros(50))
            assert (gaps % (2 * grid) != 0).any()
    _, gaps = dpf.noisy_max_with_gap(np.zeros((2, 3)), [1.0, 1e-9])
    assert (gaps % [2.0**-9, 2.0**20] == 0).all()


def test_winners_are_those_of_permute_and_flip(seed):
    rows = np.random.default_rng(seed).standard_normal((500, 9))
    won, _ = dpf.noisy_max_with_gap(rows, 1.0, random=SeededRandom(seed))
    assert np.array_equal(won, dpf.permute_and_flip(rows, 1.0, random=SeededRandom(seed)))
    several = [
        dpf.noisy_max_with_gap(rows.repeat(100, 0), 1.0, random=SeededRandom(seed), threads=n) for n in (1, 2, 8)
    ]
    for won, gaps in several:
        assert np.array_equal(won, several[0][0])
        assert np.array_equal(gaps, several[0][1])


def test_kinds_of_results():
    lists = pl.Series("s", [[0, 10**6], None, [5], [10**7, None, 0]])
    won, gaps = dpf.noisy_max_with_gap(lists, 1.0, grid=10**5)
    assert won.to_list() == [1, None, 0, 0]
    assert gaps.to_list() == [10**6, None, None, 10**7]
    assert (gaps.name, gaps.dtype) == ("s", pl.Float64)
    won, gaps = dpf.noisy_max_with_gap(lists.to_arrow(), 1.0, grid=10**5, candidates=pl.Series(["a", "b", "c"]))
    assert won.to_list() == ["b", None, "a", "a"]
    assert isinstance(gaps, pa.Array)
    won, gap = dpf.noisy_max_with_gap([0, 10**6, 0], 1.0, grid=10**5, candidates=["a", "b", "c"])
    assert (won, gap) == ("b", 10.0**6)
    assert type(gap) is float


@pytest.mark.parametrize(
    "grid", [0, -1, math.nan, math.inf, "1", True, 1e-300, [1.0, 2.0, 3.0], [1.0, math.nan]], ids=repr
)
def test_bad_grid(grid):
    with pytest.raises(DpfastError, match=r"(grid|length of grid)"):
        dpf.noisy_max_with_gap(np.zeros((2, 2)), 1.0, grid=grid)


def test_no_runner_up():
    for scores, message in (([1.0], "at least 2 candidates, but had 1"), (np.zeros((3, 1)), "row 0 had 1")):
        with pytest.raises(DataError, match=message):
            dpf.noisy_max_with_gap(scores, 1.0)
